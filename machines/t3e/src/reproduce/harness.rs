//! Routers of a torus connected by links, simulated cycle by cycle, and processors that send on
//! request. Everything is visible, including the pins of every port.
//!
//! Crossbars, buffers and credits are those of all simulated networks; only the transport of flits
//! and credits on a link is specific to this module. A flit takes [`LINK_CYCLES`] from a crossbar
//! to the pins of the next router, and [`PROCESSOR_CYCLES`] to and from a processor. A credit takes
//! the same time.

mod processor;

pub use processor::Stream;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::flit::{Flit, FlitKind, VCS};
use phitwire_framing::t3e::header::Command;

use self::processor::Processor;
use crate::link::{Depths, IdealEnd};
use crate::route::Shape;
use crate::router::{
    Crossbar, FlitPorts, LINK_CYCLES, PORTS, PROCESSOR, PROCESSOR_CYCLES, RouterRegisters,
};
use phitwire::kit::bits;

/// Maximum number of cycles in flight, plus one: a power of two.
const WHEEL: usize = 8;
const _: () = assert!(LINK_CYCLES < WHEEL as u64);
const _: () = assert!(PROCESSOR_CYCLES < WHEEL as u64);

/// Time limit for a network to drain.
const PATIENCE_CYCLES: u64 = 1_000_000;

/// Times of a packet at the pins of routers and processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Cycle in which the first flit reached the source's router.
    pub entered: u64,
    /// Cycle in which the first flit reached the destination processor.
    pub first: u64,
    /// Cycle in which the last flit reached that processor.
    pub last: u64,
    /// Number of flits that reached that processor.
    pub flits: u64,
}

impl Times {
    /// Cycles from the input of the source's router to the processor.
    pub fn one_way(&self) -> u64 {
        self.first - self.entered
    }
}

/// A request, and its response if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    pub from: u32,
    pub to: u32,
    pub command: Command,
    pub request: Times,
    /// Times of the response; zeros until it arrives.
    pub response: Times,
}

/// The header of a packet at the pins of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    pub cycle: u64,
    /// The router, or the router of the processor.
    pub router: u32,
    /// The input port; `None` at the processor.
    pub port: Option<usize>,
}

/// One end of a link, as a destination.
#[derive(Clone, Copy, Debug)]
enum EndOfLink {
    Router(u32, u8),
    Processor(u32),
}

#[derive(Clone, Copy, Debug)]
enum WireItem {
    Flit(Flit),
    Credit(u8),
}

#[derive(Debug)]
struct Router {
    crossbar: Crossbar,
    ends: [IdealEnd; PORTS],
    peers: [Option<EndOfLink>; PORTS],
    /// Ports with credits to return.
    owing: u8,
    is_active: bool,
    packets: [[u64; VCS]; PORTS],
}

#[derive(Debug)]
pub struct Harness {
    routers: Vec<Router>,
    processors: Vec<Processor>,
    /// Flits and credits in flight, by arrival cycle modulo [`WHEEL`].
    arriving: [Vec<(EndOfLink, WireItem)>; WHEEL],
    under_way: usize,
    /// Routers and processors with work.
    active: [Vec<u32>; 2],
    cycle: u64,
    transfers: Vec<Transfer>,
    /// Passages of headers, if recorded.
    passages: Option<Vec<Passage>>,
}

struct Wires<'a> {
    ends: &'a mut [IdealEnd; PORTS],
    owing: &'a mut u8,
    packets: &'a mut [[u64; VCS]; PORTS],
    out: [Option<Flit>; PORTS],
}

impl FlitPorts for Wires<'_> {
    fn credits(&self, port: usize, vc: usize) -> u32 {
        self.ends[port].credits(vc)
    }

    fn push(&mut self, port: usize, vc: usize, flit: Flit) {
        self.ends[port].send(vc);
        self.packets[port][vc] += u64::from(flit.control.is_head());
        let before = self.out[port].replace(flit);
        assert!(before.is_none(), "an output sends one flit per cycle");
    }

    fn front(&self, port: usize, vc: usize) -> u64 {
        self.ends[port].front(vc)
    }

    fn pop(&mut self, port: usize, vc: usize) -> u64 {
        *self.owing |= 1 << port;
        self.ends[port].pop(vc)
    }
}

/// Number of cycles from one end of a port's link to the other.
const fn link_cycles(port: usize) -> u64 {
    match port {
        PROCESSOR => PROCESSOR_CYCLES,
        _ => LINK_CYCLES,
    }
}

impl Harness {
    /// The idle routers of a torus with their links. Processor n belongs to node n.
    ///
    /// # Panics
    /// If the numbers of registers and nodes differ.
    pub fn new(shape: &Shape, registers: Vec<RouterRegisters>) -> Self {
        assert_eq!(
            registers.len(),
            shape.nodes() as usize,
            "one set of registers per node"
        );
        let router = |(node, registers): (u32, RouterRegisters)| {
            let RouterRegisters {
                route,
                table,
                processor,
                ..
            } = registers;
            let mut peers = [None; PORTS];
            for direction in Direction::ALL {
                let to = shape.neighbour(node, direction);
                let port = direction.opposite().index() as u8;
                peers[direction.index()] = to.map(|to| EndOfLink::Router(to, port));
            }
            peers[PROCESSOR] = Some(EndOfLink::Processor(node));
            let depths = |port| match port {
                PROCESSOR => Depths::PROCESSOR,
                _ => Depths::PAPER,
            };
            Router {
                crossbar: Crossbar::new(route, table, processor),
                ends: core::array::from_fn(|port| IdealEnd::new(depths(port))),
                peers,
                owing: 0,
                is_active: false,
                packets: [[0; VCS]; PORTS],
            }
        };
        Self {
            processors: (0..shape.nodes()).map(|_| Processor::new()).collect(),
            routers: (0..).zip(registers).map(router).collect(),
            arriving: Default::default(),
            under_way: 0,
            active: [Vec::new(), Vec::new()],
            cycle: 0,
            transfers: Vec::new(),
            passages: None,
        }
    }

    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// All transfers since the last [`forget`](Self::forget), by number.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Forgets all transfers; none may be in progress.
    pub fn forget(&mut self) {
        self.transfers.clear();
    }

    /// Starts recording passages, and returns those recorded so far.
    pub fn watch(&mut self) -> Vec<Passage> {
        self.passages.replace(Vec::new()).unwrap_or_default()
    }

    /// Number of packets that have left a router by a port, per channel.
    ///
    /// # Panics
    /// If the router or port does not exist.
    pub fn packets(&self, router: u32, port: usize) -> [u64; VCS] {
        self.routers[router as usize].packets[port]
    }

    fn wake_router(&mut self, router: u32) {
        let state = &mut self.routers[router as usize];
        if !core::mem::replace(&mut state.is_active, true) {
            state.crossbar.rest_until(self.cycle);
            self.active[0].push(router);
        }
    }

    /// Runs until there is no work left. Returns whether that took less than the limit.
    pub fn run_to_rest(&mut self) -> bool {
        let limit = self.cycle + PATIENCE_CYCLES;
        while self.under_way > 0 || self.active.iter().any(|active| !active.is_empty()) {
            if self.cycle == limit {
                return false;
            }
            self.step();
        }
        true
    }

    pub fn step(&mut self) {
        let slot = self.cycle as usize % WHEEL;
        let mut arriving = core::mem::take(&mut self.arriving[slot]);
        self.under_way -= arriving.len();
        for (destination, what) in arriving.drain(..) {
            match destination {
                EndOfLink::Router(router, port) => self.at_router(router, port.into(), what),
                EndOfLink::Processor(processor) => self.at_processor(processor, what),
            }
        }
        self.arriving[slot] = arriving;
        let mut active = core::mem::take(&mut self.active);
        active[1].retain(|&processor| self.run_processor(processor));
        active[0].retain(|&router| self.run_router(router));
        self.active = active;
        self.cycle += 1;
    }

    fn travel(&mut self, to: EndOfLink, what: WireItem, cycles: u64) {
        let slot = (self.cycle + cycles) as usize % WHEEL;
        self.arriving[slot].push((to, what));
        self.under_way += 1;
    }

    fn at_router(&mut self, number: u32, port: usize, what: WireItem) {
        self.wake_router(number);
        let cycle = self.cycle;
        let router = &mut self.routers[number as usize];
        let flit = match what {
            WireItem::Credit(vc) => {
                router.ends[port].give(vc.into());
                return router.crossbar.wake();
            }
            WireItem::Flit(flit) => flit,
        };
        let FlitKind::Data(vc) = flit.control.kind() else {
            return;
        };
        assert!(
            router.ends[port].receive(vc.into(), flit),
            "the flit had a credit"
        );
        router.crossbar.announce(cycle, port, vc.into());
        if flit.control.is_head() {
            self.passes(number, Some(port));
        }
    }

    fn passes(&mut self, router: u32, port: Option<usize>) {
        let cycle = self.cycle;
        if let Some(passages) = &mut self.passages {
            passages.push(Passage {
                cycle,
                router,
                port,
            });
        }
    }

    /// Runs a cycle of a router. Returns whether it has more work without further input.
    fn run_router(&mut self, number: u32) -> bool {
        let router = &mut self.routers[number as usize];
        let Router {
            crossbar,
            ends,
            owing,
            packets,
            ..
        } = router;
        let mut wires = Wires {
            ends,
            owing,
            packets,
            out: [None; PORTS],
        };
        crossbar.run_until(self.cycle + 1, &mut wires);
        let out = wires.out;
        let peers = router.peers;
        let mut credits = [None; PORTS];
        for port in bits(u64::from(router.owing)) {
            credits[port] = router.ends[port].next_credit();
            router.owing &= !(u8::from(!router.ends[port].owes()) << port);
        }
        router.is_active = router.crossbar.next_cycle().is_some() || router.owing != 0;
        let is_active = router.is_active;
        for port in 0..PORTS {
            let flit = out[port].map(WireItem::Flit);
            let credit = credits[port].map(|vc| WireItem::Credit(vc as u8));
            for what in [flit, credit].into_iter().flatten() {
                let peer = peers[port].expect("a port with credits or flits has a link");
                self.travel(peer, what, link_cycles(port));
            }
        }
        is_active
    }
}
