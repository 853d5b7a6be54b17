//! What tests of the core need: links that record, and a machine of cores joined directly.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::{Flit, Head, NodeId, Routing};

use super::core::Core;
use super::pipeline::NIC_FLITS_PER_CYCLE;
use super::tiles::Ports;
use crate::chip::Grain;
use crate::chip::RouterClock;
use crate::machine::aries::link::{IdealEnd, SetProfile};
use crate::machine::aries::route::harness::{At, Machine};
use crate::machine::aries::route::registers::{
    AriesRegisters, FIRST_NIC_PORT, NETWORK_PORTS, PORTS, VCS,
};
use crate::rng::Rng;

/// A clock by which cycles take their time.
pub(super) const PACED: RouterClock = RouterClock::Paced { dilation: 1 };
/// Every way in which a core can move.
pub(super) const GRAINS: [(Grain, RouterClock); 3] = [
    (Grain::Flit, PACED),
    (Grain::Packet, PACED),
    (Grain::Packet, RouterClock::FreeRunning),
];

/// A core that moves flits.
pub(super) fn core_of(registers: AriesRegisters) -> Core {
    Core::new(registers, Grain::Flit, PACED)
}

/// A packet of a head and numbered flits.
pub(super) fn packet(head: Head) -> Vec<Flit> {
    let id = u64::from(head.packet_id());
    let body = (1..head.length()).map(|i| Flit::new(id << 16 | u64::from(i)));
    core::iter::once(head.flit()).chain(body).collect()
}

pub(super) fn node((group, router): At, nic: u8) -> NodeId {
    NodeId::new(group as u16, router as u8, nic)
}

/// A request for `nic` of `at`.
pub(super) fn request(at: At, nic: u8, routing: Routing, length: u8, id: u16) -> Head {
    Head::new(false, length, node(at, nic), routing, id, 0)
}

/// A link of one core that takes whatever it is not told to block.
pub(super) struct Bench {
    pub now: u64,
    queues: Vec<[VecDeque<Flit>; VCS]>,
    /// Ports, per virtual channel, at which no packet can begin.
    pub blocked: [u64; VCS],
    pub inactive: u64,
    /// What left by each port, and when.
    pub sent: Vec<Vec<(u64, Flit)>>,
    /// Flits still to come of the packet at each port.
    left: [u8; PORTS],
    pub peer_loads: [u8; PORTS],
    pub far: [u32; PORTS],
    pub told: Vec<(u64, usize, u8)>,
    /// The most flits that a packet could ask room for.
    pub room: Option<usize>,
    /// Whether the core moves packets.
    pub packets_whole: bool,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            now: 0,
            queues: Vec::new(),
            blocked: [0; VCS],
            inactive: 0,
            sent: Vec::new(),
            left: [0; PORTS],
            peer_loads: [0; PORTS],
            far: [0; PORTS],
            told: Vec::new(),
            room: None,
            packets_whole: false,
        }
    }
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
        let per_cycle = if port < NETWORK_PORTS {
            1
        } else {
            NIC_FLITS_PER_CYCLE
        };
        let now = self.sent[port].iter().rev();
        let now = now.take_while(|&&(cycle, _)| cycle == self.now).count();
        if !self.packets_whole {
            assert!(now < per_cycle, "no more than the port's width");
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
        self.far.get(port).copied().unwrap_or(0)
    }
    fn peer_load(&self, port: usize) -> u8 {
        self.peer_loads[port]
    }
    fn set_load(&mut self, port: usize, load: u8) {
        self.told.push((self.now, port, load));
    }
}

impl Bench {
    /// All of a packet arrives in the current cycle.
    pub(super) fn inject(&mut self, core: &mut Core, port: usize, packet: &[Flit]) {
        let vc = usize::from(Head::parse(packet[0]).map_or(0, Head::vc));
        self.queues.resize_with(PORTS, Default::default);
        self.queues[port][vc].extend(packet);
        core.arrived(port, vc, packet.len() as u32);
    }

    /// All of a packet with this head arrives in the current cycle.
    pub(super) fn send(&mut self, core: &mut Core, port: usize, head: Head) {
        self.inject(core, port, &packet(head));
    }

    /// More flits of a packet whose head has arrived before.
    pub(super) fn inject_rest(&mut self, core: &mut Core, port: usize, vc: usize, flits: &[Flit]) {
        self.queues[port][vc].extend(flits);
        core.arrived(port, vc, flits.len() as u32);
    }

    pub(super) fn run(&mut self, core: &mut Core, cycles: u64) {
        core.run_until(core.cycle() + cycles, self);
    }

    /// The packets that left by `port`: cycle of the head, and the flits.
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

    /// Heads that left by `port`.
    pub(super) fn heads(&self, port: usize) -> Vec<Head> {
        let packets = self.packets(port).into_iter();
        packets
            .map(|(_, flits)| Head::parse(flits[0]).expect("a head"))
            .collect()
    }
}

/// What is on its way to an end of a link.
#[derive(Clone, Default)]
struct Wire {
    /// Cycle of arrival and flit.
    coming: VecDeque<(u64, Flit)>,
    /// Cycle of arrival and virtual channel of a credit.
    returning: VecDeque<(u64, usize)>,
    down: bool,
    sent: u64,
}

/// A network interface: what it will send and what it got.
#[derive(Default)]
pub(super) struct Nic {
    /// Packets to send, requests and responses.
    pub to_send: [VecDeque<Vec<Flit>>; 2],
    open: VecDeque<Flit>,
    /// Heads that have come, in their order, with the virtual channel.
    pub got: Vec<Head>,
    /// Responses that it may owe before it takes no more requests.
    owed: usize,
    next: usize,
}

/// A machine of cores, joined by ideal links. The ends of links are numbered: router times
/// [`PORTS`] plus port, and behind all of them the NICs.
pub(super) struct Fabric {
    pub machine: Machine,
    pub cores: Vec<Core>,
    ends: Vec<IdealEnd>,
    wires: Vec<Wire>,
    pub nics: Vec<Nic>,
    pub cycle: u64,
    latency: u64,
    responds: bool,
    pub moved_at: u64,
}

const NIC_BUFFER: u32 = 64;

/// A link that takes `latency` cycles into a buffer of `depth` flits for each virtual channel.
fn end(depth: u32, latency: u64) -> IdealEnd {
    let depths = SetProfile {
        private_flits: depth,
        common_flits: 0,
        ..SetProfile::paper()
    };
    IdealEnd::new(&depths, 2 * latency as u16)
}

struct Side<'a> {
    ends: &'a mut [IdealEnd],
    wires: &'a mut [Wire],
    machine: Machine,
    router: usize,
    now: u64,
    latency: u64,
    moved: &'a mut u64,
}

/// The end that an end is joined to.
fn other_end(machine: Machine, end: usize) -> Option<usize> {
    let routers = machine.all().count();
    if end >= routers * PORTS {
        let nic = end - routers * PORTS;
        return Some(nic / 4 * PORTS + FIRST_NIC_PORT + nic % 4);
    }
    let (router, port) = (end / PORTS, end % PORTS);
    if port >= FIRST_NIC_PORT {
        return Some(routers * PORTS + router * 4 + port - FIRST_NIC_PORT);
    }
    let at = (router / machine.routers(), router % machine.routers());
    let (to, back) = machine.peer(at, port)?;
    Some(machine.index(to) * PORTS + back)
}

impl Side<'_> {
    const fn end(&self, port: usize) -> usize {
        self.router * PORTS + port
    }
}

impl Ports for Side<'_> {
    fn begin_cycle(&mut self, cycle: u64) {
        self.now = cycle;
    }
    fn front(&self, port: usize, vc: usize) -> Option<Flit> {
        self.ends[self.end(port)].front(vc)
    }
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit> {
        let end = self.end(port);
        let flit = self.ends[end].pop(vc)?;
        let back = other_end(self.machine, end).expect("what came has a sender");
        let at = self.now + self.latency;
        self.wires[back].returning.push_back((at, vc));
        *self.moved = self.now;
        Some(flit)
    }
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool {
        self.is_active(port) && self.ends[self.end(port)].has_credits(vc, flits)
    }
    fn is_active(&self, port: usize) -> bool {
        let to = other_end(self.machine, self.end(port));
        to.is_some_and(|to| !self.wires[to].down)
    }
    fn push(&mut self, port: usize, flit: Flit) {
        let end = self.end(port);
        let to = other_end(self.machine, end).expect("only links are pushed to");
        self.ends[end].push(flit, self.now);
        self.wires[to].send(self.now + self.latency, flit);
        *self.moved = self.now;
    }
    fn far_flits(&self, port: usize) -> u32 {
        self.ends[self.end(port)].far_flits(self.now, 0)
    }
}

impl Wire {
    fn send(&mut self, at: u64, flit: Flit) {
        self.sent += 1;
        self.coming.push_back((at, flit));
    }
}

impl Fabric {
    /// A machine whose links take `latency` cycles and whose input queues have `depth` flits per
    /// virtual channel.
    pub(super) fn new(
        machine: Machine,
        depth: u32,
        latency: u64,
        change: impl Fn(&mut AriesRegisters),
    ) -> Self {
        let cores: Vec<Core> = machine
            .all()
            .map(|at| {
                let mut registers = machine.registers(at);
                change(&mut registers);
                core_of(registers)
            })
            .collect();
        let routers = cores.len();
        // The buffers of NICs are not deeper than these.
        let depth_of = |port| {
            if port < NETWORK_PORTS {
                depth
            } else {
                NIC_BUFFER
            }
        };
        let ends = (0..routers * PORTS).map(|i| end(depth_of(i % PORTS), latency));
        let nics = (0..routers * 4).map(|_| end(NIC_BUFFER, latency));
        Self {
            machine,
            cores,
            ends: ends.chain(nics).collect(),
            wires: vec![Wire::default(); routers * (PORTS + 4)],
            nics: (0..routers * 4).map(|_| Nic::default()).collect(),
            cycle: 0,
            latency,
            responds: false,
            moved_at: 0,
        }
    }

    /// Lets every NIC answer requests, with packets of 14 flits for short ones and of one flit for
    /// others.
    pub(super) fn with_responses(mut self) -> Self {
        self.responds = true;
        self
    }

    /// Lets all cores move in this way.
    pub(super) fn with_grain(mut self, (grain, clock): (Grain, RouterClock)) -> Self {
        for core in &mut self.cores {
            *core = Core::new(core.registers().clone(), grain, clock);
        }
        self
    }

    /// Takes the wires of a port up or down, both directions.
    pub(super) fn set_link(&mut self, at: At, port: usize, up: bool) {
        let (to, back) = self.machine.peer(at, port).expect("a link");
        for (at, port) in [(at, port), (to, back)] {
            let router = self.machine.index(at);
            self.wires[router * PORTS + port].down = !up;
            self.cores[router].output_changed(port);
        }
    }

    /// Gives a NIC a packet to send.
    pub(super) fn send(&mut self, from: usize, head: Head) {
        self.nics[from].to_send[usize::from(head.is_response())].push_back(packet(head));
    }

    /// Brings flits and credits that have arrived by `now` to an end. How many flits there were on
    /// each virtual channel, and whether credits came.
    fn deliver(&mut self, end: usize, now: u64) -> ([u32; VCS], bool) {
        let (wire, end) = (&mut self.wires[end], &mut self.ends[end]);
        let (mut flits, mut credits) = ([0; VCS], false);
        while let Some(&(at, flit)) = wire.coming.front()
            && at <= now
        {
            wire.coming.pop_front();
            flits[end
                .receive(flit)
                .expect("there is room for what has credits")] += 1;
        }
        while let Some(&(at, vc)) = wire.returning.front()
            && at <= now
        {
            wire.returning.pop_front();
            end.give(vc);
            credits = true;
        }
        (flits, credits)
    }

    pub(super) fn step(&mut self) {
        let now = self.cycle;
        let routers = self.cores.len();
        for end in 0..routers * PORTS {
            let (router, port) = (end / PORTS, end % PORTS);
            let (flits, credits) = self.deliver(end, now);
            for (vc, &flits) in flits.iter().enumerate().filter(|(_, flits)| **flits > 0) {
                self.cores[router].arrived(port, vc, flits);
            }
            if credits {
                self.cores[router].output_changed(port);
            }
        }
        for nic in 0..self.nics.len() {
            self.run_nic(nic, now);
        }
        for (router, core) in self.cores.iter_mut().enumerate() {
            let mut side = Side {
                ends: &mut self.ends,
                wires: &mut self.wires,
                machine: self.machine,
                router,
                now,
                latency: self.latency,
                moved: &mut self.moved_at,
            };
            core.run_until(now + 1, &mut side);
        }
        self.cycle = now + 1;
    }

    fn run_nic(&mut self, number: usize, now: u64) {
        let routers = self.cores.len();
        let (router, port) = (number / 4, FIRST_NIC_PORT + number % 4);
        let own = routers * PORTS + number;
        self.deliver(own, now);
        let (end, nic) = (&mut self.ends[own], &mut self.nics[number]);
        let to_router = &mut self.wires[router * PORTS + port];
        // It takes what has come, responses always, requests while it does not owe too much.
        for vc in (0..VCS).rev() {
            while let Some(first) = end.front(vc)
                && (vc >= 4 || nic.owed < 4)
            {
                let whole = Head::parse(first).expect("a head");
                let length = whole.length();
                if end.len(vc) < length.into() {
                    break;
                }
                let flits: Vec<Flit> = (0..length).filter_map(|_| end.pop(vc)).collect();
                let credits = (0..length).map(|_| (now + 1, vc));
                to_router.returning.extend(credits);
                assert_eq!(flits[1..], packet(whole)[1..], "what was sent arrives");
                nic.got.push(whole);
                self.moved_at = now;
                if self.responds && !whole.is_response() {
                    nic.owed += 1;
                    let length = if whole.length() < 4 { 14 } else { 1 };
                    // The source is not in the head: the test puts its router and NIC in the packet
                    // id.
                    let from = usize::from(whole.packet_id());
                    let at = (
                        from / 4 / self.machine.routers(),
                        from / 4 % self.machine.routers(),
                    );
                    let to = node(at, (from % 4) as u8);
                    let back = Head::new(true, length, to, whole.routing(), number as u16, 0);
                    nic.to_send[1].push_back(packet(back));
                }
            }
        }
        for _ in 0..NIC_FLITS_PER_CYCLE {
            if nic.open.is_empty() {
                nic.next ^= 1;
                for half in [nic.next, nic.next ^ 1] {
                    let next = nic.to_send[half].front();
                    let fits = next.is_some_and(|packet| end.has_credits(half * 4, packet.len()));
                    if fits && let Some(packet) = nic.to_send[half].pop_front() {
                        nic.owed = nic.owed.saturating_sub(half);
                        nic.open.extend(packet);
                        break;
                    }
                }
            }
            if let Some(flit) = nic.open.pop_front() {
                end.push(flit, now);
                to_router.send(now + self.latency, flit);
            }
        }
    }

    /// Runs until everything has arrived; false when nothing moves any more before that.
    pub(super) fn drain(&mut self, patience: u64) -> bool {
        while !self.is_empty() {
            self.step();
            if self.cycle > self.moved_at + patience {
                return false;
            }
        }
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nics
            .iter()
            .all(|nic| nic.open.is_empty() && nic.to_send.iter().all(VecDeque::is_empty))
            && (self.wires.iter()).all(|wire| wire.coming.is_empty() && wire.returning.is_empty())
            && self.ends.iter().all(IdealEnd::is_empty)
            && self.cores.iter().all(|core| core.flits_inside() == 0)
    }

    /// Every credit is back where it was.
    pub(super) fn check_credits(&self) {
        for (index, end) in self.ends.iter().enumerate() {
            assert_eq!(end.used(), [0; VCS], "end {index}");
        }
    }

    /// Flits that went over the wires.
    pub(super) fn flit_hops(&self) -> u64 {
        self.flits_by_end().iter().sum()
    }

    /// Flits that went over each wire.
    pub(super) fn flits_by_end(&self) -> Vec<u64> {
        self.wires.iter().map(|wire| wire.sent).collect()
    }

    /// Every NIC has `count` requests for others, to `to(from, turn)` of random lengths.
    pub(super) fn fill(
        &mut self,
        count: usize,
        routing: &[Routing],
        rng: &mut Rng,
        to: impl Fn(usize, usize, &mut Rng) -> usize,
    ) -> usize {
        let mut packets = 0;
        for turn in 0..count {
            for from in 0..self.nics.len() {
                let to = to(from, turn, rng);
                let at = (
                    to / 4 / self.machine.routers(),
                    to / 4 % self.machine.routers(),
                );
                let length = [1, 3, 5, 14][rng.below(4) as usize];
                let routing = routing[rng.below(routing.len() as u64) as usize];
                self.send(
                    from,
                    request(at, (to % 4) as u8, routing, length, from as u16),
                );
                packets += 1;
            }
        }
        packets
    }
}
