use super::failure_tests::{join_all, outcome};
use super::test_net::{Harm, KEY, Net, node};
use super::*;
use phitwire::nic::collective::testing::directly;
use phitwire::nic::{Number, Reduce};
use phitwire::rng::Rng;
use phitwire::time::Duration;
use std::collections::BTreeMap;

pub(super) fn op(text: &str) -> Collective {
    text.parse().unwrap()
}

pub(super) fn join_of(collective: Collective, operand: Operand) -> Join {
    Join {
        collective,
        contribution: Contribution::Word(operand),
        into: None,
        mark: false,
        user: 0,
    }
}

pub(super) fn barrier() -> Join {
    join_of(Collective::Barrier, Operand::default())
}

#[derive(Clone)]
struct Job {
    branching: u32,
    root: u32,
    operations: Vec<Collective>,
}

fn word(engine: usize, rank: usize, turn: usize, collective: Collective) -> Operand {
    let mut rng = Rng::new((rank * 1000 + turn) as u64, engine as u64);
    let number = match collective {
        Collective::Reduce(_, number) => number,
        Collective::Barrier => return Operand::default(),
    };
    let small = rng.below(1 << 20) as i32 - (1 << 19);
    let operand = match number {
        Number::Int32 => Operand::i32(rng.next_u64() as i32),
        Number::Int64 => Operand::i64(rng.next_u64() as i64),
        Number::Float32 => Operand::f32(small as f32 / 7.0),
        Number::Float64 => Operand::f64(f64::from(small) / 7.0),
    };
    operand.at(rank as u64)
}

/// The sum of a subtree in the tree's order, with Rust's addition.
fn tree_sum(n: u32, job: &Job, rank: u32, word: &impl Fn(u32) -> Operand, wide: bool) -> Operand {
    let position = TreePosition::new(n, job.branching, job.root, rank).unwrap();
    let children = position.children.iter();
    children.fold(word(rank), |sum, &child| {
        let other = tree_sum(n, job, child, word, wide);
        if wide {
            Operand::f64(sum.as_f64() + other.as_f64())
        } else {
            Operand::f32(sum.as_f32() + other.as_f32())
        }
    })
}

fn expected(n: usize, engine: usize, job: &Job, turn: usize) -> Operand {
    let collective = job.operations[turn];
    let own = |rank: u32| word(engine, rank as usize, turn, collective);
    if let Collective::Reduce(Reduce::Sum, number) = collective
        && number.is_float()
    {
        let wide = number == Number::Float64;
        let sum = tree_sum(n as u32, job, job.root, &own, wide);
        return Operand { location: 0, ..sum };
    }
    let words: Vec<Operand> = (0..n as u32).map(own).collect();
    directly(collective, &words)
}

/// Every rank joins all operations of all jobs in sequence, each job on its own engine, with random
/// delays. Returns the results of each rank, by engine and turn.
fn run(net: &mut Net, jobs: &[Job], think_ns: u64) -> Vec<Vec<Vec<CollectiveCompletion>>> {
    let ranks = net.nics.len();
    let mut results = vec![vec![Vec::new(); ranks]; jobs.len()];
    let mut hosts = BTreeMap::new();
    for engine in 0..jobs.len() {
        for rank in 0..ranks {
            let at = net.now + Duration::from_ns(net.rng.below(think_ns));
            hosts.insert((at, rank, engine), 0);
        }
    }
    let end = net.now + Duration::from_ms(10_000);
    loop {
        let host = hosts.keys().next().map(|&(at, ..)| at);
        let Some(at) = net.next().into_iter().chain(host).min() else {
            return results;
        };
        assert!(at < end, "the operation does not end");
        let mut called = net.step_to(at.max(net.now));
        while let Some(entry) = hosts.first_entry()
            && entry.key().0 <= net.now
        {
            let (_, rank, engine) = *entry.key();
            let turn = entry.remove();
            let collective = jobs[engine].operations[turn];
            let mut join = join_of(collective, word(engine, rank, turn, collective));
            join.user = turn as u64;
            net.join(rank, engine, &join);
            called.push(rank);
        }
        for rank in called {
            for completion in net.completions(rank) {
                let engine = usize::from(completion.engine);
                results[engine][rank].push(completion);
                let turn = completion.sequence as usize + 1;
                if turn < jobs[engine].operations.len() && completion.outcome.is_ok() {
                    let at = net.now + Duration::from_ns(1 + net.rng.below(think_ns));
                    hosts.insert((at, rank, engine), turn);
                }
            }
        }
    }
}

/// Checks that every rank got every result, correct and in order.
fn check(jobs: &[Job], results: &[Vec<Vec<CollectiveCompletion>>]) -> Result<(), String> {
    for (engine, (job, ranks)) in jobs.iter().zip(results).enumerate() {
        for turn in 0..job.operations.len() {
            let right = expected(ranks.len(), engine, job, turn);
            for (rank, got) in ranks.iter().enumerate() {
                let one = got.get(turn).ok_or("an operation is missing")?;
                let fits = one.sequence as usize == turn && one.user == turn as u64;
                if !fits || one.outcome != Ok(right) || got.len() != job.operations.len() {
                    return Err(format!(
                        "engine {engine} rank {rank}: {one:?}, not {right:?}"
                    ));
                }
            }
        }
    }
    Ok(())
}

fn job(branching: u32, root: u32, text: &str, times: usize) -> Job {
    let operations = vec![op(text); times];
    Job {
        branching,
        root,
        operations,
    }
}

fn run_right(net: &mut Net, jobs: &[Job], think_ns: u64) -> Vec<Vec<Vec<CollectiveCompletion>>> {
    set_up(net, jobs);
    let results = run(net, jobs, think_ns);
    check(jobs, &results).unwrap();
    results
}

/// A message about a sum from a child or a parent.
pub(super) fn message(kind: Kind) -> Message {
    Message {
        kind,
        sequence: 0,
        collective: op("sum-i64"),
        outcome: Ok(Operand::i64(5)),
        mark: false,
    }
}

fn set_up(net: &mut Net, jobs: &[Job]) {
    for (engine, job) in jobs.iter().enumerate() {
        net.set_up(engine, job.branching, job.root);
    }
}

#[test]
fn every_operation_over_every_branching() {
    for branching in 1..=MAX_BRANCHING as u32 {
        let mut net = Net::new(35, branching.into());
        let job = Job {
            branching,
            root: branching % 35,
            operations: Collective::all().collect(),
        };
        run_right(&mut net, &[job], 2_000);
    }
}

#[test]
fn results_are_right_and_nothing_counts_twice_under_loss_doubling_and_overtaking() {
    let all: Vec<Collective> = Collective::all().collect();
    let mut repeated = 0;
    for seed in 0..24 {
        let mut rng = Rng::new(seed, 9);
        let ranks = 1 + rng.below(if seed % 6 == 0 { 100 } else { 24 });
        let job = |_| Job {
            branching: 1 + rng.below(32) as u32,
            root: rng.below(ranks) as u32,
            operations: (0..8)
                .map(|_| all[rng.below(all.len() as u64) as usize])
                .collect(),
        };
        let jobs: Vec<Job> = (0..1 + seed as usize % ENGINES).map(job).collect();
        let mut net = Net::new(ranks as usize, seed);
        // Losses are bursty: no participant may give up before the network has recovered.
        net.harm = Harm::HARSH;
        set_up(&mut net, &jobs);
        let results = run(&mut net, &jobs, 20_000);
        check(&jobs, &results).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
        let counters = net.counters();
        let edges = 8 * jobs.len() as u64 * (ranks - 1);
        assert_eq!(counters.collective_contributions, edges, "seed {seed}");
        assert_eq!(counters.collective_results, edges, "seed {seed}");
        assert_eq!(counters.collective_strangers, 0);
        assert_eq!(counters.collective_breaks, 0);
        repeated += counters.collective_duplicates;
    }
    assert!(repeated > 100, "too few repeated messages: {repeated}");
}

#[test]
fn canary_the_check_sees_a_contribution_too_much_and_a_wrong_word() {
    let jobs = [job(3, 0, "sum-i64", 3)];
    let mut results = run_right(&mut Net::new(9, 1), &jobs, 1_000);
    // Rank 4 has joined once before: all its later messages belong to the previous operation.
    let mut net = Net::new(9, 1);
    set_up(&mut net, &jobs);
    let forged = message(Kind::Contribution);
    assert_eq!(serve(&mut net, (1, 4), (0, KEY, 7), &forged), Status::Done);
    let forged_results = run(&mut net, &jobs, 1_000);
    assert!(check(&jobs, &forged_results).is_err());
    results[0][7][2].outcome = Ok(Operand::i64(1));
    assert!(check(&jobs, &results).is_err());
    results[0][7].pop();
    assert!(check(&jobs, &results).is_err());
}

/// Delivers `message` from rank `from` to rank `to`, for an engine, with a key and an epoch.
/// Returns the status of the response.
pub(super) fn serve(
    net: &mut Net,
    (to, from): (usize, usize),
    (engine, key, epoch): (u16, u16, u32),
    message: &Message,
) -> Status {
    let code = message.kind as u8;
    let request = Request {
        destination: node(to),
        source: node(from),
        routing: Routing::default(),
        packet_id: 0,
        command: Command::Control { code },
        mdh: engine,
        echo: 0,
        ssid: 0,
        address: message.address(),
        key,
    };
    let unit = &mut net.nics[to].collective;
    let (data, len) = message.data(epoch, None);
    unit.serve(net.now, &request, code, &data[..len])
}

#[test]
fn strangers_are_refused_and_counted() {
    let mut net = Net::new(9, 1);
    net.set_up(0, 2, 0);
    let contribution = message(Kind::Contribution);
    let result = message(Kind::Result);
    // Rank 1 has the children 3 and 4 and the parent 0.
    let mut status_of =
        |from, key, message: &Message| serve(&mut net, (1, from), (0, key, 7), message);
    assert_eq!(status_of(5, KEY, &contribution), Status::Unsupported);
    assert_eq!(status_of(0, KEY, &contribution), Status::Unsupported);
    assert_eq!(status_of(3, KEY, &result), Status::Unsupported);
    assert_eq!(status_of(0, KEY, &result), Status::Unsupported);
    assert_eq!(status_of(3, KEY + 1, &contribution), Status::BadKey);
    let abort = Message {
        outcome: Err(CollectiveFailure::Mismatch),
        ..message(Kind::Abort)
    };
    assert_eq!(status_of(5, KEY, &abort), Status::Unsupported);
    assert_eq!(net.counters().collective_strangers, 6);
    let early = serve(&mut net, (1, 3), (0, KEY, 8), &contribution);
    assert_eq!(early, Status::NotReady);
    let late = Message {
        sequence: 1,
        ..contribution
    };
    assert_eq!(serve(&mut net, (1, 3), (0, KEY, 7), &late), Status::Busy);
    // None of these messages had an effect.
    let jobs = [job(2, 0, "sum-i64", 2)];
    let results = run(&mut net, &jobs, 1_000);
    check(&jobs, &results).unwrap();
}

#[test]
fn sums_of_floating_point_numbers_depend_on_the_tree_alone() {
    let [wide, narrow] = [5, 2].map(|branching| job(branching, 3, "sum-f64", 4));
    let sums = |job: &Job| [0, 1, 2, 3].map(|turn| expected(40, 0, job, turn));
    assert_ne!(
        sums(&wide),
        sums(&narrow),
        "the operands must expose the order"
    );
    let jobs = [wide];
    for seed in 0..20 {
        let mut net = Net::new(40, seed);
        net.harm = Harm::HARSH;
        run_right(&mut net, &jobs, 50_000);
    }
}

#[test]
fn a_tree_that_is_set_up_late_is_waited_for() {
    let mut net = Net::new(20, 5);
    net.harm = Harm::HARSH;
    for rank in 0..20 {
        let tree = net.tree(3, 19, rank);
        net.nics[rank].set_up_collective(3, &tree).unwrap();
        net.join(rank, 3, &join_of(op("sum-i64"), Operand::i64(1)));
        net.settle(net.now + Duration::from_us(300));
    }
    net.settle(Time::NEVER);
    for rank in 0..20 {
        assert_eq!(outcome(&mut net, rank), Some(Ok(Operand::i64(20))));
    }
}

#[test]
fn trees_follow_each_other_on_an_engine_without_mixing() {
    let mut net = Net::new(17, 6);
    net.harm = Harm::HARSH;
    for epoch in 0..40 {
        let mut left: Vec<usize> = (0..17).collect();
        while !left.is_empty() {
            left.retain(|&rank| {
                let tree = CollectiveTree {
                    epoch,
                    ..net.tree(1 + epoch % 5, epoch % 17, rank)
                };
                match net.nics[rank].set_up_collective(0, &tree) {
                    Ok(()) => {
                        net.join(rank, 0, &join_of(op("sum-i64"), Operand::i64(epoch.into())));
                        false
                    }
                    Err(TreeError::Busy) => true,
                    Err(error) => panic!("{error}"),
                }
            });
            if let Some(at) = net.next() {
                net.step_to(at.max(net.now));
            }
        }
        let mut results = 0;
        while results < 17 {
            for rank in 0..17 {
                if let Some(got) = outcome(&mut net, rank) {
                    let sum = Operand::i64(17 * i64::from(epoch));
                    assert_eq!(got, Ok(sum), "{epoch} {rank}");
                    results += 1;
                }
            }
            if let Some(at) = net.next().filter(|_| results < 17) {
                net.step_to(at.max(net.now));
            }
        }
    }
}

#[test]
fn stopping_ends_what_is_pending_everywhere() {
    let mut net = Net::new(10, 7);
    net.set_up(0, 3, 0);
    join_all(&mut net, 0, &[4], Collective::Barrier);
    net.settle(net.now + Duration::from_ms(1));
    net.nics[4].stop_collective(net.now, 0);
    net.collect(4);
    net.settle(net.now + Duration::from_ms(1));
    for rank in (0..10).filter(|&rank| rank != 4) {
        let stopped = CollectiveFailure::Stopped(node(4));
        assert_eq!(outcome(&mut net, rank), Some(Err(stopped)), "{rank}");
    }
}

#[test]
fn words_come_from_memory_and_results_go_there() {
    let mut net = Net::new(6, 8);
    net.set_up(0, 2, 5);
    for rank in 0..6 {
        let mut bytes = (100 - rank as i32).to_le_bytes().to_vec();
        bytes.extend((rank as u32).to_le_bytes());
        net.nics[rank].responder.memory.write(64, &bytes).unwrap();
        let join = Join {
            collective: op("min-i32"),
            contribution: Contribution::Memory(64),
            into: Some(128),
            mark: rank == 4,
            user: 5,
        };
        net.join(rank, 0, &join);
    }
    net.settle(Time::NEVER);
    for rank in 0..6 {
        let completion = net.completions(rank)[0];
        assert_eq!(completion.outcome, Ok(Operand::i32(95).at(5)));
        assert_eq!((completion.user, completion.mark), (5, true));
        let mut bytes = [0; 8];
        let memory = &mut net.nics[rank].responder.memory;
        memory.read(128, &mut bytes).unwrap();
        assert_eq!(bytes, [95, 0, 0, 0, 5, 0, 0, 0]);
    }
}

#[test]
fn the_fewest_messages_do() {
    let mut net = Net::new(50, 9);
    net.set_up(0, 7, 0);
    for _ in 0..10 {
        join_all(&mut net, 0, &[], Collective::Barrier);
        net.settle(Time::NEVER);
        (0..50).for_each(|rank| assert!(outcome(&mut net, rank).unwrap().is_ok()));
    }
    let retries = net.counters().collective_retries;
    assert_eq!(net.requests, 10 * 2 * 49 + retries);
}

#[test]
fn invalid_set_ups_and_joins_are_refused() {
    let mut net = Net::new(3, 1);
    let tree = net.tree(2, 0, 0);
    let barrier = barrier();
    let now = net.now;
    let nic = &mut net.nics[0];
    let mut refuse = |change: fn(&mut CollectiveTree), engine| {
        let mut tree = tree.clone();
        change(&mut tree);
        nic.set_up_collective(engine, &tree).unwrap_err()
    };
    assert_eq!(refuse(|_| (), 4), TreeError::Engine(4));
    let cases: [(fn(&mut CollectiveTree), _); 5] = [
        (|t| t.patience = Duration::ZERO, TreeError::Patience),
        (
            |t| t.children = vec![node(1).into(); 33],
            TreeError::Branching(33),
        ),
        (
            |t| t.children = vec![node(1).into(); 2],
            TreeError::Twice(node(1)),
        ),
        (
            |t| t.parent = Some(node(0).into()),
            TreeError::Twice(node(0)),
        ),
        (
            |t| t.parent = Some(Target::Virtual(3)),
            TreeError::VirtualNode(3),
        ),
    ];
    for (change, error) in cases {
        assert_eq!(refuse(change, 0), error);
    }
    assert_eq!(nic.join(now, 0, &barrier), Err(JoinError::NoTree(0)));
    assert_eq!(nic.join(now, 9, &barrier), Err(JoinError::NoTree(9)));
    nic.set_up_collective(0, &tree).unwrap();
    let float_and = Collective::Reduce(Reduce::And, Number::Float32);
    let logic = join_of(float_and, Operand::default());
    let refused = nic.join(now, 0, &logic);
    assert_eq!(refused, Err(JoinError::Operation(float_and)));
    let sum = join_of(op("sum-i64"), Operand::default());
    let (last, far) = ((1 << 16) - 7, u64::MAX);
    let into = Some(last);
    let refused = nic.join(now, 0, &Join { into, ..sum });
    assert_eq!(refused, Err(JoinError::LocalBounds(last)));
    let contribution = Contribution::Memory(far);
    let of_memory = Join {
        contribution,
        ..sum
    };
    let refused = nic.join(now, 0, &of_memory);
    assert_eq!(refused, Err(JoinError::LocalBounds(far)));
    assert_eq!(nic.join(now, 0, &barrier), Ok(0));
    assert_eq!(nic.join(now, 0, &barrier), Err(JoinError::Pending));
    assert_eq!(nic.set_up_collective(0, &tree), Err(TreeError::Busy));
    assert_eq!(nic.collective.release(0), Err(TreeError::Busy));
}
