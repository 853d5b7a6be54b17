//! BlackWidow-specific configuration of a link end.

use phitwire_framing::yarc::packet::MAX_PACKET_PHITS;

use phitwire::kit::config::getters;
use phitwire::link::config::{LinkConfig, LinkConfigError, MAX_CREDITS, MAX_WINDOW, in_range};

/// Buffer depths of a link: those of the chip, or deeper ones for wires with a longer round trip.
/// The times are in the [`LinkProfile`](phitwire::link::LinkProfile) of the [`LinkConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhitProfile {
    /// Input buffer phits that this end offers as credits, per virtual channel.
    pub input_phits_per_vc: u32,
    /// Size of the retry buffer, in phits.
    pub retry_phits: u32,
    /// Maximum number of unacknowledged packets.
    pub window_packets: u16,
    /// Maximum number of phits held because they arrived out of order.
    pub reorder_phits: u32,
    /// Maximum number of phits gathered into a frame under a paced clock; the end of a packet sends
    /// it at once.
    pub burst_phits: u32,
}

impl PhitProfile {
    /// The depths of the chip: 256 phits of input buffer, in our reading for both virtual channels
    /// together (BlackWidow sec. 4.2 and 7.5). The other depths follow from this.
    pub fn paper() -> Self {
        Self {
            // 128 of the 256, less a longest packet, which is never offered.
            input_phits_per_vc: 128 - MAX_PACKET_PHITS as u32,
            // At most as many phits as there are credits can need a resend.
            retry_phits: 256 + MAX_PACKET_PHITS as u32,
            window_packets: 128,
            reorder_phits: 512,
            burst_phits: 4,
        }
    }

    /// Depths for wires with round trips of tens of microseconds to many milliseconds.
    pub fn live() -> Self {
        Self {
            // Rings have power-of-two sizes. These depths, plus what each ring holds beyond its
            // depth (a longest packet that is never offered, the end of the last packet), fill a
            // ring; otherwise half of its memory would be idle.
            input_phits_per_vc: 16_384 - MAX_PACKET_PHITS as u32,
            retry_phits: 32_768,
            window_packets: 8_191,
            reorder_phits: 65_536,
            burst_phits: 48,
        }
    }
}

/// The validated configuration of one end of a BlackWidow link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhitLinkConfig {
    pub(crate) link: LinkConfig,
    pub(crate) phits: PhitProfile,
    pub(crate) max_packet_phits: u8,
}

impl PhitLinkConfig {
    /// A link end with the configuration `link`, the depths of `phits`, and packets of up to
    /// `max_packet_phits`, EOP included (BlackWidow sec. 4.3).
    ///
    /// # Errors
    /// [`LinkConfigError::OutOfRange`].
    pub fn new(
        link: LinkConfig,
        phits: PhitProfile,
        max_packet_phits: u8,
    ) -> Result<Self, LinkConfigError> {
        let (packet, longest) = (max_packet_phits.into(), MAX_PACKET_PHITS as u64);
        in_range("max_packet_phits", packet, 4, longest)?;
        let (credit, window) = (u64::from(MAX_CREDITS), u64::from(MAX_WINDOW));
        let p = &phits;
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
        Ok(Self {
            link,
            phits,
            max_packet_phits,
        })
    }

    getters! {
        /// Names, times, clock, rate, cable.
        link: &LinkConfig;
        /// Buffer depths.
        phits: &PhitProfile;
    }
}
