//! `phitwire topology channels`, and descriptions that take tables of virtual channels from a file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn phitwire(dir: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phitwire"))
        .args(arguments.split(' '))
        .env("PHITWIRE_RUN_DIR", dir.join("run"))
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("the command runs")
}

fn good(dir: &Path, arguments: &str) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = phitwire(dir, arguments);
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{arguments}: {stderr}");
    String::from_utf8(stdout).expect("text")
}

fn bad(dir: &Path, arguments: &str, expected: &str) {
    let Output {
        status,
        stdout,
        stderr,
    } = phitwire(dir, arguments);
    let text = [&stdout[..], &stderr[..]].concat();
    // Join the lines: the report breaks them between any two words.
    let words = String::from_utf8_lossy(&text).replace(['│', '×'], " ");
    let words: Vec<&str> = words.split_whitespace().collect();
    assert!(!status.success(), "{arguments}: {words:?}");
    assert!(
        words.join(" ").contains(expected),
        "{expected} in {}",
        words.join(" ")
    );
}

/// A folder with a ring of eight and tables for it.
fn ring() -> TempDir {
    let dir = tempfile::tempdir().expect("a scratch folder");
    let text = good(dir.path(), "topology generate t3e --size 8x1x1 --name ring");
    fs::write(dir.path().join("ring.toml"), text).expect("it can be written");
    good(
        dir.path(),
        "topology channels ring.toml --output tables.toml",
    );
    dir
}

fn with_tables(dir: &Path, name: &str, tables: &str) {
    let text = fs::read_to_string(dir.join("ring.toml")).expect("it is there");
    let line = format!("size = \"8x1x1\"\nvc_tables = \"{tables}\"");
    fs::write(dir.join(name), text.replace("size = \"8x1x1\"", &line)).expect("it can be written");
}

#[test]
fn tables_are_printed_for_people_and_programs() {
    let dir = ring();
    let text = good(dir.path(), "topology channels ring.toml");
    for part in [
        "1 ring in X, ordinates 0 to 7",
        "dateline of + at 0, of - at 7",
        "No deadlock",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(
        text,
        good(dir.path(), "topology channels ring.toml --seed 0")
    );
    let json = good(
        dir.path(),
        "topology channels ring.toml --json --seed 3 --steps 2000 --ring X",
    );
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["seed"], &json["steps"]), (&3.into(), &2000.into()));
    assert_eq!(json["rings"][0]["plus"].as_array().map(Vec::len), Some(8));
    assert_eq!(json["circle"], Value::Null);
    bad(
        dir.path(),
        "topology channels ring.toml --ring Y",
        "the torus has no rings in Y",
    );
    bad(
        dir.path(),
        "topology channels ring.toml --steps 0",
        "0 is not in 1..=100000000",
    );
    bad(
        dir.path(),
        "topology channels ring.toml --output no/folder",
        "cannot write no/folder",
    );
    let other = good(dir.path(), "topology generate blackwidow --processors 64");
    fs::write(dir.path().join("other.toml"), other).expect("it can be written");
    bad(
        dir.path(),
        "topology channels other.toml",
        "this machine has no virtual-channel tables",
    );
}

#[test]
fn a_description_reads_tables_from_a_referenced_file() {
    let dir = ring();
    let path = dir.path();
    with_tables(path, "given.toml", "tables.toml");
    assert!(good(path, "topology check given.toml").contains("ok"));
    // Paths are relative to the description's folder, not to the working directory.
    let elsewhere = tempfile::tempdir().expect("a scratch folder");
    let given = path.join("given.toml");
    good(
        elsewhere.path(),
        &format!("topology check {}", given.display()),
    );
    // A copy is self-contained.
    good(
        path,
        &format!(
            "topology plan given.toml --copy {}/copy.toml",
            elsewhere.path().display()
        ),
    );
    good(elsewhere.path(), "topology check copy.toml");
    let copy = fs::read_to_string(elsewhere.path().join("copy.toml")).expect("it is there");
    assert!(copy.contains("[[vc_tables]]"), "{copy}");
    // A description that names no other file is copied unchanged.
    good(path, "topology plan ring.toml --copy same.toml");
    let [one, other] =
        ["ring.toml", "same.toml"].map(|name| fs::read(path.join(name)).expect("there"));
    assert_eq!(one, other);
    good(path, "sim given.toml --load 0.1 --warmup 500 --measure 500");
}

#[test]
fn wrong_tables_are_refused() {
    let dir = ring();
    let path = dir.path();
    let tables = fs::read_to_string(path.join("tables.toml")).expect("it is there");
    let wrong: String = tables
        .lines()
        .map(|line| match line.starts_with("  \"") {
            true => "  \"11111111\",\n".to_owned(),
            false => format!("{line}\n"),
        })
        .collect();
    fs::write(path.join("wrong.toml"), wrong).expect("it can be written");
    with_tables(path, "given.toml", "wrong.toml");
    bad(path, "topology check given.toml", "(1,0,0) -X VC1");
    bad(
        path,
        "topology check given.toml --lines",
        "given.toml:8:13: possible deadlock: packets can wait for each other in a cycle",
    );
    fs::create_dir(path.join("folder")).expect("it can be made");
    for (name, expected) in [
        ("missing.toml", "cannot read missing.toml: No such file"),
        ("folder", "it is a directory"),
        ("/dev/zero", "it is a device"),
        (
            "ring.toml",
            "ring.toml:1:1: the file of tables lacks the key `vc_tables`",
        ),
    ] {
        with_tables(path, "given.toml", name);
        bad(path, "topology check given.toml --lines", expected);
    }
    fs::write(path.join("large.toml"), vec![b'#'; 9 << 20]).expect("it can be written");
    with_tables(path, "given.toml", "large.toml");
    bad(
        path,
        "topology check given.toml --lines",
        "too large: 9437184 bytes, at most 8388608",
    );
    bad(
        path,
        "manage channels --lab none-such tables.toml",
        "is not running",
    );
}
