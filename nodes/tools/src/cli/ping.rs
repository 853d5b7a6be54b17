//! `phitwire ping`: whether one NIC reaches another, and how fast.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use miette::{IntoDiagnostic, miette};
use phitwire::nic::{LatencyCounts, ProbeOutcome, ProbeSpec};
use phitwire_nodes::control::Client;
use phitwire_nodes::output::{NOT_READ, print_if_read};
use phitwire_nodes::stop::Stop;
use schemars::JsonSchema;
use serde::Serialize;

use super::by_signal::ended;
use super::trace::ProbeArgs;
use super::{json, print};
use crate::hgrm;
use crate::trace::live::{self, Lab, words};

/// Send acknowledged no-op operations from one NIC to another, and report the round trips like
/// ping(8)
///
/// The sending NIC measures a round trip from the start of an operation until it sees the answer:
/// routers, links, retries and the other NIC are included; this command and its control socket are
/// not. Like the machine's packets, and unlike ping's, a packet is resent by a link that loses it;
/// an operation counts as lost if no answer arrives in time. Exit status: 0 if at least one was
/// answered; 1 if none was; 130 if a signal arrived before --count were sent; 141 if the reader
/// went away.
#[derive(Debug, Args)]
pub struct PingArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Sending NIC, such as nic0
    from: String,
    /// NIC that answers
    to: String,
    /// Number of operations; 0: until Ctrl-C
    #[arg(long, short, value_name = "N", default_value_t = 4)]
    count: u64,
    /// Milliseconds between operations
    #[arg(long, short, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    interval: u64,
    /// Milliseconds after which an operation counts as lost
    #[arg(long, value_name = "MS", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    wait: u64,
    /// Write the round trips in HdrHistogram's text format, in microseconds
    #[arg(long, value_name = "FILE.hgrm")]
    hgrm: Option<PathBuf>,
    #[command(flatten)]
    probe: ProbeArgs,
    /// Print only the summary, as JSON
    #[arg(long)]
    json: bool,
}

/// The summary, as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Summary<'a> {
    /// Version of this schema.
    version: u32,
    /// Name of the lab.
    lab: &'a str,
    /// The network interface that sent.
    from: &'a str,
    /// The network interface that answered.
    to: &'a str,
    /// The operation that was sent.
    operation: String,
    /// Operations sent.
    sent: u64,
    /// Operations answered.
    answered: u64,
    /// Operations refused.
    refused: u64,
    /// Answers with wrong bytes.
    damaged: u64,
    /// Operations without an answer in time.
    lost: u64,
    /// Shortest round trip in microseconds; null without an answer.
    min_us: Option<f64>,
    /// Mean round trip.
    avg_us: Option<f64>,
    /// Longest round trip.
    max_us: Option<f64>,
}

/// The results so far.
#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    answered: u64,
    /// Minimum, sum and maximum of the round trips, in constant space.
    round_trips_ns: Option<(u64, u128, u64)>,
    /// Round trips by value, to three digits: at most some hundreds per decade.
    times: BTreeMap<u64, u64>,
    refused: u64,
    damaged: u64,
    lost: u64,
}

impl Tally {
    fn count(&mut self, outcome: Option<ProbeOutcome>, round_trip_ns: u64) -> &'static str {
        self.sent += 1;
        match outcome {
            Some(ProbeOutcome::Done) => {
                self.answered += 1;
                let ns = round_trip_ns;
                let (least, sum, most) = self.round_trips_ns.unwrap_or((ns, 0, ns));
                let all = (least.min(ns), sum + u128::from(ns), most.max(ns));
                self.round_trips_ns = Some(all);
                *self.times.entry(three_digits(ns)).or_default() += 1;
                "done"
            }
            Some(ProbeOutcome::Refused) => {
                self.refused += 1;
                "refused"
            }
            Some(ProbeOutcome::Damaged) => {
                self.damaged += 1;
                "damaged"
            }
            Some(ProbeOutcome::TimedOut) | None => {
                self.lost += 1;
                "no answer"
            }
        }
    }

    /// Minimum, mean and maximum of the round trips, in microseconds.
    fn round_trips_us(&self) -> Option<[f64; 3]> {
        let (least, sum, most) = self.round_trips_ns?;
        let mean = sum as f64 / self.answered as f64;
        Some([least as f64 / 1e3, mean / 1e3, most as f64 / 1e3])
    }

    /// Number of round trips by value.
    fn counts(&self) -> LatencyCounts {
        LatencyCounts {
            max_ns: self.round_trips_ns.map_or(0, |(_, _, most)| most),
            buckets: self.times.iter().map(|(&ns, &n)| (ns, n)).collect(),
        }
    }

    fn summary<'a>(&self, args: &'a PingArgs) -> Summary<'a> {
        let trips = self.round_trips_us();
        Summary {
            version: 1,
            lab: &args.lab,
            from: &args.from,
            to: &args.to,
            operation: words(&args.probe.spec()),
            sent: self.sent,
            answered: self.answered,
            refused: self.refused,
            damaged: self.damaged,
            lost: self.lost,
            min_us: trips.map(|trips| trips[0]),
            avg_us: trips.map(|trips| trips[1]),
            max_us: trips.map(|trips| trips[2]),
        }
    }

    fn text(&self, args: &PingArgs) -> String {
        let lost = self.sent - self.answered;
        let share = 100.0 * lost as f64 / self.sent.max(1) as f64;
        let mut text = format!(
            "{} -> {}: {} sent, {} answered, {} refused, {} damaged, {} lost ({share:.0} % \
             unanswered)\n",
            args.from, args.to, self.sent, self.answered, self.refused, self.damaged, self.lost
        );
        if let Some([least, mean, most]) = self.round_trips_us() {
            text.push_str(&format!(
                "round trip min/avg/max {least:.1}/{mean:.1}/{most:.1} us\n"
            ));
        }
        text
    }
}

pub fn run(args: &PingArgs) -> miette::Result<ExitCode> {
    let lab = Lab::open(&args.lab)?;
    let (_, target) = (lab.numbers_of(&args.from)?, lab.numbers_of(&args.to)?);
    let spec = ProbeSpec {
        to: target.number,
        ..args.probe.spec()
    };
    let connected = Client::connect(&args.lab, &args.from);
    let mut client = connected.map_err(|error| miette!("{error}"))?;
    let stop = Stop::new().map_err(|error| miette!("{error}"))?;
    stop.on_signals().map_err(|error| miette!("{error}"))?;
    let (interval, limit) = (
        Duration::from_millis(args.interval),
        Duration::from_millis(args.wait),
    );
    let mut tally = Tally::default();
    if !args.json {
        let (from, to, what) = (&args.from, &args.to, words(&spec));
        print(&format!("{from} -> {to}: {what} each\n"))?;
    }
    let is_over = || stop.requests() > 0;
    let mut next = Instant::now();
    while (args.count == 0 || tally.sent < args.count) && !is_over() {
        let sent = live::send(&mut client, &args.from, &spec, limit, &is_over)?;
        let end = sent.end;
        if end.is_none() && is_over() {
            // Do not count an interrupted operation as lost.
            break;
        }
        let round_trip_ns = end.map_or(0, |end| end.ended_ps.saturating_sub(end.posted_ps) / 1_000);
        let outcome = tally.count(end.map(|end| end.outcome), round_trip_ns);
        if !args.json {
            let number = tally.sent;
            let line = match outcome {
                "done" => format!("{number}: {:.1} us\n", round_trip_ns as f64 / 1e3),
                other => format!("{number}: {other}\n"),
            };
            if !print_if_read(&line).into_diagnostic()? {
                return Ok(NOT_READ.into());
            }
        }
        next += interval;
        let is_last = args.count != 0 && tally.sent == args.count;
        while !is_last && !is_over() && Instant::now() < next {
            let left = next.saturating_duration_since(Instant::now());
            thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
    print(&match args.json {
        true => json(&tally.summary(args))?,
        false => tally.text(args),
    })?;
    if let Some(file) = &args.hgrm {
        hgrm::write(file, [(String::new(), &tally.counts())], 1e3)
            .map_err(|(file, error)| miette!("cannot write {}: {error}", file.display()))?;
    }
    let is_cut = args.count != 0 && tally.sent < args.count;
    Ok(match (tally.answered, tally.sent) {
        (0, 1..) => ExitCode::FAILURE,
        // A run without `--count` may be interrupted before it sends anything.
        (0, 0) if args.count != 0 && !is_cut => ExitCode::FAILURE,
        _ => ended(is_cut),
    })
}

/// The smallest number of at least `ns` that has three significant digits.
fn three_digits(ns: u64) -> u64 {
    let unit = 10_u64.pow(ns.max(1).ilog10().saturating_sub(2));
    ns.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted_to_three_digits() {
        assert_eq!(
            [0, 7, 123, 1_230, 1_231, 999_999].map(three_digits),
            [0, 7, 123, 1_230, 1_240, 1_000_000]
        );
        let mut tally = Tally::default();
        for ns in [1_231, 1_239, 2_000] {
            tally.count(Some(ProbeOutcome::Done), ns);
        }
        let counts = tally.counts();
        assert_eq!(counts.buckets, [(1_240, 2), (2_000, 1)]);
        assert_eq!(counts.max_ns, 2_000);
    }

    #[test]
    fn round_trips_count_answered_probes_only() {
        let mut tally = Tally::default();
        tally.count(Some(ProbeOutcome::Done), 2_000);
        tally.count(None, 0);
        tally.count(Some(ProbeOutcome::Refused), 9_000);
        tally.count(Some(ProbeOutcome::Done), 4_000);
        assert_eq!(tally.round_trips_us(), Some([2.0, 3.0, 4.0]));
        assert_eq!(
            (tally.sent, tally.answered, tally.lost, tally.refused),
            (4, 2, 1, 1)
        );
        assert_eq!(Tally::default().round_trips_us(), None);
    }
}
