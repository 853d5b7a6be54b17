use super::*;
use crate::reproduce::permutation::Permutation;

impl TreeCounters<'_> {
    /// Counts other paths (np neighbouring uplinks), to test that a wrong model is detected.
    pub(crate) fn count_neighbours(&mut self, to: &[u16], rng: &mut Rng) -> WorstLinks {
        self.count_one_path(to, || rng.next_u64());
        let of_group = |group: &[u16], np: usize| {
            let load = |v: usize| (0..np).map(|i| u64::from(group[(v + i) % WAYS])).sum();
            (0..WAYS).map(load).max().unwrap_or(0)
        };
        let between_routers = PATHS.map(|np| {
            let groups = self.counts.chunks_exact(WAYS);
            groups.map(|group| of_group(group, np)).max().unwrap_or(0)
        });
        WorstLinks {
            permutations: 1,
            paths: self.with_own_links(between_routers),
        }
    }
}

/// Follows every path of every transfer, and returns the largest number of paths over one link.
fn worst_by_walking(tree: &FatTree, to: &[u16], bits: &[u64], np: usize, step: usize) -> u64 {
    let mut paths = std::collections::BTreeMap::new();
    for ((source, &destination), &bits) in (0u32..).zip(to).zip(bits) {
        let (v, j) = (bits as usize % WAYS, bits as usize / WAYS % WAYS);
        for i in 0..np {
            let way = ((v + i * step) % WAYS, j);
            for link in tree.walk(source, destination.into(), way) {
                *paths.entry(link).or_insert(0) += 1;
            }
        }
    }
    paths.into_values().max().unwrap_or(0).max(np as u64)
}

#[test]
fn counting_gives_what_walking_every_path_gives() {
    for (processors, ranks) in [(40, 1), (216, 2), (2100, 3)] {
        let tree = FatTree::new(processors).expect("a tree");
        assert_eq!(tree.ranks(), ranks);
        let rng = Rng::new(3, processors.into());
        let mut permutation = Permutation::new(processors);
        permutation.shuffle(&mut rng.clone());
        let to = permutation.destinations();
        let mut same = rng.clone();
        let bits: Vec<u64> = to.iter().map(|_| same.next_u64()).collect();
        let mut counters = TreeCounters::new(&tree);
        let strided = counters.count(to, &mut rng.clone()).paths;
        let neighbours = counters.count_neighbours(to, &mut rng.clone()).paths;
        for (i, np) in PATHS.into_iter().enumerate() {
            let walked = |step| worst_by_walking(&tree, to, &bits, np, step);
            assert_eq!(
                strided[i],
                walked(WAYS / np),
                "{processors} processors, {np} paths"
            );
            assert_eq!(
                neighbours[i],
                walked(1),
                "{processors} processors, {np} neighbours"
            );
        }
    }
}

#[test]
fn one_router_is_no_more_loaded_than_its_processors_are() {
    let tree = FatTree::new(64).expect("a tree");
    let mut counters = TreeCounters::new(&tree);
    let mut of = |to: &[u16]| counters.count(to, &mut Rng::new(1, 1)).mean();
    let mut permutation = Permutation::new(64);
    permutation.shuffle(&mut Rng::new(2, 2));
    assert_eq!(of(permutation.destinations()), [1.0; PATHS.len()]);
    // Not a permutation: three processors send to the same one.
    let mut crowd = permutation.destinations().to_vec();
    (crowd[1], crowd[2]) = (crowd[0], crowd[0]);
    assert_eq!(of(&crowd), [3.0; PATHS.len()]);
}

#[test]
fn trees_have_the_ranks_of_table_4() {
    for (processors, ranks) in [(64, 1), (216, 2), (1728, 2), (4096, 3), (32_768, 3)] {
        let tree = FatTree::new(processors).expect("a tree");
        assert_eq!(tree.ranks(), ranks, "{processors}");
        assert_eq!(tree.topology().processors.len(), processors as usize);
    }
    assert!(FatTree::new(0).is_err());
    assert!(FatTree::new(32_769).is_err());
}
