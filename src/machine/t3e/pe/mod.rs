//! The processor interface: gets and puts of one and eight words, atomic operations and messages,
//! as packets over the link to the processor's router.

mod transfer;

use crate::machine::t3e::link::{FlitEnd, FlitLinkConfig};
use crate::packets::{TransferNic, TransferNicConfig};

/// A processor, as far as the network sees it.
pub type Pe = TransferNic<FlitEnd>;

/// What a processor is told.
pub type PeConfig = TransferNicConfig<FlitLinkConfig>;

/// Requests that a processor may have outstanding: the 512 E-registers of a user.
pub const E_REGISTERS: u32 = 512;

const _: () = assert!(E_REGISTERS <= Pe::MOST_OUTSTANDING);
