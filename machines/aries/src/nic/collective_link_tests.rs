//! Collective operations of two NICs over a link that loses, duplicates and reorders frames.

use super::back_to_back_tests::{Joined, JoinedNics as _};
use super::test_bench::config;
use super::*;
use phitwire::link::testing::joined::SECOND;
use phitwire::nic::RunPhase;
use phitwire::node::Node;
use phitwire::time::Duration;

fn spec(run: u32, op: &str) -> CollectiveSpec {
    CollectiveSpec {
        run,
        nics: vec![1, 0],
        op: op.parse().unwrap(),
        count: 300,
        ..CollectiveSpec::default()
    }
}

fn reports(joined: &Joined) -> CollectiveReport {
    let mut merged = CollectiveReport::default();
    for nic in &joined.nics {
        merged.merge(&nic.collective_report().unwrap());
    }
    merged
}

#[test]
fn runs_are_clean_over_a_bad_link_while_puts_fill_the_window() {
    let netem = "loss 2% duplicate 1% reorder 2% 50% delay 20us";
    let full = [0, 1].map(|index| config(index).max_outstanding(8));
    let mut joined = Joined::with(full, netem);
    for (run, op) in [(1, "barrier"), (2, "sum-f64"), (3, "max-i32")] {
        let now = joined.now;
        for nic in &mut joined.nics {
            nic.begin_collectives(spec(run, op), now).unwrap();
        }
        let end = joined.now + SECOND.times(20);
        while reports(&joined).phase != RunPhase::Done {
            assert!(
                joined.now < end,
                "the run does not end: {:?}",
                reports(&joined)
            );
            let mut ends = Vec::new();
            joined.post(0, super::test_bench::put(&[7; 64]), 0, &mut ends);
            joined.step();
            joined.fetch(&mut ends);
        }
        let report = reports(&joined);
        assert!(report.is_clean(), "{report:?}");
        assert_eq!((report.iterations, report.latency.count()), (300, 600));
    }
    joined.drain();
}

#[test]
fn a_joined_operation_needs_no_call_but_those_of_a_node() {
    let mut joined = Joined::new("");
    let now = joined.now;
    let nodes = [Target::Virtual(0), Target::Virtual(1)];
    for (rank, nic) in joined.nics.iter_mut().enumerate() {
        let tree = CollectiveTree::of_rank(&nodes, 2, 0, rank as u32, 9, 1).unwrap();
        nic.set_up_collective(0, &tree).unwrap();
    }
    let join = |rank: i64| Join {
        collective: "sum-i64".parse().unwrap(),
        contribution: Contribution::Word(Operand::i64(40 + rank)),
        into: Some(256),
        mark: false,
        user: 3,
    };
    assert_eq!(joined.nics[1].join(now, 0, &join(1)), Ok(0));
    joined.run(Duration::from_ms(3));
    assert!(joined.nics[1].poll_collective().is_none());
    assert!(joined.nics[1].next_wakeup().is_some());
    let now = joined.now;
    assert_eq!(joined.nics[0].join(now, 0, &join(0)), Ok(0));
    joined.run(Duration::from_ms(3));
    for nic in 0..2 {
        let completion = joined.nics[nic].poll_collective().unwrap();
        assert_eq!(completion.outcome, Ok(Operand::i64(81)));
        assert_eq!(joined.word(nic, 256), 81);
        assert!(joined.nics[nic].collective_idle(0));
        assert_eq!(joined.nics[nic].release_collective(0), Ok(()));
    }
}
