//! BlackWidow networks: YARC routers, and processors that write 1 to 32 bytes.

mod build;
#[cfg(test)]
mod cables;
#[cfg(test)]
mod canaries;
mod encoded;
#[cfg(test)]
mod encoded_tests;
mod length;
mod packet;
mod site;
mod slow;
mod terminal;
#[cfg(test)]
mod tests;

pub(crate) use packet::BIRTH_BITS;
pub use site::INPUT_PHITS;

use phitwire_framing::memory24::write_phits;
use phitwire_framing::packet24::head_vc;
use phitwire_framing::phit24::Phit;

use crate::link::impair::Netem;
use crate::machine::blackwidow::link::{InputQueue, Lcb};
use crate::machine::blackwidow::router::Yarc;
use crate::machine::blackwidow::topology::{ClosWiring, FoldedClos};
use crate::node::PortId;
use crate::sim::direct::config::{Config, ConfigError, Traffic};
use crate::sim::direct::exchange::delay_cycles;
use crate::sim::direct::family::{ChipView, Family, MAX_VCS, Network, Parts, Stream};
use crate::sim::direct::pattern::{Destinations, Pattern, Population, Rule};
use crate::sim::direct::shared::Shared;
use crate::time::Duration;
use packet::{REPLY_PHITS, Seal};

/// Networks of YARC routers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlackWidow;

impl Family for BlackWidow {}

/// What terminals need to know of packets.
#[derive(Clone, Debug)]
pub struct Format {
    /// Number of each processor.
    numbers: Vec<u16>,
    request_phits: usize,
    seal: Seal,
    /// Whether the hash bits decide the way of a request, and with it which requests stay in order.
    pub(super) hashed_ways: bool,
}

impl Parts for BlackWidow {
    type Topology = FoldedClos;
    type Phit = u32;
    /// Cycles in which a credit arrives, per virtual channel.
    type Credits = [u64; 2];
    type Format = Format;
    type Site = site::Site;
    type Terminal = terminal::Terminal;
    type Router = Yarc;
    type End = Lcb;
    type Assemblies = [packet::Assembly; 2];

    const PORTS: usize = crate::machine::blackwidow::route::registers::PORTS;
    const CHIP_LANES: usize = Self::PORTS;
    const TERMINAL_LANES: usize = 1;
    const VCS: usize = 2;
    const CREDITS: u32 = INPUT_PHITS as u32;
    // Paper, section 3: 800 MHz.
    const CYCLE: Duration = Duration::from_ps(1_250);
    const LINK_KINDS: &'static [&'static str] = &["up", "side", "down"];

    fn message_phits(traffic: &Traffic) -> usize {
        let reply = if traffic.request_reply {
            REPLY_PHITS
        } else {
            0
        };
        write_phits(usize::from(traffic.message_bytes)) + reply
    }

    #[inline]
    fn lanes(port: usize) -> (usize, usize) {
        (port, 1)
    }

    fn follow(stream: &mut Stream, phit: u32) -> usize {
        let phit = Phit::from_bits(phit);
        if phit.is_head() {
            stream.vc = head_vc(phit.content()).index() as u8;
        }
        stream.vc.into()
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

    fn build(
        topology: &FoldedClos,
        config: &Config,
        partitions: usize,
    ) -> Result<Network<Self>, ConfigError> {
        build::direct(topology, config, partitions)
    }

    fn terminal(topology: &FoldedClos, nic: u32, port: u8) -> Option<u64> {
        let processors = topology.processors.len() as u64;
        Some(u64::from(port) * processors + u64::from(nic))
    }

    fn build_encoded(
        topology: &FoldedClos,
        config: &Config,
        netem: Option<Netem>,
        partitions: usize,
    ) -> Result<Network<Self>, ConfigError> {
        build::encoded(topology, config, netem, partitions)
    }

    fn end(router: &Yarc, port: PortId) -> Option<&Lcb> {
        router.lcb(port)
    }

    fn view(router: &Yarc) -> ChipView {
        let queued = (0..Self::PORTS as PortId).map(|port| router.queued(port));
        let [rows, columns] = router.core().phits_by_stage();
        site::view(router.core(), [queued.sum(), rows, columns])
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
        encoded::receive(input, assemblies, cycle, terminal, shared);
    }

    fn transmit(
        end: &mut Lcb,
        cycle: u64,
        terminal: &mut terminal::Terminal,
        shared: &mut Shared<Self>,
    ) {
        encoded::transmit(end, cycle, terminal, shared);
    }

    fn next_due(end: &Lcb, terminal: &terminal::Terminal, _: &Shared<Self>) -> u64 {
        encoded::next_due(end, terminal)
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
    };
    Destinations::new(traffic, population, seed, |pattern, participants| {
        (*pattern == Pattern::RowAdversary).then(|| rows_to_columns(topology, wiring, participants))
    })
}

/// The adversary of the YARC: from row *r* to column *r* of the same router.
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
