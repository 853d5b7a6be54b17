//! Tables that compare phitwire's values with those of a paper.
//!
//! Each table of a machine has a module in its crate. A reference value is a constant that is used
//! only for comparison. [`ours`](Row::ours) is measured, counted or computed in the run, as
//! [`Row::kind`] says. Only printed values of a paper have the [source](Row::source)
//! [`Paper`](Source::Paper). The assumptions of a table, and values that cannot be met, are printed
//! with it ([`Table::assumptions`]) and explained in `docs/guide/src/reproduce.md`.

mod settings;
mod table;

pub use settings::{PERMUTATIONS, Part, Reproduction, Settings};
pub use table::{Kind, Observation, Row, Source, Table, Tolerance};
