//! Deliberate faults of link ends in this thread, for canaries: checkers must detect them.

use core::cell::Cell;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Every hundredth freed slot is reported twice.
    CreditsTwice,
    /// Every hundredth freed slot is not reported.
    CreditsLost,
    /// Destinations accept wrong words.
    WrongWordsPass,
}

thread_local! {
    static MADE: Cell<Option<Sabotage>> = const { Cell::new(None) };
    static FREED: Cell<u32> = const { Cell::new(0) };
}

/// Runs a function with this fault active.
pub(crate) fn during<T>(mistake: Sabotage, run: impl FnOnce() -> T) -> T {
    MADE.set(Some(mistake));
    let result = run();
    MADE.set(None);
    result
}

pub(crate) fn is(mistake: Sabotage) -> bool {
    MADE.get() == Some(mistake)
}

/// The number of freed slots to report; the last was just freed.
pub(super) fn of_credits(freed: u32) -> u32 {
    FREED.set(FREED.get().wrapping_add(1));
    match MADE.get() {
        Some(Sabotage::CreditsTwice) if FREED.get().is_multiple_of(100) => freed + 1,
        Some(Sabotage::CreditsLost) if FREED.get().is_multiple_of(100) => freed - 1,
        _ => freed,
    }
}
