//! Routers of a torus joined by links, cycle by cycle, and processors that send what they are told
//! to: all of it can be seen, the pins of every port included.
//!
//! Crossbars, buffers and credits are those of every other network in virtual time; only what
//! carries flits and credits from one end of a link to the other is this module's own. A flit takes
//! [`LINK_CYCLES`] from a crossbar to the pins of the next router, and [`PROCESSOR_CYCLES`] to and
//! from a processor; a credit takes as long.

use std::collections::VecDeque;

use crate::kit::bits;
use crate::machine::t3e::format::{
    Command, Flit, FlitKind, Header, Name, PacketBuf, Request, VCS, vc,
};
use crate::machine::t3e::link::{Credits, Depths, IdealEnd};
use crate::machine::t3e::route::{Direction, Shape};
use crate::machine::t3e::router::{
    Crossbar, FlitPorts, LINK_CYCLES, PORTS, PROCESSOR, PROCESSOR_CYCLES, RouterRegisters,
};

/// Cycles that something may be under way, and one more: a power of two.
const WHEEL: usize = 8;
const _: () = assert!(LINK_CYCLES < WHEEL as u64);
const _: () = assert!(PROCESSOR_CYCLES < WHEEL as u64);

/// Cycles after which a network that should have come to rest is given up.
const PATIENCE_CYCLES: u64 = 1_000_000;

/// When a packet was at the pins of routers and processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Its first flit came to the router of its source.
    pub entered: u64,
    /// Its first flit came to the processor that it is for.
    pub first: u64,
    /// Its last flit came there.
    pub last: u64,
    /// How many of them did.
    pub flits: u64,
}

impl Times {
    /// Cycles from the input of the source's router to the processor.
    pub fn one_way(&self) -> u64 {
        self.first - self.entered
    }
}

/// A request and its response, if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The processor that asks.
    pub from: u32,
    /// The one that it asks.
    pub to: u32,
    /// What for.
    pub command: Command,
    /// The request's.
    pub request: Times,
    /// The response's: zeros until it comes.
    pub response: Times,
}

/// The header of a packet at the pins of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When.
    pub cycle: u64,
    /// The router; the processor's if the packet has left it for the processor.
    pub router: u32,
    /// The port that it came in by; `None` at the processor.
    pub port: Option<usize>,
}

/// Requests without an end, as fast as they can be sent.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// To whom.
    pub to: u32,
    /// What is asked for.
    pub command: Command,
    /// Requests without a response, at most.
    pub outstanding: u32,
}

/// One end of a link, as what travels finds it.
#[derive(Clone, Copy, Debug)]
enum Place {
    Router(u32, u8),
    Processor(u32),
}

#[derive(Clone, Copy, Debug)]
enum Travels {
    Flit(Flit),
    Credit(u8),
}

#[derive(Debug)]
struct Router {
    crossbar: Crossbar,
    ends: [IdealEnd; PORTS],
    peers: [Option<Place>; PORTS],
    /// Ports whose places have become free and whose other ends have not been told.
    owing: u8,
    is_active: bool,
    /// Packets that left, by output and channel.
    packets: [[u64; VCS]; PORTS],
}

/// A packet to be sent.
#[derive(Debug)]
struct Waiting {
    /// The first cycle in which it may be.
    due: u64,
    /// The number of its transfer.
    transfer: usize,
    packet: PacketBuf,
}

/// A packet that comes in.
#[derive(Clone, Copy, Debug)]
struct Coming {
    header: Header,
    first: u64,
    flits: usize,
    /// Of its transfer, once it is known.
    name: u32,
}

#[derive(Debug)]
struct Processor {
    credits: Credits,
    /// Requests and responses to be sent.
    waiting: [VecDeque<Waiting>; 2],
    /// What is being sent, and how many of its flits have been.
    sending: Option<(PacketBuf, usize)>,
    /// Whether the next packet is rather a response.
    turn: usize,
    /// The packets that come in, by channel.
    coming: [Option<Coming>; VCS],
    stream: Option<Stream>,
    outstanding: u32,
    is_active: bool,
}

/// A network at work.
#[derive(Debug)]
pub struct Harness {
    routers: Vec<Router>,
    processors: Vec<Processor>,
    /// What arrives, by cycle modulo [`WHEEL`].
    arriving: [Vec<(Place, Travels)>; WHEEL],
    under_way: usize,
    /// Routers and processors with something to do.
    active: [Vec<u32>; 2],
    cycle: u64,
    transfers: Vec<Transfer>,
    /// Passages of headers, if somebody wants to know.
    passages: Option<Vec<Passage>>,
}

/// The links of a router in one cycle.
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
        assert!(before.is_none(), "an output sends a flit in a cycle");
    }

    fn front(&self, port: usize, vc: usize) -> u64 {
        self.ends[port].buffer().front(vc)
    }

    fn pop(&mut self, port: usize, vc: usize) -> u64 {
        *self.owing |= 1 << port;
        self.ends[port].pop(vc)
    }
}

/// Cycles from one end of the link of a port to the other.
const fn link_cycles(port: usize) -> u64 {
    match port {
        PROCESSOR => PROCESSOR_CYCLES,
        _ => LINK_CYCLES,
    }
}

/// The command that answers another one.
const fn answer(command: Command) -> Command {
    match command {
        Command::Get1 => Command::Get1Data,
        Command::Get8 => Command::Get8Data,
        _ => Command::Done,
    }
}

impl Harness {
    /// The routers of a torus with their links, at rest. Processor n is that of node n.
    ///
    /// # Panics
    /// If there are not as many registers as nodes.
    pub fn new(shape: &Shape, registers: Vec<RouterRegisters>) -> Self {
        assert_eq!(registers.len(), shape.nodes() as usize, "one for each node");
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
                peers[direction.index()] = to.map(|to| Place::Router(to, port));
            }
            peers[PROCESSOR] = Some(Place::Processor(node));
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
        let processor = |_| Processor {
            credits: Credits::new(Depths::PROCESSOR.all()),
            waiting: [VecDeque::new(), VecDeque::new()],
            sending: None,
            turn: 0,
            coming: [None; VCS],
            stream: None,
            outstanding: 0,
            is_active: false,
        };
        Self {
            processors: (0..shape.nodes()).map(processor).collect(),
            routers: (0..).zip(registers).map(router).collect(),
            arriving: Default::default(),
            under_way: 0,
            active: [Vec::new(), Vec::new()],
            cycle: 0,
            transfers: Vec::new(),
            passages: None,
        }
    }

    /// The next cycle.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// All transfers since the last [`forget`](Self::forget), by number.
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Forgets transfers, of which none is under way.
    pub fn forget(&mut self) {
        self.transfers.clear();
    }

    /// Passages from now on, and those so far.
    pub fn watch(&mut self) -> Vec<Passage> {
        self.passages.replace(Vec::new()).unwrap_or_default()
    }

    /// Packets that have left a router by a port on each channel.
    ///
    /// # Panics
    /// If there is none.
    pub fn packets(&self, router: u32, port: usize) -> [u64; VCS] {
        self.routers[router as usize].packets[port]
    }

    /// Has one processor ask another for something, as soon as it can.
    ///
    /// # Panics
    /// If there is no such processor.
    pub fn ask(&mut self, from: u32, to: u32, command: Command, ordered: bool) {
        let request = Request {
            address: 0,
            bytes: 8 * command.words().max(1) as u8,
            ordered,
            name: Name::new(self.transfers.len() as u32),
        };
        assert!(
            self.transfers.len() < 1 << Name::BITS,
            "names are told apart"
        );
        let ends = (from as u16, to as u16);
        let data = [0; 8];
        let waiting = Waiting {
            due: self.cycle,
            transfer: self.transfers.len(),
            packet: PacketBuf::request(command, ends, &request, &data[..command.words()]),
        };
        self.transfers.push(Transfer {
            from,
            to,
            command,
            request: Times::default(),
            response: Times::default(),
        });
        self.post(from, 0, waiting);
    }

    /// Has a processor send requests without an end.
    pub fn stream(&mut self, from: u32, stream: Stream) {
        self.processors[from as usize].stream = Some(stream);
        self.wake_processor(from);
    }

    fn post(&mut self, processor: u32, class: usize, waiting: Waiting) {
        self.processors[processor as usize].waiting[class].push_back(waiting);
        self.wake_processor(processor);
    }

    fn wake_processor(&mut self, processor: u32) {
        let is_active = &mut self.processors[processor as usize].is_active;
        if !core::mem::replace(is_active, true) {
            self.active[1].push(processor);
        }
    }

    fn wake_router(&mut self, router: u32) {
        let state = &mut self.routers[router as usize];
        if !core::mem::replace(&mut state.is_active, true) {
            state.crossbar.rest_until(self.cycle);
            self.active[0].push(router);
        }
    }

    /// Runs until nothing is left to do. Whether that was soon enough.
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

    /// Runs a cycle.
    pub fn step(&mut self) {
        let slot = self.cycle as usize % WHEEL;
        let mut arriving = core::mem::take(&mut self.arriving[slot]);
        self.under_way -= arriving.len();
        for (place, what) in arriving.drain(..) {
            match place {
                Place::Router(router, port) => self.at_router(router, port.into(), what),
                Place::Processor(processor) => self.at_processor(processor, what),
            }
        }
        self.arriving[slot] = arriving;
        let mut active = core::mem::take(&mut self.active);
        active[1].retain(|&processor| self.run_processor(processor));
        active[0].retain(|&router| self.run_router(router));
        self.active = active;
        self.cycle += 1;
    }

    fn travel(&mut self, to: Place, what: Travels, cycles: u64) {
        let slot = (self.cycle + cycles) as usize % WHEEL;
        self.arriving[slot].push((to, what));
        self.under_way += 1;
    }

    fn at_router(&mut self, number: u32, port: usize, what: Travels) {
        self.wake_router(number);
        let cycle = self.cycle;
        let router = &mut self.routers[number as usize];
        let flit = match what {
            Travels::Credit(vc) => {
                router.ends[port].give(vc.into());
                return router.crossbar.wake();
            }
            Travels::Flit(flit) => flit,
        };
        let FlitKind::Data(vc) = flit.control.kind() else {
            return;
        };
        assert!(
            router.ends[port].receive(vc.into(), flit),
            "there was a credit"
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

    fn at_processor(&mut self, number: u32, what: Travels) {
        let flit = match what {
            Travels::Credit(vc) => {
                return self.processors[number as usize].credits.give(vc.into());
            }
            Travels::Flit(flit) => flit,
        };
        let FlitKind::Data(vc) = flit.control.kind() else {
            return;
        };
        self.travel(
            Place::Router(number, PROCESSOR as u8),
            Travels::Credit(vc),
            PROCESSOR_CYCLES,
        );
        if flit.control.is_head() {
            self.passes(number, None);
        }
        let coming = &mut self.processors[number as usize].coming[usize::from(vc)];
        if let Some(packet) = take(coming, flit, self.cycle) {
            self.arrived(number, packet);
        }
    }

    /// A packet has arrived whole.
    fn arrived(&mut self, processor: u32, packet: Coming) {
        let cycle = self.cycle;
        let transfer = &mut self.transfers[packet.name as usize];
        let is_response = packet.header.command.is_response();
        let (to, times) = match is_response {
            false => (transfer.to, &mut transfer.request),
            true => (transfer.from, &mut transfer.response),
        };
        assert!(
            to == processor && times.flits == 0,
            "once, and where it should"
        );
        times.first = packet.first;
        times.last = cycle;
        times.flits = packet.flits as u64;
        if is_response {
            let asker = &mut self.processors[processor as usize];
            asker.outstanding = asker.outstanding.saturating_sub(1);
            if asker.stream.is_some() {
                self.wake_processor(processor);
            }
        } else {
            let command = answer(transfer.command);
            let data = [0; 8];
            let data = &data[..command.words()];
            let to = transfer.from;
            let name = Name::new(packet.name);
            let bytes = 8 * data.len() as u8;
            let waiting = Waiting {
                due: cycle + 1,
                transfer: packet.name as usize,
                packet: PacketBuf::response(command, to as u16, name, bytes, data),
            };
            self.post(processor, 1, waiting);
        }
    }

    /// A processor's cycle. Whether it has more to do without being told.
    fn run_processor(&mut self, number: u32) -> bool {
        let processor = &mut self.processors[number as usize];
        if let Some(stream) = processor.stream
            && processor.waiting[0].is_empty()
            && processor.outstanding < stream.outstanding
        {
            processor.outstanding += 1;
            self.ask(number, stream.to, stream.command, false);
        }
        let cycle = self.cycle;
        let processor = &mut self.processors[number as usize];
        if processor.sending.is_none()
            && let Some(class) = processor.next(cycle)
            && let Some(next) = processor.waiting[class].pop_front()
        {
            processor.turn = 1 - class;
            processor.sending = Some((next.packet, 0));
            let transfer = &mut self.transfers[next.transfer];
            let times = match class {
                0 => &mut transfer.request,
                _ => &mut transfer.response,
            };
            times.entered = cycle + PROCESSOR_CYCLES;
        }
        if let Some(flit) = processor.next_flit() {
            let to = Place::Router(number, PROCESSOR as u8);
            self.travel(to, Travels::Flit(flit), PROCESSOR_CYCLES);
        }
        let processor = &mut self.processors[number as usize];
        let waits = processor.waiting.iter().any(|waiting| !waiting.is_empty());
        let may_ask = |stream: Stream| processor.outstanding < stream.outstanding;
        processor.is_active =
            waits || processor.sending.is_some() || processor.stream.is_some_and(may_ask);
        processor.is_active
    }

    /// A router's cycle. Whether it has more to do without being told.
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
            let flit = out[port].map(Travels::Flit);
            let credit = credits[port].map(|vc| Travels::Credit(vc as u8));
            for what in [flit, credit].into_iter().flatten() {
                let peer = peers[port].expect("what has credits, or came, has a link");
                self.travel(peer, what, link_cycles(port));
            }
        }
        is_active
    }
}

impl Processor {
    /// Whether a request (0) or a response (1) is to be sent next.
    fn next(&self, cycle: u64) -> Option<usize> {
        let may = |class: usize| {
            let vc = vc::of(class == 1, 0);
            let front = self.waiting[class].front();
            self.credits.left(vc) > 0 && front.is_some_and(|waiting| waiting.due <= cycle)
        };
        [self.turn, 1 - self.turn]
            .into_iter()
            .find(|&class| may(class))
    }

    /// The flit that is sent in this cycle.
    fn next_flit(&mut self) -> Option<Flit> {
        let (packet, sent) = self.sending.as_mut()?;
        let vc = vc::of(packet.is_response(), 0);
        if self.credits.left(vc) == 0 {
            return None;
        }
        self.credits.take(vc);
        let flit = Flit::data(packet.flits()[*sent], vc, *sent == 0);
        *sent += 1;
        if *sent == packet.flits().len() {
            self.sending = None;
        }
        Some(flit)
    }
}

/// Takes in a flit of a channel. The packet that it ends.
fn take(coming: &mut Option<Coming>, flit: Flit, cycle: u64) -> Option<Coming> {
    if flit.control.is_head() {
        let (header, _) = Header::parse(flit.word).ok()?;
        let begun = Coming {
            header,
            first: cycle,
            flits: 0,
            name: u32::from(header.id) | u32::from(header.origin) << Name::ID_BITS,
        };
        assert!(coming.replace(begun).is_none(), "packets do not mix");
    }
    let packet = coming.as_mut()?;
    packet.flits += 1;
    // The header of a request has the low bits of its name only.
    if packet.flits == 2 && !packet.header.command.is_response() {
        packet.name = Request::parse(&packet.header, flit.word).name.bits();
    }
    let is_whole = packet.flits == packet.header.command.flits();
    if is_whole { coming.take() } else { None }
}
