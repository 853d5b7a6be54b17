use phitwire_framing::yarc::packet::{EopStatus, Head, check_packet, eop_status, head_vc};

use super::*;
use crate::link::PhitProfile;
use crate::link::testing as harness;
use crate::router::harness::{cut, flat_chip, head, packet};
use phitwire::chip::testing::{self, FRAME, Joining};
use phitwire::link::{CutThrough, DownReason, LinkConfigBuilder, NodeLink};
use phitwire::node::{Node, WakeReason};
use phitwire::time::Duration;

type End = testing::End<harness::Yarc>;
type Net = testing::Net<Core, harness::Yarc>;

impl Joining for harness::Yarc {
    fn begins(phit: Phit) -> Option<usize> {
        phit.is_head().then(|| head_vc(phit.content()).index())
    }
    fn configured(builder: LinkConfigBuilder, paced: bool) -> PhitLinkConfig {
        let phits = match paced {
            true => PhitProfile::paper(),
            false => PhitProfile::live(),
        };
        harness::with(builder, phits)
    }
}

trait FarEnd: Sized {
    /// The undamaged packets received; a NIC would discard the others.
    fn healthy(&self) -> Vec<Vec<Phit>>;
}

impl FarEnd for End {
    fn healthy(&self) -> Vec<Vec<Phit>> {
        let healthy = |packet: &&[Phit]| {
            let eop = packet.last().expect("not empty");
            eop_status(eop.content()) == Some(EopStatus::Healthy)
        };
        let received = self.received.iter();
        let packets = received.flat_map(|r| r.split_inclusive(|phit| phit.is_eop()));
        packets.filter(healthy).map(<[Phit]>::to_vec).collect()
    }
}

trait Bench: Sized {
    /// Queues a packet at an end.
    fn send(&mut self, end: usize, head: Head, hash: u16, id: u32, phits: usize);
}

impl Bench for Net {
    fn send(&mut self, end: usize, head: Head, hash: u16, id: u32, phits: usize) {
        let packet = packet(head, hash, id, phits);
        self.ends[end].queue.push_back(packet);
    }
}

fn config(clock: RouterClock) -> YarcConfig {
    YarcConfig {
        name: "router".into(),
        // Longer than any retry on a lossy link.
        registers: ChipRegisters {
            forward_progress_ns: 100_000_000_000,
            ..flat_chip()
        },
        ports: Vec::new(),
        grain: phitwire::chip::Grain::Flit,
        clock,
    }
}

fn up(ports: &[PortId], clock: RouterClock, step: Duration) -> Net {
    let mut net = Net::new(config(clock), ports, step);
    net.bring_up();
    net
}

fn free_running(ports: &[PortId]) -> Net {
    up(ports, RouterClock::FreeRunning, Duration::from_us(10))
}

fn paced() -> Net {
    let step = Duration::from_ps(CYCLE_PS);
    let mut net = up(&[8, 1], RouterClock::Paced { dilation: 1 }, step);
    net.run(10_000);
    net
}

/// Whether a packet with this number arrived undamaged.
fn has(packets: &[Vec<Phit>], id: u32) -> bool {
    packets.iter().any(|packet| packet[2].content() == id)
}

#[test]
fn packets_cross_the_chip_exactly_once_in_order_whatever_is_lost() {
    for loss in [0, 20] {
        let mut net = free_running(&[3, 12, 63]);
        net.loss_percent = loss;
        for id in 0..2_000u32 {
            let lengths = 4 + id as usize % 16;
            net.send(0, head(63, Vc::Request), 3, id, lengths);
            net.send(1, head(63, Vc::Response), 12, id, lengths);
            net.send(2, head(3, Vc::Response), 63, id, lengths);
        }
        net.run_until("delivery", |net| {
            net.ends[2].healthy().len() >= 4_000 && net.ends[0].healthy().len() >= 2_000
        });
        net.run(1_000);
        for (end, source) in [(2, 3), (2, 12), (0, 63)] {
            let packets = net.ends[end].healthy();
            for packet in &packets {
                assert_eq!(check_packet(packet), Ok(EopStatus::Healthy));
            }
            // Packets of five or more phits contain their number.
            let of_source = |p: &&Vec<Phit>| p[1].content() == source && p.len() > 4;
            let of_source = packets.iter().filter(of_source);
            let ids: Vec<u32> = of_source.map(|p| p[2].content()).collect();
            let expected: Vec<u32> = (0..2_000).filter(|id| id % 16 != 0).collect();
            assert_eq!(ids, expected, "from {source} at {loss} % loss");
        }
        assert_eq!(net.ends[2].healthy().len(), 4_000);
        let poisoned = counted(&net.chip).poisoned_packets_forwarded;
        // Speculative forwarding has an effect only with losses.
        assert_eq!(poisoned > 0, loss > 0, "{poisoned}");
        assert_eq!(net.chip.core().phits_inside(), 0);
    }
}

/// BlackWidow sec. 4.3: a packet with an invalid CRC is removed if it has not begun to flow out of
/// the input queue; otherwise it is marked as damaged and flows on. If frames enter the queue as a
/// whole, no packet within one frame begins before its check.
#[test]
fn only_phits_handed_up_as_they_come_begin_before_their_packet_is_judged() {
    let run = |cut_through| {
        let step = Duration::from_us(10);
        let free = config(RouterClock::FreeRunning);
        let change = |mut config: PhitLinkConfig| {
            config.link.cut_through = cut_through;
            config
        };
        let mut net = Net::with(free, &[3, 63], step, change);
        net.bring_up();
        net.flip_percent = 30;
        for id in 0..1_200 {
            // Frames of three whole packets and three idle phits. Bits are flipped from phit 27 on,
            // in the body of the last packet.
            let phits = [13, 13, 19][id as usize % 3];
            net.send(0, head(63, Vc::Request), 3, id, phits);
            if id % 3 == 2 {
                net.run_until("three packets", |net| {
                    net.ends[1].healthy().len() > id as usize
                });
            }
        }
        let packets = net.ends[1].healthy();
        let ids: Vec<u32> = packets.iter().map(|packet| packet[2].content()).collect();
        assert_eq!(ids, (0..1_200).collect::<Vec<_>>(), "once each, in order");
        let link = net.chip.lcb(3).expect("a link").counters().clone();
        let poisoned = counted(&net.chip).poisoned_packets_forwarded;
        assert_eq!(net.chip.core().phits_inside(), 0);
        [link.rx_crc_errors, link.rx_let_go_packets, poisoned]
    };
    let frames = run(CutThrough::Frames);
    assert!(frames[0] > 50 && frames[1..] == [0, 0], "{frames:?}");
    let phits = run(CutThrough::Phits);
    assert!(phits[0] > 50 && phits[1] > phits[0] / 2, "{phits:?}");
    assert_eq!(
        phits[1], phits[2],
        "each packet is poisoned and forwarded: {phits:?}"
    );
}

#[test]
fn an_idle_chip_is_silent_and_does_nothing() {
    let mut net = free_running(&[0, 1]);
    net.send(0, head(1, Vc::Request), 0, 7, 10);
    net.run_until("delivery", |net| net.ends[1].healthy().len() == 1);
    net.run(10_000);
    let (cycles, frames) = (counted(&net.chip).executed_cycles, net.frames);
    net.run(100_000);
    assert_eq!(counted(&net.chip).executed_cycles, cycles);
    let frames = net.frames - frames;
    assert!(frames <= 4, "{frames} frames in an idle second");
    let wakeup = net.chip.next_wakeup();
    assert!(wakeup.is_none_or(|w| w.reason == WakeReason::Link));
}

#[test]
fn the_paced_clock_takes_25_cycles_per_chip() {
    let mut net = paced();
    let sent = net.now;
    net.send(0, head(1, Vc::Request), 0, 7, 4);
    net.run_until("delivery", |net| !net.ends[1].received[0].is_empty());
    let latency = net.now.since(sent).as_ps();
    // Two links of four phits at 1.28 ns and the 25 stages, plus a few steps to pass phits on.
    let least = 2 * 4 * 1_280 + 25 * CYCLE_PS;
    let about = least..least + 8 * CYCLE_PS;
    assert!(about.contains(&latency), "{latency} ps against {least}");
}

#[test]
fn next_wakeup_of_a_paced_chip_names_the_next_cycle_with_work() {
    let mut net = paced();
    net.send(0, head(1, Vc::Request), 0, 7, 4);
    net.run_until("arrival", |net| net.chip.core().next_cycle().is_some());
    let wakeup = net.chip.next_wakeup().expect("phits are inside");
    assert_eq!(wakeup.reason, WakeReason::Pipeline);
    assert!(wakeup.at > net.now && wakeup.at.since(net.now).as_ps() <= 13 * CYCLE_PS);
}

#[test]
fn a_link_taken_down_discards_its_packets_and_the_rest_flows() {
    let mut net = free_running(&[0, 1, 2]);
    let now = net.now;
    net.chip
        .with_lcb(now, 1, |lcb| lcb.link_down(now))
        .expect("a port with a link");
    for id in 0..100 {
        net.send(0, head(1, Vc::Request), 0, id, 19);
        net.send(0, head(2, Vc::Request), 0, id, 5);
    }
    net.run_until("delivery", |net| net.ends[2].healthy().len() == 100);
    assert_eq!(counted(&net.chip).dead_port_packets, 100);
    let down = |event: &RouterEvent| {
        let why = DownReason::Command;
        matches!(event, RouterEvent::Link { port: 1, event: LinkEvent::Down { why: w, .. } } if *w == why)
    };
    assert!(net.events.iter().any(down), "{:?}", net.events);
    let now = net.now;
    net.chip
        .with_lcb(now, 1, |lcb| lcb.link_up(now))
        .expect("a port with a link");
    net.bring_up();
    net.send(0, head(1, Vc::Request), 0, 1, 6);
    net.run_until("delivery", |net| net.ends[1].healthy().len() == 1);
}

/// The peer's process is killed while sending, and replaced.
#[test]
fn a_restarted_peer_does_not_wedge_the_chip() {
    for moment in 0..12 {
        let mut net = free_running(&[0, 1]);
        for id in 0..400 {
            net.send(0, head(1, Vc::Request), 0, id, 19);
            net.send(1, head(0, Vc::Response), 1, id, 19);
        }
        net.loss_percent = 5;
        net.run(moment);
        net.loss_percent = 0;
        net.ends[0] = End::new(0, false, 2, net.now);
        net.run_until("the restart", |net| {
            let restarted = |event: &RouterEvent| match event {
                RouterEvent::Link { port, event } => {
                    *port == 0 && matches!(event, LinkEvent::PeerRestarted { .. })
                }
                _ => false,
            };
            net.events.iter().any(restarted)
        });
        net.bring_up();
        let mark = net.ends[1].healthy().len();
        net.send(0, head(1, Vc::Request), 7, 9_999, 19);
        net.run_until("delivery", |net| has(&net.ends[1].healthy()[mark..], 9_999));
        net.send(1, head(0, Vc::Response), 7, 9_999, 19);
        net.run_until("packets in the opposite direction", |net| {
            has(&net.ends[0].healthy(), 9_999)
        });
    }
}

#[test]
fn a_peer_that_takes_nothing_runs_into_forward_progress() {
    let mut net = free_running(&[0, 1, 2]);
    net.ends[1].stuck = true;
    net.chip
        .set("chip.forward_progress_ns", 1_000_000)
        .expect("a register");
    for id in 0..3_000 {
        net.send(0, head(1, Vc::Request), 0, id, 19);
    }
    let (port, vc) = (1, Vc::Request);
    let stalled = RouterEvent::ForwardProgress { port, vc };
    net.run_until("the timeout", |net| net.events.contains(&stalled));
    net.send(0, head(2, Vc::Request), 0, 1, 5);
    net.run_until("the packet behind", |net| net.ends[2].healthy().len() == 1);
    assert!(counted(&net.chip).stalled_port_packets > 0);
    assert_eq!(net.chip.get("chip.discard_requests"), Some(1 << 1));
    net.ends[1].stuck = false;
    net.send(0, head(1, Vc::Request), 0, 5_000, 5);
    let restored = RouterEvent::ForwardProgressRestored { port, vc };
    for _ in 0..10_000 {
        net.send(0, head(1, Vc::Request), 0, 5_000, 5);
        net.step();
        if net.events.contains(&restored) {
            return;
        }
    }
    panic!("the port is not used again");
}

/// A frame ends the packet at the front with `transmit_error`, which removes it, and brings a
/// shorter one for another column.
#[test]
fn a_packet_in_the_slot_of_a_removed_one_is_routed_again() {
    let mut net = free_running(&[0, 1, 2]);
    net.ends[1].stuck = true;
    // Two packets of 13 phits fill the row buffer and the column buffer; none waits behind them.
    for _ in 0..10_000 {
        net.send(0, head(1, Vc::Request), 0, 0, 13);
        net.run(3);
        if net.chip.core().phits_inside() == 26 {
            break;
        }
    }
    assert_eq!(net.chip.core().phits_inside(), 26);
    let mut removed = cut(&packet(head(1, Vc::Request), 0, 1, 19), 6);
    let end = removed.pop().expect("not empty");
    net.ends[0].queue.push_back(removed);
    net.step();
    net.ends[0].queue.push_back(vec![end]);
    net.send(0, head(2, Vc::Request), 0, 2, 5);
    net.step();
    net.run_until("the packet behind", |net| net.ends[2].healthy().len() == 1);
}

/// The register is in emulated time, like all times of a link.
#[test]
fn the_forward_progress_time_follows_the_dilation() {
    for dilation in [1, 4] {
        let clock = RouterClock::Paced { dilation };
        let mut net = up(&[0, 1], clock, Duration::from_us(1));
        net.ends[1].stuck = true;
        net.chip
            .set("chip.forward_progress_ns", 1_000_000)
            .expect("a register");
        for id in 0..100 {
            net.send(0, head(1, Vc::Request), 0, id, 19);
        }
        let began = net.now;
        net.run_until("the timeout", |net| {
            !net.chip.core().discarding().eq(&[0; 2])
        });
        let ms = net.now.since(began).as_ns() as f64 / 1e6;
        let expected = f64::from(dilation);
        let about = expected..expected + 0.1;
        assert!(about.contains(&ms), "{ms} ms at {dilation}");
    }
}

#[test]
fn registers_are_reached_by_name_and_counters_have_one_name_each() {
    let mut net = free_running(&[0, 1]);
    assert_eq!(net.chip.get("tile1.down_mask"), Some(63));
    assert_eq!(net.chip.set("tile1.down_mask", 31), Ok(()));
    assert_eq!(net.chip.get("tile1.down_mask"), Some(31));
    assert_eq!(net.chip.set("no.such", 1), Err(RegisterError::Unknown));
    let mut names = std::collections::HashSet::new();
    phitwire::device::Device::for_each_counter(&net.chip, &mut |name, _| {
        assert!(names.insert(name.to_owned()), "{name}")
    });
    assert!(names.contains("port1.rx_frames") && names.contains("phits_forwarded"));
}

#[test]
fn frames_for_ports_without_link_are_ignored() {
    let mut net = free_running(&[0]);
    for port in [1, 63, 64, 255] {
        net.chip.handle_frame(net.now, port, &[0xa5; 100]);
        assert_eq!(net.chip.poll_frame(net.now, port, &mut [0; FRAME]), None);
    }
    net.chip.advance(net.now);
}
