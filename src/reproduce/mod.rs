//! The tables of the papers, from running models.
//!
//! Each table has a module that runs a model - routers, arbiters, routes - and puts what it saw beside
//! what *The BlackWidow High-Radix Clos Network*, or the Cray XC white paper, printed. A printed value is a constant here and is only
//! ever compared with; everything called [`ours`](Row::ours) is measured or computed in the run.
//!
//! | module | of the paper | what runs |
//! |---|---|---|
//! | [`latency`] | table 2, section 7.3 | routes through generated networks' registers, and through tori |
//! | [`throughput`] | table 3, section 7.6 | subswitches of this crate's arbiters and buffers, and a whole YARC |
//! | [`contention`] | table 4, section 7.8.1 | random permutations over the links of generated trees and tori |
//! | [`radix`] | section 7.1 | the minimum of the latency model |
//! | [`aries_crc`] | white paper, RAS | the check of a set, all error patterns counted |
//! | [`aries_efficiency`] | white paper, Aries Performance | packets, sets and frames, written and read |
//!
//! What each assumes, and where a value cannot be met, is printed with it ([`Table::assumptions`]) and
//! told at length in `docs/reproduce.md`.

pub mod aries_crc;
pub mod aries_efficiency;
pub mod contention;
pub mod fat_tree;
pub mod latency;
pub mod permutation;
pub mod radix;
pub mod subswitch;
mod table;
pub mod throughput;
pub mod torus;
mod worst_case_chip;

pub use table::{Observation, Row, Table, Tolerance};

/// Figures that the paper states and that several tables start from.
pub mod stated {
    /// Delay of a router, in nanoseconds: an estimate "prior to the actual implementation" (footnote 3).
    pub const ROUTER_NS: f64 = 20.0;
    /// Bits of an average packet (footnote 3).
    pub const PACKET_BITS: f64 = 312.0;
    /// Bandwidth of a router, both directions of all ports together, in Gb/s (footnote 3).
    pub const ROUTER_GBPS: f64 = 2_400.0;
    /// Bandwidth of a port in one direction, in Gb/s (abstract).
    pub const PORT_GBPS: f64 = 18.75;
    /// Nodes of the largest network (footnote 3).
    pub const NODES: f64 = 32_768.0;
}

/// Figures that the Cray XC white paper states.
pub mod stated_aries {
    /// Nodes of the system whose undetected errors are told ("RAS").
    pub const SYSTEM_NODES: f64 = 25_000.0;
    /// Bit error rate of its lanes ("RAS").
    pub const BIT_ERROR_RATE: f64 = 1e-7;
    /// Years, at least, between its undetected errors ("RAS").
    pub const YEARS_BETWEEN_UNDETECTED: f64 = 7_250.0;
    /// Nodes that share a router.
    pub const NODES_PER_ROUTER: f64 = 4.0;
    /// Network tiles of a router, each with a link ("Aries Router").
    pub const NETWORK_TILES: f64 = 40.0;
    /// Raw bandwidth of a link in one direction, in bytes per second ("Aries Performance").
    pub const LINK_BYTES_PER_S: f64 = 5.25e9;
}
