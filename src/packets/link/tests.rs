//! Links of whole packets in the shared link tests.

use phitwire_framing::carrier::frame::{FrameKind, HEADER_BYTES, PLAIN_AT, checksum};
use phitwire_framing::carrier::lanes::Lanes;

use super::frame::frame_len;
pub(crate) use super::testing::{Rig, Sample};
use crate::link::testing::rig::{self, A, B, Link, Pair, config};
use crate::link::{LaneRate, LinkStandard, LinkView};
use crate::packets::Packet;
use crate::time::Duration;

/// A packet of a machine with two virtual channels: an id, and data derived from it. It travels on
/// `COUNT` lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Two<const COUNT: usize = 3> {
    id: u32,
    vc: u8,
}

impl<const COUNT: usize> Packet for Two<COUNT> {
    const KIND: FrameKind = FrameKind::new(7);
    const LANES: Lanes = Lanes::new(COUNT, 24);
    const LINK: &'static str = "test";
    const BYTES: usize = 21;
    const VCS: usize = 2;

    fn vc(&self) -> usize {
        self.vc.into()
    }

    fn emit(&self, bytes: &mut [u8]) {
        bytes.fill(self.id as u8);
        bytes[..4].copy_from_slice(&self.id.to_be_bytes());
        bytes[4] = self.vc;
    }

    fn parse(bytes: &[u8]) -> Self {
        let id = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let vc = bytes[4];
        assert!(bytes[5..].iter().all(|byte| *byte == id as u8));
        Self { id, vc }
    }
}

impl<const COUNT: usize> Sample for Two<COUNT> {
    const STANDARD: LinkStandard = LinkStandard {
        lanes: Self::LANES,
        rates: &[
            LaneRate::new(8, 6_250_000_000),
            LaneRate::new(9, 3_125_000_000),
        ],
    };

    fn sample(vc: usize, id: u32) -> Self {
        Self { id, vc: vc as u8 }
    }

    fn id(&self) -> u32 {
        self.id
    }
}

mod shared {
    crate::shared_link_cases! {
        crate::packets::link::testing::Rig<crate::packets::link::tests::Two>
    }
}

/// The named counters of end B.
fn counted(pair: &Pair<Rig<Two>>, names: &[&str]) -> Vec<u64> {
    let mut found = vec![0; names.len()];
    pair.ends[B].lcb.counters().for_each(|name, value| {
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            found[at] = value;
        }
    });
    found
}

#[test]
fn reserved_bits_are_refused_by_the_name_of_their_field() {
    let names = ["drop_reserved_control", "rx_crc_errors", "rx_packets"];
    let (flags, control) = (PLAIN_AT + 16, PLAIN_AT + 40..PLAIN_AT + 42);
    let packet_end = frame_len::<Two>(1) - 1;
    for (at, expected) in [
        (None, [0, 0, 1]),
        (Some(flags), [1, 0, 0]),
        (Some(flags + 7), [1, 0, 0]),
        (Some(control.start), [1, 0, 0]),
        (Some(control.end - 1), [1, 0, 0]),
        (Some(packet_end), [0, 1, 0]),
    ] {
        let mut pair = Pair::<Rig<Two>>::up(1);
        let mut frame = Rig::forge(&pair, B, 7, 0, &[Two::sample(1, 0)]);
        if let Some(at) = at {
            frame[at] |= 1 << 2;
            let mut checked = frame[..HEADER_BYTES].to_vec();
            checked.extend_from_slice(&frame[PLAIN_AT..control.end]);
            frame[HEADER_BYTES..PLAIN_AT].copy_from_slice(&checksum(&checked).to_be_bytes());
        }
        pair.inject(B, &frame);
        assert_eq!(counted(&pair, &names), expected, "{at:?}");
    }
}

#[test]
fn a_packet_that_has_no_buffer_is_counted_by_its_reason() {
    let cramped = |end| Rig::<Two>::cramped(config::<Rig<Two>>(end));
    for (vc, expected) in [(1, [8, 1, 0]), (5, [0, 0, 1])] {
        let mut pair = Pair::<Rig<Two>>::with(1, cramped(A), cramped(B), rig::FRAME_BYTES);
        pair.wait_up();
        let packets = (0..10).map(|id| Two { id, vc }).collect::<Vec<_>>();
        let frame = Rig::forge(&pair, B, 7, 0, &packets);
        pair.inject(B, &frame);
        let names = ["rx_packets", "rx_overflows", "rx_malformed_packets"];
        assert_eq!(counted(&pair, &names), expected);
    }
}

#[test]
fn packets_that_overtake_each_other_draw_no_storm_of_frames() {
    for seed in 0..5 {
        // Check from the first packet on, before any round trip has been measured.
        let mut pair = Pair::<Rig<Two>>::up(seed);
        pair.wire(|wire| wire.jitter = Duration::from_us(50));
        pair.exchange(4_000, Duration::from_ms(60_000));
        let frames: u64 = pair.frames.iter().sum();
        assert!(frames < 8_000, "only {frames} frames for all packets");
    }
}

#[test]
fn a_link_has_the_lanes_of_its_machine() {
    let noisy = |end| {
        let builder = config::<Rig<Two<4>>>(end).lane_retry_threshold(3);
        Rig::<Two<4>>::built(builder)
    };
    let mut pair = Pair::<Rig<Two<4>>>::with(1, noisy(A), noisy(B), rig::FRAME_BYTES);
    pair.wait_up();
    assert_eq!(pair.ends[B].lcb.rx_lanes(), 0b1111);
    assert_eq!(pair.ends[B].lcb.lane_retries(), [0; 4]);
    pair.wires[A].noisy_lanes = 0b1000;
    pair.wires[A].noise_of = 100;
    pair.exchange(4_000, Duration::from_ms(60_000));
    assert_eq!(pair.ends[A].lcb.rx_lanes(), 0b0111);
    assert_eq!(pair.ends[B].lcb.rx_lanes(), 0b1111);
    let retries = pair.ends[A].lcb.lane_retries();
    assert!(retries[3] > 3 && retries[..3] == [0; 3], "{retries:?}");
}
