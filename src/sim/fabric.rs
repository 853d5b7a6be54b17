//! The event loop: nodes, wires between their ports, and pending deadlines.

mod connect;
mod wires;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

pub use connect::ConnectError;

use super::trace::TraceHash;
use super::wire::{Wire, WireCounters};
use crate::kit::{Attendance, bits};
use crate::node::{MAX_PORTS, Node, PortId};
use crate::rng::Rng;
use crate::time::{Duration, Time};

/// A node of a fabric, numbered in the order of [`Fabric::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// A link of a fabric, numbered in the order of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first-named end to the second.
    AToB,
    /// From the second-named end to the first.
    BToA,
}

impl Direction {
    pub const BOTH: [Self; 2] = [Self::AToB, Self::BToA];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// One-way travel time of a frame.
    pub latency: Duration,
    /// Longest frame in bytes.
    pub mtu: usize,
}

impl Default for LinkSpec {
    /// Five metres of cable at 5 ns per metre, and Ethernet's 1,500 bytes.
    fn default() -> Self {
        Self {
            latency: Duration::from_ns(25),
            mtu: 1500,
        }
    }
}

/// An event reported by a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricEvent<E> {
    pub(crate) at: Time,
    pub(crate) node: NodeId,
    pub event: E,
}

struct Slot<N> {
    node: N,
    /// Index of the outgoing wire of each port, or [`EXIT`] plus the index of an exit, or
    /// [`NO_WIRE`].
    wires: Vec<u32>,
    alarm: Alarm,
    clock: Attendance,
    /// Frames that arrived since the node was stopped: see [`Fabric::suspend`].
    waiting: Option<Vec<(PortId, Vec<u8>)>>,
    /// Runs at the instant `spun_at`.
    spins: u32,
    spun_at: Time,
}

impl<N> Slot<N> {
    /// The node's attended time, which stops while the node is stopped.
    #[inline]
    fn attended(&mut self, now: Time) -> Time {
        match self.waiting {
            None => self.clock.look(now, Duration::from_ps(u64::MAX)),
            Some(_) => self.clock.now(),
        }
    }
}

/// A wire with its receiving port.
struct Joint {
    wire: Wire,
    to: NodeId,
    port: PortId,
    mtu: usize,
    alarm: Alarm,
}

/// A deadline and its queue entry. A deadline that moves later, as a retry timer does with each
/// frame, keeps its entry, so the queue never outgrows the fabric. An entry that comes up too early
/// is requeued.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    due: Time,
    /// The earliest entry in the queue, never later than `due`. Other entries are stale.
    entry: Time,
}

impl Alarm {
    const NONE: Self = Self {
        due: Time::NEVER,
        entry: Time::NEVER,
    };

    /// Sets the deadline to `at`. Returns whether that needs a new queue entry.
    fn set(&mut self, at: Time) -> bool {
        self.due = at;
        let needed = at < self.entry;
        if needed {
            self.entry = at;
        }
        needed
    }
}

const NO_WIRE: u32 = u32::MAX;
const EXIT: u32 = 1 << 31;
/// Maximum number of events kept for [`Fabric::poll_event`]; older ones are dropped and counted.
const MAX_EVENTS: usize = 1 << 16;
/// Maximum number of frames waiting for a stopped node: the capacity of its socket queues.
const MAX_WAITING: usize = 4_096;
/// Maximum number of runs of one node at one instant without progress.
const MAX_SPINS: u32 = 100_000;

/// A queue entry. At equal times, wires come before nodes and lower numbers first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Wire(u32),
    Node(u32),
}

/// Collects frames for a node of another fabric.
struct Exit {
    mtu: usize,
    frames: Vec<SentFrame>,
}

/// A frame in flight from one fabric to another, with its time of sending.
pub type SentFrame = (Time, Vec<u8>);

/// Called for each frame that a node sends: time, node, port, bytes.
pub type NodeTap = Box<dyn FnMut(Time, NodeId, PortId, &[u8]) + Send>;

/// Nodes of type `N` joined by wires, in virtual time. See the [module](super) for the order of
/// events.
pub struct Fabric<N: Node> {
    now: Time,
    seed: u64,
    slots: Vec<Slot<N>>,
    joints: Vec<Joint>,
    /// Wire indices of each link, A to B first; [`NO_WIRE`] for one that ends elsewhere.
    links: Vec<[u32; 2]>,
    exits: Vec<Exit>,
    queue: BinaryHeap<Reverse<(Time, Due)>>,
    /// Nodes to run at this instant.
    concerned: Vec<u32>,
    /// Nodes that the last step ran.
    ran: Vec<u32>,
    buffer: Vec<u8>,
    events: VecDeque<FabricEvent<N::Event>>,
    events_lost: u64,
    /// Called for every frame that a node sends.
    tap: Option<NodeTap>,
    runs: u64,
    /// Impairments made so far; each has its own random stream.
    streams: u64,
}

impl<N: Node> Fabric<N> {
    /// An empty fabric. `seed` determines everything random in it.
    pub fn new(seed: u64) -> Self {
        Self {
            now: Time::ZERO,
            seed,
            slots: Vec::new(),
            joints: Vec::new(),
            links: Vec::new(),
            exits: Vec::new(),
            queue: BinaryHeap::new(),
            concerned: Vec::new(),
            ran: Vec::new(),
            buffer: Vec::new(),
            events: VecDeque::new(),
            events_lost: 0,
            tap: None,
            runs: 0,
            streams: 0,
        }
    }

    pub const fn now(&self) -> Time {
        self.now
    }

    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Adds a node and schedules its first run at the current time.
    ///
    /// # Panics
    /// If there are 2^32 - 1 nodes already, or the node has more than [`MAX_PORTS`].
    pub fn add(&mut self, node: N) -> NodeId {
        let id = u32::try_from(self.slots.len())
            .ok()
            .filter(|id| *id != NO_WIRE);
        let id = NodeId(id.expect("node numbers fit into 32 bits"));
        let ports = node.ports();
        assert!(ports <= MAX_PORTS, "masks of ports have {MAX_PORTS} bits");
        let wires = vec![NO_WIRE; ports];
        self.slots.push(Slot {
            node,
            wires,
            alarm: Alarm::NONE,
            clock: Attendance::new(self.now),
            waiting: None,
            spins: 0,
            spun_at: Time::NEVER,
        });
        self.wake(id, self.now);
        id
    }

    pub fn nodes(&self) -> usize {
        self.slots.len()
    }

    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// The node with this id.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn node(&self, id: NodeId) -> &N {
        &self.slots[id.0 as usize].node
    }

    /// Applies a command to a node (a fault, new traffic, a register) and schedules it to run now.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn command<R>(&mut self, id: NodeId, command: impl FnOnce(&mut N, Time) -> R) -> R {
        let slot = &mut self.slots[id.0 as usize];
        let now = slot.attended(self.now);
        let answer = command(&mut slot.node, now);
        self.wake(id, self.now);
        answer
    }

    /// Gives `act` access to a node between its runs; the node runs now only if `act` returns true.
    /// Panics as [`command`](Self::command) does.
    pub fn attend(&mut self, id: NodeId, act: impl FnOnce(&mut N, Time) -> bool) {
        let slot = &mut self.slots[id.0 as usize];
        let now = slot.attended(self.now);
        if act(&mut slot.node, now) {
            self.wake(id, self.now);
        }
    }

    /// Calls `tap` for every frame that a node sends from now on, before any impairment.
    pub(crate) fn set_tap(&mut self, tap: NodeTap) {
        self.tap = Some(tap);
    }

    /// Replaces a node with a new incarnation and returns the old one with its contents. Frames in
    /// flight to the old one reach the new one.
    ///
    /// # Panics
    /// If there is no such node, or the new one has another number of ports.
    pub(crate) fn replace(&mut self, id: NodeId, node: N) -> N {
        let slot = &mut self.slots[id.0 as usize];
        assert_eq!(
            slot.wires.len(),
            node.ports(),
            "the new incarnation has another number of ports"
        );
        let old = core::mem::replace(&mut slot.node, node);
        slot.waiting = None;
        slot.clock = Attendance::new(self.now);
        self.wake(id, self.now);
        old
    }

    /// Stops a node, as if its process were suspended: it neither runs nor receives. Arriving
    /// frames wait, up to the capacity of its socket queues.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn suspend(&mut self, id: NodeId) {
        let slot = &mut self.slots[id.0 as usize];
        slot.attended(self.now); // The node has run until now.
        slot.waiting.get_or_insert_default();
    }

    /// Resumes a stopped node, which receives all waiting frames at this instant.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn resume(&mut self, id: NodeId) {
        self.wake_up(id, Duration::ZERO);
    }

    /// Like [`resume`](Self::resume), but the node treats the stop as a sleep: its clock includes
    /// the stop.
    #[cfg(any(test, feature = "testing"))]
    pub fn resume_by_the_clock(&mut self, id: NodeId) {
        let slot = &mut self.slots[id.0 as usize];
        // Run the node's timers before it reads the waiting frames.
        let waiting = slot.waiting.take();
        self.run_node(id);
        self.slots[id.0 as usize].waiting = waiting;
        self.wake_up(id, Duration::from_ps(u64::MAX));
    }

    /// Resumes a stopped node after a deliberate sleep of up to `asleep`.
    fn wake_up(&mut self, id: NodeId, asleep: Duration) {
        let slot = &mut self.slots[id.0 as usize];
        let Some(waiting) = slot.waiting.take() else {
            return;
        };
        let now = slot.clock.look(self.now, asleep);
        let span = slot.clock.take_standstill();
        if span > Duration::ZERO {
            slot.node.handle_suspension(now, span);
        }
        for (port, frame) in waiting {
            slot.node.handle_frame(now, port, &frame);
        }
        self.wake(id, self.now);
    }

    /// The oldest event not yet fetched.
    pub fn poll_event(&mut self) -> Option<FabricEvent<N::Event>> {
        self.events.pop_front()
    }

    /// Frames in flight on all wires.
    #[cfg(test)]
    pub(crate) fn in_flight(&self) -> usize {
        self.joints.iter().map(|joint| joint.wire.in_flight()).sum()
    }

    /// Sum of the counters of all wires.
    pub fn wire_counters(&self) -> WireCounters {
        self.joints
            .iter()
            .fold(WireCounters::default(), |sum, joint| {
                sum + joint.wire.counters()
            })
    }

    /// Hash of every delivered frame's time, wire and bytes.
    pub fn trace_hash(&self) -> u64 {
        let mut hash = TraceHash::default();
        for joint in &self.joints {
            hash.add(joint.wire.trace().value());
        }
        hash.value()
    }

    /// When the next frame arrives or the next node runs.
    pub fn next_event_time(&mut self) -> Option<Time> {
        while let Some(Reverse((at, what))) = self.queue.peek().copied() {
            let alarm = match what {
                Due::Wire(index) => &mut self.joints[index as usize].alarm,
                Due::Node(index) => &mut self.slots[index as usize].alarm,
            };
            if at == alarm.entry && at == alarm.due {
                return Some(at);
            }
            self.queue.pop();
            if at == alarm.entry {
                alarm.entry = alarm.due;
                if alarm.due != Time::NEVER {
                    self.queue.push(Reverse((alarm.due, what)));
                }
            }
        }
        None
    }

    /// Runs everything due at or before `end`, which is then the current time.
    ///
    /// # Panics
    /// If `end` is in the past, or a node requests to run at one instant forever.
    pub fn run_until(&mut self, end: Time) {
        assert!(end >= self.now, "time ran backwards");
        while self.next_event_time().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs everything due within `span`.
    ///
    /// # Panics
    /// See [`run_until`](Self::run_until).
    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Runs until `done` holds, checked at most every `period` and only after an event, or until
    /// `limit` has passed. Returns whether `done` held.
    ///
    /// # Panics
    /// If `period` is zero; see also [`run_until`](Self::run_until).
    pub fn run_until_done(
        &mut self,
        limit: Duration,
        period: Duration,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        assert!(period > Duration::ZERO, "the period must not be zero");
        let end = self.now + limit;
        while !done(self) {
            if self.now >= end {
                return false;
            }
            let next = self.next_event_time().unwrap_or(end).max(self.now + period);
            self.run_until(end.min(next));
        }
        true
    }

    /// Runs everything due at the next instant. Returns false if nothing is due at any time.
    ///
    /// # Panics
    /// If a node requests to run at one instant forever.
    pub fn step(&mut self) -> bool {
        let Some(now) = self.next_event_time() else {
            return false;
        };
        self.now = now;
        while self.next_event_time() == Some(now) {
            match self.queue.pop() {
                Some(Reverse((_, Due::Wire(index)))) => self.deliver(index as usize),
                Some(Reverse((_, Due::Node(index)))) => {
                    self.slots[index as usize].alarm = Alarm::NONE;
                    self.concerned.push(index);
                }
                None => break,
            }
        }
        let mut concerned = core::mem::take(&mut self.concerned);
        concerned.sort_unstable();
        concerned.dedup();
        concerned
            .iter()
            .for_each(|&index| self.run_node(NodeId(index)));
        core::mem::swap(&mut self.ran, &mut concerned);
        concerned.clear();
        self.concerned = concerned;
        true
    }

    /// The nodes that the last [`step`](Self::step) ran, in ascending order.
    pub fn ran(&self) -> impl Iterator<Item = NodeId> {
        self.ran.iter().copied().map(NodeId)
    }

    fn deliver(&mut self, index: usize) {
        let joint = &mut self.joints[index];
        let slot = &mut self.slots[joint.to.0 as usize];
        let mut any = false;
        while let Some(frame) = joint.wire.receive(self.now) {
            match &mut slot.waiting {
                None => {
                    let now = slot.attended(self.now);
                    slot.node.handle_frame(now, joint.port, &frame);
                    joint.wire.recycle(frame);
                    any = true;
                }
                Some(waiting) if waiting.len() < MAX_WAITING => waiting.push((joint.port, frame)),
                Some(_) => joint.wire.overrun(frame),
            }
        }
        if any {
            self.concerned.push(joint.to.0);
        }
        joint.alarm = Alarm::NONE;
        self.reschedule(index);
    }

    fn run_node(&mut self, id: NodeId) {
        let now = self.now;
        let slot = &mut self.slots[id.0 as usize];
        if slot.waiting.is_some() {
            return;
        }
        self.runs += 1;
        slot.spins = if slot.spun_at == now {
            slot.spins + 1
        } else {
            0
        };
        slot.spun_at = now;
        let own = slot.attended(now);
        slot.node.advance(own);
        for port in bits(slot.node.ready_ports()) {
            let wire = slot.wires.get(port).copied().unwrap_or(NO_WIRE);
            if wire != NO_WIRE && wire >= EXIT {
                let exit = &mut self.exits[(wire - EXIT) as usize];
                let buffer = &mut self.buffer[..exit.mtu];
                while let Some(length) = slot.node.poll_frame(own, port as PortId, buffer) {
                    if let Some(tap) = &mut self.tap {
                        tap(now, id, port as PortId, &buffer[..length]);
                    }
                    exit.frames.push((now, buffer[..length].to_vec()));
                }
                continue;
            }
            let mut sent = false;
            // Frames sent through an unconnected port are dropped.
            let joint = self.joints.get_mut(wire as usize);
            let mtu = joint
                .as_ref()
                .map_or(LinkSpec::default().mtu, |joint| joint.mtu);
            if self.buffer.len() < mtu {
                self.buffer.resize(mtu, 0);
            }
            let buffer = &mut self.buffer[..mtu];
            if let Some(joint) = joint {
                while let Some(length) = slot.node.poll_frame(own, port as PortId, buffer) {
                    if let Some(tap) = &mut self.tap {
                        tap(now, id, port as PortId, &buffer[..length]);
                    }
                    joint.wire.send(now, &mut buffer[..length]);
                    sent = true;
                }
            } else {
                while slot.node.poll_frame(own, port as PortId, buffer).is_some() {}
            }
            if sent {
                reschedule(&mut self.queue, &mut self.joints[wire as usize], wire);
            }
        }
        while let Some(event) = slot.node.poll_event() {
            if self.events.len() == MAX_EVENTS {
                self.events.pop_front();
                self.events_lost += 1;
            }
            self.events.push_back(FabricEvent {
                at: now,
                node: id,
                event,
            });
        }
        if let Some(wakeup) = slot.node.next_wakeup() {
            assert!(
                slot.spins < MAX_SPINS,
                "node {} requests to run at {now:?} forever ({:?})",
                id.0,
                wakeup.reason
            );
            let at = slot.clock.clock_time(wakeup.at);
            self.wake(id, at.max(now));
        } else {
            self.wake(id, Time::NEVER);
        }
    }

    fn wake(&mut self, id: NodeId, at: Time) {
        if self.slots[id.0 as usize].alarm.set(at) {
            self.queue.push(Reverse((at, Due::Node(id.0))));
        }
    }

    fn reschedule(&mut self, index: usize) {
        reschedule(&mut self.queue, &mut self.joints[index], index as u32);
    }

    fn next_stream(&mut self) -> Rng {
        self.streams += 1;
        Rng::new(self.seed, self.streams)
    }
}

fn reschedule(queue: &mut BinaryHeap<Reverse<(Time, Due)>>, joint: &mut Joint, index: u32) {
    if joint
        .alarm
        .set(joint.wire.next_deadline().unwrap_or(Time::NEVER))
    {
        queue.push(Reverse((joint.alarm.due, Due::Wire(index))));
    }
}

#[cfg(test)]
mod tests;
