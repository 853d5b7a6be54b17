//! A YARC chip as a node: the core with a link control block and an input queue per port.

use std::collections::VecDeque;

use phitwire_framing::packet24::Vc;
use phitwire_framing::phit24::Phit;

use super::core::{Core, Ports};
use super::counters::RouterCounters;
use super::event::RouterEvent;
use super::pipeline::CYCLE_PS;
use super::register_map::{RegisterError, register_address};
use super::registers::{ChipRegisters, PORTS};
use crate::link::{Change, InputQueue, Lcb, LinkConfig, LinkEvent, LinkPort, ReceiveBuffer};
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::time::Time;

/// Which clock drives the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterClock {
    /// The pipeline runs until nothing can move; cycles are counted but take no time.
    FreeRunning,
    /// A cycle takes 1.25 ns (800 MHz) times `dilation` of the driver's time. `dilation` 1 is virtual
    /// time, or real speed.
    Paced {
        /// Nanoseconds of the driver per emulated nanosecond; 0 counts as 1.
        dilation: u32,
    },
}

/// What a YARC is made from.
#[derive(Clone, Debug)]
pub struct YarcConfig {
    /// Name of the node.
    pub name: String,
    /// Configuration registers.
    pub registers: ChipRegisters,
    /// Ports with a link. A port above 63 or given twice is ignored; a port without tile registers
    /// forwards nothing.
    pub ports: Vec<(PortId, LinkConfig)>,
    /// Which clock drives the pipeline.
    pub clock: RouterClock,
}

/// The links of a chip, as the core sees them.
#[derive(Debug)]
struct Links(Vec<Option<Box<LinkPort<Lcb>>>>);

impl Links {
    #[inline]
    fn get(&self, port: usize) -> Option<&LinkPort<Lcb>> {
        self.0.get(port)?.as_deref()
    }
    #[inline]
    fn get_mut(&mut self, port: usize) -> Option<&mut LinkPort<Lcb>> {
        self.0.get_mut(port)?.as_deref_mut()
    }
}

impl Ports for Links {
    #[inline]
    fn front(&self, port: usize, vc: usize) -> Option<Phit> {
        self.get(port)?.input().front(Vc::from_index(vc))
    }
    #[inline]
    fn second(&self, port: usize, vc: usize) -> Option<Phit> {
        self.get(port)?.input().second(Vc::from_index(vc))
    }
    #[inline]
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit> {
        let (input, vc) = (self.get_mut(port)?.input_mut(), Vc::from_index(vc));
        input.ready(vc).then(|| input.pop(vc))
    }
    #[inline]
    fn can_begin(&self, port: usize, vc: usize) -> bool {
        self.get(port)
            .is_some_and(|port| port.end().can_begin(Vc::from_index(vc)))
    }
    #[inline]
    fn is_active(&self, port: usize) -> bool {
        self.get(port).is_some_and(|port| port.end().is_active())
    }
    #[inline]
    fn push(&mut self, port: usize, phit: Phit) {
        if let Some(port) = self.get_mut(port) {
            port.end_mut().push(phit);
        }
    }
}

/// A YARC chip: 64 tiles, of which those with a link are in use.
///
/// Drive it as [`Node`] describes. Fault commands go to the link control block of a port through
/// [`with_lcb`](Self::with_lcb).
#[derive(Debug)]
pub struct Yarc {
    name: String,
    core: Core,
    links: Links,
    clock: RouterClock,
    start: Time,
    /// Ports with a link.
    in_use: u64,
    /// Ports whose link state may have changed since it was last looked at.
    touched: u64,
    /// Ports that may have a frame to send.
    ready: u64,
    /// When each port's link wants its timers handled.
    timers: Box<[Time; PORTS]>,
    next_timer: Time,
    link_events: VecDeque<(PortId, LinkEvent)>,
    link_events_lost: u64,
}

impl Yarc {
    /// A chip whose links begin to train at `now`.
    pub fn new(config: YarcConfig, now: Time) -> Self {
        let mut links = Links((0..PORTS).map(|_| None).collect());
        let mut in_use = 0;
        for (port, link) in config.ports {
            if let Some(slot @ None) = links.0.get_mut(usize::from(port)) {
                *slot = Some(Box::new(LinkPort::new(link, now)));
                in_use |= 1 << port;
            }
        }
        let mut core = Core::new(config.registers);
        if let RouterClock::Paced { dilation } = config.clock {
            core.set_dilation(dilation);
        }
        let mut yarc = Self {
            name: config.name,
            core,
            links,
            clock: config.clock,
            start: now,
            in_use,
            touched: in_use,
            ready: 0,
            timers: Box::new([Time::NEVER; PORTS]),
            next_timer: Time::NEVER,
            link_events: VecDeque::new(),
            link_events_lost: 0,
        };
        yarc.settle(now);
        yarc
    }

    /// Name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tiles.
    pub fn core(&self) -> &Core {
        &self.core
    }

    /// The link control block of `port`, if it has a link.
    pub fn lcb(&self, port: PortId) -> Option<&Lcb> {
        self.links.get(usize::from(port)).map(LinkPort::end)
    }

    /// Phits in the input queue of `port`.
    pub fn queued(&self, port: PortId) -> u64 {
        let port = self.links.get(usize::from(port));
        port.map_or(0, |port| port.input().queued())
    }

    /// Lets `command` act on the link control block and input queue of `port` (faults, thresholds), and takes
    /// note of what follows. `None` when the port has no link.
    pub fn with_lcb<R>(
        &mut self,
        now: Time,
        port: PortId,
        command: impl FnOnce(&mut Lcb, &mut InputQueue) -> R,
    ) -> Option<R> {
        let answer = self.on_link(now, usize::from(port), |link| {
            let (lcb, input) = link.parts_mut();
            command(lcb, input)
        })?;
        self.settle(now);
        Some(answer)
    }

    /// What the tiles have counted.
    pub fn counters(&self) -> RouterCounters {
        let mut counters = self.core.counters();
        counters.events_lost += self.link_events_lost;
        counters
    }

    /// Calls `visit` with every counter: those of the tiles by their names, those of links with
    /// `portN.` in front.
    pub fn for_each_counter(&self, mut visit: impl FnMut(&str, u64)) {
        self.counters().for_each(&mut visit);
        visit("cycles", self.core.cycle());
        let mut name = String::new();
        for (number, port) in self.links.0.iter().enumerate() {
            let Some(port) = port else { continue };
            port.end().counters().for_each(|counter, value| {
                use core::fmt::Write as _;
                name.clear();
                // Writing to a String cannot fail.
                let _ = write!(name, "port{number}.{counter}");
                visit(&name, value);
            });
        }
    }

    /// The register at `address`; see [`register_map`](super::register_map).
    pub fn read_register(&self, address: u16) -> Option<u64> {
        self.core.read_register(address)
    }

    /// Writes the register at `address`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn write_register(&mut self, address: u16, value: u64) -> Result<(), RegisterError> {
        self.core.write_register(address, value)
    }

    /// The register called `name`, for instance `tile12.table.0.ports`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.core.read_register(register_address(name)?)
    }

    /// Writes the register called `name`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), RegisterError> {
        let address = register_address(name).ok_or(RegisterError::Unknown)?;
        self.core.write_register(address, value)
    }

    /// Runs the cycles of a paced clock that began before `now`, so that what happens now is entered
    /// at its own cycle and not at the one of the last advance. A jump when the core is idle.
    fn catch_up(&mut self, now: Time) {
        if let Some(ps) = self.cycle_ps() {
            let cycle = now.since(self.start).as_ps().div_ceil(ps);
            self.core.run_until(cycle, &mut self.links);
        }
    }

    /// Lets something happen to a link and tells the core what came of it.
    fn on_link<R>(
        &mut self,
        now: Time,
        port: usize,
        act: impl FnOnce(&mut LinkPort<Lcb>) -> R,
    ) -> Option<R> {
        self.catch_up(now);
        let link = self.links.get_mut(port)?;
        let answer = act(link);
        link.take_changes(|vc, change| match change {
            Change::Arrived(phits) => self.core.arrived(port, vc, phits),
            Change::Front => self.core.front_changed(port, vc),
        });
        self.touched |= 1 << port;
        Some(answer)
    }

    /// Looks after every link that something happened to, and lets the core look at its output.
    fn settle(&mut self, now: Time) {
        self.touched |= self.core.take_moved() & self.in_use;
        let mut touched = core::mem::take(&mut self.touched);
        if touched == 0 {
            return;
        }
        while touched != 0 {
            let port = touched.trailing_zeros() as usize;
            touched &= touched - 1;
            self.look_after(now, port);
            self.core.output_changed(port);
        }
        self.next_timer = self.timers.iter().copied().min().unwrap_or(Time::NEVER);
    }

    /// Passes on credits and events of a link, and notes what it wants to do when.
    fn look_after(&mut self, now: Time, port: usize) {
        let Some(link) = self.links.get_mut(port) else {
            return;
        };
        link.give_back();
        while let Some(event) = link.poll_event() {
            if self.link_events.len() < MAX_LINK_EVENTS {
                self.link_events.push_back((port as PortId, event));
            } else {
                self.link_events_lost += 1;
            }
        }
        self.timers[port] = link.next_wakeup();
        self.next_timer = self.next_timer.min(self.timers[port]);
        if link.wants_to_send(now) {
            self.ready |= 1 << port;
        } else {
            self.ready &= !(1 << port);
        }
    }

    fn expire_timers(&mut self, now: Time) {
        if now < self.next_timer {
            return;
        }
        for port in 0..PORTS {
            if self.timers[port] <= now {
                self.on_link(now, port, |link| link.handle_timers(now));
            }
        }
        // A timer that sending a frame has put off is still the earliest one here.
        self.next_timer = self.timers.iter().copied().min().unwrap_or(Time::NEVER);
    }

    /// Picoseconds of a cycle; `None` when free-running.
    fn cycle_ps(&self) -> Option<u64> {
        match self.clock {
            RouterClock::FreeRunning => None,
            RouterClock::Paced { dilation } => Some(CYCLE_PS * u64::from(dilation.max(1))),
        }
    }
}

/// Link events that wait to be fetched; further ones are lost and counted.
const MAX_LINK_EVENTS: usize = 1_024;

impl Node for Yarc {
    type Event = RouterEvent;

    fn ports(&self) -> usize {
        PORTS
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        self.on_link(now, usize::from(port), |link| link.handle_frame(now, bytes));
    }

    fn advance(&mut self, now: Time) {
        self.expire_timers(now);
        // Events and credits of the links come before the cycles that depend on them.
        self.settle(now);
        match self.cycle_ps() {
            None => self.core.run(&mut self.links),
            Some(ps) => {
                // Cycle n is the clock's edge n periods after the start.
                let cycle = now.since(self.start).as_ps() / ps;
                self.core.run_until(cycle + 1, &mut self.links);
            }
        }
        self.settle(now);
        self.core.check_forward_progress(now);
    }

    fn ready_ports(&self) -> u64 {
        self.ready
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let link = self.links.get_mut(usize::from(port))?;
        let length = link.poll_frame(now, buf);
        if length.is_none() {
            self.look_after(now, usize::from(port));
        }
        length
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let pipeline = self.core.next_cycle().map(|cycle| Wakeup {
            at: match self.cycle_ps() {
                // Something of the last frames is left for the next advance.
                None => self.start,
                Some(ps) => self.start + crate::time::Duration::from_ps(ps).times(cycle),
            },
            reason: WakeReason::Pipeline,
        });
        let link = (self.next_timer != Time::NEVER).then_some(Wakeup {
            at: self.next_timer,
            reason: WakeReason::Link,
        });
        let progress = self.core.next_progress_check().map(|at| Wakeup {
            at,
            reason: WakeReason::ForwardProgress,
        });
        Wakeup::earlier(Wakeup::earlier(pipeline, link), progress)
    }

    fn poll_event(&mut self) -> Option<RouterEvent> {
        if let Some((port, event)) = self.link_events.pop_front() {
            return Some(RouterEvent::Link { port, event });
        }
        self.core.poll_event()
    }
}

#[cfg(test)]
#[path = "node_tests.rs"]
mod tests;
