//! Follows every packet through the registers.

use std::collections::BTreeMap;

use crate::route::registers::{PORTS, PortKind};
use crate::topology::model::{
    FoldedClos, MAX_PROCESSORS, RouterRegisters, is_aligned, range_of_subtree,
};
use crate::topology::route::{RouteFailure, Step, step};
use crate::topology::wiring::{ClosWiring, Neighbour};
use phitwire::net::PortSet;
use phitwire::net::{Location, Mistake, MistakeKind as K};

pub(super) struct Walk {
    pub(super) mistakes: Vec<Mistake>,
    pub(super) followed: bool,
    /// Output ports that packets take, by virtual router and input port.
    pub(super) waits_for: Vec<[u64; PORTS]>,
}

/// Follows packets from every processor to every processor. Uses all ports of a table entry, since
/// hash and load may choose any of them.
///
/// Does one breadth-first search per destination class and slice, from all rank-1 routers at once:
/// the next hop depends only on router and destination, not on the path so far. Every path *ends*
/// if there are no failures and cycles; [`cycles`](super::cycles) searches for the latter. Starts
/// no further classes after this number of `steps`.
pub(super) fn walk(topology: &FoldedClos, wiring: &ClosWiring, steps: u64) -> Walk {
    let mut search = Search::new(topology, wiring);
    let mut followed = true;
    let classes = classes(topology, wiring);
    for slice in 0..topology.slices {
        let seeds = search.seeds(slice);
        for class in &classes {
            if search.steps > steps {
                followed = false;
                break;
            }
            search.run(&seeds, class);
        }
    }
    let mistakes = search
        .failures
        .iter()
        .map(|(&key, f)| search.mistake(key, f))
        .collect();
    Walk {
        mistakes,
        followed,
        waits_for: search.waits_for,
    }
}

/// Groups of processors (by index) that no router's registers distinguish before the last hop.
fn classes(topology: &FoldedClos, wiring: &ClosWiring) -> Vec<Vec<u32>> {
    let mut starts = vec![false; MAX_PROCESSORS as usize + 1];
    for number in 0..wiring.router_count() as u32 {
        if !mark_boundaries(topology, wiring, number, &mut starts) {
            // A mask with holes has no aligned range, so make every number a separate class.
            starts.fill(true);
            break;
        }
    }
    let mut by_number: Vec<(u16, u32)> = topology
        .processors
        .iter()
        .zip(0..)
        .map(|(p, i)| (p.number, i))
        .collect();
    by_number.sort_unstable();
    let mut classes: Vec<Vec<u32>> = Vec::new();
    let mut last = None;
    for (number, index) in by_number {
        let from = last.map_or(0, |last: u16| usize::from(last) + 1);
        let cut = last.is_none() || starts[from..=usize::from(number)].contains(&true);
        match classes.last_mut().filter(|_| !cut) {
            Some(class) => class.push(index),
            None => classes.push(vec![index]),
        }
        last = Some(number);
    }
    classes
}

/// Marks the processor numbers at which the decisions of a router change. Returns false if they
/// may change elsewhere too.
fn mark_boundaries(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    number: u32,
    starts: &mut [bool],
) -> bool {
    let registers: &RouterRegisters = &wiring.router(topology, number).registers;
    let entries = registers
        .table
        .iter()
        .filter(|e| e.ports != 0)
        .map(|e| e.subtree);
    for subtree in entries.chain([registers.root_detect]) {
        if !is_aligned(subtree) {
            return false;
        }
        let (first, last) = range_of_subtree(subtree);
        starts[usize::from(first)] = true;
        starts[usize::from(last) + 1] = true;
    }
    if registers.down_mask & registers.down_mask.wrapping_add(1) != 0 {
        return false;
    }
    let chip = wiring.chip_of(number);
    // `Search::arrivals` checks ports to processors one by one.
    let leads_to = |destination: u16| {
        let port = registers.down_port(destination)?;
        match wiring.neighbour(chip, port)? {
            Neighbour::Router(router, _) => Some(router),
            Neighbour::Processor(_) => None,
        }
    };
    let (first, last) = range_of_subtree(registers.root_detect);
    let mut before = None;
    for destination in (first..=last).step_by(1 << registers.down_shift.min(15)) {
        let now = leads_to(destination);
        if before.is_some_and(|before| before != now) {
            starts[usize::from(destination)] = true;
        }
        before = Some(now);
    }
    true
}

/// Identifies a failure, because a router fails for many destinations for the same reason.
type FailureKey = (u32, u8);

struct Failure {
    failure: RouteFailure,
    destination: u16,
    /// Link ends along an example path.
    way: Vec<String>,
    entry: Option<Location>,
    classes: usize,
}

struct Search<'t> {
    topology: &'t FoldedClos,
    wiring: &'t ClosWiring,
    up: Vec<u64>,
    /// Registers per router, indexed because there are a hundred million lookups.
    registers: Vec<&'t RouterRegisters>,
    neighbours: Vec<[Option<Neighbour>; PORTS]>,
    round: u32,
    /// The round in which each router was visited last.
    seen: Vec<u32>,
    /// The ports on which packets arrived at each router.
    arrived: Vec<u64>,
    /// The first router that sent a packet to each router, and its port.
    parent: Vec<Option<(u32, u8)>>,
    waits_for: Vec<[u64; PORTS]>,
    /// Input and output ports of each router that were merged last into `waits_for`. Most
    /// destinations have the same, and are skipped.
    taken_in: Vec<(u64, u64)>,
    failures: BTreeMap<FailureKey, Failure>,
    /// Visits of packets to routers, plus the ports by which they may leave.
    steps: u64,
}

impl<'t> Search<'t> {
    fn new(topology: &'t FoldedClos, wiring: &'t ClosWiring) -> Self {
        let count = wiring.router_count();
        let routers = 0..count as u32;
        let up = |router| wiring.ports_of_kind(topology, router, PortKind::Up).bits();
        let registers = |router| &wiring.router(topology, router).registers;
        let neighbours = |router| {
            let chip = wiring.chip_of(router);
            core::array::from_fn(|port| wiring.neighbour(chip, port as u8))
        };
        Self {
            topology,
            wiring,
            up: routers.clone().map(up).collect(),
            registers: routers.clone().map(registers).collect(),
            neighbours: routers.map(neighbours).collect(),
            round: 0,
            seen: vec![0; count],
            arrived: vec![0; count],
            parent: vec![None; count],
            waits_for: vec![[0; PORTS]; count],
            taken_in: vec![(0, 0); count],
            failures: BTreeMap::new(),
            steps: 0,
        }
    }

    /// Routers with attached processors in a slice, and the ports of those processors.
    fn seeds(&self, slice: u8) -> Vec<(u32, u64)> {
        let mut seeds: BTreeMap<u32, u64> = BTreeMap::new();
        for p in 0..self.topology.processors.len() as u32 {
            if let Some((router, port)) = self.wiring.injection(self.topology, p, slice) {
                *seeds.entry(router).or_default() |= 1 << port;
            }
        }
        seeds.into_iter().collect()
    }

    fn run(&mut self, seeds: &[(u32, u64)], class: &[u32]) {
        self.round += 1;
        let destination = self.topology.processors[class[0] as usize].number;
        let mut queue: Vec<(u32, u64, bool)> = Vec::with_capacity(self.seen.len());
        for &(router, ports) in seeds {
            self.seen[router as usize] = self.round;
            self.arrived[router as usize] = ports;
            self.parent[router as usize] = None;
            queue.push((router, 0, false));
        }
        let mut next = 0;
        while next < queue.len() {
            let router = queue[next].0;
            let decision = step(self.registers[router as usize], destination);
            let (out, down) = match decision {
                Step::Down(_) => (self.down_ports(router, class), true),
                Step::Up(_, ports) => (ports, false),
                Step::Nowhere => {
                    self.fail(router, RouteFailure::NoEntry(router), destination);
                    (PortSet::EMPTY, true)
                }
            };
            queue[next] = (router, out.bits(), down);
            self.steps += 1 + u64::from(out.len());
            let allowed = self.registers[router as usize].exit_mask.bits();
            for port in PortSet::from_bits(out.bits() & !allowed).iter() {
                self.fail(router, RouteFailure::Exit(router, port), destination);
            }
            for port in PortSet::from_bits(out.bits() & allowed).iter() {
                self.follow(router, port, destination, down, &mut queue);
            }
            next += 1;
        }
        for (router, out, down) in queue {
            let inputs = self.arrived[router as usize];
            if !down && inputs & self.up[router as usize] != 0 {
                self.fail(router, RouteFailure::NotDown(router), destination);
            }
            if core::mem::replace(&mut self.taken_in[router as usize], (inputs, out))
                == (inputs, out)
            {
                continue;
            }
            for input in PortSet::from_bits(inputs).iter() {
                self.waits_for[router as usize][usize::from(input)] |= out;
            }
        }
    }

    fn follow(
        &mut self,
        router: u32,
        port: u8,
        destination: u16,
        down: bool,
        queue: &mut Vec<(u32, u64, bool)>,
    ) {
        match self.neighbours[router as usize][usize::from(port)] {
            None => self.fail(router, RouteFailure::NoLink(router, port), destination),
            // Skip ports that `down_ports` has checked.
            Some(Neighbour::Processor(_)) if down => {}
            Some(Neighbour::Processor(p)) => {
                self.fail(
                    router,
                    RouteFailure::WrongProcessor(router, port, p),
                    destination,
                );
            }
            Some(Neighbour::Router(peer, input)) => {
                let at = peer as usize;
                if self.seen[at] != self.round {
                    self.seen[at] = self.round;
                    self.arrived[at] = 0;
                    self.parent[at] = Some((router, port));
                    queue.push((peer, 0, false));
                }
                self.arrived[at] |= 1 << input;
            }
        }
    }

    /// The down ports of all processors of a class. Each must be correct if it is the last hop.
    fn down_ports(&mut self, router: u32, class: &[u32]) -> PortSet {
        let registers = self.registers[router as usize];
        let mut ports = PortSet::EMPTY;
        for &processor in class {
            let number = self.topology.processors[processor as usize].number;
            let Some(port) = registers.down_port(number) else {
                self.fail(router, RouteFailure::NoDownPort(router), number);
                continue;
            };
            match self.neighbours[router as usize][usize::from(port)] {
                Some(Neighbour::Processor(p)) if p != processor => {
                    self.fail(
                        router,
                        RouteFailure::WrongProcessor(router, port, p),
                        number,
                    );
                }
                _ => ports = ports.with(port),
            }
        }
        ports
    }

    fn fail(&mut self, router: u32, failure: RouteFailure, destination: u16) {
        let reason = match failure {
            RouteFailure::NoEntry(_) => 0,
            RouteFailure::NoDownPort(_) => 1,
            RouteFailure::NoLink(..) => 2,
            RouteFailure::Exit(..) => 3,
            RouteFailure::NotDown(_) => 4,
            RouteFailure::WrongProcessor(..) => 5,
            RouteFailure::NoInjection | RouteFailure::Loop => 6,
        };
        if let Some(known) = self.failures.get_mut(&(router, reason)) {
            known.classes += 1;
            return;
        }
        let mut way = Vec::new();
        let mut entry = None;
        let mut at = router;
        while let Some((from, port)) = self.parent[at as usize] {
            way.push(self.topology.port_name(self.wiring, from, port));
            if let Step::Up(index, _) = step(
                &self.wiring.router(self.topology, from).registers,
                destination,
            ) {
                let (chip, router) = self.wiring.place_of(from);
                entry = entry.or(Some(Location::Entry(chip, router, index as u8)));
            }
            at = from;
        }
        way.reverse();
        let failure = Failure {
            failure,
            destination,
            way,
            entry,
            classes: 1,
        };
        self.failures.insert((router, reason), failure);
    }

    fn mistake(&self, (router, _): FailureKey, failure: &Failure) -> Mistake {
        let name = &self.wiring.router(self.topology, router).name;
        let (chip, index) = self.wiring.place_of(router);
        let destination = failure.destination;
        let (kind, why, help) = match failure.failure {
            RouteFailure::NoEntry(_) => (
                K::Unreachable,
                format!("{name} has neither a root-detect match nor a table entry for it"),
                "add links to a router with the processor below it, or add a table entry",
            ),
            RouteFailure::NoDownPort(_) => (
                K::Unreachable,
                format!("{name} is above it but has no link down to it"),
                "restore the link, or steer packets for this processor around this router with a \
                 table entry of a higher index in the preceding routers (BlackWidow sec. 7.7)",
            ),
            RouteFailure::NoLink(_, port) => (
                K::Unreachable,
                format!("port {port} of {name} has no link"),
                "connect the port, or change the registers that send packets there",
            ),
            RouteFailure::Exit(_, port) => (
                K::Unreachable,
                format!("the exit mask of {name} forbids port {port}"),
                "add the port to the exit mask",
            ),
            RouteFailure::WrongProcessor(_, port, other) => (
                K::Unreachable,
                format!(
                    "port {port} of {name} leads to {}",
                    self.topology.processors[other as usize].name
                ),
                "correct the port map, down shift or down mask of the router",
            ),
            _ => (
                K::UpDownViolation,
                format!("{name} would send them up or over again after they came from above"),
                "the router above sends packets down to the wrong router: correct the port map \
                 there, or root detect here (BlackWidow sec. 7.7)",
            ),
        };
        let way = match failure.way.is_empty() {
            true => String::new(),
            false => format!(" via {}", failure.way.join(", ")),
        };
        let more = match failure.classes {
            1 => String::new(),
            2 => String::from(" (nor do packets to one other destination)"),
            n => format!(" (nor do packets to {} other destinations)", n - 1),
        };
        let message = format!("packets to processor {destination} do not arrive{way}: {why}{more}");
        let mut mistake = kind
            .at(Location::Router(chip, index), message)
            .label("packets reach this router")
            .help(help);
        if let Some(entry) = &failure.entry {
            mistake = mistake.other(entry.clone(), "sent by the table of this router");
        }
        mistake
    }
}
