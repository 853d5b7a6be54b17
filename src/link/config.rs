//! What a link end is told before it starts: names, depths, clock, rate, cable.

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::carrier::lanes::Permutation;
use phitwire_framing::carrier::number::PacketNumber;
use thiserror::Error;

use super::lane_rate::LaneRate;
use super::lanes::MAX_UNIT_WORDS;
use crate::kit::config::{getters, setters};
pub use crate::time::Clock as LinkClock;
use crate::time::Duration;

/// Longest name of a node in bytes: what a training frame carries.
pub const MAX_NODE_NAME_BYTES: usize = 32;
/// Credits that cumulative 20-bit counts can tell apart.
pub(crate) const MAX_CREDIT_PHITS: u32 = 1 << 18;
/// Packets in flight at most. Frames older than a window are told from repeated ones by their age.
const MAX_WINDOW_PACKETS: u16 = 1 << 14;

/// One end of a cable as the topology names it: a node and a physical port of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EndName {
    /// Name of the node, at most 32 bytes of UTF-8.
    pub node: String,
    /// Physical port.
    pub port: u8,
}

impl core::fmt::Display for EndName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} port {}", self.node, self.port)
    }
}

/// What all links of a machine have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkStandard {
    /// The rates that a lane may have, first the one of links that are told none.
    pub rates: &'static [LaneRate],
    /// Phits of the longest packet there is.
    pub max_packet_phits: u8,
}

impl LinkStandard {
    /// Ends know each other's rate by its code: two with the same would never be told apart.
    fn assert_rates_differ(&self) {
        let codes = || self.rates.iter().map(|rate| rate.code());
        let first = |code| codes().position(|other| other == code);
        let differ = codes()
            .enumerate()
            .all(|(at, code)| first(code) == Some(at));
        assert!(differ, "rates have a code each: {:?}", self.rates);
    }
}

/// Depths and times of a link: the chip's own, or deeper ones for wires with a longer round trip.
///
/// Times are emulated time (under a paced clock they are multiplied by its dilation) or, where the
/// profile is made for a real wire whose round trip no dilation stretches, the driver's time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkProfile {
    /// Whether the times are emulated time.
    pub emulated_time: bool,
    /// Phits of input buffer that this end offers as credits, per virtual channel.
    pub input_phits_per_vc: u32,
    /// Phits that the retry buffer holds.
    pub retry_phits: u32,
    /// Packets that may be unacknowledged at once.
    pub window_packets: u16,
    /// Phits that may be held because they arrived ahead of their turn.
    pub reorder_phits: u32,
    /// Longest time that an acknowledgement is held back to ride with others.
    pub ack_delay: Duration,
    /// Shortest retry time-out.
    pub min_retry_timeout: Duration,
    /// Longest retry time-out, after any number of doublings.
    pub max_retry_timeout: Duration,
    /// How often the peer is asked for its state before all unacknowledged data is resent.
    pub questions: u32,
    /// Shortest time that a gap may be a late frame before it counts as a loss.
    pub min_reorder_hold: Duration,
    /// Longest time that a gap may be a late frame, whatever reordering was seen.
    pub max_reorder_hold: Duration,
    /// Time after which a packet whose rest does not arrive is given up.
    pub packet_silence: Duration,
    /// First interval between training frames; it doubles up to `max_training_interval`.
    pub min_training_interval: Duration,
    /// Longest interval between training frames.
    pub max_training_interval: Duration,
    /// Under a paced clock, phits gathered into a frame at most before it leaves; a packet's end
    /// lets it leave at once.
    pub burst_phits: u32,
    /// Deassert `link_active` when nothing was acknowledged for this long; `None`: try for ever.
    pub give_up: Option<Duration>,
    /// Report [`LinkEvent::Silent`](super::LinkEvent::Silent) when nothing was accepted for this
    /// long although the peer was asked; `None`: an idle link says nothing, and its peer is not
    /// asked.
    pub silence: Option<Duration>,
    /// Begin a new session when frames came for this long and none could be used, although the peer
    /// was asked for one; four round trips where these are longer. `None`: never.
    pub heal: Option<Duration>,
}

impl LinkProfile {
    /// The chip's own values, for round trips of some 100 ns: 256 phits of input buffer (paper,
    /// sections 4.2 and 7.5), by our reading for both virtual channels; what the paper does not
    /// give follows from them.
    pub fn paper() -> Self {
        Self {
            emulated_time: true,
            // With one longest packet on top that is never offered: 128 of the 256.
            input_phits_per_vc: 128 - MAX_UNIT_WORDS as u32,
            // Nobody can be owed a retry of more phits than there are credits.
            retry_phits: 256 + MAX_UNIT_WORDS as u32,
            window_packets: 128,
            reorder_phits: 512,
            // 48 phits carry one whole control word in their sideband: 48 x 1.28 ns.
            ack_delay: Duration::from_ps(48 * 1_280),
            min_retry_timeout: Duration::from_ns(1_000),
            max_retry_timeout: Duration::from_us(100),
            questions: 1,
            min_reorder_hold: Duration::from_ps(48 * 1_280),
            max_reorder_hold: Duration::from_us(10),
            packet_silence: Duration::from_us(100),
            min_training_interval: Duration::from_us(1),
            max_training_interval: Duration::from_us(100),
            burst_phits: 4,
            give_up: None,
            // What is idle sleeps.
            silence: None,
            // As in `live`: ten of the longest interval between training frames.
            heal: Some(Duration::from_ms(1)),
        }
    }

    /// The same rules over wires whose round trip is tens of microseconds to many milliseconds
    /// (design decision 9): deeper buffers, longer times.
    pub fn live() -> Self {
        Self {
            emulated_time: false,
            // With what they hold beyond it (one longest packet that is never offered, the end of
            // the last packet), each ring is a power of two: half of its memory would lie idle
            // otherwise.
            input_phits_per_vc: 16_384 - MAX_UNIT_WORDS as u32,
            retry_phits: 32_768,
            window_packets: 8_191,
            reorder_phits: 65_536,
            // Long enough for a response to carry it, short against the retry time-out; what opens
            // credits or a window does not wait.
            ack_delay: Duration::from_us(200),
            min_retry_timeout: Duration::from_ms(4),
            max_retry_timeout: Duration::from_ms(250),
            // About 60 ms with back-off: a process that is not scheduled for so long has lost
            // nothing.
            questions: 4,
            min_reorder_hold: Duration::from_us(50),
            max_reorder_hold: Duration::from_ms(100),
            packet_silence: Duration::from_ms(500),
            min_training_interval: Duration::from_ms(2),
            max_training_interval: Duration::from_ms(100),
            burst_phits: 48,
            give_up: None,
            silence: Some(Duration::from_ms(2_000)),
            // Ten tries to agree on lanes, and a dozen questions to the peer, fit in.
            heal: Some(Duration::from_ms(1_000)),
        }
    }
}

/// Why a [`LinkConfig`] was not built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkConfigError {
    /// An end has no name.
    #[error("the {which} end has no node name")]
    NoName {
        /// `local` or `peer`.
        which: &'static str,
    },
    /// A name does not fit a training frame.
    #[error("node name {name:?} is longer than 32 bytes")]
    NameTooLong {
        /// The name.
        name: String,
    },
    /// A name contains a zero byte, which pads names in training frames.
    #[error("node name {name:?} contains a zero byte")]
    NameWithZero {
        /// The name.
        name: String,
    },
    /// Epoch 0 means "unknown".
    #[error("epoch 0 is reserved")]
    ZeroEpoch,
    /// A dilation of 0 would stop the clock.
    #[error("a paced clock needs a dilation of at least 1")]
    ZeroDilation,
    /// A number is outside what the protocol can carry.
    #[error("{field} is {value}, outside {min} to {max}")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The least allowed.
        min: u64,
        /// The most allowed.
        max: u64,
    },
    /// A longest time is shorter than its shortest.
    #[error("{field}: the longest time is shorter than the shortest, or zero")]
    TimesInverted {
        /// Name of the pair.
        field: &'static str,
    },
}

/// When a receiver hands up the phits of a frame, on links that do so before the packet's CRC has
/// arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CutThrough {
    /// All at once: a packet that lies in one frame is checked before the core sees it.
    #[default]
    Frames,
    /// As they would arrive on the line. Behind a free-running clock the core gets and forwards the
    /// phits of a packet before its end is checked; behind a paced one they come at the line rate,
    /// a burst at a time, until the next frame arrives.
    Phits,
}

/// The checked configuration of one link end. Made by [`LinkConfig::builder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    pub(crate) standard: LinkStandard,
    pub(crate) link: u16,
    pub(crate) end: LinkEnd,
    pub(crate) fabric: u32,
    pub(crate) local: EndName,
    pub(crate) peer: EndName,
    pub(crate) profile: LinkProfile,
    pub(crate) clock: LinkClock,
    pub(crate) rate: LaneRate,
    pub(crate) cable: Permutation,
    pub(crate) lane_retry_threshold: u32,
    pub(crate) max_packet_phits: u8,
    pub(crate) epoch: u32,
    pub(crate) first_packet: u64,
    pub(crate) cut_through: CutThrough,
}

impl LinkConfig {
    /// Starts the configuration of end `end` of link number `link`, from `local` to `peer`, of a
    /// machine whose links are as `standard` says.
    ///
    /// # Panics
    /// If the standard knows no rate, or two with the same code.
    pub fn builder(
        standard: LinkStandard,
        link: u16,
        end: LinkEnd,
        local: EndName,
        peer: EndName,
    ) -> LinkConfigBuilder {
        standard.assert_rates_differ();
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
            max_packet_phits: standard.max_packet_phits,
            epoch: 1,
            first_packet: 0,
            cut_through: CutThrough::Frames,
        })
    }

    getters! {
        /// This end.
        local: &EndName;
        /// The end that the topology expects at the other side.
        peer: &EndName;
        /// Depths and times.
        profile: &LinkProfile;
    }

    getters! {
        /// Which incarnation of its end it is.
        epoch: u32;
        /// Number of the link within its fabric.
        link: u16;
        /// Which end of the link this is.
        end: LinkEnd;
        /// Hash of the lab's name.
        fabric: u32;
        /// The clock that lets phits leave.
        clock: LinkClock;
        /// Rate of a lane.
        rate: LaneRate;
        /// The longest packet that this end takes, EOP included.
        max_packet_phits: u8;
    }
}

/// Collects the values of a [`LinkConfig`]; every value not given has a default.
#[derive(Clone, Debug)]
pub struct LinkConfigBuilder(LinkConfig);

impl LinkConfigBuilder {
    setters! {
        /// Hash of the lab's name; frames of other fabrics are dropped. Default 0.
        fabric: u32;
        /// Depths and times. Default [`LinkProfile::live`].
        profile: LinkProfile;
        /// The clock that lets phits leave. Default free-running.
        clock: LinkClock;
        /// Rate of a lane. Default the first of the standard's.
        rate: LaneRate;
        /// How the cable permutes and inverts the lanes that this end transmits on (paper, section
        /// 4.4). Default straight.
        cable: Permutation;
        /// Retries charged to one lane above which it is decommissioned (paper, section 7.7); 0,
        /// the default: never. The paper leaves the value to system software.
        lane_retry_threshold: u32;
        /// Longest packet, EOP included (paper, section 4.3). Default the standard's.
        max_packet_phits: u8;
        /// Incarnation of this end; must differ from every earlier one of the same port. Default 1.
        epoch: u32;
        /// Number of the first packet of each session, less than 2^48. Both ends must be given the
        /// same. Default 0; another shows within seconds what happens where the numbers come round.
        first_packet: u64;
        /// When the phits of a frame are handed up. Default whole frames.
        cut_through: CutThrough;
    }

    /// Checks the values.
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
        let max = u64::from(config.max_packet_phits);
        let longest = config.standard.max_packet_phits.into();
        in_range("max_packet_phits", max, 4, longest)?;
        in_range("first_packet", config.first_packet, 0, PacketNumber::MAX)?;
        check_profile(&config.profile, max)?;
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

pub(crate) fn in_range(
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

fn check_profile(profile: &LinkProfile, packet: u64) -> Result<(), LinkConfigError> {
    let credit = u64::from(MAX_CREDIT_PHITS);
    let window = u64::from(MAX_WINDOW_PACKETS);
    let p = profile;
    let numbers = [
        ("input_phits_per_vc", p.input_phits_per_vc, packet, credit),
        ("retry_phits", p.retry_phits, packet, 4 * credit),
        ("window_packets", p.window_packets.into(), 1, window),
        ("reorder_phits", p.reorder_phits, 0, 16 * credit),
        ("burst_phits", p.burst_phits, 1, credit),
    ];
    for (field, value, least, most) in numbers {
        in_range(field, value.into(), least, most)?;
    }
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
    let ends = [
        ("give_up", p.give_up),
        ("silence", p.silence),
        ("heal", p.heal),
    ];
    let at_once = |(_, time): &(_, Option<Duration>)| *time == Some(Duration::ZERO);
    let inverted = times.into_iter().find(inverted).map(|(field, ..)| field);
    let at_once = ends.into_iter().find(at_once).map(|(field, _)| field);
    let shortest = [p.min_retry_timeout, training.0];
    let never = shortest
        .contains(&Duration::ZERO)
        .then_some("retry_timeout");
    match inverted.or(at_once).or(never) {
        Some(field) => Err(LinkConfigError::TimesInverted { field }),
        None => Ok(()),
    }
}
