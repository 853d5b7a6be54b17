//! `phitwire sim` as called by users.

mod ends;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

pub fn sim(words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_phitwire"))
        .arg("sim")
        .args(words.split_whitespace())
        .output()
        .expect("the command runs")
}

pub fn json(words: &str) -> Value {
    let output = sim(words);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn one_load_is_an_object_with_everything_in_it() {
    let value = json("yarc-64 --load 0.3 --warmup 500 --measure 2000 --seed 7 --json");
    for key in [
        "seed",
        "trace_hash",
        "cycles",
        "offered_load",
        "accepted_load",
        "hops_mean",
        "phit_hops",
        "wall_seconds",
        "phit_hops_per_second",
        "peak_resident_bytes",
        "saturated",
    ] {
        assert!(!value[key].is_null(), "{key} is missing in {value:#}");
    }
    for key in ["min", "mean", "p50", "p99", "p99_9", "max"] {
        assert!(value["latency_cycles"][key].is_number(), "{key}");
    }
    assert_eq!(value["seed"], 7);
    assert_eq!(value["saturated"], false);
    let accepted = value["accepted_load"].as_f64().expect("a number");
    assert!((accepted - 0.3).abs() < 0.03, "{accepted}");
}

#[test]
fn seed_and_options_decide_everything_and_threads_nothing() {
    let hash = |more: &str| {
        let words = "r2-96 --load 0.4 --request-reply --warmup 500 --measure 1000 --json";
        let value = json(&format!("{words} {more}"));
        value["trace_hash"].as_str().expect("a hash").to_owned()
    };
    let first = hash("--threads 1");
    assert_eq!(first.len(), 16);
    assert_eq!(hash("--threads 2"), first);
    assert_eq!(hash("--threads 3"), first);
    assert_ne!(hash("--threads 2 --seed 2"), first);
    assert_ne!(hash("--threads 2 --message-bytes 8"), first);
}

#[test]
fn threads_change_nothing_of_a_dragonfly() {
    for more in [
        "",
        "--grain packet",
        "--links encoded",
        "--links encoded --grain packet",
    ] {
        let run = |threads: u32| {
            let words = "aries-4x1x2x1:1 --load 0.2 --request-reply --warmup 500 --measure 1000";
            let value = json(&format!("{words} --json {more} --threads {threads}"));
            ["trace_hash", "non_minimal_share", "phit_hops"].map(|key| value[key].clone())
        };
        let one = run(1);
        assert_eq!(one[0].as_str().map(str::len), Some(16));
        assert_eq!((&run(2), &run(4)), (&one, &one), "{more}");
    }
}

#[test]
fn a_sweep_is_an_array_and_a_drawing() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let plot = scratch.path().join("curve.svg");
    let words = format!(
        "r1-32 --load 0.2..1.0:0.4 --traffic hotspot:3:40 --process on-off --warmup 500 --measure 1000 \
         --seeds 2 --json --plot {}",
        plot.display()
    );
    let value = json(&words);
    let points = value.as_array().expect("an array");
    assert_eq!(points.len(), 3);
    assert_eq!(points[2]["load"], 1.0);
    assert_eq!(points[2]["saturated"], true);
    assert_eq!(points[0]["over_seeds"]["seeds"], 2);
    let drawing = std::fs::read_to_string(&plot).expect("the drawing");
    assert!(drawing.starts_with("<svg") && drawing.contains("mean latency"));
    assert!(
        drawing
            .contains("\nr1-32: hotspot:3:40 traffic, process on-off, warmup 500, measure 1000\n")
    );
    let words = format!(
        "aries-2x1x2x1:1 --load 0.2..0.4:0.2 --warmup 100 --measure 200 --grain packet \
         --routing minimal,valiant --plot {}",
        plot.display()
    );
    assert!(sim(&words).status.success());
    let drawing = std::fs::read_to_string(&plot).expect("the drawing");
    assert!(
        drawing.contains(
            "\naries-2x1x2x1-1: uniform traffic, warmup 100, measure 200, grain packet\n"
        )
    );
    let table = scratch.path().join("curve.csv");
    let words = format!(
        "r1-32 --load 0.2..0.4:0.1 --warmup 100 --measure 500 --csv {}",
        table.display()
    );
    let output = sim(&words);
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("offered accepted"));
    let lines = std::fs::read_to_string(&table).expect("the table");
    assert_eq!(lines.lines().count(), 4);
    let words = "t3e-2x2x2 --load 0.1 --warmup 30 --measure 60 --routing deterministic,adaptive \
                 --channels optimised,time-of-crossing";
    assert!(
        sim(&format!("{words} --csv {}", table.display()))
            .status
            .success()
    );
    let lines = std::fs::read_to_string(&table).expect("the table");
    // A name with a comma must be one cell.
    assert_eq!(lines.matches(",\"adaptive, ").count(), 2, "{lines}");
}

#[test]
fn measured_results_are_redrawn_without_simulating() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = |name: &str| scratch.path().join(name);
    let (table, plot, again) = (file("curve.csv"), file("curve.svg"), file("again.svg"));
    let words = format!(
        "r1-32 --load 0.3..0.9:0.3 --traffic hotspot:3,4:20 --warmup 200 --measure 800 --seeds 3 --csv {} \
         --plot {}",
        table.display(),
        plot.display()
    );
    assert!(sim(&words).status.success());
    let plotted = |files: &[&std::path::Path]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire"));
        command.arg("plot").args(files).arg("-o").arg(&again);
        command.output().expect("the command runs")
    };
    assert!(plotted(&[&table]).status.success());
    let [first, second] = [&plot, &again].map(|file| std::fs::read_to_string(file).expect("it"));
    // Compare words only: the table is rounded, which moves some points by a pixel.
    let words = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('<'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(&first), words(&second));
    for said in [
        "means over 3 seeds",
        "95 % interval over seeds",
        "not known to be steady",
    ] {
        assert!(first.contains(said), "{said}");
    }
    let lines = std::fs::read_to_string(&table).expect("the table");
    assert!(
        lines.lines().all(|line| line.split(',').count() >= 24),
        "{lines}"
    );
    let other = file("other.csv");
    let words = format!(
        "r1-4 --load 0.3 --warmup 0 --measure 100 --csv {}",
        other.display()
    );
    assert!(sim(&words).status.success());
    assert!(plotted(&[&table, &other]).status.success());
    let both = std::fs::read_to_string(&again).expect("the drawing");
    for said in ["latency (ns)", "r1-32, hotspot:3,4:20", "r1-4, uniform"] {
        assert!(both.contains(said), "{said}: {both}");
    }
    let text = std::fs::read_to_string(&other).expect("the table");
    let old = text.replace("full_gbytes_per_second", "something_else");
    std::fs::write(&other, old).expect("a file");
    let refused = plotted(&[&table, &other]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("full_gbytes_per_second"), "{said}");
    std::fs::write(&other, "a,b\n1,2\n").expect("a file");
    let said = String::from_utf8_lossy(&plotted(&[&other]).stderr).into_owned();
    assert!(said.contains("missing field"), "{said}");
}

#[test]
fn a_drawing_goes_to_a_file_of_its_kind_or_a_pipe() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = |name: &str| scratch.path().join(name);
    let rows = "load,seed,accepted_load,saturated,latency_mean,latency_p99,topology,traffic,\
                cycle_ns\n0.2,1,0.2,false,50,90,r1-4,uniform,1.25\n";
    let table = file("curve.csv");
    std::fs::write(&table, rows).expect("a file");
    let plot = |to: Stdio, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire"));
        command.current_dir(scratch.path()).stdout(to);
        command.args(["plot", "curve.csv"]).args(words);
        command.output().expect("the command runs")
    };
    let refused = plot(Stdio::piped(), &["-o", "curve.png"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains(".svg"), "{said}");
    assert!(!file("curve.png").exists());
    let written = plot(Stdio::piped(), &["-o", "curve.SVG", "--title", "Mine"]);
    assert_eq!(
        String::from_utf8_lossy(&written.stdout),
        "curve.SVG: 1 point\n"
    );
    let drawing = std::fs::read_to_string(file("curve.SVG")).expect("the drawing");
    assert!(drawing.contains("\nMine\n"), "{drawing}");
    let piped = plot(Stdio::piped(), &[]);
    assert!(piped.status.success() && piped.stdout.starts_with(b"<svg"));
    assert!(
        plot(Stdio::piped(), &["-o", "/dev/stdout"])
            .stdout
            .ends_with(b"</svg>\n")
    );
    // The master of a terminal is a terminal, too.
    let mut open = std::fs::OpenOptions::new();
    let terminal = open.read(true).write(true).open("/dev/ptmx");
    let refused = plot(terminal.expect("a terminal").into(), &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && said.contains("-o FILE.svg"),
        "{said}"
    );
}

#[test]
fn short_windows_are_not_called_steady() {
    // In the long run minimal saturates between 0.15 and 0.16, Valiant between 0.26 and 0.28.
    for (mode, load) in [("minimal", "0.17"), ("valiant", "0.28")] {
        let words = format!(
            "aries-9x1x4x2 --traffic group-adversarial --routing {mode} --load {load} \
             --warmup 1000 --measure 1000 --threads 1"
        );
        let value = json(&format!("{words} --json"));
        assert_ne!(value["state"], "steady", "{mode}");
    }
}

#[test]
fn full_load_is_not_steady() {
    // Offered load equals capacity, so that the network accepts all of it: these seeds are not
    // saturated.
    for seed in [1, 3] {
        let words = "aries-1x1x1x4 --traffic transpose --load 1 --warmup 50000 --measure 10000";
        let value = json(&format!("{words} --seed {seed} --threads 1 --json"));
        assert_eq!(value["state"], "unsettled", "{value:#}");
        let why = "at full load source queues have no steady length";
        assert_eq!(value["unsettled_because"], why);
    }
}

#[test]
fn the_source_that_is_served_least_is_named() {
    // Overload one processor: all others send to it.
    let output = sim("r1-4 --traffic hotspot:0:100 --load 0.9 --warmup 2000 --measure 4000");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text
        .lines()
        .find(|line| line.contains("saturated"))
        .expect(&text);
    assert!(line.contains(" of 0.") && line.contains(", nic"), "{line}");
    assert!(text.contains("GB/s of messages"), "{text}");
}

#[test]
fn the_least_served_source_of_a_steady_network_offered_what_it_sent() {
    let value =
        json("aries-1x1x1x4 --load 0.3 --warmup 2000 --measure 20000 --threads 1 --seed 3 --json");
    let of = |key: &str| value["least_served"][key].as_f64().expect("a number");
    let (served, offered) = (of("served"), of("offered"));
    assert!(
        (0.98..1.02).contains(&(served / offered)),
        "{served} of {offered}"
    );
}

#[test]
fn faults_and_the_packets_that_they_discard_are_printed() {
    let fault = ["--fault", "link 3 down at 3us for 1us"];
    let output = Command::new(env!("CARGO_BIN_EXE_phitwire"))
        .args([
            "sim",
            "aries-3x4",
            "--load",
            "0.3",
            "--warmup",
            "1000",
            "--measure",
            "4000",
        ])
        .args(fault)
        .output()
        .expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.starts_with("with link 3 down at 3000 ns for 1000 ns\n"),
        "{text}"
    );
    assert!(text.contains(" packets discarded"), "{text}");
}

#[test]
fn hops_of_a_flit_are_omitted_if_none_has_arrived() {
    let hops = |measure: u32| {
        let words = format!("aries-3x4 --load 0.3 --warmup 0 --measure {measure} --drain 2000");
        let text = String::from_utf8_lossy(&sim(&words).stdout).into_owned();
        let line = text.lines().find(|line| line.starts_with("hops of a flit"));
        line.map(str::to_owned)
    };
    assert_eq!(hops(40), None);
    let line = hops(4000).expect("a line");
    let green = line
        .split_whitespace()
        .nth(4)
        .and_then(|n| n.parse::<f64>().ok());
    assert!(green.is_some_and(|green| green < 5.0), "{line}");
}

#[test]
fn latencies_are_written_for_hdrhistogram() {
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let file = scratch.path().join("lat.hgrm");
    let words = format!(
        "r1-32 --load 0.3 --warmup 200 --measure 2000 --json --hgrm {}",
        file.display()
    );
    let value = json(&words);
    let text = std::fs::read_to_string(&file).expect("the file");
    let last = text
        .lines()
        .rfind(|line| !line.starts_with('#'))
        .expect("a line");
    let cells: Vec<f64> = last
        .split_whitespace()
        .map(|cell| cell.parse().expect("a number"))
        .collect();
    assert_eq!(cells[1], 1.0);
    assert_eq!(Some(cells[2]), value["packets_measured"].as_f64());
    assert_eq!(Some(cells[0]), value["latency_cycles"]["max"].as_f64());
    let words = format!(
        "r1-32 --load 0.2..0.4:0.2 --warmup 0 --measure 200 --hgrm {}",
        file.display()
    );
    std::fs::remove_file(&file).expect("it is there");
    assert!(sim(&words).status.success());
    let there = |name: &str| scratch.path().join(name).exists();
    assert!(there("lat-0.2.hgrm") && there("lat-0.4.hgrm") && !there("lat.hgrm"));
}

#[test]
fn machine_options_are_printed_and_compared() {
    let words = "--warmup 100 --measure 500 --json";
    let one = json(&format!("quickstart --link-cycles 7 --grain flit {words}"));
    assert_eq!(one["link_cycles"], 7);
    assert_eq!(one["message_bytes"], 16);
    let modes = "--routing valiant,ordered-non-minimal --grain packet --metres 1,3,35";
    let all = json(&format!("aries-pair {modes} {words}"));
    let cycles = serde_json::json!({ "nic": 40, "green": 40, "black": 50, "blue": 190 });
    for (at, mode) in ["valiant", "ordered-non-minimal"].into_iter().enumerate() {
        assert_eq!(all[at]["routing"], mode);
        assert_eq!(all[at]["grain"], "packet");
        assert_eq!(all[at]["link_cycles"], cycles);
        assert_eq!(all[at]["message_bytes"], 64);
    }
}

#[test]
fn encoded_links_report_their_frames() {
    let words = "quickstart --links encoded --load 0.1 --warmup 500 --measure 3000 --json";
    let one = json(&format!("{words} --threads 1"));
    assert!(one["encoded_links"]["frames_sent"].as_u64() > Some(1_000));
    assert_eq!(one["violations"].as_array().map(Vec::len), Some(0));
    let two = json(&format!("{words} --threads 2"));
    assert_eq!(one["trace_hash"], two["trace_hash"]);
}

#[test]
fn impossible_options_are_reported() {
    for (words, reason) in [
        ("nowhere", "neither a file nor the name"),
        ("yarc-64 --netem loss", "percentage"),
        ("yarc-64 --links direct --netem duplicate", "netem"),
        ("r1-30 --traffic transpose", "power of four"),
        ("r1-32 --traffic sideways", "unknown pattern"),
        ("r1-32 --load 1.5", "at most 1"),
        ("r1-32 --participants 33", "33 participants requested"),
        ("r1-32 --warmup 18446744073709551615", "not in 0..="),
        ("r1-32 --drain 18446744073709551615", "not in 0..="),
        (
            "r1-32 --routing minimal",
            "applies only to Aries and T3E networks|route requests deterministically and replies",
        ),
        (
            "t3e-2x2x2 --routing adaptve",
            "expected one of deterministic, adaptive; did you mean `adaptive`?",
        ),
        (
            "t3e-2x2x2 --routing valiant",
            "--routing valiant: expected one of deterministic, adaptive",
        ),
        (
            "t3e-2x2x2 --routing adaptive,adaptive,adaptive",
            "at most 2",
        ),
        ("aries-pair --routing minmal", "did you mean `minimal`?"),
        (
            "t3e-2x2x2 --traffic group-adversarial",
            "needs routers in groups; this network accepts uniform, bit-complement,",
        ),
        (
            "aries-3x4 --traffic grid-tornado",
            "neighbour, diagonal, asymmetric, hotspot, group-",
        ),
        ("r1-32 --load 0.1:0.9:0.1", "or FROM..TO:STEP"),
        ("r1-32 --plot curve.png", "specify a file that ends in .svg"),
        ("r1-32 --metres 1,2,3", "applies only to Aries networks"),
        ("r1-32 --grain packet", "before the packet is complete"),
        ("r1-32 --link-cycles 65", "65 is not in 1..=64"),
        (
            "aries-pair --link-cycles 3",
            "applies only to BlackWidow networks",
        ),
        ("aries-pair --metres 1,2", "three lengths"),
        ("aries-pair --routing bold", "expected one of adaptive0"),
        ("r1-32 --message-bytes 33", "expected 1 to 32"),
        ("yarc-64 --csv /nonexistent/x.csv", "cannot write"),
        ("yarc-64 --plot /nonexistent/x.svg", "cannot write"),
    ] {
        let output = sim(words);
        assert!(!output.status.success(), "{words}");
        let said = String::from_utf8_lossy(&output.stderr).replace('│', " ");
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for reason in reason.split('|') {
            assert!(said.contains(reason), "{words}: {said}");
        }
        let table = String::from_utf8_lossy(&output.stdout);
        assert!(table.is_empty(), "{words}: {table}");
    }
}

#[test]
fn words_of_each_machine_are_in_the_help() {
    let help = String::from_utf8_lossy(&sim("--help").stdout).into_owned();
    for said in [
        "[possible values: deterministic, adaptive]",
        "[possible values: adaptive0, adaptive1,",
        "on Aries networks also group-adversarial",
    ] {
        assert!(help.contains(said), "{said}: {help}");
    }
}

#[test]
fn a_sweep_ends_with_the_best_of_each_mode() {
    let modes = "--routing minimal,valiant --load 0.1..0.5:0.2";
    let words = "aries-9x1x4x2 --traffic group-adversarial --warmup 2000 --measure 4000";
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let table = scratch.path().join("table.csv");
    let output = sim(&format!("{words} {modes} --csv {}", table.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let written = format!("written: {}\n", table.display());
    assert!(String::from_utf8_lossy(&output.stderr).contains(&written));
    let heading = text.lines().nth(1).expect("two lines");
    assert!(heading.ends_with("Jain's index, name; non-minimal share"));
    let rows = std::fs::read(&table).expect("the table");
    let mut rows = csv::Reader::from_reader(&rows[..]);
    let rows: Vec<BTreeMap<String, String>> =
        rows.deserialize().map(|row| row.expect("a row")).collect();
    let number = |row: &BTreeMap<String, String>, name: &str| -> f64 {
        row[name].parse().expect("a number")
    };
    for mode in ["minimal", "valiant"] {
        let own = || rows.iter().filter(|row| row["routing"] == mode);
        let steady = own().filter(|row| row["state"] == "steady");
        let steady = steady.map(|row| &*row["load"]).next_back().expect("0.1");
        let accepted = |row: &&BTreeMap<String, String>| number(row, "accepted_load");
        let best = own().max_by(|a, b| accepted(a).total_cmp(&accepted(b)));
        let best = best.expect("three points");
        let said = format!(
            "\n{mode}: highest steady load {steady}; highest accepted load {:.4} ({:.3} GB/s of \
             messages each), at load {}: least served source {:.4} of {:.4}, Jain's index {:.4}, {}\n",
            accepted(&best),
            number(best, "accepted_gbytes_per_second"),
            best["load"],
            number(best, "least_served"),
            number(best, "least_offered"),
            number(best, "jain"),
            best["least_source"]
        );
        assert!(text.contains(&said), "{said}: {text}");
    }
    // Rows of different machines have the same columns.
    let other = scratch.path().join("other.csv");
    let words = "t3e-2x2x2 --load 0.1 --warmup 30 --measure 300";
    assert!(
        sim(&format!("{words} --csv {}", other.display()))
            .status
            .success()
    );
    let mut both = std::fs::read(&table).expect("the table");
    both.extend(std::fs::read(&other).expect("the table"));
    std::fs::write(&table, both).expect("there is room");
    let mut plot = Command::new(env!("CARGO_BIN_EXE_phitwire"));
    let plotted = plot.arg("plot").arg(&table).output().expect("it runs");
    assert!(plotted.status.success(), "{plotted:?}");
}

#[test]
fn impossible_faults_are_refused_and_late_ones_reported() {
    let broken = |fault: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire"));
        command.args("sim quickstart --warmup 100 --measure 500 --fault".split(' '));
        let output = command.arg(fault).output().expect("the command runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    };
    for (fault, reason) in [
        ("router nic0 down at 1us", "no such link or router"),
        ("link 99 down at 1us", "no such link or router"),
        ("link 0 down at 1us for 0us", "has zero duration"),
        ("link 0 down at 9999999s", "is too large"),
    ] {
        let (good, said) = broken(fault);
        assert!(!good && said.contains(reason), "{fault}: {said}");
    }
    let late = "`link 0 down at 1000000000 ns` starts after the end of the run";
    let (good, said) = broken("link 0 down at 1s");
    assert!(good && said.contains(late), "{said}");
    let (good, said) = broken("link 0 down at 100ns for 100ns");
    assert!(good && said.is_empty(), "{said}");
}
