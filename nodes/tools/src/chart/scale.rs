//! Scales: positions and labels of ticks.

/// The mapping of values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear, starting at zero.
    Linear,
    /// Logarithmic, with ticks at powers of ten.
    Decades,
    /// Logarithmic, with ticks at powers of two, for sizes.
    Doublings,
}

/// Maximum number of ticks on a scale.
const MOST_TICKS: f64 = 10.0;
/// Number of powers of ten up to which a logarithmic scale has ticks at 2 and 5.
const FINE_DECADES: f64 = 3.1;

impl Scale {
    /// Whether the scale can show a value.
    pub fn has(self, value: f64) -> bool {
        value.is_finite() && (self == Self::Linear || value > 0.0)
    }

    /// The position of a value, linear on the screen.
    pub fn position(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Decades => value.max(f64::MIN_POSITIVE).log10(),
            Self::Doublings => value.max(f64::MIN_POSITIVE).log2(),
        }
    }

    /// The value at a position.
    pub fn value(self, position: f64) -> f64 {
        match self {
            Self::Linear => position,
            Self::Decades => 10_f64.powf(position),
            Self::Doublings => position.exp2(),
        }
    }

    /// Round numbers around the smallest and largest value to show.
    pub fn around(self, low: f64, high: f64) -> (f64, f64) {
        match self {
            Self::Linear => {
                let step = round_step(high / MOST_TICKS);
                (0.0, times(step, (high / step - 1e-9).ceil().max(1.0)))
            }
            Self::Decades => (round_below(low), round_above(high.max(low * 1.1))),
            Self::Doublings => (
                low.log2().floor().exp2(),
                high.log2().ceil().max(low.log2().floor() + 1.0).exp2(),
            ),
        }
    }

    /// The values that have a tick, in ascending order.
    pub fn ticks(self, (low, high): (f64, f64)) -> Vec<f64> {
        let within = |&tick: &f64| tick >= low * (1.0 - 1e-9) && tick <= high * (1.0 + 1e-9);
        match self {
            Self::Linear => {
                let step = round_step((high - low) / MOST_TICKS);
                let (from, to) = (
                    (low / step).ceil() as i64,
                    (high / step + 1e-9).floor() as i64,
                );
                (from..=to).map(|n| times(step, n as f64)).collect()
            }
            Self::Decades => {
                let factors: &[f64] = match (high / low).log10() <= FINE_DECADES {
                    true => &[1.0, 2.0, 5.0],
                    false => &[1.0],
                };
                let all = multiples(factors, (low, high));
                all.into_iter().filter(within).collect()
            }
            Self::Doublings => {
                let (from, to) = (low.log2().ceil() as i32, high.log2().floor() as i32);
                let step = (f64::from(to - from) / MOST_TICKS).ceil().max(1.0) as usize;
                (from..=to)
                    .step_by(step)
                    .map(|power| 2_f64.powi(power))
                    .collect()
            }
        }
    }

    /// The values that have a fine line without a label: on a scale of powers of ten, all with one
    /// digit.
    pub fn fine_ticks(self, (low, high): (f64, f64)) -> Vec<f64> {
        match self {
            Self::Decades => {
                let digits: Vec<f64> = (1..10).map(f64::from).collect();
                let within = |&tick: &f64| tick > low && tick < high;
                let all = multiples(&digits, (low, high));
                all.into_iter().filter(within).collect()
            }
            Self::Linear | Self::Doublings => Vec::new(),
        }
    }

    /// The label of a tick.
    pub fn label(self, value: f64, (low, high): (f64, f64)) -> String {
        match self {
            Self::Doublings if value >= 1_048_576.0 => format!("{} Mi", value / 1_048_576.0),
            Self::Doublings if value >= 1_024.0 => format!("{} Ki", value / 1_024.0),
            Self::Doublings => format!("{value}"),
            Self::Decades => grouped(value, decimals(value)),
            Self::Linear => grouped(value, decimals(round_step((high - low) / MOST_TICKS))),
        }
    }
}

/// The multiples of the powers of ten around a range, in ascending order.
fn multiples(factors: &[f64], (low, high): (f64, f64)) -> Vec<f64> {
    let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let of_power = |power| {
        factors
            .iter()
            .map(move |factor| factor * 10_f64.powi(power))
    };
    powers.flat_map(of_power).collect()
}

/// The smallest number of at least `least` that is 1, 2 or 5 times a power of ten.
fn round_step(least: f64) -> f64 {
    let least = least.max(1e-12);
    let power = 10_f64.powf(least.log10().floor());
    let factors = [1.0, 2.0, 5.0, 10.0];
    let mut steps = factors.into_iter().map(|factor| factor * power);
    // Allow for rounding, since numbers such as 0.05 are not exact.
    steps
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// `count` round steps, without rounding errors: 7 times 0.1 is 0.7.
fn times(step: f64, count: f64) -> f64 {
    match step < 1.0 {
        true => count / (1.0 / step).round(),
        false => count * step,
    }
}

/// The smallest number of at least `value` that is 1, 2 or 5 times a power of ten.
fn round_above(value: f64) -> f64 {
    round_step(value)
}

/// The largest number of at most `value` that is 1, 2 or 5 times a power of ten.
fn round_below(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    let factors = [5.0, 2.0, 1.0];
    let mut steps = factors.into_iter().map(|factor| factor * power);
    steps
        .find(|step| *step <= value * (1.0 + 1e-9))
        .unwrap_or(power)
}

/// Decimals that distinguish numbers `step` apart.
fn decimals(step: f64) -> usize {
    match step > 0.0 {
        true => (-(step.log10() + 1e-9).floor()).max(0.0) as usize,
        false => 0,
    }
}

/// A number with its thousands separated.
fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = match text.split_once('.') {
        Some((whole, rest)) => (whole, Some(rest)),
        None => (text.as_str(), None),
    };
    let (sign, digits) = whole
        .strip_prefix('-')
        .map_or(("", whole), |digits| ("-", digits));
    let mut parts: Vec<&str> = Vec::new();
    let mut left = digits;
    while left.len() > 3 {
        let (front, back) = left.split_at(left.len() - 3);
        parts.push(back);
        left = front;
    }
    parts.push(left);
    parts.reverse();
    let whole = format!("{sign}{}", parts.join(","));
    rest.map_or(whole.clone(), |rest| format!("{whole}.{rest}"))
}
