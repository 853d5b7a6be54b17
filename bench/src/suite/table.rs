//! The tables, in the manner of the OSU microbenchmarks.

use super::collective::CollectiveRow;
use super::options::Benchmark;
use super::point::PointRow;
use crate::msgrate;

/// The lines above the figures; `who` says who takes part.
pub fn head(benchmark: &Benchmark, who: &str) -> String {
    let (what, columns) = match benchmark {
        Benchmark::Latency(_) => (
            "latency: time from issue to acknowledgement",
            columns(&["Size", "Mean (us)", "p50 (us)", "p99 (us)", "max (us)"]),
        ),
        Benchmark::Bandwidth(_) | Benchmark::Bibw(_) => (
            "bandwidth: payload acknowledged per second",
            columns(&["Size", "MB/s", "Messages/s", "p50 (us)", "p99 (us)"]),
        ),
        Benchmark::Gups(_) => (
            "random updates: fetching additions per second",
            columns(&["Size", "GUPS", "Updates/s", "p50 (us)", "p99 (us)"]),
        ),
        Benchmark::Alltoall(_) => (
            "all to all: time for a message from everybody to everybody else",
            columns(&["Size", "Mean (us)", "MB/s", "p50 (us)", "p99 (us)"]),
        ),
        Benchmark::Allreduce(_) | Benchmark::Barrier(_) => (
            "collective operations: time per operation",
            columns(&[
                "Operation",
                "Mean (us)",
                "p50 (us)",
                "p99 (us)",
                "max (us)",
                "Operations",
            ]),
        ),
    };
    let (name, lab) = (benchmark.name(), &benchmark.common().lab);
    format!("# phitwire {name}, lab {lab}: {what}\n# {who}\n# {columns}")
}

fn columns(titles: &[&str]) -> String {
    let mut line = format!("{:<10}", titles[0]);
    for title in &titles[1..] {
        line.push_str(&format!("{title:>13}"));
    }
    line
}

/// The figures of a row.
pub fn point_row(row: &PointRow) -> String {
    let outcome = &row.outcome;
    let latency = &outcome.latency_us;
    let megabytes = outcome.payload_bytes_per_second / 1e6;
    let rate = outcome.messages_per_second;
    let size = outcome.size;
    let (mean, p50, p99) = (row.mean_us, latency.p50, latency.p99);
    match (row.benchmark, row.gups) {
        ("latency", _) => {
            let max = latency.max;
            format!("{size:<12}{mean:>13.2}{p50:>13.2}{p99:>13.2}{max:>13.2}")
        }
        ("alltoall", _) => format!("{size:<12}{mean:>13.2}{megabytes:>13.2}{p50:>13.2}{p99:>13.2}"),
        (_, Some(gups)) => format!("{size:<12}{gups:>13.6}{rate:>13.0}{p50:>13.2}{p99:>13.2}"),
        _ => format!("{size:<12}{megabytes:>13.2}{rate:>13.0}{p50:>13.2}{p99:>13.2}"),
    }
}

/// The figures of a row.
pub fn collective_row(row: &CollectiveRow) -> String {
    let latency = &row.latency_us;
    let mut line = format!(
        "{:<12}{:>13.2}{:>13.2}{:>13.2}{:>13.2}{:>13}",
        row.op, row.mean_us, latency.p50, latency.p99, latency.max, row.iterations
    );
    if !row.clean {
        line.push_str(&format!(
            "\nwrong {} failed {} timed_out {}{}",
            row.wrong,
            row.failed,
            row.timed_out,
            row.failure
                .as_ref()
                .map_or_else(String::new, |why| format!(": {why}")),
        ));
    }
    line
}

/// What became of the messages of all rows.
pub fn verdict(rows: &[PointRow]) -> String {
    let bad: Vec<String> = rows
        .iter()
        .filter(|row| !row.outcome.is_clean())
        .map(|row| {
            format!(
                "# {} bytes\n{}",
                row.outcome.size,
                msgrate::verdict(&row.outcome)
            )
        })
        .collect();
    let sum = |count: fn(&PointRow) -> u64| rows.iter().map(count).sum::<u64>();
    let (sent, acknowledged) = (
        sum(|row| row.outcome.sent),
        sum(|row| row.outcome.acknowledged),
    );
    if bad.is_empty() {
        format!(
            "sent {sent} acknowledged {acknowledged} lost 0 duplicated 0 corrupted 0 misordered 0"
        )
    } else {
        bad.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::msgrate::{LatencyUs, Outcome};
    use crate::suite::Options;
    use clap::Parser;

    fn row(benchmark: &'static str) -> PointRow {
        PointRow {
            benchmark,
            sources: 2,
            window: 64,
            mean_us: 12.345,
            gups: (benchmark == "gups").then_some(0.001_234),
            outcome: Outcome {
                size: 65_536,
                messages_per_second: 123_456.0,
                sent: 9,
                acknowledged: 9,
                ..Outcome::default()
            },
        }
    }

    #[test]
    fn columns_line_up() {
        for name in ["latency", "bandwidth", "bibw", "gups", "alltoall"] {
            let options = Options::parse_from(["phitwire-bench", name, "--lab", "x"]);
            let head = head(&options.benchmark, "two");
            let titles = head
                .lines()
                .last()
                .expect("a line of titles")
                .chars()
                .count();
            assert_eq!(point_row(&row(name)).chars().count(), titles, "{name}");
        }
        let options = Options::parse_from(["phitwire-bench", "barrier", "--lab", "x"]);
        let good = CollectiveRow {
            benchmark: "barrier",
            op: "barrier".to_owned(),
            size: 0,
            participants: 4,
            branching: 2,
            iterations: 1_000,
            mean_us: 50.0,
            latency_us: LatencyUs::default(),
            wrong: 0,
            failed: 0,
            timed_out: 0,
            failure: None,
            clean: true,
        };
        let head = head(&options.benchmark, "four");
        let titles = head
            .lines()
            .last()
            .expect("a line of titles")
            .chars()
            .count();
        assert_eq!(collective_row(&good).chars().count(), titles);
        let bad = CollectiveRow {
            wrong: 1,
            clean: false,
            ..good
        };
        assert!(collective_row(&bad).ends_with("wrong 1 failed 0 timed_out 0"));
    }

    #[test]
    fn a_bad_row_shows_among_good_ones() {
        let mut rows = vec![row("latency"), row("latency")];
        assert!(verdict(&rows).starts_with("sent 18 acknowledged 18 lost 0"));
        rows[1].outcome.corrupted = 3;
        assert!(verdict(&rows).contains("corrupted 3"));
    }
}
