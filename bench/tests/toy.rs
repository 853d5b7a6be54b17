//! `phitwire-msgrate` over a lab of the toy machine: routers and network interfaces as processes,
//! joined by UDP on loopback.
//!
//! The processes are this test's own binary: cargo builds `phitwire` for the tests of its own
//! package only, and its library has the whole command.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::Value;

/// Messages of each sender.
const COUNT: u64 = 2_000;

fn main() -> ExitCode {
    if std::env::args()
        .nth(1)
        .is_some_and(|word| word == "run" || word == "wait")
    {
        return phitwire_nodes::cli::main();
    }
    a_ring_is_measured();
    // As the other tests say it, for those who count them.
    println!("test the_message_rate_of_a_ring_is_measured ... ok");
    ExitCode::SUCCESS
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

/// The command, in the lab of this directory.
fn phitwire(dir: &Path) -> Command {
    let own = std::env::current_exe().expect("a process has a program");
    let mut command = Command::new(own);
    command
        .env("PHITWIRE_RUN_DIR", dir.join("run"))
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// The processes of a ring of three routers, whose ports begin with `base`.
fn lab(dir: &Path, base: u16) -> Nodes {
    let network = phitwire::machine::generate("ring-3").expect("the toy is a machine");
    let network = network.expect("there is such a ring");
    std::fs::write(dir.join("lab.toml"), network.write()).expect("the directory is ours");
    let spawn = |name: &String| {
        let base = base.to_string();
        let mut command = phitwire(dir);
        command
            .args(["run", "--topology", "lab.toml", "--lab", "rate", "--first"])
            .args(["--node", name, "--loopback", &base]);
        command.spawn().expect("this program can be started")
    };
    Nodes(network.node_names().iter().map(spawn).collect())
}

/// A row of UDP ports that nobody has.
fn free_ports(count: u16) -> u16 {
    let is_free = |port| std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok();
    let seed = std::process::id() as u16;
    let mut bases = (0..200).map(|i| 40_000 + seed.wrapping_add(i * 61) % 9_000);
    let found = bases.find(|&base| (base..base + count).all(is_free));
    found.expect("some ports are free")
}

fn a_ring_is_measured() {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let dir = dir.path();
    let _nodes = lab(dir, free_ports(18));
    let mut wait = phitwire(dir);
    wait.args(["wait", "--lab", "rate", "--topology", "lab.toml"]);
    wait.args(["--timeout", "60"]);
    let waited = wait.status().expect("this program can be started");
    assert!(waited.success(), "the links come up");
    let count = COUNT.to_string();
    for op in ["put", "get"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_phitwire-msgrate"));
        command
            .args(["--lab", "rate", "--json", "--size", "8,32"])
            .args(["--window", "32", "--op", op, "--count", &count])
            .env("PHITWIRE_RUN_DIR", dir.join("run"));
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
