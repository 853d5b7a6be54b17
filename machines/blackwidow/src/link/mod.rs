//! One external link of a YARC router or BlackWidow processor: the link control block and the input
//! queue.
//!
//! The link control block (LCB) implements the data-link layer of BlackWidow sec. 4.3: reliable
//! packet delivery by a sliding-window go-back-N protocol whose sequence numbers, acknowledgements
//! and virtual-channel acknowledgements travel in the two sideband bits of every phit; and of
//! sec. 7.7: retries counted per lane, noisy lanes decommissioned, `link_active` deasserted when
//! none is left.
//!
//! [`Lcb`] is one end of a link. It writes received phits *speculatively*, before a packet's CRC is
//! known, to the [`InputQueue`] of the port, which removes packets that turn out bad. [`IdealEnds`]
//! are the counterpart in virtual time without bytes: only the buffers and credits, since no packet
//! turns out bad.

use phitwire_framing::yarc::control::VC_ACK_MASK;
use phitwire_framing::yarc::packet::MAX_PACKET_PHITS;
use phitwire_framing::yarc::phit::LANES;

use phitwire::link::LinkStandard;
use phitwire::link::credits::CREDIT_BITS;
use phitwire::link::lanes::MAX_COPY_WORDS;

mod acks;
mod config;
mod data;
mod frame_contents;
mod ideal;
pub(crate) mod input_queue;
pub(crate) mod lcb;
mod output_credits;
mod phit_ring;
pub mod rates;
mod receive;
mod resequencer;
mod retry_buffer;
mod transmit;

pub use config::{PhitLinkConfig, PhitProfile};
pub(crate) use frame_contents::frame_contents;
pub use ideal::{INPUT_PHITS, IdealEnds, ideal_credits};
pub use input_queue::{InputQueue, Verdict};
pub use lcb::{Lcb, MIN_FRAME_BYTES};
pub use output_credits::OutputCredits;

/// The standard of all links of a BlackWidow network.
pub const STANDARD: LinkStandard = LinkStandard {
    lanes: LANES,
    rates: &rates::ALL,
};

/// Names of the virtual channels, by number (BlackWidow sec. 4.2).
pub const VC_NAMES: [&str; 2] = ["request", "response"];

// Credit counts fit control words, and there is room to keep a copy of a rejected packet.
const _: () = assert!(VC_ACK_MASK == (1 << CREDIT_BITS) - 1);
const _: () = assert!(MAX_PACKET_PHITS <= MAX_COPY_WORDS);

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
