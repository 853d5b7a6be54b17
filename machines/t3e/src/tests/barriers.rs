use super::{Torus, World, puts, torus, world};
use crate::router::T3eRouter;
use phitwire::device::capability;
use phitwire::net::NodeRef;
use phitwire::nic::{BarrierReport, BarrierSpec, RunPhase};
use phitwire::sim::check::Allowance;
use phitwire::time::Duration;

fn run(world: &mut World<Torus>, specs: &[BarrierSpec], limit: Duration) -> Vec<BarrierReport> {
    for spec in specs {
        world.prepare_barriers(spec).expect("a tree");
    }
    for spec in specs {
        world.start_barriers(spec).expect("the unit is ready");
    }
    let end = world.fabric.now() + limit;
    loop {
        world.fabric.run_for(Duration::from_us(100));
        let reports: Vec<_> = specs
            .iter()
            .map(|spec| world.barrier_report(spec))
            .collect();
        let done = reports.iter().all(|report| report.phase == RunPhase::Done);
        if done || world.fabric.now() > end {
            assert!(done, "{reports:?}");
            return reports;
        }
    }
}

fn spec(unit: u8, processors: Vec<u16>, count: u64) -> BarrierSpec {
    BarrierSpec {
        run: 1,
        unit,
        processors,
        count,
        patience_ns: 1_000_000_000,
        ..BarrierSpec::default()
    }
}

/// Checks that no router received an invalid message.
fn nothing_strange(world: &World<Torus>) {
    for node in world.routers() {
        let counters = world.node::<T3eRouter>(node).core().barriers().counters();
        let strange = counters.damaged
            + counters.unit_unused
            + counters.not_from_a_child
            + counters.not_from_the_parent
            + counters.arrivals_repeated
            + counters.arrivals_early
            + counters.eurekas_late
            + counters.barriers_unasked
            + counters.eurekas_done_repeated;
        assert_eq!(strange, 0, "{counters:?}");
    }
}

#[test]
fn a_barrier_of_an_idle_machine_takes_three_clocks_a_hop() {
    let mut world = world(torus("4x2x2"), true);
    let specs = [spec(5, (0..16).collect(), 20)];
    let reports = run(&mut world, &specs, Duration::from_ms(20));
    let report = &reports[0];
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.barriers, 20);
    assert!(report.checks > 0);
    nothing_strange(&world);
    // Four hops from the centre, and one to the processor, both ways, of three clocks each.
    let clocks = report.latency.max_ns.div_ceil(13);
    assert!((24..=36).contains(&clocks), "{clocks} clocks");
}

#[test]
fn several_units_at_once_under_saturating_puts() {
    for paced in [false, true] {
        let mut world = world(torus("3x2x2"), paced);
        let traffic = puts(&world, 9, 1_000);
        world.start_traffic(&traffic).expect("traffic");
        let all = || (0..12).collect::<Vec<u16>>();
        let mut eureka = spec(9, all(), 101);
        eureka.eureka = true;
        let mut skewed = spec(31, vec![0, 3, 5, 11], 100);
        skewed.skew_ns = 5_000;
        let specs = [
            spec(3, all(), 200),
            spec(7, all().into_iter().filter(|n| n % 2 == 1).collect(), 200),
            eureka,
            skewed,
        ];
        let reports = run(&mut world, &specs, Duration::from_ms(500));
        for report in &reports {
            assert!(report.is_clean(), "{report:?}");
            assert!(report.checks > 0);
        }
        let done: Vec<_> = reports.iter().map(|report| report.barriers).collect();
        assert_eq!(done[0], 200);
        assert_eq!(done[3], 100);
        assert!(reports[2].eurekas >= 50 && reports[2].eureka_latency.count() > 0);
        nothing_strange(&world);
        assert!(world.finish(9, Duration::from_ms(2_000)));
        let found = world.drain(9, None, Allowance::default(), Duration::from_ms(50));
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn a_run_ends_at_all_participants_after_the_same_barrier() {
    let mut world = world(torus("2x2x2"), false);
    let mut timed = spec(0, (0..8).collect(), 0);
    timed.duration_ns = 200_000;
    let reports = run(&mut world, &[timed.clone()], Duration::from_ms(50));
    assert!(reports[0].is_clean(), "{:?}", reports[0]);
    // Run again immediately on the same unit.
    timed.run = 2;
    timed.eureka = true;
    let reports = run(&mut world, &[timed], Duration::from_ms(50));
    assert!(reports[0].is_clean(), "{:?}", reports[0]);
    assert!(reports[0].eurekas > 0);
}

#[test]
fn a_missing_processor_is_waited_for_until_the_patience_ends() {
    let mut world = world(torus("2x2x2"), false);
    let mut spec = spec(4, (0..8).collect(), 10);
    spec.patience_ns = 500_000;
    world.prepare_barriers(&spec).expect("a tree");
    for &processor in &spec.processors[1..] {
        let node = world.id(NodeRef::Processor(processor.into()));
        let started = world.fabric.command(node, |device, now| {
            device
                .need::<capability::Barriers>()?
                .start(now, spec.clone())
        });
        started.expect("the unit is ready");
    }
    world.fabric.run_for(Duration::from_ms(2));
    let node = world.id(NodeRef::Processor(3));
    let report = world
        .fabric
        .node(node)
        .barriers()
        .and_then(|runs| runs.report(4));
    let report = report.expect("a run");
    assert_eq!((report.phase, report.timed_out), (RunPhase::Done, 1));
    assert!(!report.is_clean());
}
