//! Arbiters as bit operations on request masks.
//!
//! The 8-to-1 stages of a router and the tie-break of an adaptive column choice are matrix
//! arbiters; the 2-to-1 stages between virtual channels are [`RoundRobin`]. BlackWidow sec. 5.1
//! names a matrix arbiter only for ties between columns; BlackWidow sec. 6 leaves the 8-to-1 and
//! 2-to-1 stages open.

/// One bit in every byte of a word.
const LOW_BITS: u64 = 0x0101_0101_0101_0101;
/// The low seven bits of every byte of a word.
const LOW_SEVEN: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// Per winner, the bits of a [`MatrixArbiter`] that a grant keeps, and those it sets: from then on
/// all others precede the winner, and it precedes none.
const GRANTS: [(u64, u64); 8] = {
    let mut grants = [(0, 0); 8];
    let mut winner = 0;
    while winner < 8 {
        let others = 0xff ^ (1 << winner);
        grants[winner] = (!(LOW_BITS << winner), others << (8 * winner));
        winner += 1;
    }
    grants
};

/// Gathers bit 7 of every byte into a mask of eight bits, byte 0 first.
#[inline]
pub const fn high_bits_of_bytes(word: u64) -> u8 {
    (((word >> 7) & LOW_BITS).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8
}

/// An 8-to-1 matrix arbiter: the least recently granted requester wins (BlackWidow sec. 5.1, citing
/// Dally and Towles).
///
/// Byte `i` of the word is the set of requesters that precede requester `i`; a fresh arbiter
/// prefers low numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatrixArbiter(u64);

impl Default for MatrixArbiter {
    fn default() -> Self {
        Self::new()
    }
}

impl MatrixArbiter {
    /// An arbiter whose order of preference is 0, 1, .. 7.
    pub const fn new() -> Self {
        Self(0x7f3f_1f0f_0703_0100)
    }

    /// The winner among `requests`, without recording that it won.
    ///
    /// `requests` must not be empty; for an empty mask the result is meaningless (but below 8).
    #[inline]
    pub const fn pick(self, requests: u8) -> u8 {
        debug_assert!(requests != 0, "an arbiter needs at least one request");
        if requests & requests.wrapping_sub(1) == 0 {
            return (requests.trailing_zeros() & 7) as u8;
        }
        // Requester i wins if no requester that precedes it requests: byte i of `rivals` is zero.
        let rivals = self.0 & (requests as u64 * LOW_BITS);
        let nonzero = ((rivals & LOW_SEVEN) + LOW_SEVEN) | rivals;
        ((!high_bits_of_bytes(nonzero) & requests).trailing_zeros() & 7) as u8
    }

    /// Moves `winner` to the end of the order of preference.
    #[inline]
    pub const fn grant(&mut self, winner: u8) {
        let (kept, added) = GRANTS[(winner & 7) as usize];
        self.0 = self.0 & kept | added;
    }

    /// [`pick`](Self::pick) and [`grant`](Self::grant) in one step.
    #[inline]
    pub const fn arbitrate(&mut self, requests: u8) -> u8 {
        let winner = self.pick(requests);
        self.grant(winner);
        winner
    }
}

/// Independent 2-to-1 round-robin arbiters, one per bit of a `u64` (one per port).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoundRobin(u64);

impl RoundRobin {
    /// Arbiters that all prefer requester 0.
    pub const fn new() -> Self {
        Self(0)
    }

    /// Chooses between two requesters of arbiter `index`, at least one of which requests, and
    /// prefers the other next time.
    #[inline]
    pub const fn arbitrate(&mut self, index: u32, first: bool, second: bool) -> usize {
        debug_assert!(first || second, "an arbiter needs at least one request");
        let prefers_second = (self.0 >> index) & 1 != 0;
        let choice = second && (prefers_second || !first);
        self.0 = (self.0 & !(1 << index)) | ((!choice as u64) << index);
        choice as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Reference model: the matrix arbiter as an explicit preference list.
    struct Reference(Vec<u8>);

    impl Reference {
        fn arbitrate(&mut self, requests: u8) -> u8 {
            let at = self
                .0
                .iter()
                .position(|&i| requests >> i & 1 != 0)
                .expect("a request");
            let winner = self.0.remove(at);
            self.0.push(winner);
            winner
        }
    }

    #[test]
    fn matrix_arbiter_grants_the_least_recently_granted() {
        let mut rng = Rng::new(1, 1);
        let mut arbiter = MatrixArbiter::new();
        let mut reference = Reference((0..8).collect());
        for _ in 0..20_000 {
            let requests = (rng.below(255) + 1) as u8;
            assert_eq!(arbiter.arbitrate(requests), reference.arbitrate(requests));
        }
    }

    #[test]
    fn matrix_arbiter_serves_persistent_requesters_equally() {
        for requests in 1..=255u8 {
            let mut arbiter = MatrixArbiter::new();
            let mut grants = [0; 8];
            for _ in 0..requests.count_ones() * 10 {
                grants[usize::from(arbiter.arbitrate(requests))] += 1;
            }
            for (i, &count) in grants.iter().enumerate() {
                assert_eq!(count, if requests >> i & 1 != 0 { 10 } else { 0 });
            }
        }
    }

    #[test]
    fn picking_does_not_change_the_order() {
        let mut arbiter = MatrixArbiter::new();
        arbiter.grant(0);
        assert_eq!(arbiter.pick(0b101), 2);
        assert_eq!(arbiter.pick(0b101), 2);
    }

    #[test]
    fn round_robin_alternates_and_never_grants_a_silent_requester() {
        let mut rr = RoundRobin::new();
        assert_eq!(
            (0..4)
                .map(|_| rr.arbitrate(5, true, true))
                .collect::<Vec<_>>(),
            [0, 1, 0, 1]
        );
        assert_eq!(rr.arbitrate(5, false, true), 1);
        assert_eq!(rr.arbitrate(5, true, true), 0);
        assert_eq!(rr.arbitrate(5, true, false), 0);
        assert_eq!(rr.arbitrate(5, true, true), 1);
        assert_eq!(rr.arbitrate(6, true, true), 0, "arbiters are independent");
        assert_eq!(rr.arbitrate(63, true, true), 0);
        assert_eq!(rr.arbitrate(63, true, true), 1);
    }

    #[test]
    fn gathering_high_bits_keeps_their_order() {
        for mask in 0..=255u8 {
            let word = (0..8).fold(0u64, |w, i| w | u64::from(mask >> i & 1) << (8 * i + 7));
            assert_eq!(high_bits_of_bytes(word | 0x7f7f_7f7f_7f7f_7f7f), mask);
        }
    }
}
