//! Lane noise in front of a node's ports, for the fault command.

use phitwire::link::impair::{LaneNoise, Probability};
use phitwire::node::{Node, PortId, Wakeup};
use phitwire::rng::Rng;
use phitwire::time::Time;

/// Lanes of a port.
const LANES: usize = 3;

/// A node whose cables may be noisy, lane by lane, in the sending direction.
///
/// Decorates the node: neither it nor its link control blocks know of the noise.
#[derive(Debug)]
pub struct Noisy<N> {
    /// The node itself.
    pub node: N,
    noise: Vec<[Option<LaneNoise>; LANES]>,
    /// Ports that have noise on some lane.
    noisy: u64,
    seed: u64,
}

impl<N: Node> Noisy<N> {
    /// `node` on clean cables; noise will be drawn from `seed`.
    pub fn new(node: N, seed: u64) -> Self {
        Self { node, noise: Vec::new(), noisy: 0, seed }
    }

    /// Flips each bit that `lane` of `port` sends with probability `per_bit`; zero ends it.
    ///
    /// # Errors
    /// When there is no such port or lane.
    pub fn set_noise(
        &mut self,
        port: PortId,
        lane: u8,
        per_bit: Probability,
    ) -> Result<(), String> {
        if usize::from(port) >= self.node.ports() {
            return Err(format!("there is no port {port}: ports are 0 to {}", self.node.ports() - 1));
        }
        if usize::from(lane) >= LANES {
            return Err(format!("there is no lane {lane}: lanes are 0 to {}", LANES - 1));
        }
        if self.noise.len() <= usize::from(port) {
            self.noise.resize(usize::from(port) + 1, [const { None }; LANES]);
        }
        let lanes = &mut self.noise[usize::from(port)];
        let stream = u64::from(port) << 8 | u64::from(lane);
        lanes[usize::from(lane)] = (per_bit != Probability::ZERO)
            .then(|| LaneNoise::new(lane, per_bit, Rng::new(self.seed, stream)));
        let any = u64::from(lanes.iter().any(Option::is_some));
        self.noisy = self.noisy & !(1 << port) | any << port;
        Ok(())
    }

    /// Bits flipped so far by the noise that is on now, on all ports.
    pub fn flipped_bits(&self) -> u64 {
        self.noise.iter().flatten().flatten().map(LaneNoise::flipped_bits).sum()
    }
}

impl<N: Node> Node for Noisy<N> {
    type Event = N::Event;

    fn ports(&self) -> usize {
        self.node.ports()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        self.node.handle_frame(now, port, bytes);
    }

    fn advance(&mut self, now: Time) {
        self.node.advance(now);
    }

    fn ready_ports(&self) -> u64 {
        self.node.ready_ports()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let bytes = self.node.poll_frame(now, port, buf)?;
        if self.noisy & 1 << port != 0 {
            for lane in self.noise[usize::from(port)].iter_mut().flatten() {
                lane.apply(&mut buf[..bytes]);
            }
        }
        Some(bytes)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        self.node.next_wakeup()
    }

    fn poll_event(&mut self) -> Option<N::Event> {
        self.node.poll_event()
    }
}

/// Reads `1/1000`, `0.001`, `0.1%`, `1e-3` or `0`.
///
/// # Errors
/// When the text is none of them, or not between 0 and 1.
pub fn parse_rate(text: &str) -> Result<Probability, String> {
    let wrong = || format!("`{text}` is no rate: write 1/1000, 0.001, 0.1% or 0");
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
    Ok(Probability::from_ratio((value * f64::from(u32::MAX)).round() as u64, u64::from(u32::MAX)))
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
