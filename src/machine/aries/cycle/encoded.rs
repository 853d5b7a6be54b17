//! NICs behind the link control blocks of Aries links.

use phitwire_framing::flit48::{Flit, VCS};

use super::Aries;
use super::packet::{Assembly, REPLY_FLITS};
use super::terminal::Terminal;
use crate::machine::aries::link::{AriesInput, AriesLcb};
use crate::sim::direct::family::Terminal as _;
use crate::sim::direct::source::NEVER;

type Shared = crate::sim::direct::shared::Shared<Aries>;

/// Takes what has arrived: packets of different virtual channels come in between each other.
pub(super) fn receive(
    input: &mut AriesInput,
    assemblies: &mut [Assembly; VCS],
    cycle: u64,
    terminal: &mut Terminal,
    shared: &mut Shared,
) {
    for (vc, assembly) in assemblies.iter_mut().enumerate() {
        while let Some(flit) = input.pop(vc) {
            shared.tally.arrived_phits += 1;
            let (_, delivery) = assembly.take(flit.bits(), shared.format.routing);
            if let Some(delivery) = delivery {
                terminal.arrived(cycle, delivery, shared);
            }
        }
    }
}

/// Hands over the packets that are due and have room in the link.
pub(super) fn transmit(
    lcb: &mut AriesLcb,
    cycle: u64,
    terminal: &mut Terminal,
    shared: &mut Shared,
) {
    loop {
        let may = rooms(lcb, terminal, shared).map(|due| due <= cycle);
        if may == [false, false] {
            return;
        }
        let Some(packet) = terminal.next_packet(may, shared) else {
            return;
        };
        let flits = packet.flits().len() as u64;
        terminal.common_mut().sent_phits += flits;
        shared.tally.sent_phits += flits;
        shared.tally.sent_packets += 1;
        for &bits in packet.flits() {
            lcb.push(Flit::new(bits));
        }
    }
}

/// When the next packet is due that has room.
pub(super) fn next_due(lcb: &AriesLcb, terminal: &Terminal, shared: &Shared) -> u64 {
    let [request, reply] = rooms(lcb, terminal, shared);
    request.min(reply)
}

/// The cycles from which on the next request and the next reply may be sent; [`NEVER`] without room in the link.
fn rooms(lcb: &AriesLcb, terminal: &Terminal, shared: &Shared) -> [u64; 2] {
    let lengths = [shared.format.request_flits, REPLY_FLITS];
    let due = terminal.due(shared);
    core::array::from_fn(|i| match lcb.can_begin(4 * i, lengths[i]) {
        true => due[i],
        false => NEVER,
    })
}
