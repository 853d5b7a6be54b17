//! The search for channels that balance the links: simulated annealing, the technique of the
//! paper's section 4, which gives no details.

use super::balance::Level;
use super::ring::UnidirectionalRing;
use super::tables::{Entries, RingTables};
use phitwire::rng::Rng;

/// A search for tables whose links are balanced. Its objective is the sum over levels and links of
/// the imbalance squared. This and the temperatures are ours: with them the search is no worse than
/// the figures of the paper's table 1, for most seeds (`docs/guide/src/reproduce.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annealing {
    /// How many entries the tables have.
    pub entries: Entries,
    /// The weight of the whole ring in the objective; each level of sub-rings weighs 1. With about
    /// thirty, a ring of 32 nodes with eight entries comes nearest to the paper's figures; no
    /// objective was found that gives all of them (`docs/guide/src/reproduce.md`).
    pub ring_weight: u8,
    /// Packets take final hops in the ring, so that of tables of eight entries those for the
    /// routers' own ordinates stay at VC0. In rings of eight nodes or less that costs nothing, in
    /// larger ones balance, since other destinations share these entries.
    pub final_hops: bool,
    /// How many changes of an entry a run tries.
    pub flips: u32,
    /// How many runs there are, of which the best one counts. There is always one.
    pub runs: u32,
}

/// The temperature that a run begins with, in units of the objective.
const WARM: f64 = 0.05;
/// The temperature at which it is over.
const COLD: f64 = 2e-6;
/// What the temperature is multiplied by from one stage to the next.
const COOLING: f64 = 0.9;
/// Stages, of as many flips each: `WARM` times `COOLING` to this power is just below `COLD`.
const STAGES: u32 = 97;
/// Less than any flip changes the objective by, and more than rounding does.
const ROUNDING: f64 = 1e-9;

impl Annealing {
    /// The search for the tables of the machine, for a ring of `nodes`. It takes some milliseconds
    /// and comes within the figures of the paper's table 1.
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

    /// Tables for `ring` in which all constrained routes use VC0, and all that share an entry with
    /// one. The same seed gives the same tables on every machine.
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

    /// Whether the entry of `destination` at `source` is used, may be VC1, and is not that of an
    /// earlier destination too.
    fn is_free(&self, ring: &UnidirectionalRing, source: usize, destination: usize) -> bool {
        let shares = |&other: &usize| self.entries.shared(ring, destination, other);
        let mut users = (0..ring.nodes())
            .filter(|&other| ring.is_minimal(source, other))
            .filter(shares)
            .peekable();
        // Packets take final hops by the entry of their router's own ordinate.
        let own = self.final_hops && shares(&source);
        users.peek() == Some(&destination)
            && !own
            && !users.any(|user| ring.passes_dateline(source, user))
    }
}

/// An entry that may be VC0 or VC1.
#[derive(Clone)]
struct Entry {
    /// The router's position, and that of the first destination that uses the entry.
    of: (usize, usize),
    vc1: bool,
    /// The links that its routes cross, once for each level.
    crossings: Vec<Crossing>,
    /// What the objective gains when the entry changes, differences aside.
    own_weight: f64,
}

/// The routes of an entry on a link at one level.
#[derive(Clone)]
struct Crossing {
    /// The link's place among those of all levels.
    link: usize,
    routes: f64,
    /// What the difference of the link is multiplied by in what a change adds to the objective.
    weight: f64,
}

/// A link at one level.
#[derive(Clone)]
struct Link {
    /// Routes on VC0 less those on VC1: a whole number.
    difference: f64,
    /// The most routes of any link at the level.
    busiest: f64,
    /// The weight of the level.
    weight: f64,
}

/// The state of a run.
#[derive(Clone)]
struct Search {
    entries: Vec<Entry>,
    /// Those of the first level, by number, then those of the next.
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

    /// Tries `flips` changes over all temperatures, then takes whatever is left to gain.
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
        debug_assert!(temperature <= COLD, "as cold as it was to be");
        // Every flip makes the objective smaller, so that this ends.
        let gains = |search: &Self| {
            (0..search.entries.len()).find(|&entry| search.change(entry) < -ROUNDING)
        };
        while let Some(entry) = gains(self) {
            self.flip(entry);
        }
    }

    /// What a change of an entry adds to the objective.
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

    /// What runs are compared by: the objective and, where that is the same, the sum of the
    /// imbalances, which the paper's averages are made of. Less is better.
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

    /// The links that its routes of `level` cross, and how many of them each.
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

    /// Adds a link that `routes` of its routes cross, whose difference squared counts `weight`.
    ///
    /// A difference d becomes d ∓ 2 r when an entry of r routes changes, so that its square grows
    /// by 4 r² ∓ 4 r d.
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

/// How many of `flips` changes each stage tries: as many each, and the last one also what is left.
fn flips_of_stages(flips: u32) -> impl Iterator<Item = u32> {
    let last = move |stage| stage + 1 == STAGES;
    (0..STAGES).map(move |stage| flips / STAGES + if last(stage) { flips % STAGES } else { 0 })
}

/// True with probability e to the power of -`exponent`, which is positive.
///
/// The power is made of multiplications, as (1 + x / 1024) to the power of 1024: their results are
/// the same on every machine, and those of `exp` are not.
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
