//! Training frames: golden vector, rejected frames, detection of the cable. Also the lanes.

use crate::common::{TRAINING_FRAME, changed, flipped_bits_are_found, header_is_golden};
use phitwire_framing::carrier::frame::{EmitError, FrameError, FrameHeader, LinkEnd, parse};
use phitwire_framing::carrier::lanes::{Lanes, MAX_LANES, Permutation};
use phitwire_framing::carrier::training::{
    PATTERN_AT, PATTERN_BYTES, Training, TrainingPattern, TrainingView, name_bytes, name_str,
};

const LANES: Lanes = Lanes::new(3, 24);

fn meaning() -> Training {
    Training {
        header: FrameHeader {
            kind: Training::KIND,
            end: LinkEnd::A,
            link: 0x0102,
            fabric: 0xfab0_0fab,
            tx_epoch: 7,
            rx_epoch: 0,
            lanes: 7,
            units: 0,
        },
        state: 2,
        heard: true,
        rx_lanes: 5,
        port: 63,
        expect_port: 17,
        max_packet: 19,
        rate: 4,
        window_packets: 512,
        credits: [4096, 8192],
        node: name_bytes("yarc-0").unwrap(),
        expect_node: name_bytes("nœud").unwrap(),
        pattern: LANES.pattern(),
    }
}

#[test]
fn deconstruct() {
    assert_eq!(Training::KIND.code(), 1);
    header_is_golden(&meaning().header, &TRAINING_FRAME);
    let view = TrainingView::new_checked(&TRAINING_FRAME[..]).unwrap();
    assert_eq!((view.state(), view.lane_byte()), (2, 0x85));
    assert_eq!((view.port(), view.expect_port()), (63, 17));
    assert_eq!((view.max_packet(), view.rate()), (19, 4));
    assert_eq!(view.window_packets(), 512);
    assert_eq!(view.credits(), [4096, 8192]);
    assert_eq!(name_str(&view.node()), Some("yarc-0"));
    assert_eq!(name_str(&view.expect_node()), Some("nœud"));
    assert!(view.check_is_right());
    assert_eq!(view.check(), 0x0e0f_b73d);
    assert_eq!(view.pattern(), LANES.pattern());
}

#[test]
fn construct() {
    let mut bytes = [0xa5; TRAINING_FRAME.len()];
    meaning().header.emit(&mut bytes).unwrap();
    let mut view = TrainingView::new_checked(bytes).unwrap();
    view.set_pattern(&LANES.pattern());
    view.set_nodes(&name_bytes("yarc-0").unwrap(), &name_bytes("nœud").unwrap());
    view.set_credits([4096, 8192]);
    view.set_window_packets(512);
    view.set_rate(4);
    view.set_max_packet(19);
    view.set_expect_port(17);
    view.set_port(63);
    view.set_lanes(true, 5);
    view.set_state(2);
    view.fill_check();
    assert_eq!(view.into_inner(), TRAINING_FRAME);
}

#[test]
fn parse_golden() {
    assert_eq!(Training::parse(&TRAINING_FRAME), Ok(meaning()));
    assert_eq!(parse(&TRAINING_FRAME).unwrap().header(), &meaning().header);
}

#[test]
fn emit_golden() {
    let mut buf = [0xa5; 160];
    assert_eq!(meaning().emit(&mut buf), Ok(meaning().buffer_len()));
    assert_eq!(buf[..152], TRAINING_FRAME);
    assert_eq!(buf[152..], [0xa5; 8]);
    let mut buf = [0xa5; 151];
    assert_eq!(meaning().emit(&mut buf), Err(EmitError::BufferTooSmall));
    assert_eq!(buf, [0xa5; 151]);
}

#[test]
fn frames_wrong_in_a_field_are_rejected_by_its_name() {
    let training = |change: fn(&mut Vec<u8>)| changed(&TRAINING_FRAME, 100, change);
    let cases = [
        (training(|b| b[21] |= 0x10), FrameError::ReservedTraining),
        (training(|b| b[21] |= 0x40), FrameError::ReservedTraining),
        (training(|b| b[19] = 4), FrameError::BadPhitCount),
        (training(|b| b[36..68].fill(0)), FrameError::BadName),
        (training(|b| b[67] = b'x'), FrameError::BadName),
        (training(|b| b[68] = 0xff), FrameError::BadName),
        (TRAINING_FRAME[..151].to_vec(), FrameError::BadLength),
        ([&TRAINING_FRAME[..], &[0]].concat(), FrameError::BadLength),
        (TRAINING_FRAME[..30].to_vec(), FrameError::BadLength),
    ];
    for (bytes, error) in cases {
        assert_eq!(Training::parse(&bytes), Err(error), "{bytes:x?}");
    }
    // Only a link with a fourth lane can be asked to use it.
    let fourth = Training::parse(&training(|b| b[21] |= 0x08)).expect("a lane of the format");
    assert_eq!(fourth.of_lanes(LANES), Err(FrameError::ReservedTraining));
    assert_eq!(fourth.of_lanes(Lanes::new(4, 24)), Ok(fourth));
    let data = training(|b| b[1] = 0x20);
    assert_eq!(Training::parse(&data), Err(FrameError::BadKind));
    assert_eq!(Training::parse(&[]), Err(FrameError::TooShort));
}

#[test]
fn every_flipped_bit_before_the_pattern_is_found() {
    flipped_bits_are_found(&TRAINING_FRAME, PATTERN_AT.start, |bytes| {
        Training::parse(bytes).is_ok()
    });
}

#[test]
fn names() {
    let longest = "x".repeat(32);
    assert_eq!(name_str(&name_bytes(&longest).unwrap()), Some(&longest[..]));
    assert_eq!(name_bytes(&"x".repeat(33)), None);
    assert_eq!(name_bytes(""), None);
    assert_eq!(name_bytes("a\0b"), None);
    assert_eq!(name_bytes("a\0"), None);
}

fn cables() -> impl Iterator<Item = Permutation> {
    let straight = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];
    let crossed = straight.map(|[a, b, c]| [c, b, a]);
    straight.into_iter().chain(crossed).flat_map(|order| {
        (0..8).map(move |bits| {
            let invert = [0, 1, 2].map(|lane| bits >> lane & 1 != 0);
            Permutation::new(order, invert).expect("these are the six permutations")
        })
    })
}

#[test]
fn rows_of_the_pattern_are_far_apart() {
    assert_eq!((LANES.pattern_bits(), LANES.pattern_tolerance()), (128, 16));
    let near_half = |wrong: u32| (63..=65).contains(&wrong);
    for a in 0..3 {
        // Rows must be distant in either polarity.
        assert!((0..a).all(|b| near_half(LANES.distance(&LANES.pattern(), b, a))));
        assert!(near_half(LANES.distance(&[0; PATTERN_BYTES], 0, a)));
    }
    for (count, word_bits) in [(1, 8), (1, 32), (2, 8), (2, 16), (2, 32), (3, 24), (4, 24)] {
        assert!(
            Lanes::new(count, word_bits).rows_differ(),
            "{count}, {word_bits}"
        );
    }
}

#[test]
fn all_48_cables_are_found_through_noise() {
    for cable in cables() {
        let mut bytes = TRAINING_FRAME;
        LANES.swizzle_area(&mut bytes[PATTERN_AT], LANES.all(), &cable);
        let Ok(training) = Training::parse(&bytes) else {
            panic!("the body is not noisy")
        };
        assert_eq!(LANES.find_cable(&training.pattern), Ok(cable));
        // The maximum of tolerated bit errors on each lane: all bits of two wire words, eight per
        // lane each.
        let mut noisy = training.pattern;
        LANES.flip(&mut noisy, 3, 0xff_ffff);
        LANES.flip(&mut noisy, 9, 0xff_ffff);
        assert_eq!(LANES.find_cable(&noisy), Ok(cable));
        LANES.flip(&mut noisy, 0, LANES.bits_of(LANES.all(), 1) & 0x18);
        // One more inverted bit on physical lane 1.
        assert_eq!(LANES.find_cable(&noisy), Err(0b010));
        assert!(LANES.read_pattern(&noisy)[0].is_some());
    }
}

/// The pattern with each word changed.
fn changed_pattern(change: impl FnMut(u32) -> u32) -> TrainingPattern {
    let mut pattern = LANES.pattern();
    LANES.map_area(&mut pattern, change);
    pattern
}

#[test]
fn dead_and_doubled_lanes_are_named() {
    let [row, .., last] = [0, 1, 2].map(|lane| LANES.bits_of(LANES.all(), lane));
    let pattern = changed_pattern(|word| word & !last);
    assert_eq!(LANES.find_cable(&pattern), Err(0b100));
    let lanes = [Some((0, false)), Some((1, false)), None, None];
    assert_eq!(LANES.read_pattern(&pattern), lanes);
    assert_eq!(LANES.find_cable(&[0; PATTERN_BYTES]), Err(0b111));
    let doubled = changed_pattern(|word| word & row | (word & row) << 1 | word & row << 2);
    assert_eq!(LANES.find_cable(&doubled), Err(LANES.all()));
}

#[test]
fn lanes_share_the_bits_of_a_word() {
    for lanes in [
        LANES,
        Lanes::new(4, 24),
        Lanes::new(2, 32),
        Lanes::new(1, 8),
    ] {
        for active in 1..=lanes.all() {
            let masks = (0..MAX_LANES as u8).map(|lane| lanes.bits_of(active, lane));
            let mut seen = 0;
            for (lane, mask) in masks.enumerate() {
                assert_eq!(mask & seen, 0);
                let share = lanes.word_bits() / active.count_ones();
                let expected = [0, share][usize::from(active >> lane & 1)];
                assert_eq!(mask.count_ones(), expected);
                seen |= mask;
            }
            assert_eq!(seen, lanes.word_mask());
        }
    }
    assert_eq!(LANES.bits_of(0b111, 1), 0x492492);
    assert_eq!(LANES.bits_of(0b101, 2), 0xaaaaaa);
    assert_eq!(LANES.bits_of(0b010, 1), 0xffffff);
    let none = [(0, 0), (7, 3), (0xf8, 3)].map(|(lanes, lane)| LANES.bits_of(lanes, lane));
    assert_eq!(none, [0; 3]);
}

#[test]
fn a_cable_moves_whole_lanes() {
    let cable = Permutation::new([2, 0, 1], [false, false, true]).unwrap();
    let on = |lane| LANES.bits_of(LANES.all(), lane);
    let inverted = on(2);
    assert_eq!(LANES.swizzle(on(2), LANES.all(), &cable), on(0) ^ inverted);
    assert_eq!(LANES.swizzle(on(0), LANES.all(), &cable), on(1) ^ inverted);
    assert_eq!(LANES.swizzle(on(1), LANES.all(), &cable), 0);
    // Two lanes left: the sender's 0 and 1 arrive on physical 1 and 2, in this order.
    assert_eq!(LANES.swizzle(0x555555, 0b011, &cable), 0x555555 ^ 0xaaaaaa);
    // The sender's 1 and 2: 2 arrives on physical 0, so the streams are exchanged.
    assert_eq!(LANES.swizzle(0x555555, 0b110, &cable), 0);
    for cable in cables() {
        for active in 0..8 {
            for wire in [0, 0xff_ffff, 0x12_3456, 0xfe_dcba] {
                let swizzled = LANES.swizzle(wire, active, &cable);
                assert_eq!(LANES.unswizzle(swizzled, active, &cable), wire);
                if cable.is_identity() {
                    assert_eq!(LANES.swizzle(wire, active, &cable), wire);
                }
            }
        }
    }
    assert_eq!(cables().filter(Permutation::is_identity).count(), 1);
    assert_eq!(Permutation::new([0, 1, 1], [false; 3]), None);
    assert_eq!(Permutation::new([0, 1, 3], [false; 3]), None);
    assert_eq!(Permutation::new([0, 1, 2], [false; 4]), None);
    assert_eq!(Permutation::new([0, 1, 2, 3, 4], [false; 5]), None);
    // A fourth lane is not one of three.
    let four = Permutation::new([3, 0, 1, 2], [true; 4]).expect("four lanes");
    let lanes = Lanes::new(4, 24);
    for active in 1..16 {
        let there = lanes.swizzle(0x12_3456, active, &four);
        assert_eq!(lanes.unswizzle(there, active, &four), 0x12_3456);
    }
}
