//! A deterministic pair of Aries link ends.

use std::collections::{BTreeMap, VecDeque};

use phitwire_framing::flit48::{Flit, Head, MAX_PACKET_FLITS, NodeId, Routing, VCS};
use phitwire_framing::frame::{self, FrameHeader, FrameKind, LinkEnd, SetFrameWriter};
use phitwire_framing::lanes::{bits_of_lane, flip};
use phitwire_framing::set48::{ControlSet, DATA_FLITS, DataSet, Set, Tail};

use crate::link::aries::scrambler::Scrambler;
use crate::link::aries::{AriesInput, AriesLcb, AriesLinkConfig, LcbRegisters, SetProfile};
use crate::link::{
    EndName, LaneRate, LinkConfig, LinkConfigBuilder, LinkCounters, LinkEvent, LinkProfile,
    SetCounters,
};
use crate::rng::Rng;
use crate::time::{Duration, Time};

pub const A: usize = 0;
pub const B: usize = 1;
/// Length of a frame that says something but carries nothing.
pub const IDLE_FRAME_BYTES: usize = frame::set_frame_len(1);

/// What happens to frames on the way from one end to the other.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Parts in 1,000.
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    /// Frames in which a few bits of the sets are flipped.
    pub corrupt: u64,
    /// Frames in which a byte anywhere is changed.
    pub mangle: u64,
    pub delay: Duration,
    pub jitter: Duration,
    /// Whether frames keep their order whatever the jitter, as on a cable.
    pub ordered: bool,
    pub cut: bool,
    /// Sender's lanes whose bits flip, with probability 1 in `noise_of` per word of 24 bits.
    pub noisy_lanes: u8,
    pub noise_of: u64,
    /// Sender's lanes that carry nothing.
    pub silent_lanes: u8,
    /// Longer frames are swallowed.
    pub most_bytes: usize,
}

impl Wire {
    pub fn clean() -> Self {
        Self {
            loss: 0,
            duplicate: 0,
            reorder: 0,
            corrupt: 0,
            mangle: 0,
            delay: Duration::from_us(10),
            jitter: Duration::ZERO,
            ordered: false,
            cut: false,
            noisy_lanes: 0,
            noise_of: 1,
            silent_lanes: 0,
            most_bytes: usize::MAX,
        }
    }
}

/// How the core behind an input buffer takes flits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    Eager,
    /// Up to so many flits of each channel per step.
    Slow(u32),
    Blocked,
}

/// One end with its core: packets to send, and what came.
pub struct End {
    pub lcb: AriesLcb,
    pub input: AriesInput,
    pub backlog: VecDeque<(usize, Vec<Flit>)>,
    /// Flits of the packet being pushed.
    pub pushing: VecDeque<Flit>,
    /// Push at most so many flits per step.
    pub push_flits: usize,
    /// Push packets flit by flit although nothing limits them.
    pub flit_by_flit: bool,
    pub drain: Drain,
    partial: [Vec<Flit>; VCS],
    pub next_id: [u32; VCS],
    pub got_id: [u32; VCS],
    pub poisoned: u64,
    pub cut: u64,
    pub events: Vec<LinkEvent>,
    pub frame_bytes: usize,
    /// Which process of this end it is.
    pub number: u32,
    /// Ids may be missing: the session was lost in between.
    pub gaps_allowed: bool,
}

pub struct Pair {
    pub now: Time,
    pub ends: [End; 2],
    /// Towards end A, towards end B.
    pub wires: [Wire; 2],
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    last_arrival: [Time; 2],
    sequence: u64,
    pub rng: Rng,
    /// What was sent, and to which end, while `taping`.
    pub tape: Vec<(usize, Vec<u8>)>,
    pub taping: bool,
    pub frames: [u64; 2],
    pub bytes: [u64; 2],
}

pub fn name(node: &str, port: u8) -> EndName {
    EndName {
        node: node.to_owned(),
        port,
    }
}

pub fn config(end: usize) -> LinkConfigBuilder {
    let (local, peer) = (name("left", 3), name("right", 5));
    let builder = if end == A {
        LinkConfig::builder(7, LinkEnd::A, local, peer)
    } else {
        LinkConfig::builder(7, LinkEnd::B, peer, local)
    };
    let epoch = 1_000 + 1_000 * end as u32;
    builder.fabric(0xfab).epoch(epoch).rate(LaneRate::G14_0)
}

pub fn aries(builder: LinkConfigBuilder, sets: SetProfile) -> AriesLinkConfig {
    AriesLinkConfig::new(builder.build().unwrap(), sets).unwrap()
}

/// A configuration with the wire's own depths and times.
pub fn live(end: usize) -> AriesLinkConfig {
    aries(config(end), SetProfile::live())
}

/// A configuration with the chip's depths and times, some fifty times as slow.
pub fn paper(end: usize) -> AriesLinkConfig {
    let clock = crate::link::LinkClock::Paced { dilation: 50 };
    let builder = config(end).profile(LinkProfile::paper()).clock(clock);
    aries(builder, SetProfile::paper())
}

pub fn with(config: AriesLinkConfig, change: impl Fn(&mut LcbRegisters)) -> AriesLinkConfig {
    let mut registers = *config.registers();
    change(&mut registers);
    config.with_registers(registers).unwrap()
}

/// End `end` named `epoch`, with the times of `profile`.
pub fn made(end: usize, epoch: u32, profile: LinkProfile) -> AriesLinkConfig {
    aries(
        config(end).epoch(epoch).profile(profile),
        SetProfile::live(),
    )
}

/// A frame on `lanes` that claims to be from the other end of `to` and says nothing new, but acknowledges
/// `more` sets beyond what the other end has.
pub fn forge(pair: &Pair, to: usize, lanes: u8, more: u64, flits: &[Flit]) -> Vec<u8> {
    let from = &pair.ends[1 - to].lcb;
    let next = pair.ends[to].lcb.rx.expected();
    let control = ControlSet {
        next: next as u32,
        ack: (from.rx.expected() + more) as u32,
        ..ControlSet::default()
    };
    let tail = Tail {
        number: (next & 0x7f) as u8,
        ..Tail::default()
    };
    let mut all = [Flit::IDLE; DATA_FLITS];
    all[..flits.len()].copy_from_slice(flits);
    let data = Set::Data(DataSet { flits: all, tail });
    let (tx_epoch, rx_epoch) = from.epochs();
    let header = FrameHeader {
        kind: FrameKind::Sets,
        end: from.config().end(),
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes,
        phits: 0,
    };
    let seeds = from.aries_config().registers().scrambler_seeds;
    let scrambler = Scrambler::new(seeds, lanes);
    let mut buf = vec![0; 1_472];
    let mut writer = SetFrameWriter::new(&header, &mut buf).unwrap();
    let sets = [Set::Control(control), data];
    for set in &sets[..1 + usize::from(!flits.is_empty())] {
        let slot = writer.slot().unwrap();
        set.emit(slot);
        scrambler.apply(slot);
    }
    let length = writer.finish().unwrap();
    buf.truncate(length);
    buf
}

/// Data for `to` in the name of the other end, which knows nothing of them.
pub fn plant(pair: &mut Pair, to: usize) {
    let from = &mut pair.ends[1 - to];
    from.send(0, 6);
    let (_, flits) = from.backlog.pop_back().unwrap();
    let frame = forge(pair, to, 7, 0, &flits);
    pair.inject(to, &frame);
}

/// A packet that carries `id` (30 bits) in its head and something made of it in the others.
pub fn packet(vc: usize, id: u32, flits: usize) -> Vec<Flit> {
    let to = NodeId::from_bits(id >> 12);
    let id12 = (id & 0xfff) as u16;
    let head = Head::new(vc >= 4, flits as u8, to, Routing::Adaptive1, id12, 9).with_vc(vc as u8);
    let body = |i: usize| Flit::new(u64::from(id) * 0x1_0001 + (i as u64) * 77);
    core::iter::once(head.flit())
        .chain((1..flits).map(body))
        .collect()
}

fn id_of(head: Head) -> u32 {
    head.destination().bits() << 12 | u32::from(head.packet_id())
}

impl End {
    pub fn new(config: AriesLinkConfig, now: Time, frame_bytes: usize) -> Self {
        let input = AriesInput::new(&config);
        Self {
            lcb: AriesLcb::new(config, now),
            input,
            backlog: VecDeque::new(),
            pushing: VecDeque::new(),
            push_flits: usize::MAX,
            flit_by_flit: false,
            drain: Drain::Eager,
            partial: Default::default(),
            next_id: [0; VCS],
            got_id: [0; VCS],
            poisoned: 0,
            cut: 0,
            events: Vec::new(),
            frame_bytes,
            number: 0,
            gaps_allowed: false,
        }
    }

    /// The same end as a new process: its packets have higher numbers, what comes may have gaps.
    pub fn incarnation(mut self, number: u32) -> Self {
        assert!(number < 1 << 6, "6 of 30 bits");
        self.number = number;
        self.next_id = [number << 24; VCS];
        self.gaps_allowed = true;
        self
    }

    /// Queues the next packet on `vc` for sending.
    pub fn send(&mut self, vc: usize, flits: usize) {
        let id = self.next_id[vc];
        self.next_id[vc] += 1;
        self.backlog.push_back((vc, packet(vc, id, flits)));
    }

    pub fn push(&mut self) {
        let mut left = self.push_flits;
        while left > 0 {
            if let Some(flit) = self.pushing.pop_front() {
                self.lcb.push(flit);
                left -= 1;
                continue;
            }
            // The oldest packet of each channel may go: channels do not block each other.
            let mut seen = 0_u8;
            let ready = self.backlog.iter().position(|(vc, flits)| {
                let first = seen & (1 << vc) == 0;
                seen |= 1 << vc;
                first && self.lcb.can_begin(*vc, flits.len())
            });
            let Some(index) = ready else { return };
            let (_, flits) = self.backlog.remove(index).unwrap();
            if self.push_flits == usize::MAX && !self.flit_by_flit {
                self.lcb.push_packet(&flits);
            } else {
                self.pushing = flits.into();
            }
        }
    }

    pub fn take(&mut self) {
        for vc in 0..VCS {
            let most = match self.drain {
                Drain::Eager => u32::MAX,
                Drain::Slow(flits) => flits,
                Drain::Blocked => 0,
            };
            for _ in 0..most.min(self.input.len(vc)) {
                self.pop(vc);
            }
        }
        self.give_back();
    }

    pub fn give_back(&mut self) {
        for vc in 0..VCS {
            let acks = self.input.take_acks(vc);
            self.lcb.vc_freed(vc, acks);
        }
    }

    pub fn pop(&mut self, vc: usize) {
        let flit = self.input.pop(vc).unwrap();
        let partial = &mut self.partial[vc];
        partial.push(flit);
        let head = Head::parse(partial[0]).expect("a packet begins with its head");
        if partial.len() == usize::from(head.length()) {
            let packet = core::mem::take(partial);
            self.check(vc, head, &packet);
        }
    }

    /// What flows out comes once and in order, and is what was sent.
    fn check(&mut self, vc: usize, head: Head, got: &[Flit]) {
        let id = id_of(head);
        let mut expected_flits = packet(vc, id, got.len());
        if head.poisoned() {
            self.poisoned += 1;
            expected_flits[0] = head.flit();
        }
        let ones = Flit::new(u64::MAX);
        if got.last() == Some(&ones) && got.len() > 1 {
            assert!(self.gaps_allowed, "packet {id} was cut");
            let there = got.iter().take_while(|flit| **flit != ones).count();
            assert_eq!(got[..there], expected_flits[..there], "contents");
            self.cut += 1;
            self.got_id[vc] = id + 1;
            return;
        }
        let expected = &mut self.got_id[vc];
        if self.gaps_allowed {
            assert!(id >= *expected, "packet {id} again, expected {expected}");
        } else {
            assert_eq!(id, *expected, "each packet once and in order on {vc}");
        }
        assert_eq!(got, expected_flits, "contents");
        *expected = id + 1;
    }
}

impl Pair {
    pub fn new(seed: u64) -> Self {
        Self::with(seed, live(A), live(B), 1_472)
    }

    /// With the chip's own depths, over a cable that keeps frames in order.
    pub fn paper(seed: u64) -> Self {
        let mut pair = Self::with(seed, paper(A), paper(B), 1_472);
        pair.wire(|wire| {
            wire.ordered = true;
            wire.delay = Duration::from_us(2);
        });
        pair
    }

    pub fn with(seed: u64, a: AriesLinkConfig, b: AriesLinkConfig, frame_bytes: usize) -> Self {
        let now = Time::from_ns(1_000);
        Self {
            now,
            ends: [End::new(a, now, frame_bytes), End::new(b, now, frame_bytes)],
            wires: [Wire::clean(), Wire::clean()],
            flying: BTreeMap::new(),
            last_arrival: [Time::ZERO; 2],
            sequence: 0,
            rng: Rng::new(seed, 0),
            tape: Vec::new(),
            taping: false,
            frames: [0; 2],
            bytes: [0; 2],
        }
    }

    /// A pair that is up.
    pub fn up(seed: u64) -> Self {
        let mut pair = Self::new(seed);
        pair.wait_up();
        pair
    }

    pub fn wait_up(&mut self) {
        self.run_until(Duration::from_ms(2_000), |pair| {
            pair.ends
                .iter()
                .all(|end| end.lcb.is_active() && end.lcb.credits()[4] > 0)
        });
    }

    /// A frame that comes at this moment, whoever sent it.
    pub fn inject(&mut self, to: usize, bytes: &[u8]) {
        let now = self.now;
        let end = &mut self.ends[to];
        end.lcb.handle_frame(now, bytes, &mut end.input);
    }

    /// A new process at `end`, which names itself `epoch`.
    pub fn replace(&mut self, end: usize, epoch: u32) {
        let number = self.ends[end].number + 1;
        let profile = self.ends[end].lcb.config().profile().clone();
        let frame_bytes = self.ends[end].frame_bytes;
        let config = made(end, epoch, profile);
        self.ends[end] = End::new(config, self.now, frame_bytes).incarnation(number);
        self.ends[1 - end].gaps_allowed = true;
    }

    /// The last frame on tape towards `to` that is as `wanted` says.
    pub fn last_taped(&self, to: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut tape = self.tape.iter().rev();
        let found = tape.find(|(end, bytes)| *end == to && wanted(bytes));
        found.expect("such a frame was sent").1.clone()
    }

    pub fn wire(&mut self, change: impl Fn(&mut Wire)) {
        self.wires.iter_mut().for_each(change);
    }

    /// Puts a frame on the wire towards `to`.
    pub fn launch(&mut self, to: usize, mut bytes: Vec<u8>) {
        if self.taping {
            self.tape.push((to, bytes.clone()));
        }
        let wire = self.wires[to].clone();
        if wire.cut || bytes.len() > wire.most_bytes || self.rng.chance(wire.loss, 1_000) {
            return;
        }
        if wire.noisy_lanes | wire.silent_lanes != 0 {
            self.add_noise(&wire, &mut bytes);
        }
        if self.rng.chance(wire.corrupt, 1_000)
            && let Some(area) = frame::phit_area(&bytes)
        {
            for _ in 0..=self.rng.below(3) {
                let bit = self.rng.below(area.len() as u64 * 8) as usize;
                bytes[area.start + bit / 8] ^= 1 << (bit % 8);
            }
        }
        if self.rng.chance(wire.mangle, 1_000) {
            let at = self.rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << self.rng.below(8);
        }
        let copies = 1 + u64::from(self.rng.chance(wire.duplicate, 1_000));
        for _ in 0..copies {
            let jitter = self.rng.below(wire.jitter.as_ps() + 1);
            // Like netem: some frames go at once, the others after the delay.
            let mut at = if self.rng.chance(wire.reorder, 1_000) {
                self.now + Duration::from_ps(1)
            } else {
                self.now + wire.delay + Duration::from_ps(jitter)
            };
            if wire.ordered {
                at = at.max(self.last_arrival[to]);
            }
            self.last_arrival[to] = at;
            self.sequence += 1;
            self.flying.insert((at, self.sequence), (to, bytes.clone()));
        }
    }

    fn add_noise(&mut self, wire: &Wire, bytes: &mut [u8]) {
        let Some(area) = frame::phit_area(bytes) else {
            return;
        };
        let active = frame::FrameHeader::parse(bytes).unwrap().lanes;
        let silent = (0..3)
            .filter(|lane| wire.silent_lanes & (1 << lane) != 0)
            .fold(0, |mask, lane| mask | bits_of_lane(active, lane));
        for word in 0..area.len() / 3 {
            let at = area.start + 3 * word;
            for (byte, mask) in bytes[at..at + 3].iter_mut().zip(&silent.to_be_bytes()[1..]) {
                *byte &= !mask;
            }
            for lane in 0..3 {
                if wire.noisy_lanes & (1 << lane) != 0 && self.rng.chance(1, wire.noise_of) {
                    let mask = bits_of_lane(active, lane);
                    let nth = self.rng.below(8) as usize;
                    let bit = (0..24).filter(|bit| mask >> bit & 1 != 0).nth(nth);
                    if let Some(bit) = bit {
                        flip(&mut bytes[area.clone()], word, 1 << bit);
                    }
                }
            }
        }
    }

    /// Lets both ends do what they can at this moment.
    pub fn settle(&mut self) {
        for index in [A, B] {
            let now = self.now;
            let end = &mut self.ends[index];
            end.lcb.handle_timers(now, &mut end.input);
            end.take();
            end.push();
            let mut buf = vec![0xa5; end.frame_bytes];
            for round in 0.. {
                assert!(round < 100_000, "an end that never stops sending");
                let end = &mut self.ends[index];
                let Some(length) = end.lcb.poll_frame(now, &mut buf) else {
                    break;
                };
                assert!(length <= buf.len());
                self.frames[index] += 1;
                self.bytes[index] += length as u64;
                self.launch(1 - index, buf[..length].to_vec());
                let end = &mut self.ends[index];
                end.push();
            }
            let end = &mut self.ends[index];
            assert!(
                !end.lcb.wants_to_send(now),
                "says that it wants to send and does not"
            );
            while let Some(event) = end.lcb.poll_event() {
                end.events.push(event);
            }
        }
    }

    /// Goes to the next thing that happens, at most `limit` from now. False when nothing would.
    pub fn step(&mut self, limit: Duration) -> bool {
        self.settle();
        let mut at = self.flying.keys().next().map(|(at, _)| *at);
        for end in &self.ends {
            if let Some(wake) = end.lcb.next_wakeup() {
                at = Some(at.map_or(wake, |at| at.min(wake)));
            }
            // A core that is in the middle of something goes on soon.
            let busy = !end.pushing.is_empty()
                || !end.input.is_empty() && end.drain != Drain::Blocked
                || end.push_flits != usize::MAX
                    && end
                        .backlog
                        .iter()
                        .any(|(vc, flits)| end.lcb.can_begin(*vc, flits.len()));
            if busy {
                let soon = self.now + Duration::from_us(1);
                at = Some(at.map_or(soon, |at| at.min(soon)));
            }
        }
        let end_of_step = self.now + limit;
        let Some(at) = at else {
            self.now = end_of_step;
            return false;
        };
        self.now = at.max(self.now).min(end_of_step);
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (to, bytes) = entry.remove();
            let end = &mut self.ends[to];
            end.lcb.handle_frame(self.now, &bytes, &mut end.input);
        }
        true
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut steps = 0;
        while self.now < end {
            self.step(end.since(self.now));
            steps += 1;
            assert!(steps < 3_000_000, "time does not pass: {}", self.state());
        }
        self.settle();
    }

    pub fn run_until(&mut self, most: Duration, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + most;
        let mut steps = 0;
        loop {
            self.settle();
            if done(self) {
                return;
            }
            assert!(
                self.now < end,
                "not done in {} ms: {}",
                most.as_ns() / 1_000_000,
                self.state()
            );
            self.step(end.since(self.now));
            steps += 1;
            assert!(steps < 3_000_000, "time does not pass: {}", self.state());
        }
    }

    pub fn state(&self) -> String {
        let mut text = String::new();
        for end in &self.ends {
            text += &format!(
                "\n{:?} backlog {} unacked {} sets {} packets, credits {:?} sent {:?} got {:?} rtt {:?} rto {:?} hold {:?}",
                end.lcb.state(),
                end.backlog.len(),
                end.lcb.unacknowledged_sets(),
                end.lcb.unacknowledged_packets(),
                end.lcb.credits(),
                end.next_id,
                end.got_id,
                end.lcb.round_trip(),
                end.lcb.retry_timeout(),
                end.lcb.reorder_hold(),
            );
            let mut add = |name: &str, value| {
                if value != 0 {
                    text += &format!("\n    {name} {value}");
                }
            };
            end.lcb.counters().for_each(&mut add);
            end.lcb.set_counters().for_each(&mut add);
        }
        text
    }

    /// Waits until everything sent has arrived and nothing is left anywhere; checks that all credits
    /// are back.
    pub fn finish(&mut self, most: Duration) {
        self.run_until(most, |pair| {
            (0..2).all(|index| {
                let (end, other) = (&pair.ends[index], &pair.ends[1 - index]);
                end.backlog.is_empty()
                    && end.pushing.is_empty()
                    && end.lcb.unacknowledged_packets() == 0
                    && end.lcb.unacknowledged_sets() == 0
                    && end.input.is_empty()
                    && (other.gaps_allowed || other.got_id == end.next_id)
            })
        });
        self.run_until(Duration::from_ms(2_000), |pair| pair.credits_are_back());
        for end in &self.ends {
            assert!(end.partial.iter().all(Vec::is_empty), "half a packet left");
        }
    }

    pub fn credits_are_back(&self) -> bool {
        (0..2).all(|index| {
            let sets = self.ends[1 - index].lcb.aries_config().sets();
            let most = sets.private_flits + sets.common_flits;
            let end = &self.ends[index];
            end.lcb.credits() == [most; VCS] && end.lcb.far_flits() == 0
        })
    }

    /// Queues `count` packets of mixed lengths and channels at `end`.
    pub fn load(&mut self, end: usize, count: usize) {
        for _ in 0..count {
            let vc = self.rng.below(VCS as u64) as usize;
            let flits = 1 + self.rng.below(MAX_PACKET_FLITS as u64) as usize;
            self.ends[end].send(vc, flits);
        }
    }

    pub fn count(&self, end: usize, read: impl Fn(&LinkCounters) -> u64) -> u64 {
        read(self.ends[end].lcb.counters())
    }

    pub fn sets(&self, end: usize, read: impl Fn(&SetCounters) -> u64) -> u64 {
        read(self.ends[end].lcb.set_counters())
    }
}
