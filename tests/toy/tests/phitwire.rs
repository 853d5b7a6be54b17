//! The toy machine, a ring, with all commands, and with its processes on loopback.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test of commands starts processes and waits for them"
)]

use std::path::Path;
use std::process::{Command, Output};

use phitwire::net::{Describe, Network as _};
use phitwire_lab::{Lab, wait_for};
use phitwire_toy::network::Ring;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_phitwire-toy");

fn phitwire(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments.split(' '))
        .env("PHITWIRE_RUN_DIR", dir.join("run"))
        .current_dir(dir);
    command
}

fn good(dir: &Path, arguments: &str) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = phitwire(dir, arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{arguments}: {stderr}");
    String::from_utf8(stdout).unwrap()
}

#[test]
fn a_ring_is_generated_checked_shown_simulated_and_soaked() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = good(dir, "topology generate ring --routers 4 --name four");
    std::fs::write(dir.join("four.toml"), &text).unwrap();
    good(dir, "topology check four.toml");
    for format in ["table", "dot", "svg"] {
        let shown = good(dir, &format!("topology show four.toml --format {format}"));
        assert!(shown.contains("nic7") && shown.contains("r3"), "{shown}");
    }
    let report = good(dir, "sim ring-8 --load 0.1 --measure 2000 --json");
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(report["packets"].as_u64() > Some(100), "{report}");
    assert_eq!(report["violations"], Value::Array(Vec::new()));
    let plan = good(dir, "topology plan four.toml");
    assert_eq!(
        plan.lines()
            .filter(|line| line.starts_with("link ") || line.starts_with("link\t"))
            .count(),
        12,
        "{plan}"
    );
    good(dir, "soak --family ring --seeds 1..20");
    let refused = phitwire(dir, "topology channels four.toml")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && error.contains("has no virtual-channel tables"),
        "{error}"
    );
}

#[test]
fn three_routers_as_processes_carry_verified_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let text = good(dir.path(), "topology generate ring --routers 3");
    let mut lab = Lab::new(PROGRAM, &text, 18);
    let names = (0..3).map(|i| format!("r{i}"));
    for name in names.chain((0..6).map(|i| format!("nic{i}"))) {
        lab.start_with(&name, " --first");
    }
    lab.wait("");
    let spec = r#"{"run":1,"processors":[0,1,2,3,4,5],"count":500,"size":32,"window":16}"#;
    for nic in 0..6 {
        lab.ctl_json(&format!("nic{nic} traffic start {spec}"));
    }
    for nic in 0..6 {
        let report = || lab.ctl_json(&format!("nic{nic} traffic status 1"));
        wait_for(|| report()["phase"] == "done", "the end of the run");
        let report = report();
        assert_eq!(report["acknowledged"], 500, "{report}");
        assert_eq!(report["corrupted"], 0, "{report}");
    }
}

/// Messages per sender.
const COUNT: u64 = 2_000;

#[test]
fn the_message_rate_of_a_ring_is_measured() {
    let network = <Ring as Describe>::generate("ring-3").expect("a name of rings");
    let network = network.expect("there is such a ring");
    let mut lab = Lab::new(PROGRAM, &network.write(), 18);
    for name in network.node_names() {
        lab.start_with(&name, " --first");
    }
    lab.wait(&format!(" --topology {}", lab.file()));
    let count = COUNT.to_string();
    for op in ["put", "get"] {
        let mut command = Command::new(PROGRAM);
        command
            .arg("msgrate")
            .args(["--lab", "t", "--json", "--size", "8,32"])
            .args(["--window", "32", "--op", op, "--count", &count])
            .env("PHITWIRE_RUN_DIR", lab.run_dir());
        let output = command.output().expect("the tool can be started");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{op}: {complaint}");
        let report: Value = serde_json::from_slice(&output.stdout).expect("it speaks JSON");
        assert_eq!(report.as_array().map(Vec::len), Some(2), "{report}");
        for (outcome, size) in report.as_array().into_iter().flatten().zip([8, 32]) {
            assert_eq!(outcome["size"], size);
            assert_eq!(outcome["acknowledged"], 6 * COUNT, "{outcome}");
            assert!(
                outcome["messages_per_second"].as_f64() > Some(100.0),
                "{outcome}"
            );
        }
    }
}
