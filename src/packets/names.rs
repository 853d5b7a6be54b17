//! The names of requests: the [slot](crate::nic::slab) in the lowest bits, and above it the
//! [period](crate::nic::periods) in which the request was posted, modulo as many as the bits above
//! can tell.

/// Bits that are left for the period at least.
const LEAST_PERIOD_BITS: u32 = 4;
/// Bits for the period with which periods need not be longer than usual.
const PERIOD_BITS: u32 = 6;
/// Bits that name a slot at most.
const MOST_SLOT_BITS: u32 = 16;

/// Most requests that may be outstanding where a name has so many bits, 5 at least.
pub const fn most_outstanding(name_bits: u32) -> u32 {
    assert!(LEAST_PERIOD_BITS < name_bits && name_bits <= u64::BITS);
    let slot_bits = name_bits - LEAST_PERIOD_BITS;
    1 << if slot_bits < MOST_SLOT_BITS {
        slot_bits
    } else {
        MOST_SLOT_BITS
    }
}

/// How slots and periods make names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    slot_bits: u32,
    period_bits: u32,
}

impl Names {
    /// The names of `name_bits` bits of as many requests.
    ///
    /// # Panics
    /// If there are none, or more than [`most_outstanding`]; who makes configurations knows.
    pub(super) fn new(name_bits: u32, outstanding: u32) -> Self {
        let most = most_outstanding(name_bits);
        assert!(
            (1..=most).contains(&outstanding),
            "{outstanding} requests may be outstanding: names of {name_bits} bits tell 1 to {most} apart"
        );
        let slot_bits = outstanding.next_power_of_two().ilog2();
        Self {
            slot_bits,
            period_bits: (name_bits - slot_bits).min(u32::BITS),
        }
    }

    /// How many times as long as usual periods have to be, so that the fewer bits that more slots
    /// leave for them tell them apart for as long.
    pub(super) fn longer_periods(self) -> u64 {
        1 << PERIOD_BITS.saturating_sub(self.period_bits)
    }

    #[inline]
    pub(super) const fn name(self, slot: u32, period: u32) -> u64 {
        let period = period as u64 & ((1 << self.period_bits) - 1);
        period << self.slot_bits | slot as u64
    }

    /// The slot that `name` names, if it has a name.
    #[inline]
    pub(super) const fn slot(self, name: u64) -> u32 {
        name as u32 & ((1 << self.slot_bits) - 1)
    }
}
