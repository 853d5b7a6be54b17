//! One external link of an Aries router or NIC: sets of ten flits, replayed until they are
//! acknowledged.
//!
//! XC white paper, "Aries Router" and "Network Reliability": the link control block (LCB) transfers
//! data in sets of ten 48-bit flits, the last of which carries a 20-bit CRC, the global clock and
//! network load; the receiver acknowledges success or failure of every set, and the sender
//! retransmits. Publicly known register-level facts add: a replay buffer of 64 sets, 6-bit set
//! numbers and an odd bit, acknowledgements of eight virtual channels, lane degrade,
//! reinitialisation, error injection.
//!
//! [`AriesLcb`] is one end of a link. It writes data to an [`AriesInput`] only once the CRC is
//! known to be good, so that nothing ever has to be taken back.

use phitwire_framing::aries::flit::{FIRST_RESPONSE_VC, VCS};
use phitwire_framing::aries::set::LANES;

use phitwire::link::LinkStandard;

mod acks;
mod config;
mod counters;
mod credits;
mod declared_gap;
mod frame_contents;
mod frames;
mod held;
mod ideal;
mod injection;
pub(crate) mod input;
pub(crate) mod lcb;
mod ranges;
pub mod rates;
mod receive;
mod replay_buffer;
mod scrambler;
mod transmit;
mod unacknowledged;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;

pub use config::{AriesLinkConfig, LcbRegisters, SetProfile};
pub use counters::SetCounters;
pub(crate) use frame_contents::frame_contents;
pub use ideal::IdealEnd;
pub use input::AriesInput;
pub use lcb::{AriesLcb, MIN_SET_FRAME_BYTES};
#[cfg(test)]
pub(crate) use scrambler::Scrambler;

/// Names of the virtual channels, by number.
pub const VC_NAMES: [&str; VCS] = [
    "request 0",
    "request 1",
    "request 2",
    "request 3",
    "response 0",
    "response 1",
    "response 2",
    "response 3",
];
const _: () = assert!(FIRST_RESPONSE_VC == 4);

/// Properties of all links of an Aries network.
pub const STANDARD: LinkStandard = LinkStandard {
    lanes: LANES,
    rates: &rates::OF_LINKS,
};
