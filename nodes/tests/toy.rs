//! The toy machine, a ring, through all commands: it is known to none of them but by its line in
//! the list of machines.
#![cfg(feature = "toy")]

use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

fn phitwire(dir: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire"));
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
}

/// Children that are killed when the test ends, however it does.
struct Nodes(Vec<Child>);

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn free_ports(count: u16) -> u16 {
    let seed = std::process::id() as u16;
    (0..200)
        .map(|i| 20_000 + (seed.wrapping_add(i * 61)) % 20_000)
        .find(|base| (*base..base + count).all(|port| UdpSocket::bind(("127.0.0.1", port)).is_ok()))
        .expect("some ports are free")
}

#[test]
fn three_routers_as_processes_carry_verified_traffic() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let text = good(dir, "topology generate ring --routers 3");
    std::fs::write(dir.join("lab.toml"), text).unwrap();
    let base = free_ports(18);
    let mut nodes = Nodes(Vec::new());
    let names = (0..3).map(|i| format!("r{i}"));
    for name in names.chain((0..6).map(|i| format!("nic{i}"))) {
        let run = format!("run --topology lab.toml --node {name} --lab t --loopback {base}");
        let mut command = phitwire(dir, &run);
        nodes.0.push(
            command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap(),
        );
    }
    let ctl = |arguments: &str| phitwire(dir, &format!("ctl --lab t {arguments}")).output();
    let deadline = Instant::now() + Duration::from_secs(60);
    let report = |nic: u16| -> Option<Value> {
        let output = ctl(&format!("nic{nic} traffic status 1 --json")).ok()?;
        serde_json::from_slice(&output.stdout).ok()
    };
    let spec = r#"{"run":1,"processors":[0,1,2,3,4,5],"count":500,"size":32,"window":16}"#;
    for nic in 0..6_u16 {
        let start = format!("nic{nic} traffic start {spec}");
        while !ctl(&start).unwrap().status.success() {
            assert!(Instant::now() < deadline, "nic{nic} takes no run");
            sleep(Duration::from_millis(100));
        }
    }
    for nic in 0..6_u16 {
        loop {
            let report = report(nic).unwrap_or_default();
            if report["phase"] == "done" {
                assert_eq!(report["acknowledged"], 500, "{report}");
                assert_eq!(report["corrupted"], 0, "{report}");
                break;
            }
            assert!(Instant::now() < deadline, "{report}");
            sleep(Duration::from_millis(100));
        }
    }
}
