//! Rows of `phitwire sim --csv` state what was run, and their commands run it again.

use std::collections::BTreeMap;

use crate::sim::{json, sim};

type Row = BTreeMap<String, String>;

/// The rows of a CSV file, keyed by column name.
fn rows(text: &str) -> Vec<Row> {
    csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .map(|row| row.expect("a row"))
        .collect()
}

/// Runs a command that writes a table, and returns its rows.
fn table(words: &str) -> Vec<Row> {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("table.csv");
    let output = sim(&format!("{words} --csv {}", file.display()));
    assert!(output.status.success(), "{words}: {output:?}");
    rows(&std::fs::read_to_string(&file).expect("the table"))
}

/// The arguments of `phitwire sim` in the command of a row.
fn arguments(row: &Row) -> &str {
    let words = row["command"].strip_prefix("phitwire sim ");
    words.unwrap_or_else(|| panic!("{}", row["command"]))
}

/// Checks that the command of a row gives the same row.
fn runs_again(row: &Row) {
    let again = table(arguments(row));
    assert_eq!(again.len(), 1);
    for (name, cell) in row.iter().filter(|(name, _)| *name != "wall_seconds") {
        assert_eq!(&again[0][name], cell, "{name} of {}", row["command"]);
    }
}

#[test]
fn rows_of_compared_modes_run_again() {
    let windows = "--load 0.1 --warmup 100 --measure 300";
    let channels = "--channels optimised,time-of-crossing";
    for (words, modes) in [
        (format!("t3e-4x1x1 {channels}"), 2),
        (format!("t3e-4x1x1 --routing adaptive {channels}"), 2),
        ("t3e-4x1x1 --routing deterministic,adaptive".to_owned(), 2),
        ("aries-2x1x2x1:1 --routing minimal,valiant".to_owned(), 2),
        ("t3e-4x1x1".to_owned(), 1),
    ] {
        let all = table(&format!("{words} {windows}"));
        assert_eq!(all.len(), modes, "{words}");
        for row in &all {
            assert_eq!(row["options"], "warmup 100, measure 300");
            runs_again(row);
        }
    }
}

#[test]
fn files_record_the_command_and_rows_can_be_rerun() {
    let words = "r1-32 --load 0.2 --seeds 2 --warmup 100 --measure 400 --message-bytes 8 \
                 --request-reply --process on-off --participants 6";
    let all = table(words);
    assert_eq!(all.len(), 2, "a row for each seed");
    let said =
        "participants 6, message-bytes 8, request-reply, process on-off, warmup 100, measure 400";
    for (row, seed) in all.iter().zip(["1", "2"]) {
        assert_eq!(row["options"], said);
        assert_eq!(row["seed"], seed);
        assert_eq!(row["measure_cycles"], "400");
        runs_again(row);
        let number = |name: &str| row[name].parse::<f64>().expect(name);
        let quantiles = ["p50", "p90", "p99", "p99_9"].map(|q| number(&format!("latency_{q}")));
        assert!(quantiles.is_sorted(), "{quantiles:?}");
        let ns = number("latency_p99") * number("cycle_ns");
        assert!((number("latency_p99_ns") - ns).abs() < 0.06);
        let gbytes = number("accepted_load") * number("full_gbytes_per_second");
        assert!((number("accepted_gbytes_per_second") - gbytes).abs() < 1e-4);
        assert!((0.0..=1.0).contains(&number("jain")));
        assert!(row["least_source"].starts_with("nic"));
    }
    let modes = table(
        "aries-2x1x2x1:1 --load 0.1 --warmup 100 --measure 300 --routing minimal,valiant --grain packet",
    );
    let commands = modes.iter().map(|row| (&row["routing"], &row["command"]));
    for (mode, command) in commands {
        assert!(command.contains(&format!("--routing {mode}")), "{command}");
        assert!(command.contains("--grain packet"), "{command}");
    }
}

#[test]
fn points_of_the_published_curves_come_out_again() {
    let curves = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/guide/src/curves");
    for (name, load, routing) in [
        ("yarc-64-uniform", "0.7", ""),
        ("t3e-8x8x8-tornado", "0.05", "adaptive, optimised"),
        ("aries-9x1x16x4-group-adversarial", "0.05", "minimal"),
    ] {
        let text = std::fs::read_to_string(format!("{curves}/{name}.csv")).expect(name);
        let published = rows(&text);
        let wanted = published
            .iter()
            .find(|row| row["load"] == load && row["routing"] == routing);
        let wanted = wanted.unwrap_or_else(|| panic!("{name} has a point at {load}"));
        let found = &table(arguments(wanted))[0];
        assert_eq!(found["state"], wanted["state"], "{name}");
        let number = |row: &Row, column: &str| row[column].parse::<f64>().expect(column);
        for (column, tolerance) in [
            ("offered_load", 1e-6),
            ("accepted_load", 0.01),
            ("latency_mean", 0.03),
        ] {
            let (found, wanted) = (number(found, column), number(wanted, column));
            let close = (found - wanted).abs() <= tolerance * wanted;
            assert!(close, "{name}: {column} {found}, and {wanted} is published");
        }
    }
}

#[test]
fn tables_and_json_go_together() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("both.csv");
    let words = "r1-4 --load 0.2 --warmup 100 --measure 400 --json --csv";
    let value = json(&format!("{words} {}", file.display()));
    let table = rows(&std::fs::read_to_string(&file).expect("the table"));
    assert_eq!(value["trace_hash"], table[0]["trace_hash"].as_str());
}
