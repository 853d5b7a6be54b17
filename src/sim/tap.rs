//! Taps: whoever wants to see the frames that links carry.

use std::sync::Arc;

use crate::time::Time;

/// Is told of every frame that an end of a link sends.
pub trait FrameTap: Send + Sync {
    /// A frame leaves at `at` by link number `link` of the topology, from its end named first or, if
    /// `is_b`, the other. Nothing has happened to it yet: it may still be impaired, or lost.
    fn frame(&self, at: Time, link: u32, is_b: bool, bytes: &[u8]);
}

/// A tap that several parts of a network share.
pub type Tap = Arc<dyn FrameTap>;
