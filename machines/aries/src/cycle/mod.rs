//! Aries networks: dragonflies of 48-port routers, with NICs that put 1 to 64 bytes.
//!
//! # Links
//!
//! A link carries one flit per cycle of 1.143 ns, but a router's port sends none in every tenth
//! cycle, since a set of ten flits has nine of data (XC white paper, "Aries Router"). With lanes of
//! 12.5 Gb/s, a port sends 45 flits in 56 cycles. A NIC's link carries 64 flits in 25 cycles
//! (`Pace::NIC`). Latencies are multiples of a set, so that the loads in every tenth flit stay in
//! step with the sets: [`AriesOptions::link_cycles`].
//!
//! # Windows
//!
//! A window is as long as the latency of the shortest link. Flits on longer links wait in packed
//! form. Networks are cut between groups if there are several, so that partitions exchange mail
//! only once per latency of the shortest blue link.

mod build;
mod credits;
mod direct_router;
#[cfg(test)]
mod mail_tests;
#[cfg(test)]
mod mode_tests;
mod options;
mod packet;
mod terminal;
#[cfg(test)]
mod tests;

pub use options::AriesOptions;

use std::sync::Arc;

use phitwire_framing::aries::flit::{Flit, Head, Routing};

use self::credits::Returned;
use crate::link::{AriesInput, AriesLcb};
use crate::route::registers::{FIRST_NIC_PORT, NICS, PORTS, VCS};
use crate::router;
use crate::router::pace::Pace;
use crate::router::pipeline::CYCLE_PS;
use crate::topology::Dragonfly;
use phitwire::device::{Device, PipelineReport};
use phitwire::link::MAX_VCS;
use phitwire::link::impair::Netem;
use phitwire::node::PortId;
use phitwire::sim::direct::config::{Config, ConfigError, Traffic};
use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire::sim::direct::model::{ChipView, CycleModel, DirectModel, Lanes, Partitioned, Stream};
use phitwire::sim::direct::shared::Shared;
use phitwire::sim::direct::{DirectPart, EncodedPart};
use phitwire::time::Duration;
use phitwire_framing::aries::set::DATA_FLITS;

/// Number of lanes of a NIC's link: the most flits that it carries in a cycle.
pub(crate) const NIC_LANES: usize = {
    let [flits, cycles] = Pace::NIC.ratio();
    flits.div_ceil(cycles) as usize
};
/// Size of an input buffer in flits, shared by all virtual channels (128 blocks of 8).
pub(crate) const INPUT_FLITS: u32 = 1_024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aries;

/// The packet format that terminals use.
#[derive(Clone, Debug)]
pub struct Format {
    /// Address of each NIC, by its index among the existing ones.
    nodes: Arc<[u32]>,
    request_flits: usize,
    routing: Routing,
    /// Maximum number of outstanding packets of a NIC that waits for replies.
    outstanding: usize,
}

impl CycleModel for Aries {
    type Topology = Dragonfly;
    type Options = AriesOptions;
    type About = options::About;
    type Format = Format;
    type Packet = packet::Packet;
    type Reply = packet::Reply;
    type Terminal = terminal::Terminal;
    type Router = router::Aries;
    type End = AriesLcb;
    type Assemblies = [packet::Assembly; VCS];
    type Direct = Self;

    const PORTS: usize = PORTS;
    const CYCLE: Duration = Duration::from_ps(CYCLE_PS);
    const LINK_KINDS: &'static [&'static str] = &["green", "black", "blue"];
    // A message is one packet of up to 64 bytes (XC white paper, "Aries NIC") and 14 flits ("Aries
    // Performance").
    const MAX_MESSAGE_BYTES: u8 = 64;
    const MESSAGE_BYTES: u8 = 64;
    const BIRTH_BITS: u32 = 48;
    const OTHER_WAYS: &'static str = "non-minimal";

    fn about(options: &AriesOptions) -> options::About {
        options.about()
    }

    fn message_phits(traffic: &Traffic) -> usize {
        let reply = usize::from(traffic.request_reply) * packet::REPLY_FLITS;
        packet::request_flits(usize::from(traffic.message_bytes)) + reply
    }

    fn terminal(topology: &Dragonfly, nic: u32, _: u8) -> Option<u64> {
        let at = topology.nics().position(|there| there == nic)?;
        Some(at as u64)
    }

    fn build_encoded(
        topology: &Dragonfly,
        config: &Config,
        options: &AriesOptions,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Partitioned<EncodedPart<Self>>, ConfigError> {
        build::encoded(topology, (config, *options), netem, partitions)
    }

    fn wire_cycles(
        topology: &Dragonfly,
        options: &AriesOptions,
        link: usize,
    ) -> Result<u32, ConfigError> {
        build::wire_cycles(topology, options, link)
    }

    fn end(router: &router::Aries, port: PortId) -> Option<&AriesLcb> {
        router.lcb(port)
    }

    fn pipeline(router: &router::Aries) -> PipelineReport {
        Device::pipeline(router)
    }

    fn view(router: &router::Aries) -> ChipView {
        let core = router.core();
        let queued: u64 = (0..PORTS as PortId).map(|port| router.queued(port)).sum();
        let [netlink, rows, columns] = core.flits_by_stage();
        let inside = queued + netlink;
        direct_router::view(core.counters(), core.stalls(), [inside, rows, columns])
    }

    fn sent(end: &AriesLcb) -> u64 {
        let sets = end.wire().set_counters();
        sets.tx_flits + sets.tx_replayed_sets * DATA_FLITS as u64
    }

    /// Packets of different virtual channels arrive interleaved.
    fn receive(
        input: &mut AriesInput,
        assemblies: &mut Self::Assemblies,
        cycle: u64,
        terminal: &mut terminal::Terminal,
        shared: &mut Shared<Self>,
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

    fn has_room(end: &AriesLcb, is_reply: bool, shared: &Shared<Self>) -> bool {
        match is_reply {
            false => end.wire().can_begin(0, shared.format.request_flits),
            true => end.wire().can_begin(4, packet::REPLY_FLITS),
        }
    }

    fn push(end: &mut AriesLcb, packet: &packet::Packet) -> u64 {
        for &bits in packet.flits() {
            end.push(Flit::new(bits));
        }
        packet.flits().len() as u64
    }
}

impl Lanes for Aries {
    type Phit = u64;
    type Credits = Returned;

    const CHIP_LANES: usize = FIRST_NIC_PORT + NIC_LANES * NICS;
    const TERMINAL_LANES: usize = NIC_LANES;
    const TERMINAL_RATE: [u64; 2] = Pace::NIC.ratio();

    #[inline]
    fn lanes(port: usize) -> (usize, usize) {
        if port < FIRST_NIC_PORT {
            (port, 1)
        } else {
            (
                FIRST_NIC_PORT + NIC_LANES * (port - FIRST_NIC_PORT),
                NIC_LANES,
            )
        }
    }

    fn delay_credits(credits: &Returned, by: usize, window: usize) -> [Returned; 2] {
        credits.delayed(by, window)
    }

    fn add_credits(credits: &mut Returned, more: &Returned) {
        credits.add(more);
    }

    fn count_credits(credits: &Returned) -> [u32; MAX_VCS] {
        credits.counts()
    }

    /// Writes the 48 bits of the flit.
    fn write_phit(flit: u64, mail: &mut Vec<u8>) {
        mail.extend(&flit.to_le_bytes()[..6]);
    }

    fn read_phit(mail: &mut Reader<'_>) -> Result<u64, MailError> {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&mail.take::<6>()?);
        Ok(u64::from_le_bytes(bytes))
    }

    fn write_credits(credits: &Returned, mail: &mut Vec<u8>) {
        credits.write(mail);
    }

    fn read_credits(mail: &mut Reader<'_>, window: usize) -> Result<Returned, MailError> {
        Returned::read(mail, window)
    }
}

impl DirectModel<Self> for Aries {
    type Router = direct_router::DirectRouter;

    const VCS: usize = VCS;
    const CREDITS: u32 = INPUT_FLITS;

    #[inline]
    fn follow(stream: &mut Stream, flit: u64) -> usize {
        if stream.left == 0 {
            // Between packets only heads are valid; any other flit is treated as a packet of one
            // flit.
            let head = Head::parse(Flit::new(flit));
            stream.vc = head.map_or(0, Head::vc);
            stream.left = head.map_or(1, Head::length);
        }
        stream.left -= 1;
        stream.vc.into()
    }

    fn build(
        topology: &Dragonfly,
        config: &Config,
        options: &AriesOptions,
        partitions: usize,
    ) -> Result<Partitioned<DirectPart<Self>>, ConfigError> {
        build::direct(topology, (config, *options), partitions)
    }
}
