//! When packets are born and where they go: the open-loop source of a terminal.
//!
//! Open-loop measurement needs an unbounded source queue. It takes no memory: births are a random
//! sequence, independent of everything else, so only the oldest unsent packet is kept, and the next
//! is drawn once that has left.

use super::config::{BURST_PACKETS, Load, Process, Traffic};
use super::pattern::Destinations;
use crate::rng::{Geometric, Rng};

/// Birth cycle of a source that sends no more packets.
pub const NEVER: u64 = u64::MAX;

/// Start cycle of sources that wait for links to come up: later than any other.
pub const HELD_BACK: u64 = 1 << 50;

/// The random process that all sources follow.
#[derive(Clone, Debug)]
pub struct Births {
    /// Cycles beyond [`spacing`](Self::spacing) after a packet that ends a burst.
    gap: Geometric,
    /// Packets of a burst beyond the first.
    burst: Option<Geometric>,
    spacing: u64,
    /// Phits of a message, replies included.
    phits: u64,
}

impl Births {
    /// Births of messages of `phits` phits, replies included, at a terminal that can send `rate`
    /// phits in `cycles` cycles.
    pub fn new(traffic: &Traffic, phits: usize, [rate, cycles]: [u64; 2]) -> Self {
        let phits = phits as u64;
        let (load, full) = (u64::from(traffic.load.millionths()), u64::from(Load::UNIT));
        let full = full * cycles;
        match traffic.process {
            Process::Bernoulli => Self {
                gap: Geometric::new(load * rate, full * phits),
                burst: None,
                spacing: 1,
                phits,
            },
            // A burst of B packets of p phits takes B s cycles with s = p / rate, rounded down so
            // that full load is possible. The silence after it fills the period B p / (load rate).
            Process::OnOff => {
                let spacing = (phits * cycles / rate).max(1);
                let silence = (phits * full).saturating_sub(spacing * rate * load);
                let silence = u64::from(BURST_PACKETS) * silence;
                Self {
                    gap: Geometric::new(load * rate, load * rate + silence),
                    burst: Some(Geometric::new(1, BURST_PACKETS.into())),
                    spacing,
                    phits,
                }
            }
        }
    }

    /// Phits of a message, replies included.
    pub(crate) const fn phits(&self) -> u64 {
        self.phits
    }
}

/// The oldest unsent packet of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Birth cycle of the packet; may lie in the future.
    pub birth: u64,
    /// Number of the packet within its source.
    pub sequence: u32,
}

#[derive(Clone, Debug)]
pub struct Source {
    rng: Rng,
    burst_left: u64,
    head: Head,
}

impl Source {
    /// The source of a terminal; if `silent`, it never sends.
    pub fn new(seed: u64, terminal: u64, silent: bool, births: &Births) -> Self {
        let mut source = Self {
            rng: Rng::new(seed, terminal),
            burst_left: 0,
            head: Head {
                birth: NEVER,
                sequence: 0,
            },
        };
        if !silent {
            // Start in the middle of the process: on average half a burst and a gap have passed.
            source.head.birth = births.gap.draw(&mut source.rng);
            if let Some(burst) = &births.burst {
                source.burst_left = burst.draw(&mut source.rng);
            }
        }
        source
    }

    /// The oldest unsent packet.
    #[inline]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Moves all births from a time scale that began at cycle `from` to one that begins at `to`.
    pub fn reschedule(&mut self, from: u64, to: u64) {
        if self.head.birth != NEVER {
            self.head.birth = self.head.birth - from + to;
        }
    }

    /// Ends the process: no more births.
    pub(crate) fn stop(&mut self) {
        self.head.birth = NEVER;
    }

    /// Draws the head's destination and hash bits, of which a machine uses as many as it needs, and
    /// then the next head.
    #[inline]
    pub fn take(
        &mut self,
        terminal: u64,
        births: &Births,
        destinations: &Destinations,
    ) -> (u32, u16) {
        let to = destinations.draw(terminal, &mut self.rng);
        let hash = (self.rng.next_u64() >> 40) as u16;
        self.advance(births);
        (to, hash)
    }

    #[inline]
    fn advance(&mut self, births: &Births) {
        let ends = match &births.burst {
            Some(burst) if self.burst_left == 0 => {
                self.burst_left = burst.draw(&mut self.rng);
                true
            }
            Some(_) => {
                self.burst_left -= 1;
                false
            }
            None => true,
        };
        let gap = if ends {
            births.gap.draw(&mut self.rng)
        } else {
            0
        };
        self.head.birth += births.spacing + gap;
        self.head.sequence = self.head.sequence.wrapping_add(1);
    }

    /// Packets born before cycle `limit` and unsent, including the head, up to `most`. Births
    /// depend on the draws for destinations, so those are drawn as well.
    pub(crate) fn waiting_before(
        &self,
        limit: u64,
        most: u64,
        terminal: u64,
        births: &Births,
        destinations: &Destinations,
    ) -> u64 {
        let mut ahead = self.clone();
        let mut waiting = 0;
        while ahead.head.birth < limit && waiting < most {
            ahead.take(terminal, births, destinations);
            waiting += 1;
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn births(process: Process, millionths: u32, rate: [u64; 2]) -> (Births, f64) {
        let traffic = Traffic {
            process,
            load: Load::from_millionths(millionths).unwrap(),
            ..Traffic::default()
        };
        let [phits, cycles] = rate;
        let births = Births::new(&traffic, 13, rate);
        (births, 13.0 * cycles as f64 / phits as f64)
    }

    #[test]
    fn sources_offer_the_load_that_was_asked_for() {
        for process in [Process::Bernoulli, Process::OnOff] {
            for (millionths, rate) in [1_000, 50_000, 300_000, 900_000, 1_000_000]
                .into_iter()
                .flat_map(|load| [(load, [1, 1]), (load, [64, 25])])
            {
                let (births, cycles) = births(process, millionths, rate);
                let mut source = Source::new(7, 3, false, &births);
                for _ in 0..40_000 {
                    source.advance(&births);
                }
                let load = 40_000.0 * cycles / source.head().birth as f64;
                let asked = f64::from(millionths) / 1e6;
                assert!(
                    (load / asked - 1.0).abs() < 0.03,
                    "{process:?} {asked}: {load}"
                );
            }
        }
    }

    #[test]
    fn a_geometric_draw_has_mean_and_variance_of_its_distribution() {
        for (numerator, denominator) in [(1, 2), (1, 21), (3, 1000), (1, 1)] {
            let coin = Geometric::new(numerator, denominator);
            let mut rng = Rng::new(1, 2);
            let draws: Vec<f64> = (0..100_000).map(|_| coin.draw(&mut rng) as f64).collect();
            let p = numerator as f64 / denominator as f64;
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|d| d * d).sum::<f64>() / draws.len() as f64;
            let (want, variance) = ((1.0 - p) / p, (1.0 - p) / (p * p));
            assert!((mean - want).abs() <= want * 0.02, "{p}: {mean}");
            assert!(
                (square - mean * mean - variance).abs() <= variance * 0.05,
                "{p}"
            );
        }
    }

    #[test]
    fn bursts_have_the_length_that_is_documented() {
        let (births, phits) = births(Process::OnOff, 200_000, [1, 1]);
        let mut source = Source::new(1, 1, false, &births);
        let mut bursts = 0;
        for _ in 0..80_000 {
            let before = source.head().birth;
            source.advance(&births);
            bursts += u64::from((source.head().birth - before) as f64 > phits);
        }
        let mean = 80_000.0 / bursts as f64;
        assert!(
            (mean / f64::from(BURST_PACKETS) - 1.0).abs() < 0.05,
            "{mean}"
        );
    }
}
