//! Failures of links, processors and boards while packets are in flight.

use std::collections::{BTreeMap, BTreeSet};

use super::shape;
use crate::pe::Pe;
use crate::router::T3eRouter;
use crate::topology::{Torus, TorusSpec};
use phitwire::device::{LinkFault, Rerouting, TrafficRuns};
use phitwire::net::{Faults, NodeRef, Reroutable};
use phitwire::nic::{Operation, RoutingMode, TrafficReport, TrafficSpec};
use phitwire::sim::check::Allowance;
use phitwire::sim::{LinkId, LinkSpec, NodeId, World};
use phitwire::time::Duration;

const LIMIT: Duration = Duration::from_ms(400);
/// A restarted NIC sends no requests for two seconds.
const LONG: Duration = Duration::from_ms(3_000);

fn world(size: &str, spares: u32) -> World<Torus> {
    let mut spec = TorusSpec {
        spares,
        ..TorusSpec::new(shape(size))
    };
    spec.settings.request_timeout_ms = 20;
    let mut world = World::new(spec.torus(), 12, LinkSpec::default()).expect("a world");
    assert!(world.bring_up(LIMIT), "{}", world.link_states());
    world
}

fn traffic(run: u64, processors: impl Iterator<Item = u16>, ways: RoutingMode) -> TrafficSpec {
    TrafficSpec {
        run,
        processors: processors.collect(),
        op: Operation::Put,
        size: 64,
        window: 64,
        count: 1_500,
        ways: Some(ways),
        ..TrafficSpec::default()
    }
}

/// Quiesces, drains, installs and releases, like `phitwire manage`.
fn reroute(world: &mut World<Torus>, faults: &Faults) {
    let torus = world.topology().clone();
    let routed = torus.routed(faults);
    assert_eq!(routed.refused(), None);
    let has_tables = |node: &u32| !faults.routers.contains(node) || faults.isolated.contains(node);
    let nodes: Vec<u32> = (0..torus.shape().nodes()).filter(has_tables).collect();
    let ids: Vec<_> = nodes
        .iter()
        .map(|&node| world.id(NodeRef::Chip(node)))
        .collect();
    for &id in &ids {
        world.command(id, |router: &mut T3eRouter, _| Rerouting::quiesce(router));
    }
    let drained =
        world
            .fabric
            .run_until_done(Duration::from_ms(10), Duration::from_us(5), |fabric| {
                let is_drained = |id| {
                    let router: &T3eRouter = fabric.node(id).downcast_ref().expect("a router");
                    router.routing().drained
                };
                ids.iter().all(|&id| is_drained(id))
            });
    assert!(drained, "routers drain");
    for (&id, &node) in ids.iter().zip(&nodes) {
        let tables = routed.tables(node).expect("tables");
        world.command(id, |router: &mut T3eRouter, _| {
            router.install(tables).expect("the router's own tables");
            assert_eq!(Some(router.routing().digest), routed.digest(node));
        });
    }
    for node in 0..torus.shape().nodes() {
        let id = world.id(NodeRef::Processor(node));
        let number = routed.number(node).expect("a number");
        world.command(id, |pe: &mut Pe, _| {
            pe.renumber(number).expect("numbers change")
        });
    }
    for &id in &ids {
        world.command(id, |router: &mut T3eRouter, _| Rerouting::release(router));
    }
}

/// Cuts a cable and reports that to both ends, because in virtual time silence is never noticed.
fn cut(world: &mut World<Torus>, link: LinkId) {
    world.fabric.cut(link);
    notify_ends(world, link, LinkFault::Down);
    world.fabric.run_for(Duration::from_us(20));
}

fn notify_ends(world: &mut World<Torus>, link: LinkId, fault: LinkFault) {
    for (node, port) in world.fabric.ends(link) {
        world.fabric.command(node, |device, now| {
            device
                .link_fault(now, port, fault)
                .expect("the link accepts the fault");
        });
    }
}

fn counted(world: &World<Torus>, counter: &str) -> u64 {
    let mut sum = 0;
    for router in world.routers() {
        world
            .fabric
            .node(router)
            .for_each_counter(&mut |name, value| {
                let own = name.rsplit('.').next();
                sum += if own == Some(counter) { value } else { 0 };
            });
    }
    sum
}

fn assert_honest(report: &TrafficReport) {
    let TrafficReport {
        sent,
        acknowledged,
        timed_out,
        refused,
        corrupted,
        duplicated,
        misordered,
        ..
    } = *report;
    assert_eq!(sent, acknowledged + timed_out + refused);
    assert_eq!((corrupted, duplicated, misordered), (0, 0, 0), "{report:?}");
}

fn assert_whole(world: &mut World<Torus>, spec: &TrafficSpec) {
    world.start_traffic(spec).expect("traffic");
    let ends = world.finish(spec.run, LONG);
    let report = world.report(spec.run);
    assert!(ends, "{report:?} {}", world.link_states());
    assert_honest(&report);
    assert_eq!(report.sent, report.acknowledged, "{report:?}");
    assert!(report.sent > 0);
    let violations = world.drain(spec.run, None, Allowance::DESTROYED, LIMIT);
    assert!(violations.is_empty(), "{violations:?}");
}

#[test]
fn packets_that_had_not_entered_a_cut_link_are_not_lost() {
    for (ways, reroutes) in [
        (RoutingMode::Adaptive0, false),
        (RoutingMode::Adaptive0, true),
        (RoutingMode::Ordered, true),
        (RoutingMode::Ordered, false),
    ] {
        let mut world = world("3x3x3", 0);
        let mut spec = traffic(1, 0..27, ways);
        spec.count = 4_000;
        world.start_traffic(&spec).expect("traffic");
        world.fabric.run_for(Duration::from_us(5));
        let link = world.link_at(NodeRef::Chip(13), 0).expect("a link");
        cut(&mut world, link);
        assert!(
            counted(&world, "kept_packets") > 0,
            "some packets were on their way there"
        );
        if reroutes {
            let faults = Faults {
                links: BTreeSet::from([link.0]),
                ..Faults::default()
            };
            reroute(&mut world, &faults);
        } else {
            world.fabric.restore(link);
            notify_ends(&mut world, link, LinkFault::Up);
        }
        assert!(world.finish(1, LIMIT), "{}", world.link_states());
        let report = world.report(1);
        assert_honest(&report);
        // Packets that are cut in two, or are in the link, are lost.
        let in_link = counted(&world, "tx_discarded_flits")
            + counted(&world, "rx_truncated_packets")
            + counted(&world, "cut_packets");
        let lost = report.timed_out + report.refused;
        assert!(lost <= in_link, "{lost} lost, {in_link} flits in the link");
        assert_eq!(counted(&world, "unroutable_packets"), 0);
        let resent = counted(&world, "resent_packets");
        assert_eq!(resent, counted(&world, "kept_packets"));
        if reroutes {
            let before = counted(&world, "kept_packets");
            assert_whole(&mut world, &traffic(2, 0..27, ways));
            assert_eq!(
                counted(&world, "kept_packets"),
                before,
                "routes lead around it"
            );
        }
    }
}

#[test]
fn a_spare_takes_over_under_the_same_number() {
    let mut world = world("3x3x3", 1);
    let all = || 0..26;
    assert_whole(&mut world, &traffic(1, all(), RoutingMode::Adaptive0));
    let mut spec = traffic(2, all(), RoutingMode::Adaptive0);
    spec.count = 4_000;
    world.start_traffic(&spec).expect("traffic");
    world.fabric.run_for(Duration::from_us(5));
    // The processor of node 13 fails.
    let victim = world.id(NodeRef::Processor(13));
    let link = world.link_at(NodeRef::Processor(13), 0).expect("a link");
    world.fabric.suspend(victim);
    cut(&mut world, link);
    let faults = Faults {
        replaced: BTreeMap::from([(13, 26)]),
        ..Faults::default()
    };
    reroute(&mut world, &faults);
    let own = world.id(NodeRef::Processor(26));
    assert_eq!(world.command(own, |pe: &mut Pe, _| pe.number()), Some(13));
    // The run of the failed processor never ends; those of the working ones do.
    world.fabric.run_for(Duration::from_ms(60));
    for nic in world.nics().filter(|&nic| nic != victim && nic != own) {
        let traffic = world.fabric.node(nic).traffic().expect("traffic");
        let report = traffic.report(Some(2)).expect("the NIC took part");
        assert_honest_source(&report);
        assert_eq!(report.outstanding, 0);
    }
    assert_whole_without(
        &mut world,
        &traffic(3, all(), RoutingMode::Adaptive0),
        victim,
    );
    let taken = world
        .fabric
        .node(own)
        .traffic()
        .and_then(|traffic| traffic.report(Some(3)));
    assert!(
        taken.expect("a report").delivered > 0,
        "packets for 13 reach the spare"
    );
}

fn assert_honest_source(report: &TrafficReport) {
    let answered = report.acknowledged + report.timed_out + report.refused;
    assert_eq!(report.sent, answered, "{report:?}");
    assert_eq!((report.corrupted, report.duplicated), (0, 0), "{report:?}");
}

/// Like [`assert_whole`], while one NIC is stopped.
fn assert_whole_without(world: &mut World<Torus>, spec: &TrafficSpec, dead: NodeId) {
    let living: Vec<_> = world.nics().filter(|&nic| nic != dead).collect();
    for &nic in &living {
        let start = |pe: &mut Pe, now| TrafficRuns::start(pe, now, spec.clone());
        world.command(nic, start).expect("traffic");
    }
    let done = world
        .fabric
        .run_until_done(LIMIT, Duration::from_us(10), |fabric| {
            living.iter().all(|&nic| {
                let traffic = fabric.node(nic).traffic().expect("traffic");
                let report = traffic.report(Some(spec.run));
                report.is_some_and(|report| report.phase == phitwire::nic::RunPhase::Done)
            })
        });
    assert!(done, "the reroute does not end");
    for &nic in &living {
        let traffic = world.fabric.node(nic).traffic().expect("traffic");
        let report = traffic.report(Some(spec.run)).expect("a report");
        assert_honest_source(&report);
        assert_eq!((report.sent, report.misordered), (report.acknowledged, 0));
        assert_eq!(report.sent, spec.count);
    }
}

#[test]
fn a_board_is_isolated_replaced_and_returned_while_others_go_on() {
    let mut world = world("3x3x3", 0);
    let others: Vec<u16> = (0..27).filter(|number| *number != 13).collect();
    let mut spec = traffic(1, others.into_iter(), RoutingMode::Adaptive0);
    spec.count = 6_000;
    world.start_traffic(&spec).expect("traffic");
    world.fabric.run_for(Duration::from_us(5));
    let faults = Faults {
        routers: BTreeSet::from([13]),
        isolated: BTreeSet::from([13]),
        ..Faults::default()
    };
    reroute(&mut world, &faults);
    world.fabric.run_for(Duration::from_us(5));
    // Remove the board, whose state is lost, and start a new one.
    for node in [NodeRef::Chip(13), NodeRef::Processor(13)] {
        let id = world.id(node);
        world.restart(id).expect("a node");
    }
    world.fabric.run_for(Duration::from_us(100));
    assert!(world.bring_up(LIMIT));
    reroute(&mut world, &Faults::default());
    assert!(world.finish(1, LIMIT));
    let report = world.report(1);
    assert_honest(&report);
    assert_eq!(report.sent, report.acknowledged, "the others lose nothing");
    assert_eq!(report.sent, 26 * 6_000);
    assert_whole(&mut world, &traffic(2, 0..27, RoutingMode::Ordered));
}
