//! netem's words, as in `tc qdisc add ... netem`, parsed into integers.
//!
//! Probabilities are parts of `2^32 - 1`, as in netem. Each word means what `tc-netem(8)` says;
//! words that need a real network stack (`slot`, `ecn`) are rejected by name.

use crate::time::Duration;

/// A probability in parts of `2^32 - 1`, as in netem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(u32::MAX);

    /// `numerator / denominator`, rounded to the nearest part and at most one.
    ///
    /// # Panics
    /// If `denominator` is zero.
    pub const fn from_ratio(numerator: u64, denominator: u64) -> Self {
        assert!(denominator > 0, "the denominator must not be zero");
        if numerator >= denominator {
            return Self::ONE;
        }
        let scaled = numerator as u128 * u32::MAX as u128 + denominator as u128 / 2;
        Self((scaled / denominator as u128) as u32)
    }

    /// Parts of `2^32 - 1`.
    pub const fn parts(self) -> u32 {
        self.0
    }

    /// One minus this.
    pub(crate) const fn complement(self) -> Self {
        Self(u32::MAX - self.0)
    }
}

/// A probability with netem's correlation to the previous draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chance {
    pub(crate) probability: Probability,
    /// Correlation with the previous draw.
    pub(crate) correlation: Probability,
}

/// Shape of the jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Distribution {
    /// Evenly within delay +- jitter (netem's default).
    #[default]
    Uniform,
    /// Normal, the jitter being one standard deviation.
    Normal,
}

/// `delay TIME [JITTER [CORRELATION]] [distribution uniform|normal]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Delay {
    /// Mean delay.
    pub(crate) base: Duration,
    /// Spread around the mean.
    pub(crate) jitter: Duration,
    /// Correlation with the previous frame's delay.
    pub(crate) correlation: Probability,
    pub(crate) distribution: Distribution,
}

/// Model of frame loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Loss {
    #[default]
    None,
    /// `loss [random] PERCENT [CORRELATION]`: one draw per frame.
    Random(Chance),
    /// `loss gemodel P [R [1-H [1-K]]]`: the Gilbert-Elliott model.
    GilbertElliott {
        /// Transition from the good state to the bad one.
        p: Probability,
        /// Transition from the bad state to the good one.
        r: Probability,
        /// Loss in the bad state (netem's `1-h`).
        loss_in_bad: Probability,
        /// Loss in the good state (netem's `1-k`).
        loss_in_good: Probability,
    },
    /// `loss state P13 [P31 [P32 [P23 [P14]]]]`: netem's four-state Markov chain.
    FourState {
        /// Transition from receiving in a gap to losing in a burst.
        p13: Probability,
        /// Transition from losing in a burst to receiving in a gap.
        p31: Probability,
        /// Transition from losing in a burst to receiving in a burst.
        p32: Probability,
        /// Transition from receiving in a burst to losing in a burst.
        p23: Probability,
        /// Transition from receiving in a gap to an isolated loss.
        p14: Probability,
    },
}

/// `rate RATE [OVERHEAD]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Bits per second, never zero.
    pub(crate) bits_per_second: u64,
    /// Bytes added to (or taken from) the length of each frame.
    pub(crate) overhead_bytes: i32,
}

/// The impairments of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Netem {
    /// `delay TIME [JITTER [CORRELATION]]`.
    pub(crate) delay: Delay,
    /// `loss ...`: see [`Loss`].
    pub(crate) loss: Loss,
    /// `duplicate PERCENT [CORRELATION]`.
    pub(crate) duplicate: Chance,
    /// `corrupt PERCENT [CORRELATION]`: one random bit of the frame is flipped.
    pub(crate) corrupt: Chance,
    /// `reorder PERCENT [CORRELATION]`: sent at once, ahead of delayed frames.
    pub(crate) reorder: Chance,
    /// `gap N`: only each `N`-th frame may be reordered; 0 when `reorder` is not used.
    pub(crate) gap: u32,
    /// `rate RATE [OVERHEAD]`, if limited.
    pub(crate) rate: Option<Rate>,
    /// `limit N`: maximum number of frames held (default 1,000, as in netem); more are dropped.
    pub(crate) limit: u32,
    /// `seed N`, if given.
    pub(crate) seed: Option<u64>,
}

impl Netem {
    /// Whether a frame may overtake an earlier one or arrive twice.
    pub(crate) fn may_overtake(&self) -> bool {
        let none = Chance::default();
        self.delay.jitter != Duration::ZERO || self.reorder != none || self.duplicate != none
    }
}

impl Default for Netem {
    fn default() -> Self {
        Self {
            delay: Delay::default(),
            loss: Loss::None,
            duplicate: Chance::default(),
            corrupt: Chance::default(),
            reorder: Chance::default(),
            gap: 0,
            rate: None,
            limit: 1000,
            seed: None,
        }
    }
}

/// Why a netem description was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netem: at byte {position}: expected {expected}, found {found}")]
pub struct NetemError {
    /// Byte offset of the offending word; the description's length if at its end.
    pub(crate) position: usize,
    /// What was expected at `position`.
    pub(crate) expected: &'static str,
    /// The offending word, quoted, or "the end of the text".
    pub(crate) found: String,
}

impl core::str::FromStr for Netem {
    type Err = NetemError;

    /// Parses netem's words, e.g. `delay 2ms 1ms 25% loss 5% duplicate 1%`. An empty string means
    /// no impairment. A repeated word replaces the earlier one, as in `tc`.
    ///
    /// # Errors
    /// [`NetemError`], with the position and what was expected there.
    fn from_str(text: &str) -> Result<Self, NetemError> {
        let mut words = Words { text, at: 0 };
        let mut netem = Self::default();
        let mut gap_at = None;
        let mut reorder_at = None;
        while let Some((position, word)) = words.next() {
            match word {
                "delay" | "latency" => words.delay(&mut netem.delay)?,
                "distribution" => netem.delay.distribution = words.distribution()?,
                "loss" | "drop" => netem.loss = words.loss()?,
                "duplicate" => netem.duplicate = words.chance()?,
                "corrupt" => netem.corrupt = words.chance()?,
                "reorder" => {
                    netem.reorder = words.chance()?;
                    reorder_at = Some((position, word));
                }
                "gap" => {
                    netem.gap = words.number("a gap of at least 1 frame", 1)?;
                    gap_at = Some((position, word));
                }
                "rate" => netem.rate = Some(words.rate()?),
                "limit" => netem.limit = words.number("a limit of at least 1 frame", 1)?,
                "seed" => netem.seed = Some(words.number("a seed", 0)?),
                _ => return Err(unexpected(position, Some(word), KEYWORDS)),
            }
        }
        // Reject these two combinations, as tc does.
        let reorders = netem.reorder.probability > Probability::ZERO;
        if let (Some((position, word)), false) = (gap_at, reorders) {
            return Err(unexpected(
                position,
                Some(word),
                "`reorder` together with `gap`",
            ));
        }
        if let (Some((position, word)), true) = (reorder_at, netem.delay.base == Duration::ZERO) {
            return Err(unexpected(
                position,
                Some(word),
                "a nonzero `delay` together with `reorder`",
            ));
        }
        if reorders && netem.gap == 0 {
            netem.gap = 1;
        }
        Ok(netem)
    }
}

const KEYWORDS: &str = "one of delay, loss, duplicate, corrupt, reorder, gap, rate, limit, \
                        distribution, seed";
const PERCENT: &str = "a percentage from 0% to 100%";

fn unexpected(position: usize, word: Option<&str>, expected: &'static str) -> NetemError {
    let found = word.map_or_else(
        || String::from("the end of the text"),
        |word| format!("`{word}`"),
    );
    NetemError {
        position,
        expected,
        found,
    }
}

/// The words of a description, each with its byte offset.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Words<'a> {
    fn peek(&self) -> Option<(usize, &'a str)> {
        let rest = &self.text[self.at..];
        let start = rest.find(|c: char| !c.is_whitespace())?;
        let word = &rest[start..];
        let end = word.find(char::is_whitespace).unwrap_or(word.len());
        Some((self.at + start, &word[..end]))
    }

    fn next(&mut self) -> Option<(usize, &'a str)> {
        let (position, word) = self.peek()?;
        self.at = position + word.len();
        Some((position, word))
    }

    /// Parses the next word, which must be present and valid.
    fn required<T>(
        &mut self,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, NetemError> {
        let Some((position, word)) = self.next() else {
            return Err(unexpected(self.text.len(), None, expected));
        };
        parse(word).ok_or_else(|| unexpected(position, Some(word), expected))
    }

    /// Parses the next word if it begins like a number; leaves a keyword in the input.
    fn optional<T>(
        &mut self,
        expected: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, NetemError> {
        match self.peek() {
            Some((_, word))
                if word.starts_with(|c: char| c.is_ascii_digit() || "-.".contains(c)) =>
            {
                self.required(expected, parse).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn number<T: core::str::FromStr + PartialOrd>(
        &mut self,
        expected: &'static str,
        least: T,
    ) -> Result<T, NetemError> {
        self.required(expected, |word| {
            word.parse().ok().filter(|number| *number >= least)
        })
    }

    fn chance(&mut self) -> Result<Chance, NetemError> {
        let probability = self.required(PERCENT, percent)?;
        let correlation = self.optional(PERCENT, percent)?.unwrap_or_default();
        Ok(Chance {
            probability,
            correlation,
        })
    }

    fn delay(&mut self, delay: &mut Delay) -> Result<(), NetemError> {
        const TIME: &str = "a time such as 2ms";
        delay.base = self.required(TIME, time)?;
        delay.jitter = Duration::ZERO;
        delay.correlation = Probability::ZERO;
        if let Some(jitter) = self.optional(TIME, time)? {
            delay.jitter = jitter;
            delay.correlation = self.optional(PERCENT, percent)?.unwrap_or_default();
        }
        Ok(())
    }

    fn distribution(&mut self) -> Result<Distribution, NetemError> {
        self.required("uniform or normal", |word| match word {
            "uniform" => Some(Distribution::Uniform),
            "normal" => Some(Distribution::Normal),
            _ => None,
        })
    }

    fn loss(&mut self) -> Result<Loss, NetemError> {
        let model = self.peek().map(|(_, word)| word);
        if matches!(model, Some("random" | "gemodel" | "state")) {
            let _ = self.next();
        }
        match model {
            Some("gemodel") => {
                let p = self.required(PERCENT, percent)?;
                let mut more = [Probability::ONE, Probability::ONE, Probability::ZERO];
                self.optional_percents(&mut more)?;
                let [r, loss_in_bad, loss_in_good] = more;
                Ok(Loss::GilbertElliott {
                    p,
                    r,
                    loss_in_bad,
                    loss_in_good,
                })
            }
            Some("state") => {
                let p13 = self.required(PERCENT, percent)?;
                let mut more = [
                    p13.complement(),
                    Probability::ZERO,
                    Probability::ONE,
                    Probability::ZERO,
                ];
                self.optional_percents(&mut more)?;
                let [p31, p32, p23, p14] = more;
                Ok(Loss::FourState {
                    p13,
                    p31,
                    p32,
                    p23,
                    p14,
                })
            }
            _ => self.chance().map(Loss::Random),
        }
    }

    fn optional_percents(&mut self, values: &mut [Probability]) -> Result<(), NetemError> {
        for value in values {
            match self.optional(PERCENT, percent)? {
                Some(given) => *value = given,
                None => break,
            }
        }
        Ok(())
    }

    fn rate(&mut self) -> Result<Rate, NetemError> {
        let bits_per_second = self.required("a rate above zero, such as 1gbit", |word| {
            rate(word).filter(|r| *r > 0)
        })?;
        let overhead_bytes = self
            .optional("an overhead in bytes", |word| word.parse().ok())?
            .unwrap_or(0);
        Ok(Rate {
            bits_per_second,
            overhead_bytes,
        })
    }
}

/// A decimal number as `digits / 10^places`, and what follows it. At most 18 significant digits.
fn decimal(word: &str) -> Option<(u64, u32, &str)> {
    let end = word
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = whole.len() + fraction.len();
    if digits == 0 || digits > 18 || fraction.contains('.') {
        return None;
    }
    let value = format!("{whole}{fraction}").parse().ok()?;
    Some((value, fraction.len() as u32, unit))
}

/// `5%`, `0.1%`, or `5` with the same meaning.
fn percent(word: &str) -> Option<Probability> {
    let (value, places, unit) = decimal(word)?;
    let whole = 100u128 * 10u128.pow(places);
    if !matches!(unit, "" | "%") || u128::from(value) > whole {
        return None;
    }
    let scaled = u128::from(value) * u128::from(u32::MAX) + whole / 2;
    u32::try_from(scaled / whole).ok().map(Probability)
}

/// A time in tc's units; without a unit, microseconds.
fn time(word: &str) -> Option<Duration> {
    let (value, places, unit) = decimal(word)?;
    let ps: u128 = match unit {
        "s" | "sec" | "secs" => 1_000_000_000_000,
        "ms" | "msec" | "msecs" => 1_000_000_000,
        "" | "us" | "usec" | "usecs" => 1_000_000,
        "ns" | "nsec" | "nsecs" => 1_000,
        "ps" => 1,
        _ => return None,
    };
    // No link delays frames by a day; the bound keeps later sums from overflowing.
    let span = u128::from(value) * ps / 10u128.pow(places);
    (span <= 86_400 * 1_000_000_000_000).then_some(Duration::from_ps(span as u64))
}

/// A rate in tc's units (`bit`, `kbit`, `kibit`, ... and `bps` for bytes per second).
fn rate(word: &str) -> Option<u64> {
    let (value, places, unit) = decimal(word)?;
    let unit = unit.to_ascii_lowercase();
    let (prefix, bits) = match unit.strip_suffix("bit") {
        Some(prefix) => (prefix, 1u128),
        None => match unit.strip_suffix("bps") {
            Some(prefix) => (prefix, 8),
            None => (unit.as_str(), 1),
        },
    };
    let factor: u128 = match prefix {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return None,
    };
    u64::try_from(u128::from(value) * bits * factor / 10u128.pow(places)).ok()
}

#[cfg(test)]
#[path = "netem_tests.rs"]
mod tests;
