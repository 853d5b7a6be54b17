//! Configuration of a link end: names, depths, clock, rate, cable.

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::carrier::lanes::{Lanes, Permutation};
use phitwire_framing::carrier::number::PacketNumber;
use thiserror::Error;

use super::lane_rate::LaneRate;
use crate::kit::config::{getters, setters};
pub use crate::time::Clock as LinkClock;
use crate::time::Duration;

/// Longest node name, in bytes, that a training frame holds.
pub(crate) const MAX_NODE_NAME_BYTES: usize = 32;
/// Maximum number of credits that 20-bit cumulative counts can distinguish.
pub const MAX_CREDITS: u32 = 1 << 18;
/// Maximum number of units in flight. A frame more than a window behind is stale, not a repeat.
pub const MAX_WINDOW: u16 = 1 << 14;

/// A cable end as the topology names it: a node and one of its physical ports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndName {
    /// Name of the node, at most 32 bytes of UTF-8.
    pub node: String,
    pub port: u8,
}

impl core::fmt::Display for EndName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} port {}", self.node, self.port)
    }
}

/// Properties that all links of a machine share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStandard {
    pub lanes: Lanes,
    /// Lane rates that links may have; the first is the default.
    pub rates: &'static [LaneRate],
}

impl LinkStandard {
    /// The ends exchange rate codes, so no two rates may share one. They recognise lanes by their
    /// rows of the training pattern, so those must differ too.
    fn assert_values_differ(&self) {
        let codes = || self.rates.iter().map(|rate| rate.code());
        let first = |code| codes().position(|other| other == code);
        let differ = codes()
            .enumerate()
            .all(|(at, code)| first(code) == Some(at));
        assert!(differ, "two rates share a code: {:?}", self.rates);
        assert!(
            self.lanes.rows_differ(),
            "two lanes train with similar patterns: {:?}",
            self.lanes
        );
    }
}

/// Times and limits of a link, whatever it carries: the chip's, or larger ones for wires with a
/// longer round trip. Buffer depths are not part of it; each machine sets its own.
///
/// Times are emulated time, which a paced clock multiplies by its dilation. In profiles made for
/// real wires, whose round trip no dilation stretches, they are driver time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkProfile {
    /// Whether times are emulated time, not driver time.
    pub emulated_time: bool,
    /// Longest time that an acknowledgement waits to be piggybacked.
    pub ack_delay: Duration,
    /// Shortest retry timeout.
    pub min_retry_timeout: Duration,
    /// Longest retry timeout that doubling reaches.
    pub max_retry_timeout: Duration,
    /// Number of probes that a silent peer gets before all unacknowledged data is resent; `None`:
    /// it is resent only once the peer is heard.
    pub max_probes: Option<u32>,
    /// Minimum time for which a gap may be due to a late frame before it counts as lost.
    pub min_reorder_hold: Duration,
    /// Maximum of that time, however late frames have been.
    pub max_reorder_hold: Duration,
    /// Time after which an incomplete packet is given up.
    pub packet_silence: Duration,
    /// First interval between training frames; it doubles up to `max_training_interval`.
    pub min_training_interval: Duration,
    /// Longest interval between training frames.
    pub max_training_interval: Duration,
    /// Deassert `link_active` after this long without an acknowledgement; `None`: never.
    pub give_up: Option<Duration>,
    /// Report [`LinkEvent::Silent`](super::LinkEvent::Silent) after this long without an accepted
    /// frame, although the peer was probed; `None`: never, and an idle peer is probed only if
    /// `give_up` is set.
    pub silence: Option<Duration>,
    /// Begin a new session when frames arrived for this long and none was usable, although the peer
    /// was probed; at least four round trips. `None`: never.
    pub heal: Option<Duration>,
}

impl LinkProfile {
    /// For chip-to-chip round trips of about 100 ns. The only published times follow from
    /// BlackWidow's sideband, so all machines use those.
    pub fn paper() -> Self {
        Self {
            emulated_time: true,
            // The sideband of 48 phits carries one control word: 48 x 1.28 ns.
            ack_delay: Duration::from_ps(48 * 1_280),
            min_retry_timeout: Duration::from_ns(1_000),
            max_retry_timeout: Duration::from_us(100),
            max_probes: Some(1),
            min_reorder_hold: Duration::from_ps(48 * 1_280),
            max_reorder_hold: Duration::from_us(10),
            packet_silence: Duration::from_us(100),
            min_training_interval: Duration::from_us(1),
            max_training_interval: Duration::from_us(100),
            give_up: None,
            // Idle links sleep.
            silence: None,
            // As in `live`: ten times the longest interval between training frames.
            heal: Some(Duration::from_ms(1)),
        }
    }

    /// Longer times, for wires with round trips of tens of microseconds to many milliseconds.
    pub fn live() -> Self {
        Self {
            emulated_time: false,
            // Long enough for a response to carry the acknowledgement, and short compared to the
            // retry timeout. An acknowledgement that opens credits or a window does not wait.
            ack_delay: Duration::from_us(200),
            min_retry_timeout: Duration::from_ms(4),
            max_retry_timeout: Duration::from_ms(250),
            // A silent peer was not scheduled, or the path is cut. Resending helps in neither case.
            max_probes: None,
            min_reorder_hold: Duration::from_us(50),
            max_reorder_hold: Duration::from_ms(100),
            packet_silence: Duration::from_ms(500),
            min_training_interval: Duration::from_ms(2),
            max_training_interval: Duration::from_ms(100),
            give_up: None,
            silence: Some(Duration::from_ms(2_000)),
            // Enough for ten tries to agree on lanes and a dozen probes.
            heal: Some(Duration::from_ms(1_000)),
        }
    }
}

/// Why a [`LinkConfig`] is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkConfigError {
    /// An end has no name.
    #[error("the {which} end has no node name")]
    NoName {
        /// `local` or `peer`.
        which: &'static str,
    },
    /// A name does not fit into a training frame.
    #[error("node name {name:?} is longer than 32 bytes")]
    NameTooLong { name: String },
    /// A name contains a zero byte; zeros pad names in training frames.
    #[error("node name {name:?} contains a zero byte")]
    NameWithZero { name: String },
    /// Epoch 0 means "unknown".
    #[error("epoch 0 is reserved")]
    ZeroEpoch,
    /// A dilation of 0 would stop the clock.
    #[error("the dilation of a paced clock must be at least 1")]
    ZeroDilation,
    /// A value is outside the protocol's range.
    #[error("{field} is {value}, expected {min} to {max}")]
    OutOfRange {
        field: &'static str,
        value: u64,
        min: u64,
        max: u64,
    },
    #[error("{field}: the maximum is zero or below the minimum")]
    TimesInverted {
        /// Name of the pair of times.
        field: &'static str,
    },
    #[error("{0} is zero")]
    ZeroTime(&'static str),
}

/// When a receiver hands up a frame's phits, on links that do so before the packet's CRC arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutThrough {
    /// All at once: the core sees a packet that lies in one frame only after its check.
    #[default]
    Frames,
    /// As they would arrive on the line. With a free-running clock the core forwards a packet's
    /// phits before its end is checked; with a paced one they come at the line rate, a burst at a
    /// time, until the next frame arrives.
    Phits,
}

/// The validated configuration of a link end, made by [`LinkConfig::builder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    pub standard: LinkStandard,
    pub link: u16,
    pub end: LinkEnd,
    pub fabric: u32,
    pub local: EndName,
    pub peer: EndName,
    pub profile: LinkProfile,
    pub clock: LinkClock,
    pub rate: LaneRate,
    pub cable: Permutation,
    pub lane_retry_threshold: u32,
    pub epoch: u32,
    pub first_packet: u64,
    pub cut_through: CutThrough,
}

impl LinkConfig {
    /// Starts the configuration of end `end` of link number `link`, from `local` to `peer`, on a
    /// machine with links as in `standard`.
    ///
    /// # Panics
    /// If `standard` has no rate, two with the same code, or lanes whose training patterns are too
    /// similar.
    pub fn builder(
        standard: LinkStandard,
        link: u16,
        end: LinkEnd,
        local: EndName,
        peer: EndName,
    ) -> LinkConfigBuilder {
        standard.assert_values_differ();
        LinkConfigBuilder(Self {
            standard,
            link,
            end,
            fabric: 0,
            local,
            peer,
            profile: LinkProfile::live(),
            clock: LinkClock::FreeRunning,
            rate: standard.rates[0],
            cable: Permutation::IDENTITY,
            lane_retry_threshold: 0,
            epoch: 1,
            first_packet: 0,
            cut_through: CutThrough::Frames,
        })
    }

    getters! {
        /// Name of this end.
        local: &EndName;
        /// Name of the peer that the topology expects.
        peer: &EndName;
        /// Times and limits.
        profile: &LinkProfile;
    }

    getters! {
        /// Incarnation of this end.
        epoch: u32;
        /// Number of the link within its fabric.
        link: u16;
        /// Which end of the link this is.
        end: LinkEnd;
        /// Hash of the lab's name.
        fabric: u32;
        /// The clock that releases phits.
        clock: LinkClock;
        /// Lane rate.
        rate: LaneRate;
    }
}

/// Builder of a [`LinkConfig`]; every value has a default.
#[derive(Clone, Debug)]
pub struct LinkConfigBuilder(LinkConfig);

impl LinkConfigBuilder {
    setters! {
        /// Hash of the lab's name; frames of other fabrics are dropped. Default 0.
        fabric: u32;
        /// Times and limits. Default [`LinkProfile::live`].
        profile: LinkProfile;
        /// The clock that releases phits. Default free-running.
        clock: LinkClock;
        /// Lane rate. Default the standard's first.
        rate: LaneRate;
        /// How the cable permutes and inverts our transmit lanes (BlackWidow sec. 4.4). Default
        /// straight.
        cable: Permutation;
        /// Retries above which a lane is decommissioned (BlackWidow sec. 7.7, which leaves the
        /// value to system software); 0, the default: never.
        lane_retry_threshold: u32;
        /// Incarnation of this end; must differ from every earlier one of the same port. Default 1.
        epoch: u32;
        /// Number of the first packet of each session, below 2^48 and the same at both ends.
        /// Default 0; with a high one the numbers wrap within seconds.
        first_packet: u64;
        /// When the phits of a frame are handed up. Default whole frames.
        cut_through: CutThrough;
    }

    /// Validates the values.
    ///
    /// # Errors
    /// See [`LinkConfigError`].
    pub fn build(self) -> Result<LinkConfig, LinkConfigError> {
        let config = self.0;
        check_name("local", &config.local)?;
        check_name("peer", &config.peer)?;
        if config.epoch == 0 {
            return Err(LinkConfigError::ZeroEpoch);
        }
        if config.clock == (LinkClock::Paced { dilation: 0 }) {
            return Err(LinkConfigError::ZeroDilation);
        }
        in_range("first_packet", config.first_packet, 0, PacketNumber::MAX)?;
        check_profile(&config.profile)?;
        Ok(config)
    }
}

fn check_name(which: &'static str, end: &EndName) -> Result<(), LinkConfigError> {
    if end.node.is_empty() {
        return Err(LinkConfigError::NoName { which });
    }
    if end.node.len() > MAX_NODE_NAME_BYTES {
        return Err(LinkConfigError::NameTooLong {
            name: end.node.clone(),
        });
    }
    if end.node.bytes().any(|byte| byte == 0) {
        return Err(LinkConfigError::NameWithZero {
            name: end.node.clone(),
        });
    }
    Ok(())
}

pub fn in_range(
    field: &'static str,
    value: u64,
    min: u64,
    max: u64,
) -> Result<(), LinkConfigError> {
    if value < min || value > max {
        return Err(LinkConfigError::OutOfRange {
            field,
            value,
            min,
            max,
        });
    }
    Ok(())
}

fn check_profile(profile: &LinkProfile) -> Result<(), LinkConfigError> {
    let p = profile;
    let (retry, hold) = (p.max_retry_timeout, p.min_reorder_hold);
    let training = (p.min_training_interval, p.max_training_interval);
    let times = [
        ("retry_timeout", p.min_retry_timeout, retry),
        ("reorder_hold", hold, p.max_reorder_hold),
        ("training_interval", training.0, training.1),
        ("ack_delay", p.ack_delay, retry),
        ("packet_silence", hold, p.packet_silence),
    ];
    let inverted =
        |(_, least, most): &(_, Duration, Duration)| most < least || *most == Duration::ZERO;
    if let Some((field, ..)) = times.into_iter().find(inverted) {
        return Err(LinkConfigError::TimesInverted { field });
    }
    let zero = Some(Duration::ZERO);
    let never_zero = [
        ("min_retry_timeout", Some(p.min_retry_timeout)),
        ("min_training_interval", Some(training.0)),
        ("give_up", p.give_up),
        ("silence", p.silence),
        ("heal", p.heal),
    ];
    match never_zero.into_iter().find(|&(_, time)| time == zero) {
        Some((field, _)) => Err(LinkConfigError::ZeroTime(field)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_times_are_named() {
        assert_eq!(check_profile(&LinkProfile::live()), Ok(()));
        let wrong: [(fn(&mut LinkProfile), _); 6] = [
            (
                |p| p.max_retry_timeout = Duration::from_ns(1),
                "retry_timeout: the maximum is zero or below the minimum",
            ),
            (
                |p| p.packet_silence = Duration::ZERO,
                "packet_silence: the maximum is zero or below the minimum",
            ),
            (
                |p| p.min_retry_timeout = Duration::ZERO,
                "min_retry_timeout is zero",
            ),
            (
                |p| p.min_training_interval = Duration::ZERO,
                "min_training_interval is zero",
            ),
            (|p| p.give_up = Some(Duration::ZERO), "give_up is zero"),
            (|p| p.heal = Some(Duration::ZERO), "heal is zero"),
        ];
        for (spoil, said) in wrong {
            let mut profile = LinkProfile::live();
            spoil(&mut profile);
            let found = check_profile(&profile).map_err(|error| error.to_string());
            assert_eq!(found, Err(said.to_owned()));
        }
    }
}
