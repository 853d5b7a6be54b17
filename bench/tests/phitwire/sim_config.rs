//! `phitwire sim --config`: the options of a run from a file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::sim::{json, sim};

const RUN: &str = r#"
topology = "aries-pair"
traffic = "bit-complement"
load = "0.1..0.2:0.1"
warmup = 200
measure = 300
seed = 5
request-reply = true
routing = ["minimal", "valiant"]
fault = ["link 0 down at 100ns for 50ns"]
"#;

fn written(folder: &Path, text: &str) -> PathBuf {
    let file = folder.join("run.toml");
    fs::write(&file, text).expect("there is room");
    file
}

fn hashes(of: &Value) -> Vec<String> {
    let points = of.as_array().map_or(std::slice::from_ref(of), |all| all);
    let hash = |point: &Value| point["trace_hash"].as_str().expect("a hash").to_owned();
    points.iter().map(hash).collect()
}

#[test]
fn a_file_stands_for_the_same_words_and_its_result_for_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), RUN);
    let from_file = json(&format!("--config {} --json", file.display()));
    assert_eq!(hashes(&from_file).len(), 4);
    let words = "aries-pair --traffic bit-complement --load 0.1,0.2 --warmup 200 --measure 300 \
                 --seed 5 --request-reply --routing minimal,valiant --json";
    // `words` lacks the fault, which contains spaces, so the runs differ.
    assert_ne!(hashes(&json(words)), hashes(&from_file));
    let unbroken = RUN.lines().filter(|line| !line.starts_with("fault"));
    let file = written(folder.path(), &unbroken.collect::<Vec<_>>().join("\n"));
    let from_file = json(&format!("--config {} --json", file.display()));
    assert_eq!(hashes(&json(words)), hashes(&from_file));

    let result = folder.path().join("result.json");
    fs::write(&result, from_file.to_string()).expect("there is room");
    let again = json(&format!("--config {} --json", result.display()));
    assert_eq!(hashes(&again), hashes(&from_file));
    assert_eq!(again[0]["options"], from_file[0]["options"]);
    // The command line takes precedence.
    let other = json(&format!(
        "--seed 6 --config {} --load 0.2 --json",
        result.display()
    ));
    assert_eq!(hashes(&other).len(), 2);
    assert_ne!(hashes(&other)[0], hashes(&from_file)[1]);
    assert_eq!(
        (&other[0]["seed"], &other[0]["options"]["seed"]),
        (&6.into(), &6.into())
    );
}

#[test]
fn a_run_of_nics_is_fed_back_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(
        folder.path(),
        "topology = \"aries-pair\"\nop = \"put\"\nbytes = [8, 64]\ncount = 5\nwindow = 0x2",
    );
    let first = json(&format!("--config {} --json", file.display()));
    assert_eq!(first["rows"].as_array().map(Vec::len), Some(2));
    assert_eq!(first["window"], 2);
    let result = folder.path().join("result.json");
    fs::write(&result, first.to_string()).expect("there is room");
    let again = json(&format!("--config {} --json", result.display()));
    assert_eq!(hashes(&again), hashes(&first));
    // The file may contain an option that another one on the command line requires.
    let other = json(&format!("--config {} --bytes 16 --json", result.display()));
    assert_eq!(other["rows"][0]["bytes"], 16);
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = (0..201).map(|number| format!("\"o{number}\": 1"));
    let options: Vec<_> = options.collect();
    let too_many = format!("{{\"options\": {{{}}}}}", options.join(","));
    for (text, position, said) in [
        (
            "lod = 0.3",
            "1:1",
            "`phitwire sim` has no option `lod`|did you mean `load`?",
        ),
        (
            "zebra = 1",
            "1:1",
            "the options are topology, traffic, participants, load",
        ),
        ("config = \"x\"", "1:1", "has no option `config`"),
        (
            "seed = 1\nload = true",
            "2:8",
            "`load` cannot be a boolean|write a number, or a text",
        ),
        (
            "request-reply = 1",
            "1:17",
            "`request-reply` cannot be a single value|true or false",
        ),
        (
            "topology = [\"a\", \"b\"]",
            "1:12",
            "`topology` cannot be a list|name of a network",
        ),
        ("topology = \"--json\"", "1:12", "`--json` is not a network"),
        ("[load]\nfrom = 1", "1:1|1:2", "`load` cannot be a table"),
        (
            "fault = [[1]]",
            "1:9",
            "`fault` cannot be a list that contains other types",
        ),
        (
            "seed = \"seven\"",
            "1:8",
            "invalid value 'seven' for '--seed <S>'",
        ),
        ("load = [0.1, 7]", "1:8", "load `7`"),
        ("traffic = \"unifrom\"", "1:11", "did you mean `uniform`?"),
        (
            "op = \"put\"\nload = 0.3",
            "|2:8|1:6",
            "cannot be used with",
        ),
        ("load = ", "1:7|1:8", "write OPTION = VALUE"),
        ("load = 1\nload = 2", "2:1", "duplicate key"),
        (
            "{\"options\": {\"lod\": 1}}",
            "1:14",
            "did you mean `load`?",
        ),
        ("{\"load\": 1}", "1:1", "the JSON has no `options`"),
        (
            "[{\"options\": {}}, {\"options\": {\"load\": 1}}]",
            "1:1",
            "runs with different options",
        ),
        ("{\"options\":\n 1", "2:1|2:2|2:3", "invalid JSON"),
        (&too_many, "1:1", "201 options, at most 200 expected"),
    ] {
        let file = written(folder.path(), text);
        let output = sim(&format!("aries-pair --config {}", file.display()));
        let error = String::from_utf8_lossy(&output.stderr).replace('│', " ");
        let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(output.status.code(), Some(1), "{text}: {error}");
        let is_there = |position: &str| error.contains(&format!("run.toml:{position}]"));
        let positions: Vec<_> = position
            .split('|')
            .filter(|position| !position.is_empty())
            .collect();
        assert!(
            positions.iter().any(|position| is_there(position)),
            "{text}: {position}: {error}"
        );
        for words in said.split('|') {
            assert!(error.contains(words), "{text}: {words}: {error}");
        }
    }
}

#[test]
fn a_word_that_only_another_machine_has_is_refused_from_a_file_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), "routing = [\"adaptive0\"]");
    let output = sim(&format!("t3e-2x2x2 --config {}", file.display()));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("expected one of deterministic, adaptive"),
        "{error}"
    );
}

#[test]
fn conflicts_between_file_and_command_line_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), "load = 0.3");
    let output = sim(&format!("aries-pair --op put --config {}", file.display()));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(
        error.contains("run.toml:1:") && error.contains("--op"),
        "{error}"
    );
    // The parser reports invalid options on the command line, as it does without a file.
    let output = sim(&format!("aries-pair --lod 1 --config {}", file.display()));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let output = sim(&format!("--config {}", file.display()));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("<TOPOLOGY>"), "{error}");
}

#[test]
fn no_output_overwrites_what_the_run_reads() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = written(folder.path(), "topology = \"aries-pair\"\nload = 0.1");
    // A picture has to be called one.
    let renamed = file.with_extension("svg");
    fs::rename(&file, &renamed).expect("there is room");
    let file = renamed;
    for option in [
        "csv",
        "plot",
        "hgrm",
        "record",
        "trace nic0:nic1 --perfetto",
    ] {
        let words = format!("--config {0} --{option} {0}", file.display());
        let output = sim(&words);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{words}: {error}");
        assert!(error.contains("the run reads this file"), "{error}");
    }
    let kept = fs::read_to_string(&file).expect("the file is still there");
    assert!(kept.ends_with("load = 0.1"), "{kept}");
}
