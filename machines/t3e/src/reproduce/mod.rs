//! The tables and figures of "The Cray T3E Network".
//!
//! | module | source | what runs |
//! |---|---|---|
//! | [`table1`] | T3E table 1, sec. 4 | channel search, and packets counted in routers using it |
//! | [`table2`] | T3E table 2, sec. 11 | single packets through routers |
//! | [`table3`] | T3E table 3, sec. 11 | captured frames of a link between two processors |
//! | [`table4`] | T3E table 4, sec. 11 | two neighbours that stream through their routers |
//! | [`figure7`] | T3E figure 7, sec. 11 | pairs of processors, each alone in the network |
//! | [`figure8`] | T3E figure 8, sec. 11 | links counted, and uniform traffic in virtual time |
//! | [`faults`] | T3E sec. 2 and 9 | routes around links that are broken at random |
//!
//! Where single packets must be observed, networks use the [`harness`].

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

/// The tables and figures by their command names.
pub const TABLES: &[Reproduction] = &[
    Reproduction {
        name: "t3e-table1",
        help: "Balance of virtual channels, searched for and counted in routers",
        run: |settings| table1::table(settings.seed, &table1::RINGS),
    },
    Reproduction {
        name: "t3e-table2",
        help: "Fall-through latency of routers, in clocks",
        run: |_| table2::table(),
    },
    Reproduction {
        name: "t3e-table3",
        help: "Flits of gets and puts",
        run: |_| table3::table(),
    },
    Reproduction {
        name: "t3e-table4",
        help: "Payload bandwidth between neighbours",
        run: |_| table4::table(table4::WINDOW),
    },
    Reproduction {
        name: "t3e-figure7",
        help: "Round-trip latency by machine size",
        run: |settings| figure7::table(settings, &figure7::SIZES, figure7::PAIRS),
    },
    Reproduction {
        name: "t3e-figure8",
        help: "Global bandwidth by machine size, and the share that uniform traffic reaches",
        run: |settings| figure8::table(settings, &figure8::SIZES, figure8::RUN),
    },
    Reproduction {
        name: "t3e-faults",
        help: "Pairs without a route in a torus with broken links",
        run: |settings| faults::table(settings.seed, faults::DRAWS),
    },
];
