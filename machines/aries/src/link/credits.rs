//! Credits of a dynamically shared buffer at both ends of a link, as cumulative counts.
//!
//! A session starts without credits: the receiver's first control set announces them. Its counts
//! start at minus the number of flits that its buffer still holds from an earlier session.

use phitwire_framing::aries::flit::VCS;

use phitwire::link::credits::Impossible;

/// A count that differs by more is older, not newer.
const HALF: u32 = 1 << 31;

/// The sender's side: how much of the peer's buffer each channel uses.
///
/// Every channel has a private part and takes what it uses beyond that from the common part
/// (publicly known of Aries: private and shared limits). Counts wrap at 2^32, far beyond any
/// buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedCredits {
    private: u32,
    common: u32,
    common_used: u32,
    used_in_all: u32,
    sent: [u32; VCS],
    freed: [u32; VCS],
    announced: bool,
}

impl SharedCredits {
    /// Starts without credits, for a buffer of `common` flits and `private` ones per channel.
    pub fn new(private: u32, common: u32) -> Self {
        Self {
            private,
            common,
            ..Self::default()
        }
    }

    /// Flits of the peer's buffer that `vc` uses.
    #[inline]
    pub fn used(&self, vc: usize) -> u32 {
        self.sent[vc].wrapping_sub(self.freed[vc])
    }

    /// Far-end load: the known number of flits in the peer's buffer, given that `unacknowledged` of
    /// the sent flits are not acknowledged and `early` of the counted credits have not arrived.
    #[inline]
    pub fn far_flits(&self, early: u32, unacknowledged: u32) -> u32 {
        (self.used_in_all + early).saturating_sub(unacknowledged)
    }

    /// Flits that may be sent on `vc` now.
    #[inline]
    pub fn available(&self, vc: usize) -> u32 {
        if !self.announced {
            return 0;
        }
        let private = self.private.saturating_sub(self.used(vc));
        private + self.common - self.common_used
    }

    /// Whether the peer owes credits, or has not announced them.
    #[inline]
    pub fn is_owed(&self) -> bool {
        self.used_in_all != 0 || !self.announced
    }

    /// How many of `used` flits of a channel are in the common part.
    #[inline]
    fn beyond(&self, used: u32) -> u32 {
        used.saturating_sub(self.private)
    }

    /// Takes credits for a packet of `flits` flits on `vc`.
    ///
    /// # Panics
    /// If there are too few: the caller checks the credits for the whole packet first.
    #[inline]
    pub fn take(&mut self, vc: usize, flits: u32) {
        assert!(self.available(vc) >= flits, "packet sent without credits");
        let used = self.used(vc);
        self.common_used += self.beyond(used + flits) - self.beyond(used);
        self.sent[vc] = self.sent[vc].wrapping_add(flits);
        self.used_in_all += flits;
        debug_assert!(
            self.common_used <= self.common,
            "channels share the common part"
        );
    }

    /// Checks that the peer can have freed as many flits of each channel as `counts` says.
    pub fn check_all(&self, counts: &[u32; VCS]) -> Result<(), Impossible> {
        let offered = self.private * VCS as u32 + self.common;
        let (mut owed, mut common) = (0_u32, 0_u32);
        for (vc, count) in counts.iter().enumerate() {
            let used = self.sent[vc].wrapping_sub(*count);
            if self.announced {
                let step = count.wrapping_sub(self.freed[vc]);
                if step < HALF && step > self.used(vc) {
                    return Err(Impossible);
                }
            } else if used > offered {
                return Err(Impossible);
            } else {
                owed += used;
                common += self.beyond(used);
            }
        }
        if owed > offered || common > self.common {
            return Err(Impossible);
        }
        Ok(())
    }

    /// Applies the peer's counts, checked before; returns the flits newly freed.
    pub fn release_all(&mut self, counts: &[u32; VCS]) -> u32 {
        if !self.announced {
            self.announced = true;
            self.freed = *counts;
            for vc in 0..VCS {
                self.common_used += self.beyond(self.used(vc));
                self.used_in_all += self.used(vc);
            }
            debug_assert!(
                self.common_used <= self.common,
                "the first counts were checked"
            );
            return 1; // Any first count is new.
        }
        let mut freed = 0;
        for (vc, count) in counts.iter().enumerate() {
            freed += self.release(vc, *count).unwrap_or(0);
        }
        freed
    }

    /// Adds one freed flit of `vc`, on a link that returns credits one by one. Ignores a surplus
    /// credit, which the checkers report.
    #[inline]
    pub fn give(&mut self, vc: usize) {
        let _ = self.release(vc, self.freed[vc].wrapping_add(1));
    }

    /// Whether the common part alone has room for `flits` more flits on any channel.
    #[inline]
    pub fn is_ample(&self, flits: u32) -> bool {
        self.common_used + flits <= self.common
    }

    /// Flits of `vc` that the peer is known to have freed.
    #[inline]
    pub fn freed(&self, vc: usize) -> u32 {
        self.freed[vc]
    }

    /// Whether the peer has announced its credits.
    #[inline]
    pub fn is_announced(&self) -> bool {
        self.announced
    }

    /// Applies the peer's count for `vc`; returns the flits newly freed, or why the count is
    /// impossible.
    #[inline]
    pub fn release(&mut self, vc: usize, count: u32) -> Result<u32, Impossible> {
        let step = count.wrapping_sub(self.freed[vc]);
        if step == 0 || step >= HALF {
            return Ok(0); // Overtaken by a newer count.
        }
        let used = self.used(vc);
        if step > used {
            return Err(Impossible);
        }
        debug_assert!(
            step <= self.used_in_all,
            "a channel's flits are counted in all"
        );
        self.common_used -= self.beyond(used) - self.beyond(used - step);
        self.freed[vc] = count;
        self.used_in_all -= step;
        Ok(step)
    }
}

#[cfg(test)]
impl SharedCredits {
    /// Sets the used flits of `vc` to `used`, whatever was sent.
    pub fn spoil(&mut self, vc: usize, used: u32) {
        self.sent[vc] = self.freed[vc].wrapping_add(used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;

    fn open(private: u32, common: u32) -> SharedCredits {
        let mut credits = SharedCredits::new(private, common);
        assert_eq!(
            credits.available(0),
            0,
            "the peer has not announced credits yet"
        );
        assert!(credits.is_owed());
        assert_eq!(credits.check_all(&[0; VCS]), Ok(()));
        credits.release_all(&[0; VCS]);
        credits
    }

    #[test]
    fn counts_beyond_one_channel_s_credits_are_impossible_from_the_start() {
        let mut counts = [0; VCS];
        let credits = SharedCredits::new(512, 12_288);
        // The credits of all channels together: more than one channel can have.
        counts[0] = (512 * VCS as u32 + 12_288).wrapping_neg();
        assert!(credits.check_all(&counts).is_err());
        counts[0] = (512_u32 + 12_288).wrapping_neg();
        assert!(credits.check_all(&counts).is_ok());
    }

    #[test]
    fn one_channel_may_use_all_that_is_common_and_leaves_the_others_their_own() {
        let mut credits = open(16, 100);
        assert_eq!(credits.available(3), 116);
        credits.take(3, 14);
        credits.take(3, 102);
        assert_eq!(credits.available(3), 0);
        assert_eq!(credits.available(4), 16, "the private part is left");
        credits.take(4, 16);
        assert_eq!(credits.available(4), 0);
        assert_eq!(credits.release(3, 50), Ok(50));
        assert_eq!((credits.available(4), credits.available(3)), (50, 50));
        assert_eq!(credits.release(3, 116), Ok(66));
        assert_eq!((credits.available(3), credits.used_in_all), (116, 16));
    }

    #[test]
    fn debt_of_an_earlier_session_counts_as_used() {
        let mut credits = SharedCredits::new(16, 100);
        let mut counts = [0; VCS];
        (counts[2], counts[5]) = (0_u32.wrapping_sub(30), 0_u32.wrapping_sub(8));
        assert_eq!(credits.check_all(&counts), Ok(()));
        credits.release_all(&counts);
        assert_eq!((credits.available(2), credits.available(5)), (86, 94));
        assert_eq!(credits.release(2, 0), Ok(30));
        assert_eq!((credits.available(2), credits.available(5)), (116, 108));
        let mut never = SharedCredits::new(16, 100);
        assert_eq!(
            never.check_all(&[0_u32.wrapping_sub(300); VCS]),
            Err(Impossible)
        );
        assert_eq!(
            never.check_all(&[0_u32.wrapping_sub(100); VCS]),
            Err(Impossible)
        );
        assert_eq!(never.release_all(&[0; VCS]), 1);
    }

    #[test]
    fn freeing_more_than_was_sent_is_impossible_and_old_counts_are_nothing() {
        let mut credits = open(16, 100);
        credits.take(1, 10);
        assert_eq!(credits.release(1, 11), Err(Impossible));
        assert_eq!(credits.check_all(&[11; VCS]), Err(Impossible));
        assert_eq!(credits.release(1, 10), Ok(10));
        assert_eq!(credits.release(1, 4), Ok(0));
        assert_eq!(credits.check_all(&[0; VCS]), Ok(()), "overtaken");
    }

    #[test]
    #[should_panic(expected = "packet sent without credits")]
    fn no_packet_without_credits() {
        open(16, 0).take(0, 17);
    }

    #[test]
    fn common_part_is_never_leaked_nor_exceeded() {
        let mut rng = Rng::new(9, 0);
        let mut credits = open(20, 60);
        let (mut sent, mut freed) = ([0_u32; VCS], [0_u32; VCS]);
        for _ in 0..50_000 {
            let (vc, flits) = (rng.below(8) as usize, 1 + rng.below(14) as u32);
            if credits.available(vc) >= flits {
                credits.take(vc, flits);
                sent[vc] += flits;
            }
            let used: u32 = (0..VCS).map(|vc| sent[vc] - freed[vc]).sum();
            assert_eq!(used, credits.used_in_all);
            assert!(used <= 8 * 20 + 60);
            let vc = rng.below(8) as usize;
            freed[vc] += rng.below(u64::from(sent[vc] - freed[vc]) + 1) as u32;
            credits.release(vc, freed[vc]).unwrap();
        }
        credits.release_all(&sent);
        assert_eq!((credits.common_used, credits.used_in_all), (0, 0));
        assert_eq!(credits.available(7), 80);
    }
}
