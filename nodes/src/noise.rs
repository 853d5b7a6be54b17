//! Lane noise on a node's ports, for the fault command.

use phitwire::link::impair::{LaneNoise, Probability};
use phitwire::node::PortId;
use phitwire::rng::Rng;
use phitwire_framing::carrier::lane_layout::LaneLayout;

/// The noise on a node's cables, by lane, in the sending direction.
///
/// It is applied between the node and the wire, without the knowledge of the node and its link
/// control blocks.
#[derive(Debug)]
pub struct Noise {
    ports: Vec<Vec<Option<LaneNoise>>>,
    /// Bit mask of the ports with noise on any lane.
    noisy: u64,
    /// Bits flipped by noise that has been turned off.
    past_bits: u64,
    seed: u64,
}

impl Noise {
    /// No noise at first. `seed` is for noise that is set later.
    pub fn new(seed: u64) -> Self {
        Self {
            ports: Vec::new(),
            noisy: 0,
            past_bits: 0,
            seed,
        }
    }

    /// Flips each bit that `lane` of `port` sends, in frames of this layout, with probability
    /// `per_bit`; zero ends it.
    ///
    /// # Errors
    /// If the lane does not exist.
    pub fn set(
        &mut self,
        (port, layout): (PortId, LaneLayout),
        lane: u8,
        per_bit: Probability,
    ) -> Result<(), String> {
        let count = layout.lanes().count();
        if usize::from(lane) >= count {
            return Err(format!(
                "lane {lane} does not exist: lanes are 0 to {}",
                count - 1
            ));
        }
        let ports = self.ports.len().max(usize::from(port) + 1);
        self.ports.resize_with(ports, Vec::new);
        let lanes = &mut self.ports[usize::from(port)];
        lanes.resize_with(count, || None);
        let stream = u64::from(port) << 8 | u64::from(lane);
        let noise = (per_bit != Probability::ZERO)
            .then(|| LaneNoise::new(layout, lane, per_bit, Rng::new(self.seed, stream)));
        if let Some(old) = std::mem::replace(&mut lanes[usize::from(lane)], noise) {
            self.past_bits += old.flipped_bits();
        }
        let any = u64::from(lanes.iter().any(Option::is_some));
        self.noisy = self.noisy & !(1 << port) | any << port;
        Ok(())
    }

    /// Applies the noise of `port` to a frame that it sends.
    #[inline]
    pub fn apply(&mut self, port: PortId, frame: &mut [u8]) {
        if self.noisy & 1 << port != 0 {
            for lane in self.ports[usize::from(port)].iter_mut().flatten() {
                lane.apply(frame);
            }
        }
    }

    /// Bits flipped so far on all ports.
    pub fn flipped_bits(&self) -> u64 {
        let now: u64 = self
            .ports
            .iter()
            .flatten()
            .flatten()
            .map(LaneNoise::flipped_bits)
            .sum();
        self.past_bits + now
    }
}

/// Parses `1/1000`, `0.001`, `0.1%`, `1e-3` or `0`.
///
/// # Errors
/// When the text has another form, or is not between 0 and 1.
pub fn parse_rate(text: &str) -> Result<Probability, String> {
    let wrong =
        || format!("invalid rate `{text}`: expected a rate such as 1/1000, 0.001, 0.1% or 0");
    if let Some((numerator, denominator)) = text.split_once('/') {
        let numerator: u64 = numerator.trim().parse().map_err(|_| wrong())?;
        let denominator: u64 = denominator.trim().parse().map_err(|_| wrong())?;
        if denominator == 0 || numerator > denominator {
            return Err(wrong());
        }
        return Ok(Probability::from_ratio(numerator, denominator));
    }
    let (digits, scale) = match text.strip_suffix('%') {
        Some(digits) => (digits, 100.0),
        None => (text, 1.0),
    };
    let value = digits.trim().parse::<f64>().map_err(|_| wrong())? / scale;
    if !(0.0..=1.0).contains(&value) {
        return Err(wrong());
    }
    Ok(Probability::from_ratio(
        (value * f64::from(u32::MAX)).round() as u64,
        u64::from(u32::MAX),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_as_ratio_decimal_or_percent() {
        let thousandth = Probability::from_ratio(1, 1000);
        for text in ["1/1000", " 1 / 1000", "0.001", "0.1%", "1e-3"] {
            let parts = parse_rate(text).unwrap().parts();
            assert!(parts.abs_diff(thousandth.parts()) <= 1, "{text}");
        }
        assert_eq!(parse_rate("0").unwrap(), Probability::ZERO);
        assert_eq!(parse_rate("1").unwrap(), Probability::ONE);
        for text in ["", "x", "1/0", "2/1", "-1", "1.5", "101%", "NaN", "-1/5"] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
