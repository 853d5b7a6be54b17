//! Test harness of the core: links that record, and a machine of directly connected cores.

use std::collections::{HashMap, VecDeque};

use phitwire_framing::aries::flit::{Flit, Head, NodeId, Routing};

use super::core::Core;
use super::pace::Pace;
use super::tiles::Ports;
use crate::link::{IdealEnd, SetProfile};
use crate::route::harness::{At, Machine};
use crate::route::registers::{AriesRegisters, FIRST_NIC_PORT, NETWORK_PORTS, PORTS, VCS};
use crate::topology::Far;
use phitwire::chip::Grain;
use phitwire::chip::RouterClock;
use phitwire::rng::Rng;

/// A clock with cycle times.
pub(super) const PACED: RouterClock = RouterClock::Paced { dilation: 1 };
/// All combinations of grain and clock.
pub(super) const GRAINS: [(Grain, RouterClock); 3] = [
    (Grain::Flit, PACED),
    (Grain::Packet, PACED),
    (Grain::Packet, RouterClock::FreeRunning),
];

pub(super) fn core_of(registers: AriesRegisters) -> Core {
    Core::new(registers, Grain::Flit, PACED)
}

/// Router 0 of group 0 of the small machine.
pub(super) fn router() -> (Core, Bench) {
    let registers = Machine::small().registers((0, 0));
    (core_of(registers), Bench::default())
}

/// A packet with the given head and numbered flits.
pub(super) fn packet(head: Head) -> Vec<Flit> {
    let id = u64::from(head.packet_id());
    let body = (1..head.length()).map(|i| Flit::new(id << 16 | u64::from(i)));
    core::iter::once(head.flit()).chain(body).collect()
}

pub(super) fn request(to: At, nic: u8, routing: Routing, length: u8, id: u16) -> Head {
    let node = NodeId::new(to.0 as u16, to.1 as u8, nic);
    Head::new(false, length, node, routing, id, 0)
}

/// Links of one core that accept everything unless blocked.
#[derive(Default)]
pub(super) struct Bench {
    pub now: u64,
    queues: Vec<[VecDeque<Flit>; VCS]>,
    /// Ports, per virtual channel, at which no packet can start.
    pub blocked: [u64; VCS],
    pub inactive: u64,
    /// Flits sent by each port, with their cycle.
    pub sent: Vec<Vec<(u64, Flit)>>,
    /// Missing flits of the packet at each port.
    left: Vec<u8>,
    /// Loads of the peers, by port; zero for ports without an entry.
    pub peer_loads: HashMap<usize, u8>,
    pub far: HashMap<usize, u32>,
    pub reported: Vec<(u64, usize, u8)>,
    /// Maximum length in flits of packets that fit.
    pub room: Option<usize>,
    /// Whether the core moves whole packets.
    pub packets_whole: bool,
}

impl Ports for Bench {
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = cycle;
    }
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.queues.get(port)?[vc].front().copied()
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        self.queues.get_mut(port)?[vc].pop_front()
    }
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool {
        self.is_active(port)
            && self.blocked[vc] >> port & 1 == 0
            && self.room.is_none_or(|room| flits <= room)
    }
    fn is_active(&self, port: usize) -> bool {
        self.inactive >> port & 1 == 0
    }
    fn push(&mut self, port: usize, flit: Flit) {
        self.sent.resize(PORTS, Vec::new());
        self.left.resize(PORTS, 0);
        let per_cycle = if port < NETWORK_PORTS {
            1
        } else {
            Pace::NIC.slots_in(self.now)
        };
        let now = self.sent[port].iter().rev();
        let now = now.take_while(|&&(cycle, _)| cycle == self.now).count();
        if !self.packets_whole {
            assert!((now as u64) < per_cycle, "at most the width of the port");
            let tenth = self.now % 10 == 9;
            assert!(port >= NETWORK_PORTS || !tenth, "the tenth flit");
        }
        if self.left[port] == 0 {
            let head = Head::parse(flit).expect("a packet begins with its head");
            assert_eq!(self.blocked[usize::from(head.vc())] >> port & 1, 0);
            self.left[port] = head.length();
        }
        self.left[port] -= 1;
        self.sent[port].push((self.now, flit));
    }
    fn far_flits(&self, port: usize) -> u32 {
        self.far.get(&port).copied().unwrap_or(0)
    }
    fn peer_load(&self, port: usize) -> u8 {
        self.peer_loads.get(&port).copied().unwrap_or(0)
    }
    fn set_load(&mut self, port: usize, load: u8) {
        self.reported.push((self.now, port, load));
    }
}

impl Bench {
    /// Delivers a whole packet in the current cycle.
    pub(super) fn inject(&mut self, core: &mut Core, port: usize, packet: &[Flit]) {
        let vc = usize::from(Head::parse(packet[0]).map_or(0, Head::vc));
        self.queues.resize_with(PORTS, Default::default);
        self.queues[port][vc].extend(packet);
        core.arrived(port, vc, packet.len() as u32);
    }

    /// Delivers a whole packet with this head in the current cycle.
    pub(super) fn send(&mut self, core: &mut Core, port: usize, head: Head) {
        self.inject(core, port, &packet(head));
    }

    /// Delivers more flits of a packet whose head arrived before.
    pub(super) fn inject_rest(&mut self, core: &mut Core, port: usize, vc: usize, flits: &[Flit]) {
        self.queues[port][vc].extend(flits);
        core.arrived(port, vc, flits.len() as u32);
    }

    pub(super) fn run(&mut self, core: &mut Core, cycles: u64) {
        core.run_until(core.cycle() + cycles, self);
    }

    /// Packets sent by `port`: cycle of the head, and the flits.
    pub(super) fn packets(&self, port: usize) -> Vec<(u64, Vec<Flit>)> {
        let mut packets: Vec<(u64, Vec<Flit>)> = Vec::new();
        let mut left = 0;
        for &(cycle, flit) in self.sent.get(port).into_iter().flatten() {
            if left == 0 {
                left = Head::parse(flit).expect("a head").length();
                packets.push((cycle, Vec::new()));
            }
            left -= 1;
            packets.last_mut().expect("begun").1.push(flit);
        }
        packets
    }

    pub(super) fn heads(&self, port: usize) -> Vec<Head> {
        let packets = self.packets(port).into_iter();
        packets
            .map(|(_, flits)| Head::parse(flits[0]).expect("a head"))
            .collect()
    }
}

/// A flit or credit in flight to a link end.
enum Passing {
    Flit(Flit),
    /// A credit for a virtual channel.
    Credit(usize),
}

/// Latency of a link in cycles.
const LATENCY: u64 = 4;
/// Buffer of a NIC's link in flits per virtual channel, at either end.
const NIC_BUFFER: u32 = 64;

/// Ideal links. An end's number is router times [`PORTS`] plus port; the NICs follow.
struct Links {
    ends: Vec<IdealEnd>,
    /// The peer of each end.
    others: Vec<Option<usize>>,
    down: Vec<bool>,
    sent: Vec<u64>,
    /// Arrivals in flight: cycle, end, and content.
    passing: VecDeque<(u64, usize, Passing)>,
    now: u64,
    moved_at: u64,
    /// The router whose ports are active.
    router: usize,
}

impl Links {
    /// Creates links with `depth` flits of buffer for each virtual channel of a network port.
    fn new(machine: &Machine, depth: u32) -> Self {
        let routers = machine.network.shape.routers();
        let end = |depth| {
            let depths = SetProfile {
                private_flits: depth,
                common_flits: 0,
                ..SetProfile::paper()
            };
            IdealEnd::new(&depths, 2 * LATENCY as u16)
        };
        let nics = routers * PORTS..routers * (PORTS + 4);
        let all = 0..nics.end;
        let depth_of = |i: usize| match nics.contains(&i) || i % PORTS >= NETWORK_PORTS {
            true => NIC_BUFFER,
            false => depth,
        };
        let other = |i: usize| {
            let (router, port) = (i / PORTS, i % PORTS);
            if let Some(nic) = i.checked_sub(nics.start) {
                return Some(nic / 4 * PORTS + FIRST_NIC_PORT + nic % 4);
            }
            let far = machine.wiring.far(router as u32, port as u8)?;
            Some(match far {
                Far::Nic(nic) => nics.start + nic as usize,
                Far::Router(to, back) => to as usize * PORTS + usize::from(back),
            })
        };
        Self {
            ends: all.clone().map(|i| end(depth_of(i))).collect(),
            others: all.map(other).collect(),
            down: vec![false; nics.end],
            sent: vec![0; nics.end],
            passing: VecDeque::new(),
            now: 0,
            moved_at: 0,
            router: 0,
        }
    }

    const fn end(&self, port: usize) -> usize {
        self.router * PORTS + port
    }

    fn pass(&mut self, from: usize, what: Passing) {
        let to = self.others[from].expect("only connected ports are used");
        self.sent[to] += u64::from(matches!(what, Passing::Flit(_)));
        self.passing.push_back((self.now + LATENCY, to, what));
        self.moved_at = self.now;
    }

    fn pop_at(&mut self, end: usize, vc: usize) -> Option<Flit> {
        let flit = self.ends[end].pop(vc)?;
        self.pass(end, Passing::Credit(vc));
        Some(flit)
    }

    fn push_at(&mut self, end: usize, flit: Flit) {
        self.ends[end].push(flit, self.now);
        self.pass(end, Passing::Flit(flit));
    }
}

impl Ports for Links {
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.ends[self.end(port)].front(vc)
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        self.pop_at(self.end(port), vc)
    }
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool {
        self.is_active(port) && self.ends[self.end(port)].has_credits(vc, flits)
    }
    fn is_active(&self, port: usize) -> bool {
        self.others[self.end(port)].is_some_and(|to| !self.down[to])
    }
    fn push(&mut self, port: usize, flit: Flit) {
        self.push_at(self.end(port), flit);
    }
    fn far_flits(&self, port: usize) -> u32 {
        self.ends[self.end(port)].far_flits(self.now, 0)
    }
}

#[derive(Default)]
pub(super) struct Nic {
    to_send: [VecDeque<Vec<Flit>>; 2],
    open: VecDeque<Flit>,
    /// Heads received, in order.
    pub got: Vec<Head>,
    /// Maximum number of pending responses before the NIC stops accepting requests.
    owed: usize,
    next: usize,
}

pub(super) struct Fabric {
    machine: Machine,
    pub cores: Vec<Core>,
    links: Links,
    pub nics: Vec<Nic>,
    /// Whether NICs respond to requests, with packets of 14 flits for short ones and of one flit
    /// for others.
    pub responds: bool,
    clock: RouterClock,
}

impl Fabric {
    /// A machine of cores with the given grain and clock, and input queues of `depth` flits per
    /// virtual channel.
    pub(super) fn new(machine: Machine, depth: u32, (grain, clock): (Grain, RouterClock)) -> Self {
        let registers = machine.routed.registers.iter().cloned();
        let cores: Vec<Core> = registers.map(|r| Core::new(r, grain, clock)).collect();
        Self {
            links: Links::new(&machine, depth),
            nics: machine.network.nics().map(|_| Nic::default()).collect(),
            machine,
            cores,
            responds: false,
            clock,
        }
    }

    /// Takes the link of a port down, in both directions.
    pub(super) fn cut(&mut self, router: usize, port: usize) {
        let end = router * PORTS + port;
        for end in [end, self.links.others[end].expect("a link")] {
            self.links.down[end] = true;
            // NIC ends have no core.
            if let Some(core) = self.cores.get_mut(end / PORTS) {
                core.output_changed(end % PORTS);
            }
        }
    }

    fn node(&self, nic: usize) -> NodeId {
        self.machine.network.shape.node_id(nic as u32)
    }

    /// Queues a request from one NIC to another.
    pub(super) fn send(&mut self, from: usize, to: usize, routing: Routing, length: u8, id: u16) {
        let head = Head::new(false, length, self.node(to), routing, id, 0);
        self.nics[from].to_send[0].push_back(packet(head));
    }

    pub(super) fn step(&mut self) {
        let now = self.links.now;
        while let Some((_, end, what)) = self.links.passing.pop_front_if(|(at, ..)| *at <= now) {
            let core = self.cores.get_mut(end / PORTS);
            match what {
                Passing::Flit(flit) => {
                    let vc = self.links.ends[end].receive(flit);
                    let vc = vc.expect("a flit with a credit fits");
                    core.into_iter()
                        .for_each(|core| core.arrived(end % PORTS, vc, 1));
                }
                Passing::Credit(vc) => {
                    self.links.ends[end].give(vc);
                    core.into_iter()
                        .for_each(|core| core.output_changed(end % PORTS));
                }
            }
        }
        for nic in 0..self.nics.len() {
            self.take_in(nic);
            self.send_out(nic);
        }
        for (router, core) in self.cores.iter_mut().enumerate() {
            self.links.router = router;
            match self.clock {
                RouterClock::FreeRunning => core.run(&mut self.links),
                RouterClock::Paced { .. } => core.run_until(now + 1, &mut self.links),
            }
        }
        self.links.now += 1;
    }

    /// A NIC takes its input: always responses, and requests unless it has too many pending.
    fn take_in(&mut self, number: usize) {
        let end = self.cores.len() * PORTS + number;
        for vc in (0..VCS).rev() {
            while let Some(first) = self.links.ends[end].front(vc)
                && (vc >= 4 || self.nics[number].owed < 4)
            {
                let whole = Head::parse(first).expect("a head");
                let length = whole.length();
                if self.links.ends[end].len(vc) < length.into() {
                    break;
                }
                let flits = (0..length).filter_map(|_| self.links.pop_at(end, vc));
                let flits: Vec<Flit> = flits.collect();
                assert_eq!(
                    flits[1..],
                    packet(whole)[1..],
                    "the packet arrives unchanged"
                );
                self.nics[number].got.push(whole);
                if self.responds && !whole.is_response() {
                    let length = if whole.length() < 4 { 14 } else { 1 };
                    // The head has no source, so the test puts the source's number into the packet
                    // id.
                    let to = self.node(whole.packet_id().into());
                    let back = Head::new(true, length, to, whole.routing(), number as u16, 0);
                    self.nics[number].owed += 1;
                    self.nics[number].to_send[1].push_back(packet(back));
                }
            }
        }
    }

    fn send_out(&mut self, number: usize) {
        let end = self.cores.len() * PORTS + number;
        let nic = &mut self.nics[number];
        for _ in 0..Pace::NIC.slots_in(self.links.now) {
            if nic.open.is_empty() {
                nic.next ^= 1;
                for half in [nic.next, nic.next ^ 1] {
                    let fits = |packet: &mut Vec<Flit>| {
                        self.links.ends[end].has_credits(half * 4, packet.len())
                    };
                    if let Some(packet) = nic.to_send[half].pop_front_if(fits) {
                        nic.owed = nic.owed.saturating_sub(half);
                        nic.open.extend(packet);
                        break;
                    }
                }
            }
            if let Some(flit) = nic.open.pop_front() {
                self.links.push_at(end, flit);
            }
        }
    }

    /// Runs until everything has arrived; returns false if nothing moves before that.
    pub(super) fn drain(&mut self, patience: u64) -> bool {
        while !self.is_empty() {
            self.step();
            if self.links.now > self.links.moved_at + patience {
                return false;
            }
        }
        true
    }

    fn is_empty(&self) -> bool {
        let has_sent =
            |nic: &Nic| nic.open.is_empty() && nic.to_send.iter().all(VecDeque::is_empty);
        self.nics.iter().all(has_sent)
            && self.links.passing.is_empty()
            && self.links.ends.iter().all(IdealEnd::is_empty)
            && self.cores.iter().all(|core| core.flits_inside() == 0)
    }

    pub(super) fn check_credits(&self) {
        for (index, end) in self.links.ends.iter().enumerate() {
            assert_eq!(end.used(), [0; VCS], "end {index}");
        }
    }

    pub(super) fn flits_by_end(&self) -> &[u64] {
        &self.links.sent
    }

    /// Gives every NIC `count` requests of random lengths for `to(from, turn)`, and returns all of
    /// them.
    pub(super) fn fill(
        &mut self,
        count: usize,
        routing: &[Routing],
        rng: &mut Rng,
        to: impl Fn(usize, usize, &mut Rng) -> usize,
    ) -> usize {
        for turn in 0..count {
            for from in 0..self.nics.len() {
                let to = to(from, turn, rng);
                let length = [1, 3, 5, 14][rng.below(4) as usize];
                let routing = routing[rng.below(routing.len() as u64) as usize];
                self.send(from, to, routing, length, from as u16);
            }
        }
        count * self.nics.len()
    }
}
