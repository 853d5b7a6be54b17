//! The event loop: drives a [`Node`] from a [`Backend`] and a clock.

use std::cell::Cell;
use std::io;
use std::time::Duration;

use phitwire::counters;
use phitwire::kit::{Attendance, LONGEST_GAP};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::time::{Duration as Span, Time};

use crate::clock::{self, Clock};
use crate::io::{Backend, FrameSink};
use crate::live_device::LiveDevice;

/// Maximum number of frames sent on one port per turn, so that a flooded port does not delay the
/// others.
const FRAMES_PER_PORT: usize = 32;

/// Time without an accepted frame after which a port broadcasts to find its peer again.
const FORGET: Duration = Duration::from_millis(250);

/// Longest pause of the node's time after a suspension, during which the sockets are read.
const CATCH_UP: Duration = Duration::from_millis(100);

/// Shortest suspension that is logged.
const MIN_LOGGED: Duration = Duration::from_secs(1);

/// A node that reports the number of frames accepted by its links.
pub trait Driven: Node {
    /// Data frames that the link of `port` has accepted so far.
    fn accepted(&self, port: PortId) -> u64;
}

impl Driven for LiveDevice {
    fn accepted(&self, port: PortId) -> u64 {
        let link = self.device.link(port);
        link.map_or(0, |link| link.counters().rx_data_frames)
    }
}

/// The sink of received frames, which passes them to the node.
struct Intake<'a, N> {
    node: &'a mut N,
    now: Time,
}

impl<N: Driven> FrameSink for Intake<'_, N> {
    fn frame(&mut self, port: PortId, bytes: &[u8]) {
        self.node.handle_frame(self.now, port, bytes);
    }

    fn accepted(&self, port: PortId) -> u64 {
        self.node.accepted(port)
    }
}

counters! {
    /// Turns, sleeps and spins since the start.
    #[derive(Copy)]
    pub struct LoopCounters {
        /// Turns of the loop.
        turns,
        /// Times the process slept until a frame or a deadline.
        sleeps,
        /// Times the process polled instead of sleeping, with no deadline overdue.
        spins,
        /// Times a deadline of the node's pipeline had already passed at the end of a turn.
        overdue_pipeline,
        /// Times a deadline of a link timer had already passed.
        overdue_link,
        /// Times a deadline of a forward-progress timer had already passed.
        overdue_forward_progress,
        /// Times a request's timeout or a workload's next message was already due.
        overdue_request,
        /// Suspensions: times the process did not run for longer than a busy host explains.
        standstills,
        /// Total length of these suspensions in ms. Timeouts do not count it.
        stood_still_ms,
    }
}

impl LoopCounters {
    fn overdue(&mut self, reason: WakeReason) {
        *match reason {
            WakeReason::Pipeline => &mut self.overdue_pipeline,
            WakeReason::Link => &mut self.overdue_link,
            WakeReason::ForwardProgress => &mut self.overdue_forward_progress,
            WakeReason::Request => &mut self.overdue_request,
        } += 1;
    }
}

/// Work left by the last turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Busy,
    /// No work before the deadline.
    IdleUntil(Option<Wakeup>),
}

/// A node, its ports and its clock.
///
/// Call [`turn`](Self::turn) in a loop. Each turn sleeps if the previous one left nothing to do,
/// receives a batch of frames, advances the node, and sends its frames.
pub struct Driver<N: Driven> {
    /// The node. It may be commanded between turns.
    pub node: N,
    pub backend: Box<dyn Backend>,
    clock: Clock,
    /// The node's attended time, which excludes suspensions of the process.
    attendance: Cell<Attendance>,
    /// End, by `clock`, of the pause after a suspension during which the node's time does not
    /// advance.
    catches_up: Option<Time>,
    next: Next,
    /// When the last turn began.
    turned: Time,
    /// Whether the last turn sent anything.
    sent: bool,
    spin: Spin,
    /// When silent links were last checked.
    looked: Time,
    counters: LoopCounters,
}

impl<N: Driven> Driver<N> {
    /// Drives `node` over `backend` by `clock`. Before sleeping, the driver may poll for frames for
    /// up to `spin_limit` (zero: never).
    pub fn new(node: N, backend: Box<dyn Backend>, clock: Clock, spin_limit: Duration) -> Self {
        let spin = Spin::new(spin_limit);
        let counters = LoopCounters::default();
        Self {
            node,
            backend,
            attendance: Cell::new(Attendance::new(clock.now())),
            catches_up: None,
            clock,
            next: Next::Busy,
            turned: Time::ZERO,
            sent: false,
            spin,
            looked: Time::ZERO,
            counters,
        }
    }

    /// The node's attended time.
    pub fn now(&self) -> Time {
        self.look(Some(Duration::ZERO))
    }

    /// The node's attended time after a sleep of at most `asleep`.
    fn look(&self, asleep: Option<Duration>) -> Time {
        let mut attendance = self.attendance.get();
        let asleep = asleep.map_or(u64::MAX, |asleep| asleep.as_nanos() as u64);
        let now = match self.catches_up {
            Some(_) => attendance.hold(self.clock.now()),
            None => attendance.look(self.clock.now(), Span::from_ns(asleep)),
        };
        self.attendance.set(attendance);
        now
    }

    /// Reports a suspension of the process before `now` to the node.
    fn note_standstill(&mut self, now: Time) {
        if self.catches_up.is_some() {
            return; // Report it after the pause.
        }
        let span = self.attendance.get_mut().take_standstill();
        if span == Span::ZERO {
            return;
        }
        let ms = span.as_ns() / 1_000_000;
        self.counters.standstills += 1;
        self.counters.stood_still_ms += ms;
        if Duration::from_millis(ms) >= MIN_LOGGED {
            tracing::info!(ms, "the process was stopped");
        }
        if span >= LONGEST_GAP {
            self.catches_up = Some(self.clock.now() + Span::from_ns(CATCH_UP.as_nanos() as u64));
        }
        self.node.handle_suspension(now, span);
    }

    /// When the last turn began, without reading the clock. It is earlier than now by the turn's
    /// work and any preemption, so deadlines computed from it come early, never late.
    pub fn turned(&self) -> Time {
        self.turned
    }

    pub fn counters(&self) -> LoopCounters {
        self.counters
    }

    /// Skips the sleep before the next turn, because the node has work from outside.
    pub fn wake(&mut self) {
        self.next = Next::Busy;
    }

    /// Sleeps at most `longest` if there is nothing to do, then receives, advances the node and
    /// sends. Returns whether the backend's side descriptor is readable.
    ///
    /// # Errors
    /// When the backend can no longer wait.
    pub fn turn(
        &mut self,
        longest: Option<Duration>,
        mut event: impl FnMut(Time, N::Event),
    ) -> io::Result<bool> {
        let (side, now) = self.rest(longest)?;
        self.counters.turns += 1;
        self.turned = now;
        self.note_standstill(now);
        let Self { node, backend, .. } = self;
        let received = backend.receive(&mut Intake { node, now });
        if let Some(until) = self.catches_up
            && (received == 0 || self.clock.now() >= until)
        {
            self.catches_up = None;
        }
        if clock::until(self.looked, now) >= FORGET {
            self.looked = now;
            let ports = backend.ports_mut();
            ports.forget_silent(&|port| node.accepted(port));
        }
        node.advance(now);
        let more_to_send = self.send(now);
        while let Some(what) = self.node.poll_event() {
            event(now, what);
        }
        if received > 0 || more_to_send {
            self.spin.found_work();
        }
        // Without spinning, do not poll again after work: a wait returns at once if a frame has
        // arrived, and sends the queued frames.
        self.next = if more_to_send || received > 0 && self.spin.is_on() {
            Next::Busy
        } else {
            Next::IdleUntil(self.node.next_wakeup())
        };
        Ok(side)
    }

    /// Whether the last turn found nothing to do.
    pub fn is_idle(&self) -> bool {
        self.next != Next::Busy
    }

    /// Sleeps if there is nothing to do. Returns whether the side descriptor is readable, and the
    /// time after the wait.
    fn rest(&mut self, longest: Option<Duration>) -> io::Result<(bool, Time)> {
        let Next::IdleUntil(deadline) = self.next else {
            return self.poll_ready();
        };
        if self.catches_up.is_some() {
            return self.poll_ready(); // The sockets may still hold frames.
        }
        let now = self.now();
        let sleep = deadline.map(|wakeup| clock::until(now, wakeup.at));
        if let (Some(Duration::ZERO), Some(wakeup)) = (sleep, deadline) {
            self.counters.overdue(wakeup.reason);
        }
        let sleep = match (sleep, longest) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if sleep == Some(Duration::ZERO) {
            return self.poll_ready();
        }
        if self.spin.keeps_on(now) {
            self.counters.spins += 1;
            if !self.sent {
                // Yield to another process on this core, which may be about to send the awaited
                // frame. Do not yield after sending: the backend may hold the frames until the
                // wait. The call cannot fail on Linux.
                let _ = nix::sched::sched_yield();
            }
            self.sent = false;
            return self.poll_ready();
        }
        self.counters.sleeps += 1;
        let side = self.backend.wait(sleep)?;
        let woken = self.look(sleep);
        let is_early = sleep.is_none_or(|sleep| clock::until(now, woken) < sleep);
        self.spin.slept(now, woken, is_early);
        Ok((side, woken))
    }

    /// Polls once without sleeping.
    fn poll_ready(&mut self) -> io::Result<(bool, Time)> {
        let side = self.backend.wait(Some(Duration::ZERO))?;
        Ok((side, self.now()))
    }

    /// Moves the node's frames into the backend and sends them. Returns whether there may be more.
    fn send(&mut self, now: Time) -> bool {
        let Self { node, backend, .. } = self;
        let mut ready = node.ready_ports();
        let mut more = false;
        self.sent = ready != 0;
        while ready != 0 {
            let port = ready.trailing_zeros() as PortId;
            ready &= ready - 1;
            let mut frames = 0;
            while frames < FRAMES_PER_PORT {
                let Some(bytes) = node.poll_frame(now, port, backend.frame_buffer(port)) else {
                    break;
                };
                backend.queue(port, bytes);
                frames += 1;
            }
            more |= frames == FRAMES_PER_PORT;
        }
        backend.flush();
        more
    }
}

/// Polls instead of sleeping while that is worthwhile.
///
/// A sleep and its wake-up cost some microseconds of latency; polling costs a core. So the polling
/// time is bounded, and halved whenever polling found nothing. It is restored when an event ends a
/// sleep within that time; a sleep ended by the clock does not count, since polling for a deadline
/// gains nothing. Between polls the process yields the core: with fewer cores than processes, the
/// frame's sender may be waiting for it.
#[derive(Clone, Copy, Debug)]
struct Spin {
    limit: Duration,
    current: Duration,
    since: Option<Time>,
}

impl Spin {
    fn new(limit: Duration) -> Self {
        Self {
            limit,
            current: limit,
            since: None,
        }
    }

    /// Whether polling is worthwhile now.
    fn is_on(&self) -> bool {
        !self.current.is_zero()
    }

    /// Whether to poll once more.
    fn keeps_on(&mut self, now: Time) -> bool {
        if !self.is_on() {
            return false;
        }
        let since = *self.since.get_or_insert(now);
        if clock::until(since, now) < self.current {
            return true;
        }
        self.current /= 2;
        if self.current < Duration::from_micros(1) {
            self.current = Duration::ZERO;
        }
        false
    }

    fn found_work(&mut self) {
        self.since = None;
    }

    /// Reports a sleep; `early` if something other than the clock ended it.
    fn slept(&mut self, from: Time, to: Time, early: bool) {
        self.since = None;
        if early && clock::until(from, to) < self.limit {
            self.current = self.limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spinning_without_result_fades_and_a_short_sleep_restores_it() {
        let us = |n: u64| Time::from_ns(n * 1000);
        let mut spin = Spin::new(Duration::from_micros(8));
        assert!(spin.keeps_on(us(0)) && spin.keeps_on(us(7)));
        assert!(!spin.keeps_on(us(8)), "the limit has passed");
        spin.slept(us(8), us(100), true);
        assert!(
            spin.keeps_on(us(100)) && !spin.keeps_on(us(104)),
            "half of the limit"
        );
        for start in [200, 300, 400, 500] {
            spin.slept(us(start - 50), us(start), true);
            spin.keeps_on(us(start));
            spin.keeps_on(us(start + 50));
        }
        spin.slept(us(550), us(600), true);
        assert!(!spin.keeps_on(us(600)), "given up");
        spin.slept(us(600), us(603), false);
        assert!(!spin.keeps_on(us(603)), "the clock was at fault");
        spin.slept(us(600), us(603), true);
        assert!(
            spin.keeps_on(us(603)),
            "spinning would have been better than a short sleep"
        );
    }

    #[test]
    fn a_limit_of_zero_never_spins() {
        let mut spin = Spin::new(Duration::ZERO);
        spin.slept(Time::ZERO, Time::from_ns(1), true);
        assert!(!spin.keeps_on(Time::from_ns(2)));
    }
}
