//! All atomic operations, on memory that NICs reach and on memory that they do not reach.

use super::opened::Opened;
use super::*;
use crate::engine::elements::{CSWAP, MSWAP, READ, WRITE, is_valid, size_of_type};
use crate::flags::FI_ATOMIC;

const FORMS: [Form; 3] = [Form::Write, Form::Fetch, Form::Compare];
/// Old elements, operands and elements to compare with.
const OLD: [i64; 3] = [5, -7, 0];
const OPERANDS: [i64; 3] = [3, 2, 1];
const COMPARE: [i64; 3] = [5, 4, 0];
/// The bytes around the elements.
const AROUND: u8 = 0x5a;

const fn is_float(datatype: u8) -> bool {
    matches!(datatype, 8 | 9)
}

/// The bytes of a number as an element.
fn bytes_of(datatype: u8, number: i64) -> Vec<u8> {
    match datatype {
        8 => (number as f32).to_le_bytes().to_vec(),
        9 => (number as f64).to_le_bytes().to_vec(),
        _ => {
            let size = size_of_type(datatype).expect("it is supported");
            number.to_le_bytes()[..size].to_vec()
        }
    }
}

/// The number that an element of this type holds after `number` was stored in it.
fn held(datatype: u8, number: i64) -> i128 {
    let bits = 8 * size_of_type(datatype).expect("it is supported");
    let number = i128::from(number);
    let is_signed = datatype.is_multiple_of(2) || is_float(datatype);
    match is_signed {
        true => number,
        false => number & ((1 << bits) - 1),
    }
}

/// The new element according to libfabric's manual.
fn expected(datatype: u8, op: u8, [old, operand, compare]: [i64; 3]) -> Vec<u8> {
    let [a, b, c] = [old, operand, compare].map(|number| held(datatype, number));
    let truth = i128::from;
    let swap = |is: bool| if is { b } else { a };
    let new = match op {
        0 => a.min(b),
        1 => a.max(b),
        2 => a + b,
        3 => a * b,
        4 => truth(a != 0 || b != 0),
        5 => truth(a != 0 && b != 0),
        6 => a | b,
        7 => a & b,
        8 => truth((a != 0) != (b != 0)),
        9 => a ^ b,
        READ => a,
        WRITE => b,
        CSWAP => swap(c == a),
        13 => swap(c != a),
        14 => swap(c <= a),
        15 => swap(c < a),
        16 => swap(c >= a),
        17 => swap(c > a),
        MSWAP => (b & c) | (a & !c),
        _ => unreachable!("no such operation"),
    };
    bytes_of(datatype, new as i64)
}

fn all_of(datatype: u8, numbers: [i64; 3]) -> Vec<u8> {
    let all = numbers.map(|number| bytes_of(datatype, number));
    all.concat()
}

/// Begins an operation of a program on the opened memory; returns the buffer for the old elements.
fn begin(
    opened: &mut Opened,
    who: usize,
    (at, change): (u64, Change),
    with: [Vec<u8>; 2],
) -> Pieces {
    let far = opened.far(at);
    let size = size_of_type(change.datatype).expect("it is supported");
    let into = Pieces::leaked(vec![0; change.count * size]);
    let [operands, compare] = with.map(Pieces::leaked);
    let with = [
        (change.op != READ).then_some(operands),
        (change.form == Form::Compare).then_some(compare),
        (change.form != Form::Write).then(|| into.clone()),
    ];
    let node = &mut opened.net.nodes[who];
    let op = op(who, FI_ATOMIC);
    let begun = node
        .endpoint
        .atomic(&mut node.shared, far, change, with, op);
    assert_eq!(begun, Ok(()));
    into
}

fn check(opened: &mut Opened, change: Change) {
    let Change { datatype, op, .. } = change;
    let size = size_of_type(datatype).expect("it is supported");
    let at = 8 + 2 * size;
    let memory = Pieces::One(opened.region);
    memory.fill(0, &vec![AROUND; memory.len()]);
    let old = all_of(datatype, OLD);
    memory.fill(at, &old);
    let with = [all_of(datatype, OPERANDS), all_of(datatype, COMPARE)];
    let into = begin(opened, 0, (at as u64, change), with);
    opened.net.wait(0);
    let mut whole = vec![AROUND; memory.len()];
    let new: Vec<_> = (0..3)
        .flat_map(|n| expected(datatype, op, [OLD[n], OPERANDS[n], COMPARE[n]]))
        .collect();
    whole[at..at + new.len()].copy_from_slice(&new);
    assert_eq!(memory.now(), whole, "{change:?}");
    if change.form != Form::Write {
        assert_eq!(into.now(), old, "{change:?}");
    }
}

/// Every operation that is reported as supported is carried out.
#[test]
fn every_supported_operation_has_the_right_result() {
    for reaches in [true, false] {
        let mut opened = Opened::new(64);
        if !reaches {
            let region = opened.net.nodes[1].shared.regions.remove(&opened.key);
            let region = region.expect("it is there");
            opened.key = 1;
            let region = Region {
                open: None,
                ..region
            };
            opened.net.nodes[1].shared.regions.insert(1, region);
        }
        let mut count = 0;
        for (datatype, op) in (0..=u8::MAX).flat_map(|op| (0..=u8::MAX).map(move |of| (of, op))) {
            for form in FORMS
                .into_iter()
                .filter(|&form| is_valid(datatype, op, form))
            {
                let change = Change {
                    datatype,
                    op,
                    form,
                    count: 3,
                };
                check(&mut opened, change);
                count += 1;
            }
        }
        // Integers: 11 without and 12 with a result, 7 with a comparison; floats: 3 and 1 fewer.
        assert_eq!(count, 8 * (11 + 12 + 7) + 2 * (8 + 9 + 6));
    }
}

/// A word holds elements of several programs. One is changed by the NIC, the others by requests.
#[test]
fn neighbours_in_a_word_lose_no_change() {
    const ROUNDS: usize = 60;
    let mut opened = Opened::by(Network::new(&[0, 1, 2, 3], 7, true), 1, 8);
    let change = |datatype| Change {
        datatype,
        op: 2,
        form: Form::Write,
        count: 1,
    };
    for _ in 0..ROUNDS {
        begin(&mut opened, 0, (0, change(1)), [vec![1], Vec::new()]);
        begin(&mut opened, 2, (1, change(0)), [vec![3], Vec::new()]);
        let high = (1_u32 << 16).to_le_bytes().to_vec();
        begin(&mut opened, 3, (0, change(5)), [high, Vec::new()]);
        for who in [0, 2, 3] {
            opened.net.wait(who);
        }
    }
    let sums = [ROUNDS as u8, 3 * ROUNDS as u8, ROUNDS as u8, 0];
    assert_eq!(Pieces::One(opened.region).to_vec(0, 4), sums);
}

#[test]
fn short_elements_that_are_not_aligned_are_refused() {
    let mut opened = Opened::new(64);
    let change = Change {
        datatype: 3,
        op: 2,
        form: Form::Write,
        count: 1,
    };
    begin(&mut opened, 0, (3, change), [vec![1, 0], Vec::new()]);
    opened.net.settle();
    let refused = [(0, libc::EREMOTEIO, Why::Refused)];
    assert_eq!(opened.net.nodes[0].errors(), refused);
}
