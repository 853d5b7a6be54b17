//! One bad description per mistake: it must be found, located, and have a remedy.

use crate::topology::read;
use phitwire::net::MistakeKind as K;

/// Two rank-1 subtrees of two processors each, connected by two sidelinks.
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

/// The processors of the network above, below two rank-2 virtual routers of one chip.
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

/// Reads `text` with `edits` applied. There must be a mistake of this kind with a remedy, on the
/// line that contains `at`. Returns all mistakes, for a snapshot.
fn found(text: &str, edits: &[(String, String)], kind: &str, at: &str) -> String {
    let mut bad = text.to_owned();
    for (from, to) in edits {
        assert_eq!(bad.matches(from).count(), 1, "`{from}` does not occur once");
        bad = bad.replacen(from, to, 1);
    }
    let problems = read("bad.toml", &bad).expect_err(&format!("{kind}: {edits:?}"));
    let lines = problems.lines();
    let line_of = |index| {
        let (line, column) = problems.line_and_column(index);
        let there = bad.lines().nth(line - 1).unwrap_or("");
        assert!(column <= there.chars().count() + 1, "{edits:?}");
        there
    };
    let mistake = (0..)
        .zip(problems.mistakes())
        .find(|(i, m)| format!("{:?}", m.kind) == kind && line_of(*i).contains(at))
        .map(|(_, mistake)| mistake)
        .unwrap_or_else(|| panic!("{edits:?}: no {kind} at `{at}`:\n{lines}"));
    assert!(!mistake.help.is_empty(), "{edits:?}: {kind} has no remedy");
    format!("--- {edits:?}\n{lines}\n")
}

/// Makes every mistake of a table. A line `== TEXT` selects the description, and `== TEXT: WORDS`
/// also the words after which registers are inserted. Any other line is `EDIT & EDIT | KIND at
/// LINE`, where an edit is `FROM => TO` or registers; `\n` is a new line.
fn found_by(table: &str) -> String {
    let (mut all, mut text, mut edited) = (String::new(), SIDE, None);
    for row in table
        .replace("\\\n", "")
        .lines()
        .filter(|row| !row.is_empty())
    {
        if let Some(section) = row.strip_prefix("== ") {
            let (name, words) = section.split_once(": ").unwrap_or((section, ""));
            text = if name == "SIDE" { SIDE } else { CLOS };
            edited = (!words.is_empty()).then(|| words.replace("\\n", "\n"));
            continue;
        }
        let edit = |edit: &str| match &edited {
            Some(words) => (words.clone(), format!("{words}\n{edit}\n")),
            None => {
                let (from, to) = edit.split_once(" => ").expect("an edit");
                (from.to_owned(), to.to_owned())
            }
        };
        let (edits, mistake) = row.split_once(" | ").expect("edits and a mistake");
        let edits = edits.replace("\\n", "\n");
        let edits: Vec<_> = edits.split(" & ").map(edit).collect();
        let (kind, at) = mistake.split_once(" at").expect("a kind and a line");
        all += &found(text, &edits, kind, at.trim_start());
    }
    all
}

#[test]
fn the_descriptions_are_right_before_they_are_spoilt() {
    for text in [SIDE, CLOS] {
        if let Err(problems) = read("good.toml", text) {
            panic!("{}", problems.lines());
        }
    }
}

/// Lab commands would misread nodes named `all` or `3`.
#[test]
fn mistakes_of_the_text_are_found() {
    insta::assert_snapshot!(found_by(
        r#"
== SIDE
nic0 = 0 => nic0 = = 0 | Syntax at nic0 = = 0
slices = 1 => slcies = 1 | UnknownKey at slcies
profile = => profil = | UnknownKey at profil
b = "r1-0:0"  => b = "r1-0:0", speed = 3  | UnknownKey at speed
name = "side"\n =>  | MissingKey at
{ a = "nic0:0",  => {  | MissingKey at b = "r1-0:0"
slices = 1 => slices = 5 | BadValue at slices = 5
"live" => "lively" | BadValue at lively
"live" => "live"\nlane_rate = 6.3 | BadValue at 6.3
"live" => "live"\ndilation = 9 | BadValue at dilation
"live" => "live"\noutstanding = 0 | BadValue at outstanding
"nic0:0" => "nic0" | BadValue at "nic0"
"side" => "si de" | BadValue at si de
nic3 = 3 => all = 3 & "nic3:0" => "all:0" | BadValue at all = 3
nic3 = 3 => 3 = 3 & "nic3:0" => "3:0" | BadValue at 3 = 3
nic0 = 0 => nic0 = "zero" | BadValue at zero
== CLOS
"0-31" => "0-64" | BadValue at 0-64
== SIDE
b = "r1-0:0"  => b = "r1-0:0", swizzle = [0, 0, 1]  | BadValue at swizzle
nic1 = 1 => nic0 = 1 | DuplicateName at nic0 = 1
name = "r1-1" => name = "r1-0" | DuplicateName at r1-0
name = "r1-1" => name = "nic0" | DuplicateName at nic0
== CLOS
name = "r2-0b" => name = "r2-0a" | DuplicateName at r2-0a
"#
    ));
}

#[test]
fn mistakes_of_the_structure_are_found() {
    insta::assert_snapshot!(found_by(
        r#"
== SIDE
nic1 = 1 => nic1 = 0 | DuplicateNumber at nic1 = 0
nic1 = 1 => nic1 = 32768 | NumberOutOfRange at nic1
"nic1:0" => "nic9:0" | UnknownNode at nic9
"r1-0:1" => "r1-0:64" | PortOutOfRange at r1-0:64
"r1-0:1" => "r1-0:300" | PortOutOfRange at r1-0:300
"nic1:0" => "nic1:1" | PortOutOfRange at nic1:1
"r1-0:1" => "r1-0:0" | PortUsedTwice at nic1:0
== CLOS
"32-63" => "31-63" | PortLeak at r2-0b
"32-63" => "33-63" | PortWithoutRouter at r2-0:32
== SIDE
{ a = "nic1:0", b = "r1-0:1" } => { a = "nic1:0", b = "r1-0:40" } \
& processors = "0-1" => processors = "0" | BadSubtree at r1-0:40
== CLOS
"nic3:0", b = "r1-1:1" => "nic3:0", b = "r2-0:2" | BadLink at nic3
rank = 2\nports = "0-31" => rank = 3\nports = "0-31" | BadLink at r2-0:0
== SIDE
{ a = "r1-0:33", b = "r1-1:33" } => { a = "r1-0:33", b = "r1-0:34" } | BadLink at r1-0:34
  { a = "nic2:0", b = "r1-1:0" },\n =>  \
& "nic3:0", b = "r1-1:1" => "nic3:0", b = "nic2:0" | BadLink at nic2:0
slices = 1 => slices = 2 | SliceInconsistent at nic0 = 0
  { a = "nic3:0", b = "r1-1:1" },\n =>  | SliceInconsistent at nic3 = 3
slices = 1 => slices = 2 \
& processors = "2-3" => processors = "2-3"\nslice = 1 | SliceInconsistent at nic2:0
processors = "2-3" => processors = "2-3"\nslice = 1 | SliceInconsistent at r1-1
processors = "2-3" => processors = "2-4" | BadSubtree at 2-4
processors = "2-3" => processors = "0-3" | BadSubtree at r1-0:32
b = "r1-0:1"  => b = "r1-0:1", rate = 3.125  | UnequalRates at 3.125
"#
    ));
}

/// Mistakes in entries, then paths that do not end or end wrongly, and finally a cycle: r1-1 sends
/// packets for 2-3 back to their last router.
#[test]
fn mistakes_of_the_registers_are_found() {
    insta::assert_snapshot!(found_by(
        r#"
== SIDE: processors = "0-1"
table = [{ entry = 0, processors = "2-3", ports = "32-34" }] | DeadPort at 32-34
table = [{ entry = 1, processors = "2-3", ports = "1" }] | UpDownViolation at entry = 1
table = [{ entry = 9, processors = "2-3", ports = "32" }] | BadValue at entry = 9
== CLOS: ports = "0-31"\nprocessors = "0-3"
table = [{ entry = 0, processors = "all", ports = "33" }] | PortLeak at entry = 0
exit_mask = "0-40" | PortLeak at r2-0a
== SIDE: processors = "0-1"
port_map = { 1 = 2 } | DeadPort at r1-0
port_map = { 1 = 32 } | UpDownViolation at r1-0
== CLOS: ports = "0-31"\nprocessors = "0-3"
port_map = { 1 = 33 } | PortLeak at r2-0a
== SIDE: processors = "0-1"
port_map = { 64 = 1 } | BadValue at 64 = 1
port_map = "none" | BadValue at "none"
table = [{ entry = 0, processors = "2-3", ports = "" }] | Unreachable at r1-0
port_map = { 1 = "none" } | Unreachable at r1-0
port_map = { 0 = 1, 1 = 0 } | Unreachable at r1-0
exit_mask = "0-32" | Unreachable at r1-0
root_detect = "0" | Unreachable at r1-0
== CLOS: ports = "0-31"\nprocessors = "0-3"
port_map = { 0 = 1, 1 = 0 } | UpDownViolation at r1-
== SIDE: processors = "2-3"
root_detect = "8-9"\ntable = [{ entry = 1, processors = "2-3", ports = "32-33" }] \
| CyclicDependency at entry = 1
"#
    ));
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
            "name = \"nine\"\n[processors]\nnic0 = 0\nnic1 = 1\n[[chip]]\nname = \"r1-0\"\nrank = \
             1\n\
             processors = \"0\"\n{extra}[[chip]]\nname = \"r1-1\"\nrank = 1\nprocessors = \"1\"\n\
             {extra_1}[wiring]\nlinks = [\n{links}]\n",
            extra_1 = extra.replace("\"1\"", "\"0\""),
        )
    };
    found(&text(""), &[], "UnsupportedPortCount", "r1-0");
    // An explicit entry fixes it.
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
    found(&text, &[], "TooManyPeers", "r0");
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
    // The cable from r1-1 to r2-0b is removed: r2-0b no longer reaches processors 2 and 3, so r1-0
    // must not send packets for them there (BlackWidow sec. 5.1 and 7.7).
    let broken = CLOS.replace("  { a = \"r1-1:33\", b = \"r2-0:33\" },\n", "");
    let problems = read("broken.toml", &broken).expect_err("the fault breaks a route");
    let message = &problems.mistakes().next().expect("a mistake").message;
    assert!(
        message.contains("r2-0b is above it but has no link down to it"),
        "{message}"
    );
    assert!(message.contains("via r1-0:33"), "{message}");
    let entry =
        "processors = \"0-1\"\n[[chip.table]]\nentry = 1\nprocessors = \"2-3\"\nports = \"32\"";
    let avoided = broken.replacen("processors = \"0-1\"", entry, 1);
    if let Err(problems) = read("avoided.toml", &avoided) {
        panic!("{}", problems.lines());
    }
}

#[test]
fn any_text_is_read_without_panic() {
    let mut rng = phitwire::rng::Rng::new(1, 2);
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
