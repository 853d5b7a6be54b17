//! One external link of a YARC router or BlackWidow processor: the link control block and the input
//! queue.
//!
//! The link control block (LCB) implements the data-link layer of the paper's section 4.3: reliable
//! packet delivery by a sliding-window go-back-N protocol whose sequence numbers, acknowledgements and
//! virtual-channel acknowledgements travel in the two sideband bits of every phit; and of section 7.7:
//! retries counted per lane, noisy lanes decommissioned, `link_active` deasserted when none is left.
//!
//! [`Lcb`] is one end of a link. What it receives it hands up *speculatively*, phit by phit, before
//! a packet's CRC is known, into the [`InputQueue`] of the port, whose write side undoes what turns
//! out bad.

mod acks;
mod data;
pub(crate) mod input_queue;
pub(crate) mod lcb;
mod receive;
mod resequencer;
mod retry_buffer;
mod transmit;

pub use input_queue::{InputQueue, Verdict};
pub use lcb::{Lcb, MIN_FRAME_BYTES};

#[cfg(test)]
pub(crate) mod tests;
