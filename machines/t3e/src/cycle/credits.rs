//! Returning credits: one can travel with every flit, data or idle.

use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire_framing::t3e::flit::VCS;

use phitwire::link::MAX_VCS;

/// Maximum number of cycles in a window.
pub(super) const CYCLES: usize = 4;

pub(super) const CYCLE_BITS: usize = 8;

/// The credits that a link returns in one window, at most one per cycle. Each has a byte with its
/// channel plus one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned(u32);

impl Returned {
    /// The channel whose credit returns in a cycle.
    #[inline]
    pub(super) const fn get(self, cycle: usize) -> Option<usize> {
        let found = self.0 >> (CYCLE_BITS * cycle) & 0xff;
        (found as usize).checked_sub(1)
    }

    /// The lowest bit of the byte of each cycle with a credit.
    #[inline]
    pub(super) const fn cycles(self) -> u32 {
        const _: () = assert!(VCS < 8);
        (self.0 | self.0 >> 1 | self.0 >> 2) & 0x0101_0101
    }

    /// Adds a credit of `vc` in a cycle that has none.
    #[inline]
    pub(super) fn set(&mut self, cycle: usize, vc: usize) {
        debug_assert!(
            self.get(cycle).is_none() && vc < VCS,
            "one credit per cycle"
        );
        self.0 |= (vc as u32 + 1) << (CYCLE_BITS * cycle);
    }

    /// Delays the credits by less than a window. Returns those for this window and for the next.
    #[inline]
    pub(super) const fn delayed(self, by: usize, window: usize) -> [Self; 2] {
        let all = u64::MAX >> (64 - CYCLE_BITS * window);
        let later = (self.0 as u64) << (CYCLE_BITS * by);
        let next = later >> (CYCLE_BITS * window);
        [Self((later & all) as u32), Self(next as u32)]
    }

    /// Adds credits of other cycles.
    #[inline]
    pub(super) fn add(&mut self, more: Self) {
        self.0 |= more.0;
    }

    pub(super) fn write(self, mail: &mut Vec<u8>) {
        mail.extend(self.0.to_le_bytes());
    }

    /// Reads the credits of a window of `window` cycles.
    pub(super) fn read(mail: &mut Reader<'_>, window: usize) -> Result<Self, MailError> {
        let bytes: [u8; CYCLES] = mail.take()?;
        let past = bytes.iter().skip(window);
        if bytes.iter().any(|&vc| usize::from(vc) > VCS) || past.copied().any(|vc| vc != 0) {
            return Err(MailError::Credits);
        }
        Ok(Self(u32::from_le_bytes(bytes)))
    }

    pub(super) fn counts(self) -> [u32; MAX_VCS] {
        let mut counts = [0; MAX_VCS];
        for vc in (0..CYCLES).filter_map(|cycle| self.get(cycle)) {
            counts[vc] += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_travel_in_their_cycles() {
        let mut sent = Returned::default();
        sent.set(0, 4);
        sent.set(2, 1);
        assert_eq!(
            (sent.get(0), sent.get(1), sent.get(2)),
            (Some(4), None, Some(1))
        );
        let [now, next] = sent.delayed(1, 3);
        assert_eq!(
            (now.get(1), now.get(0), next.get(0)),
            (Some(4), None, Some(1))
        );
        let mut both = now;
        both.add(next);
        assert_eq!(both.counts(), sent.counts());
        assert_eq!(sent.counts(), [0, 1, 0, 0, 1, 0, 0, 0]);
    }
}
