//! Mistakes that link ends make on purpose in this thread, for canaries: whoever looks must find them.

use core::cell::Cell;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sabotage {
    /// Every hundredth place that becomes free is told twice.
    CreditsTwice,
    /// Every hundredth place that becomes free is not told.
    CreditsLost,
    /// Destinations take wrong words for right ones.
    WrongWordsPass,
}

thread_local! {
    static MADE: Cell<Option<Sabotage>> = const { Cell::new(None) };
    static FREED: Cell<u32> = const { Cell::new(0) };
}

/// Runs something while this mistake is made.
pub(crate) fn during<T>(mistake: Sabotage, run: impl FnOnce() -> T) -> T {
    MADE.set(Some(mistake));
    let result = run();
    MADE.set(None);
    result
}

/// Whether this mistake is made.
pub(crate) fn is(mistake: Sabotage) -> bool {
    MADE.get() == Some(mistake)
}

/// The places that are told as free, of which the last has just become so.
pub(super) fn of_credits(freed: u32) -> u32 {
    FREED.set(FREED.get().wrapping_add(1));
    match MADE.get() {
        Some(Sabotage::CreditsTwice) if FREED.get().is_multiple_of(100) => freed + 1,
        Some(Sabotage::CreditsLost) if FREED.get().is_multiple_of(100) => freed - 1,
        _ => freed,
    }
}
