//! The tables and figures of the T3E paper.
//!
//! | module | of the paper | what runs |
//! |---|---|---|
//! | [`table1`] | table 1, section 4 | the search for channels, and routers with its tables, packets counted |
//! | [`table2`] | table 2, section 11 | single packets through routers |
//! | [`table3`] | table 3, section 11 | frames of a link between two processors, captured and read |
//! | [`table4`] | table 4, section 11 | two neighbours that stream through their routers |
//! | [`figure7`] | figure 7, section 11 | pairs of processors, each alone in the network |
//! | [`figure8`] | figure 8, section 11 | links counted, and uniform traffic in virtual time |
//! | [`faults`] | sections 2 and 9 | routes around links that are broken at random |
//!
//! Networks are those of [`harness`] where single packets have to be seen.

pub mod faults;
pub mod figure7;
pub mod figure8;
pub mod harness;
pub mod sizes;
pub mod table1;
pub mod table2;
pub mod table3;
pub mod table4;

use phitwire::reproduce::Reproduction;

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
    Reproduction {
        name: "t3e-table3",
        help: "Flits of gets and puts on the wire",
        run: |_| table3::table(),
    },
    Reproduction {
        name: "t3e-table4",
        help: "Payload bandwidth between neighbours",
        run: |_| table4::table(table4::WINDOW),
    },
    Reproduction {
        name: "t3e-figure7",
        help: "Round trips by the size of the machine",
        run: |settings| figure7::table(settings, &figure7::SIZES, figure7::PAIRS),
    },
    Reproduction {
        name: "t3e-figure8",
        help: "Global bandwidth by the size of the machine, and what uniform traffic gets of it",
        run: |settings| figure8::table(settings, &figure8::SIZES, figure8::RUN),
    },
    Reproduction {
        name: "t3e-faults",
        help: "Pairs without a route where links are broken",
        run: |settings| faults::table(settings.seed, faults::DRAWS),
    },
];
