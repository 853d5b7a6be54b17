//! Runs operations decoded from bytes on two T3E link ends, for the fuzz target and the replay of
//! its corpus.
//!
//! For any bytes, nothing may panic, no end may send for ever at one instant, and no end may count
//! more credits than a grant can carry. Unless bursts were forged, no end counts more credits than
//! slots exist, inputs deliver the pushed packets, each once and in order, and all credits return
//! in the end. Unless a link was taken down as well, all packets arrive.

use std::collections::VecDeque;

use phitwire::link::{
    EndName, LinkClock, LinkConfig, LinkProfile, LinkView, NodeLink, ReceiveBuffer,
};
use phitwire::packets::PacketLinkConfig;
use phitwire::time::{Duration, Time};
use phitwire_framing::carrier::frame::{CHECK_BYTES, LinkEnd, PLAIN_AT, seal};
use phitwire_framing::t3e::burst::Burst;
use phitwire_framing::t3e::check::Repair;
use phitwire_framing::t3e::flit::{Flit, VCS};
use phitwire_framing::t3e::header::{Command, Header, Name};
use phitwire_framing::t3e::packet::{PacketBuf, Request};
use phitwire_t3e::link::{CARRIER_LIVE, CARRIER_PAPER, Depths, FlitEnd, FlitLinkConfig, STANDARD};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Packets pushed.
    pub pushed: u64,
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets that arrived cut short.
    pub cut: u64,
    /// Bursts resent.
    pub replayed: u64,
    /// Frames and bursts rejected.
    pub refused: u64,
    /// Flits without a slot.
    pub misplaced: u64,
    pub is_forged: bool,
    pub was_down: bool,
}

/// Maximum number of frames in flight in one direction.
const MOST_FLYING: usize = 32;
/// Maximum number of flipped bits in a frame, which its checks detect.
const MOST_FLIPS: u8 = 3;
/// Maximum number of rounds until everything has arrived over a clean wire.
const LIVENESS: usize = 20_000;
/// Bytes of a frame before its bursts, and of each of them.
const CONTROL_BYTES: usize = 33;
const BURST_BYTES: usize = Burst::BYTES + CHECK_BYTES;
/// Maximum number of credits in a grant.
const MOST_CREDITS: u32 = 4_095;

const COMMANDS: [Command; 4] = [
    Command::Get1,
    Command::Put1,
    Command::CompareSwap,
    Command::Put8,
];

struct End {
    lcb: FlitEnd,
    next: [u32; VCS],
    got: [u32; VCS],
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
    outcome: Outcome,
}

/// Packet number `id` of a virtual channel.
pub fn packet(vc: usize, id: u32, command: usize) -> PacketBuf {
    let command = COMMANDS[command % COMMANDS.len()];
    let request = Request {
        address: id.into(),
        bytes: 64,
        ordered: false,
        name: Name::new(id & 0xf_ffff),
    };
    let data: [u64; 8] = core::array::from_fn(|word| u64::from(id) << 32 | (vc * 8 + word) as u64);
    PacketBuf::request(command, (3, 5), &request, &data[..command.words()])
}

fn config(end: usize, flags: u8) -> FlitLinkConfig {
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
    let (mut carrier, mut depths) = (CARRIER_LIVE, Depths::LIVE);
    if flags & 1 != 0 {
        let clock = LinkClock::Paced { dilation: 50 };
        builder = builder.profile(LinkProfile::paper()).clock(clock);
        (carrier, depths) = (CARRIER_PAPER, Depths::PAPER);
    } else if flags & 2 != 0 {
        depths = Depths::PROCESSOR;
    }
    FlitLinkConfig {
        carrier: PacketLinkConfig {
            link: builder.build().expect("a configuration of this test"),
            depths: carrier,
        },
        depths,
        corrects: true,
    }
}

impl End {
    fn new(config: FlitLinkConfig, now: Time) -> Self {
        let lcb = FlitEnd::new(config, now);
        Self {
            lcb,
            next: [0; VCS],
            got: [0; VCS],
        }
    }

    fn push(&mut self, vc: usize, command: usize) -> bool {
        let packet = packet(vc, self.next[vc], command);
        if (self.lcb.credits(vc) as usize) < packet.flits().len() {
            return false;
        }
        for (at, &word) in packet.flits().iter().enumerate() {
            self.lcb.push(vc, Flit::data(word, vc, at == 0));
        }
        self.next[vc] += 1;
        true
    }

    /// Takes at most `most` complete packets of a channel.
    fn take(&mut self, vc: usize, most: usize, outcome: &mut Outcome) {
        for _ in 0..most {
            if self.lcb.input().buffer().len(vc) == 0 {
                break;
            }
            let header = Header::parse(self.lcb.input().buffer().front(vc));
            let count = header.map_or(1, |(header, _)| header.command.flits());
            if (self.lcb.input().buffer().len(vc) as usize) < count {
                break;
            }
            let words: Vec<u64> = (0..count).map(|_| self.lcb.input_mut().pop(vc)).collect();
            if !outcome.is_forged {
                outcome.arrived += 1;
                match check(vc, &words, self.got[vc], outcome.was_down) {
                    Some(next) => self.got[vc] = next,
                    None => outcome.cut += 1,
                }
            }
        }
        while self.lcb.input_mut().pop_urgent().is_some() {}
        self.lcb.give_back();
    }

    fn take_all(&mut self, outcome: &mut Outcome) {
        (0..VCS).for_each(|vc| self.take(vc, usize::MAX, outcome));
    }
}

/// Checks that a packet equals the pushed one and keeps the order of its channel. Returns the id
/// expected next, or `None` if the packet was cut, which only `gaps` allows.
pub fn check(vc: usize, words: &[u64], expected: u32, gaps: bool) -> Option<u32> {
    let mut found = PacketBuf::from_flits(words).expect("no packet is longer");
    let (header, [_, repair]) = found.open().expect("a packet begins with its header");
    if gaps && repair == Repair::Hopeless {
        return None;
    }
    let id = Request::parse(&header, words[1]).address as u32;
    let command = COMMANDS.iter().position(|&own| own == header.command);
    let wanted = packet(vc, id, command.expect("no other was sent"));
    assert_eq!(words, wanted.flits(), "packet {id} of channel {vc}");
    if gaps {
        assert!(id >= expected, "packet {id} of channel {vc} came again");
    } else {
        assert_eq!(id, expected, "packets of channel {vc}, each once");
    }
    Some(id + 1)
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
            outcome: Outcome::default(),
        }
    }

    fn deliver(&mut self, to: usize, bytes: &[u8]) {
        let end = &mut self.ends[to];
        end.lcb.handle_frame(self.now, bytes);
    }

    /// Writes a frame of at most `bursts` bursts; false when there is nothing to send.
    fn poll(&mut self, from: usize, bursts: usize) -> bool {
        let mut buf = vec![0xa5; (PLAIN_AT + CONTROL_BYTES + bursts * BURST_BYTES).max(256)];
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
            end.take_all(&mut self.outcome);
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
        self.ends.iter().all(|end| end.lcb.is_up())
    }

    fn is_at_rest(&self) -> bool {
        (0..2).all(|index| {
            let (end, other) = (&self.ends[index], &self.ends[1 - index]);
            let account = end.lcb.account();
            account.unacknowledged == 0
                && account.unsent == 0
                && end.lcb.input().queued() == 0
                && account.credits == account.offers
                && (self.outcome.was_down || other.got == end.next)
        })
    }

    /// Checks the invariants that hold at any time.
    fn check_bounds(&self) {
        for end in &self.ends {
            let account = end.lcb.account();
            let all = account.credits.iter().zip(account.offers);
            for (&credits, slots) in all {
                let most = match self.outcome.is_forged {
                    true => MOST_CREDITS,
                    false => slots,
                };
                assert!(credits <= most, "{credits} credits");
            }
            // The fill of cut packets may exceed the slots by ten flits per packet.
            let slots: u32 = Depths::LIVE.all().iter().sum();
            assert!(end.lcb.input().queued() <= 11 * u64::from(slots));
        }
    }

    /// Writes other flits into the newest frame towards `to`, if it has any, and makes its checks
    /// valid.
    fn forge(&mut self, to: usize, operands: &mut Operands<'_>) {
        let at = PLAIN_AT + CONTROL_BYTES;
        let mut wire = self.wires[to].iter_mut().rev();
        let Some(flying) = wire.find(|flying| flying.bytes.len() >= at + BURST_BYTES) else {
            return;
        };
        let bursts = &mut flying.bytes[at..];
        for burst in bursts.chunks_exact_mut(BURST_BYTES) {
            let bytes = operands.take(Burst::BYTES);
            burst[..bytes.len()].copy_from_slice(bytes);
            seal(burst, Burst::BYTES);
            self.outcome.is_forged = true;
        }
    }

    /// Does the next operation; `None` at the end.
    fn step(&mut self, operands: &mut Operands<'_>) -> Option<()> {
        let (code, value) = (operands.next()?, operands.next()?);
        let end = value & 1;
        match code % 15 {
            0 | 1 => {
                let (vc, command) = ((value >> 1) % VCS, value >> 4);
                for _ in 0..=code / 15 % 8 {
                    self.outcome.pushed += u64::from(self.ends[end].push(vc, command));
                }
            }
            2 | 3 => {
                self.poll(end, value >> 4);
            }
            4 | 5 => {
                if let Some(flying) = self.wires[end].pop_front() {
                    self.deliver(end, &flying.bytes);
                }
            }
            6 => self.ends[end].take((value >> 1) % VCS, 1 + value / 16, &mut self.outcome),
            7 => {
                self.wires[end].pop_front();
            }
            8 => {
                let copy = self.wires[end].front().map(|flying| Flying {
                    bytes: flying.bytes.clone(),
                    flips: flying.flips,
                });
                self.wires[end].extend(copy);
            }
            9 => self.corrupt(end, value, operands),
            10 => {
                self.now += Duration::from_ns(1 << (value % 24));
                self.timers();
            }
            11 => self.timers(),
            12 => {
                self.outcome.was_down = true;
                let now = self.now;
                let lcb = &mut self.ends[end].lcb;
                match value & 2 {
                    0 => lcb.link_down(now),
                    _ => lcb.link_up(now),
                }
            }
            13 => {
                let bytes = operands.take(value).to_vec();
                self.deliver(end, &bytes);
            }
            _ => self.forge(end, operands),
        }
        self.check_bounds();
        Some(())
    }

    fn corrupt(&mut self, to: usize, value: usize, operands: &mut Operands<'_>) {
        let at = operands.next().unwrap_or(0) * 256 + value;
        let Some(flying) = self.wires[to].front_mut() else {
            return;
        };
        if flying.flips < MOST_FLIPS {
            let length = flying.bytes.len();
            flying.bytes[at / 8 % length] ^= 1 << (at % 8);
            flying.flips += 1;
        }
    }

    fn finish(mut self) -> Outcome {
        for wire in &mut self.wires {
            wire.clear();
        }
        let now = self.now;
        for end in &mut self.ends {
            end.lcb.link_up(now);
        }
        // Do not wait until the ends are at rest: hostile frames may have ended a session, and
        // forged bursts may have caused any state.
        if self.outcome.is_forged {
            for _ in 0..100 {
                self.round();
                self.check_bounds();
            }
        } else {
            self.rounds_until("the link", Self::is_up);
            self.rounds_until("rest", Self::is_at_rest);
        }
        for end in &self.ends {
            let counters = end.lcb.counters();
            self.outcome.replayed += counters.tx_retransmitted_packets;
            counters.for_each(&mut |name: &str, value: u64| {
                let is_drop = name.starts_with("drop_") || name == "rx_crc_errors";
                self.outcome.refused += u64::from(is_drop) * value;
            });
            let flits = end.lcb.flit_counters();
            self.outcome.misplaced += flits.rx_overflows
                + flits.rx_headless_flits
                + flits.rx_impossible_credits
                + flits.rx_bad_idle_words;
        }
        assert!(self.outcome.is_forged || self.outcome.misplaced == 0);
        self.outcome
    }
}

/// Runs the operations encoded in `bytes`: flags first, then operations of two bytes, some with
/// more.
pub fn run(bytes: &[u8]) -> Outcome {
    let mut operands = Operands(bytes);
    let flags = operands.next().unwrap_or(0) as u8;
    let mut pair = Pair::new(flags);
    // With this flag, the link begins in training.
    if flags & 4 == 0 {
        pair.rounds_until("the link", Pair::is_up);
    }
    while pair.step(&mut operands).is_some() {}
    pair.finish()
}
