//! The routing decision of YARC (paper, sections 5 and 7.8), by the registers of the chip alone.

pub mod adaptive;
pub mod decision;
pub mod modulo;
pub mod registers;

pub use decision::{Decision, Refusal, TileRoutes};
pub use modulo::{is_supported_count, modulo};
