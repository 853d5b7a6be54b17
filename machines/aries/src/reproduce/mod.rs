//! The tables of the Cray XC white paper.
//!
//! | module | source | what runs |
//! |---|---|---|
//! | [`crc`] | "RAS" | the check of a set, all error patterns counted |
//! | [`tables`] | tables 1, 2 and 3 | links and cables of generated dragonflies, counted |
//! | [`efficiency`] | "Aries Performance" | packets, sets and frames, encoded and parsed |
//! | [`performance`] | "Aries Performance" | routers and links in virtual time |
//! | [`messages`] | figures 11 to 15 | NICs, links and routers in virtual time |

pub mod crc;
pub mod efficiency;
pub mod messages;
pub mod performance;
pub mod tables;

use messages::Setup;
use phitwire::reproduce::Reproduction;

pub const TABLES: &[Reproduction] = &[
    Reproduction {
        name: "aries-table1",
        help: "Devices and cables of a full dragonfly",
        run: |_| tables::table1(tables::CRAY_XC).map_err(|error| error.to_string()),
    },
    Reproduction {
        name: "aries-table2",
        help: "Optical cables of two partial dragonflies",
        run: |_| tables::table2(tables::CRAY_XC).map_err(|error| error.to_string()),
    },
    Reproduction {
        name: "aries-table3",
        help: "Cables and bandwidth across the worst bisection",
        run: |_| tables::table3(tables::CRAY_XC).map_err(|error| error.to_string()),
    },
    Reproduction {
        name: "aries-crc",
        help: "Undetected errors of the CRC of a set",
        run: |_| Ok(crc::table()),
    },
    Reproduction {
        name: "aries-efficiency",
        help: "Flits and payload efficiency of 64-byte puts and gets",
        run: |_| Ok(efficiency::table()),
    },
    Reproduction {
        name: "aries-performance",
        help: "Hop latency and global bandwidth, measured in routers and links",
        run: |settings| performance::table(settings.seed, performance::CYCLES),
    },
    Reproduction {
        name: "xc-figure11",
        help: "Latency of puts and gets between processes",
        run: |settings| messages::figure11(&Setup::pair(settings.seed)),
    },
    Reproduction {
        name: "xc-figure12",
        help: "Bandwidth of puts, one way and both ways",
        run: |settings| messages::figure12(&Setup::pair(settings.seed)),
    },
    Reproduction {
        name: "xc-figure13",
        help: "Rate of puts by number of processes",
        run: |settings| messages::figure13(&Setup::pair(settings.seed)),
    },
    Reproduction {
        name: "xc-figure14",
        help: "Bandwidth of long messages",
        run: |settings| messages::figure14(&Setup::pair(settings.seed)),
    },
    Reproduction {
        name: "xc-figure15",
        help: "Allreduce by the collective engines of 64 to 750 nodes",
        run: |settings| {
            let setup = Setup {
                shape: messages::FIGURE_15,
                ..Setup::pair(settings.seed)
            };
            messages::figure15(&setup, &[64, 128, 256, 512, 750])
        },
    },
    Reproduction {
        name: "xc-hop",
        help: "A hop between routers, and the farthest pair, measured by puts",
        run: |settings| messages::hop(&Setup::pair(settings.seed)),
    },
    Reproduction {
        name: "xc-amo",
        help: "Rates of atomic additions at one NIC",
        run: |settings| messages::amo(&Setup::pair(settings.seed)),
    },
];

/// Figures stated in the Cray XC white paper.
pub mod stated {
    /// Nodes of the system whose undetected errors are stated ("RAS").
    pub const SYSTEM_NODES: f64 = 25_000.0;
    pub const BIT_ERROR_RATE: f64 = 1e-7;
    /// Minimum years between its undetected errors ("RAS").
    pub const YEARS_BETWEEN_UNDETECTED: f64 = 7_250.0;
    pub const NODES_PER_ROUTER: f64 = 4.0;
    /// Latency that a router-to-router hop adds, and the most that the hops of a minimal path add,
    /// in nanoseconds ("Aries Performance").
    pub const HOP_NS: f64 = 100.0;
    /// See [`HOP_NS`].
    pub const HOPS_NS: f64 = 500.0;
    /// Peak global bandwidth of a node and its payload, in GB/s ("Aries Performance").
    pub const GLOBAL_GBYTES: f64 = 11.7;
    /// See [`GLOBAL_GBYTES`].
    pub const PAYLOAD_GBYTES: f64 = 7.5;
    /// Tiles of a router for links between groups ("Dragonfly Implementation").
    pub const GLOBAL_TILES: f64 = 10.0;
    /// Network tiles of a router, each with a link ("Aries Router").
    pub const NETWORK_TILES: f64 = 40.0;
    /// Raw bandwidth of a link in one direction, in bytes per second ("Aries Performance").
    pub const LINK_BYTES_PER_S: f64 = 5.25e9;
}
