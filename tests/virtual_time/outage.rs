//! Links that are cut, routers that are restarted.

use phitwire::device::{DeviceEvent, LinkFault};
use phitwire::link::{LinkEvent, LinkState};
use phitwire::net::NodeRef;
use phitwire::nic::{TrafficPattern, TrafficReport, TrafficSpec};
use phitwire::sim::check::Allowance;
use phitwire::sim::{LinkId, NodeId};
use phitwire::time::Duration;
use phitwire_blackwidow::router::Yarc;
use phitwire_blackwidow::topology::{BlackWidowSpec, ClosSettings};

use crate::harness::{Network, finish, link_counter, live, run, uniform, up};

const LOSSES: Allowance = Allowance::DESTROYED;

fn fault(network: &mut Network, (node, port): (NodeId, u8), fault: LinkFault) {
    let done = network
        .fabric
        .command(node, |device, now| device.link_fault(now, port, fault));
    done.expect("the port has a link");
}

/// The links between routers.
fn sidelinks(network: &Network) -> Vec<LinkId> {
    let is_side = |node| matches!(node, NodeRef::Chip(_));
    let links = &network.topology().links;
    (0..links.len())
        .filter(|i| is_side(links[*i].a.node) && is_side(links[*i].b.node))
        .map(|i| LinkId(i as u32))
        .collect()
}

/// Starts `traffic` and lets it flow for `us` microseconds.
fn flow(network: &mut Network, traffic: &TrafficSpec, us: u64) {
    network.start_traffic(traffic).expect("the run is possible");
    network.fabric.run_for(Duration::from_us(us));
}

fn own_link(network: &Network, processor: u32) -> LinkId {
    let link = network.link_at(NodeRef::Processor(processor), 0);
    link.expect("every processor has a link")
}

/// Runs the same traffic again and returns its report.
fn again(network: &mut Network, traffic: TrafficSpec) -> TrafficReport {
    let again = TrafficSpec { run: 2, ..traffic };
    run(network, &again, Duration::from_ms(60_000))
}

#[test]
fn a_link_cut_for_ten_seconds_loses_nothing() {
    for own in [true, false] {
        let mut network = up(&live(8, 4), 3);
        let link = [sidelinks(&network)[0], own_link(&network, 2)][usize::from(own)];
        let traffic = uniform(&network, 1, 2_000);
        flow(&mut network, &traffic, 500);
        assert!(network.report(1).acknowledged > 0, "traffic flows");
        network.fabric.cut(link);
        network.fabric.run_for(Duration::from_ms(10_000));
        // Part of the traffic still waits for the link.
        assert!(network.report(1).sent < 16_000);
        assert!(network.fabric.wire_counters().lost_in_cut > 0);
        network.fabric.restore(link);
        let restored = network.fabric.now();
        let limit = Duration::from_ms(5_000);
        let report = finish(&mut network, 1, limit, Allowance::default());
        let counts = [report.sent, report.delivered, report.timed_out];
        assert_eq!(counts, [16_000, 16_000, 0]);
        let resumed = network.fabric.now().since(restored);
        let is_soon = resumed < Duration::from_ms(1_000);
        assert!(is_soon, "back to work after {resumed:?}");
    }
}

/// R1.5 with two sidelinks; impatient, so that the tests see the effect of timeouts.
fn two_sidelinks() -> BlackWidowSpec {
    let settings = ClosSettings {
        request_timeout_ms: 400,
        forward_progress_ms: 100,
        ..ClosSettings::default()
    };
    BlackWidowSpec {
        uplinks: Some(2),
        settings,
        ..live(8, 4)
    }
}

/// Removes a port from every routing table entry of a router, as system software does for a link
/// that stays down (BlackWidow sec. 7.7).
fn route_around(network: &mut Network, link: LinkId) {
    for (node, dead) in network.fabric.ends(link) {
        // Sidelinks end at routers, so the node is one.
        network.command(node, |router: &mut Yarc, _| {
            let in_use = router.get("chip.ports_in_use").expect("a register");
            for tile in (0..64).filter(|tile| in_use >> tile & 1 == 1) {
                for entry in 0..8 {
                    let name = format!("tile{tile}.table.{entry}.ports");
                    let ports = router.get(&name).expect("a register");
                    if ports >> dead & 1 == 1 {
                        let set = router.set(&name, ports & !(1 << dead));
                        set.expect("a writable register");
                    }
                }
            }
        });
    }
}

#[test]
fn a_link_taken_down_for_good_leaves_the_rest_flowing() {
    for by_command in [true, false] {
        let mut network = up(&two_sidelinks(), 4);
        let links = sidelinks(&network);
        assert_eq!(links.len(), 2);
        let traffic = uniform(&network, 1, 3_000);
        flow(&mut network, &traffic, 500);
        if by_command {
            let end = network.fabric.ends(links[0])[0];
            fault(&mut network, end, LinkFault::Down);
        } else {
            network.fabric.cut(links[0]);
        }
        // Traffic that needs the failed link times out again and again.
        network.fabric.run_for(Duration::from_ms(4_000));
        let waiting = network.report(1);
        // Requests over the failed link are reported.
        assert!(waiting.timed_out > 0);
        route_around(&mut network, links[0]);
        let report = finish(&mut network, 1, Duration::from_ms(200_000), LOSSES);
        assert_eq!(report.sent, 24_000);
        // The late requests are those that the failed link held, and after them at most a window
        // per source.
        let late = report.timed_out;
        assert!(late < 24_000 / 2, "{late} timed out");
        let clean = run_clean_on_what_is_left(&mut network, &traffic);
        assert_eq!(clean, 24_000, "by command: {by_command}");
    }
}

/// Runs the traffic again after the change of tables; returns the number of messages delivered.
fn run_clean_on_what_is_left(network: &mut Network, before: &TrafficSpec) -> u64 {
    let again = TrafficSpec {
        run: 2,
        ..before.clone()
    };
    network.start_traffic(&again).expect("the run is possible");
    let done = network.finish(2, Duration::from_ms(60_000));
    let report = network.report(2);
    assert!(done, "{report:#?}");
    let wrong = [report.lost(), report.timed_out, report.duplicated];
    assert_eq!(wrong, [0; 3], "{report:#?}");
    report.delivered
}

#[test]
fn traffic_that_needs_no_dead_link_does_not_notice() {
    let mut network = up(&two_sidelinks(), 5);
    for link in sidelinks(&network) {
        network.fabric.cut(link);
    }
    // Send within the first subtree only.
    let traffic = TrafficSpec {
        processors: vec![0, 1, 2, 3],
        ..uniform(&network, 1, 500)
    };
    flow(&mut network, &traffic, 0);
    assert!(network.finish(1, Duration::from_ms(1_000)));
    let report = network.report(1);
    assert_eq!((report.delivered, report.timed_out), (2_000, 0));
}

#[test]
fn a_restarted_router_costs_what_it_held_and_no_more() {
    let mut network = up(&two_sidelinks(), 6);
    let traffic = uniform(&network, 1, 4_000);
    flow(&mut network, &traffic, 700);
    let before = network.report(1);
    let flows = before.acknowledged > 0 && before.outstanding > 0;
    assert!(flows, "{before:?}");
    let router = network.routers().next().expect("there are routers");
    network.restart(router).expect("a sound topology");
    let report = finish(&mut network, 1, Duration::from_ms(60_000), LOSSES);
    assert_eq!(report.sent, 32_000);
    assert!(report.timed_out > 0, "what the router held is reported");
    // Only requests that were outstanding when the process was killed may be late.
    let late = report.timed_out;
    assert!(late <= before.outstanding, "{late} of {before:?}");
    // Four processors and two sidelinks see a new incarnation.
    let mut restarts_seen = 0;
    while let Some(event) = network.fabric.poll_event() {
        if let DeviceEvent::Link { event, .. } = event.event {
            restarts_seen += u32::from(matches!(event, LinkEvent::PeerRestarted { .. }));
        }
    }
    assert_eq!(restarts_seen, 6);
    let report = again(&mut network, traffic);
    assert_eq!(report.delivered, 32_000, "everything after flows again");
}

#[test]
fn a_restarted_network_interface_is_served_again() {
    let mut network = up(&two_sidelinks(), 7);
    let traffic = uniform(&network, 1, 4_000);
    flow(&mut network, &traffic, 700);
    let victim = network.nics().nth(3).expect("there are eight");
    network.restart(victim).expect("a sound topology");
    assert!(network.finish(1, Duration::from_ms(60_000)));
    let report = network.report(1);
    let wrong = [report.duplicated, report.misordered, report.corrupted];
    assert_eq!(wrong, [0; 3]);
    assert_eq!(again(&mut network, traffic).delivered, 32_000);
}

#[test]
fn a_link_taken_down_and_up_by_command_comes_back() {
    let mut network = up(&two_sidelinks(), 8);
    let traffic = uniform(&network, 1, 2_000);
    let link = own_link(&network, 0);
    let (node, port) = network.fabric.ends(link)[1];
    flow(&mut network, &traffic, 300);
    fault(&mut network, (node, port), LinkFault::Down);
    network.fabric.run_for(Duration::from_ms(50));
    let state = |network: &Network| {
        let link = network.fabric.node(node).link(port);
        link.map(|link| link.state())
    };
    assert_eq!(state(&network), Some(LinkState::Disabled));
    fault(&mut network, (node, port), LinkFault::Up);
    let report = finish(&mut network, 1, Duration::from_ms(60_000), LOSSES);
    assert_eq!(state(&network), Some(LinkState::Active));
    assert_eq!(report.sent, 16_000);
    assert_eq!(again(&mut network, traffic).delivered, 16_000);
}

#[test]
fn a_forced_retry_resends_without_harm() {
    let mut network = up(&live(8, 4), 9);
    let traffic = TrafficSpec {
        pattern: TrafficPattern::Tornado,
        ..uniform(&network, 1, 2_000)
    };
    flow(&mut network, &traffic, 0);
    for round in 0..40 {
        network.fabric.run_for(Duration::from_us(50));
        let links = network.fabric.links() as u32;
        for end in network.fabric.ends(LinkId(round % links)) {
            fault(&mut network, end, LinkFault::ForceRetry);
        }
    }
    let limit = Duration::from_ms(1_000);
    finish(&mut network, 1, limit, Allowance::default());
    assert!(link_counter(&network, "tx_rewinds_forced") > 0);
    assert!(link_counter(&network, "rx_duplicate_phits") > 0);
}

/// Runs 3 s of traffic on the smallest R1.5, and cuts its sidelinks for 0.6 s each: alternately, or
/// always the same one. Times are a tenth of those of `quickstart`.
fn cut_one_at_a_time(seed: u64, same: bool, gap_ms: u64) -> TrafficReport {
    let mut spec = two_sidelinks();
    spec.settings = ClosSettings {
        request_timeout_ms: 2_000,
        ..ClosSettings::default()
    };
    let mut network = up(&spec, seed);
    let traffic = TrafficSpec {
        rate: 400,
        window: 1_024,
        duration_ns: 3_000_000_000,
        ..uniform(&network, 1, 0)
    };
    flow(&mut network, &traffic, 100_000);
    for cut in 0..4 {
        let link = sidelinks(&network)[if same { 0 } else { cut % 2 }];
        network.fabric.cut(link);
        network.fabric.run_for(Duration::from_ms(600));
        network.fabric.restore(link);
        network.fabric.run_for(Duration::from_ms(gap_ms));
    }
    assert!(network.finish(1, Duration::from_ms(60_000)));
    network.report(1)
}

/// Cuts of 0.6 s make requests time out (2 s) only if they follow each other on one link without a
/// gap, like one long cut. Cuts of both links in turn delay a packet by at most two of them.
#[test]
fn short_cuts_of_sidelinks_time_nothing_out_unless_they_are_one_long_one() {
    for (same, gap_ms, longest_ms) in [
        (false, 0, 1_300),
        (false, 100, 700),
        (true, 100, 700),
        (true, 0, 2_100),
    ] {
        let report = cut_one_at_a_time(1, same, gap_ms);
        let is_long = same && gap_ms == 0;
        assert_eq!(report.timed_out > 0, is_long, "{report:?}");
        assert_eq!(report.sent, report.acknowledged + report.timed_out);
        let slowest_ms = report.latency.max_ns / 1_000_000;
        assert!(
            (longest_ms - 200..longest_ms).contains(&slowest_ms),
            "{slowest_ms}"
        );
    }
}
