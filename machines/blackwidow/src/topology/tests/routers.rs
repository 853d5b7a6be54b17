//! The router's routing logic with the registers of generated networks: packets take the paths that
//! the topology predicts.

use crate::route::decision::{ChipPorts, RouteRequest};
use crate::route::registers::ChipRegisters;
use crate::route::{Decision, TileRoutes};
use crate::topology::{BlackWidowSpec, ClosWiring, FoldedClos, Neighbour};
use phitwire::rng::Rng;

fn registers(topology: &FoldedClos) -> Vec<ChipRegisters> {
    let chips = 0..topology.chips.len() as u32;
    let registers = chips.map(|chip| topology.chip_registers(chip).expect("a chip"));
    registers.collect()
}

/// Follows a packet through the tiles' own decisions, and returns the routers that it passes.
fn follow(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    chips: &[ChipRegisters],
    (source, slice): (u32, u8),
    request: RouteRequest,
) -> Vec<u32> {
    let (mut router, mut input) = wiring.injection(topology, source, slice).expect("a link");
    let mut passed = Vec::new();
    loop {
        assert!(passed.len() < 8, "a loop");
        passed.push(router);
        let chip = wiring.chip_of(router);
        let registers = &chips[chip as usize];
        let tile = registers.tiles[usize::from(input)].as_ref();
        let tile = tile.expect("a tile with a link");
        let routes = TileRoutes::new(input, tile, ChipPorts::new(registers));
        let output = match routes.decide(request) {
            Decision::Port(port) => port,
            // All ports are allowed; take the last one, for variety.
            Decision::Adaptive(ports) => 63 - ports.leading_zeros() as u8,
            other => panic!("{other:?} at {}", wiring.router(topology, router).name),
        };
        match wiring.neighbour(chip, output).expect("a link") {
            Neighbour::Router(next, port) => (router, input) = (next, port),
            Neighbour::Processor(p) => {
                assert_eq!(topology.processors[p as usize].number, request.destination);
                return passed;
            }
        }
    }
}

#[test]
fn tiles_route_every_packet_to_its_processor() {
    let spec = |processors, change: fn(&mut BlackWidowSpec)| {
        let mut spec = BlackWidowSpec {
            processors,
            ..Default::default()
        };
        change(&mut spec);
        spec
    };
    let specs = [
        spec(12, |spec| (spec.subtree, spec.slices) = (3, 2)),
        spec(288, |_| {}),
        spec(256, |spec| {
            (spec.parallel, spec.rank) = (2, "2".parse().ok())
        }),
        spec(1024, |_| {}),
        spec(4608, |_| {}),
        spec(64, |spec| {
            (spec.subtree, spec.virtual_radix, spec.rank) = (2, 8, "3.5".parse().ok());
        }),
    ];
    let mut rng = Rng::new(64, 8);
    for spec in specs {
        let topology = spec.generate().expect("a valid network");
        let wiring = ClosWiring::new(&topology);
        let chips = registers(&topology);
        for _ in 0..2_000 {
            let count = topology.processors.len() as u64;
            let source = rng.below(count) as u32;
            let destination = topology.processors[rng.below(count) as usize].number;
            let slice = rng.below(u64::from(topology.slices)) as u8;
            let adaptive = rng.chance(1, 2);
            let request = RouteRequest {
                destination,
                adaptive,
                hashed: !adaptive,
                hash_bits: Some(rng.below(1 << 15) as u16),
            };
            let passed = follow(&topology, &wiring, &chips, (source, slice), request);
            assert!(passed.len() <= 6);
            if !adaptive {
                let again = follow(&topology, &wiring, &chips, (source, slice), request);
                assert_eq!(again, passed, "one address takes one path");
            }
        }
    }
}

#[test]
fn the_hash_spreads_a_bulk_transfer_over_every_uplink_of_every_rank() {
    // Rank 3 sees diversity only because each rank hashes other bits (BlackWidow sec. 7.8.2).
    let spec = BlackWidowSpec {
        processors: 2048,
        rank: "3".parse().ok(),
        ..Default::default()
    };
    let topology = spec.generate().expect("a valid network");
    let wiring = ClosWiring::new(&topology);
    let chips = registers(&topology);
    let mut tops = std::collections::BTreeSet::new();
    for hash_bits in 0..1 << 15 {
        let request = RouteRequest {
            destination: 2047,
            adaptive: false,
            hashed: true,
            hash_bits: Some(hash_bits),
        };
        let passed = follow(&topology, &wiring, &chips, (0, 0), request);
        assert_eq!(passed.len(), 5);
        tops.insert(passed[2]);
    }
    assert_eq!(tops.len(), 32 * 16, "all rank-3 routers are used");
}
