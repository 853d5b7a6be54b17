//! The crossbar and its arbiter, cycle by cycle (T3E sec. 7).

mod coming;
mod counters;
mod cut;
mod reroute;
mod stage;
mod straight;
mod watched;
mod whole;

use std::sync::Arc;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::flit::{Flit, VCS, vc};
use phitwire_framing::t3e::header::Header;
use prefetch_index::prefetch_index;

pub use self::counters::CrossbarCounters;
use self::whole::Whole;
use super::arrivals::{Arrivals, Frames, SLOTS};
use super::input::{Front, Input, NONE, Wants};
use super::lookup::LookUpTable;
use super::memory::Memory;
use super::names::{KnownNames, Names};
use super::output::{Output, number};
use super::ports::{FlitPorts, PORTS, PROCESSOR};
use crate::route::{Arrival, Decision, RouteRegisters, decide};
use phitwire::kit::bits;
use phitwire::trace::Watch;

/// Number of cycles from a port's pins, and from the processor's, to the crossbar. Together with
/// [`LINK_CYCLES`](super::LINK_CYCLES) these are six for a turn, and ten at the source, which has
/// the look-up table (T3E table 2).
const STAGES: [u64; PORTS] = [3, 3, 3, 3, 3, 3, 7];
/// Number of inputs: one per port, and one for packets that the router has moved to its memory.
const INPUTS: usize = PORTS + 1;
/// The input for packets from the memory.
const MEMORY: usize = PORTS;
/// Number of cycles without a flit after which nothing will move until a flit arrives: by then
/// every channel of an input has had two turns.
const QUIET_CYCLES: u32 = 2 * VCS as u32 + 2;

/// The crossbar with its inputs and outputs, but without links.
#[derive(Debug)]
pub struct Crossbar {
    /// Routes packets in the network.
    pub registers: RouteRegisters,
    /// Routes packets of the processor.
    pub table: LookUpTable,
    /// The logical "who am I": the processor's number (T3E sec. 2).
    pub processor: u16,
    /// Processor numbers by the positions where paths end.
    names: KnownNames,
    memory: Memory,
    /// Ports with a failed link, one bit each.
    down: u8,
    /// Isolated ports, one bit each.
    cut_off: u8,
    /// Outputs that are down or isolated, one bit each.
    dead: u8,
    /// Whether requests of the processor and packets of the memory are held back.
    quiesced: bool,
    /// Whether decisions about waiting packets may be outdated.
    stale: bool,
    inputs: [Input; INPUTS],
    outputs: [Output; PORTS],
    arrivals: [Arrivals; PORTS],
    frames: [Frames; PORTS],
    /// Ports with frames whose flits have not all entered, one bit each.
    framed: u8,
    /// Ports at which a flit arrives, by cycle, one bit each.
    coming: [u8; SLOTS],
    /// Ports at which a flit leaves the stages, by cycle, one bit each.
    ripening: [u8; SLOTS],
    in_stages: u32,
    /// Inputs with flits that are ready, one bit each.
    ready: u8,
    /// Outputs whose wires may have an owner, one bit each.
    held: u8,
    cycle: u64,
    quiet: u32,
    awake: bool,
    /// State of the packet grain; `None` if flits move singly.
    whole: Option<Box<Whole>>,
    /// Ports that were read or written.
    moved: u64,
    counters: CrossbarCounters,
    /// Set while tracing; records passing packets.
    watch: Option<Box<Watch>>,
}

#[derive(Default)]
struct Cycle {
    /// Outputs whose wires are taken, one bit each.
    used: u8,
    /// Inputs whose flit has passed the crossbar, one bit each.
    won: u8,
    /// Outputs with a channel that can send, one bit each.
    sending: u8,
    /// By output: the channels that can send, one bit each.
    can: [u8; PORTS],
    /// Outputs whose adaptive channel is requested, one bit each.
    adapting: u8,
    /// By output: the requesters of the adaptive channel.
    adaptive: [u64; PORTS],
    /// Inputs that request with a header, one bit each.
    asking: u8,
    /// By input: the channel of that header.
    headers: [u8; INPUTS],
    /// Inputs whose requesting header won only an adaptive channel, one bit each.
    adaptive_only: u8,
    /// Inputs whose arriving header might go straight through, one bit each.
    straight: u8,
    /// By port: the channel of that header.
    straights: [u8; PORTS],
}

impl Crossbar {
    pub fn new(registers: RouteRegisters, table: LookUpTable, processor: u16) -> Self {
        Self {
            registers,
            table,
            processor,
            names: KnownNames::new(Arc::new(Names::default())),
            memory: Memory::default(),
            down: 0,
            cut_off: 0,
            dead: 0,
            quiesced: false,
            stale: false,
            inputs: Default::default(),
            outputs: Default::default(),
            arrivals: Default::default(),
            frames: Default::default(),
            framed: 0,
            coming: [0; SLOTS],
            ripening: [0; SLOTS],
            in_stages: 0,
            ready: 0,
            held: 0,
            cycle: 0,
            quiet: 0,
            awake: false,
            whole: None,
            moved: 0,
            counters: CrossbarCounters::default(),
            watch: None,
        }
    }

    /// Skips to `cycle`, up to which nothing moved.
    #[inline]
    pub fn rest_until(&mut self, cycle: u64) {
        debug_assert!(
            !self.awake || self.cycle >= cycle,
            "the crossbar has no earlier work"
        );
        self.cycle = self.cycle.max(cycle);
    }

    /// Wakes the crossbar after a credit arrived or a link came up.
    #[inline]
    pub fn wake(&mut self) {
        self.quiet = 0;
        self.awake = true;
    }

    pub const fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The next cycle in which a flit can move; `None` until a flit arrives.
    #[inline]
    pub fn next_cycle(&self) -> Option<u64> {
        self.awake.then_some(self.cycle)
    }

    /// Ports that were read or written since the last call, one bit each.
    #[inline]
    pub fn take_moved(&mut self) -> u64 {
        core::mem::take(&mut self.moved)
    }

    pub const fn counters(&self) -> &CrossbarCounters {
        &self.counters
    }

    /// Prefetches the data that every cycle needs.
    #[inline]
    pub fn fetch(&self) {
        for port in 0..PORTS {
            prefetch_index(self.inputs.as_slice(), port);
            prefetch_index(self.outputs.as_slice(), port);
        }
        prefetch_index(self.arrivals.as_slice(), 0);
        prefetch_index(self.coming.as_slice(), 0);
        prefetch_index(core::slice::from_ref(&self.cycle), 0);
        prefetch_index(core::slice::from_ref(&self.counters.flits), 0);
        prefetch_index(core::slice::from_ref(&self.registers), 0);
    }

    /// Number of flits in the inputs that have been announced to the crossbar.
    pub fn flits(&self) -> u64 {
        let held = self.inputs[..PORTS].iter().flat_map(|input| input.held);
        held.map(u64::from).sum()
    }

    /// Runs until nothing can move without new input.
    pub fn run(&mut self, ports: &mut impl FlitPorts) {
        while self.awake {
            self.step(ports);
        }
    }

    /// Runs all cycles before `limit`, skipping those without work.
    #[inline]
    pub fn run_until(&mut self, limit: u64, ports: &mut impl FlitPorts) {
        while self.awake && self.cycle < limit {
            self.step(ports);
        }
        self.cycle = self.cycle.max(limit);
    }

    fn step(&mut self, ports: &mut impl FlitPorts) {
        ports.begin_cycle(self.cycle);
        let before = self.counters.gone_flits();
        if self.stale {
            self.decide_again(ports);
        }
        let mut cycle = Cycle::default();
        self.take_arrivals(&mut cycle, ports);
        if self.ready != 0 {
            self.collect_requests(&mut cycle, ports);
            self.arbitrate(&mut cycle, ports);
        }
        for port in bits(u64::from(cycle.straight)) {
            let goes = self.try_straight(port, &mut cycle, ports);
            if !goes && self.whole.is_some() {
                self.enter_stages(port, ports);
            }
        }
        self.cycle += 1;
        let comes = self.in_stages != 0 || self.framed != 0;
        if self.counters.gone_flits() != before || comes {
            self.quiet = 0;
        } else {
            self.quiet += 1;
            self.awake = self.ready != 0 && self.quiet < QUIET_CYCLES;
        }
    }

    /// Routes a header that has reached the front of a virtual channel.
    fn look_at(&mut self, port: usize, vc: usize, ports: &mut impl FlitPorts) {
        // Responses proceed while quiesced, because requests in flight would never drain otherwise.
        let is_new = port == MEMORY || port == PROCESSOR && vc == vc::REQUEST;
        if self.inputs[port].fronts[vc] != Front::Unknown || self.quiesced && is_new {
            return;
        }
        let word = self.word(port, vc, ports);
        let front = match Header::parse(word) {
            Ok((header, _)) => self.route(port, vc, word, header),
            // Discard the packet, although inputs already reject unreadable headers.
            Err(_) => Front::Discarded { left: 1 },
        };
        self.set_front(port, vc, front);
        if self.watch.is_some() {
            self.watch_front(port, vc, front);
        }
    }

    #[inline]
    fn set_front(&mut self, port: usize, vc: usize, front: Front) {
        if let Front::Waiting(wants) = front {
            self.outputs[usize::from(wants.out())].wanted += 1;
            if let Some(out) = wants.adaptive() {
                self.outputs[usize::from(out)].wanted += 1;
            }
        }
        self.inputs[port].fronts[vc] = front;
    }

    #[inline(always)]
    fn route(&mut self, port: usize, from: usize, word: u64, mut header: Header) -> Front {
        let vc = from;
        let flits = header.command.flits() as u8;
        let mut word = word;
        let arrival = if port >= PROCESSOR {
            let destination = self.destination(port, vc, &header);
            let Some(entry) = self.table.look_up(destination) else {
                self.counters.unroutable_packets += 1;
                return Front::Discarded { left: flits };
            };
            let adaptive = entry.tag.adaptive && header.tag.adaptive;
            header.tag = entry.tag;
            header.tag.adaptive = adaptive;
            if !header.command.is_response() && port == PROCESSOR {
                header.origin = self.processor;
            }
            word = header.emit();
            Err(entry.initial)
        } else {
            if self.cut_off >> port & 1 != 0 {
                self.counters.cut_off_packets += 1;
                return Front::Discarded { left: flits };
            }
            Ok(Arrival {
                direction: Direction::ALL[port].opposite(),
                vc: (vc != vc::ADAPTIVE).then_some(vc as u8 & 1),
            })
        };
        let (out, vc, adaptive) = match decide(&self.registers, &header.tag, arrival) {
            Decision::Deliver => (PROCESSOR as u8, header.vc(0), None),
            Decision::Nowhere => {
                self.counters.misdirected_packets += 1;
                return Front::Discarded { left: flits };
            }
            Decision::Go {
                deterministic: (direction, vc),
                adaptive,
            } => {
                // If both are the same output, use the deterministic channel (T3E sec. 7).
                let adaptive = adaptive.filter(|other| *other != direction);
                let adaptive = adaptive.map(|direction| direction as u8);
                let adaptive = adaptive.filter(|out| self.dead >> out & 1 == 0);
                (direction as u8, header.vc(vc), adaptive)
            }
        };
        self.inputs[port].headers[from] = word;
        let wants = Wants::new(flits, (out, vc as u8), adaptive);
        match self.follows_kept(port, &header) {
            // Without room the front stays unknown, and the next turn tries again.
            true => {
                let kept = self.keep(number(port, from), wants, &header);
                kept.unwrap_or(Front::Unknown)
            }
            false => Front::Waiting(wants),
        }
    }

    fn collect_requests(&mut self, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        for port in bits(u64::from(self.ready)) {
            if !self.has_path(port) {
                continue;
            }
            let Some(vc) = self.inputs[port].choose() else {
                self.ready &= !(1 << port);
                continue;
            };
            if self.inputs[port].fronts[vc] == Front::Unknown {
                self.look_at(port, vc, ports);
            }
            match self.inputs[port].fronts[vc] {
                Front::Flowing { out, vc: to, left } => {
                    let (out, to) = (usize::from(out), usize::from(to));
                    if ports.credits(out, to) > 0 && self.has_time(out) {
                        if left > 1 && self.keeps_wires(out, to, cycle) {
                            self.forward_one(port, vc, cycle, ports);
                            cycle.won |= 1 << port;
                            continue;
                        }
                        cycle.can[out] |= 1 << to;
                        cycle.sending |= 1 << out;
                    } else {
                        self.inputs[port].give_up();
                    }
                }
                Front::Waiting(wants) => {
                    let who = number(port, vc);
                    if self.dead >> wants.out() & 1 == 0 {
                        self.outputs[usize::from(wants.out())].ask(wants.vc().into(), who);
                    }
                    if let Some(out) = wants.adaptive() {
                        let out = usize::from(out);
                        // A packet enters only if all of it fits (T3E sec. 5).
                        let room = ports.credits(out, vc::ADAPTIVE) >= wants.flits().into()
                            && self.has_time(out)
                            && ports.takes(out);
                        cycle.adaptive[out] |= u64::from(room) << who;
                        cycle.adapting |= u8::from(room) << out;
                    }
                    cycle.asking |= 1 << port;
                    cycle.headers[port] = vc as u8;
                }
                Front::Discarded { .. } => self.discard(port, vc, ports),
                Front::Kept { .. } => self.take_in(port, vc, ports),
                Front::Unknown => self.inputs[port].give_up(),
            }
        }
        for out in bits(u64::from(cycle.adapting)) {
            self.outputs[out].award_adaptive(cycle.adaptive[out]);
        }
        for port in bits(u64::from(cycle.asking)) {
            self.claim(port, cycle.headers[port].into(), cycle, ports);
        }
    }

    /// Records the channels that the header at the front of `vc` has won and on which it can send.
    /// If there is none, lets another channel of its input request.
    #[inline]
    fn claim(&mut self, port: usize, vc: usize, cycle: &mut Cycle, ports: &impl FlitPorts) {
        let Front::Waiting(wants) = self.inputs[port].fronts[vc] else {
            return;
        };
        let who = number(port, vc);
        let (out, to) = (usize::from(wants.out()), usize::from(wants.vc()));
        let mut goes = false;
        if self.outputs[out].owner(to) == who
            && ports.credits(out, to) >= self.least_room(wants)
            && self.has_time(out)
            && ports.takes(out)
        {
            cycle.can[out] |= 1 << to;
            cycle.sending |= 1 << out;
            goes = true;
        }
        if let Some(out) = wants.adaptive().map(usize::from)
            && self.outputs[out].owner(vc::ADAPTIVE) == who
            && ports.credits(out, vc::ADAPTIVE) >= wants.flits().into()
            && self.has_time(out)
            && ports.takes(out)
        {
            cycle.can[out] |= 1 << vc::ADAPTIVE;
            cycle.sending |= 1 << out;
            cycle.adaptive_only |= u8::from(!goes) << port;
            goes = true;
        }
        if !goes {
            self.inputs[port].give_up();
            // Move responses of the processor to the memory too: while one waits, the processor
            // serves no requests, and these fill the network.
            let in_the_way = port < PROCESSOR || port == PROCESSOR && vc == vc::RESPONSE;
            if self.dead >> wants.out() & 1 != 0 && in_the_way {
                self.leave_network(port, vc, wants);
            }
        }
    }

    /// Selects a sending channel for every output.
    #[inline]
    fn arbitrate(&mut self, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        // A packet that goes straight through takes the wires of its output; an owner with no flit
        // to send now loses them.
        for out in bits(u64::from(self.held & !cycle.sending & !cycle.used)) {
            self.outputs[out].bubble();
        }
        self.held &= cycle.sending | cycle.used;
        let mut winners: [(u8, u8, u8); INPUTS] = [(NONE, 0, 0); INPUTS];
        let mut won = 0;
        for out in bits(u64::from(cycle.sending & !cycle.used)) {
            let to = self.outputs[out].arbitrate(cycle.can[out]);
            self.held |= 1 << out;
            let who = usize::from(self.outputs[out].owner(to));
            let (port, vc) = (who / VCS, who % VCS);
            // An input that wins two outputs uses the adaptive channel (T3E sec. 7).
            if won >> port & 1 == 0 || to == vc::ADAPTIVE {
                won |= 1 << port;
                winners[port] = (out as u8, to as u8, vc as u8);
            }
        }
        // Wires that are never idle never become free for an adaptive channel. A header that won
        // nothing else lets another channel of its input request, because that one may hold the
        // deterministic channel for which the header waits ("guarantees forward progress to all
        // packets", T3E sec. 7).
        for port in bits(u64::from(cycle.adaptive_only & !won)) {
            self.inputs[port].give_up();
        }
        let stalled = (self.ready & !(won | cycle.won)).count_ones();
        self.counters.stalled_input_cycles += u64::from(stalled);
        for port in bits(u64::from(won)) {
            let (out, to, vc) = winners[port];
            let vc = usize::from(vc);
            if let Front::Waiting(wants) = self.inputs[port].fronts[vc] {
                self.go((port, vc), wants, (out.into(), to.into()));
            }
            self.forward(port, vc, cycle, ports);
        }
    }

    /// Whether a packet in progress on `to` keeps the wires of `out` in this cycle regardless of
    /// other requests. It needs no arbitration until its last flit.
    #[inline]
    fn keeps_wires(&self, out: usize, to: usize, cycle: &Cycle) -> bool {
        self.whole.is_none() && self.outputs[out].has_wires(to) && cycle.used >> out & 1 == 0
    }

    /// Starts the packet at the front of `vc`, which has won an output.
    #[inline]
    fn go(&mut self, (port, vc): (usize, usize), wants: Wants, (out, to): (usize, usize)) {
        if self.watch.is_some() {
            self.watch_go((port, vc), wants, (out, to));
        }
        let who = number(port, vc);
        let deterministic = (usize::from(wants.out()), usize::from(wants.vc()));
        let adaptive = wants.adaptive().map(|out| (usize::from(out), vc::ADAPTIVE));
        for (other, channel) in [Some(deterministic), adaptive].into_iter().flatten() {
            self.outputs[other].wanted -= 1;
            if (other, channel) != (out, to) {
                self.outputs[other].forget(channel, who);
            }
        }
        self.outputs[out].begin(to, who);
        self.counters.packets += 1;
        self.counters.resent_packets += u64::from(port == MEMORY);
        self.counters.adaptive_packets += u64::from(to == vc::ADAPTIVE);
        self.inputs[port].fronts[vc] = Front::Flowing {
            out: out as u8,
            vc: to as u8,
            left: wants.flits(),
        };
        self.inputs[port].begin(vc);
    }

    /// Forwards the next flit of the flowing packet at the front of `vc`, or as many as may go at
    /// once.
    #[inline]
    fn forward(&mut self, port: usize, vc: usize, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        match self.whole.is_some() {
            true => self.forward_many(port, vc, cycle, ports),
            false => self.forward_one(port, vc, cycle, ports),
        }
        let Front::Flowing { out, vc: to, left } = self.inputs[port].fronts[vc] else {
            return;
        };
        if left == 0 {
            self.outputs[usize::from(out)].end(to.into());
            self.next_packet(port, vc, ports);
        } else {
            self.outputs[usize::from(out)].hold(to.into());
        }
    }

    /// Forwards the next flit of the flowing packet at the front of `vc`.
    #[inline(always)]
    fn forward_one(
        &mut self,
        port: usize,
        vc: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) {
        let input = &mut self.inputs[port];
        let Front::Flowing { out, vc: to, left } = &mut input.fronts[vc] else {
            return;
        };
        *left -= 1;
        let (out, to) = (usize::from(*out), usize::from(*to));
        let header = input.take_header(vc);
        let word = match port {
            MEMORY => self.memory.take_out(vc),
            _ => ports.pop(port, vc),
        };
        input.leave(vc, 1);
        let flit = Flit::data(header.unwrap_or(word), to, header.is_some());
        ports.push(out, to, flit);
        cycle.used |= 1 << out;
        self.held |= 1 << out;
        self.moved |= 1 << port | 1 << out;
        self.counters.flits += 1;
    }

    /// Continues with the next packet of `vc` after the last flit of this one has left.
    #[inline]
    fn next_packet(&mut self, port: usize, vc: usize, ports: &mut impl FlitPorts) {
        let input = &mut self.inputs[port];
        input.fronts[vc] = Front::Unknown;
        input.packet_ended(vc);
        if port == MEMORY {
            self.next_of_memory(vc, ports);
        } else if input.ready[vc] > 0 {
            self.look_at(port, vc, ports);
        }
    }
}

#[inline]
const fn slot(cycle: u64) -> usize {
    cycle as usize % SLOTS
}

#[cfg(test)]
mod tests;
