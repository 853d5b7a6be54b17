//! Link loads of a radix-64 fat tree under a permutation (BlackWidow sec. 7.8.1).
//!
//! The tree is a generated network, and its registers determine the paths ([`FoldedClos::route`]).
//! Following every path of 10,000 permutations would take hours. So the path to each link is
//! followed once, when the tree is built, and the link is assigned a counter; permutations then
//! only count. Path (v, j) takes uplink v of the leaf router and, if it climbs to rank 3, uplink j
//! of the rank-2 router. The counters of the 32 links that differ only in v are adjacent, so the
//! loads for 2, 4, .. 32 paths per transfer are sums over the counts for one path. A test compares
//! this with following every path.

use crate::route::registers::NO_PORT;
use crate::route::registers::PORTS;
use crate::topology::read;
use crate::topology::{BlackWidowSpec, ClosWiring, FoldedClos, SpecError};
use phitwire::net::{End, Link, NodeRef, PortSet};
use phitwire::rng::Rng;

/// Number of uplinks of a router: half of its 64 ports.
pub const WAYS: usize = 32;
/// Numbers of paths per transfer, as in table 4.
pub const PATHS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// Sums over permutations. They are integers, so the order of addition does not matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorstLinks {
    pub permutations: u64,
    /// Number of paths over the most loaded link, for each number of [`PATHS`].
    pub paths: [u64; PATHS.len()],
}

impl WorstLinks {
    #[must_use]
    pub fn plus(mut self, other: Self) -> Self {
        self.permutations += other.permutations;
        for (sum, more) in self.paths.iter_mut().zip(other.paths) {
            *sum += more;
        }
        self
    }

    /// Mean load of the most loaded link in injection bandwidths, for each number of [`PATHS`].
    pub fn mean(&self) -> [f64; PATHS.len()] {
        let transfers = |i: usize| (PATHS[i] as u64 * self.permutations) as f64;
        core::array::from_fn(|i| self.paths[i] as f64 / transfers(i))
    }
}

/// A directed link: its id, and whether it is used from its end `a`.
type Directed = (u32, bool);

/// A fat tree of radix-64 routers. A leaf router has 32 processors and 32 uplinks.
#[derive(Debug)]
pub struct FatTree {
    topology: FoldedClos,
    wiring: ClosWiring,
    /// A leaf has `1 << leaf_bits` processors, a rank-2 subtree `1 << pod_bits`.
    leaf_bits: u32,
    pod_bits: u32,
    leaves: usize,
    pods: usize,
}

impl FatTree {
    /// The smallest tree for `processors` processors: one router for up to 64, two ranks for up to
    /// 2,048, else three.
    ///
    /// # Errors
    /// If no such tree has that number of processors.
    ///
    /// # Panics
    /// If the routes are not those of a fat tree, which would be a generator bug.
    pub fn new(processors: u32) -> Result<Self, SpecError> {
        let (leaf_bits, pod_bits) = match processors {
            0..=64 => (6, 6),
            65..=2048 => (5, 11),
            _ => (5, 10),
        };
        let topology = match processors {
            1..=64 => one_router(processors),
            _ => BlackWidowSpec {
                processors,
                subtree: WAYS as u32,
                rank: if pod_bits == 11 { "2" } else { "3" }.parse().ok(),
                virtual_radix: PORTS as u32,
                ..BlackWidowSpec::default()
            }
            .generate()?,
        };
        let tree = Self {
            wiring: ClosWiring::new(&topology),
            topology,
            leaf_bits,
            pod_bits,
            leaves: processors.div_ceil(1 << leaf_bits) as usize,
            pods: processors.div_ceil(1 << pod_bits) as usize,
        };
        tree.assert_places();
        Ok(tree)
    }

    pub fn topology(&self) -> &FoldedClos {
        &self.topology
    }

    pub fn ranks(&self) -> u8 {
        let ranks = self.topology.routers().map(|(_, router)| router.rank);
        ranks.max().unwrap_or(0)
    }

    /// Number of counters: up and down links of every leaf, then of every rank-2 subtree.
    fn counters(&self) -> usize {
        2 * WAYS * self.leaves
            + if self.pods > 1 {
                2 * WAYS * WAYS * self.pods
            } else {
                0
            }
    }

    /// The counters of the links between routers on path (`v`, `j`), upwards and then downwards,
    /// and their number.
    #[inline]
    fn indices(
        &self,
        source: usize,
        destination: usize,
        (v, j): (usize, usize),
    ) -> ([usize; 4], usize) {
        let leaf = |processor: usize| (processor >> self.leaf_bits) * WAYS + v;
        let pod = |processor: usize| ((processor >> self.pod_bits) * WAYS + j) * WAYS + v;
        if source >> self.leaf_bits == destination >> self.leaf_bits {
            return ([0; 4], 0);
        }
        let (down1, up2) = (WAYS * self.leaves, 2 * WAYS * self.leaves);
        let down2 = up2 + WAYS * WAYS * self.pods;
        let (first, last) = (leaf(source), down1 + leaf(destination));
        if source >> self.pod_bits == destination >> self.pod_bits {
            return ([first, last, 0, 0], 2);
        }
        let (second, third) = (up2 + pod(source), down2 + pod(destination));
        ([first, second, third, last], 4)
    }

    /// The links between routers on path (`v`, `j`), according to the registers.
    fn walk(&self, source: u32, destination: u32, (v, j): (usize, usize)) -> Vec<Directed> {
        let number = self.topology.processors[destination as usize].number;
        let mut ways = [v, j].into_iter();
        let choose = |ports: PortSet| {
            let nth = ways.next().unwrap_or(usize::MAX);
            ports.iter().nth(nth).unwrap_or(NO_PORT)
        };
        let hops = self
            .topology
            .route(&self.wiring, source, number, 0, choose)
            .unwrap_or_else(|why| panic!("{source} to {number} by ({v}, {j}): {why}"));
        let directed = |router: u32, port: u8| {
            let chip = self.wiring.chip_of(router);
            let node = NodeRef::Chip(chip);
            let link = self
                .wiring
                .link(chip, port)
                .expect("the route used this link");
            (
                link,
                self.topology.links[link as usize].a == End { node, port },
            )
        };
        let between = &hops[..hops.len() - 1];
        between
            .iter()
            .map(|hop| directed(hop.router, hop.output))
            .collect()
    }

    /// Follows a path to every link between routers, and checks that links and counters match one
    /// to one.
    fn assert_places(&self) {
        let mut link_of: Vec<Option<Directed>> = vec![None; self.counters()];
        let mut visit = |source: usize, destination: usize, way| {
            let walk = self.walk(source as u32, destination as u32, way);
            let (indices, count) = self.indices(source, destination, way);
            assert_eq!(walk.len(), count, "{source} to {destination}");
            for (link, index) in walk.into_iter().zip(indices) {
                let known = link_of[index].get_or_insert(link);
                assert_eq!(*known, link, "two links share a counter");
            }
        };
        if self.leaves > 1 {
            for leaf in 0..self.leaves {
                let (from, to) = (
                    leaf << self.leaf_bits,
                    ((leaf + 1) % self.leaves) << self.leaf_bits,
                );
                (0..WAYS).for_each(|v| visit(from, to, (v, 0)));
            }
        }
        if self.pods > 1 {
            for pod in 0..self.pods {
                let (from, to) = (
                    pod << self.pod_bits,
                    ((pod + 1) % self.pods) << self.pod_bits,
                );
                (0..WAYS * WAYS).for_each(|way| visit(from, to, (way % WAYS, way / WAYS)));
            }
        }
        let mut links: Vec<Directed> = link_of.into_iter().flatten().collect();
        links.sort_unstable();
        links.dedup();
        let between_routers = |l: &&Link| {
            [l.a, l.b]
                .iter()
                .all(|e| matches!(e.node, NodeRef::Chip(_)))
        };
        let expected = 2 * self.topology.links.iter().filter(between_routers).count();
        assert_eq!(links.len(), expected, "each link has one counter");
    }
}

/// Counts the paths over each link of a [`FatTree`].
#[derive(Debug)]
pub struct TreeCounters<'t> {
    tree: &'t FatTree,
    /// Counts for one path per transfer.
    counts: Vec<u16>,
    /// Number of transfers that each processor receives: the load of its link, which all paths of a
    /// transfer take.
    received: Vec<u16>,
}

impl<'t> TreeCounters<'t> {
    pub fn new(tree: &'t FatTree) -> Self {
        Self {
            counts: vec![0; tree.counters()],
            received: vec![0; tree.topology.processors.len()],
            tree,
        }
    }

    /// The loads under a permutation: processor `i` sends to `destinations[i]`, over paths that
    /// start at a random one.
    ///
    /// # Panics
    /// If a destination is not a processor.
    pub fn count(&mut self, destinations: &[u16], rng: &mut Rng) -> WorstLinks {
        self.count_one_path(destinations, || rng.next_u64());
        WorstLinks {
            permutations: 1,
            paths: self.with_own_links(worst_of_strided(&self.counts)),
        }
    }

    /// Includes processors' own links in the most loaded links between routers. Injection is even:
    /// every processor sends one transfer.
    fn with_own_links(&self, between_routers: [u64; PATHS.len()]) -> [u64; PATHS.len()] {
        let received = self.received.iter().copied().fold(0, u16::max);
        core::array::from_fn(|i| between_routers[i].max(u64::from(received) * PATHS[i] as u64))
    }

    /// Counts one path per transfer; `draw` supplies its random bits.
    fn count_one_path(&mut self, destinations: &[u16], mut draw: impl FnMut() -> u64) {
        self.counts.fill(0);
        self.received.fill(0);
        for (source, &destination) in destinations.iter().enumerate() {
            self.received[usize::from(destination)] += 1;
            let bits = draw() as usize;
            let way = (bits % WAYS, bits / WAYS % WAYS);
            let (indices, count) = self.tree.indices(source, destination.into(), way);
            for &index in &indices[..count] {
                self.counts[index] += 1;
            }
        }
    }
}

/// Number of paths over the most loaded link for each number of [`PATHS`], from the counts for one
/// path per transfer.
///
/// A transfer with np paths uses every (32 / np)-th uplink of its leaf router, starting at a random
/// one. So for twice as many paths, the count of link v is the sum for links v and v + 32 / np, and
/// half as many counts remain.
fn worst_of_strided(counts: &[u16]) -> [u64; PATHS.len()] {
    let mut largest = ([0; 32], [0; 16], [0; 8], [0; 4], [0; 2], [0; 1]);
    for group in counts.chunks_exact(WAYS) {
        let one: [u16; 32] = core::array::from_fn(|v| group[v]);
        let two = folded(&one);
        let four = folded(&two);
        let eight = folded(&four);
        let sixteen = folded(&eight);
        let all = folded(&sixteen);
        raise(&mut largest.0, one);
        raise(&mut largest.1, two);
        raise(&mut largest.2, four);
        raise(&mut largest.3, eight);
        raise(&mut largest.4, sixteen);
        raise(&mut largest.5, all);
    }
    let of = |counts: &[u16]| counts.iter().copied().fold(0, u16::max);
    let between_routers: [&[u16]; PATHS.len()] = [
        &largest.0, &largest.1, &largest.2, &largest.3, &largest.4, &largest.5,
    ];
    between_routers.map(|counts| u64::from(of(counts)))
}

/// Adds the second half of an array of counts to the first half.
fn folded<const N: usize, const HALF: usize>(counts: &[u16; N]) -> [u16; HALF] {
    const { assert!(HALF * 2 == N) };
    core::array::from_fn(|v| counts[v] + counts[v + HALF])
}

fn raise<const N: usize>(largest: &mut [u16; N], counts: [u16; N]) {
    for (largest, count) in largest.iter_mut().zip(counts) {
        *largest = count.max(*largest);
    }
}

/// One router with all processors, because the generator's rank-1 routers have at most 32.
fn one_router(processors: u32) -> FoldedClos {
    let mut text = format!(
        "name = \"r1-{processors}\"\n[[chip]]\nname = \"r1-0\"\nrank = 1\nports = \"0-63\"\n\
         processors = \"0-63\"\n[processors]\n"
    );
    (0..processors).for_each(|p| text.push_str(&format!("nic{p} = {p}\n")));
    text.push_str("[wiring]\nlinks = [\n");
    (0..processors)
        .for_each(|p| text.push_str(&format!("{{ a = \"nic{p}:0\", b = \"r1-0:{p}\" }},\n")));
    text.push_str("]\n");
    match read("one router", &text) {
        Ok(described) => described.topology,
        Err(problems) => panic!("invalid generated description: {problems:?}"),
    }
}

#[cfg(test)]
#[path = "fat_tree_tests.rs"]
mod tests;
