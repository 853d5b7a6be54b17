//! Route decisions: of the folded Clos (BlackWidow paper, sections 5 and 7.8) and of the Aries
//! dragonfly.
//!
//! [`dragonfly`] is the latter; the others are the Clos's: [`clos`] decides which output ports a
//! packet may take; [`mod@modulo`] is the exact modulus of the deterministic hash; [`adaptive`]
//! holds the two depth comparisons of the adaptive choice.
//!
//! Both decide by the registers of their chip alone ([`clos_registers`], [`dragonfly_registers`]),
//! and know no chip beyond them.

pub mod adaptive;
pub mod clos;
pub mod clos_registers;
pub mod dragonfly;
#[cfg(test)]
pub(crate) mod dragonfly_harness;
pub mod dragonfly_registers;
mod dragonfly_ways;
pub mod modulo;

pub use clos::{Decision, Refusal, TileRoutes};
pub use modulo::{is_supported_count, modulo};
