//! A deterministic pair of link ends.

use std::collections::{BTreeMap, VecDeque};

use phitwire_framing::control::ControlWord;
use phitwire_framing::crc16::PacketCrc;
use phitwire_framing::frame::{self, FrameHeader, FrameKind, LinkEnd, emit_data, frame_len};
use phitwire_framing::lanes::bits_of_lane;
use phitwire_framing::number::PacketNumber;
use phitwire_framing::packet24::{EopStatus, Head, Vc};
use phitwire_framing::phit24::{Phit, PhitKind};

use crate::link::{
    EndName, InputQueue, Lcb, LinkConfig, LinkConfigBuilder, LinkEvent, LinkProfile,
};
use crate::rng::Rng;
use crate::time::{Duration, Time};

pub const A: usize = 0;
pub const B: usize = 1;
/// Length of a frame that says something but carries nothing.
pub const IDLE_FRAME_BYTES: usize = frame_len(frame::MIN_FRAME_PHITS);

/// What happens to frames on the way from one end to the other.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Parts in 1,000.
    pub loss: u64,
    pub duplicate: u64,
    pub reorder: u64,
    /// Frames in which a few bits of the phit area are flipped.
    pub corrupt: u64,
    /// Frames in which a byte anywhere is changed.
    pub mangle: u64,
    pub delay: Duration,
    pub jitter: Duration,
    pub cut: bool,
    /// Sender's lanes whose bits flip, with probability 1 in `noise_of` per phit.
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
            cut: false,
            noisy_lanes: 0,
            noise_of: 1,
            silent_lanes: 0,
            most_bytes: usize::MAX,
        }
    }
}

/// How the core behind an input queue takes phits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    Eager,
    /// Up to so many phits of each channel per step.
    Slow(u32),
    Blocked,
}

/// One end with its core: packets to send, and what came.
pub struct End {
    pub lcb: Lcb,
    pub input: InputQueue,
    pub backlog: VecDeque<(Vc, Vec<Phit>)>,
    /// Phits of the packet being pushed.
    pushing: VecDeque<Phit>,
    /// Push at most so many phits per step.
    pub push_phits: usize,
    pub drain: Drain,
    partial: [Vec<Phit>; 2],
    next_id: [u32; 2],
    pub got_id: [u32; 2],
    pub poisoned: u64,
    pub soft_errors: u64,
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
    sequence: u64,
    pub rng: Rng,
    /// What was sent, and to which end, while `taping`.
    pub tape: Vec<(usize, Vec<u8>)>,
    pub taping: bool,
    pub frames: [u64; 2],
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
    builder.fabric(0xfab).epoch(1_000 + 1_000 * end as u32)
}

/// End `end` named `epoch`, with the times of `profile`.
pub fn made(end: usize, epoch: u32, profile: LinkProfile) -> LinkConfig {
    config(end).epoch(epoch).profile(profile).build().unwrap()
}

/// A frame on `lanes` that claims to be from the other end of `to` and says nothing new, but acknowledges
/// `more` packets beyond what the other end has.
pub fn forge(pair: &Pair, to: usize, lanes: u8, more: u64, phits: &[Phit]) -> Vec<u8> {
    let from = &pair.ends[1 - to].lcb;
    let (tx_epoch, rx_epoch) = from.epochs();
    let header = FrameHeader {
        kind: FrameKind::Data,
        end: from.config().end(),
        link: 7,
        fabric: 0xfab,
        tx_epoch,
        rx_epoch,
        lanes,
        phits: 0,
    };
    let word = ControlWord {
        seq: PacketNumber::new(pair.ends[to].lcb.rx.expected()),
        ack: PacketNumber::new(from.rx.expected() + more),
        vc_ack: from.rx.acks.counts(),
        ..ControlWord::default()
    };
    let mut buf = vec![0; 1_472];
    let length = emit_data(&header, &word, &[phits, &[]], &mut buf).unwrap();
    buf.truncate(length);
    buf
}

/// Data for `to` in the name of the other end, which knows nothing of them.
pub fn plant(pair: &mut Pair, to: usize) {
    let from = &mut pair.ends[1 - to];
    from.send(Vc::Request, 6);
    let (_, phits) = from.backlog.pop_back().unwrap();
    let frame = forge(pair, to, 7, 0, &phits);
    pair.inject(to, &frame);
}

/// A healthy packet of `phits` phits whose second and third phits carry `id`.
pub fn packet(vc: Vc, id: u32, phits: usize) -> Vec<Phit> {
    let head = Head {
        dest: (id & 0x7fff) as u16,
        vc,
        hashed: false,
        adaptive: false,
        source_routed: false,
        payload: 0,
    };
    let mut crc = PacketCrc::new();
    let mut out = vec![Phit::new(PhitKind::Head, head.emit())];
    for i in 0..phits as u32 - 2 {
        out.push(Phit::new(
            PhitKind::Body,
            if i == 0 { id } else { id.wrapping_mul(i + 77) },
        ));
    }
    for phit in &out {
        crc.update(phit.content());
    }
    out.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::Healthy)));
    out
}

impl End {
    pub fn new(config: LinkConfig, now: Time, frame_bytes: usize) -> Self {
        let input = InputQueue::new(&config);
        Self {
            lcb: Lcb::new(config, now),
            input,
            backlog: VecDeque::new(),
            pushing: VecDeque::new(),
            push_phits: usize::MAX,
            drain: Drain::Eager,
            partial: Default::default(),
            next_id: [0; 2],
            got_id: [0; 2],
            poisoned: 0,
            soft_errors: 0,
            events: Vec::new(),
            frame_bytes,
            number: 0,
            gaps_allowed: false,
        }
    }

    /// The same end as a new process: its packets have higher numbers, what comes may have gaps.
    pub fn incarnation(mut self, number: u32) -> Self {
        assert!(number < 1 << 4, "4 of 22 bits");
        self.number = number;
        self.next_id = [number << 18; 2];
        self.gaps_allowed = true;
        self
    }

    /// Queues the next packet on `vc` for sending.
    pub fn send(&mut self, vc: Vc, phits: usize) {
        let id = self.next_id[vc.index()];
        self.next_id[vc.index()] += 1;
        self.backlog.push_back((vc, packet(vc, id, phits)));
    }

    fn push(&mut self) {
        let mut left = self.push_phits;
        while left > 0 {
            if let Some(phit) = self.pushing.pop_front() {
                self.lcb.push(phit);
                left -= 1;
                continue;
            }
            // The oldest packet whose channel is open: channels do not block each other.
            let ready = self
                .backlog
                .iter()
                .position(|(vc, _)| self.lcb.can_begin(*vc));
            let Some(index) = ready else { return };
            let (vc, phits) = self.backlog.remove(index).unwrap();
            assert!(
                !self
                    .backlog
                    .iter()
                    .take(index)
                    .any(|(other, _)| *other == vc),
                "order within a channel"
            );
            self.pushing = phits.into();
        }
    }

    fn take(&mut self) {
        for vc in Vc::ALL {
            let most = match self.drain {
                Drain::Eager => u32::MAX,
                Drain::Slow(phits) => phits,
                Drain::Blocked => 0,
            };
            for _ in 0..most.min(self.input.len(vc)) {
                self.pop(vc);
            }
        }
        self.give_back();
    }

    pub fn give_back(&mut self) {
        for vc in Vc::ALL {
            let acks = self.input.take_acks(vc);
            self.lcb.vc_freed(vc, acks);
        }
    }

    pub fn pop(&mut self, vc: Vc) {
        let phit = self.input.pop(vc);
        let partial = &mut self.partial[vc.index()];
        assert_eq!(phit.is_head(), partial.is_empty(), "heads begin packets");
        partial.push(phit);
        if phit.is_eop() {
            let packet = core::mem::take(partial);
            self.check(vc, &packet);
        }
    }

    /// Whatever flows out is a packet with a right CRC; the healthy ones come once and in order.
    fn check(&mut self, vc: Vc, got: &[Phit]) {
        let mut crc = PacketCrc::new();
        for phit in &got[..got.len() - 1] {
            crc.update(phit.content());
        }
        let status = crc
            .verify(got[got.len() - 1].content())
            .expect("the CRC handed up is right");
        match status {
            EopStatus::TransmitError => self.poisoned += 1,
            EopStatus::SoftError => {
                self.soft_errors += 1;
                self.got_id[vc.index()] += 1;
            }
            EopStatus::Healthy => {
                let expected = &mut self.got_id[vc.index()];
                let id = got[1].content();
                if self.gaps_allowed {
                    assert!(id >= *expected, "packet {id} again, expected {expected}");
                } else {
                    assert_eq!(id, *expected, "each packet once and in order on {vc:?}");
                }
                assert_eq!(got, packet(vc, id, got.len()), "contents");
                *expected = id + 1;
            }
        }
    }
}

impl Pair {
    pub fn new(seed: u64) -> Self {
        Self::with(
            seed,
            config(A).build().unwrap(),
            config(B).build().unwrap(),
            1_472,
        )
    }

    pub fn with(seed: u64, a: LinkConfig, b: LinkConfig, frame_bytes: usize) -> Self {
        let now = Time::from_ns(1_000);
        Self {
            now,
            ends: [End::new(a, now, frame_bytes), End::new(b, now, frame_bytes)],
            wires: [Wire::clean(), Wire::clean()],
            flying: BTreeMap::new(),
            sequence: 0,
            rng: Rng::new(seed, 0),
            tape: Vec::new(),
            taping: false,
            frames: [0; 2],
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
                .all(|end| end.lcb.is_active() && end.lcb.credits(Vc::Response) > 0)
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

    /// Records what is sent from now on, and nothing from before.
    pub fn tape_anew(&mut self) {
        self.tape.clear();
        self.taping = true;
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
            let at = if self.rng.chance(wire.reorder, 1_000) {
                self.now + Duration::from_ps(1)
            } else {
                self.now + wire.delay + Duration::from_ps(jitter)
            };
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
        for phit in 0..area.len() / 3 {
            let at = area.start + 3 * phit;
            for (byte, mask) in bytes[at..at + 3].iter_mut().zip(&silent.to_be_bytes()[1..]) {
                *byte &= !mask;
            }
            for lane in 0..3 {
                if wire.noisy_lanes & (1 << lane) != 0 && self.rng.chance(1, wire.noise_of) {
                    let mask = bits_of_lane(active, lane);
                    let nth = self.rng.below(8) as u32;
                    let bit = (0..24).filter(|bit| mask >> bit & 1 != 0).nth(nth as usize);
                    if let Some(bit) = bit {
                        phitwire_framing::lanes::flip(&mut bytes[area.clone()], phit, 1 << bit);
                    }
                }
            }
        }
    }

    /// Hands a frame to an end at once, past the wire.
    pub fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let end = &mut self.ends[to];
        end.lcb.handle_frame(self.now, bytes, &mut end.input);
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
                || end.push_phits != usize::MAX
                    && end.backlog.iter().any(|(vc, _)| end.lcb.can_begin(*vc));
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
            assert!(steps < 3_000_000, "time does not pass");
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
                "\n{:?} backlog {} unacked {} credits {:?} sent {:?} got {:?} queued {} rtt {:?} rto {:?} hold {:?}",
                end.lcb.state(),
                end.backlog.len(),
                end.lcb.unacknowledged_packets(),
                Vc::ALL.map(|vc| end.lcb.credits(vc)),
                end.next_id,
                end.got_id,
                end.input.len(Vc::Request) + end.input.len(Vc::Response),
                end.lcb.round_trip(),
                end.lcb.retry_timeout(),
                end.lcb.reorder_hold(),
            );
            end.lcb.counters().for_each(|name, value| {
                if value != 0 {
                    text += &format!("\n    {name} {value}");
                }
            });
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
                    && end.input.is_empty()
                    && other.got_id == end.next_id
            })
        });
        self.run_until(Duration::from_ms(2_000), |pair| pair.credits_are_back());
        for end in &self.ends {
            assert!(end.partial.iter().all(Vec::is_empty), "half a packet left");
        }
    }

    pub fn credits_are_back(&self) -> bool {
        (0..2).all(|index| {
            let offered = self.ends[1 - index]
                .lcb
                .config()
                .profile()
                .input_phits_per_vc;
            Vc::ALL
                .iter()
                .all(|vc| self.ends[index].lcb.credits(*vc) == offered)
        })
    }

    /// Queues `count` packets of mixed lengths and channels at `end`.
    pub fn load(&mut self, end: usize, count: usize) {
        for _ in 0..count {
            let vc = Vc::from_index(self.rng.below(2) as usize);
            let phits = 4 + self.rng.below(16) as usize;
            self.ends[end].send(vc, phits);
        }
    }

    pub fn count(&self, end: usize, read: impl Fn(&crate::link::LinkCounters) -> u64) -> u64 {
        read(self.ends[end].lcb.counters())
    }
}

/// The smallest frames there are: 48 phits.
pub const TINY: usize = frame_len(48);
