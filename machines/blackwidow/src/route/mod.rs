//! The routing decision of YARC (BlackWidow sec. 5 and 7.8), based only on the chip's registers.

pub mod adaptive;
pub mod decision;
pub mod modulo;
pub mod registers;

pub use decision::{Decision, Refusal, TileRoutes};
pub use modulo::{is_supported_count, modulo};
