//! Canaries: every checker detects its violation.

use super::BlackWidow;
use super::tests::{clos, config, ranked, simulation, yarc};
use crate::topology::FoldedClos;
use phitwire::sim::direct::check::Violation;
use phitwire::sim::direct::model::Terminal as _;
use phitwire::sim::direct::source::HELD_BACK;
use phitwire::sim::direct::*;

/// Runs for a while, lets `spoil` break something, and runs to the end.
fn spoiled(
    topology: &FoldedClos,
    spoil: impl FnOnce(&mut DirectPart<BlackWidow>),
) -> Vec<Violation> {
    let mut simulation = simulation(topology, &config(300_000), 1);
    simulation.run_windows(50);
    let mut violations = Vec::new();
    simulation.check_now(&mut violations);
    assert_eq!(violations, [], "no violations before the sabotage");
    spoil(&mut simulation.direct_parts_mut()[0]);
    simulation.check_now(&mut violations);
    let report = simulation.run(&mut Serial, |_| {});
    violations.extend(report.violations);
    violations
}

fn has(violations: &[Violation], found: impl Fn(&Violation) -> bool) -> bool {
    violations.iter().any(found)
}

#[test]
fn nothing_is_found_where_nothing_was_spoiled() {
    assert_eq!(spoiled(&yarc(), |_| {}), []);
}

#[test]
fn a_lost_phit_is_missed() {
    let violations = spoiled(&yarc(), |part| assert!(part.routers[0].lose_phit()));
    assert!(has(&violations, |v| matches!(v, Violation::Phits { .. })));
    assert!(has(&violations, |v| matches!(v, Violation::Credits { .. })));
}

#[test]
fn a_lost_or_invented_credit_is_missed() {
    for change in [-1i32, 1] {
        let violations = spoiled(&yarc(), |part| {
            let credits = part.routers[0].credits(5, 1);
            part.routers[0].spoil_credits(5, 1, credits.wrapping_add_signed(change));
        });
        let credits = |v: &Violation| matches!(v, Violation::Credits { vc: 1, .. });
        assert!(has(&violations, credits));
    }
}

#[test]
fn a_full_queue_is_noticed() {
    // With a hot spot, give rank-2 routers too many credits for the rank-1 routers.
    let topology = clos(64);
    let mut config = config(900_000);
    config.traffic.pattern = "hotspot:0:90".parse().unwrap();
    let mut simulation = simulation(&topology, &config, 1);
    for router in &mut simulation.direct_parts_mut()[0].routers {
        (0..64).for_each(|port| router.spoil_credits(port, 0, 1_000));
    }
    simulation.run_windows(500);
    let mut violations = Vec::new();
    simulation.check_now(&mut violations);
    assert!(has(&violations, |v| matches!(v, Violation::Overflow(_))));
}

/// Flips `bits` in the first phit of that kind that is about to arrive at a terminal or router.
fn flip(part: &mut DirectPart<BlackWidow>, bits: u32, head: bool) {
    use phitwire_framing::yarc::phit::{Phit, PhitKind};
    let wanted = if head { PhitKind::Head } else { PhitKind::Body };
    let size = part.exchange.window;
    for slot in 0..part.exchange.read.arrivals.len() {
        let cycles = part.exchange.read.arrivals[slot].phits;
        for cycle in (0..size).filter(|cycle| cycles >> cycle & 1 != 0) {
            let phit = &mut part.exchange.read.phits[slot * size + cycle];
            if Phit::from_bits(*phit).kind() == wanted {
                *phit ^= bits;
                return;
            }
        }
    }
    panic!("no link carries such a phit");
}

#[test]
fn a_wrong_bit_is_noticed() {
    let violations = spoiled(&yarc(), |part| flip(part, 1 << 16, false));
    assert!(has(&violations, |v| matches!(v, Violation::Damaged(1))));
}

#[test]
fn a_wrong_destination_is_noticed() {
    // Damage packets at a terminal, after the last router.
    let violations = spoiled(&yarc(), |part| {
        let size = part.exchange.window;
        let first = part.exchange.terminal_slot(0) as usize;
        let arrivals = part.exchange.read.arrivals.clone();
        let head = (first..arrivals.len()).find_map(|slot| {
            let cycles = arrivals[slot].phits;
            let is_head = |&cycle: &usize| {
                let bits = part.exchange.read.phits[slot * size + cycle];
                cycles >> cycle & 1 != 0
                    && phitwire_framing::yarc::phit::Phit::from_bits(bits).is_head()
            };
            (0..size).find(is_head).map(|cycle| slot * size + cycle)
        });
        part.exchange.read.phits[head.expect("a head is under way")] ^= 1;
    });
    assert!(has(&violations, |v| matches!(v, Violation::Misrouted(1))));
    assert!(has(&violations, |v| matches!(
        v,
        Violation::Deliveries { .. }
    )));
}

#[test]
fn a_packet_too_many_is_noticed() {
    let violations = spoiled(&yarc(), |part| {
        part.endpoints.shared.tally.arrived_packets += 1
    });
    assert!(has(&violations, |v| matches!(
        v,
        Violation::Deliveries { .. }
    )));
    let violations = spoiled(&yarc(), |part| {
        part.endpoints.shared.tally.arrived_keys ^= 4
    });
    assert!(has(&violations, |v| matches!(
        v,
        Violation::Deliveries { .. }
    )));
}

#[test]
fn a_packet_that_would_go_up_again_is_noticed() {
    let mut topology = ranked(64, "2");
    topology.chips[0].routers[0].registers.root_detect.location ^= 0x4000;
    let mut simulation = simulation(&topology, &config(100_000), 1);
    let report = simulation.run(&mut Serial, |_| {});
    assert!(has(&report.violations, |v| matches!(
        v,
        Violation::UpDown(_)
    )));
}

#[test]
fn packets_that_never_leave_are_noticed() {
    let violations = spoiled(&yarc(), |part| part.routers[0].spoil_credits(9, 0, 0));
    assert!(has(&violations, |v| matches!(v, Violation::Starved { .. })));
}

#[test]
fn a_packet_without_a_path_is_noticed() {
    let mut topology = ranked(64, "2");
    topology.chips[0].routers[0].registers.table = Default::default();
    let mut simulation = simulation(&topology, &config(100_000), 1);
    let report = simulation.run(&mut Serial, |_| {});
    let refused = |v: &Violation| matches!(v, Violation::Refused(_));
    assert!(has(&report.violations, refused));
}

#[test]
fn overtaking_on_different_paths_is_noticed() {
    // If hash bits are declared irrelevant to the path, the checker expects order between requests
    // that they separate.
    let topology = ranked(64, "2");
    let violations = |knows_ways: bool| {
        let mut config = config(700_000);
        config.traffic.pattern = "bit-complement".parse().unwrap();
        let mut simulation = simulation(&topology, &config, 1);
        let shared = &mut simulation.direct_parts_mut()[0].endpoints.shared;
        assert_ne!(shared.format.deciding_hash_bits, 0);
        if !knows_ways {
            shared.format.deciding_hash_bits = 0;
        }
        simulation.run(&mut Serial, |_| {}).violations
    };
    assert_eq!(violations(true), []);
    let overtaken = |v: &Violation| matches!(v, Violation::Overtaken(_));
    assert!(has(&violations(false), overtaken));
}

#[test]
fn two_requests_exchanged_on_one_way_are_noticed() {
    // One router with the default traffic, and Clos networks whose uplinks are chosen by hash bits.
    // In the latter each processor sends to one other, so that requests on the same path soon
    // follow each other.
    for (topology, pattern) in [
        (yarc(), "uniform"),
        (clos(64), "bit-complement"),
        (ranked(64, "2"), "bit-complement"),
    ] {
        let mut config = config(300_000);
        config.traffic.pattern = pattern.parse().unwrap();
        // Each of the 63 sources sends about 15 requests to a processor.
        config.measure_cycles = 40_000;
        let mut simulation = simulation(&topology, &config, 1);
        simulation.run_windows(50);
        simulation.direct_parts_mut()[0].endpoints.terminals[5].swap_next();
        let violations = simulation.run(&mut Serial, |_| {}).violations;
        assert_eq!(violations, [Violation::Overtaken(1)], "{pattern}");
    }
}

#[test]
fn a_message_older_than_its_age_field_is_noticed() {
    // Sources sleep for longer than a packet can express, and then send the packets generated in
    // between.
    let mut config = config(1_000);
    config.traffic.participants = Some(2);
    let mut simulation = simulation(&yarc(), &config, 1);
    let reschedule = |simulation: &mut Simulation<BlackWidow>, from, to| {
        let terminals = &mut simulation.direct_parts_mut()[0].endpoints.terminals;
        terminals
            .iter_mut()
            .for_each(|t| t.common_mut().source.reschedule(from, to));
    };
    reschedule(&mut simulation, 0, HELD_BACK);
    simulation.run_windows((1 << 22) / 20 + 1);
    reschedule(&mut simulation, HELD_BACK, 0);
    let report = simulation.run(&mut Serial, |_| {});
    assert!(has(&report.violations, |v| *v
        == Violation::Misdated { bits: 22 }));
}
