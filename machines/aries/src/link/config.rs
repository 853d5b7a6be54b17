//! What an Aries link end is told beside what every link end is told.

use phitwire_framing::aries::flit::{MAX_PACKET_FLITS, VCS};
use phitwire_framing::carrier::lanes::LANES;

use crate::link::rates;
use phitwire::kit::config::getters;
use phitwire::link::ErrorInjection;
use phitwire::link::config::{LinkConfig, LinkConfigError, in_range};

/// Flits of buffer that both ends can still count.
pub(super) const MAX_INPUT_FLITS: u32 = 1 << 18;
/// Sets that may be unacknowledged at once with full-width numbers.
const MAX_WINDOW_SETS: u16 = 1 << 14;
/// Flits of buffer that 8-bit VC acks in blocks of eight can count, with a block to spare for each
/// channel.
const MAX_SHORT_INPUT_FLITS: u32 = 2_048 - 8 * VCS as u32;
/// Sets that 6-bit numbers with their odd bit can tell from those of the lap before.
const MAX_SHORT_WINDOW_SETS: u16 = 64;

/// Depths of a link: the chip's own, or deeper ones for wires with a longer round trip. The times
/// are in the [`LinkProfile`](phitwire::link::LinkProfile) of the [`LinkConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetProfile {
    /// Sets that the replay buffer holds.
    pub window_sets: u16,
    /// Flits of input buffer that belong to each virtual channel alone.
    pub private_flits: u32,
    /// Flits of input buffer that all virtual channels share.
    pub common_flits: u32,
    /// Sets that the receiver keeps although one before them is missing. 0: none, as on the chip;
    /// the sender then replays everything from the missing set on.
    pub held_sets: u16,
    /// Whether every frame begins with a control set that carries full-width numbers.
    pub full_numbers: bool,
    /// Flits taken from the core and not sent above which no packet may begin.
    pub backlog_flits: u32,
    /// Under a paced clock, sets gathered into a frame at most before it leaves.
    pub burst_sets: u32,
}

impl SetProfile {
    /// The chip's: a replay buffer of 64 sets, 6-bit numbers, an input buffer of 128 blocks of 8
    /// flits.
    pub fn paper() -> Self {
        Self {
            window_sets: 64,
            // Two blocks each, the least that hold a longest packet; the rest is everybody's.
            private_flits: 16,
            common_flits: 1_024 - 16 * VCS as u32,
            held_sets: 0,
            full_numbers: false,
            // One longest packet waits while another leaves.
            backlog_flits: MAX_PACKET_FLITS as u32,
            burst_sets: 1,
        }
    }

    /// The same rules over wires whose round trip is tens of microseconds to many milliseconds, and
    /// which lose whole frames.
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

    /// Flits of input buffer in all.
    pub const fn input_flits(&self) -> u32 {
        self.private_flits * VCS as u32 + self.common_flits
    }
}

/// Programmable registers of a link control block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LcbRegisters {
    /// Lanes of each direction that may be given up, 0 to 2, before the link dies instead.
    pub max_degrades: u8,
    /// Sets with a bad CRC in a row, 1 to 7, after which the link is initialised again.
    pub reinit_after_bad_sets: u8,
    /// Repeated acknowledgement numbers after which the sender replays; 0: it waits for a nack or
    /// its time-out.
    pub replay_after_repeats: u8,
    /// Seed of each lane's scrambler; 0: the lane is not scrambled. Both ends must agree.
    pub scrambler_seeds: [u16; LANES],
    /// Errors made on purpose.
    pub injection: ErrorInjection,
}

impl Default for LcbRegisters {
    fn default() -> Self {
        Self {
            max_degrades: LANES as u8 - 1,
            reinit_after_bad_sets: 7,
            replay_after_repeats: 4,
            scrambler_seeds: [0x1d5f, 0x2b37, 0x7c19],
            injection: ErrorInjection::default(),
        }
    }
}

/// The checked configuration of one Aries link end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AriesLinkConfig {
    pub(super) link: LinkConfig,
    pub(super) sets: SetProfile,
    pub(super) registers: LcbRegisters,
}

impl AriesLinkConfig {
    /// A link end as `link` says (its times, not its phits), with the depths of `sets` and default
    /// registers.
    ///
    /// # Errors
    /// [`LinkConfigError::OutOfRange`], for a rate that is not Aries' too.
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
            // What the peer may send must find a place, and numbers must say where.
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

    /// The same with other registers.
    ///
    /// # Errors
    /// [`LinkConfigError::OutOfRange`].
    pub fn with_registers(mut self, registers: LcbRegisters) -> Result<Self, LinkConfigError> {
        in_range(
            "max_degrades",
            registers.max_degrades.into(),
            0,
            LANES as u64 - 1,
        )?;
        in_range(
            "reinit_after_bad_sets",
            registers.reinit_after_bad_sets.into(),
            1,
            7,
        )?;
        in_range("lane_mask", registers.injection.lane_mask.into(), 0, 7)?;
        self.registers = registers;
        Ok(self)
    }

    getters! {
        /// Names, times, clock, rate, cable.
        link: &LinkConfig;
        /// Depths.
        sets: &SetProfile;
        /// Programmable registers as the link starts with them.
        registers: &LcbRegisters;
    }
}
