//! A link end between processes: buffers and credits of flits above a carrier.

use std::collections::VecDeque;

use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::t3e::burst::{BURST_FLITS, Burst};
use phitwire_framing::t3e::flit::{Control, Flit, FlitKind, VCS, vc};
use phitwire_framing::t3e::maintenance::MAINTENANCE_FLITS;

use super::buffer::FlitBuffer;
use super::burst::BurstPacket;
use super::config::{Depths, FlitLinkConfig};
use super::counters::FlitCounters;
use super::credits::{Credits, IdleWord, MAX_COUNT, Owed};
use super::input::FlitInput;
use super::noise::LaneErrors;
use super::suspect_packets::SuspectPackets;
use phitwire::link::common::Common;
use phitwire::link::{EndAccount, LinkEvent, LinkFault, LinkView, NodeLink, Units};
use phitwire::packets::PacketEnd;
use phitwire::time::{Duration, Time};

/// Maximum number of barrier and maintenance flits that wait for the next burst.
pub const MAX_URGENT: usize = 64;
/// Maximum number of received barrier and maintenance flits not yet taken: more than a frame holds.
const MAX_URGENT_INPUT: usize = 1_024;
/// Channel number that reports arrived barrier and maintenance flits.
pub const URGENT: usize = VCS;

const _: () = assert!((Depths::LIVE.adaptive as u64) <= MAX_COUNT as u64);

/// A link end between processes. It carries flits over a complete link end for packets, the
/// carrier, and follows the carrier's sessions.
///
/// It is not a [`Wire`](phitwire::link::Wire) of its own: frames, lanes and resending are the
/// carrier's, which knows nothing of flits.
///
/// Call order: that of every [`NodeLink`], and any number of [`push`](Self::push).
#[derive(Debug)]
pub struct FlitEnd {
    carrier: PacketEnd<BurstPacket>,
    input: FlitInput,
    depths: Depths,
    /// The session that credits belong to, by the epochs of both ends.
    session: Option<(u32, u32)>,
    /// Number of session starts and ends.
    sessions: u64,
    /// Whether the peer's grant has arrived.
    granted: bool,
    /// The grant still to send.
    grant: Option<u64>,
    credits: Credits,
    owed: Owed,
    /// When to return credits even if there is no other traffic.
    return_at: Time,
    /// Packets that may wait for flits that do not exist.
    suspect_packets: SuspectPackets,
    out: VecDeque<Flit>,
    urgent: VecDeque<Flit>,
    wires_taken: bool,
    noise: LaneErrors,
    counters: FlitCounters,
}

impl FlitEnd {
    /// Flits of `vc` that may be pushed; zero while an urgent flit holds the wires.
    #[inline]
    pub fn credits(&self, vc: usize) -> u32 {
        match self.wires_taken {
            true => 0,
            false => self.credits.left(vc),
        }
    }

    /// Sets whether a barrier or maintenance flit holds the wires, so that no other may be pushed.
    #[inline]
    pub fn take_wires(&mut self, taken: bool) {
        self.wires_taken = taken;
    }

    /// Whether flits may be pushed, given credits.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.granted
    }

    /// Number of session starts and ends: while it is unchanged, no pushed flit is lost.
    pub fn sessions(&self) -> u64 {
        self.sessions
    }

    /// Sends a flit of a packet.
    ///
    /// # Panics
    /// Without a credit for the flit.
    #[inline]
    pub fn push(&mut self, vc: usize, flit: Flit) {
        debug_assert!(self.granted, "credits are the peer's grant");
        self.credits.take(vc);
        self.counters.tx_flits += 1;
        self.out.push_back(flit);
    }

    /// Sends several flits of one packet, of which the first may be its header.
    ///
    /// # Panics
    /// Without credits for all of them.
    #[inline]
    pub fn push_many(&mut self, vc: usize, words: &[u64], is_head: bool) {
        self.credits.take_many(vc, words.len() as u32);
        self.counters.tx_flits += words.len() as u64;
        let flits = words.iter().enumerate();
        let flits = flits.map(|(at, word)| Flit::data(*word, vc, is_head && at == 0));
        self.out.extend(flits);
    }

    /// Sends a barrier or maintenance flit ahead of others. Returns false if too many wait or the
    /// link is down. If the first flit of a maintenance packet is accepted, so are the rest;
    /// packets must not interleave, since the routers ahead reserve a port for the rest.
    pub fn push_urgent(&mut self, flit: Flit) -> bool {
        let takes = match flit.control.is_head() {
            true => self.takes_urgent(),
            false => self.granted && self.urgent.len() < MAX_URGENT,
        };
        if takes {
            self.urgent.push_back(flit);
        }
        debug_assert!(self.urgent.len() <= MAX_URGENT);
        takes
    }

    /// Whether [`push_urgent`](Self::push_urgent) accepts a barrier flit or the first of a
    /// maintenance packet, leaving room for the rest of a packet.
    #[inline]
    pub fn takes_urgent(&self) -> bool {
        self.granted && self.urgent.len() + MAINTENANCE_FLITS <= MAX_URGENT
    }

    pub fn sent_flits(&self) -> u64 {
        self.counters.tx_flits
    }

    /// Counters of flits here, those of the buffers included.
    pub fn flit_counters(&self) -> FlitCounters {
        let mut counters = self.counters.clone();
        counters.add(&self.input.buffer.counters);
        counters
    }

    /// The carrier, for carrier-specific data.
    pub fn carrier(&self) -> &PacketEnd<BurstPacket> {
        &self.carrier
    }

    /// Detects a change of the carrier's session.
    #[inline]
    fn follow(&mut self) {
        let session = self.carrier.is_active().then(|| self.carrier.epochs());
        if session != self.session {
            self.begin(session);
        }
        debug_assert_eq!(self.session.is_some(), self.carrier.is_active());
    }

    #[cold]
    fn begin(&mut self, session: Option<(u32, u32)>) {
        let given_up = self.carrier.take_given_up();
        let in_bursts = given_up.iter().flat_map(|packet| packet.0.flits());
        let of_packets = |flit: &Flit| matches!(flit.control.kind(), FlitKind::Data(_));
        let in_bursts = in_bursts.filter(of_packets).count();
        self.counters.tx_discarded_flits += (in_bursts + self.out.len()) as u64;
        self.out.clear();
        self.urgent.clear();
        self.session = session;
        self.sessions += 1;
        self.granted = false;
        self.credits = Credits::default();
        self.owed = Owed::NONE;
        self.return_at = Time::NEVER;
        self.suspect_packets = SuspectPackets::NONE;
        self.input.cut_off();
        // Drop slots freed earlier: they are part of the new grant.
        self.input.freed = [0; VCS];
        self.grant = session.map(|_| IdleWord::Grant(self.input.buffer.grant()).emit());
    }

    /// Moves the buffers' counters to the end, from which statistics are read.
    #[inline]
    fn count(&mut self) {
        let counted = core::mem::take(&mut self.input.buffer.counters);
        self.counters.add(&counted);
    }

    /// Takes in the bursts that have arrived.
    fn take_bursts(&mut self) {
        while let Some(burst) = self.carrier.input_mut().pop(0) {
            for flit in burst.0.flits() {
                self.take_flit(flit);
            }
        }
        self.carrier.give_back();
        if self.input.buffer.may_doubt() || self.suspect_packets.deadline() != Time::NEVER {
            let common = self.carrier.common();
            let until = common.now + common.profile.packet_silence;
            self.suspect_packets.look(&self.input.buffer, until);
        }
    }

    #[inline]
    fn take_flit(&mut self, flit: Flit) {
        if let Some(vc) = flit.control.credit() {
            self.take_credits(vc, 1);
        }
        match flit.control.kind() {
            FlitKind::Data(vc) => self.input.receive(vc.into(), flit),
            FlitKind::Idle => self.take_idle(flit.word),
            FlitKind::Barrier | FlitKind::Maintenance => {
                if self.input.urgent.len() < MAX_URGENT_INPUT {
                    self.input.urgent.push_back(flit);
                } else {
                    self.counters.rx_urgent_lost += 1;
                    self.input.drop_begun();
                }
            }
        }
    }

    /// Handles the word of an idle flit.
    #[inline]
    fn take_idle(&mut self, word: u64) {
        match IdleWord::parse(word) {
            Some(IdleWord::Nothing) => {}
            Some(IdleWord::Credits(counts)) => {
                for (vc, slots) in counts.into_iter().enumerate() {
                    self.take_credits(vc, slots);
                }
            }
            Some(IdleWord::Grant(slots)) => self.take_grant(slots),
            None => self.counters.rx_bad_idle_words += 1,
        }
    }

    /// Takes the peer's credits; rejects those before its grant or in excess of the largest grant.
    #[inline]
    fn take_credits(&mut self, vc: usize, slots: u32) {
        if !self.granted || !self.credits.give_many(vc, slots) {
            self.counters.rx_impossible_credits += u64::from(slots);
        }
    }

    fn take_grant(&mut self, slots: [u32; VCS]) {
        // Ignore a second grant in a session: it would forge credits.
        if !core::mem::replace(&mut self.granted, true) {
            self.credits = Credits::new(slots);
        }
    }

    /// Whether there are flits for the carrier.
    fn has_flits(&self, now: Time) -> bool {
        !self.out.is_empty()
            || !self.urgent.is_empty()
            || self.grant.is_some()
            || self.return_at <= now
    }

    /// Passes bursts to the carrier while it has room.
    fn fill_carrier(&mut self, now: Time) {
        while self.has_flits(now) && self.carrier.room(0) > 0 {
            let is_plain = self.grant.is_none() && self.urgent.is_empty() && !self.noise.any();
            let burst = match is_plain {
                true => self.plain_burst(),
                false => Burst::of(|| self.next_flit()),
            };
            if !self.owed.any() {
                self.return_at = Time::NEVER;
            }
            self.carrier.push(BurstPacket(burst));
        }
    }

    /// A burst with only flits of packets and credits. On the machine's links each flit returns one
    /// credit, and idle flits cost nothing; here one idle flit returns the rest.
    #[inline]
    fn plain_burst(&mut self) -> Burst {
        let mut burst = Burst::default();
        let count = self.out.len().min(BURST_FLITS);
        for (at, flit) in self.out.drain(..count).enumerate() {
            burst.words[at] = flit.word;
            burst.controls[at] = flit.control;
        }
        let is_live = !self.carrier.common().profile.emulated_time;
        let tellers = if is_live { count } else { BURST_FLITS };
        for control in &mut burst.controls[..tellers] {
            let Some(vc) = self.owed.next_credit() else {
                break;
            };
            *control = control.with_credit(vc);
        }
        if is_live && count < BURST_FLITS && self.owed.any() {
            burst.words[count] = IdleWord::Credits(self.owed.take_all_credits()).emit();
        }
        burst
    }

    #[inline]
    fn next_flit(&mut self) -> Flit {
        if let Some(word) = self.grant.take() {
            let control = Control::IDLE;
            return Flit { word, control };
        }
        let next = match self.urgent.pop_front() {
            None => self.out.pop_front(),
            urgent => urgent,
        };
        let mut flit = next.unwrap_or_default();
        if let Some(vc) = self.owed.next_credit() {
            flit.control = flit.control.with_credit(vc);
        }
        if self.noise.any() && flit.control.kind() != FlitKind::Idle {
            self.counters.tx_flipped_bits += u64::from(self.noise.apply(&mut flit));
        }
        flit
    }

    /// Owes the peer `slots` credits of `vc`; returns them soon if it may lack credits.
    fn owe(&mut self, vc: usize, slots: u32) {
        self.owed.add(vc, slots);
        let profile = &self.carrier.common().profile;
        let now = self.carrier.common().now;
        // In emulated time return them at once: the chip's links do so with the next flit.
        let waits = profile.emulated_time || self.owed.of(vc) >= self.depths.of(vc).div_ceil(4);
        let delay = if waits {
            Duration::ZERO
        } else {
            profile.ack_delay
        };
        self.return_at = self.return_at.min(now + delay);
    }
}

#[cfg(any(test, feature = "testing"))]
impl FlitEnd {
    /// The carrier, for tests only.
    pub(super) fn carrier_mut(&mut self) -> &mut PacketEnd<BurstPacket> {
        &mut self.carrier
    }

    /// Loses the last lane.
    pub(super) fn die(&mut self, now: Time) {
        self.carrier.die(now);
        self.follow();
    }
}

impl NodeLink for FlitEnd {
    type Config = FlitLinkConfig;
    type Input = FlitInput;

    const LINK: &'static str = "T3E";
    const VC_NAMES: &'static [&'static str] = &vc::NAMES;

    fn new(config: FlitLinkConfig, now: Time) -> Self {
        let link = &config.carrier.link;
        let seed = u64::from(link.link()) << 1 | u64::from(link.end() as u8);
        Self {
            carrier: PacketEnd::new(config.carrier, now),
            input: FlitInput {
                buffer: match config.corrects {
                    true => FlitBuffer::correcting(config.depths),
                    false => FlitBuffer::new(config.depths),
                },
                arrived: [0; VCS],
                freed: [0; VCS],
                urgent: VecDeque::new(),
            },
            depths: config.depths,
            session: None,
            sessions: 0,
            granted: false,
            grant: None,
            credits: Credits::default(),
            owed: Owed::NONE,
            return_at: Time::NEVER,
            suspect_packets: SuspectPackets::NONE,
            out: VecDeque::new(),
            urgent: VecDeque::new(),
            wires_taken: false,
            noise: LaneErrors::new(seed),
            counters: FlitCounters::default(),
        }
    }

    #[inline]
    fn input(&self) -> &FlitInput {
        &self.input
    }

    #[inline]
    fn input_mut(&mut self) -> &mut FlitInput {
        &mut self.input
    }

    fn handle_frame(&mut self, now: Time, bytes: &[u8]) {
        self.carrier.handle_frame(now, bytes);
        self.follow();
        self.take_bursts();
        self.count();
    }

    fn handle_timers(&mut self, now: Time) {
        self.carrier.handle_timers(now);
        self.follow();
        for vc in self.suspect_packets.due(now) {
            debug_assert!(
                self.input.buffer.doubtful(vc).is_some(),
                "the flit is still in doubt"
            );
            self.input.arrived[vc] += self.input.buffer.give_up(vc);
        }
        self.count();
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        self.carrier.handle_suspension(now, span);
    }

    fn next_wakeup(&self) -> Time {
        let timers = self
            .carrier
            .next_wakeup()
            .min(self.suspect_packets.deadline());
        // If the carrier has no room, a frame must arrive before credits can be returned.
        match self.carrier.room(0) {
            0 => timers,
            _ => timers.min(self.return_at),
        }
    }

    #[inline]
    fn wants_to_send(&self, now: Time) -> bool {
        self.has_flits(now) && self.carrier.room(0) > 0 || self.carrier.wants_to_send(now)
    }

    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        self.fill_carrier(now);
        self.carrier.poll_frame(now, buf)
    }

    fn poll_event(&mut self) -> Option<LinkEvent> {
        self.carrier.poll_event()
    }

    fn give_back(&mut self) {
        let freed = core::mem::take(&mut self.input.freed);
        if self.session.is_none() {
            return; // The next session's grant includes them.
        }
        for (vc, freed) in freed
            .into_iter()
            .enumerate()
            .filter(|(_, freed)| *freed > 0)
        {
            self.owe(vc, freed);
        }
    }

    fn link_down(&mut self, now: Time) {
        self.carrier.link_down(now);
        self.follow();
    }

    fn link_up(&mut self, now: Time) {
        self.carrier.link_up(now);
    }

    fn apply_fault(&mut self, now: Time, fault: LinkFault) -> bool {
        match fault {
            LinkFault::LaneNoise { lane, per_bit } => self.noise.set(lane, per_bit),
            fault => {
                let suffers = self.carrier.apply_fault(now, fault);
                self.follow();
                suffers
            }
        }
    }
}

impl LinkView for FlitEnd {
    #[inline]
    fn common(&self) -> &Common {
        self.carrier.common()
    }

    /// Unacknowledged bursts, including those not yet formed.
    fn unacknowledged_packets(&self) -> u64 {
        let waiting = self.out.len().div_ceil(BURST_FLITS) as u64;
        self.carrier.unacknowledged_packets() + waiting
    }

    fn sent(&self) -> u64 {
        self.carrier.sent()
    }

    fn resent(&self) -> u64 {
        self.carrier.resent()
    }

    fn bytes_per_turn(&self) -> usize {
        self.carrier.bytes_per_turn()
    }

    fn reorder_hold(&self) -> Duration {
        self.carrier.reorder_hold()
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.carrier.for_each_counter(visit);
        self.counters.for_each(visit);
    }

    fn bad_checks(&self) -> u64 {
        let own = &self.counters;
        self.carrier.bad_checks() + own.rx_header_errors + own.rx_data_errors
    }

    fn lane_layout(&self) -> LaneLayout {
        self.carrier.lane_layout()
    }

    fn account(&self) -> EndAccount {
        let carrier = self.carrier.account();
        EndAccount {
            units: Units {
                credits: "flits",
                unacknowledged: "bursts",
                conserved: "bursts",
            },
            active: self.granted,
            credits: self.credits.all().to_vec(),
            offers: self.depths.all().to_vec(),
            unsent: self.out.len() as u64,
            ..carrier
        }
    }
}
