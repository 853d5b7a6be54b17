//! The table, in the manner of the OSU microbenchmarks.

use phitwire::nic::Operation;

use super::outcome::Outcome;
use super::plan::Plan;

/// The lines above the figures.
pub fn head(plan: &Plan) -> String {
    let (op, what) = match plan.operation() {
        Operation::Put => ("put", "acknowledged remote writes"),
        Operation::Get => ("get", "remote reads"),
        Operation::Amo => ("amo", "fetching additions of one"),
    };
    format!(
        "# phitwire {op} message rate: {what}, lab {}\n\
         # {}, window {}\n\
         # {:<6}{:>14}{:>12}{:>11}{:>11}{:>11}{:>11}{:>11}",
        plan.lab,
        plan.describe(),
        plan.window,
        "Size",
        "Messages/s",
        "MB/s",
        "p50 (us)",
        "p90 (us)",
        "p99 (us)",
        "p99.9 (us)",
        "max (us)",
    )
}

/// The figures of one size.
pub fn row(outcome: &Outcome) -> String {
    let latency = &outcome.latency_us;
    format!(
        "{:<8}{:>14.0}{:>12.2}{:>11.1}{:>11.1}{:>11.1}{:>11.1}{:>11.1}",
        outcome.size,
        outcome.messages_per_second,
        outcome.payload_bytes_per_second / 1e6,
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.max,
    )
}

/// What became of the messages, and what the links did for them.
pub fn verdict(outcome: &Outcome) -> String {
    let mut text = format!(
        "sent {} acknowledged {} timed_out {}\n\
         lost {} duplicated {} corrupted {} misordered {}\n\
         retransmitted_packets {} replayed_sets {} frames_sent {} frames_dropped {}",
        outcome.sent,
        outcome.acknowledged,
        outcome.timed_out,
        outcome.lost,
        outcome.duplicated,
        outcome.corrupted,
        outcome.misordered,
        outcome.links.retransmitted_packets,
        outcome.links.replayed_sets,
        outcome.links.frames_sent,
        outcome.links.frames_dropped,
    );
    if outcome.overtaken > 0 {
        text.push_str(&format!(
            "\n{} messages came after a later one, as these ways allow",
            outcome.overtaken
        ));
    }
    for (count, what) in [
        (outcome.refused, "messages were refused by their target"),
        (outcome.unreachable, "targets could not be reached"),
    ] {
        if count > 0 {
            text.push_str(&format!("\n{count} {what}"));
        }
    }
    if !outcome.restarted.is_empty() {
        text.push_str(&format!(
            "\nkilled or restarted meanwhile: {}; what is not known to have arrived there counts as lost",
            outcome.restarted.join(", "),
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_line_up_and_the_verdict_is_greppable() {
        let outcome = Outcome {
            size: 8,
            messages_per_second: 512_345.6,
            payload_bytes_per_second: 4_098_764.8,
            ..Outcome::default()
        };
        let plan = Plan::default();
        let head = head(&plan);
        let columns = head.lines().last().expect("a line of titles");
        assert_eq!(columns.chars().count(), row(&outcome).chars().count());
        assert!(row(&outcome).contains("512346"));
        assert!(verdict(&outcome).contains("lost 0 duplicated 0 corrupted 0 misordered 0"));
        let refused = Outcome {
            refused: 3,
            ..outcome
        };
        assert!(verdict(&refused).ends_with("3 messages were refused by their target"));
    }
}
