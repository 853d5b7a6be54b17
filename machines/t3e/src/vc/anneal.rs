//! Searches for channels that balance the links, by simulated annealing: the technique of T3E sec.
//! 4, which gives no details.

use super::balance::Level;
use super::ring::UnidirectionalRing;
use super::tables::{Entries, RingTables};
use phitwire::rng::Rng;

/// Parameters of a search for tables that balance the links. The objective is the sum over levels
/// and links of the squared imbalance. The objective and the temperatures are phitwire's; with them
/// the search matches or beats T3E table 1 for most seeds (`docs/guide/src/reproduce.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annealing {
    pub entries: Entries,
    /// Weight of the whole ring in the objective; each level of sub-rings has weight 1. A weight of
    /// about thirty comes closest to T3E table 1 for a ring of 32 nodes with eight entries. No
    /// objective was found that matches all of the table's figures (`docs/guide/src/reproduce.md`).
    pub ring_weight: u8,
    /// Whether packets take final hops in the ring, so that in eight-entry tables the entries for
    /// the routers' own ordinates stay at VC0. In rings of up to eight nodes that costs nothing; in
    /// larger ones it costs balance, since other destinations share these entries.
    pub final_hops: bool,
    /// Number of entry changes that a run tries.
    pub flips: u32,
    /// Number of runs, at least one, of which the best is used.
    pub runs: u32,
}

/// The initial temperature of a run, in units of the objective.
const WARM: f64 = 0.05;
const COLD: f64 = 2e-6;
/// Factor of the temperature between stages.
const COOLING: f64 = 0.9;
/// Number of stages with equally many flips each: `WARM` times `COOLING` to this power is just
/// below `COLD`.
const STAGES: u32 = 97;
/// Below the effect of any flip on the objective, and above rounding errors.
const ROUNDING: f64 = 1e-9;

impl Annealing {
    /// The search for the tables of the machine, for a ring of `nodes`. It takes some milliseconds
    /// and matches T3E table 1.
    pub fn machine(nodes: usize) -> Self {
        let (flips, runs) = match nodes {
            ..=8 => (206 * STAGES, 8),
            9..=16 => (515 * STAGES, 4),
            _ => (1_030 * STAGES, 2),
        };
        Self {
            entries: Entries::Eight,
            ring_weight: if nodes > 16 { 30 } else { 1 },
            final_hops: false,
            flips,
            runs,
        }
    }

    /// Tables for `ring` in which all constrained routes, and all routes that share an entry with
    /// one, use VC0. The same seed gives the same tables on every machine.
    pub fn run(&self, ring: UnidirectionalRing, seed: u64) -> RingTables {
        let mut tables = RingTables::time_of_crossing(ring);
        let start = Search::new(self, &tables);
        let run = |stream| {
            let mut search = start.clone();
            search.anneal(&mut Rng::new(seed, stream), self.flips);
            search
        };
        let mut best = run(0);
        for stream in 1..u64::from(self.runs) {
            let search = run(stream);
            if search.score() < best.score() {
                best = search;
            }
        }
        for entry in best.entries.iter().filter(|entry| entry.vc1) {
            let (source, destination) = entry.of;
            tables.set_vc1(self.entries, source, destination);
        }
        tables
    }

    /// Whether the entry of `destination` at `source` is used, may be VC1, and was not already
    /// counted for an earlier destination.
    fn is_free(&self, ring: &UnidirectionalRing, source: usize, destination: usize) -> bool {
        let shares = |&other: &usize| self.entries.shared(ring, destination, other);
        let mut users = (0..ring.nodes())
            .filter(|&other| ring.is_minimal(source, other))
            .filter(shares)
            .peekable();
        // If final hops use the entry of the router's own ordinate, keep it fixed.
        let own = self.final_hops && shares(&source);
        users.peek() == Some(&destination)
            && !own
            && !users.any(|user| ring.passes_dateline(source, user))
    }
}

/// An entry that may be VC0 or VC1.
#[derive(Clone)]
struct Entry {
    /// Positions of the router and of the first destination that uses the entry.
    of: (usize, usize),
    vc1: bool,
    /// The links that the entry's routes cross, once per level.
    crossings: Vec<Crossing>,
    /// When the entry flips, the part of the objective's change that does not depend on the links'
    /// differences.
    own_weight: f64,
}

/// The routes of an entry on a link at one level.
#[derive(Clone)]
struct Crossing {
    /// The link's index among those of all levels.
    link: usize,
    routes: f64,
    /// Factor by which the link's difference enters a change of the objective.
    weight: f64,
}

#[derive(Clone)]
struct Link {
    /// Routes on VC0 minus routes on VC1: a whole number.
    difference: f64,
    /// The number of routes on the busiest link of this link's level.
    busiest: f64,
    weight: f64,
}

#[derive(Clone)]
struct Search {
    entries: Vec<Entry>,
    /// Links of the first level, by number, followed by those of the next levels.
    links: Vec<Link>,
}

impl Search {
    /// All entries on VC0, as in `start`.
    fn new(annealing: &Annealing, start: &RingTables) -> Self {
        let ring = start.ring();
        let pairs = (0..ring.nodes()).flat_map(|from| (0..ring.nodes()).map(move |to| (from, to)));
        let free =
            pairs.filter(|&(source, destination)| annealing.is_free(ring, source, destination));
        let mut entries: Vec<_> = free.map(Entry::new).collect();
        let mut links = Vec::new();
        for level in Level::of(ring.nodes()) {
            let busiest = f64::from(level.busiest(ring));
            let whole = level.nodes == ring.nodes();
            let weight = f64::from(if whole { annealing.ring_weight } else { 1 });
            let first = links.len();
            links.extend(start.loads(level).into_iter().map(|[vc0, vc1]| Link {
                difference: f64::from(vc0) - f64::from(vc1),
                busiest,
                weight,
            }));
            for entry in &mut entries {
                for (link, routes) in entry.routes(start, annealing.entries, level) {
                    entry.add(first + link, routes, weight / (busiest * busiest));
                }
            }
        }
        Self { entries, links }
    }

    /// Tries `flips` changes over all temperatures, and then takes all remaining gains.
    fn anneal(&mut self, rng: &mut Rng, flips: u32) {
        if self.entries.is_empty() {
            return;
        }
        let mut temperature = WARM;
        for flips in flips_of_stages(flips) {
            for _ in 0..flips {
                let entry = rng.below(self.entries.len() as u64) as usize;
                let worse = self.change(entry);
                if worse <= 0.0 || accepts(worse / temperature, rng) {
                    self.flip(entry);
                }
            }
            temperature *= COOLING;
        }
        debug_assert!(
            temperature <= COLD,
            "cooling ended at the final temperature"
        );
        // Every flip decreases the objective, so this terminates.
        let gains = |search: &Self| {
            (0..search.entries.len()).find(|&entry| search.change(entry) < -ROUNDING)
        };
        while let Some(entry) = gains(self) {
            self.flip(entry);
        }
    }

    /// The increase of the objective if an entry changes.
    fn change(&self, entry: usize) -> f64 {
        let entry = &self.entries[entry];
        let pulls = entry.crossings.iter();
        let pull: f64 = pulls
            .map(|on| on.weight * self.links[on.link].difference)
            .sum();
        entry.own_weight + if entry.vc1 { pull } else { -pull }
    }

    fn flip(&mut self, entry: usize) {
        let entry = &mut self.entries[entry];
        let step = if entry.vc1 { 2.0 } else { -2.0 };
        entry.vc1 = !entry.vc1;
        for on in &entry.crossings {
            self.links[on.link].difference += step * on.routes;
        }
    }

    /// For the comparison of runs: the objective, then the sum of the imbalances, on which the
    /// averages of T3E table 1 are based. Less is better.
    fn score(&self) -> [f64; 2] {
        self.links.iter().fold([0.0; 2], |[squares, sum], link| {
            let imbalance = link.difference.abs() / link.busiest;
            [
                squares + link.weight * imbalance * imbalance,
                sum + imbalance,
            ]
        })
    }
}

impl Entry {
    fn new(of: (usize, usize)) -> Self {
        Self {
            of,
            vc1: false,
            crossings: Vec::new(),
            own_weight: 0.0,
        }
    }

    /// The links that the entry's routes at `level` cross, with the number of routes on each.
    fn routes(&self, tables: &RingTables, entries: Entries, level: Level) -> Vec<(usize, f64)> {
        let ring = tables.ring();
        let mut routes = vec![0_u32; ring.nodes()];
        for (source, destination) in level.routes(ring) {
            if source == self.of.0 && entries.shared(ring, self.of.1, destination) {
                tables.follow(source, destination, |link, _| routes[link] += 1);
            }
        }
        let crossed = routes
            .into_iter()
            .enumerate()
            .filter(|&(_, routes)| routes > 0);
        crossed
            .map(|(link, routes)| (link, f64::from(routes)))
            .collect()
    }

    /// Adds a link that `routes` of the entry's routes cross, and whose squared difference has this
    /// `weight`.
    ///
    /// A difference d becomes d ∓ 2 r when an entry of r routes changes, so its square grows by 4
    /// r² ∓ 4 r d.
    fn add(&mut self, link: usize, routes: f64, weight: f64) {
        let weight = 4.0 * weight * routes;
        self.own_weight += weight * routes;
        self.crossings.push(Crossing {
            link,
            routes,
            weight,
        });
    }
}

/// The number of changes that each stage tries: an equal share of `flips`, and in the last stage
/// also the remainder.
fn flips_of_stages(flips: u32) -> impl Iterator<Item = u32> {
    let last = move |stage| stage + 1 == STAGES;
    (0..STAGES).map(move |stage| flips / STAGES + if last(stage) { flips % STAGES } else { 0 })
}

/// Returns true with probability e to the power of -`exponent`, which must be positive.
///
/// Computes the power by multiplications, as (1 + x / 1024) to the power of 1024. Unlike `exp`,
/// they give the same result on every machine.
fn accepts(exponent: f64, rng: &mut Rng) -> bool {
    let mut power = 1.0 + exponent / 1024.0;
    for _ in 0..10 {
        power *= power;
    }
    let drawn = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    drawn * power < 1.0
}

#[cfg(test)]
#[path = "anneal_tests.rs"]
mod tests;
