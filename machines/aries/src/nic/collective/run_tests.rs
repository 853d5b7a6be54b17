use super::engine_tests::{barrier, message, serve};
use super::message::{Kind, Message};
use super::test_net::{Harm, Net};
use super::*;
use phitwire::nic::{CollectiveReport, CollectiveSpec, CollectiveSpecError, RunPhase};
use phitwire::time::Duration;

fn spec(ranks: u32, op: &str) -> CollectiveSpec {
    CollectiveSpec {
        run: 5,
        // The order of ranks differs from that of virtual nodes.
        nics: (0..ranks).rev().collect(),
        branching: 3,
        root: ranks / 3,
        engine: 2,
        op: op.parse().unwrap(),
        count: 40,
        patience_ns: 50_000_000,
        ..CollectiveSpec::default()
    }
}

fn begin(net: &mut Net, spec: &CollectiveSpec) {
    for rank in 0..spec.nics.len() {
        begin_at(net, rank, spec);
        net.collect(rank);
        net.settle(net.now + Duration::from_us(30));
    }
}

/// Begins `spec` at `rank`, without sending anything yet.
fn begin_at(net: &mut Net, rank: usize, spec: &CollectiveSpec) {
    let now = net.now;
    net.nics[rank].begin_collectives(now, spec.clone()).unwrap();
}

fn report(net: &Net) -> CollectiveReport {
    let mut merged = CollectiveReport::default();
    for nic in &net.nics {
        merged.merge(&nic.collective.report().unwrap());
    }
    merged
}

#[test]
fn runs_verify_every_result_of_every_operation() {
    for (number, op) in Collective::all().enumerate() {
        let mut net = Net::new(14, number as u64);
        net.harm = Harm::HARSH;
        begin(&mut net, &spec(14, &op.to_string()));
        net.settle(Time::NEVER);
        let report = report(&net);
        assert!(report.is_clean(), "{op}: {report:?}");
        assert_eq!((report.iterations, report.phase), (40, RunPhase::Done));
        assert_eq!((report.reported, report.latency.count()), (14, 14 * 40));
    }
}

#[test]
fn a_run_of_one_does_not_keep_the_network_interface() {
    let mut net = Net::new(1, 1);
    let spec = CollectiveSpec {
        count: 1000,
        ..spec(1, "sum-f32")
    };
    begin(&mut net, &spec);
    net.settle(Time::NEVER);
    assert!(report(&net).is_clean());
    assert_eq!(report(&net).iterations, 1000);
}

#[test]
fn runs_end_everywhere_after_the_same_iteration() {
    let mut net = Net::new(9, 3);
    let timed = CollectiveSpec {
        count: 0,
        duration_ns: 3_000_000,
        ..spec(9, "max-i64")
    };
    begin(&mut net, &timed);
    net.settle(Time::NEVER);
    let first = report(&net);
    assert!(first.is_clean() && first.iterations > 20, "{first:?}");
    let endless = CollectiveSpec {
        run: 6,
        duration_ns: 0,
        ..timed
    };
    begin(&mut net, &endless);
    net.settle(net.now + Duration::from_ms(2));
    assert_eq!(report(&net).phase, RunPhase::Running);
    net.nics[4].collective.stop_run();
    net.settle(Time::NEVER);
    let second = report(&net);
    let is_done = second.is_clean() && second.phase == RunPhase::Done;
    assert!(is_done, "{second:?}");
}

/// First the root (rank 4) and then a node on the path to it does not wait for the last of its
/// children.
#[test]
fn canary_a_barrier_that_releases_a_member_early_is_noticed() {
    for hasty in [None, Some(4), Some(6)] {
        let mut net = Net::new(14, 8);
        let spec = CollectiveSpec {
            nics: (0..14).collect(),
            ..spec(14, "barrier")
        };
        for rank in 0..14 {
            begin_at(&mut net, rank, &spec);
            if hasty == Some(rank) {
                let engine = net.nics[rank].collective.engines[2].as_mut().unwrap();
                assert!(engine.tree.children() > 0, "rank {rank} has no children");
                engine.hasty = 1;
            }
            net.collect(rank);
        }
        net.settle(net.now + Duration::from_ms(40));
        let report = report(&net);
        assert_eq!(report.wrong == 0, hasty.is_none(), "{hasty:?}: {report:?}");
    }
}

#[test]
fn canary_a_run_sees_a_wrong_word() {
    let mut net = Net::new(4, 3);
    let spec = CollectiveSpec {
        branching: 1,
        root: 0,
        nics: (0..4).collect(),
        ..spec(4, "sum-i64")
    };
    for rank in 0..3 {
        begin_at(&mut net, rank, &spec);
    }
    let forged = Message {
        outcome: Ok(Operand::i64(1)),
        ..message(Kind::Contribution)
    };
    let status = serve(&mut net, (2, 3), (2, driver::RUN_KEY, 5), &forged);
    assert_eq!(status, Status::Done);
    net.nics[3].begin_collectives(net.now, spec).unwrap();
    net.settle(Time::NEVER);
    let report = report(&net);
    assert_eq!((report.wrong, report.iterations), (4, 40));
    assert!(!report.is_clean());
}

#[test]
fn a_participant_that_is_cut_off_ends_the_run_with_a_reason() {
    let mut net = Net::new(12, 4);
    let spec = CollectiveSpec {
        count: 0,
        patience_ns: 3_000_000,
        ..spec(12, "sum-f64")
    };
    begin(&mut net, &spec);
    net.settle(net.now + Duration::from_ms(1));
    net.cut = vec![7];
    net.settle(Time::NEVER);
    let report = report(&net);
    assert_eq!(report.phase, RunPhase::Done);
    assert_eq!((report.timed_out + report.failed, report.wrong), (12, 0));
    assert!(report.failure.is_some() && !report.is_clean());
}

#[test]
fn while_a_run_has_an_engine_no_other_user_gets_it() {
    let mut net = Net::new(2, 5);
    let spec = CollectiveSpec {
        count: 0,
        ..spec(2, "barrier")
    };
    begin_at(&mut net, 0, &spec);
    let now = net.now;
    let tree = net.tree(1, 0, 0);
    let nic = &mut net.nics[0];
    let barrier = barrier();
    assert_eq!(nic.join(now, 2, &barrier), Err(JoinError::Driven));
    assert_eq!(nic.set_up_collective(2, &tree), Err(TreeError::Busy));
    assert_eq!(nic.set_up_collective(1, &tree), Ok(()));
    let again = nic.begin_collectives(now, spec);
    assert_eq!(again, Err(CollectiveSpecError::Busy(5)));
}

#[test]
fn specifications_are_read_and_refused() {
    let short: CollectiveSpec = toml::from_str("run = 4\nnics = [1, 2]").unwrap();
    let long = CollectiveSpec {
        run: 4,
        nics: vec![1, 2],
        ..CollectiveSpec::default()
    };
    assert_eq!(short, long);
    let text = "run = 4\nnics = [7]\nop = \"sum-f64\"\nbranching = 2\ncount = 9";
    let long: CollectiveSpec = toml::from_str(text).unwrap();
    assert_eq!(long.op.to_string(), "sum-f64");
    let again: CollectiveSpec = toml::from_str(&toml::to_string(&long).unwrap()).unwrap();
    assert_eq!(again, long);
    assert!(toml::from_str::<CollectiveSpec>("run = 4\nnics = [1]\nop = \"prod-i64\"").is_err());
    assert!(toml::from_str::<CollectiveSpec>("run = 4\nnics = [1]\nsize = 8").is_err());
    let refuse = |change: fn(&mut CollectiveSpec)| {
        let mut spec = spec(4, "barrier");
        change(&mut spec);
        spec.validate().unwrap_err()
    };
    use CollectiveSpecError::{Branching, Engine, Participants, Root, Twice, ZeroRun};
    assert_eq!(refuse(|s| s.run = 0), ZeroRun);
    assert_eq!(refuse(|s| s.nics.clear()), Participants(0));
    assert_eq!(refuse(|s| s.nics[0] = 1), Twice(1));
    assert_eq!(refuse(|s| s.branching = 33), Branching(33));
    assert_eq!(refuse(|s| s.root = 4), Root(4));
    assert_eq!(refuse(|s| s.engine = 4), Engine(4));
    let mut net = Net::new(3, 1);
    let now = net.now;
    let mut begin = |nics| {
        let mut spec = spec(4, "barrier");
        (spec.nics, spec.root) = (nics, 0);
        net.nics[0].begin_collectives(now, spec)
    };
    assert_eq!(begin(vec![1, 2]), Err(CollectiveSpecError::NotParticipant));
    assert_eq!(begin(vec![0, 3]), Err(CollectiveSpecError::VirtualNode(3)));
}

#[test]
fn every_rank_matters_to_every_result() {
    for op in Collective::all().filter(|&op| op != Collective::Barrier) {
        let spec = CollectiveSpec {
            op,
            ..spec(6, "barrier")
        };
        for rank in 0..6 {
            let without = |iteration| {
                let others = (0..6).filter(|&other| other != rank);
                let words = others.map(|other| spec.operand(other, iteration));
                words.reduce(|a, b| op.combine(a, b)).unwrap()
            };
            let shows = (0..200).any(|iteration| without(iteration) != spec.result(iteration));
            assert!(shows, "{op} {rank}");
        }
    }
}
