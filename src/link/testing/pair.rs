//! Two ends and the wire between them.

use std::collections::BTreeMap;

use phitwire_framing::carrier::frame::FrameHeader;

use super::rig::{A, B, FRAME_BYTES, Link, config, live};
use crate::kit::Attendance;
use crate::link::testing::end::{Drain, End};
use crate::link::{DownReason, LinkCounters, LinkEvent, LinkView, NodeLink};
use crate::rng::Rng;
use crate::time::{Duration, Time};

/// Effects of a wire on frames in one direction.
#[derive(Clone, Debug)]
pub struct Wire {
    /// Frames lost, per 1,000 frames, like all counts up to `mangle`.
    pub loss: u64,
    pub duplicate: u64,
    /// Frames sent ahead of delayed ones.
    pub reorder: u64,
    /// Frames with a few payload bits flipped.
    pub corrupt: u64,
    /// Frames with one bit flipped anywhere.
    pub mangle: u64,
    pub delay: Duration,
    pub jitter: Duration,
    /// Whether frames keep their order regardless of jitter, as on a cable.
    pub ordered: bool,
    pub cut: bool,
    /// Sender's lanes whose bits flip, with probability 1 in `noise_of` per 24-bit word.
    pub noisy_lanes: u8,
    pub noise_of: u64,
    /// Sender's lanes that carry nothing.
    pub silent_lanes: u8,
    /// Longer frames are dropped.
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

pub struct Pair<L: Link> {
    pub now: Time,
    /// Attended time of each end; unused unless `attends`.
    clocks: [Attendance; 2],
    pub attends: bool,
    /// Frames in the sockets of a stopped end.
    sockets: [Option<Vec<Vec<u8>>>; 2],
    pub ends: [End<L>; 2],
    /// The wire towards end A, and the one towards end B.
    pub wires: [Wire; 2],
    flying: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    last_arrival: [Time; 2],
    sequence: u64,
    pub rng: Rng,
    /// Frames sent while `taping`, each with the end that it was sent to.
    pub tape: Vec<(usize, Vec<u8>)>,
    pub taping: bool,
    pub frames: [u64; 2],
    pub bytes: [u64; 2],
}

/// Injects data into `to` in the name of its peer, which did not send it.
pub fn plant<L: Link>(pair: &mut Pair<L>, to: usize) {
    let from = &mut pair.ends[1 - to];
    from.send(0, 6);
    let (_, words) = from.backlog.pop_back().expect("the packet was sent");
    let frame = L::forge(pair, to, 7, 0, &words);
    pair.inject(to, &frame);
}

impl<L: Link> Pair<L> {
    pub fn new(seed: u64) -> Self {
        Self::with(seed, live::<L>(A), live::<L>(B), FRAME_BYTES)
    }

    pub fn with(seed: u64, a: L::Config, b: L::Config, frame_bytes: usize) -> Self {
        let now = Time::from_ns(1_000);
        Self {
            now,
            clocks: [Attendance::new(now); 2],
            attends: true,
            sockets: [None, None],
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

    pub fn up(seed: u64) -> Self {
        let mut pair = Self::new(seed);
        pair.wait_up();
        pair
    }

    pub fn wait_up(&mut self) {
        let answers = L::VCS / 2;
        self.run_until(Duration::from_ms(2_000), |pair| {
            let up = |end: &End<L>| end.lcb.is_active() && L::credits(&end.lcb, answers) > 0;
            pair.ends.iter().all(up)
        });
    }

    pub fn is_active(&self) -> bool {
        self.ends.iter().all(|end| end.lcb.is_active())
    }

    /// Whether both ends are active in the same session.
    pub fn both_are_up(&self) -> bool {
        let [a, b] = [A, B].map(|end| self.ends[end].lcb.epochs());
        self.is_active() && a == (b.1, b.0)
    }

    /// Why sessions of `end` ended.
    pub fn downs(&self, end: usize) -> Vec<DownReason> {
        let down = |event: &LinkEvent| match event {
            LinkEvent::Down { why, .. } => Some(*why),
            _ => None,
        };
        self.ends[end].events.iter().filter_map(down).collect()
    }

    /// Packets that `end` reported as discarded when its sessions ended.
    pub fn discarded(&self, end: usize) -> u64 {
        let of = |event: &LinkEvent| match event {
            LinkEvent::Down {
                discarded_packets, ..
            } => *discarded_packets,
            _ => 0,
        };
        self.ends[end].events.iter().map(of).sum()
    }

    /// The current time of an end.
    pub fn own(&mut self, end: usize) -> Time {
        match (self.attends, &self.sockets[end]) {
            (false, _) => self.now,
            (true, Some(_)) => self.clocks[end].now(),
            (true, None) => self.clocks[end].look(self.now, Duration::from_ps(u64::MAX)),
        }
    }

    /// Stops the process of an end.
    pub fn freeze(&mut self, end: usize) {
        self.own(end);
        self.sockets[end].get_or_insert_default();
    }

    /// Resumes the process of an end with the frames that arrived since. Timers run first, as in a
    /// process that reads its sockets in parts.
    pub fn thaw(&mut self, end: usize) {
        let Some(frames) = self.sockets[end].take() else {
            return;
        };
        if self.attends {
            let clock = &mut self.clocks[end];
            let (now, span) = (
                clock.look(self.now, Duration::ZERO),
                clock.take_standstill(),
            );
            self.ends[end].lcb.handle_suspension(now, span);
        }
        self.settle();
        frames.iter().for_each(|frame| self.inject(end, frame));
        self.settle();
    }

    /// Drops the frames in the sockets of a stopped end.
    pub fn sockets_lose(&mut self, end: usize) {
        self.sockets[end].iter_mut().for_each(Vec::clear);
    }

    /// Delivers a frame now, from any sender.
    pub fn inject(&mut self, to: usize, bytes: &[u8]) {
        let now = self.own(to);
        let end = &mut self.ends[to];
        end.lcb.handle_frame(now, bytes);
    }

    pub fn link_down(&mut self, end: usize) {
        let now = self.own(end);
        self.ends[end].lcb.link_down(now);
    }

    pub fn link_up(&mut self, end: usize) {
        let now = self.own(end);
        self.ends[end].lcb.link_up(now);
    }

    /// Replaces the process at `end` by one with `epoch`.
    pub fn replace(&mut self, end: usize, epoch: u32) {
        let number = self.ends[end].number + 1;
        let profile = self.ends[end].lcb.config().profile().clone();
        let frame_bytes = self.ends[end].frame_bytes;
        let builder = config::<L>(end).epoch(epoch).profile(profile);
        let config = L::again(&self.ends[end].lcb, builder);
        self.ends[end] = End::new(config, self.now, frame_bytes).incarnation(number);
        self.ends[1 - end].gaps_allowed = true;
    }

    pub fn allow_gaps(&mut self) {
        self.ends.iter_mut().for_each(|end| end.gaps_allowed = true);
    }

    /// Starts a new recording of the frames sent.
    pub fn restart_tape(&mut self) {
        self.tape.clear();
        self.taping = true;
    }

    /// The last taped frame towards `to` that `wanted` accepts.
    pub fn last_taped(&self, to: usize, wanted: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut tape = self.tape.iter().rev();
        let found = tape.find(|(end, bytes)| *end == to && wanted(bytes));
        found.expect("a frame of this kind was sent").1.clone()
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
            && let Some(area) = L::LAYOUT.area(&bytes)
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
        let Some(area) = L::LAYOUT.area(bytes) else {
            return;
        };
        let active = FrameHeader::parse(bytes).expect("an end sent it").lanes;
        let lanes = L::LAYOUT.lanes();
        let each = 0..lanes.count() as u8;
        let silent = each
            .clone()
            .filter(|lane| wire.silent_lanes & (1 << lane) != 0)
            .fold(0, |mask, lane| mask | lanes.bits_of(active, lane));
        lanes.map_area(&mut bytes[area], |mut word| {
            word &= !silent;
            for lane in each.clone() {
                if wire.noisy_lanes & (1 << lane) != 0 && self.rng.chance(1, wire.noise_of) {
                    let mask = lanes.bits_of(active, lane);
                    let nth = self.rng.below(8) as usize;
                    let mut bits = (0..lanes.word_bits()).filter(|bit| mask >> bit & 1 != 0);
                    word ^= bits.nth(nth).map_or(0, |bit| 1 << bit);
                }
            }
            word
        });
    }

    /// Lets both ends do everything they can at the current time.
    pub fn settle(&mut self) {
        for index in [A, B] {
            if self.sockets[index].is_some() {
                continue;
            }
            let now = self.own(index);
            let end = &mut self.ends[index];
            end.lcb.handle_timers(now);
            end.take();
            end.push();
            let mut buf = vec![0xa5; end.frame_bytes];
            for round in 0.. {
                assert!(round < 100_000, "the end never stops sending");
                let end = &mut self.ends[index];
                let Some(length) = end.lcb.poll_frame(now, &mut buf) else {
                    break;
                };
                assert!(length <= buf.len());
                self.frames[index] += 1;
                self.bytes[index] += length as u64;
                self.launch(1 - index, buf[..length].to_vec());
                self.ends[index].push();
            }
            let end = &mut self.ends[index];
            assert!(
                !end.lcb.wants_to_send(now),
                "the end wants to send but does not"
            );
            while let Some(event) = end.lcb.poll_event() {
                end.events.push(event);
            }
        }
    }

    /// Advances to the next event, at most `limit` from now. Returns false if there is none.
    pub fn step(&mut self, limit: Duration) -> bool {
        self.settle();
        let mut at = self.flying.keys().next().map(|(at, _)| *at);
        for (index, end) in self.ends.iter().enumerate() {
            if self.sockets[index].is_some() {
                continue;
            }
            let wake = end.lcb.next_wakeup();
            if wake != Time::NEVER {
                let wake = self.clocks[index].clock_time(wake);
                at = Some(at.map_or(wake, |at| at.min(wake)));
            }
            // A core in the middle of its work continues soon.
            let can_begin =
                |(vc, words): &(usize, Vec<_>)| L::can_begin(&end.lcb, *vc, words.len());
            let busy = !end.pushing.is_empty()
                || !L::is_empty(end.lcb.input()) && end.drain != Drain::Blocked
                || end.push_words != usize::MAX && end.backlog.iter().any(can_begin);
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
            match &mut self.sockets[to] {
                Some(socket) => socket.push(bytes),
                None => self.inject(to, &bytes),
            }
        }
        true
    }

    pub fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        let mut steps = 0;
        while self.now < end {
            self.step(end.since(self.now));
            steps += 1;
            assert!(
                steps < 3_000_000,
                "virtual time does not advance: {}",
                self.state()
            );
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
            assert!(
                steps < 3_000_000,
                "virtual time does not advance: {}",
                self.state()
            );
        }
    }

    pub fn state(&self) -> String {
        let mut text = String::new();
        for end in &self.ends {
            let credits = (0..L::VCS).map(|vc| L::credits(&end.lcb, vc));
            let credits: Vec<_> = credits.collect();
            text += &format!(
                "\n{:?} backlog {} unacked {} {} credits {credits:?} sent {:?} got {:?} rtt {:?} \
                 rto {:?} hold {:?}",
                end.lcb.state(),
                end.backlog.len(),
                end.lcb.unacknowledged_packets(),
                L::described(end),
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
            L::for_each_own(&end.lcb, &mut add);
        }
        text
    }

    /// Waits until everything sent has arrived and nothing is left; checks that all credits are
    /// back and, where credits travel like packets, acknowledged.
    pub fn finish(&mut self, most: Duration) {
        self.run_until(most, |pair| {
            (0..2).all(|index| {
                let (end, other) = (&pair.ends[index], &pair.ends[1 - index]);
                end.backlog.is_empty()
                    && end.pushing.is_empty()
                    && end.lcb.unacknowledged_packets() == 0
                    && L::is_settled(&end.lcb)
                    && L::is_empty(end.lcb.input())
                    && (L::LOSES_TAILS && other.gaps_allowed || other.got_id == end.next_id)
            })
        });
        self.run_until(Duration::from_ms(2_000), |pair| {
            let mut ends = pair.ends.iter();
            pair.credits_are_back() && ends.all(|end| end.lcb.unacknowledged_packets() == 0)
        });
        for end in &self.ends {
            assert!(
                end.partial.iter().all(Vec::is_empty),
                "half a packet is left"
            );
        }
    }

    pub fn credits_are_back(&self) -> bool {
        (0..2).all(|index| {
            let (lcb, offered) = (&self.ends[index].lcb, L::offered(&self.ends[1 - index].lcb));
            (0..L::VCS).all(|vc| L::credits(lcb, vc) == offered) && L::far_words(lcb) == 0
        })
    }

    /// Queues `count` packets of mixed lengths and channels at `end`.
    pub fn load(&mut self, end: usize, count: usize) {
        for _ in 0..count {
            let vc = self.rng.below(L::VCS as u64) as usize;
            let words = self.rng.below(L::PACKET_WORDS.len() as u64) as usize;
            self.ends[end].send(vc, L::PACKET_WORDS.start + words);
        }
    }

    /// Sends `packets` from both ends, which must arrive within `most`.
    pub fn exchange(&mut self, packets: usize, most: Duration) {
        self.load(A, packets);
        self.load(B, packets);
        self.finish(most);
    }

    pub fn count(&self, end: usize, read: impl Fn(&LinkCounters) -> u64) -> u64 {
        read(self.ends[end].lcb.counters())
    }
}
