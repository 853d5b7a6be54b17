use std::ops::Range;

use phitwire_framing::aries::flit::{Head, NodeId, Routing};

use super::*;
use crate::link::SetProfile;
use crate::link::testing as harness;
use crate::route::harness::Machine;
use crate::route::registers::FIRST_NIC_PORT;
use crate::router::harness::{packet, request};
use crate::router::pipeline::{NETLINK_CYCLES, ZERO_LOAD_CYCLES};
use phitwire::chip::testing::{self, Joining};
use phitwire::chip::{Grain, RouterClock};
use phitwire::link::{LinkConfigBuilder, NodeLink};
use phitwire::node::{Node, WakeReason};
use phitwire::time::Duration;
use phitwire::trace::{Flow, Passage, Tracing as _};

type End = testing::End<harness::Aries>;
type Net = testing::Net<Core, harness::Aries>;

impl Joining for harness::Aries {
    /// Every transmission is a whole packet.
    fn begins(flit: Flit) -> Option<usize> {
        Head::parse(flit).map(|head| head.vc().into())
    }
    fn configured(builder: LinkConfigBuilder, paced: bool) -> AriesLinkConfig {
        let sets = match paced {
            true => SetProfile::paper(),
            false => SetProfile::live(),
        };
        harness::aries(builder, sets)
    }
}

trait FarEnd: Sized {
    fn packets(&self) -> Vec<Vec<Flit>>;
}

impl FarEnd for End {
    fn packets(&self) -> Vec<Vec<Flit>> {
        let mut packets: Vec<Vec<Flit>> = Vec::new();
        for flits in &self.received {
            let mut flits = &flits[..];
            while let Some(head) = flits.first().and_then(|&flit| Head::parse(flit)) {
                let Some((packet, rest)) = flits.split_at_checked(head.length().into()) else {
                    break;
                };
                packets.push(packet.to_vec());
                flits = rest;
            }
        }
        packets
    }
}

trait Bench: Sized {
    /// Queues one packet per id at an end.
    fn send(&mut self, end: usize, ids: Range<u16>, head: impl Fn(u16) -> Head);
    fn received(&self) -> usize;
}

impl Bench for Net {
    fn send(&mut self, end: usize, ids: Range<u16>, head: impl Fn(u16) -> Head) {
        self.ends[end].queue.extend(ids.map(|id| packet(head(id))));
    }

    fn received(&self) -> usize {
        self.ends.iter().map(|end| end.packets().len()).sum()
    }
}

fn up(ports: &[PortId], clock: RouterClock, step: Duration) -> Net {
    let config = AriesConfig {
        name: "g0-c0s0".into(),
        // Longer than any replay on a lossy link.
        registers: AriesRegisters {
            forward_progress_ns: 100_000_000_000,
            ..Machine::small().registers((0, 0))
        },
        ports: Vec::new(),
        grain: match clock {
            RouterClock::FreeRunning => Grain::Packet,
            RouterClock::Paced { .. } => Grain::Flit,
        },
        clock,
    };
    let mut net = Net::new(config, ports, step);
    net.bring_up();
    net
}

fn free_running(ports: &[PortId]) -> Net {
    up(ports, RouterClock::FreeRunning, Duration::from_us(10))
}

const NIC: PortId = FIRST_NIC_PORT as PortId;

fn to_nic(nic: u8, length: u8, id: u16) -> Vec<Flit> {
    packet(request((0, 0), nic, Routing::Adaptive0, length, id))
}

#[test]
fn packets_cross_the_chip_exactly_once_whatever_is_lost() {
    for loss in [0, 20] {
        // Two NICs of different pairs, a green and a blue link.
        let mut net = free_running(&[NIC, NIC + 3, 0, 30]);
        net.loss_percent = loss;
        let mut sent = Vec::new();
        for id in 0..1_000u16 {
            for index in 0..net.ends.len() {
                let length = 1 + (id + index as u16) as u8 % 14;
                // All ends send to the NICs; the NICs also send to the neighbour behind the green
                // link.
                let flits = match id % 3 {
                    2 if index < 2 => packet(request((0, 1), 0, Routing::Minimal, length, id)),
                    turn => to_nic(3 * (turn % 2) as u8, length, id),
                };
                sent.push(flits.clone());
                net.ends[index].queue.push_back(flits);
            }
        }
        let all = sent.len();
        net.run_until("delivery", |net| net.received() == all);
        net.loss_percent = 0;
        net.run_until("drain", |net| is_drained(&net.chip));
        // Packets that arrived by the blue link leave on class 3.
        let plain = |flits: Vec<Flit>| {
            let head = Head::parse(flits[0]).expect("a head").with_vc(0);
            [&[head.flit()], &flits[1..]].concat()
        };
        let key = |flits: &Vec<Flit>| flits.iter().map(|f| f.bits()).collect::<Vec<_>>();
        let got = net.ends.iter().flat_map(End::packets);
        let mut got: Vec<_> = got.map(plain).collect();
        got.sort_by_key(key);
        sent.sort_by_key(key);
        assert_eq!(got, sent);
        let counters = counted(&net.chip);
        assert_eq!(counters.packets_forwarded, all as u64);
        assert_eq!(counters.swallowed_flits + counters.dead_port_flits, 0);
    }
}

#[test]
fn a_paced_router_takes_its_time() {
    let clock = RouterClock::Paced { dilation: 1 };
    let mut net = up(&[NIC, 0], clock, Duration::from_ns(20));
    assert_eq!(net.chip.core().grain(), Grain::Flit);
    net.ends[1].queue.push_back(to_nic(0, 14, 1));
    let start = net.now;
    net.run_until("arrival at the router", |net| net.chip.queued(0) > 0);
    let arrived = net.now;
    net.run_until("delivery", |net| net.received() == 1);
    let inside = (ZERO_LOAD_CYCLES + NETLINK_CYCLES) * CYCLE_PS;
    assert!(net.now.since(arrived) >= Duration::from_ps(inside));
    assert!(
        net.now.since(start) < Duration::from_us(2),
        "no further delay"
    );
    assert_eq!(net.ends[0].packets(), [to_nic(0, 14, 1)]);
}

#[test]
fn an_idle_router_sleeps_and_does_not_scan() {
    let mut net = free_running(&[NIC, 0]);
    net.run_until("rest", |net| {
        let wakeup = net.chip.next_wakeup();
        wakeup.is_none_or(|w| w.reason == WakeReason::Link)
    });
    let done = |net: &Net| (net.chip.core().cycle(), counted(&net.chip).executed_cycles);
    let before = done(&net);
    (0..1_000).for_each(|_| net.step());
    assert_eq!(done(&net), before);
}

#[test]
fn quiesce_install_release_is_a_reroute() {
    let mut net = free_running(&[NIC, 0, 1]);
    net.send(0, 0..100, |id| request((0, 1), 0, Routing::Minimal, 9, id));
    net.run_until("delivery", |net| net.received() == 100);
    assert!(!net.ends[1].received[0].is_empty());
    net.chip.core_mut().quiesce();
    net.send(0, 0..100, |id| request((0, 1), 0, Routing::Minimal, 9, id));
    (0..100).for_each(|_| net.step());
    assert!(is_drained(&net.chip) && net.received() == 100);
    assert_eq!(net.chip.get("chip.drained"), Some(1));
    // The path to router 1 now leads over router 2.
    let mut registers = net.chip.core().registers().clone();
    std::sync::Arc::make_mut(&mut registers.tables[0]).local_minimal[1] = 1 << 1;
    net.chip.core_mut().install(registers);
    net.chip.core_mut().release();
    net.run_until("delivery", |net| net.received() == 200);
    assert_eq!(net.ends[2].packets().len(), 100);
}

#[test]
fn a_link_that_goes_down_loses_and_reports_its_packets() {
    let mut net = free_running(&[NIC, 0]);
    let now = Time::ZERO + Duration::from_ms(5_000);
    let down = |lcb: &mut AriesLcb| lcb.link_down(now);
    net.chip.with_lcb(net.now, 0, down).expect("a link");
    net.now = now;
    net.send(0, 0..10, |id| request((0, 1), 0, Routing::Adaptive0, 9, id));
    (0..200).for_each(|_| net.step());
    let counters = counted(&net.chip);
    let lost = counters.no_live_port_packets + counters.dead_port_packets;
    assert_eq!(lost, 10);
    let gone = NodeId::new(0, 1, 0);
    let is_gone = |event: &AriesEvent| match event {
        AriesEvent::NoLivePort { destination, .. } => *destination == gone,
        _ => false,
    };
    assert!(net.events.iter().any(is_gone));
    let of_link = |event: &AriesEvent| matches!(event, AriesEvent::Link { port: 0, .. });
    assert!(net.events.iter().any(of_link));
}

#[test]
fn a_watch_sees_the_decisions_that_are_counted() {
    for grain in [RouterClock::FreeRunning, RouterClock::Paced { dilation: 1 }] {
        let ports: Vec<PortId> = [NIC].into_iter().chain(0..40).collect();
        let step = match grain {
            RouterClock::FreeRunning => Duration::from_us(10),
            RouterClock::Paced { .. } => Duration::from_ns(20),
        };
        let mut net = up(&ports, grain, step);
        let (to, from) = (NodeId::new(1, 3, 0), NodeId::new(0, 0, 0));
        let flow = Flow {
            from: from.bits(),
            to: to.bits(),
        };
        let later = net.now + Duration::from_ms(100_000);
        net.chip.watch(net.now, flow, later);
        net.send(0, 0..200, |id| {
            request((1, 3), 0, Routing::Adaptive0, 9, id)
        });
        net.run_until("forwarding", |net| {
            counted(&net.chip).packets_forwarded >= 200
        });
        let watched = net.chip.watched(net.now, None);
        assert_eq!((watched.passages.len(), watched.dropped), (200, 0));
        let kind = |passage: &Passage| {
            let choice = &passage.choices[0];
            let departure = passage.departure.expect("the packet has left");
            assert_eq!(departure.port, choice.winner, "{choice:?}");
            let won = choice
                .candidates
                .iter()
                .filter(|one| one.number == choice.winner);
            // Both kinds of path may use one port; the cheaper one won.
            won.min_by_key(|one| one.cost)
                .expect("the winner is a candidate")
                .kind
                .clone()
        };
        let minimal = watched
            .passages
            .iter()
            .filter(|passage| kind(passage) == "minimal")
            .count();
        let counters = counted(&net.chip);
        assert_eq!(minimal as u64, counters.minimal_decisions);
        assert_eq!(200 - minimal as u64, counters.non_minimal_decisions);
        let identities: std::collections::BTreeSet<_> = watched
            .passages
            .iter()
            .filter_map(|passage| passage.identity)
            .collect();
        assert_eq!(identities.len(), 200, "each packet has an identity");
        let one = net.chip.watched(net.now, Some(17)).passages;
        assert!(one.len() == 1 && one[0].arrived_ps.is_some());
        let again = net.chip.watched(later, None);
        assert!(
            !again.armed && again.passages.is_empty(),
            "the watch ends on its own"
        );
    }
}

#[test]
fn a_watch_sees_what_a_dead_link_costs() {
    let mut net = free_running(&[NIC, 0]);
    let gone = NodeId::new(0, 1, 0);
    let flow = Flow {
        from: 0,
        to: gone.bits(),
    };
    let now = Time::ZERO + Duration::from_ms(5_000);
    let down = |lcb: &mut AriesLcb| lcb.link_down(now);
    net.chip.with_lcb(net.now, 0, down).expect("a link");
    net.now = now;
    net.chip.watch(now, flow, now + Duration::from_ms(100_000));
    net.send(0, 0..3, |id| request((0, 1), 0, Routing::Adaptive0, 9, id));
    (0..200).for_each(|_| net.step());
    let watched = net.chip.watched(net.now, None);
    let whys: Vec<_> = watched
        .passages
        .iter()
        .map(|passage| passage.discarded.as_deref())
        .collect();
    assert_eq!(whys.len(), 3);
    assert!(whys.iter().all(Option::is_some), "{whys:?}");
}

#[test]
fn every_register_of_the_list_can_be_read() {
    let mut net = free_running(&[NIC, 0]);
    let registers =
        phitwire::device::Device::registers(&mut net.chip).expect("the router has registers");
    let list = registers.list();
    for name in list.iter().flat_map(phitwire::device::RegisterInfo::names) {
        let read = registers.read(phitwire::device::RegisterName::Name(&name));
        assert!(read.is_ok(), "{name}: {read:?}");
    }
}

#[test]
fn counters_and_registers_have_names() {
    let mut net = free_running(&[NIC, 0]);
    let mut names = Vec::new();
    phitwire::device::Device::for_each_counter(&net.chip, &mut |name, _| {
        names.push(name.to_owned())
    });
    for name in ["flits_forwarded", "cycles", "stalls.row", "port40.tx_flits"] {
        assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
    }
    assert_eq!(net.chip.get("chip.ports_in_use"), Some(1 << 40 | 1));
    let set = net.chip.set("chip.drained", 1);
    assert_eq!(set, Err(RegisterError::ReadOnly));
    assert_eq!(net.chip.set("bias.2.minimal.add", 3), Ok(()));
    assert_eq!(net.chip.get("bias.2.minimal.add"), Some(3));
    assert_eq!(net.chip.name(), "g0-c0s0");
}
