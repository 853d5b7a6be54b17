//! Programs of a virtual lab, which take turns: see `phitwire_client`'s `turns` for their side.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::socket::{getsockopt, sockopt};
use phitwire::nic::local::LocalPort;
use phitwire::time::Time;
use phitwire_client::mapping::Mapping;
use phitwire_framing::door::segment::{
    ATTACHMENT_AT, THREAD_AT, TURN_AT, VIRTUAL_NOW_AT, WAIT_KIND_AT, WAIT_UNTIL_AT, WAITED_TURN_AT,
    WaitKind,
};

use super::Door;
use super::client::Attached;

/// A wait until this time, after 104 days, or longer has no end.
const NEVER_NS: u64 = 1 << 53;
/// Maximum number of times that commands which end at once make room for more.
const MOST_ROUNDS: u32 = 1_000;

/// The turns of one program.
#[derive(Debug)]
pub(super) struct TurnKeeper {
    mapping: Arc<Mapping>,
    turn: u64,
    member: u8,
    /// Id of the program's process, 0 if unknown.
    process: i32,
    /// Whether completions, or room for commands, have been published in the current wait.
    pub(super) has_news: bool,
    /// Whether the NIC has written to the program's memory.
    pub(super) written: Arc<AtomicBool>,
    /// Receives that have been posted and have not ended.
    pub(super) receives: u64,
}

/// Whether a program computes or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It computes, or waits for something outside of the lab.
    Runs,
    /// It waits for an event of this kind, at most until this time.
    Waits(WaitKind, Time),
}

/// A program, as the lab sees it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its slot at the door.
    pub slot: usize,
    /// Its member number, by which programs at one NIC are ordered.
    pub member: u8,
    /// Id of the process, 0 if unknown.
    pub process: i32,
    /// Id of the thread that uses the NIC.
    pub thread: u64,
    pub state: State,
    /// Whether there are completions, or room for commands, since its last wake.
    pub has_news: bool,
    /// Whether its memory has been written to since its last wake.
    pub was_written: bool,
    /// Whether commands other than receives have not ended.
    pub is_busy: bool,
    /// Whether it has posted commands that the NIC has not taken.
    pub has_commands: bool,
}

impl TurnKeeper {
    pub(super) fn new(mapping: Arc<Mapping>, stream: &UnixStream, attachment: u64) -> Self {
        mapping
            .word(ATTACHMENT_AT)
            .store(attachment, Ordering::Relaxed);
        let peer = getsockopt(stream, sockopt::PeerCredentials);
        Self {
            mapping,
            turn: 0,
            member: 0,
            process: peer.map_or(0, |peer| peer.pid()),
            has_news: false,
            written: Arc::default(),
            receives: 0,
        }
    }

    /// Begins the first turn of a program that was admitted as `member`.
    pub(super) fn begin(&mut self, member: u8, now: Time) {
        self.member = member;
        self.next(now);
    }

    fn forget_news(&mut self) {
        self.has_news = false;
        self.written.store(false, Ordering::Relaxed);
    }

    fn next(&mut self, now: Time) {
        self.turn += 1;
        self.forget_news();
        self.set_time(now);
        // Release: the program that sees the turn sees its time.
        let turn = self.mapping.word(TURN_AT);
        turn.store(self.turn, Ordering::Release);
    }

    fn set_time(&self, now: Time) {
        let time = self.mapping.word(VIRTUAL_NOW_AT);
        time.store(now.as_ns(), Ordering::Relaxed);
    }

    fn state(&self) -> State {
        let read = |word| self.mapping.word(word).load(Ordering::Relaxed);
        // Acquire: what the program waits for was written before.
        let waited = self.mapping.word(WAITED_TURN_AT).load(Ordering::Acquire);
        let kind = WaitKind::of(read(WAIT_KIND_AT));
        match kind {
            Some(kind) if waited == self.turn => {
                let until = Some(read(WAIT_UNTIL_AT)).filter(|&ns| ns < NEVER_NS);
                State::Waits(kind, until.map_or(Time::NEVER, Time::from_ns))
            }
            _ => State::Runs,
        }
    }
}

impl Door {
    /// The programs, in the order of their member numbers.
    pub fn programs(&self) -> Vec<Program> {
        let clients = self.clients.iter().enumerate();
        let mut all: Vec<_> = clients
            .filter_map(|(slot, client)| {
                let client = client.as_ref()?;
                let turns = client.turns.as_ref()?;
                Some(Program {
                    slot,
                    member: turns.member,
                    process: turns.process,
                    thread: turns.mapping.word(THREAD_AT).load(Ordering::Relaxed),
                    state: turns.state(),
                    has_news: turns.has_news,
                    was_written: turns.written.load(Ordering::Relaxed),
                    is_busy: client.is_busy(),
                    has_commands: client.has_commands(),
                })
            })
            .collect();
        all.sort_by_key(|program| (program.member, program.slot));
        all
    }

    /// Delivers completions and takes all commands, in the order of `slots`. Returns whether the
    /// NIC got work. Call it only while all programs wait.
    pub fn pass_in_order(
        &mut self,
        slots: impl Iterator<Item = usize> + Clone,
        now: Time,
        port: &mut dyn LocalPort,
    ) -> bool {
        let mut any = false;
        for _ in 0..MOST_ROUNDS {
            self.deliver(port);
            let before = self.counters.commands;
            for slot in slots.clone() {
                any |= self.take(slot, now, port, false);
            }
            if self.counters.commands == before {
                break;
            }
        }
        port.flush();
        any
    }

    /// Delivers completions while programs wait, and offers commands again that the NIC could not
    /// take before. Returns whether the NIC got work.
    pub fn pass_while_waiting(&mut self, now: Time, port: &mut dyn LocalPort) -> bool {
        self.deliver(port);
        let mut any = false;
        for slot in 0..self.used_slots() {
            if self.clients[slot]
                .as_ref()
                .is_some_and(Attached::is_held_up)
            {
                any |= self.take(slot, now, port, false);
            }
            if let Some(client) = &mut self.clients[slot] {
                client.publish();
            }
        }
        port.flush();
        any
    }

    /// Commands taken so far.
    pub fn commands(&self) -> u64 {
        self.counters.commands
    }

    /// Whether something has arrived that a program may wait for.
    pub fn has_news(&self) -> bool {
        let clients = self.clients[..self.used_slots()].iter().flatten();
        let mut turns = clients.filter_map(Attached::turns);
        turns.any(|turns| {
            let is_written = turns.written.load(Ordering::Relaxed);
            turns.has_news
                || is_written && matches!(turns.state(), State::Waits(WaitKind::Arrival, _))
        })
    }

    /// Shows all programs the time.
    pub fn set_time(&self, now: Time) {
        let clients = self.clients[..self.used_slots()].iter().flatten();
        clients
            .filter_map(Attached::turns)
            .for_each(|turns| turns.set_time(now));
    }

    /// Forgets what has arrived for a program whose thread has a turn by another NIC.
    pub fn forget_news(&mut self, slot: usize) {
        let client = self.clients[slot].as_mut();
        if let Some(turns) = client.and_then(|client| client.turns.as_mut()) {
            turns.forget_news();
        }
    }

    /// Begins the next turn of a program.
    pub fn begin_turn(&mut self, slot: usize, now: Time) {
        if let Some(client) = &mut self.clients[slot]
            && let Some(turns) = &mut client.turns
        {
            turns.next(now);
            client.wake();
        }
    }
}
