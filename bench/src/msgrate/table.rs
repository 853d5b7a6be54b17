//! The result table, in the style of the OSU microbenchmarks.

use phitwire::nic::Operation;
use phitwire::text_table::TextColumns;
use phitwire_client::patience::overload;

use super::Fates;
use super::outcome::{RateResult, why_refused};
use super::plan::Plan;

/// Maximum number of targets named in a line.
const MOST_NAMED: usize = 16;

const COLUMNS: TextColumns<'_> = TextColumns {
    columns: &[
        ("# Size", 8),
        ("Messages/s", 14),
        ("MB/s", 12),
        ("p50 (us)", 11),
        ("p90 (us)", 11),
        ("p99 (us)", 11),
        ("p99.9 (us)", 11),
        ("max (us)", 11),
    ],
};

/// The lines above the table.
pub fn head(plan: &Plan) -> String {
    let (op, what) = match plan.operation() {
        Operation::Put => ("put", "acknowledged remote writes"),
        Operation::Get => ("get", "remote reads"),
        Operation::Amo => ("amo", "fetching additions of one"),
    };
    format!(
        "# phitwire {op} message rate: {what}, lab {}\n\
         # {}, window {}{}\n\
         {}",
        plan.lab,
        plan.describe(),
        plan.window,
        match plan.window {
            1 => "",
            _ => ": latencies include that load",
        },
        COLUMNS.head(),
    )
}

/// The table row of one size.
pub fn row(outcome: &RateResult) -> String {
    let latency = &outcome.latency_us;
    let quantiles = [
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.max,
    ];
    let figures = [
        outcome.size.to_string(),
        format!("{:.0}", outcome.messages_per_second),
        format!("{:.2}", outcome.payload_bytes_per_second / 1e6),
    ];
    let quantiles = quantiles.map(|us| format!("{us:.1}"));
    COLUMNS.line(figures.into_iter().chain(quantiles))
}

/// The verdict on the messages, and the work of the links.
pub fn verdict(outcome: &RateResult) -> String {
    let RateResult {
        sent,
        acknowledged,
        timed_out,
        refused,
        unknown,
        links,
        ..
    } = outcome;
    let RateResult {
        lost,
        duplicated,
        corrupted,
        misordered,
        ..
    } = outcome;
    let mut lines = vec![
        format!(
            "sent {sent} acknowledged {acknowledged} timed_out {timed_out} refused {refused} unknown {unknown}"
        ),
        format!(
            "lost {lost} duplicated {duplicated} corrupted {corrupted} misordered {misordered}"
        ),
        format!(
            "retransmitted_packets {} replayed_sets {} frames_sent {} frames_dropped {}",
            links.retransmitted_packets,
            links.replayed_sets,
            links.frames_sent,
            links.frames_dropped
        ),
    ];
    lines.extend(outcome.pace.as_ref().map(|pace| {
        format!(
            "rate {} offered_per_source {:.1} accepted_per_source {:.1} not_offered {}",
            pace.rate, pace.offered_per_source, pace.accepted_per_source, pace.not_offered
        )
    }));
    lines.extend(outcome.decisions.as_ref().map(|decisions| {
        let share = decisions.non_minimal_share;
        let share = share.map_or_else(|| "-".to_owned(), |share| format!("{share:.4}"));
        format!(
            "minimal_decisions {} non_minimal_decisions {} non_minimal_share {share}",
            decisions.minimal_decisions, decisions.non_minimal_decisions
        )
    }));
    lines.extend(beyond_time_outs(outcome));
    lines.extend(unanswered(outcome));
    lines.extend(crossed(outcome));
    lines.extend(oddities(outcome).into_iter().flatten());
    lines.extend(named(outcome));
    lines.join("\n")
}

/// The processes and links to which something happened, a line for each kind of event.
fn named(outcome: &RateResult) -> Vec<String> {
    let fates = &outcome.fates;
    let all = [
        (&fates.processes_dead, "dead before the run"),
        (&fates.processes_died, "died during the run"),
        (
            &fates.processes_restarted,
            "died and restarted during the run",
        ),
        (&fates.processes_stopped, "stopped during the run"),
        (
            &fates.links_given_up,
            "links given up during the run, losing everything in flight on them (`give_up_ms`)",
        ),
        (
            &fates.uncounted,
            "counts exclude resent frames and packets (those received count as dropped) of",
        ),
        (
            &outcome.restarted,
            "processes ended during the run, so unacknowledged messages count as lost, at",
        ),
        (
            &outcome.unfinished,
            "did not finish, so these counts are older",
        ),
    ];
    let named = all.into_iter().filter(|(names, _)| !names.is_empty());
    let lines = named.map(|(names, what)| format!("{what}: {}", names.join(", ")));
    lines.collect()
}

/// The processes that did not run for a while, and the load of the host. `None` if all of them ran.
pub fn standstills(fates: &Fates) -> Option<String> {
    let (name, most) = fates.stood_still_ms.iter().max_by_key(|(_, ms)| *ms)?;
    let processes = match fates.stood_still_ms.len() {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    Some(format!(
        "{processes} did not run for more than 50 ms at a time, {name} for {most} ms in all: the \
         host was suspended or is overloaded{}",
        overload()
    ))
}

/// The reasons of losses beyond the timed-out messages, if there are any.
fn beyond_time_outs(outcome: &RateResult) -> Option<String> {
    let mut left = outcome.lost.saturating_sub(outcome.timed_out);
    if left == 0 {
        return None;
    }
    let mut take = |of: u64| {
        let taken = of.min(left);
        left -= taken;
        taken
    };
    let (refused, unknown) = (take(outcome.refused), take(outcome.unknown));
    let causes = [
        (refused, "were refused"),
        (
            unknown,
            "were unfinished when their source ended or was given up",
        ),
        (left, "were acknowledged but not counted by their target"),
    ];
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    let causes: Vec<_> = causes
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    Some(format!(
        "of the messages lost without a timeout, {}",
        causes.join(", ")
    ))
}

/// Targets that did not respond, those with the most messages first.
fn unanswered(outcome: &RateResult) -> Option<String> {
    let mut all: Vec<_> = outcome.unanswered.iter().collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.messages));
    let named = all.iter().take(MOST_NAMED);
    let named: Vec<_> = named
        .map(|one| format!("{} ({} messages)", one.node, one.messages))
        .collect();
    let more = match all.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} others"),
    };
    (!all.is_empty()).then(|| format!("did not answer in time: {}{more}", named.join(", ")))
}

/// The dead processes, except targets that did not respond: a dead router also holds packets to
/// healthy targets.
fn crossed(outcome: &RateResult) -> Option<String> {
    let fates = &outcome.fates;
    let is_target = |name: &&String| outcome.unanswered.iter().any(|one| one.node == **name);
    let dead = fates.processes_dead.iter().chain(&fates.processes_died);
    let dead: Vec<&str> = dead
        .filter(|name| !is_target(name))
        .map(String::as_str)
        .collect();
    (!outcome.unanswered.is_empty() && !dead.is_empty()).then(|| {
        format!(
            "targets named here may be healthy, since their packets may have crossed dead nodes: \
             {}",
            dead.join(", ")
        )
    })
}

/// Remarks on events that do not occur in every run.
fn oddities(outcome: &RateResult) -> [Option<String>; 7] {
    let RateResult {
        overtaken,
        stale,
        refused,
        unwritten,
        drain_seconds,
        ..
    } = outcome;
    let (unreachable, unwilling) = (outcome.unreachable, outcome.unwilling);
    let more = match outcome.unreached.len() < unreachable as usize {
        true => " (a target is counted once for each source that did not reach it)",
        false => "",
    };
    let (unreached, refusers) = (outcome.unreached.join(", "), outcome.refusers.join(", "));
    let since = match outcome.restarted.as_slice() {
        [] => "at targets that may have restarted".to_owned(),
        names => format!("since {} restarted with empty memory", names.join(", ")),
    };
    [
        (*overtaken > 0)
            .then(|| format!("{overtaken} messages were overtaken, as these routes allow")),
        (*stale > 0).then(|| {
            format!("{stale} late messages of earlier runs arrived and are not counted above")
        }),
        (*refused > 0).then(|| format!("{refused} messages were refused by their target")),
        (unreachable > 0).then(|| {
            format!(
                "{} could not be reached{more}: {unreached}",
                targets(unreachable)
            )
        }),
        (unwilling > 0).then(|| {
            let why = why_refused(outcome.outdated_by);
            format!("{} refused the run ({why}): {refusers}", targets(unwilling))
        }),
        // Do not report a shorter wait for the last responses.
        (*drain_seconds >= 1.0).then(|| {
            format!(
                "{drain_seconds:.1} s were spent waiting for the last answers and timeouts; the \
                 rate excludes them"
            )
        }),
        (*unwritten > 0).then(|| format!("{unwritten} messages found unwritten memory, {since}")),
    ]
}

/// A count of targets as text.
fn targets(count: u64) -> String {
    match count {
        1 => "1 target".to_owned(),
        _ => format!("{count} targets"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msgrate::outcome::Unanswered;

    #[test]
    fn the_columns_line_up_and_the_verdict_is_greppable() {
        let outcome = RateResult {
            size: 8,
            messages_per_second: 512_345.6,
            payload_bytes_per_second: 4_098_764.8,
            ..RateResult::default()
        };
        let plan = Plan::default();
        let head = head(&plan);
        let columns = head.lines().last().expect("a line of titles");
        assert_eq!(columns.chars().count(), row(&outcome).chars().count());
        assert!(row(&outcome).contains("512346"));
        assert!(verdict(&outcome).contains("lost 0 duplicated 0 corrupted 0 misordered 0"));
        let refused = RateResult {
            refused: 3,
            ..outcome
        };
        assert!(verdict(&refused).ends_with("3 messages were refused by their target"));
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let much = RateResult {
            stale: 7,
            unreachable: 1,
            unreached: names(&["nic4"]),
            unwilling: 2,
            refusers: names(&["nic7", "nic8"]),
            outdated_by: 9,
            unwritten: 5,
            drain_seconds: 8.04,
            restarted: names(&["nic5"]),
            unfinished: names(&["nic6"]),
            fates: Fates {
                processes_dead: names(&["r1-2"]),
                processes_died: names(&["r1-0"]),
                processes_restarted: names(&["nic5"]),
                processes_stopped: names(&["nic6"]),
                links_given_up: names(&["r1-0:3", "nic6:0"]),
                stood_still_ms: [("nic5".to_owned(), 80), ("r1-1".to_owned(), 3_021)].into(),
                uncounted: names(&["nic5", "nic6", "r1-0"]),
            },
            ..refused
        };
        let text = verdict(&much);
        let sums = "sent 0 acknowledged 0 timed_out 0 refused 3 unknown 0";
        assert!(text.starts_with(sums), "{text}");
        for line in [
            "7 late messages of earlier runs arrived and are not counted above",
            "1 target could not be reached: nic4",
            "2 targets refused the run (the target has already seen run 9 of the same source, and \
             run numbers must grow: use one above 9, or restart the target (netns-scripts/node.sh \
             restart NODE)): nic7, nic8",
            "5 messages found unwritten memory, since nic5 restarted with empty memory",
            "8.0 s were spent waiting for the last answers and timeouts; the rate excludes them",
            "dead before the run: r1-2",
            "died during the run: r1-0",
            "died and restarted during the run: nic5",
            "stopped during the run: nic6",
            "links given up during the run, losing everything in flight on them (`give_up_ms`): \
             r1-0:3, nic6:0",
            "counts exclude resent frames and packets (those received count as dropped) of: \
             nic5, nic6, r1-0",
            "processes ended during the run, so unacknowledged messages count as lost, at: nic5",
            "did not finish, so these counts are older: nic6",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        let stood = standstills(&much.fates).expect("two stood still");
        let line = "2 processes did not run for more than 50 ms at a time, r1-1 for 3021 ms in \
                    all: the host was suspended or is overloaded";
        assert!(stood.starts_with(line), "{stood}");
        let lost = RateResult {
            lost: 1470,
            timed_out: 1463,
            unknown: 4,
            unanswered: vec![Unanswered {
                node: "nic5".to_owned(),
                messages: 1463,
            }],
            ..much
        };
        let text = verdict(&lost);
        for line in [
            "of the messages lost without a timeout, 3 were refused, 4 were unfinished when their \
             source ended or was given up",
            "did not answer in time: nic5 (1463 messages)",
            "targets named here may be healthy, since their packets may have crossed dead nodes: \
             r1-2, r1-0",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
