//! Terminals behind the link control blocks of a YARC's links.

use phitwire_framing::packet24::{EopStatus, Vc, eop_status};
use phitwire_framing::phit24::Phit;

use super::BlackWidow;
use super::packet::Assembly;
use super::terminal::Terminal;
use crate::machine::blackwidow::link::{InputQueue, Lcb};
use crate::sim::direct::family::Terminal as _;
use crate::sim::direct::source::NEVER;

type Shared = crate::sim::direct::shared::Shared<BlackWidow>;

/// Takes what has arrived.
pub(super) fn receive(
    input: &mut InputQueue,
    assemblies: &mut [Assembly; 2],
    cycle: u64,
    terminal: &mut Terminal,
    shared: &mut Shared,
) {
    for vc in Vc::ALL {
        let assembly = &mut assemblies[vc.index()];
        while input.ready(vc) {
            let phit = input.pop(vc);
            let delivery = assembly.take(phit, shared.format.seal);
            let Some(delivery) = delivery else { continue };
            if eop_status(phit.content()) == Some(EopStatus::Healthy) {
                shared.tally.arrived_phits += u64::from(delivery.phits);
                terminal.arrived(cycle, delivery, shared);
            }
            // What ended as `transmit_error` comes again.
        }
    }
}

/// Hands over the packets that are due and have room in the link.
pub(super) fn transmit(lcb: &mut Lcb, cycle: u64, terminal: &mut Terminal, shared: &mut Shared) {
    loop {
        let [request, reply] = terminal.due().map(|due| due <= cycle);
        let open = |vc| lcb.is_active() && lcb.can_begin(vc);
        let may = [request && open(Vc::Request), reply && open(Vc::Response)];
        if may == [false, false] {
            return;
        }
        let Some(packet) = terminal.next_packet(may, shared) else {
            return;
        };
        let phits = packet.phits().len() as u64;
        terminal.common_mut().sent_phits += phits;
        shared.tally.sent_phits += phits;
        shared.tally.sent_packets += 1;
        for &bits in packet.phits() {
            lcb.push(Phit::from_bits(bits));
        }
    }
}

/// When the next packet is due that has room.
pub(super) fn next_due(lcb: &Lcb, terminal: &Terminal) -> u64 {
    let has_room = Vc::ALL.map(|vc| lcb.is_active() && lcb.can_begin(vc));
    let due = terminal.due().into_iter().zip(has_room);
    let open = due.filter(|(_, room)| *room).map(|(due, _)| due);
    open.min().unwrap_or(NEVER)
}
