//! The tables of *The BlackWidow High-Radix Clos Network*.
//!
//! | module | table or section | what runs |
//! |---|---|---|
//! | [`latency`] | table 2, sec. 7.3 | the published estimate; networks in virtual time; routers counted by registers, and in tori |
//! | [`throughput`] | table 3, sec. 7.6 | a whole YARC; above 8x8, subswitches of its arbiters and buffers |
//! | [`contention`] | table 4, sec. 7.8.1 | random permutations over the links of generated trees and tori |
//! | [`radix`] | sec. 7.1 | nothing: the minimum of a formula |

pub mod contention;
pub mod fat_tree;
pub mod latency;
pub mod permutation;
pub mod radix;
pub mod subswitch;
pub mod throughput;
pub mod torus;
mod worst_case_chip;

use phitwire::reproduce::Reproduction;

/// The tables by their command names.
pub const TABLES: &[Reproduction] = &[
    Reproduction {
        name: "blackwidow-table2",
        help: "Zero-load latency of a folded Clos and a torus",
        run: |settings| latency::table(settings.seed, latency::PAIRS),
    },
    Reproduction {
        name: "blackwidow-table3",
        help: "Throughput of a subswitch by degree",
        run: |settings| {
            let measurement = throughput::Measurement::of_the_paper(settings.seed);
            Ok(throughput::table(measurement))
        },
    },
    Reproduction {
        name: "blackwidow-table4",
        help: "Link load of a fat tree and a torus under random permutations",
        run: |settings| Ok(contention::table(&contention::seen(settings))),
    },
    Reproduction {
        name: "blackwidow-radix",
        help: "The radix with the lowest latency",
        run: |_| Ok(radix::table(radix::BLACKWIDOW)),
    },
];

/// Published figures that several tables use.
pub mod stated {
    /// Delay of a router, in nanoseconds: an estimate "prior to the actual implementation"
    /// (footnote 3).
    pub const ROUTER_NS: f64 = 20.0;
    /// Delay of the router that was built: 25 stages at 800 MHz (BlackWidow sec. 3).
    pub const PIPELINE_NS: f64 = 31.25;
    /// Bits of an average packet (footnote 3).
    pub const PACKET_BITS: f64 = 312.0;
    /// Bandwidth of a router in Gb/s, all ports in both directions (footnote 3).
    pub const ROUTER_GBPS: f64 = 2_400.0;
    /// Bandwidth of a port in Gb/s, in one direction (abstract).
    pub const PORT_GBPS: f64 = 18.75;
    /// Nodes of the largest network (footnote 3).
    pub const NODES: f64 = 32_768.0;
}
