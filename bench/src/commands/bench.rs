//! `phitwire-bench`: OSU-style benchmarks of a running lab, with every byte and every result
//! verified.

use std::process::ExitCode;
use std::time::Duration;

use std::ffi::OsString;

use crate::msgrate::{ControlLab, RealClock, run_number};
use crate::plot;
use crate::suite::collective::CollectiveSuite;
use crate::suite::goodput::{self, GoodputRow};
use crate::suite::point::{PointRow, PointSuite};
use crate::suite::units::UnitSuite;
use crate::suite::{
    Benchmark, Ending, FileOptions, GoodputOptions, Options, collective_row, goodput_row, head,
    point_row, unit_row, verdict,
};
use clap::{CommandFactory, Parser};
use indicatif::{ProgressBar, ProgressStyle};
use miette::{IntoDiagnostic, Result};
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use phitwire_nodes::stop::Stop;
use phitwire_tools::cli::pages;
use phitwire_tools::description;
use serde::Serialize;

/// Runs the tool; the first argument is its name.
pub(super) fn main(arguments: Vec<OsString>) -> ExitCode {
    output::keep_lines_whole();
    if let Some(status) = pages::asked(&arguments, Options::command) {
        return status;
    }
    let options = Options::parse_from(arguments);
    Ending::status(match &options.benchmark {
        Benchmark::Barrier(barrier) if !barrier.unit.is_empty() => units(&options.benchmark),
        Benchmark::Eureka(_) => units(&options.benchmark),
        Benchmark::Goodput(losses) => over_losses(&options.benchmark, losses),
        Benchmark::Allreduce(_) | Benchmark::Barrier(_) => collective(&options.benchmark),
        _ => point(&options.benchmark),
    })
}

/// A table printed row by row. The first row prints the header, so that no header precedes an
/// error.
struct Table {
    head: Option<String>,
    is_wanted: bool,
    /// Progress, on a terminal's standard error.
    bar: ProgressBar,
}

impl Table {
    /// A table of `rows` rows, if the number is known.
    fn new(benchmark: &Benchmark, who: &str, rows: Option<usize>) -> Self {
        let (bar, template) = match rows {
            Some(rows) => (
                ProgressBar::new(rows as u64),
                "{spinner} {msg}: {pos} of {len} rows, {elapsed}",
            ),
            None => (ProgressBar::new_spinner(), "{spinner} {msg}: {elapsed}"),
        };
        let bar = match ProgressStyle::with_template(template) {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        bar.set_message(benchmark.name());
        bar.enable_steady_tick(TICK);
        Self {
            head: Some(head(benchmark, who)),
            is_wanted: !benchmark.common().json,
            bar,
        }
    }

    fn row(&mut self, row: String) {
        self.bar.inc(1);
        if self.is_wanted {
            let lines: Vec<String> = self.head.take().into_iter().chain([row]).collect();
            // Ignore an error: the final output also shows whether the output is still read.
            let _ = self.bar.suspend(|| print_text(&lines.join("\n")));
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Redraw interval of the bar.
const TICK: Duration = Duration::from_millis(200);

/// A source of run numbers that are unique in the lab.
fn numbers() -> impl FnMut() -> u64 {
    let mut index = 0;
    move || {
        index += 1;
        run_number(index)
    }
}

fn point(benchmark: &Benchmark) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let files = benchmark.files();
    plot::check(&[&files.plot, &files.hgrm]).into_diagnostic()?;
    let mut lab = ControlLab::new(&common.lab);
    let suite = PointSuite::new(benchmark, &mut lab).into_diagnostic()?;
    let plan = suite.plan();
    let who = format!("{}, window {}", plan.describe(), plan.window);
    let mut table = Table::new(benchmark, &who, Some(suite.rows()));
    let mut rows = Vec::new();
    let ending = suite.run(&mut lab, &stop, numbers(), |row| {
        table.row(point_row(row));
        rows.push(row.clone());
    });
    drop(table);
    leave(benchmark, &who, &rows)?;
    // Print the rows measured before an error.
    if common.json {
        print_json(&rows)?;
    } else if !rows.is_empty() {
        print_text(&verdict(&rows))?;
    }
    ending.into_diagnostic()
}

/// Writes the requested files.
fn leave(benchmark: &Benchmark, who: &str, rows: &[PointRow]) -> Result<()> {
    let FileOptions { plot, hgrm } = benchmark.files();
    if rows.is_empty() {
        return Ok(());
    }
    if let Some(file) = plot {
        let chart = plot::by_size(&benchmark.common().lab, who, rows);
        plot::write(&file, &chart).into_diagnostic()?;
    }
    if let Some(file) = hgrm {
        let outcomes = rows.iter().map(|row| &row.outcome);
        plot::write_hgrm(&file, outcomes).into_diagnostic()?;
    }
    Ok(())
}

fn over_losses(benchmark: &Benchmark, options: &GoodputOptions) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, &options.common);
    plot::check(&[&options.plot]).into_diagnostic()?;
    let mut lab = ControlLab::new(&common.lab);
    let (mut table, mut whose) = (None, String::new());
    let mut rows: Vec<GoodputRow> = Vec::new();
    let ending = goodput::run(options, &mut lab, &stop, numbers(), |who, row| {
        who.clone_into(&mut whose);
        let table = table.get_or_insert_with(|| {
            Table::new(
                benchmark,
                who,
                Some(options.loss.len() * options.size.len()),
            )
        });
        table.row(goodput_row(row));
        rows.push(row.clone());
    });
    drop(table);
    if let Some(file) = options.plot.as_ref().filter(|_| !rows.is_empty()) {
        let all = rows.iter().map(|row| (row.loss_percent, row.row.clone()));
        let chart = plot::by_loss(&common.lab, &whose, &all.collect::<Vec<_>>());
        plot::write(file, &chart).into_diagnostic()?;
    }
    if common.json {
        print_json(&rows)?;
    } else if !rows.is_empty() {
        let rows: Vec<PointRow> = rows.into_iter().map(|row| row.row).collect();
        print_text(&verdict(&rows))?;
    }
    ending.into_diagnostic()
}

fn collective(benchmark: &Benchmark) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let mut lab = ControlLab::new(&common.lab);
    let suite = CollectiveSuite::new(benchmark, &mut lab).into_diagnostic()?;
    let mut table = Table::new(benchmark, &suite.describe(), None);
    let mut rows = Vec::new();
    let clock = RealClock::new(stop);
    let mut numbers = numbers();
    // Numbers of collective runs have 32 bits and wrap after more than an hour.
    let numbers = || (numbers() as u32).max(1);
    let ending = suite.run(&mut lab, &clock, numbers, |row| {
        table.row(collective_row(row));
        rows.push(row.clone());
    });
    if common.json {
        print_json(&rows)?;
    }
    ending.into_diagnostic()
}

fn units(benchmark: &Benchmark) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let directory = LabDir::new(&common.lab).into_diagnostic()?;
    let network = description::open(&directory.path().join("topology.toml"))?;
    let mut lab = ControlLab::new(&common.lab);
    let suite = UnitSuite::new(benchmark, &*network, &mut lab).into_diagnostic()?;
    let mut table = Table::new(benchmark, &suite.describe(), None);
    let mut numbers = numbers();
    let number = (numbers() as u32).max(1);
    let rows = suite.run(&mut lab, &RealClock::new(stop), number);
    let (rows, ending) = rows.into_diagnostic()?;
    match common.json {
        true => print_json(&rows)?,
        false => rows.iter().for_each(|row| table.row(unit_row(row))),
    }
    Ok(ending)
}

fn print_json<T: Serialize>(rows: &[T]) -> Result<()> {
    print_text(&serde_json::to_string_pretty(rows).into_diagnostic()?)
}

fn print_text(text: &str) -> Result<()> {
    output::print(&format!("{text}\n")).into_diagnostic()
}
