//! Runs operations decoded from bytes on two Aries link ends, for the fuzz target and the replay of
//! its corpus.
//!
//! For any bytes, nothing may panic, no end may send for ever at one instant, and no end may count
//! more credits or sets than exist. Unless frames were forged, input buffers deliver the pushed
//! packets, each once and in order, and all credits return in the end. Unless a link was taken down
//! as well, all packets arrive.

use std::collections::VecDeque;

use phitwire::link::{EndName, LinkClock, LinkConfig, LinkFault, LinkProfile, LinkView, NodeLink};
use phitwire::time::{Duration, Time};
use phitwire_aries::link::STANDARD;
use phitwire_aries::link::{AriesLcb, AriesLinkConfig, LcbRegisters, SetProfile};
use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, NodeId, Routing, VCS};
use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter, set_frame_len};
use phitwire_framing::aries::set::{ControlSet, DATA_FLITS, DataSet, Set, Tail};
use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use phitwire_framing::carrier::training::Training;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets pushed.
    pub pushed: u64,
    /// Packets that arrived.
    pub arrived: u64,
    /// Sets resent.
    pub replayed: u64,
    /// Frames and sets rejected.
    pub refused: u64,
    pub is_forged: bool,
    pub was_down: bool,
}

/// Maximum number of frames in flight in one direction.
const MOST_FLYING: usize = 32;
/// Maximum number of flipped bits in a frame: the CRC of a set detects any five.
const MOST_FLIPS: u8 = 4;
/// Maximum number of rounds until everything has arrived over a clean wire.
const LIVENESS: usize = 20_000;

struct End {
    lcb: AriesLcb,
    next: [u32; VCS],
    got: [u32; VCS],
    partial: [Vec<Flit>; VCS],
}

struct Flying {
    bytes: Vec<u8>,
    flips: u8,
}

pub struct Pair {
    now: Time,
    ends: [End; 2],
    /// Frames in flight towards each end.
    wires: [VecDeque<Flying>; 2],
    /// Whether frames must keep their order: six bits of number cannot distinguish a late set from
    /// a new one.
    is_cable: bool,
    outcome: Outcome,
}

/// Packet number `id` of a virtual channel.
pub fn packet(vc: usize, id: u32, flits: usize) -> Vec<Flit> {
    let to = NodeId::from_bits(id >> 12);
    let id12 = (id & 0xfff) as u16;
    let head = Head::new(vc >= 4, flits as u8, to, Routing::Adaptive1, id12, 9).with_vc(vc as u8);
    let body = |i: usize| Flit::new(u64::from(id) * 0x1_0001 + (i as u64) * 77 + vc as u64);
    core::iter::once(head.flit())
        .chain((1..flits).map(body))
        .collect()
}

fn config(end: usize, flags: u8) -> AriesLinkConfig {
    let name = |node: &str, port| EndName {
        node: node.to_owned(),
        port,
    };
    let (left, right) = (name("left", 3), name("right", 5));
    let builder = match end {
        0 => LinkConfig::builder(STANDARD, 7, LinkEnd::A, left, right),
        _ => LinkConfig::builder(STANDARD, 7, LinkEnd::B, right, left),
    };
    // Keep all lanes: another test covers lanes that are given up.
    let mut builder = builder
        .fabric(0xfab)
        .epoch(1_000 + 1_000 * end as u32)
        .lane_retry_threshold(1_000_000);
    let mut sets = SetProfile::live();
    if flags & 1 != 0 {
        let clock = LinkClock::Paced { dilation: 50 };
        builder = builder.profile(LinkProfile::paper()).clock(clock);
        sets = SetProfile::paper();
    } else if flags & 2 != 0 {
        sets.window_sets = 4;
        sets.private_flits = 14;
        sets.common_flits = 10;
        sets.held_sets = 4;
    }
    let link = builder.build().expect("a configuration of this test");
    let config = AriesLinkConfig::new(link, sets).expect("a profile of this test");
    // Do not scramble, so that the bytes of the corpus are readable.
    let registers = LcbRegisters {
        scrambler_seeds: [0; 3],
        ..*config.registers()
    };
    config
        .with_registers(registers)
        .expect("registers of this test")
}

impl End {
    fn new(config: AriesLinkConfig, now: Time) -> Self {
        Self {
            lcb: AriesLcb::new(config, now),
            next: [0; VCS],
            got: [0; VCS],
            partial: Default::default(),
        }
    }

    fn push(&mut self, vc: usize, flits: usize) -> bool {
        if !self.lcb.wire().can_begin(vc, flits) {
            return false;
        }
        for flit in packet(vc, self.next[vc], flits) {
            self.lcb.push(flit);
        }
        self.next[vc] += 1;
        true
    }

    /// Takes at most `most` flits of a channel; returns the number of packets that arrived whole.
    fn take(&mut self, vc: usize, most: u32, outcome: &Outcome) -> u64 {
        let mut whole = 0;
        for _ in 0..most.min(self.lcb.input().len(vc)) {
            let flit = self.lcb.input_mut().pop(vc).expect("it has that many");
            self.partial[vc].push(flit);
            let Some(head) = Head::parse(self.partial[vc][0]) else {
                panic!("a packet that begins with no head");
            };
            if self.partial[vc].len() == usize::from(head.length()) {
                let flits = core::mem::take(&mut self.partial[vc]);
                if !outcome.is_forged {
                    self.got[vc] = check(vc, &flits, self.got[vc], outcome.was_down);
                }
                whole += 1;
            }
        }
        self.lcb.give_back();
        whole
    }

    fn take_all(&mut self, outcome: &Outcome) -> u64 {
        (0..VCS).map(|vc| self.take(vc, u32::MAX, outcome)).sum()
    }
}

/// Checks that a packet equals the pushed one and keeps the order of its channel. Returns the id
/// expected next.
pub fn check(vc: usize, flits: &[Flit], expected: u32, gaps: bool) -> u32 {
    let head = Head::parse(flits[0]).expect("the caller has parsed it");
    let id = head.destination().bits() << 12 | u32::from(head.packet_id());
    let mut wanted = packet(vc, id, flits.len());
    if head.poisoned() {
        wanted[0] = head.flit();
    }
    // Expect a final flit of ones: it fills a packet cut short by the end of a session.
    let cut = gaps && flits.len() > 1 && flits.last() == Some(&Flit::new(u64::MAX));
    if !cut {
        assert_eq!(flits, wanted, "packet {id} of channel {vc}");
    }
    if gaps {
        assert!(id >= expected, "packet {id} of channel {vc} came again");
    } else {
        assert_eq!(id, expected, "packets of channel {vc}, each once");
    }
    id + 1
}

/// The operands not yet used.
struct Operands<'a>(&'a [u8]);

impl Operands<'_> {
    fn next(&mut self) -> Option<usize> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first.into())
    }

    fn take(&mut self, most: usize) -> &[u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

impl Pair {
    pub fn new(flags: u8) -> Self {
        let now = Time::from_ns(1_000);
        Self {
            now,
            ends: [0, 1].map(|end| End::new(config(end, flags), now)),
            wires: Default::default(),
            is_cable: flags & 1 != 0,
            outcome: Outcome::default(),
        }
    }

    fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let end = &mut self.ends[to];
        end.lcb.handle_frame(self.now, bytes);
    }

    /// Writes a frame of at most `sets` sets; false when there is nothing to send.
    fn poll(&mut self, from: usize, sets: usize) -> bool {
        let mut buf = vec![0xa5; set_frame_len(sets).max(256)];
        let Some(length) = self.ends[from].lcb.poll_frame(self.now, &mut buf) else {
            assert!(
                !self.ends[from].lcb.wants_to_send(self.now),
                "says that it wants to send and does not"
            );
            return false;
        };
        buf.truncate(length);
        let wire = &mut self.wires[1 - from];
        if wire.len() == MOST_FLYING {
            wire.pop_front();
        }
        wire.push_back(Flying {
            bytes: buf,
            flips: 0,
        });
        true
    }

    fn timers(&mut self) {
        for end in &mut self.ends {
            end.lcb.handle_timers(self.now);
            while end.lcb.poll_event().is_some() {}
        }
    }

    /// Does everything that is due now over a clean wire, then advances time to the next event.
    fn round(&mut self) {
        self.timers();
        for from in 0..2 {
            for polls in 0.. {
                assert!(polls < 10_000, "an end that never stops sending");
                if !self.poll(from, 20) {
                    break;
                }
                while let Some(flying) = self.wires[1 - from].pop_front() {
                    self.deliver(1 - from, &flying.bytes);
                }
            }
        }
        for end in &mut self.ends {
            self.outcome.arrived += end.take_all(&self.outcome);
        }
        let soon = self.now + Duration::from_us(100);
        let wakes = self.ends.iter().map(|end| end.lcb.next_wakeup());
        self.now = wakes
            .fold(soon, Time::min)
            .max(self.now + Duration::from_ns(10));
    }

    fn rounds_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        for _ in 0..LIVENESS {
            if done(self) {
                return;
            }
            self.round();
        }
        panic!("{what} does not come, {:?}", self.outcome);
    }

    fn is_up(&self) -> bool {
        self.ends
            .iter()
            .all(|end| end.lcb.is_active() && end.lcb.wire().credits()[0] > 0)
    }

    fn most_credits(&self) -> u32 {
        let sets = self.ends[0].lcb.wire().config().sets();
        sets.private_flits + sets.common_flits
    }

    fn is_at_rest(&self) -> bool {
        let most = self.most_credits();
        (0..2).all(|index| {
            let (end, other) = (&self.ends[index], &self.ends[1 - index]);
            end.lcb.unacknowledged_packets() == 0
                && end.lcb.input().is_empty()
                && end.lcb.wire().credits() == [most; VCS]
                && (self.outcome.was_down || other.got == end.next)
        })
    }

    /// Checks the invariants that hold at any time.
    fn check_bounds(&self) {
        let most = self.most_credits();
        for end in &self.ends {
            assert!(
                end.lcb
                    .wire()
                    .credits()
                    .iter()
                    .all(|&credits| credits <= most)
            );
            let window = end.lcb.wire().config().sets().window_sets;
            assert!(end.lcb.wire().unacknowledged_sets() <= u64::from(window));
        }
    }

    /// Delivers a frame of the peer's session that the peer never sent.
    fn forge(&mut self, to: usize, kind: usize, operands: &mut Operands<'_>) {
        let (tx_epoch, rx_epoch) = self.ends[1 - to].lcb.epochs();
        let header = FrameHeader {
            kind: SetFrame::KIND,
            end: [LinkEnd::B, LinkEnd::A][to],
            link: 7,
            fabric: 0xfab,
            tx_epoch,
            rx_epoch,
            lanes: 7,
            units: 0,
        };
        let mut word = |bytes: usize| {
            let taken = operands.take(bytes);
            taken.iter().fold(0, |all, &b| all << 8 | u64::from(b))
        };
        let control = ControlSet {
            ack: word(4) as u32,
            next: word(4) as u32,
            vc_acks: [(); VCS].map(|()| word(1) as u32),
            ..ControlSet::default()
        };
        let tail = Tail {
            number: word(1) as u8 & 0x7f,
            ..Tail::default()
        };
        let flits = [(); DATA_FLITS].map(|()| Flit::new(word(6)));
        let data = Set::Data(DataSet { flits, tail });
        let both = [Set::Control(control), data];
        // Send both sets, the data set without the control set that positions it, or neither.
        let sets = [&both[..], &both[1..], &[]][kind % 3];
        let mut buf = vec![0; set_frame_len(sets.len().max(1))];
        let Ok(mut writer) = SetFrameWriter::new(&header, &mut buf) else {
            return;
        };
        for set in sets {
            if let Some(slot) = writer.slot() {
                set.emit(slot);
            }
        }
        if let Some(length) = writer.finish() {
            self.outcome.is_forged = true;
            self.deliver(to, &buf[..length]);
        }
    }

    fn control(&mut self, end: usize, what: usize) {
        let now = self.now;
        let lcb = &mut self.ends[end].lcb;
        let fault = match what % 8 {
            0 => LinkFault::ForceRetry,
            1 => LinkFault::BadCrc,
            2 => LinkFault::Reinit,
            3 => LinkFault::LoseClock(Duration::from_us(300)),
            4 => LinkFault::SoftError,
            5 => {
                let (wire, link, _) = lcb.parts_mut();
                wire.set_load(link, what as u8);
                return;
            }
            6 => {
                self.outcome.was_down = true;
                LinkFault::Down
            }
            _ => LinkFault::Up,
        };
        assert!(lcb.apply_fault(now, fault), "Aries links have this fault");
    }

    /// A frame in flight: its direction and its position.
    fn target(&self, operand: usize) -> Option<(usize, usize)> {
        let to = operand & 1;
        let flying = self.wires[to].len();
        let at = if self.is_cable { 0 } else { operand >> 1 };
        (flying > 0).then(|| (to, at % flying))
    }

    fn operation(&mut self, code: usize, operands: &mut Operands<'_>) -> Option<()> {
        let operand = operands.next()?;
        match code & 15 {
            0..=3 => {
                let flits = 1 + (operand & 15) % MAX_PACKET_FLITS;
                let pushed = self.ends[operand >> 7].push(operand >> 4 & 7, flits);
                self.outcome.pushed += u64::from(pushed);
            }
            4 => {
                self.poll(operand & 1, 1 + (operand >> 1 & 15));
            }
            5 | 6 => {
                if let Some((to, at)) = self.target(operand)
                    && let Some(flying) = self.wires[to].remove(at)
                {
                    self.deliver(to, &flying.bytes);
                }
            }
            7 => {
                if let Some((to, at)) = self.target(operand) {
                    self.wires[to].remove(at);
                }
            }
            8 if !self.is_cable => {
                if let Some((to, at)) = self.target(operand) {
                    let bytes = self.wires[to][at].bytes.clone();
                    self.deliver(to, &bytes);
                }
            }
            9 => {
                let bit = operands.next()? << 8 | operands.next()?;
                if let Some((to, at)) = self.target(operand)
                    && self.wires[to][at].flips < MOST_FLIPS
                {
                    let flying = &mut self.wires[to][at];
                    flying.flips += 1;
                    let bit = bit % (8 * flying.bytes.len());
                    flying.bytes[bit / 8] ^= 1 << (bit % 8);
                }
            }
            10 => {
                let us = (operand as u64 + 1).pow(2);
                self.now += Duration::from_us(us);
                self.timers();
            }
            11 => {
                let most = 1 + (operand >> 4) as u32;
                let whole = self.ends[operand & 1].take(operand >> 1 & 7, most, &self.outcome);
                self.outcome.arrived += whole;
            }
            12 => self.control(operand & 1, operand >> 1),
            13 => {
                let bytes = operands.take(operand >> 1).to_vec();
                let reads = SetFrame::parse(&bytes).is_ok() || Training::parse(&bytes).is_ok();
                self.outcome.is_forged |= reads;
                self.deliver(operand & 1, &bytes);
            }
            14 => self.forge(operand & 1, operand >> 1, operands),
            _ => (0..1 + operand % 4).for_each(|_| self.round()),
        }
        Some(())
    }

    /// Drops the frames in flight, brings the link up, and runs over a clean wire until both ends
    /// are at rest.
    fn come_to_rest(&mut self) {
        self.wires.iter_mut().for_each(VecDeque::clear);
        for end in &mut self.ends {
            end.lcb.link_up(self.now);
        }
        if self.outcome.is_forged {
            // Check only for panics: forged numbers may have stopped the session for good.
            (0..50).for_each(|_| self.round());
            return;
        }
        if self.outcome.was_down {
            // An end whose peer has lost the session learns of this from the peer's frames.
            (0..200).for_each(|_| self.round());
        }
        self.rounds_until("the link", Self::is_up);
        self.rounds_until("rest", Self::is_at_rest);
    }
}

/// Runs the operations encoded in `bytes`.
pub fn run(bytes: &[u8]) -> Outcome {
    let mut operands = Operands(bytes);
    let flags = operands.next().unwrap_or(0) as u8;
    let mut pair = Pair::new(flags);
    if flags & 4 == 0 {
        pair.rounds_until("the link", Pair::is_up);
    }
    // Limit the operations: longer lists would only slow the fuzzer down.
    for _ in 0..2_000 {
        let Some(code) = operands.next() else { break };
        if pair.operation(code, &mut operands).is_none() {
            break;
        }
        pair.check_bounds();
    }
    pair.come_to_rest();
    let mut outcome = pair.outcome;
    for end in &pair.ends {
        end.lcb
            .wire()
            .set_counters()
            .for_each(&mut |name: &str, count: u64| match name {
                "tx_replayed_sets" => outcome.replayed += count,
                _ if name.contains("bad") || name.contains("unplaced") => outcome.refused += count,
                _ => {}
            });
        end.lcb.counters().for_each(&mut |name: &str, count: u64| {
            outcome.refused += if name.starts_with("drop") { count } else { 0 };
        });
    }
    outcome
}
