//! Generators of BlackWidow networks: R1, R1.5, R2, R2.5, R3 and R3.5 (paper, section 2.2).

use core::fmt;
use core::str::FromStr;

use phitwire_framing::lanes::Permutation;
use thiserror::Error;

use super::computed::computed_registers;
use super::model::{
    Chip, End, Link, MAX_PROCESSORS, MAX_SLICES, NodeRef, Processor, RouterRegisters, Settings,
    Topology, VirtualRouter,
};
use super::ports::PortSet;
use super::wiring::Wiring;
use crate::link::LaneRate;
use crate::route::modulo::{is_supported_count, supported_at_most};
use crate::router::yarc::registers::{PORTS, RouteEntry, Subtree, TABLE_ENTRIES};

/// Peer subtrees that sidelinks can join: one table entry per peer (paper, sections 2.2 and 5.1).
pub const MAX_PEERS: u32 = TABLE_ENTRIES as u32;

/// The class of a network: its highest rank of routers, and whether sidelinks join its tops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    level: u8,
    side: bool,
}

impl Rank {
    /// Every class, smallest first.
    pub const ALL: [Self; 6] = [
        Self {
            level: 1,
            side: false,
        },
        Self {
            level: 1,
            side: true,
        },
        Self {
            level: 2,
            side: false,
        },
        Self {
            level: 2,
            side: true,
        },
        Self {
            level: 3,
            side: false,
        },
        Self {
            level: 3,
            side: true,
        },
    ];

    /// The highest rank of routers, 1 to 3.
    pub const fn level(self) -> u8 {
        self.level
    }

    /// Whether sidelinks join peer subtrees at the highest rank (R1.5, R2.5, R3.5).
    pub const fn has_sidelinks(self) -> bool {
        self.side
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
            .ok_or_else(|| format!("`{text}` is no rank: 1, 1.5, 2, 2.5, 3 or 3.5"))
    }
}

/// The fraction of uplinks or sidelinks that is kept (section 2.2): `kept / of`, above 0 and at
/// most 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taper {
    kept: u32,
    of: u32,
}

impl Taper {
    /// All links.
    pub const FULL: Self = Self { kept: 1, of: 1 };

    /// `kept` links of every `of`; `None` unless `0 < kept <= of`.
    pub const fn new(kept: u32, of: u32) -> Option<Self> {
        if kept > 0 && kept <= of {
            Some(Self { kept, of })
        } else {
            None
        }
    }

    /// How many of `links` are kept: at least one, and a count that the hash supports.
    fn apply(self, links: u32) -> u32 {
        let kept = u64::from(links) * u64::from(self.kept) / u64::from(self.of);
        supported_at_most(kept as u32).max(1)
    }
}

impl FromStr for Taper {
    type Err = String;

    /// Reads `1/2`, `0.5` or `1`.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is no fraction above 0 and at most 1, like 0.5 or 1/2");
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

/// What a generated BlackWidow network shall look like.
#[derive(Clone, Debug)]
pub struct BlackwidowSpec {
    /// Name of the network; empty = made from the rank and the number of processors.
    pub name: String,
    /// Processors in all, 1 to 32,768.
    pub processors: u32,
    /// Processors of each rank-1 subtree, 1 to 32.
    pub subtree: u32,
    /// Class of the network; `None` = the smallest that holds all processors.
    pub rank: Option<Rank>,
    /// Slices, 1 to 4.
    pub slices: u8,
    /// Uplinks or sidelinks of each rank-1 router before the taper; `None` = one per processor,
    /// so that nothing is lost on the way up.
    pub uplinks: Option<u32>,
    /// Fraction kept of the up/side links of ranks 1, 2 and 3.
    pub taper: [Taper; 3],
    /// Ports of each rank-2 and rank-3 virtual router, 4 to 64. The machine's is 32, two per chip.
    pub virtual_radix: u32,
    /// Rank-1 subtrees per rank-2 subtree, in networks above R2; `None` = half the radix.
    pub group: Option<u32>,
    /// Links between a rank-1 router and each of its rank-2 routers, a power of two. Two at half
    /// the rate are the "reverse taper" for long cables (section 7.2).
    pub parallel: u32,
    /// Rate of the links between routers; `None` = that of the settings.
    pub router_rate: Option<LaneRate>,
    /// Settings of the network.
    pub settings: Settings,
}

impl Default for BlackwidowSpec {
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
            settings: Settings::default(),
        }
    }
}

/// Why a network of that description cannot be generated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SpecError {
    /// A value outside of its range.
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        /// Which value.
        what: &'static str,
        /// The value.
        value: u32,
        /// What it may be.
        range: &'static str,
    },
    /// The rank does not hold so many subtrees.
    #[error(
        "rank {rank} holds {least} to {most} {what}, not {wanted}; choose a {remedy} or leave \
         the rank out"
    )]
    WrongRank {
        /// The rank asked for.
        rank: Rank,
        /// What is counted.
        what: &'static str,
        /// Smallest count.
        least: u32,
        /// Largest count.
        most: u32,
        /// Count asked for.
        wanted: u32,
        /// What to change.
        remedy: &'static str,
    },
    /// No class of network is large enough.
    #[error(
        "{processors} processors in subtrees of {subtree} do not fit even into rank 3.5; take \
         larger subtrees or a larger radix"
    )]
    TooLarge {
        /// Processors asked for.
        processors: u32,
        /// Processors per subtree.
        subtree: u32,
    },
    /// A router would need more ports than it has.
    #[error(
        "a rank-{rank} router would need {down} downlinks and {up} {kind}, but has {radix} ports"
    )]
    TooManyPorts {
        /// Rank of the router.
        rank: u8,
        /// Downlinks.
        down: u32,
        /// Uplinks or sidelinks.
        up: u32,
        /// `uplinks` or `sidelinks`.
        kind: &'static str,
        /// Ports that it has.
        radix: u32,
    },
    /// Aligned subtrees need processor numbers beyond 15 bits.
    #[error(
        "numbering the subtrees at powers of two needs processor number {number}, and 15 bits end \
         at 32767; take a power of two as the size of subtrees"
    )]
    Numbers {
        /// The largest number needed.
        number: u32,
    },
}

/// The counts that a spec comes down to. All subtrees are full but the last of each level.
#[derive(Clone, Copy, Debug)]
struct Plan {
    rank: Rank,
    /// Rank-1 subtrees in all.
    r1: u32,
    /// Rank-1 subtrees per rank-2 subtree (all of them below R2).
    group: u32,
    /// Rank-2 subtrees in all.
    r2: u32,
    /// Rank-2 subtrees per rank-3 subtree.
    group3: u32,
    /// Rank-3 subtrees in all.
    r3: u32,
    /// Up/side links of each rank-1 router.
    up1: u32,
    /// Routers of each rank-2 subtree and slice.
    v2: u32,
    /// Uplinks (or sidelinks per peer, if R2.5) of each rank-2 router.
    up2: u32,
    /// Numbers between the first processors of neighbouring rank-1 subtrees.
    stride: u32,
}

fn within(what: &'static str, value: u32, ok: bool, range: &'static str) -> Result<(), SpecError> {
    if ok {
        Ok(())
    } else {
        Err(SpecError::OutOfRange { what, value, range })
    }
}

impl BlackwidowSpec {
    /// The network, in time linear in its size.
    ///
    /// Processors are numbered so that every subtree is an aligned range of a power of two: with
    /// subtrees of three, numbers 3, 7, 11, ... are left out.
    ///
    /// # Errors
    /// A [`SpecError`] that says which value does not go with the others.
    pub fn generate(&self) -> Result<Topology, SpecError> {
        let plan = self.plan()?;
        let name = match self.name.as_str() {
            "" => format!("r{}-{}", plan.rank, self.processors),
            name => name.to_owned(),
        };
        let mut builder = Builder {
            spec: self,
            plan,
            topology: Topology {
                name,
                slices: self.slices,
                settings: self.settings.clone(),
                processors: Vec::with_capacity(self.processors as usize),
                chips: Vec::new(),
                links: Vec::new(),
            },
        };
        builder.processors();
        for slice in 0..self.slices {
            builder.slice(slice)?;
        }
        let mut topology = builder.topology;
        fill_registers(&mut topology);
        Ok(topology)
    }

    fn plan(&self) -> Result<Plan, SpecError> {
        let Self {
            processors,
            subtree,
            virtual_radix: radix,
            ..
        } = *self;
        within(
            "the number of processors",
            processors,
            (1..=MAX_PROCESSORS).contains(&processors),
            "1 to 32768",
        )?;
        within(
            "processors per subtree",
            subtree,
            (1..=32).contains(&subtree),
            "1 to 32",
        )?;
        let slices = u32::from(self.slices);
        within(
            "the number of slices",
            slices,
            (1..=u32::from(MAX_SLICES)).contains(&slices),
            "1 to 4",
        )?;
        within(
            "the virtual radix",
            radix,
            (4..=PORTS as u32).contains(&radix),
            "4 to 64",
        )?;
        let parallel = self.parallel;
        let ok = parallel.is_power_of_two() && parallel <= 32;
        within(
            "the number of parallel links",
            parallel,
            ok,
            "1, 2, 4, 8, 16 or 32",
        )?;
        let r1 = processors.div_ceil(subtree);
        let rank = match self.rank {
            Some(rank) => rank,
            None => self.smallest_rank(r1)?,
        };
        let half = radix / 2 / parallel;
        let group = match rank.level {
            1 => r1,
            2 if !rank.side => r1,
            _ => self.group.unwrap_or(half),
        };
        within(
            "the number of subtrees per group",
            group,
            group >= 1,
            "at least 1",
        )?;
        let r2 = r1.div_ceil(group);
        let group3 = if rank.side && rank.level == 3 {
            radix / 2
        } else {
            r2
        };
        let r3 = r2.div_ceil(group3);
        let stride = subtree.next_power_of_two();
        let mut plan = Plan {
            rank,
            r1,
            group,
            r2,
            group3,
            r3,
            up1: 0,
            v2: 0,
            up2: 0,
            stride,
        };
        self.fits(&plan)?;
        self.provision(&mut plan)?;
        let last = plan.number(subtree, processors - 1);
        if last >= MAX_PROCESSORS {
            return Err(SpecError::Numbers { number: last });
        }
        Ok(plan)
    }

    fn smallest_rank(&self, r1: u32) -> Result<Rank, SpecError> {
        let (full, half) = (self.virtual_radix / self.parallel, self.virtual_radix / 2);
        let group = self.group.unwrap_or(half / self.parallel).max(1);
        let r2 = r1.div_ceil(group);
        let fits = [
            r1 == 1,
            r1 <= MAX_PEERS + 1,
            r1 <= full,
            r2 <= MAX_PEERS + 1,
            r2 <= self.virtual_radix,
            r2.div_ceil(half) <= MAX_PEERS + 1,
        ];
        let class = fits.iter().position(|&fits| fits);
        class.map(|i| Rank::ALL[i]).ok_or(SpecError::TooLarge {
            processors: self.processors,
            subtree: self.subtree,
        })
    }

    /// Whether the class of network holds the subtrees, and not more ranks than it has use for.
    fn fits(&self, plan: &Plan) -> Result<(), SpecError> {
        let radix = self.virtual_radix;
        let half = radix / 2 / self.parallel;
        let (r1s, r2s, r3s) = ("rank-1 subtrees", "rank-2 subtrees", "rank-3 subtrees");
        let (what, least, most, wanted) = match (plan.rank.level, plan.rank.side) {
            (1, false) => (r1s, 1, 1, plan.r1),
            (1, true) => (r1s, 2, MAX_PEERS + 1, plan.r1),
            (2, false) => (r1s, 1, radix / self.parallel, plan.r1),
            (2, true) => (r2s, 2, MAX_PEERS + 1, plan.r2),
            (_, false) => (r2s, 1, radix, plan.r2),
            (_, true) => (r3s, 2, MAX_PEERS + 1, plan.r3),
        };
        let remedy = if wanted > most {
            "higher rank"
        } else {
            "lower rank"
        };
        if !(least..=most).contains(&wanted) {
            return Err(SpecError::WrongRank {
                rank: plan.rank,
                what,
                least,
                most,
                wanted,
                remedy,
            });
        }
        if (plan.rank.level, plan.rank.side) > (2, false) && plan.group > half {
            return Err(SpecError::WrongRank {
                rank: plan.rank,
                what: "rank-1 subtrees per rank-2 subtree",
                least: 1,
                most: half,
                wanted: plan.group,
                remedy: "smaller group",
            });
        }
        Ok(())
    }

    /// How many links go up or over from each rank.
    fn provision(&self, plan: &mut Plan) -> Result<(), SpecError> {
        let ports = PORTS as u32;
        let Rank { level, side } = plan.rank;
        let wanted = self.uplinks.unwrap_or(self.subtree);
        within(
            "the number of uplinks",
            wanted,
            (1..=ports).contains(&wanted),
            "1 to 64",
        )?;
        let hashed = self.uplinks.is_none() || level == 1 || is_supported_count(wanted);
        within(
            "the number of uplinks",
            wanted,
            hashed,
            "1 to 8, 10, 12, 14, 16, 20, 24, 28 or 32, as the hash is",
        )?;
        let room = |rank, down: u32, up: u32, kind, radix| {
            let error = SpecError::TooManyPorts {
                rank,
                down,
                up,
                kind,
                radix,
            };
            if down + up <= radix {
                Ok(())
            } else {
                Err(error)
            }
        };
        match (level, side) {
            (1, false) => return Ok(()),
            (1, true) => {
                plan.up1 = self.taper[0].apply(wanted / (plan.r1 - 1));
                return room(
                    1,
                    self.subtree,
                    plan.up1 * (plan.r1 - 1),
                    "sidelinks",
                    ports,
                );
            }
            _ => {}
        }
        let kept = self.taper[0].apply(wanted);
        plan.v2 = (kept / self.parallel).max(1);
        plan.up1 = plan.v2 * self.parallel;
        room(1, self.subtree, plan.up1, "uplinks", ports)?;
        let down2 = plan.group * self.parallel;
        plan.up2 = match (level, side) {
            (2, false) => 0,
            (2, true) => self.taper[1].apply(down2 / (plan.r2 - 1)),
            _ => self.taper[1].apply(down2),
        };
        let up2 = if level == 2 {
            plan.up2 * plan.r2.saturating_sub(1)
        } else {
            plan.up2
        };
        let kind = if level == 2 { "sidelinks" } else { "uplinks" };
        room(2, down2, up2, kind, self.virtual_radix)
    }
}

impl Plan {
    /// Number of the processor of that index.
    fn number(&self, subtree: u32, index: u32) -> u32 {
        let (r1, within) = (index / subtree, index % subtree);
        self.first_of_r1(r1) + within
    }

    /// First number of a rank-1 subtree: subtrees of every level start at powers of two.
    fn first_of_r1(&self, r1: u32) -> u32 {
        let (r2, within) = (r1 / self.group, r1 % self.group);
        self.first_of_r2(r2) + within * self.stride
    }

    fn size_of_r2(&self) -> u32 {
        self.stride * self.group.next_power_of_two()
    }

    fn first_of_r2(&self, r2: u32) -> u32 {
        let (r3, within) = (r2 / self.group3, r2 % self.group3);
        r3 * self.size_of_r3() + within * self.size_of_r2()
    }

    fn size_of_r3(&self) -> u32 {
        self.size_of_r2() * self.group3.next_power_of_two()
    }
}

struct Builder<'s> {
    spec: &'s BlackwidowSpec,
    plan: Plan,
    topology: Topology,
}

/// A virtual router as the builder wires it.
#[derive(Clone, Copy, Debug)]
struct Slot {
    chip: u32,
    first_down: u8,
    first_up: u8,
}

impl Slot {
    fn down(self, n: u32) -> End {
        End {
            node: NodeRef::Chip(self.chip),
            port: self.first_down + n as u8,
        }
    }

    fn up(self, n: u32) -> End {
        End {
            node: NodeRef::Chip(self.chip),
            port: self.first_up + n as u8,
        }
    }
}

impl Builder<'_> {
    fn processors(&mut self) {
        for index in 0..self.spec.processors {
            let number = self.plan.number(self.spec.subtree, index) as u16;
            self.topology.processors.push(Processor {
                name: format!("nic{number}"),
                number,
            });
        }
    }

    fn slice(&mut self, slice: u8) -> Result<(), SpecError> {
        let (plan, subtree) = (self.plan, self.spec.subtree);
        let side1 = if plan.rank == Rank::ALL[1] {
            plan.r1 - 1
        } else {
            1
        };
        let r1: Vec<Slot> = (0..plan.r1)
            .map(|i| {
                let range = (plan.first_of_r1(i), plan.stride);
                self.chip_of_routers(slice, 1, PORTS as u32, 1, range, plan.up1 * side1)[0]
            })
            .collect();
        let rate = self.spec.settings.rate;
        for index in 0..self.spec.processors {
            let down = r1[(index / subtree) as usize].down(index % subtree);
            let nic = End {
                node: NodeRef::Processor(index),
                port: slice,
            };
            self.link(nic, down, rate);
        }
        if plan.rank == Rank::ALL[1] {
            self.sidelinks(&r1, plan.up1);
        }
        if plan.rank.level >= 2 {
            self.upper_ranks(slice, &r1)?;
        }
        Ok(())
    }

    fn upper_ranks(&mut self, slice: u8, r1: &[Slot]) -> Result<(), SpecError> {
        let (plan, radix, parallel) = (self.plan, self.spec.virtual_radix, self.spec.parallel);
        let up2 = match (plan.rank.level, plan.rank.side) {
            (2, side) => plan.up2 * if side { plan.r2 - 1 } else { 0 },
            _ => plan.up2,
        };
        // r2[subtree][router]
        let r2: Vec<Vec<Slot>> = (0..plan.r2)
            .map(|g| {
                let range = (plan.first_of_r2(g), plan.size_of_r2());
                self.chip_of_routers(slice, 2, radix, plan.v2, range, up2)
            })
            .collect();
        for (i, lower) in r1.iter().enumerate() {
            let (g, within) = (i / plan.group as usize, i as u32 % plan.group);
            for (v, upper) in r2[g].iter().enumerate() {
                for p in 0..parallel {
                    let up = lower.up(v as u32 * parallel + p);
                    self.router_link(up, upper.down(within * parallel + p));
                }
            }
        }
        if plan.rank.level == 2 {
            if plan.rank.side {
                for v in 0..plan.v2 as usize {
                    let peers: Vec<Slot> = r2.iter().map(|subtree| subtree[v]).collect();
                    self.sidelinks(&peers, plan.up2);
                }
            }
            return Ok(());
        }
        self.rank_3(slice, &r2)
    }

    /// Uplink `j` of router `v` of every rank-2 subtree leads to rank-3 router `(v, j)`.
    fn rank_3(&mut self, slice: u8, r2: &[Vec<Slot>]) -> Result<(), SpecError> {
        let (plan, radix) = (self.plan, self.spec.virtual_radix);
        let sides = if plan.rank.side {
            self.spec.taper[2].apply(plan.group3 / (plan.r3 - 1)) * (plan.r3 - 1)
        } else {
            0
        };
        if plan.group3 + sides > radix {
            let (down, up, kind) = (plan.group3, sides, "sidelinks");
            return Err(SpecError::TooManyPorts {
                rank: 3,
                down,
                up,
                kind,
                radix,
            });
        }
        let r3: Vec<Vec<Slot>> = (0..plan.r3)
            .map(|g| {
                let range = (g * plan.size_of_r3(), plan.size_of_r3());
                self.chip_of_routers(slice, 3, radix, plan.v2 * plan.up2, range, sides)
            })
            .collect();
        for (g, subtree) in r2.iter().enumerate() {
            let (top, within) = (g / plan.group3 as usize, g as u32 % plan.group3);
            for (v, lower) in subtree.iter().enumerate() {
                for j in 0..plan.up2 {
                    let upper = r3[top][v * plan.up2 as usize + j as usize];
                    self.router_link(lower.up(j), upper.down(within));
                }
            }
        }
        if plan.rank.side {
            for v in 0..(plan.v2 * plan.up2) as usize {
                let peers: Vec<Slot> = r3.iter().map(|subtree| subtree[v]).collect();
                self.sidelinks(&peers, sides / (plan.r3 - 1));
            }
        }
        Ok(())
    }

    /// Adds the chips of `count` routers of one subtree and returns the routers. The ports of a
    /// router are split: downlinks from its first port, up and side links from its middle, so that
    /// each kind fills octants of its own where the radix allows it (section 4.4).
    fn chip_of_routers(
        &mut self,
        slice: u8,
        rank: u8,
        radix: u32,
        count: u32,
        (first, size): (u32, u32),
        ups: u32,
    ) -> Vec<Slot> {
        let middle = if ups <= radix - radix / 2 {
            radix / 2
        } else {
            radix - ups
        };
        let per_chip = PORTS as u32 / radix;
        let subtree = Subtree {
            location: first as u16,
            mask: (size - 1) as u16,
        };
        let mut slots = Vec::with_capacity(count as usize);
        for v in 0..count {
            let within = v % per_chip;
            if within == 0 {
                let name = self.chip_name(slice, rank);
                self.topology.chips.push(Chip {
                    name,
                    routers: Vec::new(),
                });
            }
            let chip = self.topology.chips.len() as u32 - 1;
            let base = (within * radix) as u8;
            let ports = PortSet::range(base, radix as u8);
            let node = self
                .topology
                .chips
                .last_mut()
                .expect("a chip was just added");
            let name = match per_chip {
                1 => node.name.clone(),
                _ => format!("{}{}", node.name, char::from(b'a' + within as u8)),
            };
            node.routers.push(VirtualRouter {
                name,
                rank,
                slice,
                ports,
                subtree,
                registers: blank_registers(),
            });
            slots.push(Slot {
                chip,
                first_down: base,
                first_up: base + middle as u8,
            });
        }
        slots
    }

    fn chip_name(&self, slice: u8, rank: u8) -> String {
        // Chips of one rank and slice stand in a row, so the last one has the highest number.
        let prefix = match self.spec.slices {
            1 => format!("r{rank}-"),
            _ => format!("s{slice}-r{rank}-"),
        };
        let last = self
            .topology
            .chips
            .last()
            .and_then(|c| c.name.strip_prefix(&prefix));
        let number = last
            .and_then(|n| n.parse::<u32>().ok())
            .map_or(0, |n| n + 1);
        format!("{prefix}{number}")
    }

    /// `each` sidelinks between every two of the peers.
    fn sidelinks(&mut self, peers: &[Slot], each: u32) {
        for (i, a) in peers.iter().enumerate() {
            for (j, b) in peers.iter().enumerate().skip(i + 1) {
                for n in 0..each {
                    // Peer j is number j-1 among the peers of i, and i is number i among j's.
                    self.router_link(a.up((j as u32 - 1) * each + n), b.up(i as u32 * each + n));
                }
            }
        }
    }

    fn router_link(&mut self, a: End, b: End) {
        self.link(
            a,
            b,
            self.spec.router_rate.unwrap_or(self.spec.settings.rate),
        );
    }

    fn link(&mut self, a: End, b: End, rate: LaneRate) {
        self.topology.links.push(Link {
            a,
            b,
            rate,
            cable: Permutation::IDENTITY,
        });
    }
}

/// Registers before they are computed.
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

/// Gives every router the registers that follow from the structure.
pub(super) fn fill_registers(topology: &mut Topology) {
    let wiring = Wiring::new(topology);
    let computed: Vec<RouterRegisters> = (0..wiring.router_count() as u32)
        .map(|router| computed_registers(topology, &wiring, router))
        .collect();
    let routers = topology.chips.iter_mut().flat_map(|chip| &mut chip.routers);
    for (router, registers) in routers.zip(computed) {
        router.registers = registers;
    }
}
