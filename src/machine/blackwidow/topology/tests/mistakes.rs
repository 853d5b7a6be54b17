//! One bad description per mistake: found, placed, and with a remedy.

use crate::machine::blackwidow::topology::read;
use crate::net::MistakeKind as K;

/// Two R1 subtrees of two processors, joined by sidelinks, in two slices' worth of ports.
const SIDE: &str = r#"name = "side"
slices = 1

[network]
profile = "live"

[processors]
nic0 = 0
nic1 = 1
nic2 = 2
nic3 = 3

[[chip]]
name = "r1-0"
rank = 1
processors = "0-1"

[[chip]]
name = "r1-1"
rank = 1
processors = "2-3"

[wiring]
links = [
  { a = "nic0:0", b = "r1-0:0" },
  { a = "nic1:0", b = "r1-0:1" },
  { a = "nic2:0", b = "r1-1:0" },
  { a = "nic3:0", b = "r1-1:1" },
  { a = "r1-0:32", b = "r1-1:32" },
  { a = "r1-0:33", b = "r1-1:33" },
]
"#;

/// The same processors below two rank-2 virtual routers of one chip.
const CLOS: &str = r#"name = "clos"

[processors]
nic0 = 0
nic1 = 1
nic2 = 2
nic3 = 3

[[chip]]
name = "r1-0"
rank = 1
processors = "0-1"

[[chip]]
name = "r1-1"
rank = 1
processors = "2-3"

[[chip]]
name = "r2-0"

[[chip.router]]
name = "r2-0a"
rank = 2
ports = "0-31"
processors = "0-3"

[[chip.router]]
name = "r2-0b"
rank = 2
ports = "32-63"
processors = "0-3"

[wiring]
links = [
  { a = "nic0:0", b = "r1-0:0" },
  { a = "nic1:0", b = "r1-0:1" },
  { a = "nic2:0", b = "r1-1:0" },
  { a = "nic3:0", b = "r1-1:1" },
  { a = "r1-0:32", b = "r2-0:0" },
  { a = "r1-0:33", b = "r2-0:32" },
  { a = "r1-1:32", b = "r2-0:1" },
  { a = "r1-1:33", b = "r2-0:33" },
]
"#;

/// All mistakes so far, for the reader of one snapshot.
#[derive(Default)]
struct Found(String);

impl Found {
    /// Reads `text` with `edits` made: there must be a mistake of that kind, on the line that
    /// contains `at`, with a remedy.
    fn expect(&mut self, text: &str, edits: &[(&str, &str)], kind: K, at: &str) {
        let mut bad = text.to_owned();
        for (from, to) in edits {
            assert_eq!(bad.matches(from).count(), 1, "`{from}` stands once");
            bad = bad.replacen(from, to, 1);
        }
        let problems = read("bad.toml", &bad).expect_err(&format!("{kind:?}: {edits:?}"));
        let lines = problems.lines();
        let line_of = |index| {
            let (line, column) = problems.line_and_column(index);
            let there = bad.lines().nth(line - 1).unwrap_or("");
            assert!(column <= there.chars().count() + 1);
            there
        };
        let index = (0..)
            .zip(problems.mistakes())
            .find(|(i, m)| m.kind == kind && line_of(*i).contains(at))
            .map(|(i, _)| i)
            .unwrap_or_else(|| panic!("no {kind:?} is placed at `{at}`:\n{lines}"));
        let mistake = problems.mistakes().nth(index).expect("it was just found");
        assert!(!mistake.help.is_empty(), "{kind:?} has no remedy");
        self.0.push_str(&format!("--- {edits:?}\n{lines}\n"));
    }
}

#[test]
fn the_descriptions_are_right_before_they_are_spoilt() {
    for text in [SIDE, CLOS] {
        if let Err(problems) = read("good.toml", text) {
            panic!("{}", problems.lines());
        }
    }
}

#[test]
fn mistakes_of_the_text_are_found() {
    let mut found = Found::default();
    let f = &mut found;
    f.expect(SIDE, &[("nic0 = 0", "nic0 = = 0")], K::Syntax, "nic0 = = 0");
    f.expect(
        SIDE,
        &[("slices = 1", "slcies = 1")],
        K::UnknownKey,
        "slcies",
    );
    f.expect(SIDE, &[("profile =", "profil =")], K::UnknownKey, "profil");
    f.expect(
        SIDE,
        &[("b = \"r1-0:0\" ", "b = \"r1-0:0\", speed = 3 ")],
        K::UnknownKey,
        "speed",
    );
    f.expect(SIDE, &[("name = \"side\"\n", "")], K::MissingKey, "");
    f.expect(
        SIDE,
        &[("{ a = \"nic0:0\", ", "{ ")],
        K::MissingKey,
        "b = \"r1-0:0\"",
    );
    f.expect(
        SIDE,
        &[("slices = 1", "slices = 5")],
        K::BadValue,
        "slices = 5",
    );
    f.expect(SIDE, &[("\"live\"", "\"lively\"")], K::BadValue, "lively");
    f.expect(
        SIDE,
        &[("\"live\"", "\"live\"\nlane_rate = 6.3")],
        K::BadValue,
        "6.3",
    );
    f.expect(
        SIDE,
        &[("\"live\"", "\"live\"\ndilation = 9")],
        K::BadValue,
        "dilation",
    );
    f.expect(
        SIDE,
        &[("\"live\"", "\"live\"\noutstanding = 0")],
        K::BadValue,
        "outstanding",
    );
    f.expect(SIDE, &[("\"nic0:0\"", "\"nic0\"")], K::BadValue, "\"nic0\"");
    f.expect(SIDE, &[("\"side\"", "\"si de\"")], K::BadValue, "si de");
    // Words that commands for a lab understand otherwise.
    for word in ["all", "3"] {
        let (number, cable) = (format!("{word} = 3"), format!("\"{word}:0\""));
        f.expect(
            SIDE,
            &[("nic3 = 3", &number), ("\"nic3:0\"", &cable)],
            K::BadValue,
            &number,
        );
    }
    f.expect(
        SIDE,
        &[("nic0 = 0", "nic0 = \"zero\"")],
        K::BadValue,
        "zero",
    );
    f.expect(CLOS, &[("\"0-31\"", "\"0-64\"")], K::BadValue, "0-64");
    let cable = "b = \"r1-0:0\", swizzle = [0, 0, 1] ";
    f.expect(SIDE, &[("b = \"r1-0:0\" ", cable)], K::BadValue, "swizzle");
    f.expect(
        SIDE,
        &[("nic1 = 1", "nic0 = 1")],
        K::DuplicateName,
        "nic0 = 1",
    );
    f.expect(
        SIDE,
        &[("name = \"r1-1\"", "name = \"r1-0\"")],
        K::DuplicateName,
        "r1-0",
    );
    f.expect(
        SIDE,
        &[("name = \"r1-1\"", "name = \"nic0\"")],
        K::DuplicateName,
        "nic0",
    );
    f.expect(
        CLOS,
        &[("name = \"r2-0b\"", "name = \"r2-0a\"")],
        K::DuplicateName,
        "r2-0a",
    );
    insta::assert_snapshot!(found.0);
}

#[test]
fn mistakes_of_the_structure_are_found() {
    let mut found = Found::default();
    let f = &mut found;
    f.expect(
        SIDE,
        &[("nic1 = 1", "nic1 = 0")],
        K::DuplicateNumber,
        "nic1 = 0",
    );
    f.expect(
        SIDE,
        &[("nic1 = 1", "nic1 = 32768")],
        K::NumberOutOfRange,
        "nic1",
    );
    f.expect(
        SIDE,
        &[("\"nic1:0\"", "\"nic9:0\"")],
        K::UnknownNode,
        "nic9",
    );
    f.expect(
        SIDE,
        &[("\"r1-0:1\"", "\"r1-0:64\"")],
        K::PortOutOfRange,
        "r1-0:64",
    );
    f.expect(
        SIDE,
        &[("\"r1-0:1\"", "\"r1-0:300\"")],
        K::PortOutOfRange,
        "r1-0:300",
    );
    f.expect(
        SIDE,
        &[("\"nic1:0\"", "\"nic1:1\"")],
        K::PortOutOfRange,
        "nic1:1",
    );
    f.expect(
        SIDE,
        &[("\"r1-0:1\"", "\"r1-0:0\"")],
        K::PortUsedTwice,
        "nic1:0",
    );
    f.expect(CLOS, &[("\"32-63\"", "\"31-63\"")], K::PortLeak, "r2-0b");
    f.expect(
        CLOS,
        &[("\"32-63\"", "\"33-63\"")],
        K::PortWithoutRouter,
        "r2-0:32",
    );
    f.expect(
        SIDE,
        &[
            (
                "{ a = \"nic1:0\", b = \"r1-0:1\" }",
                "{ a = \"nic1:0\", b = \"r1-0:40\" }",
            ),
            ("processors = \"0-1\"", "processors = \"0\""),
        ],
        K::BadSubtree,
        "r1-0:40",
    );
    f.expect(
        CLOS,
        &[("\"nic3:0\", b = \"r1-1:1\"", "\"nic3:0\", b = \"r2-0:2\"")],
        K::BadLink,
        "nic3",
    );
    f.expect(
        CLOS,
        &[("rank = 2\nports = \"0-31\"", "rank = 3\nports = \"0-31\"")],
        K::BadLink,
        "r2-0:0",
    );
    f.expect(
        SIDE,
        &[(
            "{ a = \"r1-0:33\", b = \"r1-1:33\" }",
            "{ a = \"r1-0:33\", b = \"r1-0:34\" }",
        )],
        K::BadLink,
        "r1-0:34",
    );
    f.expect(
        SIDE,
        &[
            ("  { a = \"nic2:0\", b = \"r1-1:0\" },\n", ""),
            ("\"nic3:0\", b = \"r1-1:1\"", "\"nic3:0\", b = \"nic2:0\""),
        ],
        K::BadLink,
        "nic2:0",
    );
    f.expect(
        SIDE,
        &[("slices = 1", "slices = 2")],
        K::SliceInconsistent,
        "nic0 = 0",
    );
    f.expect(
        SIDE,
        &[("  { a = \"nic3:0\", b = \"r1-1:1\" },\n", "")],
        K::SliceInconsistent,
        "nic3 = 3",
    );
    let second = "processors = \"2-3\"\nslice = 1";
    let two = ("slices = 1", "slices = 2");
    f.expect(
        SIDE,
        &[two, ("processors = \"2-3\"", second)],
        K::SliceInconsistent,
        "nic2:0",
    );
    f.expect(
        SIDE,
        &[("processors = \"2-3\"", second)],
        K::SliceInconsistent,
        "r1-1",
    );
    f.expect(
        SIDE,
        &[("processors = \"2-3\"", "processors = \"2-4\"")],
        K::BadSubtree,
        "2-4",
    );
    f.expect(
        SIDE,
        &[("processors = \"2-3\"", "processors = \"0-3\"")],
        K::BadSubtree,
        "r1-0:32",
    );
    let slow = ("b = \"r1-0:1\" ", "b = \"r1-0:1\", rate = 3.125 ");
    f.expect(SIDE, &[slow], K::UnequalRates, "3.125");
    insta::assert_snapshot!(found.0);
}

/// Something to put behind a router's subtree.
fn with<'t>(router: &'t str, registers: &'t str) -> (&'t str, String) {
    (router, format!("{router}\n{registers}\n"))
}

#[test]
fn mistakes_of_the_registers_are_found() {
    let mut found = Found::default();
    let mut expect = |text: &str, (from, to): (&str, String), kind, at: &str| {
        found.expect(text, &[(from, &to)], kind, at);
    };
    let (r0, r1) = ("processors = \"0-1\"", "processors = \"2-3\"");
    let a = "ports = \"0-31\"\nprocessors = \"0-3\"";
    // Entries.
    let entry = |entry: u8, to: &str, ports: &str| {
        format!("table = [{{ entry = {entry}, processors = \"{to}\", ports = \"{ports}\" }}]")
    };
    expect(
        SIDE,
        with(r0, &entry(0, "2-3", "32-34")),
        K::DeadPort,
        "32-34",
    );
    expect(
        SIDE,
        with(r0, &entry(1, "2-3", "1")),
        K::UpDownViolation,
        "entry = 1",
    );
    expect(
        SIDE,
        with(r0, &entry(9, "2-3", "32")),
        K::BadValue,
        "entry = 9",
    );
    expect(
        CLOS,
        with(a, &entry(0, "all", "33")),
        K::PortLeak,
        "entry = 0",
    );
    expect(CLOS, with(a, "exit_mask = \"0-40\""), K::PortLeak, "r2-0a");
    expect(SIDE, with(r0, "port_map = { 1 = 2 }"), K::DeadPort, "r1-0");
    expect(
        SIDE,
        with(r0, "port_map = { 1 = 32 }"),
        K::UpDownViolation,
        "r1-0",
    );
    expect(CLOS, with(a, "port_map = { 1 = 33 }"), K::PortLeak, "r2-0a");
    expect(
        SIDE,
        with(r0, "port_map = { 64 = 1 }"),
        K::BadValue,
        "64 = 1",
    );
    expect(
        SIDE,
        with(r0, "port_map = \"none\""),
        K::BadValue,
        "\"none\"",
    );
    // Ways that do not end, or end wrongly.
    expect(SIDE, with(r0, &entry(0, "2-3", "")), K::Unreachable, "r1-0");
    expect(
        SIDE,
        with(r0, "port_map = { 1 = \"none\" }"),
        K::Unreachable,
        "r1-0",
    );
    expect(
        SIDE,
        with(r0, "port_map = { 0 = 1, 1 = 0 }"),
        K::Unreachable,
        "r1-0",
    );
    expect(
        SIDE,
        with(r0, "exit_mask = \"0-32\""),
        K::Unreachable,
        "r1-0",
    );
    expect(
        SIDE,
        with(r0, "root_detect = \"0\""),
        K::Unreachable,
        "r1-0",
    );
    expect(
        CLOS,
        with(a, "port_map = { 0 = 1, 1 = 0 }"),
        K::UpDownViolation,
        "r1-",
    );
    // A circle: r1-1 sends packets for 2-3 back to where they came from.
    expect(
        SIDE,
        with(
            r1,
            &format!("root_detect = \"8-9\"\n{}", entry(1, "2-3", "32-33")),
        ),
        K::CyclicDependency,
        "entry = 1",
    );
    insta::assert_snapshot!(found.0);
}

#[test]
fn nine_uplinks_cannot_be_hashed_on() {
    let mut links = String::from(
        "  { a = \"nic0:0\", b = \"r1-0:0\" },\n  { a = \"nic1:0\", b = \"r1-1:0\" },\n",
    );
    for n in 0..9 {
        links.push_str(&format!(
            "  {{ a = \"r1-0:{0}\", b = \"r1-1:{0}\" }},\n",
            32 + n
        ));
    }
    let text = |extra: &str| {
        format!(
            "name = \"nine\"\n[processors]\nnic0 = 0\nnic1 = 1\n[[chip]]\nname = \"r1-0\"\nrank = 1\n\
             processors = \"0\"\n{extra}[[chip]]\nname = \"r1-1\"\nrank = 1\nprocessors = \"1\"\n\
             {extra_1}[wiring]\nlinks = [\n{links}]\n",
            extra_1 = extra.replace("\"1\"", "\"0\""),
        )
    };
    let mut found = Found::default();
    found.expect(&text(""), &[], K::UnsupportedPortCount, "r1-0");
    // An entry of one's own puts it right.
    let entry = "table = [{ entry = 0, processors = \"1\", ports = \"32-39\" }]\n";
    if let Err(problems) = read("nine.toml", &text(entry)) {
        panic!("{}", problems.lines());
    }
}

#[test]
fn nine_peers_do_not_fit_into_the_table() {
    let mut text = String::from("name = \"ten\"\n[processors]\n");
    for n in 0..10 {
        text.push_str(&format!("nic{n} = {n}\n"));
    }
    for n in 0..10 {
        text.push_str(&format!(
            "[[chip]]\nname = \"r{n}\"\nrank = 1\nprocessors = \"{n}\"\n"
        ));
    }
    text.push_str("[wiring]\nlinks = [\n");
    for n in 0..10 {
        text.push_str(&format!("  {{ a = \"nic{n}:0\", b = \"r{n}:0\" }},\n"));
        for m in 0..n {
            text.push_str(&format!(
                "  {{ a = \"r{n}:{}\", b = \"r{m}:{}\" }},\n",
                32 + m,
                32 + n
            ));
        }
    }
    text.push_str("]\n");
    Found::default().expect(&text, &[], K::TooManyPeers, "r0");
}

#[test]
fn many_mistakes_are_reported_at_once_in_the_order_of_the_text() {
    let bad = SIDE
        .replace("slices = 1", "slcies = 1")
        .replace("nic1 = 1", "nic1 = 0")
        .replace("\"r1-0:33\"", "\"r1-0:99\"")
        .replace("\"nic3:0\"", "\"nic7:0\"");
    let problems = read("bad.toml", &bad).expect_err("four mistakes");
    let kinds: Vec<K> = problems.mistakes().map(|m| m.kind).collect();
    assert_eq!(
        kinds,
        [
            K::UnknownKey,
            K::DuplicateNumber,
            K::UnknownNode,
            K::PortOutOfRange
        ]
    );
    assert_eq!(problems.to_string(), "bad.toml: 4 mistakes");
    assert_eq!(problems.line_and_column(0), (2, 1));
    assert_eq!(problems.line_and_column(3), (30, 3));
}

#[test]
fn a_faulty_cable_needs_an_entry_that_avoids_it() {
    // The cable from r1-1 to r2-0b is out: r2-0b does not reach processors 2 and 3 any more, and
    // r1-0 must not send packets for them there (paper, sections 5.1 and 7.7).
    let broken = CLOS.replace("  { a = \"r1-1:33\", b = \"r2-0:33\" },\n", "");
    let problems = read("broken.toml", &broken).expect_err("a fault in the way");
    let message = &problems.mistakes().next().expect("a mistake").message;
    assert!(
        message.contains("r2-0b has it below, but no link down to it"),
        "{message}"
    );
    assert!(message.contains("by r1-0:33"), "{message}");
    let entry =
        "processors = \"0-1\"\n[[chip.table]]\nentry = 1\nprocessors = \"2-3\"\nports = \"32\"";
    let avoided = broken.replacen("processors = \"0-1\"", entry, 1);
    if let Err(problems) = read("avoided.toml", &avoided) {
        panic!("{}", problems.lines());
    }
}

#[test]
fn any_text_is_read_without_panic() {
    let mut rng = crate::rng::Rng::new(1, 2);
    for _ in 0..3_000 {
        let mut bytes = if rng.chance(1, 2) { SIDE } else { CLOS }
            .as_bytes()
            .to_vec();
        for _ in 0..=rng.below(4) {
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(3) {
                0 => bytes[at] = b" 0\"=[]{}\n.-9z\xc3"[rng.below(14) as usize],
                1 => drop(bytes.drain(at..(at + 5).min(bytes.len()))),
                _ => {
                    let piece = bytes[at..(at + 12).min(bytes.len())].to_vec();
                    let to = rng.below(bytes.len() as u64) as usize;
                    bytes.splice(to..to, piece);
                }
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Err(problems) = read("any.toml", &text) {
            assert!(problems.mistakes().len() > 0, "{text}");
            assert!(!problems.lines().is_empty());
        }
    }
}
