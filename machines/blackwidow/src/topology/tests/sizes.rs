//! Networks of BlackWidow sec. 2.2: sizes, shape, reachability and hops.

use proptest::prelude::*;

use crate::link::rates;
use crate::route::registers::PortKind;
use crate::topology::description::{read, write};
use crate::topology::{BlackWidowSpec, ClosWiring, FoldedClos, Rank, Taper, VirtualRouter, check};
use phitwire::net::NodeRef;
use phitwire::net::PortSet;
use phitwire::rng::Rng;

fn spec(processors: u32, subtree: u32, rank: &str) -> BlackWidowSpec {
    let rank = (!rank.is_empty()).then(|| rank.parse().expect("a rank"));
    BlackWidowSpec {
        processors,
        subtree,
        rank,
        ..BlackWidowSpec::default()
    }
}

fn generated(processors: u32, subtree: u32, rank: &str) -> FoldedClos {
    made(&spec(processors, subtree, rank))
}

fn changed(base: BlackWidowSpec, change: fn(&mut BlackWidowSpec)) -> BlackWidowSpec {
    let mut spec = base;
    change(&mut spec);
    spec
}

fn made(spec: &BlackWidowSpec) -> FoldedClos {
    spec.generate().expect("a valid network")
}

fn of_rank_2(topology: &FoldedClos) -> &VirtualRouter {
    let mut all = topology.routers().map(|(_, router)| router);
    all.find(|r| r.rank == 2).expect("an R2 router")
}

/// Routers of each rank, and total number of links.
fn counts(topology: &FoldedClos) -> ([usize; 3], usize) {
    let of = |rank| topology.routers().filter(|(_, r)| r.rank == rank).count();
    ([of(1), of(2), of(3)], topology.links.len())
}

/// The largest number of routers on a path between sampled processors.
fn longest_way(topology: &FoldedClos, samples: u32) -> usize {
    let wiring = ClosWiring::new(topology);
    let mut rng = Rng::new(2006, 7);
    let count = topology.processors.len() as u64;
    let mut longest = 0;
    for _ in 0..samples {
        let (source, to) = (rng.below(count) as u32, rng.below(count) as usize);
        let slice = rng.below(u64::from(topology.slices)) as u8;
        let mut choose = |ports: PortSet| {
            let nth = rng.below(u64::from(ports.len())) as usize;
            ports.iter().nth(nth).expect("the port exists")
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
fn ranks_have_the_paper_s_sizes() {
    // Columns: processors, rank, routers of each rank, links per slice, routers on the longest
    // path. R1.5: nine subtrees, four sidelinks per pair. R2: 32 routers of radix 32. R2.5: 9 x
    // 512, with 32 rank-2 routers per subtree and two sidelinks to each of eight peers. R3: 32 x
    // 512.
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
    // Six routers mean seven links, including those to the processors (BlackWidow sec. 2.2).
    let topology = generated(32_768, 32, "3.5");
    assert_eq!(longest_way(&topology, 5_000) + 1, 7);
}

#[test]
fn aligned_subtrees_of_any_size_are_numbered_and_reached() {
    // Subtrees of three processors occupy four numbers each.
    let topology = generated(7, 3, "1.5");
    let numbers: Vec<u16> = topology.processors.iter().map(|p| p.number).collect();
    assert_eq!(numbers, [0, 1, 2, 4, 5, 6, 8]);
    assert_eq!(check(&topology), []);
}

#[test]
fn the_smallest_class_is_chosen() {
    let cases = [
        (32, "1"),
        (33, "1.5"),
        (288, "1.5"),
        (289, "2"),
        (1024, "2"),
        (1025, "2.5"),
        (4608, "2.5"),
        (4609, "3"),
        (16384, "3"),
        (16385, "3.5"),
    ];
    for (processors, rank) in cases {
        let chosen = generated(processors, 32, "");
        let named = generated(processors, 32, rank);
        assert_eq!(counts(&chosen), counts(&named), "{processors} processors");
    }
}

#[test]
fn registers_are_those_of_the_papers_example() {
    // "The root detect register of a rank-1 router connected to destinations 96-127 would have a
    // router location of 0x0060, and a mask of 0x001F" (BlackWidow sec. 5.1).
    let topology = generated(1024, 32, "2");
    let (_, router) = topology.routers().nth(3).expect("the fourth R1 router");
    let registers = &router.registers;
    let root = registers.root_detect;
    assert_eq!((root.location, root.mask), (0x60, 0x1f));
    // "In a healthy network, only a single entry is required", with the full set of uplinks.
    let used: Vec<_> = registers.table.iter().filter(|e| e.ports != 0).collect();
    assert_eq!(used.len(), 1);
    assert_eq!(used[0].subtree.mask, 0x7fff);
    assert_eq!(used[0].ports, 0xffff_ffff_0000_0000);
    assert_eq!((registers.down_shift, registers.down_mask), (0, 31));
    assert_eq!(registers.hash_shift, 0);
    let r2 = of_rank_2(&topology);
    assert_eq!((r2.registers.down_shift, r2.registers.down_mask), (5, 31));
    assert_eq!((r2.registers.hash_shift, r2.ports.len()), (5, 32));
    assert_eq!(r2.registers.exit_mask, r2.ports);
    // "Each peer subtree is given its own routing table entry."
    let topology = generated(288, 32, "1.5");
    for (_, router) in topology.routers() {
        let mut entries = router.registers.table.iter();
        assert!(entries.all(|e| e.ports.count_ones() == 4));
    }
}

#[test]
fn slices_are_separate_networks() {
    let spec = BlackWidowSpec {
        slices: 4,
        ..spec(64, 16, "2")
    };
    let topology = made(&spec);
    assert_eq!(check(&topology), []);
    let wiring = ClosWiring::new(&topology);
    for router in 0..wiring.router_count() as u32 {
        let slice = wiring.router(&topology, router).slice;
        let chip = wiring.chip_of(router);
        assert_eq!(topology.chips[chip as usize].routers[0].slice, slice);
    }
    let one = BlackWidowSpec { slices: 1, ..spec };
    let one = made(&one);
    assert_eq!(topology.links.len(), 4 * one.links.len());
    assert_eq!(topology.chips.len(), 4 * one.chips.len());
}

#[test]
fn a_taper_leaves_links_and_routers_out() {
    let full = generated(1024, 32, "2");
    let half = Taper::new(1, 2).expect("a half");
    let spec = BlackWidowSpec {
        taper: [half, Taper::FULL, Taper::FULL],
        ..spec(1024, 32, "2")
    };
    let tapered = made(&spec);
    assert_eq!(counts(&full), ([32, 32, 0], 2048));
    assert_eq!(counts(&tapered), ([32, 16, 0], 1024 + 512));
    assert_eq!(check(&tapered), []);
    // Every fraction keeps a number of links that the hash supports.
    for kept in 1..=32 {
        let taper = Taper::new(kept, 32).expect("a fraction");
        let spec = BlackWidowSpec {
            taper: [taper; 3],
            processors: 64,
            ..spec.clone()
        };
        let topology = made(&spec);
        assert_eq!(check(&topology), [], "{kept}/32");
    }
}

#[test]
fn fractions_are_read_exactly() {
    let read = |text: &str| text.parse::<Taper>();
    assert_eq!(read("1"), Ok(Taper::FULL));
    assert_eq!(read("1.0"), Ok(Taper::FULL));
    assert_eq!(read("0.25"), Ok(Taper::new(25, 100).expect("a quarter")));
    assert_eq!(read("3/4"), Ok(Taper::new(3, 4).expect("three quarters")));
    for bad in ["0", "1.5", "5/4", "1/0", "-1", "x", "", "0.1234567890123"] {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn parallel_links_share_the_destinations_below_them() {
    // Two links at half the rate instead of one (BlackWidow sec. 7.2).
    let spec = BlackWidowSpec {
        parallel: 2,
        router_rate: Some(rates::G3_125),
        ..spec(256, 32, "2")
    };
    let topology = made(&spec);
    assert_eq!(check(&topology), []);
    let r2 = of_rank_2(&topology);
    assert_eq!((r2.registers.down_shift, r2.registers.down_mask), (4, 15));
    let mut down: Vec<u8> = (0..256).filter_map(|d| r2.registers.down_port(d)).collect();
    down.dedup();
    assert_eq!(down.len(), 16, "every link leads down to some processor");
}

#[test]
fn impossible_networks_are_refused_with_a_reason() {
    let error = |spec: BlackWidowSpec| spec.generate().expect_err("impossible").to_string();
    let four = |change| changed(spec(4, 4, ""), change);
    let beyond = "the number of processors is 0, but must be 1 to 32768";
    let alone = "rank 1 holds 1 to 1 rank-1 subtrees, not 2; choose a higher rank";
    let nine = "the number of uplinks is 9, but must be 1 to 8, 10";
    let ports = "a rank-1 router needs 32 downlinks and 64 sidelinks, but has only 64 ports";
    let cases = [
        (spec(0, 4, ""), beyond),
        (spec(40_000, 32, ""), "the number of processors is 40000"),
        (
            spec(64, 33, ""),
            "the number of processors per subtree is 33",
        ),
        (spec(64, 32, "1"), alone),
        (
            spec(320, 32, "1.5"),
            "rank 1.5 holds 2 to 9 rank-1 subtrees, not 10",
        ),
        (spec(32, 32, "1.5"), "choose a lower rank"),
        (spec(32_768, 1, ""), "exceed even rank 3.5"),
        (spec(20_000, 17, ""), "the largest is 32767"),
        (four(|spec| spec.slices = 5), "the number of slices is 5"),
        (
            changed(spec(64, 32, "2"), |spec| spec.uplinks = Some(9)),
            nine,
        ),
        (
            changed(spec(288, 32, "1.5"), |spec| spec.uplinks = Some(64)),
            ports,
        ),
        (
            four(|spec| spec.virtual_radix = 3),
            "the virtual radix is 3",
        ),
        (
            four(|spec| spec.parallel = 3),
            "the number of parallel links is 3",
        ),
    ];
    for (spec, reason) in cases {
        let error = error(spec);
        assert!(
            error.contains(reason),
            "`{error}` does not contain `{reason}`"
        );
    }
}

/// Any network of up to a few dozen processors.
fn any_spec() -> impl Strategy<Value = BlackWidowSpec> {
    let radix = prop::sample::select(vec![4_u32, 6, 8, 12, 16, 32]);
    let class = prop::option::of(prop::sample::select(Rank::ALL.to_vec()));
    let taper = (1_u32..=8).prop_map(|kept| Taper::new(kept, 8).expect("a fraction"));
    let counts = (1_u32..=96, 1_u32..=12, class, 1_u8..=4);
    (counts, radix, taper, 0_u32..=1).prop_map(|(counts, virtual_radix, taper, parallel)| {
        let (processors, subtree, rank, slices) = counts;
        BlackWidowSpec {
            processors,
            subtree,
            rank,
            slices,
            virtual_radix,
            taper: [taper; 3],
            parallel: 1 << parallel,
            ..BlackWidowSpec::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every generated network is correct, and its description can be read back.
    #[test]
    fn every_generated_network_is_right_and_survives_its_description(spec in any_spec()) {
        if let Ok(topology) = spec.generate() {
            prop_assert_eq!(check(&topology), vec![]);
            let described = read("any.toml", &write(&topology));
            let described = described.map_err(|p| TestCaseError::fail(p.lines()))?;
            prop_assert_eq!(&described.topology, &topology);
            prop_assert!(longest_way(&topology, 20) < 7);
        }
    }

    /// A network without one of its links either still works or is reported as broken.
    #[test]
    fn a_missing_link_is_never_overlooked(spec in any_spec(), pick: u32) {
        let Ok(mut topology) = spec.generate() else { return Ok(()) };
        let gone = pick as usize % topology.links.len();
        topology.links.remove(gone);
        if check(&topology).is_empty() {
            prop_assert!(longest_way(&topology, 50) < 7);
        }
    }

    /// Manually changed registers, right or wrong, survive writing and reading.
    #[test]
    fn changed_registers_survive_the_description(
        entry in 0_usize..8,
        ports: u64,
        location in 0_u16..1 << 15,
        mask in 0_u16..1 << 15,
        shift in 0_u8..16,
        logical in 0_usize..64,
        physical in 0_u8..64,
    ) {
        let mut topology = generated(8, 2, "2");
        let registers = &mut topology.chips[4].routers[1].registers;
        registers.table[entry].ports = ports;
        registers.table[entry].subtree.location = location;
        registers.table[entry].subtree.mask = mask;
        registers.root_detect.location = location;
        registers.root_detect.mask = mask;
        registers.down_shift = shift;
        registers.down_mask = mask;
        registers.port_map[logical] = physical;
        registers.exit_mask = PortSet::from_bits(ports);
        let text = write(&topology);
        let again = phitwire::net::read_unchecked::<FoldedClos>(&text);
        prop_assert_eq!(again, Some(topology));
    }
}

#[test]
fn nodes_are_named_once() {
    let spec = BlackWidowSpec {
        virtual_radix: 4,
        ..spec(16, 2, "3.5")
    };
    let topology = made(&spec);
    for (i, processor) in topology.processors.iter().enumerate() {
        let found = topology.find(&processor.name);
        assert_eq!(found, Some(NodeRef::Processor(i as u32)));
    }
    for (i, chip) in topology.chips.iter().enumerate() {
        assert_eq!(topology.find(&chip.name), Some(NodeRef::Chip(i as u32)));
    }
    // There are as many downlinks as uplinks.
    let wiring = ClosWiring::new(&topology);
    let ports = |kind| -> u32 {
        let all = 0..wiring.router_count() as u32;
        all.map(|r| wiring.ports_of_kind(&topology, r, kind).len())
            .sum()
    };
    let up = ports(PortKind::Up) + topology.processors.len() as u32;
    assert_eq!(ports(PortKind::Down), up);
}
