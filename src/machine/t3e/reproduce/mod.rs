//! The tables and figures of the T3E paper.
//!
//! | module | of the paper | what runs |
//! |---|---|---|
//! | [`table1`] | table 1, section 4 | the search for channels, and routers with its tables, packets counted |
//! | [`table2`] | table 2, section 11 | single packets through routers |
//!
//! Networks are those of [`harness`] where single packets have to be seen.

pub mod harness;
pub mod table1;
pub mod table2;

use crate::reproduce::Reproduction;

/// The tables, by the names that the command has for them.
pub const TABLES: &[Reproduction] = &[
    Reproduction {
        name: "t3e-table1",
        help: "Balance of virtual channels, searched for and counted in routers",
        run: |settings| table1::table(settings.seed, &table1::RINGS),
    },
    Reproduction {
        name: "t3e-table2",
        help: "Clocks of routers that packets pass alone",
        run: |_| table2::table(),
    },
];
