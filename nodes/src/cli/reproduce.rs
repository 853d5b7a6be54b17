//! `phitwire reproduce`: the papers' tables from running models.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread;

use clap::{Args, ValueEnum};
use miette::IntoDiagnostic;
use phitwire::machine::aries::reproduce::tables as aries_tables;
use phitwire::machine::aries::reproduce::tables::CRAY_XC;
use phitwire::machine::aries::reproduce::{crc as aries_crc, efficiency as aries_efficiency};
use phitwire::machine::blackwidow::reproduce::contention;
use phitwire::machine::blackwidow::reproduce::contention::{LINES, Networks, Seen};
use phitwire::machine::blackwidow::reproduce::throughput;
use phitwire::machine::blackwidow::reproduce::throughput::Measurement;
use phitwire::machine::blackwidow::reproduce::{latency, radix};
use phitwire::reproduce;
use phitwire::reproduce::{Row, Table, Tolerance};
use phitwire::text_table::TextTable;
use serde_json::{Value, json};

use super::print;

/// Width of the lines that assumptions are broken into.
const WIDTH: usize = 100;

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// What to reproduce
    #[arg(value_enum)]
    target: Target,
    /// Print JSON: `rows` of `label`, `paper`, `ours`, `relative_error`, `within`
    #[arg(long)]
    json: bool,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Table 4: random permutations per size
    #[arg(long, value_name = "N", default_value_t = contention::PERMUTATIONS,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    permutations: u64,
    /// Table 4: threads; the result is the same for any number [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Target {
    /// Zero-load latency of a folded Clos and of a torus
    #[value(name = "blackwidow-table2")]
    BlackwidowTable2,
    /// Throughput of a subswitch by its degree
    #[value(name = "blackwidow-table3")]
    BlackwidowTable3,
    /// Link load under random permutations, of a fat tree and of a torus
    #[value(name = "blackwidow-table4")]
    BlackwidowTable4,
    /// The radix of least latency
    #[value(name = "blackwidow-radix")]
    BlackwidowRadix,
    /// Devices and cables of a full dragonfly
    #[value(name = "aries-table1")]
    AriesTable1,
    /// Optical cables of two partial dragonflies
    #[value(name = "aries-table2")]
    AriesTable2,
    /// Cables and bandwidth across their worst bisection
    #[value(name = "aries-table3")]
    AriesTable3,
    /// Undetected errors of the check of a set
    #[value(name = "aries-crc")]
    AriesCrc,
    /// Flits and payload efficiency of 64-byte puts and gets
    #[value(name = "aries-efficiency")]
    AriesEfficiency,
}

/// Runs `phitwire reproduce`. The exit status is 1 if a row is outside its tolerance.
///
/// # Errors
/// Standard output that cannot be written to.
pub fn run(args: &ReproduceArgs) -> miette::Result<ExitCode> {
    let table = reproduced(args)?;
    let text = if args.json {
        format!("{:#}\n", as_json(&table, args.seed))
    } else {
        as_text(&table)
    };
    print(&text)?;
    Ok(if table.within() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn reproduced(args: &ReproduceArgs) -> miette::Result<Table> {
    Ok(match args.target {
        Target::BlackwidowTable2 => latency::table(args.seed, latency::PAIRS),
        Target::BlackwidowTable3 => throughput::table(Measurement::of_the_paper(args.seed)),
        Target::BlackwidowTable4 => contention::table(&seen(args)),
        Target::BlackwidowRadix => radix::table(radix::BLACKWIDOW),
        Target::AriesTable1 => aries_tables::table1(CRAY_XC).into_diagnostic()?,
        Target::AriesTable2 => aries_tables::table2(CRAY_XC).into_diagnostic()?,
        Target::AriesTable3 => aries_tables::table3(CRAY_XC).into_diagnostic()?,
        Target::AriesCrc => aries_crc::table(),
        Target::AriesEfficiency => aries_efficiency::table(),
    })
}

/// Measures all lines of table 4, the permutations of each divided among threads.
fn seen(args: &ReproduceArgs) -> [Seen; LINES.len()] {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let (seed, all) = (args.seed, args.permutations);
    let threads = args.threads.map_or_else(cores, u64::from).min(all);
    LINES.map(|line| {
        let networks = &Networks::new(&line);
        thread::scope(|scope| {
            let parts: Vec<_> = (0..threads)
                .map(|part| (all * part / threads, all * (part + 1) / threads))
                .map(|(first, end)| scope.spawn(move || networks.measure(seed, first, end - first)))
                .collect();
            parts
                .into_iter()
                .fold(Seen::default(), |seen, part| match part.join() {
                    Ok(more) => seen.plus(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                })
        })
    })
}

fn as_json(table: &Table, seed: u64) -> Value {
    let row = |row: &Row| {
        let (kind, tolerance) = match row.tolerance {
            Tolerance::Relative(most) => ("relative", most),
            Tolerance::Absolute(most) => ("absolute", most),
            Tolerance::AtLeast => ("at_least", row.paper),
        };
        json!({
            "label": row.label,
            "paper": row.paper,
            "ours": row.ours,
            "difference": row.difference(),
            "relative_error": row.relative_error(),
            "tolerance": { kind: tolerance },
            "within": row.within(),
        })
    };
    let also = |seen: &reproduce::Observation| json!({ "label": seen.label, "paper": seen.paper, "ours": seen.ours });
    json!({
        "title": table.title,
        "unit": table.unit,
        "seed": seed,
        "rows": table.rows.iter().map(row).collect::<Vec<_>>(),
        "also": table.also.iter().map(also).collect::<Vec<_>>(),
        "assumptions": table.assumptions,
        "within": table.within(),
    })
}

fn as_text(table: &Table) -> String {
    let number = |value: f64| format!("{value:.*}", table.decimals);
    let mut rows = TextTable::new(&["", "paper", "ours", "difference", "within"]).figures(1..4);
    for row in &table.rows {
        let (difference, tolerance) = match row.tolerance {
            Tolerance::Relative(most) => (
                format!("{:+.1} %", 100.0 * row.relative_error()),
                format!("{} %", 100.0 * most),
            ),
            Tolerance::Absolute(most) => (
                format!("{:+.*}", table.decimals, row.difference()),
                format!("{most}"),
            ),
            Tolerance::AtLeast => (
                format!("{:.1e} x", row.ours / row.paper),
                "at least".to_owned(),
            ),
        };
        let within = match row.within() {
            true => tolerance,
            false => format!("NOT {tolerance}"),
        };
        rows.row([
            row.label.clone(),
            number(row.paper),
            number(row.ours),
            difference,
            within,
        ]);
    }
    let unit = match table.unit {
        "" => String::new(),
        unit => format!(", in {unit}"),
    };
    let mut text = format!("{}{unit}\n\n{}", table.title, rows.render());
    if !table.also.is_empty() {
        let mut also = TextTable::new(&["besides", "paper", "ours"]).figures(1..3);
        for seen in &table.also {
            let paper = seen.paper.map_or_else(|| "-".to_owned(), number);
            also.row([seen.label.clone(), paper, number(seen.ours)]);
        }
        text.push('\n');
        text.push_str(&also.render());
    }
    text.push_str("\nWhat was run, and what is assumed:\n");
    for assumption in &table.assumptions {
        text.push_str(&bullet(assumption));
    }
    let outside = table.rows.iter().filter(|row| !row.within()).count();
    if outside > 0 {
        // Writing into a String never fails.
        let _ = writeln!(
            text,
            "\n{outside} of {} rows are outside their tolerance.",
            table.rows.len()
        );
    }
    text
}

/// A text as an item of a list, in lines of [`WIDTH`].
fn bullet(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("-");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            line = String::from(" ");
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: ReproduceArgs,
    }

    fn args(line: &str) -> ReproduceArgs {
        let words = ["reproduce"].into_iter().chain(line.split(' '));
        Cli::try_parse_from(words).expect("good arguments").args
    }

    #[test]
    fn targets_have_the_names_of_the_paper_and_the_table() {
        for (name, target) in [
            ("blackwidow-table2", Target::BlackwidowTable2),
            ("blackwidow-table3", Target::BlackwidowTable3),
            ("blackwidow-table4", Target::BlackwidowTable4),
            ("blackwidow-radix", Target::BlackwidowRadix),
            ("aries-table1", Target::AriesTable1),
            ("aries-table2", Target::AriesTable2),
            ("aries-table3", Target::AriesTable3),
            ("aries-crc", Target::AriesCrc),
            ("aries-efficiency", Target::AriesEfficiency),
        ] {
            assert_eq!(args(name).target, target);
        }
        assert!(Cli::try_parse_from(["reproduce", "t3e-table1"]).is_err());
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let seen_by = |threads| {
            seen(&args(&format!(
                "blackwidow-table4 --permutations 5 --threads {threads}"
            )))
        };
        let one = seen_by(1);
        assert_eq!(seen_by(3), one);
        assert_eq!(seen_by(8), one, "more threads than permutations");
    }

    #[test]
    fn json_has_a_row_for_each_value() {
        let json = as_json(&radix::table(radix::BLACKWIDOW), 1);
        let row = &json["rows"][0];
        assert_eq!(row["paper"], 1600.0);
        assert_eq!(row["within"], true);
        assert!(row["label"].is_string() && row["ours"].is_f64() && row["relative_error"].is_f64());
    }

    #[test]
    fn a_row_outside_its_tolerance_is_shown_and_fails() {
        let mut table = radix::table(radix::BLACKWIDOW);
        assert!(!as_text(&table).contains("NOT"));
        table.rows[1].ours = 90.0;
        let text = as_text(&table);
        assert!(text.contains("NOT 1 %"), "{text}");
        assert!(text.contains("1 of 3 rows are outside"), "{text}");
        assert_eq!(as_json(&table, 1)["within"], false);
        assert_eq!(as_json(&table, 1)["rows"][1]["within"], false);
    }

    #[test]
    fn assumptions_are_broken_into_lines() {
        let text = bullet(&"assumption ".repeat(20));
        assert!(
            text.lines()
                .all(|line| line.len() <= WIDTH && !line.ends_with(' '))
        );
        assert!(text.starts_with("- assumption") && text.lines().count() == 3);
    }
}
