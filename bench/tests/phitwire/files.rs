//! Each command that reads a file refuses unsuitable ones at once and with a short message.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

/// Each command that reads a file, with `FILE` for the file.
const READERS: &[&str] = &[
    "topology check FILE",
    "topology show FILE",
    "topology plan FILE",
    "topology export --format graphml FILE",
    "topology channels FILE",
    "topology import --format graphml FILE",
    "topology import --format booksim-anynet FILE",
    "sim FILE",
    "sim none --config FILE",
    "route FILE nic0 nic1",
    "run --topology FILE --node nic0 --lab files-x",
    "plot FILE",
    "schema top --check FILE",
    "view FILE",
    "report FILE --output OUT",
];
/// Time limit of a command: refusing needs no waiting, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
const MOST_SAID: usize = 100_000;

/// Status and output of a command; panics if it does not end.
fn said(words: &str, file: &Path, out: &Path) -> (Option<i32>, String) {
    let words = words.split(' ').map(|word| match word {
        "FILE" => file.as_os_str().to_owned(),
        "OUT" => out.as_os_str().to_owned(),
        word => word.into(),
    });
    let words: Vec<_> = words.collect();
    let log = out.with_extension("log");
    let output = || Stdio::from(File::options().append(true).open(&log).expect("made below"));
    File::create(&log).expect("there is room");
    let mut child = Command::new(env!("CARGO_BIN_EXE_phitwire"))
        .args(&words)
        .stdin(Stdio::null())
        .stdout(output())
        .stderr(output())
        .spawn()
        .expect("the command runs");
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("it is ours") {
            let text = fs::read(&log).expect("it was made");
            // Join the lines: the report breaks them between any two words.
            let text = String::from_utf8_lossy(&text).replace('│', " ");
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            return (status.code(), text);
        }
        if began.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{words:?} has not ended");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn refused(commands: &[&str], file: &Path, out: &Path, wanted: &str) {
    for words in commands {
        let (status, message) = said(words, file, out);
        let context = format!("{words} of {}: {message:.2000}", file.display());
        assert_eq!(status, Some(1), "{context}");
        assert!(
            message.len() < MOST_SAID,
            "{} bytes by {words}",
            message.len()
        );
        let is_said = wanted.split('|').any(|wanted| message.contains(wanted));
        assert!(is_said, "{wanted}, {context}");
    }
}

#[test]
fn every_command_refuses_non_files_and_oversized_files() {
    let scratch = tempfile::tempdir().expect("a folder");
    let path = |name: &str| scratch.path().join(name);
    let out = path("out.html");
    let made = Command::new("mkfifo").arg(path("pipe")).status();
    assert!(made.expect("mkfifo runs").success());
    let large = File::create(path("large")).expect("it can be made");
    large.set_len(2 << 30).expect("it takes no room");
    for (file, what) in [
        (PathBuf::from("/dev/zero"), "a device"),
        (path("pipe"), "a named pipe"),
        (path(""), "a directory"),
        (path("large"), "too large: 2147483648 bytes, at most"),
        (
            path("nothing"),
            "No such file|is neither a file nor the name of",
        ),
    ] {
        refused(READERS, &file, &out, what);
    }
}

#[test]
fn long_lines_are_answered_at_once_and_in_few_words() {
    let scratch = tempfile::tempdir().expect("a folder");
    let out = scratch.path().join("out.html");
    let packed = |text: &str| {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(text.as_bytes()).expect("into memory");
        packer.finish().expect("into memory")
    };
    let long = "x".repeat(4 << 20);
    let half = &long[..2 << 20];
    let elements = |count: usize| -> String {
        let named = (0..count).map(|n| format!("a{n}=\"b\" "));
        format!("<graphml {}></graphml>", named.collect::<String>())
    };
    let texts = [
        long.clone(),
        format!("\"{long}\""),
        format!("name = \"{long}\""),
        format!("{{\"{half}\": \"{half}\"}}"),
        "[".repeat(4 << 20),
        "<graphml>".repeat(500_000),
        format!("<graphml><graph><node id=\"{half}\"/><node id=\"{half}\"/></graph></graphml>"),
        format!("<graphml><{long}></graphml>"),
        elements(200_000),
        (0..200_000)
            .map(|n| format!("<a xmlns:n{n}=\"u\">"))
            .collect(),
        format!("load,seed\n{long},1\n"),
        format!("router 0 node {long}\n"),
        String::new(),
    ];
    // Test one reader of each format: the others read descriptions.
    let is_one = |words: &&&str| {
        ["check FILE", "import", "plot", "--config"]
            .iter()
            .any(|part| words.contains(part))
    };
    let plain: Vec<&str> = READERS.iter().filter(is_one).copied().collect();
    for text in texts {
        let file = scratch.path().join("file");
        fs::write(&file, &text).expect("there is room");
        refused(&plain, &file, &out, "");
        fs::write(&file, packed(&text)).expect("there is room");
        refused(&[READERS[READERS.len() - 1]], &file, &out, "");
    }
}

#[test]
fn networks_are_known_by_name_wherever_one_is_read() {
    let scratch = tempfile::tempdir().expect("a folder");
    let out = scratch.path().join("out");
    for words in [
        "topology check",
        "topology show",
        "topology plan",
        "topology export --format json",
    ] {
        for name in ["quickstart", "t3e-2x2x2", "r2-64"] {
            let line = format!("{words} {name}");
            let (status, message) = said(&line, Path::new(""), &out);
            assert_eq!(status, Some(0), "{line}: {message:.1000}");
        }
        let (status, message) = said(&format!("{words} quickstrat"), Path::new(""), &out);
        assert_eq!(status, Some(1));
        assert!(message.contains("did you mean `quickstart`?"), "{message}");
    }
}
