//! The tables, in the style of the OSU microbenchmarks.

use phitwire::text_table::TextColumns;

use super::collective::CollectiveRow;
use super::goodput::GoodputRow;
use super::options::Benchmark;
use super::point::PointRow;
use super::units::UnitRow;
use crate::msgrate;

/// Widths of at most six columns; the first is the size or the operation.
const WIDTHS: [u16; 6] = [12, 13, 13, 13, 13, 13];

/// The subject of a benchmark, and its column titles.
fn titles(benchmark: &str) -> (&'static str, &'static [&'static str]) {
    match benchmark {
        "latency" => (
            "latency: time from issue to acknowledgement",
            &["# Size", "Mean (us)", "p50 (us)", "p99 (us)", "max (us)"],
        ),
        "bandwidth" | "bibw" => (
            "bandwidth: payload acknowledged per second",
            &["# Size", "MB/s", "Messages/s", "p50 (us)", "p99 (us)"],
        ),
        "goodput" => (
            "goodput: payload acknowledged per second over links that lose frames",
            &[
                "# Loss (%)",
                "Size",
                "MB/s",
                "Messages/s",
                "p50 (us)",
                "p99 (us)",
            ],
        ),
        "gups" => (
            "random updates: fetching additions per second",
            &["# Size", "GUPS", "Updates/s", "p50 (us)", "p99 (us)"],
        ),
        // The first column is a rate expressed as a time; the quantiles are of single messages in a
        // full window.
        "alltoall" => (
            "all to all: time per exchange, in which every NIC sends a message to every other",
            &[
                "# Size",
                "Exchange(us)",
                "MB/s",
                "Msg p50 (us)",
                "Msg p99 (us)",
            ],
        ),
        "eureka" => (
            "eurekas: time from signalling one until notification",
            &[
                "# Unit",
                "Mean (us)",
                "p50 (us)",
                "p99 (us)",
                "max (us)",
                "Eurekas",
            ],
        ),
        "barrier units" => (
            "barriers by units: time from joining until completion",
            &[
                "# Unit",
                "Mean (us)",
                "p50 (us)",
                "p99 (us)",
                "max (us)",
                "Barriers",
            ],
        ),
        _ => (
            "collective operations: time per operation",
            &[
                "# Operation",
                "Mean (us)",
                "p50 (us)",
                "p99 (us)",
                "max (us)",
                "Operations",
            ],
        ),
    }
}

/// A line of cells under the titles.
fn line(cells: impl IntoIterator<Item = String>) -> String {
    let columns = WIDTHS.map(|width| ("", width));
    TextColumns { columns: &columns }.line(cells)
}

/// Lines above the figures; `who` names the participants.
pub fn head(benchmark: &Benchmark, who: &str) -> String {
    let (name, lab) = (benchmark.name(), &benchmark.common().lab);
    let by_units = matches!(benchmark, Benchmark::Barrier(options) if !options.unit.is_empty());
    let (what, titles) = titles(if by_units { "barrier units" } else { name });
    let titles = line(titles.iter().map(|&title| title.to_owned()));
    format!("# phitwire {name}, lab {lab}: {what}\n# {who}\n{titles}")
}

pub fn point_row(row: &PointRow) -> String {
    let outcome = &row.outcome;
    let hundredths = |value: f64| format!("{value:.2}");
    let (mean, megabytes) = (
        hundredths(row.mean_us),
        hundredths(outcome.payload_bytes_per_second / 1e6),
    );
    let rate = format!("{:.0}", outcome.messages_per_second);
    let latency = &outcome.latency_us;
    let [p50, p99, max] = [latency.p50, latency.p99, latency.max].map(hundredths);
    let size = outcome.size.to_string();
    line(match (row.benchmark, row.gups) {
        ("latency", _) => [size, mean, p50, p99, max],
        ("alltoall", _) => [size, mean, megabytes, p50, p99],
        (_, Some(gups)) => [size, format!("{gups:.6}"), rate, p50, p99],
        _ => [size, megabytes, rate, p50, p99],
    })
}

pub fn goodput_row(goodput: &GoodputRow) -> String {
    let outcome = &goodput.row.outcome;
    let latency = &outcome.latency_us;
    line([
        format!("{}", goodput.loss_percent),
        outcome.size.to_string(),
        format!("{:.2}", outcome.payload_bytes_per_second / 1e6),
        format!("{:.0}", outcome.messages_per_second),
        format!("{:.2}", latency.p50),
        format!("{:.2}", latency.p99),
    ])
}

pub fn collective_row(row: &CollectiveRow) -> String {
    let latency = &row.latency_us;
    let times = [row.mean_us, latency.p50, latency.p99, latency.max];
    let [mean, p50, p99, max] = times.map(|us| format!("{us:.2}"));
    let mut line = line([
        row.op.clone(),
        mean,
        p50,
        p99,
        max,
        row.iterations.to_string(),
    ]);
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

pub fn unit_row(row: &UnitRow) -> String {
    let is_eureka = row.benchmark == "eureka";
    let (latency, count) = match is_eureka {
        true => (&row.eureka_latency_us, row.eurekas),
        false => (&row.latency_us, row.barriers),
    };
    let times = [row.mean_us, latency.p50, latency.p99, latency.max];
    let [mean, p50, p99, max] = times.map(|us| format!("{us:.2}"));
    let mut line = line([
        format!("unit {}", row.unit),
        mean,
        p50,
        p99,
        max,
        count.to_string(),
    ]);
    line.push_str(&format!(
        "\n# {} barriers by {} participants, {} checks: {} early, {} lost, {} timed out{}",
        row.barriers,
        row.participants,
        row.checks,
        row.early,
        row.lost,
        row.timed_out,
        row.failure
            .as_ref()
            .map_or_else(String::new, |why| format!(": {why}")),
    ));
    line
}

/// The verdict on each row with message errors, or the sums of all rows if there is none.
pub fn verdict(rows: &[PointRow]) -> String {
    let bad: Vec<String> = rows
        .iter()
        .filter(|row| !row.outcome.is_clean())
        .map(|row| {
            let outcome = &row.outcome;
            let verdict = msgrate::verdict(outcome);
            let stood = msgrate::standstills(&outcome.fates).map(|line| format!("\n{line}"));
            format!(
                "# {} bytes\n{verdict}{}",
                outcome.size,
                stood.unwrap_or_default()
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
    use crate::msgrate::{LatencyUs, RateResult};
    use crate::suite::Options;
    use clap::Parser;

    fn row(benchmark: &'static str) -> PointRow {
        PointRow {
            benchmark,
            sources: 2,
            window: 64,
            mean_us: 12.345,
            gups: (benchmark == "gups").then_some(0.001_234),
            outcome: RateResult {
                size: 65_536,
                messages_per_second: 123_456.0,
                sent: 9,
                acknowledged: 9,
                ..RateResult::default()
            },
        }
    }

    /// The length of the title line.
    fn titles(name: &str) -> usize {
        let options = Options::parse_from(["phitwire-bench", name, "--lab", "x"]);
        let head = head(&options.benchmark, "two");
        let titles = head.lines().last().expect("a line of titles");
        titles.chars().count()
    }

    #[test]
    fn columns_line_up() {
        for name in ["latency", "bandwidth", "bibw", "gups", "alltoall"] {
            let row = point_row(&row(name));
            assert_eq!(row.chars().count(), titles(name), "{name}");
        }
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
        let shown = collective_row(&good).chars().count();
        assert_eq!(shown, titles("barrier"));
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
