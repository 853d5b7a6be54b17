//! What comes in at a port, and when the crossbar may have it.

use std::collections::VecDeque;

use crate::machine::t3e::format::VCS;

/// Flits that came together.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    cycle: u64,
    vc: u8,
    flits: u32,
}

/// Flits that have come, until the stages of their input let the crossbar have them.
#[derive(Clone, Debug, Default)]
pub(super) struct Arrivals {
    /// In the order of their cycles.
    coming: VecDeque<Arrival>,
    /// Those of them that are in the stages.
    ripening: usize,
}

impl Arrivals {
    /// Flits of `vc` come in `cycle`, no earlier than those announced before.
    #[inline]
    pub fn announce(&mut self, cycle: u64, vc: usize, flits: u32) {
        self.coming.push_back(Arrival {
            cycle,
            vc: vc as u8,
            flits,
        });
    }

    /// Whether anything is on its way.
    #[inline]
    pub fn any(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Adds to `ready` what came `stages` cycles before `cycle` or earlier; the channels of it.
    #[inline]
    pub fn ripen(&mut self, cycle: u64, stages: u64, ready: &mut [u32; VCS]) -> u8 {
        let mut channels = 0;
        while self.ripening > 0
            && let Some(&Arrival {
                cycle: at,
                vc,
                flits,
            }) = self.coming.front()
            && at + stages <= cycle
        {
            ready[usize::from(vc)] += flits;
            channels |= u8::from(flits > 0) << vc;
            self.coming.pop_front();
            self.ripening -= 1;
        }
        channels
    }

    /// The channel and number of the next flits that come in `cycle`, which enter the stages; see
    /// [`forward`](Self::forward).
    #[inline]
    pub fn next(&mut self, cycle: u64) -> Option<(usize, u32)> {
        let &Arrival {
            cycle: at,
            vc,
            flits,
        } = self.coming.get(self.ripening)?;
        if at > cycle {
            return None;
        }
        self.ripening += 1;
        Some((vc.into(), flits))
    }

    /// One of the flits that came [last](Self::next) did not enter the stages.
    #[inline]
    pub fn forward(&mut self) {
        if let Some(last) = self.coming.get_mut(self.ripening - 1) {
            last.flits -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flits_are_ready_when_they_are_through_the_stages() {
        let mut arrivals = Arrivals::default();
        arrivals.announce(5, 1, 1);
        arrivals.announce(5, 4, 3);
        arrivals.announce(6, 1, 1);
        let mut ready = [0; VCS];
        assert_eq!(arrivals.next(4), None);
        assert_eq!(arrivals.next(5), Some((1, 1)));
        arrivals.forward();
        assert_eq!(arrivals.next(5), Some((4, 3)));
        assert_eq!(arrivals.next(5), None);
        assert_eq!(arrivals.ripen(7, 3, &mut ready), 0);
        assert_eq!(arrivals.next(7), Some((1, 1)));
        assert_eq!(arrivals.ripen(8, 3, &mut ready), 1 << 4);
        assert_eq!(ready, [0, 0, 0, 0, 3]);
        assert_eq!(arrivals.ripen(9, 3, &mut ready), 1 << 1);
        assert!(!arrivals.any());
    }
}
