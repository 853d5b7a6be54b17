//! Numbers of subtrees, routers and links in a network.

use core::ops::RangeInclusive;

use super::{BlackWidowSpec, MAX_PEERS, Rank, SpecError};
use crate::route::modulo::is_supported_count;
use crate::route::registers::PORTS;
use crate::topology::model::{MAX_PROCESSORS, MAX_SLICES};

/// The counts that follow from a spec. All subtrees are full except the last of each level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) rank: Rank,
    /// Total number of rank-1 subtrees.
    pub(super) r1: u32,
    /// Rank-1 subtrees per rank-2 subtree; below R2, all of them.
    pub(super) group: u32,
    /// Total number of rank-2 subtrees.
    pub(super) r2: u32,
    /// Rank-2 subtrees per rank-3 subtree.
    pub(super) group3: u32,
    /// Total number of rank-3 subtrees.
    pub(super) r3: u32,
    /// Uplinks or sidelinks of each rank-1 router.
    pub(super) up1: u32,
    pub(super) v2: u32,
    /// Uplinks of each rank-2 router, or sidelinks per peer in R2.5.
    pub(super) up2: u32,
    /// Distance between the first processor numbers of neighbouring rank-1 subtrees.
    pub(super) stride: u32,
}

fn within(what: &'static str, value: u32, ok: bool, range: &str) -> Result<(), SpecError> {
    let range = range.to_owned();
    match ok {
        true => Ok(()),
        false => Err(SpecError::OutOfRange { what, value, range }),
    }
}

fn among(what: &'static str, value: u32, range: RangeInclusive<u32>) -> Result<(), SpecError> {
    let allowed = format!("{} to {}", range.start(), range.end());
    within(what, value, range.contains(&value), &allowed)
}

impl BlackWidowSpec {
    /// Checks each value separately.
    fn ranges(&self) -> Result<(), SpecError> {
        let slices = u32::from(self.slices);
        let most = u32::from(MAX_SLICES);
        among(
            "the number of processors",
            self.processors,
            1..=MAX_PROCESSORS,
        )?;
        among("the number of processors per subtree", self.subtree, 1..=32)?;
        among("the number of slices", slices, 1..=most)?;
        among("the virtual radix", self.virtual_radix, 4..=PORTS as u32)?;
        let (what, range) = ("the number of parallel links", "1, 2, 4, 8, 16 or 32");
        let ok = self.parallel.is_power_of_two() && self.parallel <= 32;
        within(what, self.parallel, ok, range)
    }

    pub(super) fn plan(&self) -> Result<Plan, SpecError> {
        self.ranges()?;
        let (processors, subtree) = (self.processors, self.subtree);
        let (radix, parallel) = (self.virtual_radix, self.parallel);
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
        let what = "the number of subtrees per group";
        within(what, group, group >= 1, "at least 1")?;
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

    /// Whether the network class holds the subtrees without superfluous ranks.
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

    /// Computes the numbers of uplinks and sidelinks of each rank.
    fn provision(&self, plan: &mut Plan) -> Result<(), SpecError> {
        let ports = PORTS as u32;
        let Rank { level, side } = plan.rank;
        let wanted = self.uplinks.unwrap_or(self.subtree);
        let what = "the number of uplinks";
        among(what, wanted, 1..=ports)?;
        let hashed = self.uplinks.is_none() || level == 1 || is_supported_count(wanted);
        let range = "1 to 8, 10, 12, 14, 16, 20, 24, 28 or 32, which the hash supports";
        within(what, wanted, hashed, range)?;
        let room = |rank, down: u32, up: u32, kind, radix| match down + up <= radix {
            true => Ok(()),
            false => Err(SpecError::TooManyPorts {
                rank,
                down,
                up,
                kind,
                radix,
            }),
        };
        match (level, side) {
            (1, false) => return Ok(()),
            (1, true) => {
                plan.up1 = self.taper[0].apply(wanted / (plan.r1 - 1));
                let side = plan.up1 * (plan.r1 - 1);
                return room(1, self.subtree, side, "sidelinks", ports);
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
    /// Number of the processor with the given index in a subtree.
    pub(super) fn number(&self, subtree: u32, index: u32) -> u32 {
        let (r1, within) = (index / subtree, index % subtree);
        self.first_of_r1(r1) + within
    }

    /// First number of a rank-1 subtree. Subtrees of every level start at multiples of a power of
    /// two.
    pub(super) fn first_of_r1(&self, r1: u32) -> u32 {
        let (r2, within) = (r1 / self.group, r1 % self.group);
        self.first_of_r2(r2) + within * self.stride
    }

    pub(super) fn size_of_r2(&self) -> u32 {
        self.stride * self.group.next_power_of_two()
    }

    pub(super) fn first_of_r2(&self, r2: u32) -> u32 {
        let (r3, within) = (r2 / self.group3, r2 % self.group3);
        r3 * self.size_of_r3() + within * self.size_of_r2()
    }

    pub(super) fn size_of_r3(&self) -> u32 {
        self.size_of_r2() * self.group3.next_power_of_two()
    }
}
