//! Counters of peers' operations on registered memory.

use super::network::Faults;
use super::*;
use crate::engine::shared::Counter;
use crate::flags::{FI_ATOMIC, FI_READ, FI_RMA, FI_WRITE};

/// Number of operations of each kind.
const ROUNDS: usize = 40;
const KEY: u64 = 11;

/// Adds counters to a program: one of reads and one of writes, each for its memory and for its
/// endpoint, and one of both for its memory.
fn count(node: &mut Node, bytes: Bytes) {
    let shared = &mut node.shared;
    let slots = [(); 5].map(|()| shared.counters.insert(Counter::default()));
    let slots = slots.map(|slot| slot.expect("there is room"));
    let region = Region {
        bytes,
        access: FI_REMOTE_READ | FI_REMOTE_WRITE,
        base: 0,
        open: None,
        counters: vec![
            (FI_REMOTE_READ, slots[0]),
            (FI_REMOTE_WRITE, slots[1]),
            (FI_REMOTE_READ, slots[4]),
            (FI_REMOTE_WRITE, slots[4]),
        ],
    };
    shared.regions.insert(KEY, region);
    let counters = &mut node.endpoint.binds_mut().counters;
    counters.insert(FI_REMOTE_READ, slots[2]);
    counters.insert(FI_REMOTE_WRITE, slots[3]);
}

fn begin(node: &mut Node, number: usize) -> Result<(), i32> {
    let far = Far {
        number: 1,
        address: 0,
        key: KEY,
    };
    let (shared, endpoint) = (&mut node.shared, &mut node.endpoint);
    let bytes = [8, PART + 1][number / 6 % 2];
    let memory = Pieces::leaked(vec![1; bytes]);
    let word = || Pieces::leaked(vec![1; 8]);
    let mut change = |form, flags| {
        let change = Change {
            datatype: 7,
            op: 2,
            form,
            count: 1,
        };
        let into = (form == Form::Fetch).then(word);
        let with = [Some(word()), None, into];
        endpoint.atomic(shared, far, change, with, op(number, FI_ATOMIC | flags))
    };
    match number % 6 {
        0 => change(Form::Write, FI_WRITE),
        1 => change(Form::Fetch, FI_READ),
        2 | 3 => endpoint.read(shared, far, memory, op(number, FI_RMA | FI_READ)),
        4 => endpoint.write(shared, far, memory, None, op(number, FI_RMA | FI_WRITE)),
        _ => endpoint.write(shared, far, memory, Some(5), op(number, FI_RMA | FI_WRITE)),
    }
}

/// Each operation counts once, although requests and answers are lost and resent.
#[test]
fn operations_of_peers_count_once() {
    for lost in [0, 100] {
        let mut net = all(2);
        let Pieces::One(bytes) = Pieces::leaked(vec![0; PART + 1]) else {
            unreachable!("it is one");
        };
        count(&mut net.nodes[1], bytes);
        net.faults = Faults {
            lost,
            unanswered: lost,
            ..net.faults
        };
        for number in 0..6 * ROUNDS {
            assert_eq!(begin(&mut net.nodes[0], number), Ok(()));
            net.wait(0);
        }
        net.settle();
        let counters = &net.nodes[1].shared.counters;
        let counted: Vec<_> = counters.iter().map(|counter| counter.value).collect();
        // One operation in six fetches and changes.
        let expected = [3, 4, 3, 4, 6].map(|share| share * ROUNDS as u64);
        assert_eq!(counted, expected, "{lost} per mille lost");
    }
}
