//! The tables of the Cray XC white paper.
//!
//! | module | of the paper | what runs |
//! |---|---|---|
//! | [`crc`] | "RAS" | the check of a set, all error patterns counted |
//! | [`tables`] | tables 1, 2 and 3 | links and cables of generated dragonflies, counted |
//! | [`efficiency`] | "Aries Performance" | packets, sets and frames, written and read |

pub mod crc;
pub mod efficiency;
pub mod tables;

/// Figures that the Cray XC white paper states.
pub mod stated {
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
