//! One direction of a link in virtual time.

use std::collections::VecDeque;

use super::trace::TraceHash;
use crate::link::impair::{ImpairCounters, Impairment, LaneNoise, LateCopies};
use crate::time::{Duration, Time};

/// Counters of a wire, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Frames put on the wire.
    pub sent: u64,
    pub(crate) sent_bytes: u64,
    /// Frames delivered to the other end.
    pub(crate) delivered: u64,
    /// Frames lost to a cut, in flight or when sent.
    pub lost_in_cut: u64,
    /// Copies delivered [late](LateCopies), not counted in `delivered`.
    pub(crate) late_copies: u64,
    /// Delivered frames and copies dropped because a stopped node had no room.
    pub(crate) overrun: u64,
    /// Counters of earlier impairments, since replaced.
    pub(crate) impaired: ImpairCounters,
}

/// One direction of a link: lane noise at the transmitter, then impairment, then the latency.
///
/// The latency is constant, so frames arrive in the order in which they leave the impairment.
/// Arriving frames may be [copied](LateCopies) to arrive a second time.
#[derive(Clone, Debug)]
pub struct Wire {
    latency: Duration,
    noise: Option<LaneNoise>,
    impairment: Option<Impairment>,
    late: Option<LateCopies>,
    /// Rewrites late copies to make them harmful: see `forge_late_copies`.
    #[cfg(any(test, feature = "testing"))]
    forgery: Option<(Forgery, Vec<u8>)>,
    cut: bool,
    /// Whether frames come from another fabric, handed over after their time of sending.
    from_remote: bool,
    flight: VecDeque<(Time, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    trace: TraceHash,
    counters: WireCounters,
}

/// Rewrites a late copy, given the last frame received and the copy.
#[cfg(any(test, feature = "testing"))]
pub(crate) type Forgery = fn(&[u8], Vec<u8>) -> Vec<u8>;

/// Buffers kept for reuse by one wire.
const SPARE_BUFFERS: usize = 64;

impl Wire {
    /// An uncut wire that only delays, by `latency`.
    ///
    /// # Panics
    /// If the latency is zero: a frame must not arrive at the instant it is sent.
    pub(crate) fn new(latency: Duration) -> Self {
        assert!(
            latency > Duration::ZERO,
            "the latency of a wire must not be zero"
        );
        Self {
            latency,
            noise: None,
            impairment: None,
            late: None,
            #[cfg(any(test, feature = "testing"))]
            forgery: None,
            cut: false,
            from_remote: false,
            flight: VecDeque::new(),
            spare: Vec::new(),
            trace: TraceHash::default(),
            counters: WireCounters::default(),
        }
    }

    /// A wire that accepts a frame after the receiver's clock has passed the frame's time of
    /// sending, by less than the latency ([`send`](Self::send)). The impairment may hold frames
    /// until it has seen later ones, so it releases frames only up to the time of each frame sent
    /// and of each call of [`catch_up`](Self::catch_up).
    ///
    /// # Panics
    /// If the latency is zero.
    pub(crate) fn from_remote(latency: Duration) -> Self {
        Self {
            from_remote: true,
            ..Self::new(latency)
        }
    }

    /// Declares that all frames sent up to `now` have been put on a
    /// [`from_remote`](Self::from_remote) wire.
    pub(crate) fn catch_up(&mut self, now: Time) {
        self.depart(now);
    }

    /// The counters, including those of the present impairment.
    pub(crate) fn counters(&self) -> WireCounters {
        let mut counters = self.counters;
        if let Some(impairment) = &self.impairment {
            add(&mut counters.impaired, impairment.counters());
        }
        counters
    }

    /// Hash of every delivery so far: its time and bytes.
    pub(crate) const fn trace(&self) -> TraceHash {
        self.trace
    }

    /// Frames in flight, including those held by the impairment but not late copies.
    pub(crate) fn in_flight(&self) -> usize {
        self.flight.len() + self.impairment.as_ref().map_or(0, Impairment::held)
    }

    /// Sets or removes the impairment. Frames held by the old one are lost, as when the kernel
    /// replaces a queueing discipline.
    pub(crate) fn set_impairment(&mut self, impairment: Option<Impairment>) {
        if let Some(mut old) = self.impairment.take() {
            old.clear();
            add(&mut self.counters.impaired, old.counters());
        }
        self.impairment = impairment;
    }

    /// Delivers some frames a second time, much later. Copies held by an earlier setting are lost.
    ///
    /// # Panics
    /// On a [`from_remote`](Self::from_remote) wire, which does not follow its own clock.
    pub(crate) fn set_late_copies(&mut self, late: LateCopies) {
        assert!(
            !self.from_remote,
            "late copies need a wire that follows its own clock"
        );
        self.late = Some(late);
    }

    /// Rewrites late copies with `forgery` from now on, as a canary: the checks must detect the
    /// harm.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn forge_late_copies(&mut self, forgery: Forgery) {
        self.forgery = Some((forgery, Vec::new()));
    }

    /// Stops copying frames. Copies already taken still arrive, even through a cut, since they need
    /// not travel over this cable.
    pub(crate) fn stop_late_copies(&mut self) {
        if let Some(late) = &mut self.late {
            late.stop();
        }
    }

    /// Late copies still to arrive.
    pub(crate) fn late_copies_held(&self) -> usize {
        self.late.as_ref().map_or(0, LateCopies::held)
    }

    /// Sets or removes the noise on a lane.
    pub(crate) fn set_noise(&mut self, noise: Option<LaneNoise>) {
        self.noise = noise;
    }

    /// Cuts the wire: frames in flight and frames sent from now on are lost.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
        self.counters.lost_in_cut += self.in_flight() as u64;
        self.flight.clear();
        if let Some(impairment) = &mut self.impairment {
            impairment.clear();
        }
    }

    pub(crate) fn restore(&mut self) {
        self.cut = false;
    }

    pub(crate) const fn is_cut(&self) -> bool {
        self.cut
    }

    /// Puts a frame on the wire. Noise may change `bytes`.
    pub(crate) fn send(&mut self, now: Time, bytes: &mut [u8]) {
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes.len() as u64;
        if self.cut {
            self.counters.lost_in_cut += 1;
            return;
        }
        if let Some(noise) = &mut self.noise {
            noise.apply(bytes);
        }
        // Release due frames first: nothing has polled a wire from another partition yet.
        self.depart(now);
        if let Some(impairment) = &mut self.impairment {
            impairment.send(now, bytes);
            self.depart(now);
        } else {
            let mut frame = self.spare.pop().unwrap_or_default();
            frame.clear();
            frame.extend_from_slice(bytes);
            self.fly(now, frame);
        }
    }

    /// When [`receive`](Self::receive) next has work.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let arrival = self.flight.front().map(|(at, _)| *at);
        let impairment = self.impairment.as_ref().filter(|_| !self.from_remote);
        let departure = impairment.and_then(Impairment::next_deadline);
        let copy = self.late.as_ref().and_then(LateCopies::next_deadline);
        [arrival, departure, copy].into_iter().flatten().min()
    }

    /// The next frame that arrived by `now`. Return its buffer with [`recycle`](Self::recycle).
    pub(crate) fn receive(&mut self, now: Time) -> Option<Vec<u8>> {
        if !self.from_remote {
            self.depart(now);
        }
        let arrival = self.flight.front().map(|(at, _)| *at);
        if let Some(late) = &mut self.late
            && let Some(due) = late.next_deadline()
            && arrival.is_none_or(|at| due < at)
        {
            let (at, frame) = late.poll(now)?;
            self.counters.late_copies += 1;
            #[cfg(any(test, feature = "testing"))]
            let frame = match &self.forgery {
                Some((forgery, last)) => forgery(last, frame),
                None => frame,
            };
            return Some(self.delivered(at, frame));
        }
        if arrival? > now {
            return None;
        }
        let (at, frame) = self.flight.pop_front()?;
        self.counters.delivered += 1;
        if let Some(late) = &mut self.late {
            late.see(at, &frame);
        }
        #[cfg(any(test, feature = "testing"))]
        if let Some((_, last)) = &mut self.forgery {
            last.clone_from(&frame);
        }
        Some(self.delivered(at, frame))
    }

    fn delivered(&mut self, at: Time, frame: Vec<u8>) -> Vec<u8> {
        self.trace.add(at.as_ps());
        self.trace.add_bytes(&frame);
        frame
    }

    /// Counts a frame that the receiver had no room for, and takes back its buffer.
    pub(crate) fn overrun(&mut self, buffer: Vec<u8>) {
        self.counters.overrun += 1;
        self.recycle(buffer);
    }

    /// Returns a received buffer for reuse.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        match &mut self.impairment {
            Some(impairment) => impairment.recycle(buffer),
            None if self.spare.len() < SPARE_BUFFERS => self.spare.push(buffer),
            None => {}
        }
    }

    /// Moves frames that the impairment releases onto the wire.
    fn depart(&mut self, now: Time) {
        while let Some((at, frame)) = self.impairment.as_mut().and_then(|i| i.poll(now)) {
            self.fly(at, frame);
        }
    }

    fn fly(&mut self, at: Time, frame: Vec<u8>) {
        let arrival = at + self.latency;
        debug_assert!(
            self.flight.back().is_none_or(|(last, _)| *last <= arrival),
            "departures are in order"
        );
        self.flight.push_back((arrival, frame));
    }
}

fn add(sum: &mut ImpairCounters, more: &ImpairCounters) {
    sum.offered += more.offered;
    sum.duplicated += more.duplicated;
    sum.lost += more.lost;
    sum.over_limit += more.over_limit;
    sum.corrupted += more.corrupted;
    sum.reordered += more.reordered;
    sum.cleared += more.cleared;
    sum.delivered += more.delivered;
}

impl core::ops::Add for WireCounters {
    type Output = Self;

    fn add(mut self, more: Self) -> Self {
        self.sent += more.sent;
        self.sent_bytes += more.sent_bytes;
        self.delivered += more.delivered;
        self.lost_in_cut += more.lost_in_cut;
        self.late_copies += more.late_copies;
        self.overrun += more.overrun;
        add(&mut self.impaired, &more.impaired);
        self
    }
}
