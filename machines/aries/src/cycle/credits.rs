//! Credits and loads that a link returns.

use crate::router::pipeline::LOAD_CYCLES;
use phitwire::link::MAX_VCS;
use phitwire::sim::direct::exchange::{all_cycles, delay_cycles};
use phitwire::sim::direct::mail::{MailError, Reader};

/// Bits per load, including its valid flag.
const LOAD_BITS: usize = 5;
const LOAD_MARK: u64 = 1 << 4;

/// Credits and loads returned over a lane in one window: at most one credit per cycle, and one load
/// every ten cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Returned {
    pub(super) cycles: u64,
    /// Bits of the credits' virtual channel numbers.
    vcs: [u64; 3],
    /// Loads, one for every ten cycles.
    loads: u64,
}

impl Returned {
    /// Adds a credit for `vc` in `cycle`, which must not hold one yet.
    #[inline]
    pub(super) fn credit(&mut self, cycle: u32, vc: usize) {
        self.cycles |= 1 << cycle;
        for (bit, cycles) in self.vcs.iter_mut().enumerate() {
            *cycles |= (vc as u64 >> bit & 1) << cycle;
        }
    }

    #[inline]
    pub(super) fn vc(&self, cycle: u32) -> usize {
        let bit = |bit: usize| (self.vcs[bit] >> cycle & 1) << bit;
        (bit(0) | bit(1) | bit(2)) as usize
    }

    /// Records a load (0 to 15) reported in `cycle`, a multiple of ten.
    #[inline]
    pub(super) fn record_load(&mut self, cycle: u32, load: u8) {
        let at = cycle as usize / LOAD_CYCLES as usize * LOAD_BITS;
        self.loads &= !(0x1f << at);
        self.loads |= (LOAD_MARK | u64::from(load & 15)) << at;
    }

    #[inline]
    pub(super) const fn has_loads(&self) -> bool {
        self.loads != 0
    }

    /// The last load reported in or before a cycle, if any.
    #[inline]
    pub(super) const fn load(&self, cycle: u32) -> Option<u8> {
        let bits = (cycle as usize / LOAD_CYCLES as usize + 1) * LOAD_BITS;
        let loads = self.loads & (u64::MAX >> (64 - bits));
        if loads == 0 {
            return None;
        }
        let last = (63 - loads.leading_zeros()) as usize / LOAD_BITS;
        Some((loads >> (last * LOAD_BITS) & 15) as u8)
    }

    pub(super) fn delayed(&self, by: usize, window: usize) -> [Self; 2] {
        let [cycles, next_cycles] = delay_cycles(self.cycles, by, window);
        let mut parts = [Self::default(); 2];
        (parts[0].cycles, parts[1].cycles) = (cycles, next_cycles);
        for (bit, &vcs) in self.vcs.iter().enumerate() {
            [parts[0].vcs[bit], parts[1].vcs[bit]] = delay_cycles(vcs, by, window);
        }
        let bits = |cycles: usize| cycles / LOAD_CYCLES as usize * LOAD_BITS;
        [parts[0].loads, parts[1].loads] = delay_cycles(self.loads, bits(by), bits(window));
        parts
    }

    pub(super) fn add(&mut self, more: &Self) {
        self.cycles |= more.cycles;
        for (vcs, more) in self.vcs.iter_mut().zip(more.vcs) {
            *vcs |= more;
        }
        self.loads |= more.loads;
    }

    pub(super) fn counts(&self) -> [u32; MAX_VCS] {
        core::array::from_fn(|vc| self.count_of(vc))
    }

    /// Appends the words to `mail`: cycles, channel bits, loads.
    pub(super) fn write(&self, mail: &mut Vec<u8>) {
        let [low, middle, high] = self.vcs;
        let words = [self.cycles, low, middle, high, self.loads];
        mail.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    /// Reads the returned credits and loads of a window of `window` cycles.
    pub(super) fn read(mail: &mut Reader<'_>, window: usize) -> Result<Self, MailError> {
        let cycles = mail.u64()?;
        let vcs = [mail.u64()?, mail.u64()?, mail.u64()?];
        let loads = mail.u64()?;
        let of_none = vcs.iter().any(|vcs| vcs & !cycles != 0);
        let bits = window.div_ceil(LOAD_CYCLES as usize) * LOAD_BITS;
        if cycles & !all_cycles(window) != 0 || of_none || loads & !all_cycles(bits) != 0 {
            return Err(MailError::Credits);
        }
        Ok(Self { cycles, vcs, loads })
    }

    #[inline]
    fn count_of(&self, vc: usize) -> u32 {
        let mut cycles = self.cycles;
        for (bit, vcs) in self.vcs.iter().enumerate() {
            cycles &= if vc >> bit & 1 != 0 { *vcs } else { !vcs };
        }
        cycles.count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credits_and_loads_travel_in_their_cycles() {
        let mut sent = Returned::default();
        for (cycle, vc) in [(0, 7), (3, 2), (29, 5), (39, 2)] {
            sent.credit(cycle, vc);
            assert_eq!(sent.vc(cycle), vc);
        }
        sent.record_load(0, 15);
        sent.record_load(30, 4);
        assert_eq!(sent.counts(), [0, 0, 2, 0, 0, 1, 0, 1]);
        assert_eq!(
            [0, 9, 29, 30, 39].map(|c| sent.load(c)),
            [15, 15, 15, 4, 4].map(Some)
        );
        let [now, next] = sent.delayed(10, 40);
        assert_eq!(
            (now.cycles, next.cycles),
            (1 << 10 | 1 << 13 | 1 << 39, 1 << 9)
        );
        assert_eq!((now.vc(10), now.vc(39), next.vc(9)), (7, 5, 2));
        assert_eq!(
            (now.load(9), now.load(39), next.load(0)),
            (None, Some(15), Some(4))
        );
        let mut both = next;
        both.add(&now);
        assert_eq!(both.counts(), sent.counts());
        assert_eq!((both.load(0), both.load(25)), (Some(4), Some(15)));
    }
}
