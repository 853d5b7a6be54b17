//! `phitwire-msgrate`: message rate of a running lab, with every message verified.

use std::process::ExitCode;

use clap::Parser;
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result, WrapErr};
use phitwire::nic::RunPhase;
use phitwire_bench::msgrate::{
    ControlLab, Options, Plan, RateResult, RealClock, RunProgress, head, measure, row, run_number,
    verdict,
};
use phitwire_bench::suite::Ending;
use phitwire_nodes::output;
use phitwire_nodes::stop::Stop;

fn main() -> ExitCode {
    output::keep_lines_whole();
    let options = Options::parse();
    Ending::status(run(&options))
}

/// Measures and prints.
fn run(options: &Options) -> Result<Ending> {
    let stop = Stop::at_signals().into_diagnostic()?;
    let mut lab = ControlLab::new(&options.lab);
    let plan = Plan::new(options, &mut lab).into_diagnostic()?;
    let mut outcomes = Vec::new();
    if !options.json {
        say(&format!("{}\n", head(&plan)))?;
    }
    for (index, &size) in options.size.iter().enumerate() {
        let bar = progress_bar(&plan);
        let run = run_number(index as u32);
        let outcome = measure(
            &plan,
            size,
            run,
            &mut lab,
            &RealClock::new(stop.clone()),
            |progress| {
                show(&bar, &plan, progress, stop.requests() > 0);
            },
        );
        bar.finish_and_clear();
        let outcome = outcome
            .into_diagnostic()
            .wrap_err_with(|| format!("the measurement with {size} bytes failed"));
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(report) => {
                // What has been measured before is not lost.
                if !outcomes.is_empty() {
                    conclude(options, &outcomes)?;
                }
                return Err(report);
            }
        };
        if !options.json {
            say(&format!("{}\n", row(&outcome)))?;
        }
        outcomes.push(outcome);
        if stop.requests() > 0 {
            break;
        }
    }
    conclude(options, &outcomes)?;
    Ok(if !outcomes.iter().all(RateResult::is_clean) {
        Ending::Damaged
    } else if stop.requests() > 0 {
        Ending::Interrupted
    } else {
        Ending::Clean
    })
}

/// All outcomes as JSON, or what became of the messages.
fn conclude(options: &Options, outcomes: &[RateResult]) -> Result<()> {
    if options.json {
        let text = match outcomes {
            [one] => serde_json::to_string_pretty(one),
            several => serde_json::to_string_pretty(several),
        };
        return say(&format!("{}\n", text.into_diagnostic()?));
    }
    for outcome in outcomes {
        if outcomes.len() > 1 {
            say(&format!("# {} bytes\n", outcome.size))?;
        }
        say(&format!("{}\n", verdict(outcome)))?;
    }
    Ok(())
}

/// Prints to standard output. A reader who has gone away is no error: the verdict is the exit
/// status.
fn say(text: &str) -> Result<()> {
    output::print(text).into_diagnostic()
}

/// A line on standard error; hidden when that is no terminal.
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

fn show(bar: &ProgressBar, plan: &Plan, progress: RunProgress, stopping: bool) {
    let doing = match progress.phase {
        RunPhase::Running | RunPhase::Draining if stopping => "stopping (once more to end at once)",
        RunPhase::Opening => "finding the targets",
        RunPhase::Running => "sending",
        RunPhase::Draining => "waiting for the last answers",
        RunPhase::Done => "done",
    };
    let rate = progress.acknowledged as f64 / progress.elapsed.as_secs_f64().max(1e-3);
    let answered = HumanCount(progress.acknowledged);
    let sent = HumanCount(progress.sent);
    bar.set_message(format!(
        "{doing}: {answered} of {sent} acknowledged, {rate:.0}/s"
    ));
    match plan.duration() {
        Some(duration) => bar.set_position(progress.elapsed.min(duration).as_millis() as u64),
        None => bar.tick(),
    }
}
