//! Output to files and pipes, and its end.

use super::*;

#[test]
fn one_file_is_not_written_twice() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("both").display().to_string();
    let words = format!("--csv {file} --plot {file}");
    let output = sim(&format!("r1-32 --load 0.1 --warmup 0 --measure 1 {words}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("--csv and --plot both write"), "{said}");
}

#[test]
fn latencies_are_missing_where_nothing_was_measured() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let table = scratch.path().join("none.csv").display().to_string();
    let words = "r1-32 --load 0.000001 --warmup 0 --measure 1 --seeds 2";
    let value = json(&format!("{words} --json"));
    assert_eq!(value["packets_measured"], 0);
    for key in ["min", "mean", "p50", "p99", "p99_9", "max"] {
        let latency = value["latency_cycles"].get(key).expect(key);
        assert!(latency.is_null(), "{key}");
    }
    assert!(value["over_seeds"]["latency_mean"].is_null());
    let output = sim(&format!("{words} --csv {table}"));
    let shown = String::from_utf8_lossy(&output.stdout);
    let line = "|      -        -       -       -       -       - |";
    assert!(shown.contains(line), "{shown}");
    assert!(shown.contains("latency -, accepted"), "{shown}");
    let table = std::fs::read_to_string(&table).expect("the table");
    assert!(table.contains(",,,,,,"), "{table}");
}

/// A run that is too long to end during the test.
fn endless() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire"));
    let words = "sim r1-32 --load 0.1..1.0:0.1 --measure 1000000000 --threads 1";
    command.args(words.split_whitespace());
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// The first line of a stream, within a minute.
fn first_line(stream: impl Read + Send + 'static) -> Option<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stream).read_line(&mut line);
        // Ignore an error: the receiver may have timed out.
        let _ = sender.send(read.map(|_| line));
    });
    receiver.recv_timeout(Duration::from_secs(60)).ok()?.ok()
}

#[test]
fn a_closed_pipe_ends_the_run_quietly_and_at_once() {
    let mut child = endless().stdout(Stdio::piped()).spawn().expect("it runs");
    let heading = first_line(child.stdout.take().expect("a pipe"));
    assert!(heading.is_some_and(|line| line.contains("latency")));
    let until = Instant::now() + Duration::from_secs(60);
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status.code();
        }
        if Instant::now() > until {
            child.kill().expect("a child");
            panic!("it computes for nobody");
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status, Some(141));
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(said, "");
}

#[test]
fn long_runs_print_progress_without_a_terminal() {
    let mut child = endless().stdout(Stdio::null()).spawn().expect("it runs");
    let line = first_line(child.stderr.take().expect("a pipe"));
    child.kill().expect("a child");
    child.wait().expect("a child");
    let line = line.expect("a line within a minute");
    let state = "s, 1/10 load 0.1 ";
    assert!(
        line.starts_with("phitwire sim: ") && line.contains(state) && line.contains(" cycles"),
        "{line}"
    );
}
