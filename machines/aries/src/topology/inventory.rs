//! Components and capacity of a dragonfly, counted from its links.

use std::collections::BTreeMap;

use super::generate::CABLE_LINKS;
use super::model::{Dragonfly, Shape};
use crate::route::registers::PortKind;
use phitwire::link::LaneRate;
use phitwire::net::NodeRef;

/// Links of a copper cable: its nine lanes carry three links (XC white paper, table 1).
const COPPER_LINKS: u64 = 3;
/// Lanes of a link (XC white paper, "Aries Performance").
const LANES: f64 = 3.0;
/// Maximum number of groups for which every split into halves is tried.
const MOST_SPLIT: usize = 20;
/// Number of chassis in a cabinet (XC white paper, "Dragonfly Implementation").
const CABINET_CHASSIS: u32 = 3;

#[derive(Clone, Debug, PartialEq)]
pub struct Inventory {
    /// Number of groups with at least one router.
    pub groups: u64,
    /// Number of Aries devices.
    pub devices: u64,
    /// Number of nodes, which are NICs here.
    pub nodes: u64,
    /// Rank-1 links.
    pub green_links: u64,
    /// Rank-2 links.
    pub black_links: u64,
    /// Rank-3 links.
    pub blue_links: u64,
    /// Number of 9X copper cables: three black links between two routers share one.
    pub copper_cables: u64,
    /// Number of 12X active optical cables: four links between two groups share one.
    pub optical_cables: u64,
    /// Smallest and largest number of optical cables between two groups.
    pub bundle_cables: (u64, u64),
    /// Smallest and largest number of links between two groups.
    pub bundle_links: (u64, u64),
    /// The worst split of the groups into halves.
    pub bisection: Bisection,
    /// GB/s of a link within a group, in each direction.
    pub link_gbytes: f64,
    /// GB/s of a link between groups, in each direction.
    pub global_link_gbytes: f64,
    /// Number of green links across the middle of the slots, in the group with the fewest.
    pub green_bisection: u64,
    /// Number of black links across the middle of the chassis, in the group with the fewest.
    pub black_bisection: u64,
}

/// The split of the groups into two halves that the fewest cables cross.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bisection {
    /// Number of links that cross the split.
    pub links: u64,
    pub cables: u64,
    /// Whether no other split can be worse, because all were tried or all are equal.
    pub exact: bool,
}

impl Inventory {
    /// GB/s across the worst split, sum of both directions, as in table 3 of the XC white paper.
    pub fn bisection_gbytes(&self) -> f64 {
        2.0 * self.bisection.links as f64 * self.global_link_gbytes
    }

    /// A node's share of all global links in GB/s, in each direction.
    pub fn global_gbytes_per_node(&self) -> f64 {
        2.0 * self.blue_links as f64 * self.global_link_gbytes / self.nodes as f64
    }
}

impl Dragonfly {
    pub fn inventory(&self) -> Inventory {
        let mut links = BTreeMap::<PortKind, u64>::new();
        let mut copper = BTreeMap::<(u32, u32), u64>::new();
        let groups = usize::from(self.shape.groups);
        let mut between = vec![vec![0_u64; groups]; groups];
        let mut across = vec![(0_u64, 0_u64); groups];
        for link in &self.links {
            let Some(kind) = self.kind(link) else {
                continue;
            };
            *links.entry(kind).or_default() += 1;
            let (NodeRef::Chip(a), NodeRef::Chip(b)) = (link.a.node, link.b.node) else {
                continue;
            };
            let (ga, gb) = (self.shape.group_of(a), self.shape.group_of(b));
            let ((ca, sa), (cb, sb)) = (self.shape.place_of(a), self.shape.place_of(b));
            let halves = |a: u8, b: u8, all: u8| u64::from((a < all / 2) != (b < all / 2));
            match kind {
                PortKind::Green => across[usize::from(ga)].0 += halves(sa, sb, self.shape.blades),
                PortKind::Black => {
                    across[usize::from(ga)].1 += halves(ca, cb, self.shape.chassis);
                    *copper.entry((a.min(b), a.max(b))).or_default() += 1;
                }
                PortKind::Blue => {
                    between[usize::from(ga)][usize::from(gb)] += 1;
                    between[usize::from(gb)][usize::from(ga)] += 1;
                }
                PortKind::Processor => {}
            }
        }
        let present: Vec<usize> = (0..groups)
            .filter(|&group| {
                self.routers()
                    .any(|r| usize::from(self.shape.group_of(r)) == group)
            })
            .collect();
        let between: Vec<Vec<u64>> = present
            .iter()
            .map(|&a| present.iter().map(|&b| between[a][b]).collect())
            .collect();
        let cables = |links: u64| links.div_ceil(u64::from(CABLE_LINKS));
        let pairs = || (0..present.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        let bundles = || pairs().map(|(a, b)| between[a][b]);
        let bundle_links = (bundles().min().unwrap_or(0), bundles().max().unwrap_or(0));
        let count = |kind| links.get(&kind).copied().unwrap_or(0);
        let gbytes = |rate: LaneRate| rate.bits_per_second() as f64 * LANES / 8e9;
        Inventory {
            groups: present.len() as u64,
            devices: self.routers().count() as u64,
            nodes: self.nics().count() as u64,
            green_links: count(PortKind::Green),
            black_links: count(PortKind::Black),
            blue_links: count(PortKind::Blue),
            copper_cables: copper.values().map(|n| n.div_ceil(COPPER_LINKS)).sum(),
            optical_cables: bundles().map(cables).sum(),
            bundle_cables: (cables(bundle_links.0), cables(bundle_links.1)),
            bundle_links,
            bisection: bisection(&between, cables),
            link_gbytes: gbytes(self.settings.own.rate),
            global_link_gbytes: gbytes(self.settings.own.global_rate),
            green_bisection: present.iter().map(|&g| across[g].0).min().unwrap_or(0),
            black_bisection: present.iter().map(|&g| across[g].1).min().unwrap_or(0),
        }
    }

    /// Violations of the XC white paper's configuration rules ("Cray XC Series Configuration") in a
    /// network of full chassis, one sentence each.
    pub fn advice(&self) -> Vec<String> {
        let (shape, inventory) = (&self.shape, self.inventory());
        let mut advice = Vec::new();
        if shape.blades != Shape::MAX_BLADES || shape.groups < 2 {
            return advice;
        }
        let per_bundle = inventory.bundle_cables.0;
        let most =
            u64::from(shape.global_ports()) / u64::from(CABLE_LINKS) / u64::from(shape.groups - 1);
        if inventory.bundle_cables.1 > most {
            advice.push(format!(
                "a bundle may have at most FLOOR(cables / (groups - 1)) = {most} cables"
            ));
        }
        if inventory.bundle_cables.0 != inventory.bundle_cables.1 {
            advice.push(String::from("all bundles must have the same size"));
        }
        let whole = self
            .generator
            .is_none_or(|g| g.global_links.is_multiple_of(CABLE_LINKS));
        if !whole {
            advice.push(String::from(
                "bundles must be whole cables: multiples of four links",
            ));
        }
        let cabinets = u32::from(shape.groups) * u32::from(shape.chassis).div_ceil(CABINET_CHASSIS);
        let multiple = match cabinets {
            3..=26 => 6,
            27..=64 => 2,
            _ => 1,
        };
        if !per_bundle.is_multiple_of(multiple) {
            advice.push(format!(
                "with {cabinets} cabinets, the cables of a bundle must be a multiple of \
                 {multiple}, not {per_bundle}"
            ));
        }
        let ports = inventory.devices * 10;
        if inventory.blue_links * 2 * 4 < ports {
            advice.push(String::from(
                "at least 25 percent of the optical ports must be used",
            ));
        }
        let full = Shape::MAX_CHASSIS;
        if shape.chassis != full {
            advice.push(format!(
                "all groups except the last must have {full} chassis"
            ));
        }
        advice
    }
}

/// The worst split of groups into two halves. The larger half has one more group if their number is
/// odd.
fn bisection(between: &[Vec<u64>], cables: impl Fn(u64) -> u64) -> Bisection {
    let groups = between.len();
    let crossing = |half: &[bool]| -> (u64, u64) {
        let pairs = (0..groups).flat_map(|a| (0..a).map(move |b| (a, b)));
        let cut = pairs.filter(|&(a, b)| half[a] != half[b]);
        cut.fold((0, 0), |(links, all), (a, b)| {
            (links + between[a][b], all + cables(between[a][b]))
        })
    };
    let bisection = |(links, cables), exact| Bisection {
        links,
        cables,
        exact,
    };
    if groups < 2 {
        return bisection((0, 0), true);
    }
    let first_half: Vec<bool> = (0..groups).map(|group| group < groups / 2).collect();
    let bundle = between[0][1];
    let alike = (0..groups).all(|a| (0..a).all(|b| between[a][b] == bundle));
    if alike {
        return bisection(crossing(&first_half), true);
    }
    if groups <= MOST_SPLIT {
        let splits = (0..1_u32 << groups).filter(|set| set.count_ones() as usize == groups / 2);
        let worst = splits
            .map(|set| crossing(&(0..groups).map(|g| set >> g & 1 != 0).collect::<Vec<_>>()))
            .min_by_key(|&(links, cables)| (cables, links));
        return bisection(worst.unwrap_or((0, 0)), true);
    }
    // Swap groups in pairs while that leaves fewer links between the halves (Kernighan and Lin,
    // 1970, the greedy step).
    let mut half = first_half;
    loop {
        let outside = |group: usize| -> i64 {
            (0..groups)
                .map(|other| match half[other] == half[group] {
                    true => -(between[group][other] as i64),
                    false => between[group][other] as i64,
                })
                .sum()
        };
        let gains: Vec<i64> = (0..groups).map(outside).collect();
        let pairs = (0..groups).flat_map(|a| (0..groups).map(move |b| (a, b)));
        let best = pairs
            .filter(|&(a, b)| half[a] && !half[b])
            .max_by_key(|&(a, b)| gains[a] + gains[b] - 2 * between[a][b] as i64);
        match best {
            Some((a, b)) if gains[a] + gains[b] > 2 * between[a][b] as i64 => half.swap(a, b),
            _ => return bisection(crossing(&half), false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two islands of groups, connected by a single link.
    fn islands(each: usize) -> Vec<Vec<u64>> {
        let cell = |a: usize, b: usize| match a != b && a % 2 == b % 2 {
            true => 4,
            false => 0,
        };
        let row = |a| (0..2 * each).map(|b| cell(a, b)).collect();
        let mut between: Vec<Vec<u64>> = (0..2 * each).map(row).collect();
        between[0][1] = 1;
        between[1][0] = 1;
        between
    }

    #[test]
    fn the_worst_split_is_found_and_not_only_the_first() {
        let cables = |links: u64| links.div_ceil(4);
        for each in [2, 5, 12] {
            let found = bisection(&islands(each), cables);
            assert_eq!((found.links, found.cables), (1, 1), "{each}");
            assert_eq!(found.exact, 2 * each <= MOST_SPLIT);
        }
    }
}
