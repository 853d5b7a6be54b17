//! Tables that put what this project gives beside what a paper printed.
//!
//! Each table of a machine has a module there. A reference value is a constant and is only ever
//! compared with; [`ours`](Row::ours) is measured, counted or computed in the run, and
//! [`Row::kind`] says which. Only what a paper prints has the [source](Row::source)
//! [`Paper`](Source::Paper). What each assumes, and where a value cannot be met, is printed with it
//! ([`Table::assumptions`]) and explained in `docs/guide/src/reproduce.md`.

mod settings;
mod table;

pub use settings::{PERMUTATIONS, Part, Reproduction, Settings};
pub use table::{Kind, Observation, Row, Source, Table, Tolerance};
