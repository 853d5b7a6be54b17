//! When virtual time moves, and whose turn begins.

use phitwire::time::Time;
use phitwire_framing::door::segment::WaitKind;

use crate::door::{Program, State};

/// A program and the index of its NIC.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    pub nic: usize,
    pub program: Program,
    /// Whether its process sleeps for something outside of the lab.
    pub is_outside: bool,
}

/// What the lab does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before a program ends its turn.
    Hold,
    /// Turns of these programs (NIC, slot) begin now.
    Begin(Vec<(usize, usize)>),
    /// Time moves to the next event of the network, at most to this time.
    Advance(Option<Time>),
    /// All programs wait for each other or for something outside: time stands still.
    Rest,
}

impl Seat {
    pub(super) const fn waits(&self) -> Option<(WaitKind, Time)> {
        match self.program.state {
            State::Runs => None,
            State::Waits(kind, until) => Some((kind, until)),
        }
    }

    /// Whether this program may poll without result until something outside happens.
    pub(super) const fn polls(&self) -> bool {
        matches!(
            self.waits(),
            Some((WaitKind::Poll | WaitKind::Arrival, _))
        )
    }

    /// Whether one thread uses both NICs.
    fn is_of_thread(&self, other: &Self) -> bool {
        let (own, other) = (&self.program, &other.program);
        own.process != 0 && (own.process, own.thread) == (other.process, other.thread)
    }
}

/// The programs that compute. A thread that waits at one of its NICs uses none of the others.
pub(super) fn running(seats: &[Seat]) -> impl Iterator<Item = &Seat> {
    seats.iter().filter(|seat| {
        let waits_elsewhere =
            |other: &Seat| other.waits().is_some() && seat.is_of_thread(other);
        seat.waits().is_none() && !seats.iter().any(waits_elsewhere)
    })
}

/// The next step at `now`. `is_busy` tells whether anything is in flight, in the network or at a
/// NIC; it is called only if that matters.
pub(super) fn next(seats: &[Seat], now: Time, is_busy: impl FnOnce() -> bool) -> Step {
    if running(seats).any(|seat| !seat.is_outside) {
        return Step::Hold;
    }
    let begins = |seat: &&Seat| {
        let Some((kind, until)) = seat.waits() else {
            return false;
        };
        let of_thread = || seats.iter().filter(|other| seat.is_of_thread(other));
        let has_news = |all: bool| {
            let program = &seat.program;
            program.has_news || all && of_thread().any(|other| other.program.has_news)
        };
        let was_written = || {
            let program = &seat.program;
            program.was_written || of_thread().any(|other| other.program.was_written)
        };
        until <= now
            || match kind {
                WaitKind::Completion => has_news(false),
                WaitKind::Poll => has_news(true),
                WaitKind::Arrival => has_news(true) || was_written(),
                WaitKind::Sleep => false,
            }
    };
    let begin: Vec<_> = seats.iter().filter(begins).collect();
    if !begin.is_empty() {
        let place = |seat: &&Seat| (seat.nic, seat.program.slot);
        return Step::Begin(begin.iter().map(place).collect());
    }
    let waits = || seats.iter().filter_map(Seat::waits);
    let sleeps = waits().any(|(kind, _)| kind == WaitKind::Sleep);
    if !sleeps && !is_busy() {
        return Step::Rest;
    }
    Step::Advance(waits().map(|(_, until)| until).min())
}
