//! Schemas of JSON output, and outputs checked against them.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use phitwire_tools::schema::KEYWORDS;
use serde_json::{Value, json};

fn phitwire(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phitwire"))
        .args(words.split_whitespace())
        .output()
        .expect("it runs")
}

fn printed(words: &str) -> String {
    let output = phitwire(words);
    assert!(output.status.success(), "{words}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Checks a value against a schema; returns the mistakes.
fn check(name: &str, value: &str) -> Result<(), String> {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("value.json");
    fs::write(&file, value).expect("there is room");
    let output = phitwire(&format!("schema {name} --check {}", shown(&file)));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) => Err(said),
        _ => panic!("{output:?}"),
    }
}

fn shown(file: &Path) -> &str {
    file.to_str().expect("a path without spaces")
}

/// Checks the command's output against its schema; `words` are separated by spaces.
fn as_schema(name: &str, words: &str) {
    assert_eq!(check(name, &printed(words)), Ok(()), "{words}");
}

#[test]
fn outputs_match_their_schemas() {
    let short = "--warmup 100 --measure 200 --json";
    for words in [
        "r1-32 --load 0.2",
        "r1-32 --load 0.2..0.4:0.2 --seeds 2",
        "quickstart --load 0.1 --links encoded",
        "aries-2x1x2x1:1 --load 0.2 --routing minimal,valiant",
        "aries-2x1x2x1:1 --load 0.2 --trace nic0:nic1:2",
        "t3e-2x2x2 --load 0.2 --channels optimised,time-of-crossing",
        "t3e-2x2x2 --load 0.2 --request-reply --e-registers 16 --memory-ns 100",
        "r1-32 --load 0.000001 --seeds 2",
    ] {
        as_schema("sim", &format!("sim {words} {short}"));
    }
    let fault = [
        "sim",
        "quickstart",
        "--fault",
        "link 0 down at 100ns for 100ns",
        "--json",
    ];
    let run = Command::new(env!("CARGO_BIN_EXE_phitwire"))
        .args(fault)
        .args(["--warmup", "100", "--measure", "200"])
        .output();
    let text = String::from_utf8(run.expect("it runs").stdout).expect("text");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert!(value["faults"].is_array());
    assert_eq!(check("sim", &text), Ok(()));
    as_schema("route", "route quickstart nic0 nic7 --json");
    as_schema("route", "route aries-3x4 nic0 nic11 --json");
    as_schema("route", "route t3e-2x2x2 nic0 nic7 --json");
    let messages = "sim aries-pair --op put --bytes 8,64 --count 10 --json";
    as_schema("sim-messages", messages);
    let barrier = "sim t3e-2x2x2 --op barrier --nics 2..8:x2 --count 10 --json";
    as_schema("sim-messages", barrier);
    as_schema("soak", "soak --seeds 1..1 --json");
    as_schema("channels", "topology channels t3e-4x2x2 --steps 100 --json");
    as_schema("reproduce", "reproduce t3e-table1 --json");
}

/// A check must be able to fail, at every depth of an output.
#[test]
fn an_output_that_is_changed_is_found() {
    let text = printed("sim quickstart --load 0.2 --warmup 100 --measure 200 --json");
    let value: Value = serde_json::from_str(&text).expect("JSON");
    for (path, change, expected) in [
        ("/load", json!("0.2"), "$.load: found string, expected"),
        ("/seed", json!(1.5), "$.seed: found number, expected"),
        (
            "/message_bytes",
            json!(300),
            "$.message_bytes: 300 is above",
        ),
        ("/state", json!("fine"), "$.state: found \"fine\", expected"),
        (
            "/process",
            json!("fine"),
            "$.process: found \"fine\", expected",
        ),
        ("/stages", json!([]), "$.stages: found array, expected"),
        (
            "/stages/row_buffers",
            json!({}),
            "$.stages.row_buffers: `mean_phits_per_chip` is missing",
        ),
        (
            "/link_use/injection/links",
            json!(-1),
            "$.link_use.injection.links: -1 is below",
        ),
        (
            "/latency_ns/p50",
            json!([]),
            "$.latency_ns.p50: found array, expected",
        ),
    ] {
        let mut bad = value.clone();
        let field = bad.pointer_mut(path);
        *field.unwrap_or_else(|| panic!("there is no {path}")) = change;
        let found = check("sim", &bad.to_string()).expect_err(path);
        assert!(found.contains(expected), "{path}: {found}");
    }
    let mut more = value.clone();
    more["more"] = json!(1);
    let found = check("sim", &more.to_string()).expect_err("a key too many");
    assert!(found.contains("$.more: unexpected key"), "{found}");
    let other = check("soak", &text).expect_err("another command's output");
    assert!(other.contains("$: `lanes_given_up` is missing"), "{other}");
}

#[test]
fn schemas_describe_every_field() {
    let list = printed("schema --list");
    let names: Vec<&str> = list
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.is_sorted() && names.len() > 10, "{names:?}");
    let mut flaws = Vec::new();
    for name in names {
        let schema = serde_json::from_str(&printed(&format!("schema {name}")));
        let schema: Value = schema.expect("JSON");
        let id = format!("phitwire:{name}:{}", schema["x-version"]);
        assert_eq!(schema["$id"], id);
        assert!(schema["title"].is_string() && schema["x-command"].is_string());
        find_flaws(&schema, name, &mut flaws);
    }
    assert!(flaws.is_empty(), "{flaws:#?}");
    let unknown = phitwire("schema bench-mesages");
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(said.contains("did you mean `bench-messages`?"), "{said}");
}

/// Collects properties without a description, descriptions in the notation of Rust, and keywords
/// that the checker would ignore, at any depth.
fn find_flaws(schema: &Value, path: &str, flaws: &mut Vec<String>) {
    let Value::Object(own) = schema else {
        return;
    };
    let unknown = own.keys().filter(|key| !KEYWORDS.contains(&key.as_str()));
    flaws.extend(unknown.map(|key| format!("{path}: `{key}` is not checked")));
    let text = own.get("description").map(Value::to_string);
    let of_rust = ["[`", "](", "`None`", "`Some`"];
    if let Some(text) = text.filter(|text| of_rust.iter().any(|word| text.contains(word))) {
        flaws.push(format!("{path}: {text}"));
    }
    for (key, part) in schema["properties"].as_object().into_iter().flatten() {
        // The description of a variant is that of its only property.
        let is_variant = own.contains_key("description") && schema["required"] == json!([key]);
        if !is_described(part) && !is_variant {
            flaws.push(format!("{path}.{key} has no description"));
        }
        find_flaws(part, &format!("{path}.{key}"), flaws);
    }
    for (key, part) in schema["$defs"].as_object().into_iter().flatten() {
        find_flaws(part, &format!("{path}/{key}"), flaws);
    }
    for key in ["items", "additionalProperties"] {
        find_flaws(&schema[key], &format!("{path}/{key}"), flaws);
    }
    for key in ["anyOf", "oneOf", "prefixItems"] {
        for part in schema[key].as_array().into_iter().flatten() {
            find_flaws(part, &format!("{path}/{key}"), flaws);
        }
    }
}

/// Whether a property has a description, or each of its forms has.
fn is_described(schema: &Value) -> bool {
    let forms = schema["anyOf"].as_array();
    schema["description"].is_string()
        || forms.is_some_and(|forms| forms.iter().all(|form| form["description"].is_string()))
}
