//! Untrusted descriptions: whatever the file is, the reply is quick, of bounded length, and has no
//! terminal control sequences.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

/// Time limit of a reply: two seconds, and more in unoptimised builds.
const BOUND: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 2 });
/// Size limit of a reply: fifty mistakes with their excerpts.
const MOST_BYTES: usize = 100_000;

fn phitwire(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire"));
    command
        .args(words)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// The output of a command that has to end within the bound.
fn answer(command: &mut Command) -> Output {
    let child = command.spawn().expect("the command runs");
    let id = Pid::from_raw(child.id() as i32);
    let (sender, receiver) = mpsc::channel();
    // Ignore a send error: the receiver may have timed out.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(BOUND) else {
        kill(id, Signal::SIGKILL).expect("it is our child");
        panic!("no answer within {BOUND:?}: {command:?}");
    };
    let output = output.expect("it can be waited for");
    let bytes = output.stdout.len() + output.stderr.len();
    assert!(bytes <= MOST_BYTES, "{bytes} bytes of output: {command:?}");
    let shown = text_of(&output);
    let unseen = |letter: char| letter.is_control() && letter != '\n';
    assert_eq!(shown.find(unseen), None, "{shown:?}");
    assert!(!shown.contains("panicked"), "{shown}");
    output
}

fn text_of(output: &Output) -> String {
    let bytes = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(bytes).expect("answers are UTF-8")
}

struct Scratch(TempDir);

impl Scratch {
    fn new() -> Self {
        Self(TempDir::new().expect("a scratch directory"))
    }

    /// A path as a word of a command.
    fn path(&self, name: &str) -> String {
        let path = self.0.path().join(name);
        path.to_str().expect("a plain name").to_owned()
    }

    fn file(&self, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join("strange.toml");
        fs::write(&path, bytes).expect("it can be written");
        path
    }

    /// Output of both forms of `check` for a file; both must reject it.
    fn refused(&self, bytes: &[u8]) -> String {
        let file = self.file(bytes);
        let lines = check(&file, &["--lines"]);
        assert_eq!(lines.status.code(), Some(1), "{}", text_of(&lines));
        let drawn = check(&file, &[]);
        assert_eq!(drawn.status.code(), Some(1), "{}", text_of(&drawn));
        text_of(&lines) + &text_of(&drawn)
    }
}

fn check(file: &Path, more: &[&str]) -> Output {
    let file = file.to_str().expect("a plain name");
    let words = [&["topology", "check", file], more].concat();
    answer(&mut phitwire(&words))
}

#[test]
fn more_processors_than_numbers_are_counted_and_refused() {
    let scratch = Scratch::new();
    let mut text = String::from("name = \"large\"\n[processors]\n");
    for number in 0..132_000 {
        text.push_str(&format!("nic{number} = {number}\n"));
    }
    text.push_str("[[chip]]\nname = \"r\"\nrank = 1\nprocessors = \"all\"\n[wiring]\nlinks = [\n");
    for number in 0..132_000 {
        let port = number % 64;
        text.push_str(&format!(
            "  {{ a = \"nic{number}:0\", b = \"r:{port}\" }},\n"
        ));
    }
    text.push_str("]\n");
    let error = scratch.refused(text.as_bytes());
    let wanted = "132000 processors exceed the limit of 32768 per network";
    assert!(error.contains(wanted), "{error}");
    assert!(error.len() < 2_000, "one mistake: {error}");
}

#[test]
fn one_line_of_a_hundred_megabytes_is_refused_by_its_size() {
    let scratch = Scratch::new();
    let mut text = b"name = \"".to_vec();
    text.resize(100_000_000, b'x');
    let error = scratch.refused(&text);
    let size = "too large: 100000000 bytes, at most 8388608";
    let error = error.replace('│', " ");
    let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(error.contains(size), "{error}");
}

#[test]
fn a_description_may_have_so_many_bytes_and_not_one_more() {
    let scratch = Scratch::new();
    let mut text = String::from(include_str!("../../../netns-scripts/topologies/pair.toml"));
    text.push('#');
    text.push_str(&"x".repeat(8_388_608 - text.len()));
    let exact = check(&scratch.file(text.as_bytes()), &[]);
    assert!(exact.status.success(), "{}", text_of(&exact));
    text.push('x');
    let error = scratch.refused(text.as_bytes());
    let size = "too large: 8388609 bytes, at most 8388608";
    assert!(error.contains(size), "{error}");
}

#[test]
fn only_regular_files_are_read() {
    let scratch = Scratch::new();
    let (pipe, directory) = (scratch.path("pipe"), scratch.path(""));
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    for (file, what) in [
        ("/dev/zero", "a device"),
        ("/dev/urandom", "a device"),
        (&pipe[..], "a named pipe"),
        (&directory[..], "a directory"),
    ] {
        for words in [
            "topology check FILE",
            "topology show FILE",
            "topology plan FILE",
            "sim FILE",
            "run --topology FILE --node nic0 --lab describe-x",
        ] {
            let words = words.replace("FILE", file);
            let words: Vec<&str> = words.split(' ').collect();
            let output = answer(&mut phitwire(&words));
            let error = text_of(&output).replace("\n  │ ", " ");
            assert_eq!(output.status.code(), Some(1), "{words:?} {error}");
            assert!(error.contains(what), "{words:?} {error}");
            assert!(error.contains("8388608 bytes"), "{words:?} {error}");
        }
    }
}

#[test]
fn standard_input_is_read_as_far_as_a_description_goes() {
    let zeros = File::open("/dev/zero").expect("there is /dev/zero");
    let output = answer(phitwire(&["topology", "check", "-"]).stdin(zeros));
    assert!(text_of(&output).contains("is too large: more than 8388608 bytes"));
    let pair = File::open("../netns-scripts/topologies/pair.toml").expect("a ready one");
    let output = answer(phitwire(&["topology", "check", "/dev/stdin"]).stdin(pair));
    assert!(output.status.success(), "{}", text_of(&output));
}

#[test]
fn nothing_of_a_value_is_obeyed_by_a_terminal() {
    let scratch = Scratch::new();
    let evil = "\\u001b]0;owned\\u0007\\u001b[2J\\u202etxt\\u0000\\u009b31m";
    for text in [
        format!("name = \"{evil}\"\n"),
        format!("family = \"{evil}\"\n"),
        format!("name = \"x\"\n\"{evil}\" = 1\n[processors]\n\"{evil}\" = 0\n"),
        format!("name = \"x\"\n[[chip]]\nname = \"{evil}\"\nports = \"{evil}\"\n"),
        format!("[wiring]\nlinks = [{{ a = \"{evil}:0\", b = \"{evil}\" }}]\n"),
        format!("family = \"aries\"\nname = \"{evil}\"\n[dragonfly]\nabsent = [\"{evil}\"]\n"),
        // Control characters in comments and values: TOML forbids some and allows others.
        String::from("name = \"\u{1b}[31m\u{202e}\u{9b}2J\" # \u{1b}[2J\u{200f}\n"),
        String::from("# \u{202e}\u{2066}\nx = \"\u{202e}\u{feff}\"\n"),
    ] {
        let error = scratch.refused(text.as_bytes());
        let unseen = ['\u{202e}', '\u{2066}', '\u{200f}', '\u{feff}', '\u{1b}'];
        assert!(!error.contains(unseen), "{error:?}");
    }
    let name = "topology generate blackwidow --processors 8 --name \u{1b}[31m";
    let name: Vec<&str> = name.split(' ').collect();
    // Control characters in names of files, nodes and topologies, and in arguments that clap
    // quotes.
    let file = scratch.0.path().join("\u{1b}[31m\u{7}.toml");
    fs::write(&file, "=").expect("it can be written");
    let file = file.to_str().expect("UTF-8");
    for words in [
        &["topology", "check", file][..],
        &["topology", "check", "--lines", file],
        &["topology", "check", "/nowhere/\u{1b}[31m"],
        &["sim", "\u{1b}[31m\u{9b}"],
        &["sim", "pair", "--netem", "loss \u{1b}[31m"],
        &["sim", "pair", "--traffic", "\u{1b}[31m"],
        &["sim", "pair", "--load", "\u{1b}[31m"],
        &["\u{1b}[31m\u{7}"],
        &name[..],
    ] {
        let output = answer(&mut phitwire(words));
        assert!(!output.status.success(), "{words:?}");
    }
}

#[test]
fn bytes_that_are_no_text_are_placed() {
    let scratch = Scratch::new();
    let error = scratch.refused(b"name = \"pair\"\nx = \"\xff\xfe\"\n");
    assert!(error.contains(":2:6: invalid UTF-8: byte 0xff"), "{error}");
}

#[test]
fn fifty_mistakes_are_listed_and_the_others_counted() {
    let scratch = Scratch::new();
    for (count, more) in [(50, None), (51, Some(1)), (200_000, Some(199_950))] {
        // The name is valid; the three missing sections are one mistake each.
        let mut text = String::from("name = \"x\"\n");
        for key in 0..count - 3 {
            text.push_str(&format!("wrong{key} = 1\n"));
        }
        let file = scratch.file(text.as_bytes());
        let lines = text_of(&check(&file, &["--lines"]));
        let rest = more.map_or(String::new(), |more| format!("and {more} more\n"));
        assert_eq!(lines.lines().count(), 50 + usize::from(more.is_some()));
        assert!(lines.ends_with(&rest), "{rest} {lines}");
        let drawn = text_of(&check(&file, &[]));
        assert!(drawn.contains(&format!(": {count} mistakes")), "{drawn}");
        assert!(drawn.contains(rest.trim()), "{drawn}");
    }
}

/// Texts of several megabytes that are expensive to parse.
fn hard_texts() -> Vec<(&'static str, String)> {
    const N: usize = 8_000_000;
    let repeated = |part: &str| part.repeat(N / part.len());
    let numbered = |part: &dyn Fn(usize) -> String| {
        let (mut text, mut parts) = (String::new(), (0..).map(part));
        while text.len() < N - 100 {
            text.extend(parts.next());
        }
        text
    };
    let pair = "name = \"p\"\n[processors]\nnic0 = 0\nnic1 = 1\n[[chip]]\nname = \"r\"\nrank = 1\nprocessors = \"0-1\"\n";
    let chip = "name = \"x\"\n[[chip]]\nname = \"r\"\n";
    let links = |links| format!("{pair}[wiring]\nlinks = [{links}]\n");
    let aries = |groups, key: &str, values| {
        format!(
            "family = \"aries\"\nname = \"x\"\n[dragonfly]\ngroups = {groups}\nchassis = 6\n\
             blades = 16\n{key} = [{values}]\n"
        )
    };
    let removed = "[wiring]\nremove";
    let every_port = numbered(&|i| {
        let (group, chassis, blade) = (i / 3840 % 241, i / 640 % 6, i / 40 % 16);
        format!("\"g{group}-c{chassis}s{blade}:{}\",", i % 40)
    });
    vec![
        ("numbers", format!("a = [{}]\n", repeated("1,"))),
        ("keys", numbered(&|i| format!("k{i}=1\n"))),
        ("chips", repeated("[[chip]]\n")),
        ("tables", numbered(&|i| format!("[a{i}.b.c.d]\n"))),
        ("empty tables", format!("a = [{}]\n", repeated("{},"))),
        ("open arrays", format!("a = {}\n", repeated("["))),
        ("open tables", format!("a = {}\n", repeated("{a="))),
        ("open headers", repeated("[")),
        ("no keys", repeated("=\n")),
        ("open quotes", repeated("\"\n")),
        ("the same key", repeated("a=1\n")),
        ("a dotted key", format!("a{}=1\n", repeated(".a"))),
        ("a long name", format!("name = \"{}\"\n", repeated("x"))),
        ("a long key", format!("{} = 1\n", repeated("x"))),
        ("a long number", format!("slices = {}\n", repeated("9"))),
        ("empty lines", repeated("\n")),
        ("a comment", format!("#{}\n", repeated("x"))),
        (
            "letters of two bytes",
            format!("name = \"{}\"\n", repeated("é")),
        ),
        (
            "unseen letters",
            format!("name = \"{}\"\n", repeated("\u{202e}")),
        ),
        ("ports", format!("{pair}ports = \"{}\"\n", repeated("1,"))),
        (
            "routers of a chip",
            format!("{chip}{}", repeated("[[chip.router]]\nports = \"\"\n")),
        ),
        (
            "table entries",
            format!("{pair}{}", repeated("[[chip.table]]\nentry = 1\n")),
        ),
        ("links to nobody", links(repeated("{a=\"X:0\",b=\"Y:0\"},"))),
        (
            "one link often",
            links(repeated("{a=\"nic0:0\",b=\"r:0\"},")),
        ),
        ("absent", aries(9, "absent", repeated("\"g0-c0s0\","))),
        (
            "remove",
            aries(241, removed, repeated("\"g240-c5s15:39\",")),
        ),
        (
            "everything removed by name",
            aries(241, removed, every_port),
        ),
    ]
}

#[test]
fn eight_megabytes_of_anything_are_answered_at_once() {
    let texts = hard_texts();
    let (some, others) = texts.split_at(texts.len() / 2);
    std::thread::scope(|scope| {
        for texts in [some, others] {
            scope.spawn(|| texts.iter().for_each(answered_at_once));
        }
    });
}

fn answered_at_once((what, text): &(&str, String)) {
    let scratch = Scratch::new();
    let began = Instant::now();
    let file = scratch.file(text.as_bytes());
    for form in [&["--lines"][..], &[]] {
        let output = check(&file, form);
        let error = text_of(&output);
        assert_eq!(output.status.code(), Some(1), "{what}: {error}");
    }
    eprintln!("{what}: {:?} for both", began.elapsed());
}

#[test]
fn the_largest_networks_are_answered_at_once() {
    let scratch = Scratch::new();
    let largest = "family = \"aries\"\nname = \"m\"\n[dragonfly]\ngroups = 241\nchassis = 6\nblades = 16\nnics = 4\n";
    let output = check(&scratch.file(largest.as_bytes()), &[]);
    let printed = text_of(&output);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("not every route was checked"), "{printed}");
    let generate = "topology generate blackwidow --processors 32768";
    let generate: Vec<&str> = generate.split(' ').collect();
    let text = phitwire(&generate)
        .output()
        .expect("the command runs")
        .stdout;
    assert!(text.len() > 5_000_000);
    let output = check(&scratch.file(&text), &[]);
    let printed = text_of(&output);
    assert!(output.status.success(), "{printed}");
    let partly = printed.contains("not every route");
    assert!(!partly, "followed to the end: {printed}");
}

#[test]
fn numbers_of_arguments_are_refused_by_their_limits() {
    let large = "dragonfly --groups 9 --chassis 6 --blades 16 --global-links 65535";
    let most = "4294967295";
    for (words, wanted) in [
        ("blackwidow --processors 132000", "1 to 32768"),
        ("blackwidow --processors MOST", "1 to 32768"),
        ("blackwidow --processors 32 --uplinks MOST", "1 to 64"),
        ("blackwidow --processors 64 --uplinks MOST", "1 to 64"),
        ("blackwidow --processors 4096 --group MOST", ""),
        (
            "blackwidow --processors 8 --paced 1000000001",
            "1..=1000000000",
        ),
        ("blackwidow --processors 8 --metres 201", "1..=200"),
        ("dragonfly --groups 242 --chassis 1 --blades 1", "1 to 241"),
        (large, "1 to 120"),
        ("sim r3-99999999", "1 to 32768"),
        ("sim aries-99999x9x9x9", "neither a file nor the name"),
        ("sim aries-242x1x1x1", "1 to 241"),
        ("sim aries-9x0x2x2", "1 to 6"),
    ] {
        let words = match words.starts_with("sim") {
            true => words.to_owned(),
            false => format!("topology generate {}", words.replace("MOST", most)),
        };
        let words: Vec<&str> = words.split(' ').collect();
        let output = answer(&mut phitwire(&words));
        let error = text_of(&output).replace("\n  │ ", " ");
        assert!(!output.status.success(), "{words:?} {error}");
        assert!(error.contains(wanted), "{words:?} {error}");
    }
}

#[test]
fn slow_input_is_read_to_its_end() {
    let mut child = phitwire(&["topology", "check", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let text = include_bytes!("../../../netns-scripts/topologies/pair.toml");
    for part in text.chunks(64) {
        stdin.write_all(part).expect("it reads");
        stdin.flush().expect("it reads");
    }
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", text_of(&output));
}
