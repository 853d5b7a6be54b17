use super::*;
use phitwire::rng::Rng;

fn tile(kind: PortKind) -> TileRegisters {
    TileRegisters {
        kind,
        root_detect: Subtree {
            location: 0x0060,
            mask: 0x001f,
        },
        table: [RouteEntry::default(); TABLE_ENTRIES],
        down_shift: 0,
        down_mask: 0x1f,
        port_map: core::array::from_fn(|i| i as u8),
        hash_shift: 0,
        exit_mask: u64::MAX,
    }
}

const ALL: (u16, u16) = (0, 0x7fff);
/// Rank-1 chip: ports 0..32 lead down, 32..64 up.
const CHIP: ChipPorts = ChipPorts {
    in_use: u64::MAX,
    down: 0xffff_ffff,
};

fn entry((location, mask): (u16, u16), ports: u64) -> RouteEntry {
    let subtree = Subtree { location, mask };
    RouteEntry { subtree, ports }
}

/// A tile that sends packets to `ports` unless their destination is below it.
fn tile_to(kind: PortKind, ports: u64) -> TileRegisters {
    let mut tile = tile(kind);
    tile.table[0] = entry(ALL, ports);
    tile
}

#[track_caller]
fn decides(routes: &TileRoutes, cases: &[(RouteRequest, Decision)]) {
    for (request, decision) in cases {
        assert_eq!(routes.decide(*request), *decision, "{request:?}");
    }
}

const UNROUTABLE: Decision = Decision::Refused(Refusal::Unroutable);
const UP_DOWN: Decision = Decision::Refused(Refusal::UpDownViolation);
const FOREIGN: Decision = Decision::Refused(Refusal::VirtualRouterViolation);

fn adaptively_to(destination: u16) -> RouteRequest {
    RouteRequest {
        adaptive: true,
        ..to(destination)
    }
}

fn to(destination: u16) -> RouteRequest {
    RouteRequest {
        destination,
        adaptive: false,
        hashed: false,
        hash_bits: None,
    }
}

/// The example of BlackWidow sec. 5.1: location 0x0060, mask 0x001f is destinations 96 to 127.
#[test]
fn root_detect_of_the_paper_covers_96_to_127() {
    let tile = tile_to(PortKind::Down, 1 << 40);
    let routes = TileRoutes::new(3, &tile, CHIP);
    for destination in 0..1 << 15 {
        let expected = match destination {
            96..=127 => Decision::Port((destination - 96) as u8),
            _ => Decision::Port(40),
        };
        assert_eq!(routes.decide(to(destination)), expected, "{destination}");
    }
}

#[test]
fn down_route_shifts_masks_and_maps() {
    let mut tile = tile(PortKind::Up);
    tile.root_detect = entry(ALL, 0).subtree;
    tile.down_shift = 5;
    tile.port_map = core::array::from_fn(|i| 31 - (i as u8 & 31));
    let routes = TileRoutes::new(40, &tile, CHIP);
    // Bits above the mask are ignored.
    let ports = [(0, 31), (5 << 5 | 17, 26), (37 << 5, 26)];
    decides(
        &routes,
        &ports.map(|(d, port)| (to(d), Decision::Port(port))),
    );
}

#[test]
fn highest_matching_index_wins() {
    let mut tile = tile_to(PortKind::Down, 1 << 32);
    tile.table[3] = entry((0x400, 0x1ff), 1 << 33);
    tile.table[7] = entry((0x400, 0x01f), 1 << 34);
    let routes = TileRoutes::new(0, &tile, CHIP);
    // Root detect, tested by the last case, takes precedence over the table.
    let ports = [(0x410, 34), (0x4f0, 33), (0x600, 32), (0x65, 5)];
    decides(
        &routes,
        &ports.map(|(d, port)| (to(d), Decision::Port(port))),
    );
}

#[test]
fn without_a_match_a_packet_is_unroutable() {
    let mut tile = tile(PortKind::Down);
    tile.table[1] = entry((0x400, 0x1ff), 1 << 33);
    let routes = TileRoutes::new(0, &tile, CHIP);
    decides(&routes, &[(to(0x10), UNROUTABLE)]);
    // A logical port outside the map, and one whose port has no link.
    tile.root_detect = entry(ALL, 0).subtree;
    tile.down_mask = 0x7fff;
    let (in_use, down) = (0xff, 0xff);
    let routes = TileRoutes::new(0, &tile, ChipPorts { in_use, down });
    let seven = (to(7), Decision::Port(7));
    decides(&routes, &[(to(64), UNROUTABLE), (to(8), UNROUTABLE), seven]);
    tile.port_map = [200; PORTS];
    let routes = TileRoutes::new(0, &tile, CHIP);
    decides(&routes, &[(to(7), UNROUTABLE)]);
}

#[test]
fn nothing_climbs_after_coming_down() {
    let mut tile = tile_to(PortKind::Up, 0xff << 32);
    let routes = TileRoutes::new(40, &tile, CHIP);
    let below = (to(96), Decision::Port(0));
    decides(
        &routes,
        &[(to(1), UP_DOWN), (adaptively_to(1), UP_DOWN), below],
    );
    // A down route that the map sends up is detected too.
    tile.port_map[1] = 50;
    let routes = TileRoutes::new(40, &tile, CHIP);
    decides(&routes, &[(to(97), UP_DOWN)]);
}

#[test]
fn nothing_leaves_its_virtual_router() {
    let mut tile = tile_to(PortKind::Down, 0xffff << 32);
    tile.exit_mask = 0x0000_00ff_0000_00ff;
    tile.table[1] = entry((0x400, 0xff), 0xff << 48);
    let routes = TileRoutes::new(0, &tile, CHIP);
    let cases = [
        (adaptively_to(1), Decision::Adaptive(0xff << 32)),
        (to(0x400), FOREIGN),
        (to(96 + 9), FOREIGN),
        (to(96 + 7), Decision::Port(7)),
    ];
    decides(&routes, &cases);
}

#[test]
fn hash_is_input_xor_destination_xor_selected_bits_modulo_the_count() {
    let mut rng = Rng::new(7, 7);
    for _ in 0..2_000 {
        let mut tile = tile(PortKind::Down);
        let ports = rng.next_u64() & rng.next_u64();
        if !crate::route::is_supported_count(ports.count_ones()) {
            continue;
        }
        tile.hash_shift = [0, 5, 10][rng.below(3) as usize];
        tile.table[0] = entry(ALL, ports);
        let input = rng.below(64) as u8;
        let routes = TileRoutes::new(input, &tile, CHIP);
        let destination = 128 + rng.below(10_000) as u16;
        let bits = rng.below(1 << 15) as u16;
        let list: Vec<u8> = (0..64).filter(|&p| ports >> p & 1 != 0).collect();
        let expected = |hash: u16| {
            let value = usize::from(u16::from(input) ^ destination ^ hash);
            Decision::Port(list[value % list.len()])
        };
        let hashed = RouteRequest {
            hashed: true,
            hash_bits: Some(bits),
            ..to(destination)
        };
        let (mut plain, mut bare) = (hashed, hashed);
        (plain.hashed, bare.hash_bits) = (false, None);
        let of_bits = expected(bits >> tile.hash_shift & 0xff);
        let cases = [
            (hashed, of_bits),
            (plain, expected(0)),
            (bare, Decision::NeedsHash),
        ];
        decides(&routes, &cases);
    }
}

/// BlackWidow sec. 7.8.2: rank 1 hashes bits 0..7, rank 2 bits 5..12, and rank 3 bits 10..14.
#[test]
fn each_rank_looks_at_its_own_hash_bits() {
    for (shift, seen) in [(0u8, 0x00ffu16), (5, 0x1fe0), (10, 0x7c00)] {
        let mut tile = tile_to(PortKind::Down, 0xffff_ffff << 32);
        tile.hash_shift = shift;
        let routes = TileRoutes::new(0, &tile, CHIP);
        let hash = |bits: u16| routes.hash(0x200, bits);
        for bit in 0..15 {
            assert_eq!(
                hash(0) != hash(1 << bit),
                seen >> bit & 1 != 0,
                "shift {shift} bit {bit}"
            );
        }
    }
}

#[test]
fn an_unsupported_count_uses_the_largest_supported_part() {
    let tile = tile_to(PortKind::Down, 0x1ff << 32);
    let routes = TileRoutes::new(0, &tile, CHIP);
    let mut seen = 0u64;
    for destination in 128..1_000 {
        let Decision::Port(port) = routes.decide(to(destination)) else {
            panic!("routed")
        };
        seen |= 1 << port;
    }
    assert_eq!(seen, 0xff << 32);
}

#[test]
fn nth_set_bit_counts_from_bit_zero() {
    let mut rng = Rng::new(9, 9);
    for _ in 0..10_000 {
        let mask = rng.next_u64() & rng.next_u64();
        let list: Vec<u8> = (0..64).filter(|&p| mask >> p & 1 != 0).collect();
        for (n, &position) in list.iter().enumerate() {
            assert_eq!(nth_set_bit(mask, n as u32), position);
        }
    }
    assert_eq!(nth_set_bit(u64::MAX, 63), 63);
}
