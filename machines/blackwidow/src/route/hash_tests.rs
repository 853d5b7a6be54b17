//! The deterministic hash for streams of addresses (BlackWidow sec. 7.8.2), as in bulk transfers.
//! Other tests use random hash bits.

use super::*;
use phitwire::rng::Rng;

const UPLINKS: usize = 32;
/// A request's hash bits are address[20:6].
const HASH_SHIFT: u32 = 6;
const REQUESTS: u64 = 4_096;

/// A router whose ports 32 to 63 lead up, and which hashes 8 bits from `hash_shift` on.
fn router(hash_shift: u8) -> TileRoutes {
    let mut table = [RouteEntry::default(); TABLE_ENTRIES];
    table[0] = RouteEntry {
        subtree: Subtree {
            location: 0,
            mask: 0x7fff,
        },
        ports: 0xffff_ffff << 32,
    };
    let tile = TileRegisters {
        kind: PortKind::Down,
        root_detect: Subtree {
            location: 0,
            mask: 0x1f,
        },
        table,
        down_shift: 0,
        down_mask: 0x1f,
        port_map: core::array::from_fn(|port| port as u8),
        hash_shift,
        exit_mask: u64::MAX,
    };
    let ports = ChipPorts {
        in_use: u64::MAX,
        down: 0xffff_ffff,
    };
    TileRoutes::new(3, &tile, ports)
}

fn uplink(router: &TileRoutes, destination: u16, address: u64) -> usize {
    let request = RouteRequest {
        destination,
        adaptive: false,
        hashed: true,
        hash_bits: Some((address >> HASH_SHIFT & 0x7fff) as u16),
    };
    match router.decide(request) {
        Decision::Port(port) => usize::from(port) - UPLINKS,
        other => panic!("{address:#x}: {other:?}"),
    }
}

fn loads(router: &TileRoutes, addresses: impl Iterator<Item = u64>) -> [u64; UPLINKS] {
    let mut loads = [0; UPLINKS];
    addresses.for_each(|address| loads[uplink(router, 700, address)] += 1);
    loads
}

fn strided(stride: u64) -> impl Iterator<Item = u64> {
    (0..REQUESTS).map(move |number| 0x4_0000 + number * stride)
}

fn in_use(loads: &[u64; UPLINKS]) -> usize {
    loads.iter().filter(|&&load| load > 0).count()
}

/// "High diversity across packets": reading a block of memory by lines loads every uplink equally.
#[test]
fn a_block_transfer_loads_every_uplink_alike() {
    let alike = [REQUESTS / UPLINKS as u64; UPLINKS];
    assert_eq!(loads(&router(0), strided(64)), alike);
}

/// "Preserving in-order delivery of request packets on a per-cacheline basis."
#[test]
fn requests_of_a_line_take_one_uplink() {
    let router = router(0);
    let of = |address| uplink(&router, 700, address);
    assert!((0..64).all(|offset| of(0x8_0040 + offset) == of(0x8_0040)));
    assert_ne!(of(0x8_0040), of(0x8_0080));
}

/// Not published: each doubling of the stride removes one of the modulo's five bits, and from 2 KiB
/// on a stream uses one uplink. Only the input port and the destination spread such streams.
#[test]
fn powers_of_two_as_strides_leave_fewer_uplinks() {
    for (shift, uplinks) in [
        (0, 32),
        (1, 16),
        (2, 8),
        (3, 4),
        (4, 2),
        (5, 1),
        (9, 1),
        (14, 1),
    ] {
        let loads = loads(&router(0), strided(64 << shift));
        assert_eq!(in_use(&loads), uplinks, "stride {}", 64 << shift);
        let most = loads.into_iter().max();
        assert_eq!(most, Some(REQUESTS / uplinks as u64));
    }
    // Odd multiples of a line spread as well as a single line.
    assert_eq!(in_use(&loads(&router(0), strided(64 * 37))), UPLINKS);
}

/// "A parent of that router will see an incoming stream of packets with little or no diversity in
/// these bits": packets that arrived by one uplink leave by a single one if the parent hashes the
/// same bits, and by all with the rank-2 bits of BlackWidow sec. 7.8.2 (5 to 12).
#[test]
fn a_parent_needs_other_bits() {
    let child = router(0);
    let of_first = || strided(64).filter(|&address| uplink(&child, 700, address) == 0);
    assert_eq!(in_use(&loads(&router(0), of_first())), 1);
    let loads = loads(&router(5), of_first());
    assert_eq!(in_use(&loads), UPLINKS);
    assert_eq!(loads.iter().max(), loads.iter().min());
}

#[test]
fn random_lines_are_spread_evenly() {
    let mut rng = Rng::new(1, 21);
    let addresses: Vec<u64> = (0..REQUESTS).map(|_| rng.below(1 << 21)).collect();
    let loads = loads(&router(0), addresses.into_iter());
    // 128 are expected for each, with a standard deviation of 11.
    assert!(
        loads.iter().all(|load| (78..=178).contains(load)),
        "{loads:?}"
    );
}
