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
        matches!(self.waits(), Some((WaitKind::Poll | WaitKind::Arrival, _)))
    }

    /// Whether one thread uses both NICs.
    pub(super) fn is_of_thread(&self, other: &Self) -> bool {
        let (own, other) = (&self.program, &other.program);
        own.process != 0 && (own.process, own.thread) == (other.process, other.thread)
    }
}

/// The programs that compute. A thread that waits at one of its NICs uses none of the others.
pub(super) fn running(seats: &[Seat]) -> impl Iterator<Item = &Seat> {
    seats.iter().filter(|seat| {
        let waits_elsewhere = |other: &Seat| other.waits().is_some() && seat.is_of_thread(other);
        seat.waits().is_none() && !seats.iter().any(waits_elsewhere)
    })
}

/// The next step at `now`. `is_busy` tells whether anything is in flight, in the network or at a
/// NIC; it is called if no turn begins.
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
    let ends = || waits().filter(|&(_, until)| until < Time::NEVER);
    let sleeps = ends().any(|(kind, _)| kind == WaitKind::Sleep);
    if !is_busy() && !sleeps {
        return Step::Rest;
    }
    Step::Advance(ends().map(|(_, until)| until).min())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_ns(1_000);

    /// A program at NIC `nic` whose NIC a thread of its own uses.
    fn seat(nic: usize, state: State) -> Seat {
        Seat {
            nic,
            program: Program {
                slot: 0,
                member: 0,
                process: 1,
                thread: nic as u64,
                state,
                has_news: false,
                was_written: false,
                is_busy: false,
                has_commands: false,
            },
            is_outside: false,
        }
    }

    fn waits(kind: WaitKind, ns: u64) -> State {
        State::Waits(kind, Time::from_ns(ns))
    }

    fn step(seats: &[Seat], is_busy: bool) -> Step {
        next(seats, NOW, || is_busy)
    }

    #[test]
    fn time_stands_still_while_a_program_computes() {
        let waiting = seat(0, waits(WaitKind::Completion, 9_000));
        let mut running = seat(1, State::Runs);
        assert_eq!(step(&[waiting, running], true), Step::Hold);
        running.is_outside = true;
        let until = Some(Time::from_ns(9_000));
        assert_eq!(step(&[waiting, running], true), Step::Advance(until));
        assert_eq!(step(&[waiting, running], false), Step::Rest);
        assert_eq!(step(&[], true), Step::Advance(None));
        assert_eq!(step(&[], false), Step::Rest);
    }

    #[test]
    fn a_thread_that_waits_at_one_nic_does_not_compute_at_another() {
        let waiting = seat(0, waits(WaitKind::Poll, 2_000));
        let mut other = seat(1, State::Runs);
        other.program.thread = waiting.program.thread;
        assert!(matches!(step(&[waiting, other], true), Step::Advance(_)));
        other.program.has_news = true;
        assert_eq!(step(&[waiting, other], true), Step::Begin(vec![(0, 0)]));
        let completion = seat(0, waits(WaitKind::Completion, 2_000));
        assert!(matches!(step(&[completion, other], true), Step::Advance(_)));
        other.program.process = 2;
        assert_eq!(step(&[waiting, other], true), Step::Hold);
    }

    #[test]
    fn every_wait_ends_by_what_it_waits_for_or_by_its_time() {
        use WaitKind::{Arrival, Completion, Poll, Sleep};
        for (kind, by_news, by_write) in [
            (Completion, true, false),
            (Poll, true, false),
            (Arrival, true, true),
            (Sleep, false, false),
        ] {
            let mut it = seat(0, waits(kind, 1_001));
            let begins = |seat: Seat| step(&[seat], true) == Step::Begin(vec![(0, 0)]);
            assert!(!begins(it), "{kind:?}");
            it.program.has_news = true;
            assert_eq!(begins(it), by_news, "{kind:?}");
            it.program.has_news = false;
            it.program.was_written = true;
            assert_eq!(begins(it), by_write, "{kind:?}");
            assert!(begins(seat(0, waits(kind, 1_000))), "{kind:?}");
        }
    }

    #[test]
    fn time_moves_to_the_first_end_of_a_wait_and_at_rest_only_for_sleepers() {
        let poll = seat(0, waits(WaitKind::Poll, 1_300));
        let limit = seat(1, waits(WaitKind::Completion, 5_000));
        let sleep = seat(2, waits(WaitKind::Sleep, 2_000));
        let at = |ns| Step::Advance(Some(Time::from_ns(ns)));
        assert_eq!(step(&[poll, limit], true), at(1_300));
        assert_eq!(step(&[poll, limit], false), Step::Rest);
        assert_eq!(step(&[limit, sleep], false), at(2_000));
        let for_ever = seat(3, State::Waits(WaitKind::Sleep, Time::NEVER));
        assert_eq!(step(&[for_ever], false), Step::Rest);
        assert_eq!(step(&[for_ever], true), Step::Advance(None));
        assert_eq!(step(&[for_ever, sleep], false), at(2_000));
    }
}
