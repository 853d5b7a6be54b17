//! The routing decision of YARC (BlackWidow sec. 5 and 7.8), based only on the chip's registers.

pub(crate) mod adaptive;
pub(crate) mod decision;
pub(crate) mod modulo;
pub mod registers;

pub(crate) use decision::{Decision, Refusal, TileRoutes};
pub(crate) use modulo::{is_supported_count, modulo};
