//! Programs and a faulty network, both drawn from a seed: every operation ends once, with the right
//! outcome, and nothing is left over.

mod acts;
mod extras;
mod judge;
mod memory;
mod plan;

use std::time::Duration;

use super::network::{Faults, Harm, Network};
use super::*;
use judge::Judge;
use plan::{Plan, Shape};

/// Time limit after the last action: longer than patience, and than the retries of requests that
/// were sent into a cut.
const GRACE: Duration = Duration::from_secs(300);

/// Runs one seed. `Err` describes the failure.
fn run(seed: u64, harm: Option<Harm>) -> Result<(), String> {
    let mut plan = Plan::draw(seed);
    run_plan(&mut plan, seed, harm).map_err(|wrong| {
        format!(
            "{wrong} ({:?}, {:?}, {})",
            plan.shape, plan.faults, plan.reaches_own
        )
    })
}

fn run_plan(plan: &mut Plan, seed: u64, harm: Option<Harm>) -> Result<(), String> {
    let mut net = plan.network(seed);
    plan.open_regions(&mut net)?;
    net.faults = plan.faults;
    net.harm = harm;
    let begin = net.now;
    let mut judge = Judge::new(plan);
    let mut agenda: Vec<_> = std::mem::take(&mut plan.agenda);
    agenda
        .iter()
        .for_each(|(time, _)| net.wake_at(begin + *time));
    let last = agenda.last().map_or(Duration::ZERO, |(time, _)| *time);
    let end = begin + last + GRACE;
    agenda.reverse();
    let mut postponed = Vec::new();
    let mut wrong = Ok(());
    net.run(end, |net| {
        while let Some((_, action)) = agenda.pop_if(|(time, _)| begin + *time <= net.now) {
            postponed.push(action);
        }
        postponed.retain(|action| !plan.act(net, &mut judge, action));
        for at in 0..net.nodes.len() {
            wrong = std::mem::replace(&mut wrong, Ok(())).and_then(|()| judge.take(plan, net, at));
        }
        // Retry operations that found no room.
        if !postponed.is_empty() && net.next_event().is_none_or(|next| next > net.now + RETRY) {
            net.wake_at(net.now + RETRY);
        }
        wrong.is_err() || (agenda.is_empty() && postponed.is_empty() && judge.is_over(net))
    });
    wrong?;
    judge.judge(plan, &mut net, postponed.len())
}

/// Delay before an operation that found no room is tried again.
const RETRY: Duration = Duration::from_millis(1);

fn soak(seeds: std::ops::Range<u64>) {
    let wrong: Vec<_> = seeds
        .filter_map(|seed| Some(format!("seed {seed}: {}", run(seed, None).err()?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} seeds: {}",
        wrong.len(),
        wrong[..wrong.len().min(10)].join("\n")
    );
}

/// The first and last seed of `PHITWIRE_FABRIC_SEEDS`, such as `1..10000`; `tests/run.sh --long`
/// runs more than by default.
#[test]
fn seeds_are_clean() {
    let wanted = std::env::var("PHITWIRE_FABRIC_SEEDS").unwrap_or_else(|_| "1..200".into());
    let ends = wanted
        .split_once("..")
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let (first, last): (u64, u64) = ends.expect("first..last");
    soak(first..last + 1);
}

/// The seeds cover the cases for which they exist.
#[test]
fn seeds_draw_all_shapes() {
    for shape in Shape::ALL {
        assert!(
            (1..200).any(|seed| Plan::draw(seed).shape == shape),
            "{shape:?}"
        );
    }
    let drawn: [fn(&Plan) -> bool; 5] = [
        |plan| !plan.extras.companions.is_empty(),
        |plan| plan.extras.briefs.iter().any(|brief| brief.is_part),
        |plan| plan.extras.briefs.iter().any(|brief| brief.is_open),
        |plan| !plan.extras.replacements.is_empty(),
        |plan| !plan.extras.peeks.is_empty(),
    ];
    for (n, is_drawn) in drawn.iter().enumerate() {
        assert!((1..200).any(|seed| is_drawn(&Plan::draw(seed))), "{n}");
    }
}

/// Checks that some seed of this shape fails with the harm, and passes without it.
fn is_noticed(harm: Harm, shape: Shape) {
    let mut seeds = (1..2_000).filter(|&seed| Plan::draw(seed).shape == shape);
    let noticed = seeds.find(|&seed| run(seed, Some(harm)).is_err());
    let seed = noticed.unwrap_or_else(|| panic!("{harm:?} is never noticed"));
    assert_eq!(run(seed, None), Ok(()), "seed {seed}");
}

#[test]
fn changed_bytes_are_noticed() {
    is_noticed(Harm::Flip, Shape::Calm);
}

#[test]
fn messages_that_never_arrive_are_noticed() {
    is_noticed(Harm::Swallow, Shape::Calm);
}

#[test]
fn duplicated_operations_are_noticed() {
    is_noticed(Harm::Twice, Shape::Calm);
}

#[test]
fn late_puts_under_an_old_handle_are_noticed() {
    is_noticed(Harm::Zombie, Shape::LatePuts);
}

#[test]
fn accesses_to_memory_that_is_closed_are_noticed() {
    is_noticed(Harm::Zombie, Shape::Calm);
}

#[test]
fn programs_that_never_learn_of_their_loss_are_noticed() {
    is_noticed(Harm::Discreet, Shape::LongCuts);
}
