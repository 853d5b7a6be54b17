//! `phitwire reproduce`: compares this project's values with the papers' tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::thread;

use crate::machines::machines;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use miette::{IntoDiagnostic, miette};
use phitwire::reproduce::{
    Kind, Observation, PERMUTATIONS, Part, Reproduction, Row, Settings, Source, Table, Tolerance,
};
use phitwire::text_table::TextTable;
use schemars::JsonSchema;
use serde::Serialize;

use super::progress::Shown;
use super::{json, print};

/// Line width of assumptions.
const WIDTH: usize = 100;

#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Table to reproduce [default: all, which takes minutes]
    #[arg(value_parser = target())]
    target: Option<&'static Reproduction>,
    /// Print JSON: `rows` of `label`, `kind`, `paper` (or `expected`, `earlier`), `ours`, `within`;
    /// for all tables, an object keyed by name
    #[arg(long)]
    json: bool,
    /// Seed of all random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Random permutations per size, in tables that average over several
    #[arg(long, value_name = "N", default_value_t = PERMUTATIONS,
        value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    permutations: u64,
    /// Threads; results do not depend on their number [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

fn tables() -> impl Iterator<Item = &'static Reproduction> {
    machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.tables)
}

fn target() -> impl TypedValueParser<Value = &'static Reproduction> {
    let names = tables().map(|table| PossibleValue::new(table.name).help(table.help));
    PossibleValuesParser::new(names).try_map(|name| {
        tables()
            .find(|table| table.name == name)
            .ok_or("unknown table")
    })
}

/// Runs `phitwire reproduce`. The exit status is 1 if a row is outside its tolerance.
///
/// # Errors
/// If standard output cannot be written to.
pub fn run(args: &ReproduceArgs) -> miette::Result<ExitCode> {
    let outside = match args.target {
        Some(target) => {
            let table = reproduced(target, args)?;
            match args.json {
                true => print(&json(&PrintedTable::new(&table, args.seed))?)?,
                false => print(&as_text(&table))?,
            };
            usize::from(!table.within())
        }
        None => all(args)?,
    };
    Ok(match outside {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Prints all tables and a summary line. Returns how many tables have a row outside its tolerance.
fn all(args: &ReproduceArgs) -> miette::Result<usize> {
    let (mut outside, mut objects) = (Vec::new(), BTreeMap::new());
    for target in tables() {
        let table = reproduced(target, args)?;
        if !table.within() {
            outside.push(target.name);
        }
        match args.json {
            true => {
                let value = serde_json::to_value(PrintedTable::new(&table, args.seed));
                objects.insert(target.name, value.into_diagnostic()?);
            }
            false => drop(print(&format!(
                "== {}\n{}\n",
                target.name,
                as_text(&table)
            ))?),
        }
    }
    match args.json {
        true => print(&json(&objects)?)?,
        false => print(&match outside.as_slice() {
            [] => format!("All {} tables are within tolerance.\n", tables().count()),
            names => format!("Out of tolerance: {}.\n", names.join(", ")),
        })?,
    };
    Ok(outside.len())
}

fn reproduced(target: &Reproduction, args: &ReproduceArgs) -> miette::Result<Table> {
    let cores = || thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let threads = args.threads.map_or_else(cores, u64::from);
    let settings = Settings {
        seed: args.seed,
        permutations: args.permutations,
        divided: &|trials, part| on_threads(threads, trials, part),
    };
    let shown = Shown::new("phitwire reproduce", "{spinner} {msg}, {elapsed}");
    shown.show(target.name, 0, 0, "");
    (target.run)(&settings).map_err(|error| miette!("{error}"))
}

/// Divides trials among `threads` threads, or fewer if there are fewer trials.
fn on_threads(threads: u64, trials: u64, part: Part<'_>) {
    let threads = threads.min(trials);
    thread::scope(|scope| {
        for number in 0..threads {
            let own = trials * number / threads..trials * (number + 1) / threads;
            scope.spawn(move || part(own));
        }
    });
}

/// A table as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct PrintedTable<'a> {
    /// Subject of the table.
    title: &'a str,
    /// Every kind that its rows have.
    kind: Vec<Kind>,
    /// Unit of the numbers.
    unit: &'a str,
    /// Seed of the run.
    seed: u64,
    /// The values compared.
    rows: Vec<PrintedRow<'a>>,
    /// Values that are not judged.
    also: Vec<PrintedObservation<'a>>,
    /// What the paper leaves open, and the assumptions made.
    assumptions: &'a [String],
    /// Whether all rows are within their tolerances.
    within: bool,
}

/// A reference value and ours. It has one of `paper`, `expected` and `earlier`.
#[derive(Serialize, JsonSchema)]
struct PrintedRow<'a> {
    /// Name of the quantity.
    label: &'a str,
    /// Origin of our value.
    kind: Kind,
    /// The reference, if the paper prints it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    paper: Option<f64>,
    /// The reference, if it follows from the paper or the description and is printed nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    expected: Option<f64>,
    /// The reference, if an earlier program of this project computed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    earlier: Option<f64>,
    /// Our value.
    ours: f64,
    /// Our value minus the reference.
    difference: f64,
    /// The difference as a fraction of the reference; null if the reference is zero.
    relative_error: Option<f64>,
    /// The permitted difference.
    tolerance: PrintedTolerance,
    /// Whether our value is within the tolerance.
    within: bool,
}

/// The permitted difference between our value and the reference.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PrintedTolerance {
    /// Largest permitted difference, as a fraction of the reference.
    Relative(f64),
    /// Largest permitted difference, in the unit of the table.
    Absolute(f64),
    /// Lower bound.
    AtLeast(f64),
    /// Upper bound.
    AtMost(f64),
}

/// A value that is not judged.
#[derive(Serialize, JsonSchema)]
struct PrintedObservation<'a> {
    /// Name of the quantity.
    label: &'a str,
    /// Origin of our value.
    kind: Kind,
    /// The paper's value, if it has one.
    paper: Option<f64>,
    /// Our value.
    ours: f64,
}

impl<'a> PrintedTable<'a> {
    fn new(table: &'a Table, seed: u64) -> Self {
        Self {
            title: &table.title,
            kind: table.kinds().collect(),
            unit: table.unit,
            seed,
            rows: table.rows.iter().map(PrintedRow::new).collect(),
            also: table.also.iter().map(PrintedObservation::new).collect(),
            assumptions: &table.assumptions,
            within: table.within(),
        }
    }
}

impl<'a> PrintedRow<'a> {
    fn new(row: &'a Row) -> Self {
        let of = |source| (row.source == source).then_some(row.reference);
        Self {
            label: &row.label,
            kind: row.kind,
            paper: of(Source::Paper),
            expected: of(Source::Expected),
            earlier: of(Source::Earlier),
            ours: row.ours,
            difference: row.difference(),
            relative_error: Some(row.relative_error()).filter(|error| error.is_finite()),
            tolerance: match row.tolerance {
                Tolerance::Relative(most) => PrintedTolerance::Relative(most),
                Tolerance::Absolute(most) => PrintedTolerance::Absolute(most),
                Tolerance::AtLeast => PrintedTolerance::AtLeast(row.reference),
                Tolerance::AtMost(above) => PrintedTolerance::AtMost(row.reference + above),
            },
            within: row.within(),
        }
    }
}

impl<'a> PrintedObservation<'a> {
    fn new(seen: &'a Observation) -> Self {
        Self {
            label: &seen.label,
            kind: seen.kind,
            paper: seen.paper,
            ours: seen.ours,
        }
    }
}

/// The rows, with a column for each source of their references.
fn rows_as_text(table: &Table) -> String {
    let number = |value: f64| format!("{value:.*}", table.decimals);
    let mut sources = Source::ALL.to_vec();
    sources.retain(|source| table.rows.iter().any(|row| row.source == *source));
    let names = sources.iter().map(|source| source.name());
    let heads: Vec<&str> = [""]
        .into_iter()
        .chain(names)
        .chain(["ours", "difference", "within", "ours is a"])
        .collect();
    let mut rows = TextTable::new(&heads).figures(1..sources.len() + 3);
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
                format!("{:+.*}", table.decimals, row.difference()),
                "at least".to_owned(),
            ),
            Tolerance::AtMost(_) => (
                format!("{:+.*}", table.decimals, row.difference()),
                "at most".to_owned(),
            ),
        };
        let within = match row.within() {
            true => tolerance,
            false => format!("NOT {tolerance}"),
        };
        let reference = |source: &Source| match row.source == *source {
            true => number(row.reference),
            false => "-".to_owned(),
        };
        let ours = [
            number(row.ours),
            difference,
            within,
            row.kind.name().to_owned(),
        ];
        let references = sources.iter().map(reference);
        rows.row(
            [row.label.clone()]
                .into_iter()
                .chain(references)
                .chain(ours),
        );
    }
    rows.render()
}

fn as_text(table: &Table) -> String {
    let number = |value: f64| format!("{value:.*}", table.decimals);
    let unit = match table.unit {
        "" => String::new(),
        unit => format!(", in {unit}"),
    };
    let mut text = format!("{}{unit}\n\n{}", table.title, rows_as_text(table));
    if !table.also.is_empty() {
        let heads = ["not judged", "paper", "ours", "difference", "ours is a"];
        let mut also = TextTable::new(&heads).figures(1..4);
        for seen in &table.also {
            let paper = seen.paper.map_or_else(|| "-".to_owned(), number);
            let relative = |paper: f64| format!("{:+.1} %", 100.0 * (seen.ours / paper - 1.0));
            let difference = seen.paper.filter(|paper| *paper != 0.0);
            let difference = difference.map_or_else(|| "-".to_owned(), relative);
            let kind = seen.kind.name().to_owned();
            also.row([
                seen.label.clone(),
                paper,
                number(seen.ours),
                difference,
                kind,
            ]);
        }
        text.push('\n');
        text.push_str(&also.render());
    }
    text.push_str("\nMethod and assumptions:\n");
    for assumption in &table.assumptions {
        text.push_str(&bullet(assumption));
    }
    let outside = table.rows.iter().filter(|row| !row.within()).count();
    // Writing to a String cannot fail.
    let _ = match (outside, table.rows.len()) {
        (0, rows) => writeln!(text, "\nAll {rows} rows are within tolerance."),
        (_, rows) => writeln!(text, "\n{outside} of {rows} rows are out of tolerance."),
    };
    text
}

/// Wraps a text as a list item in lines of [`WIDTH`].
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
    use std::sync::Mutex;

    use super::*;
    use clap::Parser;
    use serde_json::{Value, json};

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
    fn every_table_has_a_name_of_its_own() {
        for table in tables() {
            let target = args(table.name).target.expect("it is named");
            assert_eq!(target.name, table.name);
            let same = tables().filter(|other| other.name == table.name);
            assert_eq!(same.count(), 1, "{}", table.name);
        }
        assert!(Cli::try_parse_from(["reproduce", "t3d-table1"]).is_err());
    }

    #[test]
    fn every_trial_is_run_once_on_any_number_of_threads() {
        for (threads, trials) in [(1, 5), (3, 5), (8, 5), (4, 0), (2, 1)] {
            let run = Mutex::new(Vec::new());
            on_threads(threads, trials, &|part| run.lock().unwrap().extend(part));
            let mut run = run.into_inner().unwrap();
            run.sort_unstable();
            assert_eq!(run, (0..trials).collect::<Vec<_>>());
        }
    }

    fn table() -> Table {
        let row = |ours| {
            let (kind, tolerance) = (Kind::Count, Tolerance::Relative(0.01));
            Row::new(kind, Source::Paper, "what there is", 80.0, ours, tolerance)
        };
        Table {
            title: "Things".to_owned(),
            unit: "pieces",
            decimals: 1,
            rows: vec![row(80.0), row(80.5), row(79.9)],
            also: Vec::new(),
            assumptions: vec!["there are some".to_owned()],
        }
    }

    fn as_json(table: &Table) -> Value {
        serde_json::to_value(PrintedTable::new(table, 1)).expect("keys are strings")
    }

    #[test]
    fn json_has_a_row_for_each_value() {
        let json = as_json(&table());
        let row = &json["rows"][0];
        assert_eq!(row["paper"], 80.0);
        assert_eq!(row["within"], true);
        assert!(row["label"].is_string() && row["ours"].is_f64() && row["relative_error"].is_f64());
    }

    /// A value that the paper does not print must not have the key `paper` or appear in the paper's
    /// column.
    #[test]
    fn a_number_of_ours_is_not_called_the_papers() {
        let mut table = table();
        table.rows[1].source = Source::Earlier;
        table.rows[2].source = Source::Expected;
        let json = as_json(&table);
        let keys = ["paper", "expected", "earlier"];
        for (row, own) in [(0, "paper"), (1, "earlier"), (2, "expected")] {
            for key in keys {
                let there = json["rows"][row].get(key).is_some();
                assert_eq!(there, key == own, "{row} {key}");
            }
            assert_eq!(json["rows"][row]["kind"], "count of generated wiring");
        }
        assert_eq!(json["kind"], json!(["count of generated wiring"]));
        let text = as_text(&table);
        let head = text.lines().find(|line| line.contains("ours")).unwrap();
        let words: Vec<_> = head.split_whitespace().take(4).collect();
        assert_eq!(words, ["paper", "expected", "earlier", "ours"], "{text}");
        table.rows.truncate(1);
        assert!(!as_text(&table).contains("earlier"));
    }

    #[test]
    fn a_row_outside_its_tolerance_is_shown_and_fails() {
        let mut table = table();
        assert!(!as_text(&table).contains("NOT"));
        table.rows[1].ours = 90.0;
        let text = as_text(&table);
        assert!(text.contains("NOT 1 %"), "{text}");
        assert!(text.contains("1 of 3 rows are out of tolerance"), "{text}");
        assert_eq!(as_json(&table)["within"], false);
        assert_eq!(as_json(&table)["rows"][1]["within"], false);
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
