//! Taps: observers of the frames that links carry.

use std::sync::Arc;

use crate::time::Time;

/// Receives every frame that a link end sends.
pub trait FrameTap: Send + Sync {
    /// A frame leaves at `at` on topology link number `link`, from the first-named end or, if
    /// `is_b`, the other. It may still be impaired or lost.
    fn frame(&self, at: Time, link: u32, is_b: bool, bytes: &[u8]);
}

/// A tap that several parts of a network share.
pub type Tap = Arc<dyn FrameTap>;
