//! BlackWidow networks: YARC routers, and processors that write 1 to 32 bytes.

mod build;
#[cfg(test)]
mod cables;
#[cfg(test)]
mod canaries;
mod direct_router;
#[cfg(test)]
mod encoded_tests;
mod length;
#[cfg(test)]
mod mail_tests;
mod options;
mod packet;
#[cfg(test)]
mod pattern_tests;
mod slow;
mod terminal;
#[cfg(test)]
mod tests;

pub use options::BlackWidowOptions;

use phitwire_framing::yarc::memory::write_phits;
use phitwire_framing::yarc::packet::{EopStatus, Vc, eop_status, head_vc};
use phitwire_framing::yarc::phit::Phit;

use crate::link::{INPUT_PHITS, InputQueue, Lcb};
use crate::route::registers::PORTS;
use crate::router::Yarc;
use crate::topology::{ClosWiring, FoldedClos};
use packet::{BIRTH_BITS, REPLY_PHITS, Seal};
use phitwire::device::{Device, PipelineReport};
use phitwire::link::impair::Netem;
use phitwire::link::{LinkView, MAX_VCS};
use phitwire::node::PortId;
use phitwire::sim::direct::config::{Config, ConfigError, Traffic};
use phitwire::sim::direct::exchange::{all_cycles, delay_cycles};
use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire::sim::direct::model::{ChipView, CycleModel, DirectModel, Lanes, Partitioned, Stream};
use phitwire::sim::direct::pattern::{Destinations, Pattern, Population, Rule};
use phitwire::sim::direct::shared::Shared;
use phitwire::sim::direct::{DirectPart, EncodedPart};
use phitwire::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlackWidow;

/// The packet format that terminals use.
#[derive(Clone, Debug)]
pub struct Format {
    numbers: Vec<u16>,
    request_phits: usize,
    /// Maximum number of outstanding requests of a processor per slice, if it waits for replies.
    outstanding: u32,
    seal: Seal,
    /// Hash bits that determine the path of a request. Requests that differ in them may overtake
    /// each other.
    pub(super) deciding_hash_bits: u16,
}

impl CycleModel for BlackWidow {
    type Topology = FoldedClos;
    type Options = BlackWidowOptions;
    type About = options::About;
    type Format = Format;
    type Packet = packet::Packet;
    type Reply = packet::Name;
    type Terminal = terminal::Terminal;
    type Router = Yarc;
    type End = Lcb;
    type Assemblies = [packet::Assembly; 2];
    type Direct = Self;

    const PORTS: usize = PORTS;
    // BlackWidow sec. 3: 800 MHz.
    const CYCLE: Duration = Duration::from_ps(1_250);
    const LINK_KINDS: &'static [&'static str] = &["up", "side", "down"];
    // One packet of 19 phits (BlackWidow sec. 4.3).
    const MAX_MESSAGE_BYTES: u8 = 32;
    // Packets of 13 phits, the average according to BlackWidow sec. 7.1.
    const MESSAGE_BYTES: u8 = 16;
    const BIRTH_BITS: u32 = BIRTH_BITS;

    fn about(options: &BlackWidowOptions) -> options::About {
        options.about()
    }

    fn message_phits(traffic: &Traffic) -> usize {
        let reply = if traffic.request_reply {
            REPLY_PHITS
        } else {
            0
        };
        write_phits(usize::from(traffic.message_bytes)) + reply
    }

    fn terminal(topology: &FoldedClos, nic: u32, port: u8) -> Option<u64> {
        let processors = topology.processors.len() as u64;
        Some(u64::from(port) * processors + u64::from(nic))
    }

    fn build_encoded(
        topology: &FoldedClos,
        config: &Config,
        options: &BlackWidowOptions,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Partitioned<EncodedPart<Self>>, ConfigError> {
        build::encoded(topology, (config, options), netem, partitions)
    }

    fn wire_cycles(
        topology: &FoldedClos,
        options: &BlackWidowOptions,
        link: usize,
    ) -> Result<u32, ConfigError> {
        Ok(length::cycles(&topology.links[link], options))
    }

    fn end(router: &Yarc, port: PortId) -> Option<&Lcb> {
        router.lcb(port)
    }

    fn pipeline(router: &Yarc) -> PipelineReport {
        Device::pipeline(router)
    }

    fn view(router: &Yarc) -> ChipView {
        let queued = (0..PORTS as PortId).map(|port| router.queued(port));
        let [rows, columns] = router.core().phits_by_stage();
        direct_router::view(router.core(), [queued.sum(), rows, columns])
    }

    fn sent(end: &Lcb) -> u64 {
        end.counters().tx_phits
    }

    fn receive(
        input: &mut InputQueue,
        assemblies: &mut Self::Assemblies,
        cycle: u64,
        terminal: &mut terminal::Terminal,
        shared: &mut Shared<Self>,
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
                // Ignore a packet that ends with `transmit_error`, because it is resent.
            }
        }
    }

    fn has_room(end: &Lcb, is_reply: bool, _: &Shared<Self>) -> bool {
        end.wire().can_begin(Vc::ALL[usize::from(is_reply)])
    }

    fn push(end: &mut Lcb, packet: &packet::Packet) -> u64 {
        for &bits in packet.phits() {
            end.push(Phit::from_bits(bits));
        }
        packet.phits().len() as u64
    }
}

impl Lanes for BlackWidow {
    type Phit = u32;
    /// Cycles in which a credit arrives, per virtual channel.
    type Credits = [u64; 2];

    const CHIP_LANES: usize = PORTS;

    #[inline]
    fn lanes(port: usize) -> (usize, usize) {
        (port, 1)
    }

    fn delay_credits(credits: &[u64; 2], by: usize, window: usize) -> [[u64; 2]; 2] {
        let [request, response] = credits.map(|cycles| delay_cycles(cycles, by, window));
        [[request[0], response[0]], [request[1], response[1]]]
    }

    fn add_credits(credits: &mut [u64; 2], more: &[u64; 2]) {
        credits[0] |= more[0];
        credits[1] |= more[1];
    }

    fn count_credits(credits: &[u64; 2]) -> [u32; MAX_VCS] {
        let mut counts = [0; MAX_VCS];
        for (count, cycles) in counts.iter_mut().zip(credits) {
            *count = cycles.count_ones();
        }
        counts
    }

    /// The phit and its kind, in the form that routers store.
    fn write_phit(phit: u32, mail: &mut Vec<u8>) {
        mail.extend(phit.to_le_bytes());
    }

    fn read_phit(mail: &mut Reader<'_>) -> Result<u32, MailError> {
        let bits = mail.u32()?;
        let phit = Phit::from_bits(bits);
        // The sideband must be empty: only frames use it.
        match Phit::new(phit.kind(), phit.content()).to_bits() == bits {
            true => Ok(bits),
            false => Err(MailError::Phit),
        }
    }

    fn write_credits(credits: &[u64; 2], mail: &mut Vec<u8>) {
        mail.extend(credits.iter().flat_map(|cycles| cycles.to_le_bytes()));
    }

    fn read_credits(mail: &mut Reader<'_>, window: usize) -> Result<[u64; 2], MailError> {
        let credits = [mail.u64()?, mail.u64()?];
        match (credits[0] | credits[1]) & !all_cycles(window) {
            0 => Ok(credits),
            _ => Err(MailError::Credits),
        }
    }
}

impl DirectModel<Self> for BlackWidow {
    type Router = direct_router::DirectRouter;

    const VCS: usize = 2;
    const CREDITS: u32 = INPUT_PHITS;

    fn follow(stream: &mut Stream, phit: u32) -> usize {
        let phit = Phit::from_bits(phit);
        if phit.is_head() {
            stream.vc = head_vc(phit.content()).index() as u8;
        }
        stream.vc.into()
    }

    fn build(
        topology: &FoldedClos,
        config: &Config,
        options: &BlackWidowOptions,
        partitions: usize,
    ) -> Result<Partitioned<DirectPart<Self>>, ConfigError> {
        build::direct(topology, (config, options), partitions)
    }
}

/// The pattern of `traffic` over the processors of `topology`.
pub(crate) fn destinations(
    traffic: &Traffic,
    topology: &FoldedClos,
    wiring: &ClosWiring,
    seed: u64,
) -> Result<Destinations, ConfigError> {
    let numbers: Vec<u32> = topology
        .processors
        .iter()
        .map(|p| p.number.into())
        .collect();
    let population = Population {
        numbers: &numbers,
        slices: topology.slices.into(),
        grid: None,
    };
    Destinations::new(traffic, population, seed, |pattern, participants| {
        (*pattern == Pattern::RowAdversary).then(|| rows_to_columns(topology, wiring, participants))
    })
}

/// The worst-case pattern for a YARC: from row *r* to column *r* of the same router.
fn rows_to_columns(topology: &FoldedClos, wiring: &ClosWiring, participants: u32) -> Rule {
    let mut columns = vec![[const { Vec::new() }; 8]; wiring.router_count()];
    let n = topology.processors.len() as u32;
    let mut starts = vec![0];
    let mut list: Vec<u32> = Vec::new();
    for slice in 0..topology.slices {
        for processor in 0..participants {
            if let Some((router, port)) = wiring.injection(topology, processor, slice) {
                columns[router as usize][usize::from(port % 8)].push(processor);
            }
        }
        for processor in 0..n {
            if let Some((router, port)) = wiring.injection(topology, processor, slice) {
                let there = &columns[router as usize][usize::from(port / 8 % 8)];
                list.extend(there.iter().filter(|&&p| p != processor));
            }
            starts.push(list.len() as u32);
        }
    }
    Rule::Lists { starts, list }
}
