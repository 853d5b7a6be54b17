//! Sets: golden vectors, rejected sets, lanes, widening of numbers.

use crate::common::reasons_are_distinct;
use crate::decode::changed_set;
use crate::golden::{CONTROL_SET, DATA_SET, DONE, PUT_8, flits};
use phitwire_framing::aries::crc20;
use phitwire_framing::aries::flit::{Flit, VCS};
use phitwire_framing::aries::pattern::Pattern;
use phitwire_framing::aries::set::{
    ControlSet, DATA_FLITS, DataSet, LANES, MAX_LOAD, SET_BYTES, Set, SetError, SetView, Tail,
    number_distance, vc_ack, widen_ack, widen_vc_ack,
};

pub fn data_set() -> DataSet {
    let mut all = [Flit::IDLE; DATA_FLITS];
    let packets = [flits(&PUT_8), flits(&DONE)].concat();
    all[..packets.len()].copy_from_slice(&packets);
    let tail = Tail {
        number: 0x5b,
        ack: 0x2a,
        nack: false,
        load: 9,
        clock: true,
        vc_ack: 0xc3,
    };
    DataSet { flits: all, tail }
}

const ONES: u32 = 0x1111_1111;
const VC_ACKS: [u32; VCS] = [
    ONES,
    ONES * 2,
    ONES * 3,
    ONES * 4,
    ONES * 5,
    ONES * 6,
    0x7777_77f8,
    5,
];

pub const CONTROL: ControlSet = ControlSet {
    probe: true,
    nack: true,
    next: 0x89ab_cd5b,
    ack: 0x0123_456a,
    missing_from: 0,
    missing: 0,
    vc_acks: VC_ACKS,
    clock: 0xfedc_ba98_7654,
    pulse: false,
    load: 6,
};

#[test]
fn deconstruct() {
    let view = SetView::new(&DATA_SET);
    assert!(!view.is_control());
    assert_eq!((view.number(), view.ack()), (0x5b, 0x2a));
    assert!(!view.nack());
    assert_eq!((view.load(), view.clock(), view.vc_ack()), (9, true, 0xc3));
    assert_eq!(view.flit(0).bits(), PUT_8[0]);
    assert_eq!(view.flit(5).bits(), DONE[0]);
    assert_eq!(view.crc(), crc20::check(&DATA_SET));
    let view = SetView::new(&CONTROL_SET);
    assert!(view.is_control() && view.nack() && !view.clock());
    assert_eq!((view.number(), view.ack(), view.load()), (0x5b, 0x2a, 6));
    assert_eq!(view.vc_ack(), vc_ack(CONTROL.vc_acks[3]));
    assert_eq!(view.flit(8).bits(), CONTROL.clock);
}

#[test]
fn construct() {
    for (golden, control) in [(DATA_SET, false), (CONTROL_SET, true)] {
        let from = SetView::new(&golden);
        let mut view = SetView::new([0xa5; SET_BYTES]);
        for i in (0..DATA_FLITS).rev() {
            view.set_flit(i, from.flit(i));
        }
        let tail = Tail {
            number: from.number(),
            ack: from.ack(),
            nack: from.nack(),
            load: from.load(),
            clock: from.clock(),
            vc_ack: from.vc_ack(),
        };
        view.set_tail(control, tail);
        assert_eq!(view.into_inner(), golden);
    }
}

#[test]
fn parse_golden() {
    assert_eq!(Set::parse(&DATA_SET), Ok(Set::Data(data_set())));
    assert_eq!(Set::parse(&CONTROL_SET), Ok(Set::Control(CONTROL)));
    assert_eq!(data_set().tail.vc(), 3);
}

#[test]
fn emit_golden() {
    for (set, golden) in [
        (Set::Data(data_set()), DATA_SET),
        (Set::Control(CONTROL), CONTROL_SET),
    ] {
        let mut bytes = [0xa5; SET_BYTES];
        set.emit(&mut bytes);
        assert_eq!(bytes, golden);
    }
    assert_eq!(data_set().buffer_len(), SET_BYTES);
    assert_eq!(CONTROL.buffer_len(), SET_BYTES);
}

#[test]
fn rejected_sets_are_named() {
    for golden in [DATA_SET, CONTROL_SET] {
        for bit in 0..SET_BYTES * 8 {
            let mut set = golden;
            set[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Set::parse(&set), Err(SetError::Crc), "bit {bit}");
        }
    }
    let reserved = [(0, 0x80), (0, 2), (1, 1), (6, 1), (7, 1)];
    for (at, bit) in reserved {
        let set = changed_set(&CONTROL_SET, |set| set[at] ^= bit);
        let found = Set::parse(&set);
        assert_eq!(found, Err(SetError::ReservedControl), "byte {at}");
    }
    // Number, odd bit, ack and VC ack are stored twice; the other fields of the tenth flit once.
    for (bit, twice) in (20..47).map(|bit| (bit, !matches!(bit, 28..33 | 39))) {
        let (at, mask) = (59 - bit / 8, 1 << (bit % 8));
        let set = changed_set(&CONTROL_SET, |set| set[at] ^= mask);
        let expected = twice.then_some(SetError::Contradiction);
        assert_eq!(Set::parse(&set).err(), expected, "bit {bit}");
    }
    let next = changed_set(&CONTROL_SET, |set| set[5] ^= 1);
    assert_eq!(Set::parse(&next), Err(SetError::Contradiction));
    reasons_are_distinct(&SetError::ALL, SetError::index, SetError::name);
}

#[test]
fn fields_are_cut_to_their_widths() {
    let mut bytes = [0; SET_BYTES];
    let tail = Tail {
        number: 0xff,
        ack: 0xff,
        nack: true,
        load: 0xff,
        clock: true,
        vc_ack: 0xff,
    };
    DataSet::emit_flits(&[Flit::IDLE; DATA_FLITS], tail, &mut bytes);
    let view = SetView::new(&bytes);
    assert_eq!((view.number(), view.ack()), (0x7f, 0x3f));
    assert_eq!(view.load(), MAX_LOAD);
    assert!(!view.is_control());
    let wide = ControlSet {
        load: 0xff,
        clock: u64::MAX,
        ..CONTROL
    };
    wide.emit(&mut bytes);
    let cut = ControlSet {
        load: MAX_LOAD,
        clock: (1 << 48) - 1,
        ..CONTROL
    };
    assert_eq!(Set::parse(&bytes), Ok(Set::Control(cut)));
}

/// Under a pattern, a set is read and written as the plain set XOR the pattern.
#[test]
fn a_pattern_lies_over_the_whole_set_and_hides_no_damage() {
    let bits = core::array::from_fn(|i| (i * 89 + 7) as u8 ^ 0x35);
    for pattern in [Pattern::NONE, Pattern::new(bits)] {
        let over = |mut set: [u8; SET_BYTES]| {
            pattern.apply(&mut set);
            set
        };
        let DataSet { flits, tail } = data_set();
        let mut bytes = [0xa5; SET_BYTES];
        DataSet::emit_under(&pattern, &flits, tail, &mut bytes);
        assert_eq!(bytes, over(DATA_SET));
        assert_eq!(over(over(DATA_SET)), DATA_SET);
        let data = Set::parse_under(&pattern, &bytes);
        assert_eq!(data, Ok(Set::Data(DataSet { flits, tail })));
        let control = Set::parse_under(&pattern, &over(CONTROL_SET));
        assert_eq!(control, Ok(Set::Control(CONTROL)));
        for bit in 0..SET_BYTES * 8 {
            let mut set = bytes;
            set[bit / 8] ^= 1 << (bit % 8);
            let damaged = Set::parse_under(&pattern, &set);
            assert_eq!(damaged, Err(SetError::Crc), "bit {bit}");
        }
    }
    assert_eq!(Pattern::new(bits).bytes(), &bits);
    assert_eq!(Pattern::new([0; SET_BYTES]), Pattern::NONE);
}

#[test]
fn short_numbers_widen_to_what_they_stand_for() {
    for known in [0, 1, 7, 8, 1000, u32::MAX - 100, u32::MAX] {
        for more in 0..2048 - 8 {
            let freed = known.wrapping_add(more);
            let found = widen_vc_ack(known, vc_ack(freed));
            let difference = freed.wrapping_sub(found) as i32;
            let is_near = (0..8).contains(&difference) || found == known;
            assert!(is_near, "{known} + {more}: {found}");
        }
        for more in 0..64 {
            let ack = known.wrapping_add(more);
            assert_eq!(widen_ack(known, (ack & 0x3f) as u8), ack);
        }
        for distance in -64..64_i32 {
            let number = known.wrapping_add_signed(distance);
            let found = number_distance(known, (number & 0x7f) as u8);
            assert_eq!(found, distance as i8);
        }
    }
    assert_eq!(vc_ack(8 * 256 + 15), 1);
}

#[test]
fn each_lane_has_its_bits_of_a_set() {
    for (lanes, each) in [(7, 160), (3, 240), (5, 240), (6, 240), (1, 480), (4, 480)] {
        let mut seen = [0; SET_BYTES];
        for lane in (0..3).filter(|lane| lanes >> lane & 1 != 0) {
            let mut area = [0; SET_BYTES];
            for word in 0..SET_BYTES / 3 {
                LANES.flip(&mut area, word, LANES.bits_of(lanes, lane));
            }
            let bits: u32 = area.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(bits, each);
            let bytes = seen.iter_mut().zip(area);
            bytes.for_each(|(seen, byte)| *seen ^= byte);
        }
        assert_eq!(seen, [0xff; SET_BYTES], "every bit has one lane");
    }
    // Bit i, counted from the last of the set, travels on lane i mod 3.
    let mut area = [0; SET_BYTES];
    (0..SET_BYTES / 3).for_each(|word| LANES.flip(&mut area, word, LANES.bits_of(7, 1)));
    for i in 0..SET_BYTES * 8 {
        let bit = area[SET_BYTES - 1 - i / 8] >> (i % 8) & 1;
        assert_eq!(bit == 1, i % 3 == 1);
    }
}

#[test]
fn a_control_set_can_acknowledge_every_channel() {
    for next in 0..VCS as u32 {
        let set = ControlSet { next, ..CONTROL };
        assert_eq!(set.tail().vc(), next as usize);
        assert_eq!(set.tail().vc_ack, vc_ack(CONTROL.vc_acks[next as usize]));
    }
}
