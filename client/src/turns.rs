//! Turns of a program in a virtual lab, where time moves only while every program waits.
//!
//! A program's turn lasts from its wake to its next wait. The program ends the turn by writing what
//! it waits for, and then the number of the turn; the lab begins the next one by advancing that
//! number. So the lab alone decides when time moves, and a program's speed does not matter.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use nix::unistd::gettid;
use phitwire_framing::door::segment::{
    ATTACHMENT_AT, THREAD_AT, TURN_AT, VIRTUAL_NOW_AT, WAIT_KIND_AT, WAIT_UNTIL_AT, WAITED_TURN_AT,
    WaitKind,
};

use crate::Mapping;

/// Virtual times of the first pauses of a program that polls without result, and of all further
/// ones. An arrival ends a pause, so long ones only save turns.
const PAUSES_NS: [u64; 4] = [100, 800, 6_400, 10_000];

/// The virtual time to pause after this many polls without result: none after the first, since a
/// program that has taken its completions polls once more.
pub fn pause_after(empty_polls: u32) -> Option<Duration> {
    let pause = empty_polls.checked_sub(2)? as usize;
    let pause = PAUSES_NS.get(pause).or(PAUSES_NS.last());
    pause.copied().map(Duration::from_nanos)
}

/// The clock of a virtual lab. It can be read from any thread; after the program has detached, it
/// stands still.
#[derive(Clone, Debug)]
pub struct VirtualClock(Arc<Mapping>);

impl VirtualClock {
    /// The virtual time since the start of the lab.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.word(VIRTUAL_NOW_AT).load(Relaxed))
    }
}

/// The turns of a program at one NIC.
#[derive(Debug)]
pub(crate) struct Turns {
    mapping: Arc<Mapping>,
    turn: u64,
    /// Consecutive polls without result.
    empty_polls: u32,
}

thread_local! {
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The id of this thread.
fn thread() -> u64 {
    THREAD.with(|known| {
        if known.get() == 0 {
            known.set(u64::from(gettid().as_raw().cast_unsigned()));
        }
        known.get()
    })
}

pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Turns {
    /// The turns on a segment of a virtual lab. The first one has begun.
    pub(crate) fn new(mapping: Arc<Mapping>) -> Self {
        let turn = mapping.word(TURN_AT).load(Acquire);
        mapping.word(THREAD_AT).store(thread(), Relaxed);
        Self {
            mapping,
            turn,
            empty_polls: 0,
        }
    }

    pub(crate) fn clock(&self) -> VirtualClock {
        VirtualClock(self.mapping.clone())
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Duration {
        Duration::from_nanos(self.mapping.word(VIRTUAL_NOW_AT).load(Relaxed))
    }

    /// Number of programs that had attached to this NIC, this one included.
    pub(crate) fn attachment(&self) -> u64 {
        self.mapping.word(ATTACHMENT_AT).load(Relaxed)
    }

    /// Ends the turn. The lab then must be woken.
    pub(crate) fn end(&self, kind: WaitKind, until: Duration) {
        let write = |at, value| self.mapping.word(at).store(value, Relaxed);
        write(THREAD_AT, thread());
        write(WAIT_KIND_AT, kind as u64);
        write(WAIT_UNTIL_AT, nanos(until));
        // Release: the lab that sees the end of the turn also sees what the program waits for, and
        // everything that it has posted.
        self.mapping.word(WAITED_TURN_AT).store(self.turn, Release);
    }

    /// Whether the lab has begun the next turn.
    pub(crate) fn has_begun(&mut self) -> bool {
        // Acquire: the program sees the time of the turn, and what the NIC wrote before.
        let turn = self.mapping.word(TURN_AT).load(Acquire);
        let is_new = turn > self.turn;
        self.turn = self.turn.max(turn);
        is_new
    }

    /// Continues without a turn of the lab, after an event outside of it.
    pub(crate) fn resume(&mut self) {
        if !self.has_begun() {
            let before = self.turn.saturating_sub(1);
            self.mapping.word(WAITED_TURN_AT).store(before, Release);
        }
    }

    /// Notes the result of a poll.
    pub(crate) const fn polled(&mut self, found: bool) {
        self.empty_polls = match found {
            true => 0,
            false => self.empty_polls.saturating_add(1),
        };
    }

    pub(crate) fn pause(&self) -> Option<Duration> {
        pause_after(self.empty_polls)
    }
}
