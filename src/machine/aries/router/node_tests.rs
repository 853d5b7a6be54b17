use std::collections::VecDeque;

use phitwire_framing::aries::flit::{Head, NodeId, Routing};
use phitwire_framing::carrier::frame::LinkEnd;

use super::*;
use crate::chip::{Grain, RouterClock};
use crate::link::{EndName, LinkClock, LinkConfig, LinkProfile};
use crate::machine::aries::link::AriesInput;
use crate::machine::aries::link::STANDARD;
use crate::machine::aries::link::SetProfile;
use crate::machine::aries::route::harness::Machine;
use crate::machine::aries::route::registers::FIRST_NIC_PORT;
use crate::machine::aries::router::harness::{packet, request};
use crate::machine::aries::router::pipeline::{NETLINK_CYCLES, ZERO_LOAD_CYCLES};
use crate::node::{Node, WakeReason};
use crate::rng::Rng;
use crate::time::Duration;

const FRAME: usize = 1_200;

/// A link end at the far side of a port of the router under test.
struct End {
    port: PortId,
    lcb: AriesLcb,
    input: AriesInput,
    /// Packets to be sent.
    queue: VecDeque<Vec<Flit>>,
    received: [Vec<Flit>; VCS],
    /// Reads nothing from its input buffer.
    stuck: bool,
}

struct Net {
    aries: Aries,
    ends: Vec<End>,
    now: Time,
    step: Duration,
    loss_percent: u64,
    rng: Rng,
    events: Vec<AriesEvent>,
}

fn link(port: PortId, end: LinkEnd, paced: bool) -> AriesLinkConfig {
    let name = |node: &str, port| EndName {
        node: node.into(),
        port,
    };
    let (router, far) = (name("router", port), name("far", port));
    let (local, peer) = match end {
        LinkEnd::A => (router, far),
        LinkEnd::B => (far, router),
    };
    let (profile, clock, sets) = match paced {
        true => (
            LinkProfile::paper(),
            LinkClock::Paced { dilation: 1 },
            SetProfile::paper(),
        ),
        false => (
            LinkProfile::live(),
            LinkClock::FreeRunning,
            SetProfile::live(),
        ),
    };
    let link = LinkConfig::builder(STANDARD, port.into(), end, local, peer)
        .profile(profile)
        .clock(clock)
        .epoch(1)
        .build()
        .expect("a legal link");
    AriesLinkConfig::new(link, sets).expect("a legal link")
}

impl End {
    fn new(port: PortId, paced: bool) -> Self {
        let config = link(port, LinkEnd::B, paced);
        Self {
            port,
            input: AriesInput::new(&config),
            lcb: AriesLcb::new(config, Time::ZERO),
            queue: VecDeque::new(),
            received: Default::default(),
            stuck: false,
        }
    }

    fn exchange(&mut self) {
        while let Some(flits) = self.queue.front() {
            let head = Head::parse(flits[0]).expect("a head");
            if !self.lcb.can_begin(head.vc().into(), flits.len()) {
                break;
            }
            let flits = self.queue.pop_front().expect("there is one");
            flits.into_iter().for_each(|flit| self.lcb.push(flit));
        }
        for vc in 0..VCS {
            while !self.stuck
                && let Some(flit) = self.input.pop(vc)
            {
                self.received[vc].push(flit);
            }
            self.lcb.vc_freed(vc, self.input.take_acks(vc));
        }
    }

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

impl Net {
    fn new(ports: &[PortId], clock: RouterClock, step: Duration) -> Self {
        let paced = clock != RouterClock::FreeRunning;
        let config = AriesConfig {
            name: "g0-c0s0".into(),
            // Longer than any replay takes, as on every link that may lose frames.
            registers: AriesRegisters {
                forward_progress_ns: 100_000_000_000,
                ..Machine::SMALL.registers((0, 0))
            },
            ports: ports
                .iter()
                .map(|&port| (port, link(port, LinkEnd::A, paced)))
                .collect(),
            grain: match clock {
                RouterClock::FreeRunning => Grain::Packet,
                RouterClock::Paced { .. } => Grain::Flit,
            },
            clock,
        };
        Self {
            aries: Aries::new(config, Time::ZERO),
            ends: ports.iter().map(|&port| End::new(port, paced)).collect(),
            now: Time::ZERO,
            step,
            loss_percent: 0,
            rng: Rng::new(4, 4),
            events: Vec::new(),
        }
    }

    fn step(&mut self) {
        self.now += self.step;
        let (now, mut buf) = (self.now, [0; FRAME]);
        for end in &mut self.ends {
            end.lcb.handle_timers(now, &mut end.input);
            end.exchange();
            while let Some(length) = end.lcb.poll_frame(now, &mut buf) {
                if !self.rng.chance(self.loss_percent, 100) {
                    self.aries.handle_frame(now, end.port, &buf[..length]);
                }
            }
        }
        self.aries.advance(now);
        for end in &mut self.ends {
            if self.aries.ready_ports() >> end.port & 1 == 0 {
                continue;
            }
            while let Some(length) = self.aries.poll_frame(now, end.port, &mut buf) {
                if !self.rng.chance(self.loss_percent, 100) {
                    end.lcb.handle_frame(now, &buf[..length], &mut end.input);
                }
            }
            end.exchange();
        }
        while let Some(event) = self.aries.poll_event() {
            self.events.push(event);
        }
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        for _ in 0..100_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("{what} takes too long; events {:?}", self.events);
    }

    fn bring_up(mut self) -> Self {
        self.run_until("bringing the links up", |net| {
            net.ends.iter().all(|end| {
                let own = net.aries.lcb(end.port);
                end.lcb.is_active() && own.is_some_and(AriesLcb::is_active)
            })
        });
        self
    }

    fn received(&self) -> usize {
        self.ends.iter().map(|end| end.packets().len()).sum()
    }
}

fn free_running(ports: &[PortId]) -> Net {
    Net::new(ports, RouterClock::FreeRunning, Duration::from_us(10)).bring_up()
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
                // Everybody to the NICs, the NICs also to the neighbour behind the green link.
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
        net.run_until("drain", |net| net.aries.is_drained());
        // What came by the blue link leaves on class 3.
        let plain = |flits: Vec<Flit>| {
            let head = Head::parse(flits[0]).expect("a head").with_vc(0);
            [&[head.flit()], &flits[1..]].concat()
        };
        let key = |flits: &Vec<Flit>| flits.iter().map(|f| f.bits()).collect::<Vec<_>>();
        let mut got: Vec<_> = (net.ends.iter())
            .flat_map(|end| end.packets())
            .map(plain)
            .collect();
        got.sort_by_key(key);
        sent.sort_by_key(key);
        assert_eq!(got, sent);
        let counters = net.aries.counters();
        assert_eq!(counters.packets_forwarded, all as u64);
        assert_eq!(counters.swallowed_flits + counters.dead_port_flits, 0);
    }
}

#[test]
fn a_paced_router_takes_its_time() {
    let clock = RouterClock::Paced { dilation: 1 };
    let mut net = Net::new(&[NIC, 0], clock, Duration::from_ns(20)).bring_up();
    assert_eq!(net.aries.core().grain(), Grain::Flit);
    net.ends[1].queue.push_back(to_nic(0, 14, 1));
    let start = net.now;
    net.run_until("arrival at the router", |net| net.aries.queued(0) > 0);
    let arrived = net.now;
    net.run_until("delivery", |net| net.received() == 1);
    let inside = (ZERO_LOAD_CYCLES + NETLINK_CYCLES) * CYCLE_PS;
    assert!(net.now.since(arrived) >= Duration::from_ps(inside));
    assert!(net.now.since(start) < Duration::from_us(2), "and no more");
    assert_eq!(net.ends[0].packets(), [to_nic(0, 14, 1)]);
}

#[test]
fn an_idle_router_sleeps_and_does_not_scan() {
    let mut net = free_running(&[NIC, 0]);
    net.run_until("rest", |net| {
        net.aries
            .next_wakeup()
            .is_none_or(|w| w.reason == WakeReason::Link)
    });
    let (cycle, steps) = (
        net.aries.core().cycle(),
        net.aries.counters().executed_cycles,
    );
    for _ in 0..1_000 {
        net.step();
    }
    assert_eq!(net.aries.core().cycle(), cycle);
    assert_eq!(net.aries.counters().executed_cycles, steps);
}

#[test]
fn quiesce_install_release_is_a_reroute() {
    let mut net = free_running(&[NIC, 0, 1]);
    for id in 0..100 {
        net.ends[0]
            .queue
            .push_back(packet(request((0, 1), 0, Routing::Minimal, 9, id)));
    }
    net.run_until("delivery", |net| net.received() == 100);
    assert!(!net.ends[1].received[0].is_empty());
    net.aries.quiesce();
    for id in 0..100 {
        net.ends[0]
            .queue
            .push_back(packet(request((0, 1), 0, Routing::Minimal, 9, id)));
    }
    (0..100).for_each(|_| net.step());
    assert!(net.aries.is_drained() && net.received() == 100);
    assert_eq!(net.aries.get("chip.drained"), Some(1));
    // The way to router 1 leads by router 2 from now on.
    let mut registers = net.aries.core().registers().clone();
    std::sync::Arc::make_mut(&mut registers.tables[0]).local_minimal[1] = 1 << 1;
    net.aries.install(registers);
    net.aries.release();
    net.run_until("delivery", |net| net.received() == 200);
    assert_eq!(net.ends[2].packets().len(), 100);
}

#[test]
fn a_link_that_goes_down_loses_its_packets_and_says_so() {
    let mut net = free_running(&[NIC, 0]);
    net.aries
        .with_lcb(net.now, 0, |lcb, input| {
            let now = Time::ZERO + Duration::from_ms(5_000);
            lcb.link_down(now, input);
        })
        .expect("a link");
    net.now = Time::ZERO + Duration::from_ms(5_000);
    for id in 0..10 {
        net.ends[0]
            .queue
            .push_back(packet(request((0, 1), 0, Routing::Adaptive0, 9, id)));
    }
    (0..200).for_each(|_| net.step());
    let counters = net.aries.counters();
    assert_eq!(
        counters.no_live_port_packets + counters.dead_port_packets,
        10
    );
    let destination = NodeId::new(0, 1, 0);
    assert!(net.events.iter().any(
        |event| matches!(event, AriesEvent::NoLivePort { destination: d, .. } if *d == destination)
    ));
    assert!(
        net.events
            .iter()
            .any(|event| matches!(event, AriesEvent::Link { port: 0, .. }))
    );
}

#[test]
fn counters_and_registers_have_names() {
    let mut net = free_running(&[NIC, 0]);
    let mut names = Vec::new();
    crate::device::Device::for_each_counter(&net.aries, &mut |name, _| names.push(name.to_owned()));
    for name in ["flits_forwarded", "cycles", "stalls.row", "port40.tx_flits"] {
        assert!(names.iter().any(|n| n == name), "{name} in {names:?}");
    }
    assert_eq!(net.aries.get("chip.ports_in_use"), Some(1 << 40 | 1));
    assert_eq!(
        net.aries.set("chip.drained", 1),
        Err(RegisterError::ReadOnly)
    );
    assert_eq!(net.aries.set("bias.2.minimal.add", 3), Ok(()));
    assert_eq!(net.aries.get("bias.2.minimal.add"), Some(3));
    assert_eq!(net.aries.name(), "g0-c0s0");
}
