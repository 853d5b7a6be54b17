//! What the tables and drawings of all machines' networks share.

mod dot;
pub(super) mod plain;
mod svg;
mod table;

use thiserror::Error;

pub use dot::Dot;
pub use svg::{FAINT, INK, Svg};
pub use table::{Table, links, or_dash};

/// A network that is too large to be drawn: how many it has, of what, and how many it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} {1} are too many to draw ({2} at most); show it as a table")]
pub struct TooLarge(pub usize, pub &'static str, pub usize);

/// `3 links`, `1 link`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
