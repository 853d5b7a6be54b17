//! Noise on lanes, soft errors, poisoned packets.

use phitwire::device::LinkFault;
use phitwire::link::LinkState;
use phitwire::link::impair::Probability;
use phitwire::net::NodeRef;
use phitwire::nic::{Operation, RunPhase, TrafficPattern, TrafficSpec};
use phitwire::sim::check::Allowance;
use phitwire::sim::{Direction, LinkId, LinkSpec};
use phitwire::time::Duration;
use phitwire_blackwidow::nic::BlackWidowNic;
use phitwire_blackwidow::router::{Yarc, counted};
use phitwire_blackwidow::topology::{BlackWidowSpec, ClosSettings};

use crate::harness::{
    Network, bring_up, finish, generate, impair_all, link_counter, live, paced, run, uniform, up,
};

/// Noise on a lane from processor 0 to its router, one bit in a thousand.
fn noise(network: &mut Network, lane: u8) -> LinkId {
    let link = network.link_at(NodeRef::Processor(0), 0);
    let link = link.expect("every processor has a link");
    let direction = match network.fabric.ends(link)[0].0 {
        node if node == network.id(NodeRef::Processor(0)) => Direction::AToB,
        _ => Direction::BToA,
    };
    let noise = (lane, Probability::from_ratio(1, 1000));
    network.fabric.lane_noise(link, direction, Some(noise));
    link
}

fn impatient(mut spec: BlackWidowSpec) -> BlackWidowSpec {
    spec.settings = ClosSettings {
        lane_retry_threshold: 10,
        request_timeout_ms: 100,
        ..spec.settings
    };
    spec
}

/// 32-byte puts from processor 0 to processor 1, limited by processor 0's link.
fn one_way(run: u64, count: u64) -> TrafficSpec {
    TrafficSpec {
        run,
        pattern: TrafficPattern::List {
            destinations: vec![1],
        },
        processors: vec![0],
        size: 32,
        count,
        window: 256,
        ..TrafficSpec::default()
    }
}

#[test]
fn lanes_degrade_from_three_to_two_to_one_and_throughput_with_them() {
    let mut network = up(&impatient(paced(2, 2)), 1);
    let rate = |network: &mut Network, run_id| {
        run(network, &one_way(run_id, 4_000), Duration::from_ms(1_000)).messages_per_second() as f64
    };
    let three = rate(&mut network, 1);
    let lanes = |network: &Network| {
        let node = network.fabric.node(network.id(NodeRef::Processor(0)));
        node.link(0).map(|link| link.tx_lanes())
    };
    assert_eq!(lanes(&network), Some(0b111));

    noise(&mut network, 1);
    rate(&mut network, 2);
    assert_eq!(lanes(&network), Some(0b101), "lane 1 was too noisy");
    let two = rate(&mut network, 3);

    noise(&mut network, 0);
    rate(&mut network, 4);
    assert_eq!(lanes(&network), Some(0b100), "lane 0 was too noisy");
    let one = rate(&mut network, 5);
    let (two_thirds, one_third) = (two / three, one / three);
    assert!((0.62..0.71).contains(&two_thirds), "{two} against {three}");
    assert!((0.31..0.36).contains(&one_third), "{one} against {three}");

    // Lose the last lane: the link goes down, and the request times out.
    noise(&mut network, 2);
    let last = TrafficSpec {
        duration_ns: 100_000,
        ..one_way(6, 0)
    };
    network.start_traffic(&last).expect("the run is possible");
    let done = network.finish(6, Duration::from_ms(10_000));
    assert!(done, "{:?}", network.report(6));
    let report = network.report(6);
    assert!(report.timed_out + report.unreachable > 0, "{report:?}");
    let link = network.link_at(NodeRef::Processor(0), 0).expect("a link");
    for (node, port) in network.fabric.ends(link) {
        let link = network.fabric.node(node).link(port);
        assert_eq!(link.map(|link| link.state()), Some(LinkState::Dead));
    }
}

#[test]
fn a_threshold_of_zero_never_gives_a_lane_up() {
    let mut spec = impatient(live(2, 2));
    spec.settings.lane_retry_threshold = 0;
    spec.settings.request_timeout_ms = 20_000;
    let mut network = up(&spec, 2);
    noise(&mut network, 1);
    run(&mut network, &one_way(1, 3_000), Duration::from_ms(20_000));
    assert!(link_counter(&network, "lane1_retries") > 10);
    // Only the noisy lane is charged.
    assert_eq!(link_counter(&network, "lane0_retries"), 0);
    let node = network.fabric.node(network.id(NodeRef::Processor(0)));
    assert_eq!(node.link(0).expect("a link").tx_lanes(), 0b111);
}

#[test]
fn a_soft_error_costs_one_message_wherever_it_strikes() {
    // Over two routers; the error strikes the source's link, then the link between the routers,
    // then the link to the target.
    for hop in 0..3 {
        let mut network = up(&impatient(live(8, 4)), 3);
        let spec = TrafficSpec {
            pattern: TrafficPattern::List {
                destinations: vec![4],
            },
            addresses: 1,
            ..one_way(1, 2_000)
        };
        network.start_traffic(&spec).expect("the run is possible");
        network.fabric.run_for(Duration::from_us(200));
        assert!(network.report(1).phase == RunPhase::Running, "hop {hop}");
        let ends = sending_ends(&network, 0, 4);
        let (node, port) = ends[hop];
        let done = network.fabric.command(node, |device, now| {
            device.link_fault(now, port, LinkFault::SoftError)
        });
        done.expect("the port has a link");
        let allow = Allowance {
            soft_errors: 1,
            ..Allowance::default()
        };
        let report = finish(&mut network, 1, Duration::from_ms(5_000), allow);
        let counts = [report.sent, report.timed_out, report.delivered];
        assert_eq!(counts, [2_000, 1, 1_999], "hop {hop}");
        assert_eq!(link_counter(&network, "tx_soft_errors"), 1, "hop {hop}");
        let poisoned = link_counter(&network, "rx_poisoned_packets");
        assert_eq!(poisoned, 3 - hop as u64, "hop {hop}");
        let target = network.node::<BlackWidowNic>(network.id(NodeRef::Processor(4)));
        assert_eq!(target.counters().discard_soft_error, 1, "hop {hop}");
    }
}

/// The sending ends of the links from processor `from` to processor `to`, in order; between routers
/// with several links, the one that has sent most.
fn sending_ends(network: &Network, from: u32, to: u32) -> Vec<(phitwire::sim::NodeId, u8)> {
    let topology = network.topology();
    let (source, target) = (NodeRef::Processor(from), NodeRef::Processor(to));
    let links = topology.links.iter();
    let ends = links.flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let router_end = |processor| {
        let mut ends = ends.clone().filter(|(end, _)| end.node == processor);
        ends.next().expect("every processor has a link").1
    };
    let (first, last) = (router_end(source), router_end(target));
    let sent = |(node, port): &(_, u8)| {
        let link = network.fabric.node(*node).link(*port);
        link.map(|link| link.counters().tx_packets)
    };
    let between = ends.filter(|(a, b)| a.node == first.node && b.node == last.node);
    let between = between.map(|(a, _)| (network.id(a.node), a.port));
    let between = between.max_by_key(sent).expect("the routers are joined");
    vec![
        (network.id(source), 0),
        between,
        (network.id(last.node), last.port),
    ]
}

#[test]
fn poisoned_packets_are_dropped_hops_later_and_come_again() {
    // Frames of the smallest size cut most packets, so that routers forward heads before the tail
    // is checked; a corrupt tail then poisons what is already in flight.
    let spec = LinkSpec {
        latency: Duration::from_us(1),
        mtu: phitwire_blackwidow::link::MIN_FRAME_BYTES,
    };
    let mut network = bring_up(generate(&live(8, 4)), 4, spec);
    impair_all(&mut network, "corrupt 10%");
    let traffic = TrafficSpec {
        size: 32,
        ..uniform(&network, 1, 600)
    };
    let report = run(&mut network, &traffic, Duration::from_ms(20_000));
    assert_eq!((report.delivered, report.timed_out), (4_800, 0));
    let counters = |router| counted(network.node::<Yarc>(router));
    let forwarded = network.routers().map(counters);
    let forwarded: u64 = forwarded.map(|c| c.poisoned_packets_forwarded).sum();
    assert!(forwarded > 0, "a router has sent on what turned out bad");
    let noticed = link_counter(&network, "rx_poisoned_packets");
    assert!(noticed > 0, "and the next hop has noticed");
}

#[test]
fn gets_survive_everything_too() {
    let mut network = up(&live(8, 4), 5);
    let everything = "delay 100us 50us loss 5% duplicate 5% corrupt 2%";
    impair_all(&mut network, everything);
    let traffic = TrafficSpec {
        op: Operation::Get,
        size: 32,
        ..uniform(&network, 1, 400)
    };
    let report = run(&mut network, &traffic, Duration::from_ms(60_000));
    assert_eq!((report.sent, report.acknowledged), (3_200, 3_200));
    assert_eq!(report.corrupted, 0);
}
