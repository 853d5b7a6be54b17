use std::collections::VecDeque;

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::yarc::packet::{EopStatus, check_packet, eop_status};

use super::*;
use crate::link::{DownReason, EndName, LinkClock, LinkProfile};
use crate::machine::blackwidow::link::InputQueue;
use crate::machine::blackwidow::link::STANDARD;
use crate::machine::blackwidow::router::harness::{cut, flat_chip, head, packet};
use crate::node::{Node, WakeReason};
use crate::rng::Rng;
use crate::time::Duration;

const FRAME: usize = 1_200;

/// A link end at the far side of a port of the router under test.
struct End {
    port: PortId,
    lcb: Lcb,
    input: InputQueue,
    /// Packets to be sent, as one stream of phits.
    queue: VecDeque<Phit>,
    /// Per virtual channel: what is handed up speculatively may be half a packet.
    received: [Vec<Phit>; 2],
    /// Reads nothing from its input queue.
    stuck: bool,
}

struct Net {
    yarc: Yarc,
    ends: Vec<End>,
    now: Time,
    step: Duration,
    loss_percent: u64,
    rng: Rng,
    events: Vec<RouterEvent>,
    frames: u64,
}

fn link(port: PortId, end: LinkEnd, paced: bool, epoch: u32) -> LinkConfig {
    let router = EndName {
        node: "router".into(),
        port,
    };
    let far = EndName {
        node: format!("end{port}"),
        port: 0,
    };
    let (local, peer) = match end {
        LinkEnd::A => (router, far),
        LinkEnd::B => (far, router),
    };
    let (profile, clock) = match paced {
        true => (LinkProfile::paper(), LinkClock::Paced { dilation: 1 }),
        false => (LinkProfile::live(), LinkClock::FreeRunning),
    };
    LinkConfig::builder(STANDARD, port.into(), end, local, peer)
        .profile(profile)
        .clock(clock)
        .epoch(epoch)
        .build()
        .expect("a legal link")
}

impl End {
    fn new(port: PortId, paced: bool, epoch: u32, now: Time) -> Self {
        let config = link(port, LinkEnd::B, paced, epoch);
        let input = InputQueue::new(&config);
        let lcb = Lcb::new(config, now);
        Self {
            port,
            lcb,
            input,
            queue: VecDeque::new(),
            received: Default::default(),
            stuck: false,
        }
    }

    fn exchange(&mut self) {
        while let Some(&phit) = self.queue.front() {
            let vc = Vc::from_index(phit.content() as usize >> 15);
            if phit.is_head() && !self.lcb.can_begin(vc) {
                break;
            }
            self.lcb.push(phit);
            self.queue.pop_front();
        }
        for vc in Vc::ALL {
            while !self.stuck && self.input.ready(vc) {
                self.received[vc.index()].push(self.input.pop(vc));
            }
            self.lcb.vc_freed(vc, self.input.take_acks(vc));
        }
    }

    /// The healthy packets received; damaged ones are the network interface's to throw away.
    fn healthy(&self) -> Vec<Vec<Phit>> {
        let healthy = |packet: &&[Phit]| {
            let eop = packet.last().expect("not empty");
            eop_status(eop.content()) == Some(EopStatus::Healthy)
        };
        let packets = self
            .received
            .iter()
            .flat_map(|r| r.split_inclusive(|phit| phit.is_eop()));
        packets.filter(healthy).map(<[Phit]>::to_vec).collect()
    }
}

impl Net {
    fn new(ports: &[PortId], clock: RouterClock, step: Duration) -> Self {
        let paced = clock != RouterClock::FreeRunning;
        let config = YarcConfig {
            name: "router".into(),
            // Longer than any retry takes, as on every link that may lose frames.
            registers: ChipRegisters {
                forward_progress_ns: 100_000_000_000,
                ..flat_chip()
            },
            ports: ports
                .iter()
                .map(|&p| (p, link(p, LinkEnd::A, paced, 1)))
                .collect(),
            grain: crate::chip::Grain::Flit,
            clock,
        };
        Self {
            yarc: Yarc::new(config, Time::ZERO),
            ends: ports
                .iter()
                .map(|&p| End::new(p, paced, 1, Time::ZERO))
                .collect(),
            now: Time::ZERO,
            step,
            loss_percent: 0,
            rng: Rng::new(4, 4),
            events: Vec::new(),
            frames: 0,
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
                    self.yarc.handle_frame(now, end.port, &buf[..length]);
                }
            }
        }
        self.yarc.advance(now);
        for index in 0..self.ends.len() {
            let end = &mut self.ends[index];
            if self.yarc.ready_ports() >> end.port & 1 == 0 {
                continue;
            }
            while let Some(length) = self.yarc.poll_frame(now, end.port, &mut buf) {
                self.frames += 1;
                if !self.rng.chance(self.loss_percent, 100) {
                    end.lcb.handle_frame(now, &buf[..length], &mut end.input);
                }
            }
            end.exchange();
        }
        while let Some(event) = self.yarc.poll_event() {
            self.events.push(event);
        }
    }

    fn run_until(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            self.step();
        }
        panic!("{what} takes too long; events {:?}", self.events);
    }

    fn bring_up(&mut self) {
        self.run_until("bringing the links up", |net| {
            let up = |end: &End| {
                end.lcb.is_active() && net.yarc.lcb(end.port).is_some_and(Lcb::is_active)
            };
            net.ends.iter().all(up)
        });
    }
}

fn free_running(ports: &[PortId]) -> Net {
    let mut net = Net::new(ports, RouterClock::FreeRunning, Duration::from_us(10));
    net.bring_up();
    net
}

#[test]
fn packets_cross_the_chip_exactly_once_in_order_whatever_is_lost() {
    for loss in [0, 20] {
        let mut net = free_running(&[3, 12, 63]);
        net.loss_percent = loss;
        for id in 0..2_000u32 {
            let lengths = 4 + id as usize % 16;
            net.ends[0]
                .queue
                .extend(packet(head(63, Vc::Request), 3, id, lengths));
            net.ends[1]
                .queue
                .extend(packet(head(63, Vc::Response), 12, id, lengths));
            net.ends[2]
                .queue
                .extend(packet(head(3, Vc::Response), 63, id, lengths));
        }
        net.run_until("delivery", |net| {
            net.ends[2].healthy().len() >= 4_000 && net.ends[0].healthy().len() >= 2_000
        });
        for _ in 0..1_000 {
            net.step();
        }
        for (end, source) in [(2, 3), (2, 12), (0, 63)] {
            let packets = net.ends[end].healthy();
            for packet in &packets {
                assert_eq!(check_packet(packet), Ok(EopStatus::Healthy));
            }
            // Five phits and more carry their number.
            let of_source = |p: &&Vec<Phit>| p[1].content() == source && p.len() > 4;
            let ids: Vec<u32> = packets
                .iter()
                .filter(of_source)
                .map(|p| p[2].content())
                .collect();
            let expected: Vec<u32> = (0..2_000).filter(|id| id % 16 != 0).collect();
            assert_eq!(ids, expected, "from {source} at {loss} % loss");
        }
        assert_eq!(net.ends[2].healthy().len(), 4_000);
        let poisoned = net.yarc.counters().poisoned_packets_forwarded;
        assert_eq!(
            poisoned > 0,
            loss > 0,
            "speculation shows only with losses: {poisoned}"
        );
        assert_eq!(net.yarc.core().phits_inside(), 0);
    }
}

#[test]
fn an_idle_chip_is_silent_and_does_nothing() {
    let mut net = free_running(&[0, 1]);
    net.ends[0]
        .queue
        .extend(packet(head(1, Vc::Request), 0, 7, 10));
    net.run_until("delivery", |net| net.ends[1].healthy().len() == 1);
    for _ in 0..10_000 {
        net.step();
    }
    let (cycles, frames) = (net.yarc.counters().executed_cycles, net.frames);
    for _ in 0..100_000 {
        net.step();
    }
    assert_eq!(net.yarc.counters().executed_cycles, cycles);
    assert!(
        net.frames - frames <= 4,
        "{} frames in an idle second",
        net.frames - frames
    );
    assert!(
        net.yarc
            .next_wakeup()
            .is_none_or(|w| w.reason == WakeReason::Link)
    );
}

#[test]
fn the_paced_clock_takes_25_cycles_per_chip() {
    let step = Duration::from_ps(CYCLE_PS);
    let mut net = Net::new(&[8, 1], RouterClock::Paced { dilation: 1 }, step);
    net.bring_up();
    for _ in 0..10_000 {
        net.step();
    }
    let sent = net.now;
    net.ends[0]
        .queue
        .extend(packet(head(1, Vc::Request), 0, 7, 4));
    net.run_until("delivery", |net| !net.ends[1].received[0].is_empty());
    let latency = net.now.since(sent).as_ps();
    // Two links of four phits at 1.28 ns and the 25 stages, a few steps for handing over.
    let least = 2 * 4 * 1_280 + 25 * CYCLE_PS;
    assert!(
        (least..least + 8 * CYCLE_PS).contains(&latency),
        "{latency} ps against {least}"
    );
}

#[test]
fn next_wakeup_of_a_paced_chip_names_the_next_cycle_with_work() {
    let step = Duration::from_ps(CYCLE_PS);
    let mut net = Net::new(&[8, 1], RouterClock::Paced { dilation: 1 }, step);
    net.bring_up();
    for _ in 0..10_000 {
        net.step();
    }
    net.ends[0]
        .queue
        .extend(packet(head(1, Vc::Request), 0, 7, 4));
    net.run_until("arrival", |net| net.yarc.core().next_cycle().is_some());
    let wakeup = net.yarc.next_wakeup().expect("phits are inside");
    assert_eq!(wakeup.reason, WakeReason::Pipeline);
    assert!(wakeup.at > net.now && wakeup.at.since(net.now).as_ps() <= 13 * CYCLE_PS);
}

#[test]
fn a_link_taken_down_discards_its_packets_and_the_rest_flows() {
    let mut net = free_running(&[0, 1, 2]);
    let now = net.now;
    net.yarc
        .with_lcb(now, 1, |lcb, input| lcb.link_down(now, input))
        .expect("a port with a link");
    for id in 0..100 {
        net.ends[0]
            .queue
            .extend(packet(head(1, Vc::Request), 0, id, 19));
        net.ends[0]
            .queue
            .extend(packet(head(2, Vc::Request), 0, id, 5));
    }
    net.run_until("delivery", |net| net.ends[2].healthy().len() == 100);
    assert_eq!(net.yarc.counters().dead_port_packets, 100);
    let down = |event: &RouterEvent| {
        let why = DownReason::Command;
        matches!(event, RouterEvent::Link { port: 1, event: LinkEvent::Down { why: w, .. } } if *w == why)
    };
    assert!(net.events.iter().any(down), "{:?}", net.events);
    let now = net.now;
    net.yarc
        .with_lcb(now, 1, |lcb, _| lcb.link_up(now))
        .expect("a port with a link");
    net.bring_up();
    net.ends[0]
        .queue
        .extend(packet(head(1, Vc::Request), 0, 1, 6));
    net.run_until("delivery", |net| net.ends[1].healthy().len() == 1);
}

/// The peer's process dies in the middle of whatever it was sending and another takes its place.
#[test]
fn a_restarted_peer_does_not_wedge_the_chip() {
    for moment in 0..12 {
        let mut net = free_running(&[0, 1]);
        for id in 0..400 {
            net.ends[0]
                .queue
                .extend(packet(head(1, Vc::Request), 0, id, 19));
            net.ends[1]
                .queue
                .extend(packet(head(0, Vc::Response), 1, id, 19));
        }
        net.loss_percent = 5;
        for _ in 0..moment {
            net.step();
        }
        net.loss_percent = 0;
        net.ends[0] = End::new(0, false, 2, net.now);
        net.run_until("the restart", |net| {
            net.events.iter().any(|event| {
                matches!(
                    event,
                    RouterEvent::Link {
                        port: 0,
                        event: LinkEvent::PeerRestarted { .. }
                    }
                )
            })
        });
        net.bring_up();
        let mark = net.ends[1].healthy().len();
        net.ends[0]
            .queue
            .extend(packet(head(1, Vc::Request), 7, 9_999, 19));
        net.run_until("delivery", |net| {
            net.ends[1].healthy()[mark..]
                .iter()
                .any(|p| p[2].content() == 9_999)
        });
        net.ends[1]
            .queue
            .extend(packet(head(0, Vc::Response), 7, 9_999, 19));
        net.run_until("the way back", |net| {
            net.ends[0]
                .healthy()
                .iter()
                .any(|p| p[2].content() == 9_999)
        });
    }
}

#[test]
fn a_peer_that_takes_nothing_runs_into_forward_progress() {
    let mut net = free_running(&[0, 1, 2]);
    net.ends[1].stuck = true;
    net.yarc
        .set("chip.forward_progress_ns", 1_000_000)
        .expect("a register");
    for id in 0..3_000 {
        net.ends[0]
            .queue
            .extend(packet(head(1, Vc::Request), 0, id, 19));
    }
    net.run_until("the time-out", |net| {
        net.events.contains(&RouterEvent::ForwardProgress {
            port: 1,
            vc: Vc::Request,
        })
    });
    net.ends[0]
        .queue
        .extend(packet(head(2, Vc::Request), 0, 1, 5));
    net.run_until("the packet behind", |net| net.ends[2].healthy().len() == 1);
    assert!(net.yarc.counters().stalled_port_packets > 0);
    assert_eq!(net.yarc.get("chip.discard_requests"), Some(1 << 1));
    net.ends[1].stuck = false;
    net.ends[0]
        .queue
        .extend(packet(head(1, Vc::Request), 0, 5_000, 5));
    let restored = RouterEvent::ForwardProgressRestored {
        port: 1,
        vc: Vc::Request,
    };
    for _ in 0..10_000 {
        net.ends[0]
            .queue
            .extend(packet(head(1, Vc::Request), 0, 5_000, 5));
        net.step();
        if net.events.contains(&restored) {
            return;
        }
    }
    panic!("the port is not used again");
}

/// A frame ends the packet at the front with `transmit_error`, which removes it, and brings a
/// shorter one for another column in its place.
#[test]
fn a_packet_that_takes_the_place_of_a_removed_one_is_routed_anew() {
    let mut net = free_running(&[0, 1, 2]);
    net.ends[1].stuck = true;
    // Two packets of 13 phits fill the row buffer and the column buffer, and none is left behind
    // them.
    for _ in 0..10_000 {
        net.ends[0]
            .queue
            .extend(packet(head(1, Vc::Request), 0, 0, 13));
        (0..3).for_each(|_| net.step());
        if net.yarc.core().phits_inside() == 26 {
            break;
        }
    }
    assert_eq!(net.yarc.core().phits_inside(), 26);
    let mut removed = cut(&packet(head(1, Vc::Request), 0, 1, 19), 6);
    let end = removed.pop().expect("not empty");
    net.ends[0].queue.extend(removed);
    net.step();
    net.ends[0].queue.push_back(end);
    net.ends[0]
        .queue
        .extend(packet(head(2, Vc::Request), 0, 2, 5));
    net.step();
    net.run_until("the packet behind", |net| net.ends[2].healthy().len() == 1);
}

/// The register is in emulated time, as every time of a link is.
#[test]
fn the_forward_progress_time_follows_the_dilation() {
    for dilation in [1, 4] {
        let mut net = Net::new(
            &[0, 1],
            RouterClock::Paced { dilation },
            Duration::from_us(1),
        );
        net.bring_up();
        net.ends[1].stuck = true;
        net.yarc
            .set("chip.forward_progress_ns", 1_000_000)
            .expect("a register");
        for id in 0..100 {
            net.ends[0]
                .queue
                .extend(packet(head(1, Vc::Request), 0, id, 19));
        }
        let began = net.now;
        net.run_until("the time-out", |net| {
            !net.yarc.core().discarding().eq(&[0; 2])
        });
        let ms = net.now.since(began).as_ns() as f64 / 1e6;
        let expected = f64::from(dilation);
        assert!(
            (expected..expected + 0.1).contains(&ms),
            "{ms} ms at {dilation}"
        );
    }
}

#[test]
fn registers_are_reached_by_name_and_counters_have_one_name_each() {
    let mut net = free_running(&[0, 1]);
    assert_eq!(net.yarc.get("tile1.down_mask"), Some(63));
    assert_eq!(net.yarc.set("tile1.down_mask", 31), Ok(()));
    assert_eq!(net.yarc.get("tile1.down_mask"), Some(31));
    assert_eq!(net.yarc.set("no.such", 1), Err(RegisterError::Unknown));
    let mut names = std::collections::HashSet::new();
    crate::device::Device::for_each_counter(&net.yarc, &mut |name, _| {
        assert!(names.insert(name.to_owned()), "{name}")
    });
    assert!(names.contains("port1.rx_frames") && names.contains("phits_forwarded"));
}

#[test]
fn frames_for_ports_without_link_are_ignored() {
    let mut net = free_running(&[0]);
    for port in [1, 63, 64, 255] {
        net.yarc.handle_frame(net.now, port, &[0xa5; 100]);
        assert_eq!(net.yarc.poll_frame(net.now, port, &mut [0; FRAME]), None);
    }
    net.yarc.advance(net.now);
}
