//! `phitwire-msgrate`: message rate of a running lab, with every message verified.

use std::process::ExitCode;
use std::time::Duration;

use std::ffi::OsString;

use crate::msgrate::{
    ControlLab, Options, Plan, RateResult, RealClock, RunProgress, head, measure, measure_programs,
    row, run_number, standstills, verdict,
};
use crate::plot;
use crate::suite::Ending;
use clap::{CommandFactory, Parser};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, WrapErr};
use phitwire::nic::RunPhase;
use phitwire_nodes::output;
use phitwire_nodes::stop::Stop;
use phitwire_tools::cli::pages;
use schemars::JsonSchema;
use serde::Serialize;

/// The result of one size, or of several.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Results<'a> {
    One(&'a RateResult),
    Several(&'a [RateResult]),
}

/// Interval of progress lines where no bar is visible; shorter runs print none.
const INTERVAL: Duration = Duration::from_secs(10);

/// Minimum wait for replies that is reported.
const FIRST_REPORT: Duration = Duration::from_secs(1);

/// Duration of the run with one message at a time, for comparison with a full window.
const UNLOADED: Duration = Duration::from_millis(200);

/// Runs the tool; the first argument is its name.
pub(super) fn main(arguments: Vec<OsString>) -> ExitCode {
    output::keep_lines_whole();
    if let Some(status) = pages::asked(&arguments, Options::command) {
        return status;
    }
    let options = Options::parse_from(arguments);
    Ending::status(run(&options))
}

fn run(options: &Options) -> Result<Ending> {
    let stop = Stop::at_signals().into_diagnostic()?;
    let mut lab = ControlLab::new(&options.lab);
    plot::check(&[&options.plot, &options.hgrm]).into_diagnostic()?;
    let plan = Plan::new(options, &mut lab).into_diagnostic()?;
    let mut outcomes = Vec::new();
    for (index, &size) in options.size.iter().enumerate() {
        let bar = progress_bar(&plan);
        let run = run_number(index as u32);
        let clock = RealClock::new(stop.clone());
        let mut progress_report = ProgressReport::default();
        let watch = |progress: RunProgress| {
            if bar.is_hidden() {
                progress_report.update(&progress);
            }
            show(&bar, &plan, &progress, stop.requests() > 0);
        };
        let outcome = match options.client {
            true => measure_programs(&plan, size, &mut lab, &clock, watch),
            false => measure(&plan, size, run, &mut lab, &clock, watch),
        };
        bar.finish_and_clear();
        let outcome = outcome
            .into_diagnostic()
            .wrap_err_with(|| format!("the measurement with {size} bytes failed"));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(report) => {
                // Print the measured rows before an error.
                if !outcomes.is_empty() {
                    conclude(options, &plan, &outcomes)?;
                }
                return Err(report);
            }
        };
        if !options.json {
            // Print the header with the first row, so that no header precedes an error.
            let head = if index == 0 {
                head(&plan) + "\n"
            } else {
                String::new()
            };
            print_text(&format!("{head}{}\n", row(&outcome)))?;
        }
        // Skip this after a run with a dead target, since every message could wait for a timeout.
        if index == 0 && !options.json && stop.requests() == 0 && outcome.is_clean() {
            print_text(&unloaded(&plan, size, &mut lab, &stop))?;
        }
        outcomes.push(outcome);
        if stop.requests() > 0 {
            break;
        }
    }
    conclude(options, &plan, &outcomes)?;
    Ok(if !outcomes.iter().all(RateResult::is_clean) {
        Ending::Damaged
    } else if stop.requests() > 0 {
        Ending::Interrupted
    } else {
        Ending::Clean
    })
}

/// The latency of a message that does not queue behind others, as a line. Latencies under a full
/// window include queueing and are easily mistaken for the network's. Empty if it cannot be
/// measured.
fn unloaded(plan: &Plan, size: u32, lab: &mut ControlLab, stop: &Stop) -> String {
    let Some(alone) = plan.unloaded(UNLOADED) else {
        return String::new();
    };
    let run = run_number(u32::MAX);
    let outcome = measure(
        &alone,
        size,
        run,
        lab,
        &RealClock::new(stop.clone()),
        |_| {},
    );
    match outcome {
        Ok(outcome) if outcome.is_clean() && outcome.acknowledged > 0 => format!(
            "# {size} bytes, one at a time, {}: p50 {:.1} us; the latency above is under load, \
             queued behind {} others\n",
            alone.ends(),
            outcome.latency_us.p50,
            plan.window - 1
        ),
        _ => String::new(),
    }
}

/// Prints all outcomes as JSON, or else the verdict.
fn conclude(options: &Options, plan: &Plan, outcomes: &[RateResult]) -> Result<()> {
    if let Some(file) = &options.plot {
        let who = format!("{}, window {}", plan.describe(), plan.window);
        let chart = plot::rates(&options.lab, &who, outcomes);
        plot::write(file, &chart).into_diagnostic()?;
    }
    if let Some(file) = &options.hgrm {
        plot::write_hgrm(file, outcomes).into_diagnostic()?;
    }
    if options.json {
        let results = match outcomes {
            [one] => Results::One(one),
            several => Results::Several(several),
        };
        let text = serde_json::to_string_pretty(&results).into_diagnostic()?;
        return print_text(&format!("{text}\n"));
    }
    for outcome in outcomes {
        if outcomes.len() > 1 {
            print_text(&format!("# {} bytes\n", outcome.size))?;
        }
        print_text(&format!("{}\n", verdict(outcome)))?;
        if let Some(line) = standstills(&outcome.fates) {
            output::print_error(&line);
        }
    }
    Ok(())
}

/// Prints to standard output. Ignores a closed reader: the exit status has the verdict.
fn print_text(text: &str) -> Result<()> {
    output::print(text).into_diagnostic()
}

/// A progress line on standard error; hidden if that is not a terminal.
fn progress_bar(plan: &Plan) -> ProgressBar {
    let style = |template| ProgressStyle::with_template(template).ok();
    let (bar, style) = match plan.duration() {
        Some(duration) => (
            ProgressBar::new(duration.as_millis() as u64),
            style("[{bar:30}] {percent:>3} % {msg}"),
        ),
        None => (ProgressBar::new_spinner(), style("{spinner} {msg}")),
    };
    match style {
        Some(style) => bar.with_style(style),
        None => bar,
    }
}

/// Reports the progress of a run if no bar is visible: regularly, or, while it waits, after a
/// second and then at growing intervals.
#[derive(Debug, Default)]
struct ProgressReport {
    next: Option<Duration>,
    times: u32,
    /// Number of intervals reported.
    intervals: u32,
}

impl ProgressReport {
    fn update(&mut self, progress: &RunProgress) {
        let Some(waits) = progress.waits() else {
            self.next = None;
            if progress.elapsed >= INTERVAL * (self.intervals + 1) {
                self.intervals = (progress.elapsed.as_secs() / INTERVAL.as_secs()) as u32;
                let (seconds, words) = (progress.elapsed.as_secs(), words(progress, false));
                output::print_error(&format!("phitwire-msgrate: {seconds} s, {words}"));
            }
            return;
        };
        let next = *self.next.get_or_insert(progress.elapsed + FIRST_REPORT);
        if progress.elapsed >= next {
            self.times += 1;
            self.next = Some(progress.elapsed + FIRST_REPORT * 5 * self.times);
            output::print_error(&format!("phitwire-msgrate: {waits}"));
        }
    }
}

/// The progress of a run in words.
fn words(progress: &RunProgress, stopping: bool) -> String {
    let doing = match progress.phase {
        RunPhase::Running | RunPhase::Draining if stopping => {
            "stopping (press again to exit \
                                                               immediately)"
        }
        RunPhase::Opening => "contacting the targets",
        RunPhase::Running => "sending",
        RunPhase::Draining => "waiting for the last answers",
        RunPhase::Done => "done",
    };
    let waits = progress.waits();
    let doing = waits.as_deref().unwrap_or(doing);
    let rate = progress.acknowledged as f64 / progress.elapsed.as_secs_f64().max(1e-3);
    let answered = HumanCount(progress.acknowledged);
    let sent = HumanCount(progress.sent);
    format!("{doing}: {answered} of {sent} acknowledged, {rate:.0}/s")
}

fn show(bar: &ProgressBar, plan: &Plan, progress: &RunProgress, stopping: bool) {
    bar.set_message(words(progress, stopping));
    match plan.duration() {
        Some(duration) => bar.set_position(progress.elapsed.min(duration).as_millis() as u64),
        None => bar.tick(),
    }
}
