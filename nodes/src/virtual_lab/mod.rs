//! A lab in virtual time: one process hosts all nodes of a network, and serves their doors and
//! control sockets.
//!
//! Programs attach as to a live lab, and take turns. Time stands still while a program computes. It
//! moves while all of them wait, to the next instant at which one of them has something to read or
//! its wait ends; commands of an instant are taken in the order of the NICs' numbers, then of the
//! programs' member numbers. So neither the speed of the host nor its scheduling shows.
//!
//! When nothing is in flight, all programs wait for each other or for something outside, such as a
//! launcher. Time then stands still as well, and polls without result cost none, so that the time
//! at which a launcher lets the programs go does not depend on the host. Before time moves again,
//! all programs get some host time to arrive ([`SETTLE`]). A rest that is longer than [`LONGEST`]
//! ends: virtual time then follows the host's clock, so that time limits pass as in a live lab.

mod answers;
mod outside;
mod rule;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use phitwire::counters;
use phitwire::net::{Network, NodeRef};
use phitwire::sim::{NodeId, World};
use phitwire::time::{Duration as Span, Time};

use crate::control::server::Server;
use crate::door::Door;
use crate::run_dir::{Claim, LabDir, RunDirError};
use crate::stop::Stop;
pub use answers::Ended;
use outside::Outside;
use rule::{Seat, Step};

/// Host time for programs that poll at rest, before time moves again.
const SETTLE: Duration = Duration::from_millis(20);
/// Longest rest in host time, after which virtual time follows the host's clock.
const LONGEST: Duration = Duration::from_secs(5);
/// Maximum host time between two looks at a lab at rest.
const MOST_AT_ONCE: Duration = Duration::from_millis(100);
/// Pause between two polls of a program at rest, and between two looks at a program that does not
/// end its turn.
const LOOK: Duration = Duration::from_millis(1);
/// Events of the network between two looks at the sockets.
const EVENTS: u32 = 4_096;
/// Events of the network between two checks whether it is at rest.
const REST_EVERY: u64 = 64;
/// Time to the next event before which to check as well: a network at rest has only timers.
const LONG_GAP: Span = Span::from_ns(200);

const STOP: u64 = 0;
const DOOR: u64 = 1 << 32;
const SERVER: u64 = 2 << 32;

/// Why a virtual lab could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum VirtualLabError {
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error("cannot create the socket {path}: {source}; set PHITWIRE_RUN_DIR to another directory")]
    Socket { path: PathBuf, source: io::Error },
    #[error("cannot install the signal handler: {0}")]
    Signals(#[from] ctrlc::Error),
    #[error("event loop failed: {0}")]
    Loop(#[from] io::Error),
}

counters! {
    /// What moved time, and what held it back.
    #[derive(Copy)]
    pub struct VirtualCounters {
        /// Turns of programs.
        turns,
        /// Polls without result that cost no time, because nothing was in flight.
        free_polls,
        /// Times that a program was found to wait for something outside of the lab.
        waits_outside,
        /// Virtual microseconds that followed the host's clock, after a long rest.
        by_host_us,
    }
}

/// A node with its sockets.
struct Hosted {
    id: NodeId,
    name: String,
    server: Server,
    door: Option<Door>,
    /// Holds the node's files.
    claim: Claim,
}

/// State of a rest.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// Number of programs; the rest begins anew when it changes.
    programs: usize,
    /// When a program has posted commands: the end of the time for others to arrive.
    settles: Option<Instant>,
    /// When programs may poll next.
    polls: Instant,
    /// Host time so far, without turns of programs.
    length: Duration,
    /// The end of `length`; `None` while a program has a turn.
    counted: Option<Instant>,
    /// The part of `length` that virtual time has followed, or that it does not follow.
    followed: Duration,
}

/// See the [module](self).
pub struct VirtualLab {
    world: World<dyn Network>,
    lab: String,
    nodes: Vec<Hosted>,
    /// Indices in `nodes` of those with doors.
    with_doors: BTreeMap<NodeId, usize>,
    /// Empty between calls.
    ran: Vec<NodeId>,
    epoll: Epoll,
    stop: Stop,
    outside: Outside,
    /// Whether the last wait for the sockets ended without any.
    overdue: bool,
    rest: Option<Rest>,
    /// Events until the next check for rest.
    until_check: u64,
    /// Whether anything was in flight at the last check.
    is_busy: bool,
    /// When that was.
    checked: Time,
    counters: VirtualCounters,
    started: Instant,
}

impl VirtualLab {
    /// Claims all nodes of the lab and opens their sockets. The world's links are up.
    ///
    /// # Errors
    /// See [`VirtualLabError`].
    pub fn new(
        directory: &LabDir,
        mut world: World<dyn Network>,
        stop: Stop,
    ) -> Result<Self, VirtualLabError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(io::Error::from)?;
        watch(&epoll, stop.wake_fd(), STOP)?;
        let mut named: Vec<_> = (world.topology().nodes().into_iter())
            .map(|node| (node, world.topology().node_name(node).into_owned()))
            .collect();
        // NICs first, by their numbers, which order the commands of an instant.
        named.sort_by_key(|(node, _)| match node {
            NodeRef::Processor(number) => (0, *number),
            NodeRef::Chip(number) => (1, *number),
        });
        let mut nodes = Vec::new();
        for (index, (node, name)) in (0..).zip(named) {
            let claim = directory.claim(&name)?;
            let id = world.id(node);
            let failed = |path: &std::path::Path| {
                let path = path.to_owned();
                move |source| VirtualLabError::Socket { path, source }
            };
            let mut has_door = false;
            world.fabric.attend(id, |device, _| {
                has_door = device.local_port().is_some();
                false
            });
            let door = has_door.then(|| Door::bind_virtual(claim.door()));
            let door = door.transpose().map_err(failed(claim.door()))?;
            let server = Server::bind(claim.socket(), &[]).map_err(failed(claim.socket()))?;
            if let Some(door) = &door {
                watch(&epoll, door.fd(), DOOR | index)?;
            }
            watch(&epoll, server.fd(), SERVER | index)?;
            nodes.push(Hosted {
                id,
                name,
                server,
                door,
                claim,
            });
        }
        let with_doors = nodes.iter().enumerate();
        let with_doors = with_doors.filter(|(_, node): &(_, &Hosted)| node.door.is_some());
        Ok(Self {
            with_doors: with_doors.map(|(index, node)| (node.id, index)).collect(),
            ran: Vec::new(),
            world,
            lab: directory.lab().to_owned(),
            nodes,
            epoll,
            stop,
            outside: Outside::default(),
            overdue: false,
            rest: None,
            until_check: 0,
            is_busy: false,
            checked: Time::ZERO,
            counters: VirtualCounters::default(),
            started: Instant::now(),
        })
    }

    /// Removes the lab's directory with everything in it, if it is still this lab's.
    pub fn remove(&self, directory: &LabDir) {
        if self.nodes.first().is_some_and(|node| node.claim.is_held()) {
            // What is left is harmless; down.sh removes it.
            let _ = std::fs::remove_dir_all(directory.path());
        }
    }

    /// Runs until a request to stop.
    ///
    /// # Errors
    /// When the process can no longer wait.
    pub fn run(&mut self) -> io::Result<()> {
        let mut pause = Some(Duration::ZERO);
        while self.stop.requests() == 0 {
            self.serve(pause)?;
            pause = self.turn();
        }
        Ok(())
    }

    /// Waits for a socket, at most for `pause`, and serves all that are ready.
    fn serve(&mut self, pause: Option<Duration>) -> io::Result<()> {
        let timeout = match pause {
            None => EpollTimeout::NONE,
            Some(pause) => {
                let ms = u16::try_from(pause.as_micros().div_ceil(1_000)).unwrap_or(u16::MAX);
                EpollTimeout::from(ms)
            }
        };
        let mut events = [EpollEvent::empty(); 64];
        let count = match self.epoll.wait(&mut events, timeout) {
            Err(nix::errno::Errno::EINTR) => 0,
            result => result?,
        };
        self.overdue = count == 0 && pause.is_some_and(|pause| !pause.is_zero());
        let mut ready: Vec<u64> = events[..count].iter().map(EpollEvent::data).collect();
        ready.sort_unstable();
        for data in ready {
            let index = (data & u64::from(u32::MAX)) as usize;
            match data & !u64::from(u32::MAX) {
                DOOR => self.serve_door(index)?,
                SERVER => self.serve_control(index)?,
                _ => self.stop.acknowledge(),
            }
        }
        Ok(())
    }

    fn serve_door(&mut self, index: usize) -> io::Result<()> {
        let Hosted { id, door, .. } = &mut self.nodes[index];
        let Some(door) = door else {
            return Ok(());
        };
        let mut served = Ok(false);
        self.world.fabric.attend(*id, |device, now| {
            if let Some(port) = device.local_port() {
                served = door.serve(now, port);
            }
            // A NIC whose program has left must end its operations.
            *served.as_ref().unwrap_or(&false)
        });
        if served? {
            self.check_rest_next();
        }
        Ok(())
    }

    const fn check_rest_next(&mut self) {
        self.until_check = 0;
    }

    /// Lets programs or the network run on. Returns how long to wait for the sockets; `None`: until
    /// one is ready.
    fn turn(&mut self) -> Option<Duration> {
        let seats = self.seats();
        if rule::next(&seats, self.world.fabric.now(), || true) == Step::Hold {
            return self.hold();
        }
        if !self.has_settled(&seats) {
            return self.poll_at_rest(&seats);
        }
        if self.take_commands() {
            self.check_rest_next();
        }
        if let Some(rest) = &mut self.rest {
            rest.settles = None;
        }
        let seats = self.seats();
        let now = self.world.fabric.now();
        match rule::next(&seats, now, || self.is_in_flight()) {
            Step::Hold => self.hold(),
            Step::Begin(programs) => {
                self.begin(&seats, &programs);
                Some(LOOK)
            }
            Step::Advance(until) => {
                self.rest = None;
                self.advance(until);
                Some(Duration::ZERO)
            }
            Step::Rest => self.poll_at_rest(&seats),
        }
    }

    /// A program has a turn, whose time is none of a rest.
    fn hold(&mut self) -> Option<Duration> {
        if let Some(rest) = &mut self.rest {
            rest.counted = None;
        }
        Some(LOOK)
    }

    /// The programs in the order of their NICs and members.
    fn seats(&mut self) -> Vec<Seat> {
        let nodes = self.nodes.iter().enumerate();
        let doors = nodes.filter_map(|(nic, node)| Some((nic, node.door.as_ref()?)));
        let mut seats: Vec<Seat> = doors
            .flat_map(|(nic, door)| {
                let seat = move |program| Seat {
                    nic,
                    program,
                    is_outside: false,
                };
                door.programs().into_iter().map(seat)
            })
            .collect();
        let mut running: Vec<i32> = rule::running(&seats)
            .map(|seat| seat.program.process)
            .collect();
        running.sort_unstable();
        running.dedup();
        if running.is_empty() && self.outside.is_empty() {
            return seats;
        }
        self.outside.keep(|process| running.contains(&process));
        let waiting = seats.iter().filter(|seat| seat.waits().is_some());
        let at_doors: Vec<u64> = waiting.map(|seat| seat.program.thread).collect();
        for process in running {
            if self.outside.is_outside(process, &at_doors, self.overdue) {
                let own = seats
                    .iter_mut()
                    .filter(|seat| seat.program.process == process);
                own.for_each(|seat| seat.is_outside = true);
            }
        }
        self.counters.waits_outside = self.outside.found;
        seats
    }

    /// Takes the commands of all programs, which wait. Returns whether a NIC got work.
    fn take_commands(&mut self) -> bool {
        let mut any = false;
        for Hosted { id, name, door, .. } in &mut self.nodes {
            let Some(door) = door else {
                continue;
            };
            let slots: Vec<usize> = door.programs().iter().map(|program| program.slot).collect();
            let before = door.commands();
            if slots.is_empty() {
                continue;
            }
            self.world.fabric.attend(*id, |device, now| {
                let port = device.local_port();
                let got =
                    port.is_some_and(|port| door.pass_in_order(slots.iter().copied(), now, port));
                any |= got;
                got
            });
            let commands = door.commands() - before;
            if commands > 0 {
                let now_ps = self.world.fabric.now().as_ps();
                tracing::trace!(now_ps, name, commands, "commands taken");
            }
        }
        any
    }

    /// Begins turns of programs.
    fn begin(&mut self, seats: &[Seat], programs: &[(usize, usize)]) {
        let now = self.world.fabric.now();
        tracing::trace!(now_ps = now.as_ps(), ?programs, "turns begin");
        // A thread reads the time at any of its NICs.
        for door in self.nodes.iter().filter_map(|node| node.door.as_ref()) {
            door.set_time(now);
        }
        for &(nic, slot) in programs {
            if let Some(door) = &mut self.nodes[nic].door {
                self.counters.turns += 1;
                door.begin_turn(slot, now);
            }
        }
        // The thread looks at all of its NICs.
        let begin = |seat: &Seat| programs.contains(&(seat.nic, seat.program.slot));
        for seat in seats.iter().filter(|seat| !begin(seat)) {
            let of_thread = |other: &Seat| begin(other) && other.is_of_thread(seat);
            if seats.iter().any(of_thread)
                && let Some(door) = &mut self.nodes[seat.nic].door
            {
                door.forget_news(seat.program.slot);
            }
        }
        self.check_rest_next();
    }

    /// Lets the network run until a program has something to read, at most to `until`.
    fn advance(&mut self, until: Option<Time>) {
        for _ in 0..EVENTS {
            let next = self.world.fabric.next_event_time();
            let now = self.world.fabric.now();
            if self.checked != now && next.is_none_or(|next| next > now + LONG_GAP) {
                self.check_rest_next();
                return;
            }
            match (next, until) {
                (next, Some(until)) if next.is_none_or(|next| next > until) => {
                    self.world.fabric.run_until(until);
                    return;
                }
                (None, None) => {
                    self.is_busy = false;
                    self.until_check = REST_EVERY;
                    return;
                }
                _ => self.world.fabric.step(),
            };
            self.until_check = self.until_check.saturating_sub(1);
            if self.deliver() || self.until_check == 0 {
                return;
            }
        }
    }

    /// Delivers completions of the nodes that ran at this instant. Returns whether a program has
    /// something to read.
    fn deliver(&mut self) -> bool {
        let mut ran = std::mem::take(&mut self.ran);
        ran.extend(self.world.fabric.ran());
        let mut any = false;
        for node in ran.drain(..) {
            let Some(&index) = self.with_doors.get(&node) else {
                continue;
            };
            let Some(door) = &mut self.nodes[index].door else {
                continue;
            };
            self.world.fabric.attend(node, |device, now| {
                let port = device.local_port();
                port.is_some_and(|port| door.pass_while_waiting(now, port))
            });
            any |= door.has_news();
        }
        self.ran = ran;
        any
    }

    /// Whether a command of a program, or a packet, is in flight. Checked after turns of programs,
    /// and every [`REST_EVERY`] events.
    fn is_in_flight(&mut self) -> bool {
        if self.until_check == 0 {
            self.until_check = REST_EVERY;
            self.checked = self.world.fabric.now();
            let doors = self.nodes.iter().filter_map(|node| node.door.as_ref());
            let mut programs = doors.flat_map(Door::programs);
            let fabric = &self.world.fabric;
            self.is_busy = programs.any(|program| program.is_busy)
                || self.nodes.iter().any(|node| {
                    let device = fabric.node(node.id);
                    // A NIC remembers transfers for some seconds after their end; before it, their
                    // programs are busy.
                    let transfers = device.account().transfers as u64;
                    device.holds() > transfers
                });
        }
        self.is_busy
    }

    /// Whether time may move again after a rest: no program has posted anything, or those that
    /// polled or waited outside have had time to do so, too.
    fn has_settled(&mut self, seats: &[Seat]) -> bool {
        let has_posted = seats.iter().any(|seat| seat.program.has_commands);
        let Some(rest) = self.rest.as_mut().filter(|_| has_posted) else {
            return true;
        };
        let may_arrive =
            |seat: &Seat| !seat.program.has_commands && (seat.polls() || seat.is_outside);
        let now = Instant::now();
        !seats.iter().any(may_arrive) || now >= *rest.settles.get_or_insert(now + SETTLE)
    }

    /// Time stands still: programs that poll may look outside again.
    fn poll_at_rest(&mut self, seats: &[Seat]) -> Option<Duration> {
        if seats.is_empty() {
            self.rest = None;
            return None;
        }
        let now = Instant::now();
        let new = Rest {
            programs: seats.len(),
            settles: None,
            polls: now,
            length: Duration::ZERO,
            counted: None,
            followed: LONGEST,
        };
        let rest = self.rest.get_or_insert(new);
        if rest.programs != new.programs {
            *rest = new;
        }
        let counted = rest.counted.replace(now).unwrap_or(now);
        rest.length += now.saturating_duration_since(counted).min(MOST_AT_ONCE);
        let by_host = rest.length.saturating_sub(rest.followed);
        if rest.settles.is_none() && by_host >= LOOK {
            rest.followed = rest.length;
            let span = Span::from_ns(u64::try_from(by_host.as_nanos()).unwrap_or(0));
            self.counters.by_host_us += span.as_ns() / 1_000;
            self.world.fabric.run_for(span);
            self.check_rest_next();
            return Some(LOOK);
        }
        let polls = seats
            .iter()
            .filter(|seat| seat.polls() && !seat.program.has_commands);
        let polls: Vec<_> = polls.map(|seat| (seat.nic, seat.program.slot)).collect();
        if polls.is_empty() {
            let left = match rest.settles {
                Some(end) => end.saturating_duration_since(now),
                None => rest.followed.saturating_sub(rest.length),
            };
            return Some(left.clamp(LOOK, MOST_AT_ONCE));
        }
        if now >= rest.polls {
            rest.polls = now + LOOK;
            self.counters.free_polls += polls.len() as u64;
            self.begin(seats, &polls);
        }
        Some(LOOK)
    }
}

fn watch(epoll: &Epoll, fd: BorrowedFd<'_>, data: u64) -> io::Result<()> {
    Ok(epoll.add(fd.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, data))?)
}
