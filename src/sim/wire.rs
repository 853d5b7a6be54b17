//! One direction of a link in virtual time.

use std::collections::VecDeque;

use super::trace::TraceHash;
use crate::link::impair::{ImpairCounters, Impairment, LaneNoise, LateCopies};
use crate::time::{Duration, Time};

/// What happened on a wire, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireCounters {
    /// Frames put on the wire.
    pub(crate) sent: u64,
    /// Bytes put on the wire.
    pub(crate) sent_bytes: u64,
    /// Frames delivered to the other end.
    pub(crate) delivered: u64,
    /// Frames lost because the wire was cut, on the way or when they were sent.
    pub lost_in_cut: u64,
    /// Copies delivered [late](LateCopies), beside the frames themselves.
    pub(crate) late_copies: u64,
    /// Of those delivered, frames and copies for which a node that stood still had no room.
    pub(crate) overrun: u64,
    /// What impairments that have been replaced since did.
    pub(crate) impaired: ImpairCounters,
}

/// Frames travelling one way: lane noise at the transmitter, then impairment, then the latency.
///
/// The latency is the same for all, so that the order is that in which frames leave the impairment.
/// What arrives may be [copied](LateCopies) to arrive once more.
#[derive(Clone, Debug)]
pub struct Wire {
    latency: Duration,
    noise: Option<LaneNoise>,
    impairment: Option<Impairment>,
    late: Option<LateCopies>,
    /// Makes late copies harmful: see `forge_late_copies`.
    #[cfg(any(test, feature = "testing"))]
    forgery: Option<(Forgery, Vec<u8>)>,
    cut: bool,
    /// Frames come from another fabric, later than they were sent.
    from_abroad: bool,
    flight: VecDeque<(Time, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
    trace: TraceHash,
    counters: WireCounters,
}

/// What becomes of a late copy: of the frame that came last, and the copy.
#[cfg(any(test, feature = "testing"))]
pub(crate) type Forgery = fn(&[u8], Vec<u8>) -> Vec<u8>;

/// Buffers kept for reuse by one wire.
const SPARE_BUFFERS: usize = 64;

impl Wire {
    /// A whole wire that delays by `latency` and does nothing else.
    ///
    /// # Panics
    /// If the latency is zero: what is sent at an instant must not arrive in it.
    pub(crate) fn new(latency: Duration) -> Self {
        assert!(latency > Duration::ZERO, "a wire has some latency");
        Self {
            latency,
            noise: None,
            impairment: None,
            late: None,
            #[cfg(any(test, feature = "testing"))]
            forgery: None,
            cut: false,
            from_abroad: false,
            flight: VecDeque::new(),
            spare: Vec::new(),
            trace: TraceHash::default(),
            counters: WireCounters::default(),
        }
    }

    /// A wire on which frames are [sent](Self::send) after others have been received that were sent
    /// later, but by less than its latency. The impairment must not run ahead of what it has yet to
    /// be given (how many frames it holds and which is the last decide what happens to the next
    /// one), so it lets frames go only up to the time of each frame given to it and of each call of
    /// [`catch_up`](Self::catch_up).
    ///
    /// # Panics
    /// If the latency is zero.
    pub(crate) fn from_abroad(latency: Duration) -> Self {
        Self {
            from_abroad: true,
            ..Self::new(latency)
        }
    }

    /// Everything that was sent up to `now` to a wire [from abroad](Self::from_abroad) has been
    /// given to it.
    pub(crate) fn catch_up(&mut self, now: Time) {
        self.depart(now);
    }

    /// What happened, the present impairment included.
    pub(crate) fn counters(&self) -> WireCounters {
        let mut counters = self.counters;
        if let Some(impairment) = &self.impairment {
            add(&mut counters.impaired, impairment.counters());
        }
        counters
    }

    /// The hash of every delivery so far: its time and its bytes.
    pub(crate) const fn trace(&self) -> TraceHash {
        self.trace
    }

    /// Frames on the way, those held by the impairment included, late copies not.
    pub(crate) fn in_flight(&self) -> usize {
        self.flight.len() + self.impairment.as_ref().map_or(0, Impairment::held)
    }

    /// Sets or removes the impairment. Frames that the old one held are lost, as they are when the
    /// kernel replaces a queueing discipline.
    pub(crate) fn set_impairment(&mut self, impairment: Option<Impairment>) {
        if let Some(mut old) = self.impairment.take() {
            old.clear();
            add(&mut self.counters.impaired, old.counters());
        }
        self.impairment = impairment;
    }

    /// From now on some frames come again, much later. Copies held by what was set before are lost.
    ///
    /// # Panics
    /// On a wire [from abroad](Self::from_abroad), which does not look at its own clock.
    pub(crate) fn set_late_copies(&mut self, late: LateCopies) {
        assert!(!self.from_abroad, "late copies need the wire's own clock");
        self.late = Some(late);
    }

    /// From now on late copies come as `forgery` makes them: the canary of what looks for their
    /// harm.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn forge_late_copies(&mut self, forgery: Forgery) {
        self.forgery = Some((forgery, Vec::new()));
    }

    /// No further frame is copied. Copies taken before still come: not even a cut holds them up,
    /// for they need not come through this cable.
    pub(crate) fn stop_late_copies(&mut self) {
        if let Some(late) = &mut self.late {
            late.stop();
        }
    }

    /// Late copies that are still to come.
    pub(crate) fn late_copies_held(&self) -> usize {
        self.late.as_ref().map_or(0, LateCopies::held)
    }

    /// Sets or removes the noise on a lane.
    pub(crate) fn set_noise(&mut self, noise: Option<LaneNoise>) {
        self.noise = noise;
    }

    /// Cuts the wire: what is on the way and what is sent from now on is lost.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
        self.counters.lost_in_cut += self.in_flight() as u64;
        self.flight.clear();
        if let Some(impairment) = &mut self.impairment {
            impairment.clear();
        }
    }

    /// Makes the wire whole again.
    pub(crate) fn restore(&mut self) {
        self.cut = false;
    }

    /// Whether it is cut.
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
        // What was due until now has left; on a wire from abroad nobody has asked for it yet.
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

    /// When [`receive`](Self::receive) has something to do next.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let arrival = self.flight.front().map(|(at, _)| *at);
        let impairment = self.impairment.as_ref().filter(|_| !self.from_abroad);
        let departure = impairment.and_then(Impairment::next_deadline);
        let copy = self.late.as_ref().and_then(LateCopies::next_deadline);
        [arrival, departure, copy].into_iter().flatten().min()
    }

    /// The next frame that has arrived by `now`. Give it back by [`recycle`](Self::recycle).
    pub(crate) fn receive(&mut self, now: Time) -> Option<Vec<u8>> {
        if !self.from_abroad {
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

    /// Gives a received buffer back that nobody had room for.
    pub(crate) fn overrun(&mut self, buffer: Vec<u8>) {
        self.counters.overrun += 1;
        self.recycle(buffer);
    }

    /// Gives a received buffer back for reuse.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        match &mut self.impairment {
            Some(impairment) => impairment.recycle(buffer),
            None if self.spare.len() < SPARE_BUFFERS => self.spare.push(buffer),
            None => {}
        }
    }

    /// Moves what the impairment lets go onto the wire.
    fn depart(&mut self, now: Time) {
        while let Some((at, frame)) = self.impairment.as_mut().and_then(|i| i.poll(now)) {
            self.fly(at, frame);
        }
    }

    fn fly(&mut self, at: Time, frame: Vec<u8>) {
        let arrival = at + self.latency;
        debug_assert!(
            self.flight.back().is_none_or(|(last, _)| *last <= arrival),
            "departures come in order"
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
