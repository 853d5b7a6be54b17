//! The receiving half of the Aries link control block.

use phitwire_framing::aries::flit::{Flit, VCS};
use phitwire_framing::aries::set::{
    DATA_FLITS, DataFlits, LANES, SetBytes, TENTH_AT, number_distance,
};

use super::acks::{AckTerms, Acks};
use super::config::AriesLinkConfig;
use super::counters::SetCounters;
use super::declared_gap::DeclaredGap;
use super::held::HeldSets;
use super::input::{AriesInput, Arrived};
use phitwire::link::LinkCounters;
use phitwire::link::common::Common;
use phitwire::link::config::LinkProfile;
use phitwire::link::credits::Impossible;
use phitwire::link::reorder_hold::ReorderHold;
use phitwire::link::round_trip::RoundTrip;
use phitwire::time::{Duration, Time};

/// Limit on the sets between two gaps that one nack covers: a separate nack would cost more.
const JOINED_GAPS: u64 = 3;

/// Session terms that the receiver needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveTerms {
    pub window: u16,
    /// Flits of an earlier session still in the input buffer.
    pub debt: [u32; VCS],
}

/// A pending nack: its set, its time, and whether the resent set measures a round trip.
#[derive(Clone, Copy, Debug)]
struct PendingNack {
    set: u64,
    at: Time,
    single: bool,
}

/// Receives the stream of sets: hands up sets in order and requests missing ones.
///
/// With `held_sets` 0, as on the chip, every set but the expected one is dropped, and a nack
/// requests everything from that one on. Otherwise sets after a gap are kept; a gap counts as lost
/// once it is older than late frames usually are on this link, and the nack requests the gap only.
#[derive(Debug)]
pub(super) struct Receiver {
    expected: u64,
    /// The peer is known to have sent everything below this set.
    top: u64,
    window: i64,
    held: HeldSets,
    pub acks: Acks,
    /// Gaps below this set have existed since this time.
    mark: Option<(u64, Time)>,
    /// Gaps below this were requested.
    declared: u64,
    asked: Option<PendingNack>,
    retry_due: Time,
    /// Range whose gaps the next frame sent requests.
    wanted: Option<(u64, u64)>,
    /// An earlier nack had no effect: the next one does not ride on data, which may be lost too.
    nack_repeated: bool,
    recovery_time: RoundTrip,
    hold: ReorderHold,
    /// A gap declared lost, watched until this time.
    late: Option<(Time, DeclaredGap)>,
    /// Consecutive sets with a bad CRC.
    pub bad_run: u8,
}

impl Receiver {
    pub fn new(config: &AriesLinkConfig, terms: ReceiveTerms, profile: &LinkProfile) -> Self {
        let quick = Duration::from_ps(profile.min_retry_timeout.as_ps() / 4);
        let sets = &config.sets;
        let acks = AckTerms {
            window: terms.window.into(),
            offered: sets.input_flits(),
            private: sets.private_flits,
            debt: terms.debt,
            full_numbers: sets.full_numbers,
            delay: profile.ack_delay,
        };
        Self {
            expected: 0,
            top: 0,
            window: terms.window.into(),
            held: HeldSets::new(sets.held_sets),
            acks: Acks::new(acks),
            mark: None,
            declared: 0,
            asked: None,
            retry_due: Time::NEVER,
            wanted: None,
            nack_repeated: false,
            recovery_time: RoundTrip::new(quick, profile.max_retry_timeout),
            hold: ReorderHold::new(profile.min_reorder_hold, profile.max_reorder_hold),
            late: None,
            bad_run: 0,
        }
    }

    /// The next set expected: all earlier ones were accepted.
    #[inline]
    pub fn expected(&self) -> u64 {
        self.expected
    }

    /// The requested set that has not arrived.
    #[inline]
    pub fn waits_for(&self) -> Option<u64> {
        (self.retry_due != Time::NEVER).then_some(self.expected)
    }

    /// Time for which a gap may currently be due to a late frame.
    pub fn reorder_hold(&self) -> Duration {
        self.hold.get()
    }

    /// The full number of the set that a control set names as the next one.
    ///
    /// # Errors
    /// If no control set of a correct peer can name it.
    #[inline]
    pub fn full_number(&self, next: u32) -> Result<u64, Impossible> {
        let ahead = i64::from(next.wrapping_sub(self.expected as u32) as i32);
        if ahead > self.window {
            return Err(Impossible);
        }
        self.expected.checked_add_signed(ahead).ok_or(Impossible)
    }

    /// Whether a control set that names `next` is more than a window late. The peer has since sent
    /// the set before the expected one, so everything that the control set announces has arrived,
    /// and the rest of it is out of date.
    #[inline]
    pub fn is_stale(&self, next: u64) -> bool {
        self.expected.saturating_sub(next) > self.window as u64
    }

    /// The full number of the set with these seven low bits.
    ///
    /// # Errors
    /// If no set has this number.
    #[inline]
    pub fn place_short(&self, number: u8) -> Result<u64, Impossible> {
        let ahead = number_distance(self.expected as u32, number);
        self.expected
            .checked_add_signed(ahead.into())
            .ok_or(Impossible)
    }

    /// Records that, according to a control set, everything below `next` was sent.
    #[inline]
    pub fn hint(&mut self, next: u64) {
        self.top = self.top.max(next);
    }

    /// Handles a set with a good CRC. Returns whether it is new.
    #[inline]
    pub fn data(
        &mut self,
        now: Time,
        set: u64,
        flits: DataFlits<'_>,
        input: &mut AriesInput,
        (counters, link): (&mut SetCounters, &mut LinkCounters),
    ) -> bool {
        if self.late.is_some() {
            self.record_arrival(set, now, counters);
        }
        if set == self.expected {
            let arrived = input.write_each(DATA_FLITS, |index| flits.flit(index));
            self.accepted(arrived, now, (counters, link));
            self.arrived(set, now);
            if !self.held.is_empty() {
                self.drain(now, input, (counters, link));
            }
            self.top = if self.held.keeps() {
                self.top.max(self.expected)
            } else {
                // The peer has rewound and resends the following sets.
                self.expected
            };
            return true;
        }
        self.out_of_turn(now, set, &flits.to_array(), counters)
    }

    fn out_of_turn(
        &mut self,
        now: Time,
        set: u64,
        flits: &[Flit; DATA_FLITS],
        counters: &mut SetCounters,
    ) -> bool {
        if set < self.expected || self.held.has(set) {
            counters.rx_duplicate_sets += 1;
            return false;
        }
        if set - self.expected >= self.window as u64 {
            counters.rx_bad_sets += 1; // No correct peer is so far ahead.
            return false;
        }
        self.top = self.top.max(set + 1);
        if !self.held.reaches(self.expected, set) {
            counters.rx_early_sets += 1;
            return true;
        }
        counters.rx_held_sets += 1;
        self.held.hold(set, flits);
        self.arrived(set, now);
        true
    }

    /// Records that the expected set has arrived; its flits are in the input buffer.
    #[inline]
    fn accepted(
        &mut self,
        arrived: Arrived,
        now: Time,
        (counters, link): (&mut SetCounters, &mut LinkCounters),
    ) {
        link.rx_packets += u64::from(arrived.packets);
        counters.rx_sets += 1;
        counters.rx_flits += u64::from(arrived.written);
        counters.rx_refused_flits += u64::from(arrived.refused);
        counters.rx_malformed_flits += u64::from(arrived.malformed);
        self.expected += 1;
        self.acks.accepted(arrived.written, self.expected, now);
    }

    fn drain(
        &mut self,
        now: Time,
        input: &mut AriesInput,
        (counters, link): (&mut SetCounters, &mut LinkCounters),
    ) {
        while let Some(flits) = self.held.take(self.expected) {
            self.accepted(input.write(&flits), now, (counters, link));
        }
    }

    /// Records the first arrival of a set.
    #[inline]
    fn arrived(&mut self, set: u64, now: Time) {
        if set >= self.declared {
            return;
        }
        // The peer is resending: postpone the next nack.
        self.retry_due = now + self.recovery_time.timeout();
        if let Some(asked) = self.asked.filter(|asked| asked.set <= set) {
            if asked.single && asked.set == set {
                self.recovery_time.sample(now.since(asked.at));
            }
            self.asked = None;
        }
    }

    fn record_arrival(&mut self, set: u64, now: Time, counters: &mut SetCounters) {
        if let Some((_, late)) = &mut self.late
            && let Some(extent) = late.record_arrival(set, set + 1, now)
        {
            counters.rx_spurious_gaps += 1;
            self.hold.too_short(extent);
            self.late = None;
        }
    }

    /// Handles a set that failed its CRC; `set` is its presumed number. Returns whether to
    /// reinitialise the lanes.
    pub fn bad(
        &mut self,
        set: Option<u64>,
        bytes: &SetBytes,
        limit: u8,
        link: &mut Common,
        counters: &mut SetCounters,
    ) -> bool {
        counters.rx_bad_crcs += 1;
        if let Some(set) = set
            && set >= self.expected
            && set - self.expected < self.window as u64
            && !self.held.has(set)
        {
            link.unit_rejected(set, words(bytes));
            self.top = self.top.max(set + 1);
            if self.held.keeps() {
                // Request it at once; if the nack is lost, the gap is found like any other.
                self.want(set, set + 1);
            }
        }
        if !self.held.keeps() {
            self.top = self.top.max(self.expected + 1);
        }
        self.bad_run = self.bad_run.saturating_add(1);
        let again = self.bad_run >= limit;
        if again {
            self.bad_run = 0;
            counters.rx_reinits += 1;
        }
        again
    }

    /// Compares a set that passed its CRC with an earlier, bad copy that [is
    /// kept](phitwire::link::lanes::LaneWatch::waits), to find the faulty lane.
    pub fn good(&mut self, set: u64, bytes: &SetBytes, link: &mut Common) {
        link.unit_accepted(set, words(bytes));
    }

    /// Checks after a frame for gaps below the newest received or announced set.
    #[inline]
    pub fn look_for_gaps(&mut self, now: Time, counters: &mut SetCounters) {
        if self.expected == self.top && self.mark.is_none() && self.retry_due == Time::NEVER {
            return;
        }
        debug_assert!(
            self.expected <= self.top,
            "accepted sets were received or announced"
        );
        if self.held.keeps() {
            self.watch_gaps(now);
        } else if self.top > self.expected && self.declared <= self.expected {
            self.declared = self.expected + 1;
            self.ask(now, self.expected, true, counters);
        }
        if self.held.gap(self.expected, self.declared).is_none() {
            self.retry_due = Time::NEVER;
            self.asked = None;
        }
    }

    fn watch_gaps(&mut self, now: Time) {
        let from = self.expected.max(self.declared);
        if let Some((mark, at)) = self.mark
            && self.held.gap(from, mark).is_none()
        {
            self.hold.filled(now.since(at));
            self.mark = None;
        }
        if self.mark.is_none() && self.held.gap(from, self.top).is_some() {
            self.mark = Some((self.top, now));
        }
    }

    /// Requests everything missing below `declared`; `set` is the first.
    fn ask(&mut self, now: Time, set: u64, single: bool, counters: &mut SetCounters) {
        debug_assert!(set >= self.expected, "accepted sets are not requested");
        counters.rx_nacks += 1;
        self.want(set, self.declared);
        match &mut self.asked {
            Some(asked) => asked.single = false,
            None => {
                let at = now;
                self.asked = Some(PendingNack { set, at, single });
            }
        }
        self.retry_due = now + self.recovery_time.timeout();
    }

    fn want(&mut self, from: u64, to: u64) {
        self.wanted = Some(match self.wanted {
            Some((a, b)) => (a.min(from), b.max(to)),
            None => (from, to),
        });
    }

    /// Whether the next frame sent carries a nack.
    #[inline]
    pub fn wants_nack(&self) -> bool {
        self.wanted.is_some()
    }

    #[inline]
    pub fn may_ride(&self) -> bool {
        !self.nack_repeated
    }

    /// The next gap to request: its distance from the expected set and its number of sets, 0 for
    /// everything from there on. If `last`, there is no room for another nack, so this one covers
    /// all following gaps.
    pub fn next_nack(&mut self, last: bool) -> Option<(u16, u16)> {
        let (from, to) = self.wanted.take()?;
        self.nack_repeated = false;
        let from = from.max(self.expected);
        if !self.held.keeps() {
            return (from < to).then_some((0, 0));
        }
        let (start, mut end) = self.held.gap(from, to)?;
        while let Some((next, beyond)) = self.held.gap(end, to) {
            if !last && next - end > JOINED_GAPS {
                self.wanted = Some((next, to));
                break;
            }
            end = beyond;
        }
        let start = start - self.expected;
        let sets = end - self.expected - start;
        Some((u16::try_from(start).ok()?, u16::try_from(sets).ok()?))
    }

    #[inline]
    pub fn deadline(&self) -> Time {
        match self.mark {
            Some((_, at)) => self.retry_due.min(at + self.hold.get()),
            None => self.retry_due,
        }
    }

    pub fn handle_timers(&mut self, now: Time, counters: &mut SetCounters) {
        if let Some((mark, at)) = self.mark
            && at + self.hold.get() <= now
        {
            self.mark = None;
            let from = self.expected.max(self.declared);
            self.declared = self.declared.max(mark);
            if let Some((set, _)) = self.held.gap(from, mark) {
                self.watch_for_late(set, at, now);
                self.ask(now, set, true, counters);
            }
            self.watch_gaps(now);
        }
        if self.retry_due <= now {
            match self.held.gap(self.expected, self.declared) {
                Some((set, _)) => {
                    self.recovery_time.back_off();
                    self.nack_repeated = true;
                    self.ask(now, set, false, counters);
                }
                None => self.retry_due = Time::NEVER,
            }
        }
    }

    /// Watches whether the gap at `set`, which appeared at `at` and is now declared lost, was only
    /// late. Watches one gap at a time, until its copy must have arrived.
    fn watch_for_late(&mut self, set: u64, at: Time, now: Time) {
        let patience = self.recovery_time.timeout().times(2);
        match &self.late {
            Some((until, _)) if now < *until => return,
            Some(_) => self.hold.lost(),
            None => {}
        }
        self.late = Some((now + patience, DeclaredGap::new(set, at)));
    }

    /// Cancels pending nacks after a lane was dropped: sets sent on all lanes are useless, and the
    /// peer rewinds when it learns of the change. Received sets stay.
    pub fn lanes_changed(&mut self) {
        self.wanted = None;
    }

    /// Ends the session: closes an open packet.
    pub fn abort(&mut self, input: &mut AriesInput, counters: &mut SetCounters) {
        counters.rx_cut_packets += u64::from(input.cut());
        self.held.clear();
    }
}

/// The words of a set that are the same in every copy: all but its tenth flit.
fn words(bytes: &SetBytes) -> impl Iterator<Item = u32> + Clone {
    LANES.words(&bytes[..TENTH_AT.start])
}
