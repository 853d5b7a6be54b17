//! Common parts of the tables and drawings of all machines' networks.

mod dot;
mod layout;
pub(super) mod plain;
mod svg;
mod table;

use thiserror::Error;

use super::shown::Shown;

pub use dot::Dot;
pub use layout::{Grid, Point, bounds, on_circle, title_of_part};
pub use svg::{FAINT, INK, Svg};
pub use table::{Table, links, or_dash};

/// A network too large to draw: count, noun of the counted items, and limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} {1} are too many to draw (limit {2}); show the network as a table")]
pub struct TooLarge(pub usize, pub &'static str, pub usize);

/// Why a drawing is impossible.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DrawError {
    /// The drawing would be unreadable.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// A part that the network does not have.
    #[error("unknown part `{}`: the parts are {parts}", Shown(.wanted))]
    NoPart {
        /// The part requested.
        wanted: String,
        parts: String,
    },
    /// Networks of this kind are only drawn as a whole.
    #[error(
        "`{}`: networks of this kind are drawn as a whole and have no parts to expand",
        Shown(.0)
    )]
    NoParts(String),
}

/// `3 links`, `1 link`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
