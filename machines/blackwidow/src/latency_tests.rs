//! The zero-load latency of a paced chip that is driven only by its nodes' deadlines.

use std::collections::VecDeque;

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::yarc::crc16::PacketCrc;
use phitwire_framing::yarc::packet::{EopStatus, Head, Vc, second_phit};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

use crate::link::testing::with;
use crate::link::{Lcb, PhitLinkConfig, PhitProfile, STANDARD};
use crate::route::registers::ChipRegisters;
use crate::router::pipeline::CYCLE_PS;
use crate::router::{Yarc, YarcConfig};
use phitwire::chip::RouterClock;
use phitwire::link::{EndName, LinkClock, LinkConfig, LinkProfile, NodeLink};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::sim::{Fabric, LinkSpec, NodeId};
use phitwire::time::{Duration, Time};

const CLOCK: LinkClock = LinkClock::Paced { dilation: 1 };
/// Time for three lanes of 6.25 Gb/s to carry a phit of 24 bits.
const PHIT_PS: u64 = 1_280;
const CABLE: Duration = Duration::from_ns(25);

/// A link end that sends queued phits and records the arrival times of phits.
struct End {
    lcb: Lcb,
    to_send: VecDeque<Phit>,
    came: Vec<Time>,
}

impl Node for End {
    type Event = ();

    fn ports(&self) -> usize {
        1
    }
    fn handle_frame(&mut self, now: Time, _: PortId, bytes: &[u8]) {
        self.lcb.handle_frame(now, bytes);
        for vc in Vc::ALL {
            while self.lcb.input().ready(vc) {
                self.lcb.input_mut().pop(vc);
                self.came.push(now);
            }
        }
        self.lcb.give_back();
    }
    fn advance(&mut self, now: Time) {
        self.lcb.handle_timers(now);
        if self.lcb.wire().can_begin(Vc::Request) {
            self.to_send.drain(..).for_each(|phit| self.lcb.push(phit));
        }
    }
    fn ready_ports(&self) -> u64 {
        1
    }
    fn poll_frame(&mut self, now: Time, _: PortId, buf: &mut [u8]) -> Option<usize> {
        self.lcb.poll_frame(now, buf)
    }
    fn next_wakeup(&self) -> Option<Wakeup> {
        Wakeup::at(self.lcb.next_wakeup(), WakeReason::Link)
    }
    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

enum Either {
    End(Box<End>),
    Chip(Box<Yarc>),
}

macro_rules! either {
    ($either:expr, $node:ident => $call:expr) => {
        match $either {
            Either::End($node) => $call,
            Either::Chip($node) => $call,
        }
    };
}

impl Node for Either {
    type Event = ();

    fn ports(&self) -> usize {
        either!(self, node => node.ports())
    }
    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        either!(self, node => node.handle_frame(now, port, bytes));
    }
    fn advance(&mut self, now: Time) {
        either!(self, node => node.advance(now));
    }
    fn ready_ports(&self) -> u64 {
        either!(self, node => node.ready_ports())
    }
    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        either!(self, node => node.poll_frame(now, port, buf))
    }
    fn next_wakeup(&self) -> Option<Wakeup> {
        either!(self, node => node.next_wakeup())
    }
    fn poll_event(&mut self) -> Option<()> {
        either!(self, node => node.poll_event().map(|_| ()))
    }
}

fn link(port: PortId, end: LinkEnd) -> PhitLinkConfig {
    let name = |node: &str, port| EndName {
        node: node.into(),
        port,
    };
    let (chip, far) = (name("chip", port), name(&format!("end{port}"), 0));
    let (local, peer) = match end {
        LinkEnd::A => (chip, far),
        LinkEnd::B => (far, chip),
    };
    let builder = LinkConfig::builder(STANDARD, port.into(), end, local, peer)
        .profile(LinkProfile::paper())
        .clock(CLOCK);
    with(builder, PhitProfile::paper())
}

fn packet(dest: u16) -> Vec<Phit> {
    let head = Head {
        dest,
        vc: Vc::Request,
        hashed: false,
        adaptive: false,
        source_routed: false,
        payload: 0,
    };
    let mut crc = PacketCrc::new();
    let mut phits = vec![
        Phit::new(PhitKind::Head, head.emit()),
        Phit::new(PhitKind::Body, second_phit(0, 0)),
        Phit::new(PhitKind::Body, 7),
    ];
    phits.iter().for_each(|phit| crc.update(phit.content()));
    phits.push(Phit::new(PhitKind::Eop, crc.eop(EopStatus::Healthy)));
    phits
}

/// A chip with a link end at each of two ports, trained and idle.
fn idle_chip(from: PortId, to: PortId) -> (Fabric<Either>, [NodeId; 2]) {
    let mut fabric = Fabric::new(1);
    let chip = YarcConfig {
        name: "chip".into(),
        registers: ChipRegisters::flat(),
        ports: [from, to].map(|port| (port, link(port, LinkEnd::A))).into(),
        grain: phitwire::chip::Grain::Flit,
        clock: RouterClock::Paced { dilation: 1 },
    };
    let chip = fabric.add(Either::Chip(Box::new(Yarc::new(chip, Time::ZERO))));
    let spec = LinkSpec {
        latency: CABLE,
        mtu: 1_472,
    };
    let ends = [from, to].map(|port| {
        let config = link(port, LinkEnd::B);
        let end = fabric.add(Either::End(Box::new(End {
            lcb: Lcb::new(config, Time::ZERO),
            to_send: VecDeque::new(),
            came: Vec::new(),
        })));
        let joined = fabric.connect((chip, port), (end, 0), spec);
        joined.expect("the ports are free");
        end
    });
    fabric.run_for(Duration::from_ms(10));
    (fabric, ends)
}

/// Sends a packet at `sent`, and returns the arrival times of its first and last phit at the far
/// end.
fn cross(fabric: &mut Fabric<Either>, ends: [NodeId; 2], to: u16, sent: Time) -> [Time; 2] {
    fabric.run_until(sent);
    let before = came(fabric, ends[1]).len();
    fabric.command(ends[0], |node, _| match node {
        Either::End(end) => end.to_send.extend(packet(to)),
        Either::Chip(_) => unreachable!("an end node sends"),
    });
    fabric.run_for(Duration::from_us(10));
    let came = &came(fabric, ends[1])[before..];
    assert_eq!(came.len(), 4, "a complete packet");
    [came[0], came[3]]
}

fn came(fabric: &Fabric<Either>, end: NodeId) -> &[Time] {
    match fabric.node(end) {
        Either::End(end) => &end.came,
        Either::Chip(_) => unreachable!("an end node receives"),
    }
}

/// BlackWidow sec. 3: 25 stages at 800 MHz take 31.25 ns, after waiting for the next clock edge.
/// The packet's time on lanes and cables before and after the chip comes in addition. The idle time
/// before must not matter.
#[test]
fn an_idle_chip_takes_31_25_ns() {
    for (from, to) in [(8, 1), (0, 63)] {
        let (mut fabric, ends) = idle_chip(from, to);
        let over_link = Duration::from_ps(4 * PHIT_PS) + CABLE;
        for idle_us in [0, 3, 50, 1_000, 20_000] {
            for past_edge in [0, 1, 600, 1_249] {
                let start = fabric.now() + Duration::from_us(idle_us) + Duration::from_ns(1_000);
                let arrival = (start.as_ps() / CYCLE_PS) * CYCLE_PS + past_edge;
                let edge = Time::from_ps(arrival.div_ceil(CYCLE_PS) * CYCLE_PS);
                let sent = Time::from_ps(arrival - over_link.as_ps());
                let came = cross(&mut fabric, ends, to.into(), sent);
                let expected = edge + Duration::from_ps(31_250) + over_link;
                assert_eq!(
                    came, [expected; 2],
                    "{idle_us} us idle, {past_edge} ps past"
                );
            }
        }
    }
}
