//! The results of a soak, as text and JSON.

use std::fmt::Write as _;
use std::time::Duration;

use miette::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::{SoakArgs, Tally, command};
use crate::cli::json;

/// The results of all seeds, as JSON.
#[derive(Serialize, JsonSchema)]
pub(in crate::cli) struct Summary<'a> {
    /// Cases without findings.
    passed: u64,
    /// Cases with findings.
    failed: Vec<Failure<'a>>,
    /// Frames on all wires.
    frames: u64,
    /// Flits, each counted once per router that it passed.
    flit_hops: u64,
    /// Messages that were answered.
    acknowledged: u64,
    /// Messages that timed out.
    timed_out: u64,
    /// Copies of frames that arrived up to ten seconds late.
    late_copies: u64,
    /// Lanes that links gave up.
    lanes_given_up: u64,
    /// Duration of the soak in seconds.
    wall_seconds: f64,
}

/// A case with findings.
#[derive(Serialize, JsonSchema)]
struct Failure<'a> {
    /// Seed of the case.
    seed: u64,
    /// Family of networks, as in `--family`.
    family: &'static str,
    /// The findings.
    why: &'a str,
    /// The command that replays the case, reduced as far as possible while it still fails.
    replay: String,
}

/// The results as text or JSON.
pub(super) fn report(args: &SoakArgs, tally: &Tally, took: Duration) -> Result<String> {
    if args.json {
        let failed = tally.failed.iter().map(|failed| Failure {
            seed: failed.seed,
            family: failed.family.name,
            why: &failed.why,
            replay: command(failed.seed, failed.family, args.late_copies, &failed.keep),
        });
        return json(&Summary {
            passed: tally.passed,
            failed: failed.collect(),
            frames: tally.done.frames,
            flit_hops: tally.done.flit_hops,
            acknowledged: tally.done.acknowledged,
            timed_out: tally.done.timed_out,
            late_copies: tally.done.late_copies,
            lanes_given_up: tally.done.lanes_given_up,
            wall_seconds: took.as_secs_f64(),
        });
    }
    let mut text = String::new();
    for failed in &tally.failed {
        let _ = writeln!(
            text,
            "seed {} of {} FAILED: {}",
            failed.seed, failed.family.name, failed.why
        );
        let _ = writeln!(
            text,
            "replay: {}\n",
            command(failed.seed, failed.family, args.late_copies, &failed.keep)
        );
    }
    let _ = writeln!(
        text,
        "{} cases passed, {} failed in {:.1} s: {} frames, {} flit-hops, {} messages acknowledged, {} timed out \
         where faults may lose them, {} late copies, {} lanes given up",
        tally.passed,
        tally.failed.len(),
        took.as_secs_f64(),
        tally.done.frames,
        tally.done.flit_hops,
        tally.done.acknowledged,
        tally.done.timed_out,
        tally.done.late_copies,
        tally.done.lanes_given_up
    );
    Ok(text)
}
