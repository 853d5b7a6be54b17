//! Generators of BlackWidow networks: R1, R1.5, R2, R2.5, R3 and R3.5 (BlackWidow sec. 2.2).

mod builder;
mod sizing;

use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use super::computed::computed_registers;
use super::model::{ClosSettings, FoldedClos, RouterRegisters};
use super::wiring::ClosWiring;
use crate::route::modulo::supported_at_most;
use crate::route::registers::{PORTS, RouteEntry, Subtree, TABLE_ENTRIES};
use phitwire::link::LaneRate;
use phitwire::net::PortSet;

/// Maximum number of peer subtrees with sidelinks: one table entry per peer (BlackWidow sec. 2.2
/// and 5.1).
pub const MAX_PEERS: u32 = TABLE_ENTRIES as u32;

/// The class of a network: its highest router rank, and whether the top routers are connected by
/// sidelinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    level: u8,
    side: bool,
}

impl Rank {
    /// Every class, smallest first.
    pub const ALL: [Self; 6] = [
        Self::new(1, false),
        Self::new(1, true),
        Self::new(2, false),
        Self::new(2, true),
        Self::new(3, false),
        Self::new(3, true),
    ];

    const fn new(level: u8, side: bool) -> Self {
        Self { level, side }
    }

    /// The highest rank of routers, 1 to 3.
    pub const fn level(self) -> u8 {
        self.level
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.level, if self.side { ".5" } else { "" })
    }
}

impl FromStr for Rank {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = text.trim_start_matches(['r', 'R']);
        Self::ALL
            .into_iter()
            .find(|rank| rank.to_string() == wanted)
            .ok_or_else(|| format!("invalid rank `{text}`: expected 1, 1.5, 2, 2.5, 3 or 3.5"))
    }
}

/// The fraction of uplinks or sidelinks to keep: `kept / of`, above 0 and at most 1. The taper of
/// BlackWidow sec. 2.2 omits cables from rank 1 to rank 2; here it applies to links of any rank,
/// including sidelinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taper {
    kept: u32,
    of: u32,
}

impl Taper {
    pub const FULL: Self = Self { kept: 1, of: 1 };

    /// `kept` links of every `of`; `None` unless `0 < kept <= of`.
    pub const fn new(kept: u32, of: u32) -> Option<Self> {
        if kept > 0 && kept <= of {
            Some(Self { kept, of })
        } else {
            None
        }
    }

    /// Number of links to keep of `links`: at least one, and a number that the hash supports.
    fn apply(self, links: u32) -> u32 {
        let kept = u64::from(links) * u64::from(self.kept) / u64::from(self.of);
        supported_at_most(kept as u32).max(1)
    }
}

impl FromStr for Taper {
    type Err = String;

    /// Parses `1/2`, `0.5` or `1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "invalid fraction `{text}`: expected a value above 0 and at most 1, such as 0.5 \
                 or 1/2"
            )
        };
        let number = |s: &str| s.trim().parse::<u32>().map_err(|_| bad());
        let (kept, of) = if let Some((kept, of)) = text.split_once('/') {
            (number(kept)?, number(of)?)
        } else {
            let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
            let rest = rest.trim_end_matches('0');
            let of = 10u32.checked_pow(rest.len() as u32).ok_or_else(bad)?;
            let digits = if rest.is_empty() { 0 } else { number(rest)? };
            let kept = number(whole)?
                .checked_mul(of)
                .and_then(|k| k.checked_add(digits));
            (kept.ok_or_else(bad)?, of)
        };
        Self::new(kept, of).ok_or_else(bad)
    }
}

/// Parameters of a generated BlackWidow network.
#[derive(Clone, Debug)]
pub struct BlackWidowSpec {
    /// Name of the network; if empty, it is derived from rank and number of processors.
    pub name: String,
    /// Total number of processors, 1 to 32,768.
    pub processors: u32,
    /// Processors per rank-1 subtree, 1 to 32.
    pub subtree: u32,
    /// Class of the network; `None` means the smallest that holds all processors.
    pub rank: Option<Rank>,
    /// Number of slices, 1 to 4.
    pub slices: u8,
    /// Number of uplinks or sidelinks of each rank-1 router before the taper; `None` means one per
    /// processor, for full upward bandwidth.
    pub uplinks: Option<u32>,
    /// Fraction of the uplinks and sidelinks to keep, for ranks 1, 2 and 3.
    pub taper: [Taper; 3],
    /// Number of ports of each rank-2 and rank-3 virtual router, 4 to 64. The machine has 32, two
    /// routers per chip.
    pub virtual_radix: u32,
    /// Rank-1 subtrees per rank-2 subtree in networks above R2; `None` means half the radix.
    pub group: Option<u32>,
    /// Number of links between a rank-1 router and each of its rank-2 routers, a power of two. Two
    /// links at half the rate are the "reverse taper" for long cables (BlackWidow sec. 7.2).
    pub parallel: u32,
    /// Rate of the links between routers; `None` means that of the settings.
    pub router_rate: Option<LaneRate>,
    /// Length in metres of the links between routers; `None` means that of the settings.
    pub router_metres: Option<u16>,
    pub settings: ClosSettings,
}

impl Default for BlackWidowSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            processors: 32,
            subtree: 32,
            rank: None,
            slices: 1,
            uplinks: None,
            taper: [Taper::FULL; 3],
            virtual_radix: 32,
            group: None,
            parallel: 1,
            router_rate: None,
            router_metres: None,
            settings: ClosSettings::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        what: &'static str,
        value: u32,
        range: String,
    },
    #[error(
        "rank {rank} holds {least} to {most} {what}, not {wanted}; choose a {remedy} or omit the \
         rank"
    )]
    WrongRank {
        rank: Rank,
        what: &'static str,
        least: u32,
        most: u32,
        wanted: u32,
        remedy: &'static str,
    },
    #[error(
        "{processors} processors in subtrees of {subtree} exceed even rank 3.5; choose larger \
         subtrees or a larger radix"
    )]
    TooLarge { processors: u32, subtree: u32 },
    #[error(
        "a rank-{rank} router needs {down} downlinks and {up} {kind}, but has only {radix} ports"
    )]
    TooManyPorts {
        rank: u8,
        down: u32,
        /// Number of uplinks or sidelinks.
        up: u32,
        /// `uplinks` or `sidelinks`.
        kind: &'static str,
        radix: u32,
    },
    #[error(
        "numbering the subtrees at powers of two needs processor number {number}, but the largest \
         is 32767; choose a subtree size that is a power of two"
    )]
    Numbers { number: u32 },
}

impl BlackWidowSpec {
    /// Parses a rank and a number of processors, such as `r1.5-288`, with defaults for the rest.
    /// Returns `None` for other names.
    pub fn named(name: &str) -> Option<Self> {
        let (rank, processors) = name.split_once('-')?;
        let rank: Rank = rank.strip_prefix('r')?.parse().ok()?;
        Some(Self {
            processors: processors.parse().ok()?,
            rank: Some(rank),
            ..Self::default()
        })
    }

    /// Generates the network in time linear in its size.
    ///
    /// Processors are numbered so that every subtree is an aligned range of a power of two: with
    /// subtrees of three, numbers 3, 7, 11, ... are skipped.
    ///
    /// # Errors
    /// A [`SpecError`] with the value that conflicts with the others.
    pub fn generate(&self) -> Result<FoldedClos, SpecError> {
        let plan = self.plan()?;
        let name = match self.name.as_str() {
            "" => format!("r{}-{}", plan.rank, self.processors),
            name => name.to_owned(),
        };
        let mut topology = builder::build(self, plan, name)?;
        fill_registers(&mut topology);
        Ok(topology)
    }
}

pub(super) fn blank_registers() -> RouterRegisters {
    RouterRegisters {
        root_detect: Subtree::default(),
        table: [RouteEntry::default(); TABLE_ENTRIES],
        down_shift: 0,
        down_mask: 0,
        port_map: [super::NO_PORT; PORTS],
        hash_shift: 0,
        exit_mask: PortSet::EMPTY,
    }
}

/// Computes the registers of every router from the structure.
pub(super) fn fill_registers(topology: &mut FoldedClos) {
    let wiring = ClosWiring::new(topology);
    let computed: Vec<RouterRegisters> = (0..wiring.router_count() as u32)
        .map(|router| computed_registers(topology, &wiring, router))
        .collect();
    let routers = topology.chips.iter_mut().flat_map(|chip| &mut chip.routers);
    for (router, registers) in routers.zip(computed) {
        router.registers = registers;
    }
}
