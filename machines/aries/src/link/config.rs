//! Aries-specific configuration of a link end.

use phitwire_framing::aries::flit::{MAX_PACKET_FLITS, VCS};
use phitwire_framing::aries::set::LANES;

use crate::link::rates;
use phitwire::kit::config::getters;
use phitwire::link::ErrorInjection;
use phitwire::link::config::{LinkConfig, LinkConfigError, in_range};

/// Largest input buffer in flits that both ends can count.
pub(super) const MAX_INPUT_FLITS: u32 = 1 << 18;
/// Largest window of unacknowledged sets with full-width numbers.
const MAX_WINDOW_SETS: u16 = 1 << 14;
/// Largest input buffer in flits that 8-bit VC acks in blocks of eight can count, with a block to
/// spare per channel.
const MAX_SHORT_INPUT_FLITS: u32 = 2_048 - 8 * VCS as u32;
/// Largest window of unacknowledged sets that 6-bit numbers with their odd bit can distinguish from
/// those of the previous lap.
const MAX_SHORT_WINDOW_SETS: u16 = 64;

/// Buffer depths of a link: those of the chip, or deeper ones for wires with a longer round trip.
/// The times are in the [`LinkProfile`](phitwire::link::LinkProfile) of the [`LinkConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetProfile {
    /// Sets that the replay buffer holds.
    pub window_sets: u16,
    /// Input buffer flits private to each virtual channel.
    pub private_flits: u32,
    /// Input buffer flits shared by all virtual channels.
    pub common_flits: u32,
    /// Sets that the receiver keeps after a gap. With 0, as on the chip, it keeps none, and the
    /// sender replays everything from the missing set on.
    pub held_sets: u16,
    /// Whether every frame begins with a control set that carries full-width numbers.
    pub full_numbers: bool,
    /// No packet may begin while more flits than this are accepted from the core but not sent.
    pub backlog_flits: u32,
    /// Maximum number of sets gathered into a frame under a paced clock.
    pub burst_sets: u32,
}

impl SetProfile {
    /// The depths of the chip: a replay buffer of 64 sets, 6-bit numbers, an input buffer of 128
    /// blocks of 8 flits.
    pub fn paper() -> Self {
        Self {
            window_sets: 64,
            // Two blocks each, enough for a longest packet; the rest is shared.
            private_flits: 16,
            common_flits: 1_024 - 16 * VCS as u32,
            held_sets: 0,
            full_numbers: false,
            // One longest packet waits while another leaves.
            backlog_flits: MAX_PACKET_FLITS as u32,
            burst_sets: 1,
        }
    }

    /// Depths for wires whose round trip is tens of microseconds to many milliseconds, and which
    /// lose whole frames.
    pub fn live() -> Self {
        Self {
            window_sets: 2_048,
            private_flits: 512,
            common_flits: 12_288,
            held_sets: 2_048,
            full_numbers: true,
            // With the window and two longest packets, less than 32,768 flits.
            backlog_flits: 14_000,
            burst_sets: 8,
        }
    }

    /// Size of the input buffer in flits.
    pub const fn input_flits(&self) -> u32 {
        self.private_flits * VCS as u32 + self.common_flits
    }
}

/// Programmable registers of a link control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcbRegisters {
    /// Lanes of each direction that may be dropped, 0 to 2, before the link fails instead.
    pub max_degrades: u8,
    /// Consecutive sets with a bad CRC, 1 to 7, after which the link is reinitialised.
    pub reinit_after_bad_sets: u8,
    /// Repeated acknowledgement numbers after which the sender replays; 0: it waits for a nack or
    /// its timeout.
    pub replay_after_repeats: u8,
    /// Seed of each lane's scrambler; 0: the lane is not scrambled. Both ends must agree.
    pub scrambler_seeds: [u16; LANES.count()],
    pub injection: ErrorInjection,
}

impl Default for LcbRegisters {
    fn default() -> Self {
        Self {
            max_degrades: LANES.count() as u8 - 1,
            reinit_after_bad_sets: 7,
            replay_after_repeats: 4,
            scrambler_seeds: [0x1d5f, 0x2b37, 0x7c19],
            injection: ErrorInjection::default(),
        }
    }
}

/// The validated configuration of one Aries link end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AriesLinkConfig {
    pub(super) link: LinkConfig,
    pub(super) sets: SetProfile,
    pub(super) registers: LcbRegisters,
}

impl AriesLinkConfig {
    /// A link end with the configuration `link`, the depths of `sets` and default registers.
    ///
    /// # Errors
    /// [`LinkConfigError::OutOfRange`], also for a rate that Aries does not have.
    pub fn new(link: LinkConfig, sets: SetProfile) -> Result<Self, LinkConfigError> {
        if !rates::OF_LINKS.contains(&link.rate()) {
            let (value, min) = (link.rate().code().into(), rates::G14_0.code().into());
            let max = rates::NIC.code().into();
            return Err(LinkConfigError::OutOfRange {
                field: "rate",
                value,
                min,
                max,
            });
        }
        let packet = MAX_PACKET_FLITS as u64;
        let most = if sets.full_numbers {
            MAX_WINDOW_SETS
        } else {
            MAX_SHORT_WINDOW_SETS
        };
        let wide = u64::from(MAX_INPUT_FLITS);
        in_range("window_sets", sets.window_sets.into(), 4, most.into())?;
        in_range(
            "private_flits",
            sets.private_flits.into(),
            packet,
            wide / 16,
        )?;
        in_range("common_flits", sets.common_flits.into(), 0, wide / 2)?;
        let window = u64::from(sets.window_sets);
        match (sets.full_numbers, sets.held_sets) {
            (_, 0) => {}
            // Every set that the peer may send must fit, and numbers must give its position.
            (true, held) => in_range("held_sets", held.into(), window, MAX_WINDOW_SETS.into())?,
            (false, held) => in_range("held_sets", held.into(), 0, 0)?,
        }
        if !sets.full_numbers {
            let flits = sets.input_flits().into();
            in_range("input_flits", flits, packet, MAX_SHORT_INPUT_FLITS.into())?;
        }
        in_range("backlog_flits", sets.backlog_flits.into(), 1, wide)?;
        in_range("burst_sets", sets.burst_sets.into(), 1, most.into())?;
        let registers = LcbRegisters::default();
        Ok(Self {
            link,
            sets,
            registers,
        })
    }

    /// The same configuration with other registers.
    ///
    /// # Errors
    /// [`LinkConfigError::OutOfRange`].
    pub fn with_registers(mut self, registers: LcbRegisters) -> Result<Self, LinkConfigError> {
        in_range(
            "max_degrades",
            registers.max_degrades.into(),
            0,
            LANES.count() as u64 - 1,
        )?;
        in_range(
            "reinit_after_bad_sets",
            registers.reinit_after_bad_sets.into(),
            1,
            7,
        )?;
        let all = LANES.all().into();
        in_range("lane_mask", registers.injection.lane_mask.into(), 0, all)?;
        self.registers = registers;
        Ok(self)
    }

    getters! {
        /// Names, times, clock, rate, cable.
        link: &LinkConfig;
        /// Buffer depths.
        sets: &SetProfile;
        /// Initial values of the programmable registers.
        registers: &LcbRegisters;
    }
}
