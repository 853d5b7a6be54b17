//! Decides whether a measurement shows a steady state.
//!
//! The criterion is the number of messages in the system: born but not yet arrived, including
//! source queues. It rises by the difference between offered and accepted load, and by Little's law
//! equals mean latency times birth rate, so growing latency and unserved load show as one trend in
//! one series. The measurement samples it at the ends of [`BATCHES`] batches and applies
//!
//! - the *t* interval of batch means to the shortfall (Law and Kelton, *Simulation Modeling and
//!   Analysis*, "The method of batch means");
//! - von Neumann's ratio of the mean square successive difference to the variance (*Annals of
//!   Mathematical Statistics* 12, 1941), the test of batch means that Fishman's procedure repeats
//!   with longer batches until it passes (*Management Science* 24, 1978). It detects trends and any
//!   correlation longer than a batch;
//! - a limit on what the measurement could have missed.

use super::report::{State, Unsettled};

pub(crate) const BATCHES: u64 = 20;
/// With fewer batches the state is undecided.
const LEAST_BATCHES: usize = 8;
/// One-sided quantile 0.995 of the normal distribution.
const Z: f64 = 2.576;
/// The same quantile of Student's distribution with 7, 8, ... 19 degrees of freedom.
const T: [f64; 13] = [
    3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947, 2.921, 2.898, 2.878, 2.861,
];
/// A significant shortfall of more than this fraction of the offered messages is saturation.
const SATURATED: f64 = 0.02;
/// A significant change of the number of messages in the system by more than this fraction of it,
/// over the measurement, is a drift.
const DRIFT: f64 = 0.05;
/// A measurement is too short if it could not detect a shortfall of this fraction of the offered
/// messages.
const UNNOTICED: f64 = 0.05;
/// A network counts as full after this many times its lowest latency.
const FILLED: f64 = 10.0;
/// A measurement must last for this many mean latencies.
const LEAST_LATENCIES: f64 = 2.0;

/// The series of a measurement's batches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    /// Cycles since the start of the measurement, and the messages in the system then.
    inside: Vec<(u64, f64)>,
    born: u64,
}

impl Series {
    /// Starts with `inside` messages in the system.
    pub(crate) fn new(inside: u64) -> Self {
        Self {
            inside: vec![(0, inside as f64)],
            born: 0,
        }
    }

    pub(crate) fn cycles(&self) -> u64 {
        self.inside.last().map_or(0, |&(cycles, _)| cycles)
    }

    /// Ends a batch in which `born` messages were born and `gone` left the system; `cycles` counts
    /// from the start.
    pub(crate) fn add(&mut self, cycles: u64, born: u64, gone: u64) {
        let before = self.inside.last().map_or(0.0, |&(_, inside)| inside);
        self.born += born;
        self.inside
            .push((cycles, before + born as f64 - gone as f64));
    }

    /// Messages in the system at the start.
    fn at_first(&self) -> f64 {
        self.inside.first().map_or(0.0, |&(_, inside)| inside)
    }

    /// The state that these batches show, given the mean and the lowest latency in cycles.
    pub(crate) fn state(&self, latency: f64, least: u64) -> State {
        let batches = self.inside.len().saturating_sub(1);
        let cycles = self.cycles() as f64;
        if self.born == 0 || batches < LEAST_BATCHES {
            return State::Unsettled(Unsettled::Short);
        }
        let born = self.born as f64;
        let rises: Vec<f64> = self.inside.windows(2).map(|w| w[1].1 - w[0].1).collect();
        let shortfall: f64 = rises.iter().sum();
        if shortfall > SATURATED * born && shortfall > t_interval(&rises) {
            // A network that the warm-up did not fill also falls behind: do not call it saturated.
            let full = born / cycles * latency;
            let late: f64 = rises[batches / 2..].iter().sum();
            let goes_on = late > shortfall / 3.0 && cycles > FILLED * least as f64;
            return match self.at_first() > full / 2.0 || goes_on {
                true => State::Saturated,
                false => State::Unsettled(Unsettled::Drift),
            };
        }
        if cycles < LEAST_LATENCIES * latency {
            return State::Unsettled(Unsettled::Short);
        }
        let values: Vec<f64> = self.inside.iter().map(|&(_, inside)| inside).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        // Two samples of a queue without waiting, which is Poisson distributed, differ by less than
        // this.
        let chance = Z * (2.0 * mean.max(1.0)).sqrt();
        let rise = self.trend().abs();
        if rise > DRIFT * mean && rise > chance && is_correlated(&values) {
            return State::Unsettled(Unsettled::Drift);
        }
        if chance > UNNOTICED * born {
            return State::Unsettled(Unsettled::Short);
        }
        State::Steady
    }

    /// The rise of the least-squares line over the measurement.
    fn trend(&self) -> f64 {
        let n = self.inside.len() as f64;
        let sums = self.inside.iter().fold((0.0, 0.0), |(x, y), &(cycles, v)| {
            (x + cycles as f64, y + v)
        });
        let (x, y) = (sums.0 / n, sums.1 / n);
        let (mut both, mut squares) = (0.0, 0.0);
        for &(cycles, value) in &self.inside {
            let from_mean = cycles as f64 - x;
            both += from_mean * (value - y);
            squares += from_mean * from_mean;
        }
        both / f64::max(squares, 1.0) * self.cycles() as f64
    }
}

/// Half-width of the confidence interval of the sum of the batches.
fn t_interval(batches: &[f64]) -> f64 {
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let squares: f64 = batches.iter().map(|b| (b - mean) * (b - mean)).sum();
    let quantile = T[batches.len().clamp(LEAST_BATCHES, T.len() + 7) - LEAST_BATCHES];
    quantile * (squares / (n - 1.0) * n).sqrt()
}

/// Whether successive values are correlated, by von Neumann's ratio: its complement 1 - ratio / 2
/// is normal with variance (n - 2) / (n^2 - 1) for independent values.
fn is_correlated(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    let successive: f64 = values.windows(2).map(|w| (w[1] - w[0]).powi(2)).sum();
    variance > 0.0 && 1.0 - successive / (2.0 * variance) > Z * ((n - 2.0) / (n * n - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// A measurement of 20 batches of 500 cycles with about `born` births each, of which at most
    /// `served` leave. It starts with `inside` messages.
    fn measured(seed: u64, inside: u64, born: u64, served: impl Fn(u64, u64) -> u64) -> State {
        let mut rng = Rng::new(seed, 0);
        let mut series = Series::new(inside);
        let mut left = inside;
        for batch in 1..=BATCHES {
            // Binomial, with nearly the variance of a Poisson process.
            let births = (0..10 * born)
                .filter(|_| rng.next_u64().is_multiple_of(10))
                .count() as u64;
            let gone = served(batch, left + births).min(left + births);
            left = left + births - gone;
            series.add(500 * batch, births, gone);
        }
        let mean = series.inside.iter().map(|&(_, n)| n).sum::<f64>() / 21.0;
        series.state(mean * 500.0 / born as f64, 20)
    }

    #[test]
    fn a_load_that_is_carried_is_steady() {
        // As many messages stay in the system as before, however many were born.
        let wrong = (0..200).filter(|&seed| {
            let state = measured(seed, 200, 500, |_, all| all.saturating_sub(200));
            state != State::Steady
        });
        assert_eq!(wrong.count(), 0);
    }

    #[test]
    fn a_server_that_is_too_slow_is_seen_to_saturate() {
        for seed in 0..200 {
            // 10 % are not served.
            let state = measured(seed, 300, 1_000, |_, _| 900);
            assert_eq!(state, State::Saturated, "seed {seed}");
        }
        // 5 % are not served: a rise of 500 in each half of the measurement, with a standard
        // deviation of 95. In one run of 108, less than a third falls into the second half, as in a
        // network that is still filling.
        let fills = (0..200).filter(|&seed| {
            let state = measured(seed, 300, 1_000, |_, _| 950);
            assert_ne!(state, State::Steady, "seed {seed}");
            state != State::Saturated
        });
        let fills = fills.count();
        assert!(fills <= 7, "{fills}");
    }

    #[test]
    fn a_network_that_fills_is_not_settled() {
        let inside = |batch: u64| (500.0 * (1.0 - (-(batch as f64) / 4.0).exp())) as u64;
        let state = measured(1, 10, 500, |batch, all| all - inside(batch).min(all));
        assert_eq!(state, State::Unsettled(Unsettled::Drift));
    }

    #[test]
    fn queues_that_shrink_are_not_settled() {
        let state = measured(1, 900, 500, |_, all| all.min(525));
        assert_eq!(state, State::Unsettled(Unsettled::Drift));
    }

    #[test]
    fn few_messages_and_few_batches_decide_nothing() {
        let short = State::Unsettled(Unsettled::Short);
        assert_eq!(measured(1, 5, 2, |_, all| all.saturating_sub(5)), short);
        let mut series = Series::new(100);
        for batch in 1..LEAST_BATCHES as u64 {
            series.add(batch * 500, 1_000, 1_000);
        }
        assert_eq!(series.state(50.0, 20), short);
        series.add(4_000, 1_000, 1_000);
        assert_eq!(series.state(50.0, 20), State::Steady);
        assert_eq!(
            series.state(2_001.0, 20),
            short,
            "less than two latencies of data"
        );
    }

    #[test]
    fn von_neumanns_ratio_finds_a_trend_and_lets_noise_pass() {
        let trend: Vec<f64> = (0..20).map(f64::from).collect();
        assert!(is_correlated(&trend));
        assert!(!is_correlated(&[1.0; 20]));
        let found = |seed: u64| {
            let mut rng = Rng::new(seed, 1);
            let noise: Vec<f64> = (0..20).map(|_| (rng.next_u64() >> 32) as f64).collect();
            is_correlated(&noise)
        };
        // One in 200 by definition of the quantile.
        let alarms = (0..2_000).filter(|&seed| found(seed)).count();
        assert!((1..=25).contains(&alarms), "{alarms}");
    }
}
