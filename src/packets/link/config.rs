//! Configuration of a link of whole packets.

use crate::link::LinkConfig;
use crate::link::config::{MAX_CREDITS, MAX_WINDOW};

/// Depths of a link of whole packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDepths {
    buffers: u32,
    window: u16,
}

impl PacketDepths {
    /// Depths with buffers for `buffers` packets per virtual channel, and a maximum of `window`
    /// unacknowledged packets, which the end announces.
    ///
    /// # Panics
    /// If either is zero or more than links can count.
    pub const fn new(buffers: u32, window: u16) -> Self {
        assert!(
            0 < buffers && buffers <= MAX_CREDITS,
            "a channel needs a buffer, and both ends count them"
        );
        assert!(
            0 < window && window <= MAX_WINDOW,
            "the packet numbers cover a window"
        );
        Self { buffers, window }
    }

    /// Buffers per virtual channel, in packets.
    #[inline]
    pub const fn buffers(self) -> u32 {
        self.buffers
    }

    /// Maximum number of unacknowledged packets.
    pub const fn window(self) -> u16 {
        self.window
    }
}

/// The configuration of one end of a link of whole packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketLinkConfig {
    /// Names, times, clock, rate and cable.
    pub link: LinkConfig,
    pub depths: PacketDepths,
}
