//! Networks of the paper's section 2.2: sizes, shape, reachability, hops.

use proptest::prelude::*;

use crate::rng::Rng;
use crate::router::yarc::registers::PortKind;
use crate::topology::ports::PortSet;
use crate::topology::{
    BlackwidowSpec, NodeRef, Rank, Taper, Topology, Wiring, check, read, write,
};

fn spec(processors: u32, subtree: u32, rank: &str) -> BlackwidowSpec {
    let rank = (!rank.is_empty()).then(|| rank.parse().expect("a rank"));
    BlackwidowSpec {
        processors,
        subtree,
        rank,
        ..BlackwidowSpec::default()
    }
}

fn generated(processors: u32, subtree: u32, rank: &str) -> Topology {
    let spec = spec(processors, subtree, rank);
    spec.generate().expect("a possible network")
}

/// Routers of each rank, and links in all.
fn counts(topology: &Topology) -> ([usize; 3], usize) {
    let of = |rank| topology.routers().filter(|(_, r)| r.rank == rank).count();
    ([of(1), of(2), of(3)], topology.links.len())
}

/// The most routers on a way between sampled processors.
fn longest_way(topology: &Topology, samples: u32) -> usize {
    let wiring = Wiring::new(topology);
    let mut rng = Rng::new(2006, 7);
    let count = topology.processors.len() as u64;
    let mut longest = 0;
    for _ in 0..samples {
        let (source, to) = (rng.below(count) as u32, rng.below(count) as usize);
        let slice = rng.below(u64::from(topology.slices)) as u8;
        let mut choose = |ports: PortSet| {
            let nth = rng.below(u64::from(ports.len())) as usize;
            ports
                .iter()
                .nth(nth)
                .expect("the choice is among the ports")
        };
        let destination = topology.processors[to].number;
        let way = topology
            .route(&wiring, source, destination, slice, &mut choose)
            .unwrap_or_else(|e| panic!("{source} to {destination}: {e}"));
        longest = longest.max(way.len());
    }
    longest
}

#[test]
fn ranks_hold_what_the_paper_says() {
    // Processors, rank, routers of each rank, links per slice, routers on the longest way.
    // R1.5: nine subtrees, four sidelinks per pair. R2: 32 routers of radix 32. R2.5: 9 x 512,
    // 32 rank-2 routers per subtree with two sidelinks to each of eight peers. R3: 32 x 512.
    let table: [(u32, &str, [usize; 3], usize, usize); 6] = [
        (32, "1", [1, 0, 0], 32, 1),
        (288, "1.5", [9, 0, 0], 288 + 36 * 4, 2),
        (1024, "2", [32, 32, 0], 1024 * 2, 3),
        (4608, "2.5", [144, 288, 0], 4608 * 2 + 36 * 32 * 2, 4),
        (16384, "3", [512, 1024, 512], 16384 * 3, 5),
        (32768, "3.5", [1024, 2048, 2048], 32768 * 3 + 6 * 512 * 5, 6),
    ];
    for (processors, rank, routers, links, hops) in table {
        let topology = generated(processors, 32, rank);
        assert_eq!(counts(&topology), (routers, links), "R{rank}");
        assert_eq!(check(&topology), [], "R{rank}");
        assert_eq!(longest_way(&topology, 2_000), hops, "R{rank}");
    }
}

#[test]
fn the_diameter_is_at_most_seven_hops() {
    // Six routers are joined by seven links, those to the processors included (paper, section 2.2).
    let topology = generated(32_768, 32, "3.5");
    assert_eq!(longest_way(&topology, 5_000) + 1, 7);
}
