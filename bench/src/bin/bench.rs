//! `phitwire-bench`: OSU-style benchmarks of a running lab, with every byte and every result
//! verified.

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use miette::{IntoDiagnostic, Result};
use phitwire_bench::msgrate::{ControlLab, RealClock, RunError, run_number};
use phitwire_bench::suite::collective::CollectiveSuite;
use phitwire_bench::suite::point::{PointSuite, nics_of};
use phitwire_bench::suite::programs::ProgramSuite;
use phitwire_bench::suite::units::UnitSuite;
use phitwire_bench::suite::{
    Benchmark, Ending, Options, collective_row, head, point_row, unit_row, verdict,
};
use phitwire_nodes::cli::pages;
use phitwire_nodes::description;
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use phitwire_nodes::stop::Stop;
use serde::Serialize;

fn main() -> ExitCode {
    output::keep_lines_whole();
    if let Some(status) = pages::asked(Options::command) {
        return status;
    }
    let options = Options::parse();
    Ending::status(match &options.benchmark {
        benchmark if benchmark.by_programs().is_some() => programs(benchmark),
        Benchmark::Barrier(barrier) if !barrier.unit.is_empty() => units(&options.benchmark),
        Benchmark::Eureka(_) => units(&options.benchmark),
        Benchmark::Allreduce(_) | Benchmark::Barrier(_) => collective(&options.benchmark),
        _ => point(&options.benchmark),
    })
}

/// A table that is printed row by row. Its head comes with the first one: above an error it would
/// promise figures.
struct Table {
    head: Option<String>,
    is_wanted: bool,
}

impl Table {
    fn new(benchmark: &Benchmark, who: &str) -> Self {
        Self {
            head: Some(head(benchmark, who)),
            is_wanted: !benchmark.common().json,
        }
    }

    fn row(&mut self, row: String) {
        if self.is_wanted {
            let lines: Vec<String> = self.head.take().into_iter().chain([row]).collect();
            // Whether somebody still reads shows at the end.
            let _ = say(&lines.join("\n"));
        }
    }
}

/// Numbers that no other measurement of the lab has.
fn numbers() -> impl FnMut() -> u64 {
    let mut index = 0;
    move || {
        index += 1;
        run_number(index)
    }
}

fn point(benchmark: &Benchmark) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let mut lab = ControlLab::new(&common.lab);
    let suite = PointSuite::new(benchmark, &mut lab).into_diagnostic()?;
    let plan = suite.plan();
    let who = format!("{}, window {}", plan.describe(), plan.window);
    let mut table = Table::new(benchmark, &who);
    let mut rows = Vec::new();
    let ending = suite.run(&mut lab, &stop, numbers(), |row| {
        table.row(point_row(row));
        rows.push(row.clone());
    });
    // What has been measured before an error is not lost.
    if common.json {
        say_json(&rows)?;
    } else if !rows.is_empty() {
        say(&verdict(&rows))?;
    }
    ending.into_diagnostic()
}

fn programs(benchmark: &Benchmark) -> Result<Ending> {
    let Some(options) = benchmark.by_programs() else {
        unreachable!("it was asked before");
    };
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let nics = nics_of(&mut ControlLab::new(&common.lab)).into_diagnostic()?;
    let [Some(first), Some(last)] = [nics.first(), nics.last()] else {
        return Err(RunError::Alone(common.lab.clone())).into_diagnostic();
    };
    let ends = [&options.from, &options.to];
    let ends = [
        ends[0].as_ref().unwrap_or(first).clone(),
        ends[1].as_ref().unwrap_or(last).clone(),
    ];
    let mut suite = ProgramSuite::new(benchmark, options, ends).into_diagnostic()?;
    let mut table = Table::new(benchmark, &suite.describe());
    let mut rows = Vec::new();
    let ending = suite.run(&stop, |row| {
        table.row(point_row(row));
        rows.push(row.clone());
    });
    if common.json {
        say_json(&rows)?;
    } else if !rows.is_empty() {
        say(&verdict(&rows))?;
    }
    ending.into_diagnostic()
}

fn collective(benchmark: &Benchmark) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let mut lab = ControlLab::new(&common.lab);
    let suite = CollectiveSuite::new(benchmark, &mut lab).into_diagnostic()?;
    let mut table = Table::new(benchmark, &suite.describe());
    let mut rows = Vec::new();
    let clock = RealClock::new(stop);
    let mut numbers = numbers();
    // Collective runs have numbers of 32 bits, which come round after more than an hour.
    let numbers = || (numbers() as u32).max(1);
    let ending = suite.run(&mut lab, &clock, numbers, |row| {
        table.row(collective_row(row));
        rows.push(row.clone());
    });
    if common.json {
        say_json(&rows)?;
    }
    ending.into_diagnostic()
}

fn units(benchmark: &Benchmark) -> Result<Ending> {
    let (stop, common) = (Stop::at_signals().into_diagnostic()?, benchmark.common());
    let directory = LabDir::new(&common.lab).into_diagnostic()?;
    let network = description::open(&directory.path().join("topology.toml"))?;
    let mut lab = ControlLab::new(&common.lab);
    let suite = UnitSuite::new(benchmark, &*network, &mut lab).into_diagnostic()?;
    let mut table = Table::new(benchmark, &suite.describe());
    let mut numbers = numbers();
    let number = (numbers() as u32).max(1);
    let rows = suite.run(&mut lab, &RealClock::new(stop), number);
    let (rows, ending) = rows.into_diagnostic()?;
    match common.json {
        true => say_json(&rows)?,
        false => rows.iter().for_each(|row| table.row(unit_row(row))),
    }
    Ok(ending)
}

fn say_json<T: Serialize>(rows: &[T]) -> Result<()> {
    say(&serde_json::to_string_pretty(rows).into_diagnostic()?)
}

fn say(text: &str) -> Result<()> {
    output::print(&format!("{text}\n")).into_diagnostic()
}
