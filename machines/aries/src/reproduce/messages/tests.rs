use super::*;
use crate::reproduce::messages::figures;
use phitwire::reproduce::Table;

fn outside(table: &Table) -> usize {
    table.rows.iter().filter(|row| !row.within()).count()
}

fn with(change: impl Fn(&mut HostTimes)) -> Setup {
    let mut setup = Setup::pair(1);
    change(&mut setup.host);
    setup
}

fn small_group() -> Setup {
    let mut setup = Setup::pair(1);
    setup.shape.nics = 4;
    setup.shape.blades = 4;
    setup
}

#[test]
fn messages_take_the_times_of_the_white_paper() {
    let setup = Setup::pair(1);
    for table in [
        figures::figure11(&setup),
        figures::figure12(&setup),
        figures::figure13(&setup),
        figures::figure14(&setup),
        figures::figure15(&small_group(), &[4, 16]),
        figures::hop(&setup),
        figures::amo(&setup),
    ] {
        let table = table.unwrap();
        assert_eq!(outside(&table), 0, "{table:#?}");
    }
}

/// An 8-byte put is the sum of its stages: issue, two crossings, two transfers over PCI Express,
/// and the network there and back.
#[test]
fn a_put_is_the_sum_of_its_stages() {
    let host = HostTimes::PAPER;
    let stages = 1e9 / host.issue_per_s as f64
        + 2.0 * host.crossing_ns as f64
        + 2.0 * (8 + host.pcie_overhead_bytes) as f64 / 16.0
        // Two links of 40 cycles, Netlink 6 + 6, a router of 47 cycles, there and back.
        + 2.0 * (2.0 * 40.0 + 12.0 + 47.0) * 1.143;
    let put = Setup::pair(1).latency_ns(Operation::Put, 8).unwrap();
    assert!((put - stages).abs() < 3.0, "{put} {stages}");
}

/// The interface to the NIC is not occupied by a message that still crosses it.
#[test]
fn gets_are_as_fast_both_ways_as_one_way() {
    let rate = |both_ways| {
        let load = Load {
            op: Operation::Get,
            both_ways,
            ..Load::puts(8, 7)
        };
        Setup::pair(1).rate(load, 50).unwrap()
    };
    let (one, both) = (rate(false), rate(true));
    assert!((both / one - 1.0).abs() < 0.01, "{one} {both}");
}

/// Canaries: each constant moves a number out of its tolerance.
#[test]
fn another_constant_is_reported() {
    let crossing = figures::figure11(&with(|host| host.crossing_ns = 300));
    assert!(outside(&crossing.unwrap()) > 0);
    let read = figures::figure11(&with(|host| host.read_ns = 400));
    assert_eq!(outside(&read.unwrap()), 1);
    let line = figures::figure12(&with(|host| host.line_cycles = 8));
    assert!(outside(&line.unwrap()) > 0);
    let overhead = figures::figure12(&with(|host| host.pcie_overhead_bytes = 80));
    assert!(outside(&overhead.unwrap()) > 0);
    let issue = figures::figure13(&with(|host| host.issue_per_s = 5_000_000));
    assert_eq!(outside(&issue.unwrap()), 2);
    let hit = figures::amo(&with(|host| host.amo_hit_cycles = 3));
    assert_eq!(outside(&hit.unwrap()), 1);
    let miss = figures::amo(&with(|host| host.amo_miss_ns = 30));
    assert_eq!(outside(&miss.unwrap()), 1);
    let mut slow = small_group();
    slow.host.engine_step_ns = 10_000;
    let step = figures::figure15(&slow, &[16]);
    assert_eq!(outside(&step.unwrap()), 1);
}
