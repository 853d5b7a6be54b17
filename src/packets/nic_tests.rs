//! Two NICs, one at each end of a link, that both send as many requests as they can.

use phitwire_framing::carrier::frame::FrameKind;
use phitwire_framing::carrier::lanes::Lanes;

use super::*;
use crate::link::testing::rig::{A, B, config};
use crate::link::{LaneRate, LinkProfile, LinkStandard};
use crate::nic::{Abilities, RoutingMode, RunPhase, TrafficSpec};
pub(crate) use crate::packets::link::tests::{Rig, Sample};
use crate::packets::{Packet, PacketDepths, PacketLinkConfig, TransferPacket};
use crate::sim::{Fabric, LinkSpec, NodeId};

/// Path selections for packets with a choice.
const TWO_WAYS: &[RoutingMode] = &[RoutingMode::Adaptive0, RoutingMode::Ordered];

/// A transfer as a packet. With two channels, replies have their own channel, and requests a choice
/// of paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TestPacket<const VCS: usize>(Transfer);

impl<const CHANNELS: usize> Packet for TestPacket<CHANNELS> {
    const KIND: FrameKind = FrameKind::new(7);
    const LANES: Lanes = Lanes::new(3, 24);
    const LINK: &'static str = "test";
    const BYTES: usize = 23 + MAX_DATA;
    const VCS: usize = CHANNELS;

    fn vc(&self) -> usize {
        usize::from(CHANNELS == 2 && !self.0.kind.is_request())
    }

    fn emit(&self, bytes: &mut [u8]) {
        let transfer = &self.0;
        bytes[..2].copy_from_slice(&transfer.to.to_be_bytes());
        bytes[2..4].copy_from_slice(&transfer.from.to_be_bytes());
        bytes[4..12].copy_from_slice(&transfer.address.to_be_bytes());
        bytes[12..20].copy_from_slice(&transfer.name.to_be_bytes());
        let (kind, ordered) = (transfer.kind as u8, transfer.ordered.into());
        bytes[20..23].copy_from_slice(&[kind, transfer.len, ordered]);
        bytes[23..].copy_from_slice(&transfer.data);
    }

    fn parse(bytes: &[u8]) -> Self {
        let number = |at: core::ops::Range<usize>| {
            let bytes = bytes[at].iter();
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Self(Transfer {
            to: number(0..2) as u16,
            from: number(2..4) as u16,
            address: number(4..12),
            name: number(12..20),
            kind: Kind::ALL[usize::from(bytes[20])],
            len: bytes[21],
            ordered: bytes[22] != 0,
            data: core::array::from_fn(|at| bytes[23 + at]),
            refusal: None,
        })
    }
}

impl<const VCS: usize> TransferPacket for TestPacket<VCS> {
    const ABILITIES: Abilities = Abilities {
        atomics: true,
        ways: if VCS == 2 { TWO_WAYS } else { &[] },
        ..Abilities::puts_and_gets(MAX_DATA as u32)
    };
    const NAME_BITS: u32 = 16;
    const MESSAGES: bool = true;

    fn pack(transfer: &Transfer) -> Self {
        Self(*transfer)
    }

    fn unpack(&self) -> Option<Transfer> {
        Some(self.0)
    }
}

impl<const VCS: usize> Sample for TestPacket<VCS> {
    const STANDARD: LinkStandard = LinkStandard {
        lanes: Self::LANES,
        rates: &[LaneRate::new(8, 6_250_000_000)],
    };

    fn sample(_: usize, _: u32) -> Self {
        unreachable!("only NICs create packets here")
    }

    fn id(&self) -> u32 {
        unreachable!("only NICs create packets here")
    }
}

const COUNT: u64 = 500;

/// One of two NICs, with few buffers and a queue of `answers` replies.
fn nic<const VCS: usize>(end: usize, answers: usize) -> PacketNic<TestPacket<VCS>> {
    PacketNic::new(nic_config::<VCS>(end, answers), Time::ZERO)
}

pub(super) fn nic_config<const VCS: usize>(end: usize, answers: usize) -> PacketNicConfig {
    let link = config::<Rig<TestPacket<VCS>>>(end).profile(LinkProfile::paper());
    PacketNicConfig {
        number: end as u16,
        nics: 2,
        links: vec![PacketLinkConfig {
            link: link.build().expect("the profile is valid"),
            depths: PacketDepths::new(4, 128),
        }],
        memory_bytes: 1 << 20,
        outstanding: 64,
        answers,
        timeout: Duration::from_ms(20_000),
        incarnation: Incarnation::default(),
        seed: None,
    }
}

pub(super) fn joined<const VCS: usize>(
    configs: [PacketNicConfig; 2],
) -> Fabric<PacketNic<TestPacket<VCS>>> {
    let mut fabric = Fabric::new(5);
    let nics = configs.map(|config| fabric.add(PacketNic::new(config, Time::ZERO)));
    let spec = LinkSpec {
        latency: Duration::from_ns(100),
        mtu: 1_500,
    };
    let [a, b] = nics.map(|nic| (nic, 0));
    fabric.connect(a, b, spec).expect("both ports are free");
    fabric.run_for(Duration::from_ms(1));
    fabric
}

/// Two connected NICs that have both started a run.
fn two<const VCS: usize>(answers: usize) -> Fabric<PacketNic<TestPacket<VCS>>> {
    let mut fabric = joined([A, B].map(|end| nic_config::<VCS>(end, answers)));
    for nic in [0, 1].map(NodeId) {
        let spec = TrafficSpec {
            processors: vec![0, 1],
            size: MAX_DATA as u32,
            window: 64,
            count: COUNT,
            ..TrafficSpec::default()
        };
        let started = fabric.command(nic, |nic, now| nic.start(now, spec));
        started.expect("the run is valid");
    }
    fabric
}

/// Whether both runs end without a timeout, and at most `most` replies wait at any time.
fn ends<const VCS: usize>(mut fabric: Fabric<PacketNic<TestPacket<VCS>>>, most: u64) -> bool {
    let reports = |fabric: &Fabric<PacketNic<TestPacket<VCS>>>| {
        [0, 1].map(|nic| {
            let nic = fabric.node(NodeId(nic));
            assert!(nic.account().inside <= most, "{:?}", nic.account());
            nic.report(Some(1)).expect("a run was started")
        })
    };
    for _ in 0..10_000 {
        fabric.run_for(Duration::from_us(1));
        let [a, b] = reports(&fabric);
        assert_eq!(a.corrupted + b.corrupted + a.duplicated + b.duplicated, 0);
        if a.phase == RunPhase::Done && b.phase == RunPhase::Done {
            assert_eq!([a.acknowledged, b.acknowledged], [COUNT; 2]);
            return true;
        }
    }
    false
}

#[test]
fn requests_wait_where_answers_have_no_room_and_none_is_lost() {
    assert!(ends(two::<2>(1), 1));
    assert!(ends(two::<2>(8), 8));
}

#[test]
fn on_one_channel_too_two_that_ask_each_other_come_to_their_end() {
    assert!(ends(two::<1>(64), 64));
    // Each NIC accepts a request before the other can send one; each has room for one reply.
    assert!(ends(two::<1>(1), 1));
}

#[test]
fn impossible_requests_are_refused_and_answered_without_data() {
    let mut nic = nic::<1>(A, 64);
    let most = MAX_DATA as u8;
    let (done, refused) = ((Kind::Done, 0), (Kind::Refused, 0));
    for (kind, address, len, answer) in [
        (Kind::Put, 0, most, done),
        (Kind::Put, 0, most + 1, refused),
        (Kind::Put, 1 << 20, most, refused),
        (Kind::Get, 0, most, (Kind::Done, most)),
        (Kind::Get, 0, most + 1, refused),
        (Kind::Get, 1 << 20, most, refused),
    ] {
        let asked = Transfer {
            from: 1,
            name: 7,
            len,
            data: [1; MAX_DATA],
            ..Transfer::new(0, kind, address)
        };
        nic.nic_core.serve(0, &asked);
        let reply = nic.nic_core.ports[0]
            .answers
            .pop_front()
            .expect("the request was answered");
        assert_eq!((reply.kind, reply.len), answer, "{asked:?}");
    }
}

#[test]
fn events_that_nobody_fetches_are_counted() {
    let mut nic = nic::<1>(A, 64);
    for run in 0..MAX_EVENTS as u64 + 2 {
        nic.event(DeviceEvent::TrafficDone { run });
    }
    let mut lost = 0;
    nic.for_each_counter(&mut |name, value| {
        if name == "events_lost" {
            lost += value;
        }
    });
    assert_eq!(lost, 2);
}
