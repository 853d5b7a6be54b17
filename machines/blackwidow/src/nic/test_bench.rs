//! Test benches for NICs: two that are connected to each other, and one with a passive peer.

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::yarc::packet::{PacketBuf, Vc};

use super::{BlackWidowNic, NicConfig};
use crate::link::testing::with;
use crate::link::{Lcb, PhitLinkConfig, PhitProfile, STANDARD};
use phitwire::device::{Device as _, DeviceEvent, TrafficRuns};
use phitwire::link::testing::joined::{Joined, SECOND};
use phitwire::link::{EndName, LinkConfig, LinkProfile, LinkView, NodeLink};
use phitwire::net::Profile;
use phitwire::nic::{TrafficReport, TrafficSpec};
use phitwire::node::Node;
use phitwire::packets::transfer::{Kind, Transfer};
use phitwire::packets::{Completion, PostError};
use phitwire::time::{Duration, Time};

pub(super) const A: u16 = 3;
pub(super) const B: u16 = 5;
const STEP: Duration = Duration::from_us(5);

pub(super) fn link(slice: u16, end: LinkEnd, epoch: u32, profile: Profile) -> PhitLinkConfig {
    let name = |node: &str| EndName {
        node: node.to_owned(),
        port: slice as u8,
    };
    let (local, peer) = match end {
        LinkEnd::A => (name("a"), name("b")),
        LinkEnd::B => (name("b"), name("a")),
    };
    let (times, phits) = match profile {
        Profile::Paper => (LinkProfile::paper(), PhitProfile::paper()),
        Profile::Live => (LinkProfile::live(), PhitProfile::live()),
    };
    let builder = LinkConfig::builder(STANDARD, slice, end, local, peer);
    with(builder.epoch(epoch).profile(times), phits)
}

pub(super) fn config(end: LinkEnd, slices: u16, epoch: u32) -> NicConfig {
    let links = (0..slices)
        .map(|s| link(s, end, epoch, Profile::Live))
        .collect();
    let processor = match end {
        LinkEnd::A => A,
        LinkEnd::B => B,
    };
    small(processor, links)
}

fn small(processor: u16, links: Vec<PhitLinkConfig>) -> NicConfig {
    NicConfig {
        memory_bytes: 1 << 20,
        timeout: Duration::from_ms(50),
        ..super::config(processor, links)
    }
}

/// The calls of a NIC's user in these tests.
pub(super) trait User {
    fn write(&mut self, now: Time, dest: u16, at: u64, data: &[u8]) -> Result<u64, PostError>;
    fn read(&mut self, now: Time, dest: u16, at: u64, len: u8) -> Result<u64, PostError>;
    fn completions(&mut self) -> Vec<Completion>;
    fn outstanding(&self) -> u32;
    fn traffic_report(&self, run: Option<u64>) -> Option<TrafficReport>;
    fn start_traffic(&mut self, now: Time, spec: TrafficSpec);
}

impl User for BlackWidowNic {
    fn write(&mut self, now: Time, dest: u16, at: u64, data: &[u8]) -> Result<u64, PostError> {
        self.post(now, &Transfer::new(dest, Kind::Put, at).with(data))
    }

    fn read(&mut self, now: Time, dest: u16, at: u64, len: u8) -> Result<u64, PostError> {
        let asked = Transfer::new(dest, Kind::Get, at);
        self.post(now, &Transfer { len, ..asked })
    }

    fn completions(&mut self) -> Vec<Completion> {
        std::iter::from_fn(|| self.poll_completion()).collect()
    }

    fn outstanding(&self) -> u32 {
        self.account().requests
    }

    fn traffic_report(&self, run: Option<u64>) -> Option<TrafficReport> {
        self.report(run)
    }

    fn start_traffic(&mut self, now: Time, spec: TrafficSpec) {
        self.start(now, spec).unwrap();
    }
}

pub(super) type Pair = Joined<BlackWidowNic>;

pub trait NicPair: Sized {
    fn with(a: NicConfig, b: NicConfig) -> Self;
    fn new(slices: u16) -> Self;
    fn wait_for_links(&mut self);
    /// Steps until the run that one or both NICs started is done.
    fn until_traffic_is_done(&mut self, limit: Duration);
}

impl NicPair for Pair {
    fn with(a: NicConfig, b: NicConfig) -> Self {
        let made = |now| [a, b].map(|config| BlackWidowNic::new(config, now));
        let mut pair = Self::of(made, "");
        pair.wait_for_links();
        pair
    }

    fn new(slices: u16) -> Self {
        Self::with(config(LinkEnd::A, slices, 1), config(LinkEnd::B, slices, 1))
    }

    fn wait_for_links(&mut self) {
        let up = |nic: &BlackWidowNic| {
            (0..nic.ports() as u8).all(|p| nic.end(p).is_some_and(Lcb::is_active))
        };
        self.until(SECOND.times(2), |pair| pair.nics.iter().all(up));
    }

    fn until_traffic_is_done(&mut self, limit: Duration) {
        use phitwire::nic::RunPhase::Done;
        let done = |nic: &BlackWidowNic| nic.traffic_report(None).is_none_or(|r| r.phase == Done);
        self.until(limit, |pair| pair.nics.iter().all(done));
    }
}

pub(super) fn events(nic: &mut BlackWidowNic) -> Vec<DeviceEvent> {
    std::iter::from_fn(|| nic.poll_event()).collect()
}

/// A link end without a NIC, in place of `b`. It sends the phits given to it, keeps those received,
/// and returns credits only on request.
pub(super) struct RawPeer {
    pub nic: BlackWidowNic,
    pub lcb: Lcb,
    pub now: Time,
}

impl RawPeer {
    pub(super) fn new(profile: Profile) -> Self {
        let now = Time::from_ns(1);
        let ours = link(0, LinkEnd::B, 1, profile);
        let theirs = link(0, LinkEnd::A, 1, profile);
        let mut peer = Self {
            nic: BlackWidowNic::new(small(A, vec![theirs]), now),
            lcb: Lcb::new(ours, now),
            now,
        };
        while !(peer.lcb.is_active() && peer.nic.end(0).unwrap().is_active()) {
            assert!(
                peer.now < Time::from_ns(2_000_000_000),
                "the link does not come up"
            );
            peer.step();
        }
        peer
    }

    pub(super) fn step(&mut self) {
        self.now += STEP;
        let mut buf = [0xa5; 1472];
        self.nic.advance(self.now);
        while let Some(len) = self.nic.poll_frame(self.now, 0, &mut buf) {
            self.lcb.handle_frame(self.now, &buf[..len]);
        }
        self.lcb.handle_timers(self.now);
        while let Some(len) = self.lcb.poll_frame(self.now, &mut buf) {
            self.nic.handle_frame(self.now, 0, &buf[..len]);
        }
    }

    pub(super) fn run(&mut self, span: Duration) {
        let end = self.now + span;
        while self.now < end {
            self.step();
        }
    }

    /// Sends `packet` if the link can accept it, and returns whether it did.
    pub(super) fn send(&mut self, vc: Vc, packet: &PacketBuf) -> bool {
        let can = self.lcb.wire().can_begin(vc);
        if can {
            packet
                .as_slice()
                .iter()
                .for_each(|&phit| self.lcb.push(phit));
        }
        can
    }

    /// Takes all complete packets of `vc` from the input queue, and returns their credits to the
    /// sender.
    pub(super) fn take(&mut self, vc: Vc) -> Vec<PacketBuf> {
        let (mut packets, mut packet) = (Vec::new(), PacketBuf::new());
        while self.lcb.input().ready(vc) {
            let phit = self.lcb.input_mut().pop(vc);
            assert!(packet.push(phit));
            if phit.is_eop() {
                packets.push(core::mem::take(&mut packet));
            }
        }
        self.lcb.give_back();
        packets
    }
}
