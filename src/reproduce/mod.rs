//! Tables that put what a running model shows beside what a paper printed.
//!
//! Each table of a machine has a module there that runs a model (routers, arbiters, routes). A
//! printed value is a constant and is only ever compared with; everything called
//! [`ours`](Row::ours) is measured or computed in the run. What each assumes, and where a value
//! cannot be met, is printed with it ([`Table::assumptions`]) and told at length in
//! `docs/guide/src/reproduce.md`.

mod settings;
mod table;

pub use settings::{PERMUTATIONS, Part, Reproduction, Settings};
pub use table::{Observation, Row, Table, Tolerance};
