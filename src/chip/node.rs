//! A router chip as a node: a core with a link at each port in use.

use std::collections::VecDeque;

use super::chip_core::ChipCore;
use super::links::Links;
use super::{Grain, RouterClock};
use crate::device::RegisterError;
use crate::kit::{Deadlines, bits};
use crate::link::{LinkEvent, NodeLink, ReceiveBuffer};
use crate::node::{MAX_PORTS, Node, PortId, WakeReason, Wakeup};
use crate::time::{Duration, Time};

/// Maximum number of queued link events; further ones are lost and counted.
const MAX_LINK_EVENTS: usize = 1_024;

/// Configuration of a chip: `R` are the registers of its core, `L` configures a link.
#[derive(Clone, Debug)]
pub struct ChipConfig<R, L> {
    pub name: String,
    pub registers: R,
    /// Ports with a link. Nonexistent and repeated ports are ignored; a port that is missing in the
    /// registers forwards nothing.
    pub ports: Vec<(PortId, L)>,
    pub grain: Grain,
    pub clock: RouterClock,
}

type LinkConfigOf<C> = <<C as ChipCore>::End as NodeLink>::Config;

/// A router chip: a core, and a link at each port in use.
///
/// Drive it as [`Node`] describes. Fault commands reach the link control block of a port through
/// [`with_lcb`](Self::with_lcb).
#[derive(Debug)]
pub struct Chip<C: ChipCore> {
    name: String,
    core: C,
    links: Links<C::End>,
    /// Cycle time in driver picoseconds; `None` when free-running.
    cycle_ps: Option<u64>,
    start: Time,
    /// Ports whose link state may have changed since the last check.
    touched: u64,
    /// Ports that may have a frame to send.
    ready: u64,
    /// When the timers of each port's link are due.
    timers: Deadlines,
    link_events: VecDeque<(PortId, LinkEvent)>,
    link_events_lost: u64,
    pub(super) watches: bool,
}

impl<C: ChipCore> Chip<C> {
    /// A chip whose links begin to train at `now`.
    pub fn new(config: ChipConfig<C::Registers, LinkConfigOf<C>>, now: Time) -> Self {
        const {
            assert!(
                C::PORTS <= MAX_PORTS,
                "masks of ports have no more bits: see `node::MAX_PORTS`"
            );
        }
        let core = C::new(&config);
        let links = Links::new(C::PORTS, config.ports, now);
        let mut chip = Self {
            name: config.name,
            core,
            cycle_ps: config.clock.cycle_ps(C::CYCLE_PS),
            start: now,
            touched: links.in_use(),
            links,
            ready: 0,
            timers: Deadlines::default(),
            link_events: VecDeque::new(),
            link_events_lost: 0,
            watches: false,
        };
        chip.settle(now);
        chip
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn core(&self) -> &C {
        &self.core
    }

    /// The core, for commands that only its family has; they take effect with the next
    /// [`advance`](Node::advance).
    pub fn core_mut(&mut self) -> &mut C {
        &mut self.core
    }

    /// When the first cycle began, and the cycle time, in driver picoseconds; `None` when
    /// free-running.
    pub(super) fn cycle_clock(&self) -> Option<(u64, u64)> {
        self.cycle_ps.map(|ps| (self.start.as_ps(), ps))
    }

    pub fn links(&self) -> &Links<C::End> {
        &self.links
    }

    /// The link control block of `port`, if it has a link.
    pub fn lcb(&self, port: PortId) -> Option<&C::End> {
        self.links.end(usize::from(port))
    }

    /// Phits or flits in the receive buffer of `port`.
    pub fn queued(&self, port: PortId) -> u64 {
        let input = self.links.input(usize::from(port));
        input.map_or(0, ReceiveBuffer::queued)
    }

    /// Applies `command` to the link end of `port` (faults, thresholds), and updates the chip.
    /// `None` if the port has no link.
    pub fn with_lcb<R>(
        &mut self,
        now: Time,
        port: PortId,
        command: impl FnOnce(&mut C::End) -> R,
    ) -> Option<R> {
        let answer = self.on_link(now, usize::from(port), command)?;
        self.settle(now);
        Some(answer)
    }

    /// Phits, flits or packets in the receive buffers of all ports.
    pub fn queued_everywhere(&self) -> u64 {
        let links = self.links.iter();
        links.map(|(_, link)| link.input().queued()).sum()
    }

    /// Link events lost because they were not fetched in time.
    pub fn link_events_lost(&self) -> u64 {
        self.link_events_lost
    }

    /// The register called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.core.get(&self.links, name)
    }

    /// Writes the register called `name`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), RegisterError> {
        self.core.set(name, value)
    }

    /// Runs the cycles of a paced clock that began before `now`, so that an input takes effect in
    /// its own cycle and not in that of the last advance. Skips them if the core is idle.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        if let Some(ps) = self.cycle_ps {
            let cycle = now.since(self.start).as_ps().div_ceil(ps);
            self.core.run_until(cycle, &mut self.links);
        }
    }

    /// Lets the core process the last unit of a frame before the link takes in the next one.
    /// Returns whether there was a next one.
    fn take_more(&mut self, now: Time, port: usize) -> bool {
        let has_more = self.links.end(port).is_some_and(C::End::has_more);
        if has_more {
            self.settle(now);
            self.core.run(&mut self.links);
            self.on_link(now, port, |link| link.take_more(now));
        }
        has_more
    }

    /// Applies `act` to a link and notifies the core of the change.
    #[inline]
    fn on_link<R>(
        &mut self,
        now: Time,
        port: usize,
        act: impl FnOnce(&mut C::End) -> R,
    ) -> Option<R> {
        self.catch_up(now);
        let link = self.links.end_mut(port)?;
        let answer = act(link);
        link.take_changes(|vc, change| self.core.changed(port, vc, change));
        self.touched |= 1 << port;
        Some(answer)
    }

    /// Updates every touched link and lets the core check that output.
    fn settle(&mut self, now: Time) {
        self.touched |= self.core.take_moved() & self.links.in_use();
        while self.touched != 0 {
            let port = self.touched.trailing_zeros() as usize;
            self.touched &= self.touched - 1;
            self.update_link(now, port);
            self.core.output_changed(port);
        }
    }

    /// Passes on a link's credits and events; notes its deadline and whether it has frames to send.
    fn update_link(&mut self, now: Time, port: usize) {
        let Some(link) = self.links.end_mut(port) else {
            return;
        };
        link.give_back();
        while let Some(event) = link.poll_event() {
            self.core.link_changed(port);
            if self.link_events.len() < MAX_LINK_EVENTS {
                self.link_events.push_back((port as PortId, event));
            } else {
                self.link_events_lost += 1;
            }
        }
        self.timers.set(port, link.next_wakeup());
        if link.wants_to_send(now) {
            self.ready |= 1 << port;
        } else {
            self.ready &= !(1 << port);
        }
    }

    fn expire_timers(&mut self, now: Time) {
        let mut due = self.timers.due(now);
        while due != 0 {
            let port = due.trailing_zeros() as usize;
            due &= due - 1;
            self.on_link(now, port, |link| link.handle_timers(now));
        }
    }
}

impl<C: ChipCore> Node for Chip<C> {
    type Event = C::Event;

    fn ports(&self) -> usize {
        C::PORTS
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        if self.watches {
            self.see(now);
        }
        self.on_link(now, port.into(), |link| link.handle_frame(now, bytes));
        while self.take_more(now, port.into()) {}
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        for port in bits(self.links.in_use()) {
            self.on_link(now, port, |link| link.handle_suspension(now, span));
        }
    }

    fn advance(&mut self, now: Time) {
        if self.watches {
            self.see(now);
        }
        self.expire_timers(now);
        // Deliver the events and credits of the links before running the cycles that depend on
        // them.
        self.settle(now);
        match self.cycle_ps {
            None => self.core.run(&mut self.links),
            Some(ps) => {
                // Cycle n begins n periods after the start.
                let cycle = now.since(self.start).as_ps() / ps;
                self.core.run_until(cycle + 1, &mut self.links);
            }
        }
        self.settle(now);
        self.core.check_forward_progress(now);
        if self.watches {
            self.settle_watch();
        }
    }

    fn ready_ports(&self) -> u64 {
        self.ready
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let port = usize::from(port);
        let length = self.links.end_mut(port)?.poll_frame(now, buf);
        if length.is_none() {
            self.update_link(now, port);
            self.core.sent(port);
        }
        length
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let pipeline = self.core.next_cycle().map(|cycle| Wakeup {
            at: match self.cycle_ps {
                // Frames since the last advance left work: wake at once (`start` is in the past).
                None => self.start,
                Some(ps) => self.start + Duration::from_ps(ps).times(cycle),
            },
            reason: WakeReason::Pipeline,
        });
        let link = Wakeup::at(self.timers.earliest(), WakeReason::Link);
        let check = self.core.next_progress_check();
        let progress = check.and_then(|at| Wakeup::at(at, WakeReason::ForwardProgress));
        Wakeup::earlier(Wakeup::earlier(pipeline, link), progress)
    }

    fn poll_event(&mut self) -> Option<C::Event> {
        if let Some((port, event)) = self.link_events.pop_front() {
            return Some(C::link_event(port, event));
        }
        self.core.poll_event()
    }
}
