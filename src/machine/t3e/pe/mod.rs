//! The processor interface: gets and puts of one and eight words, atomic operations and messages,
//! as packets over the link to the processor's router.

mod transfer;

use crate::machine::t3e::link::{FlitEnd, FlitLinkConfig};
use crate::packets::{TransferNic, TransferNicConfig};

/// A processor, as far as the network sees it.
pub type Pe = TransferNic<FlitEnd>;

/// What a processor is told.
pub type PeConfig = TransferNicConfig<FlitLinkConfig>;

/// E-registers of a user, each of which holds an outstanding request: those of the machine.
pub const E_REGISTERS: u32 = 512;

const _: () = assert!(4 * E_REGISTERS <= Pe::MOST_OUTSTANDING);
