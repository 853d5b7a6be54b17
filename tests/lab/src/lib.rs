//! A lab on loopback, for tests of commands: a separate directory, and the processes of its nodes.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of commands start processes and wait for them"
)]

use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The lab `t`, whose processes are killed when it is dropped.
pub struct Lab {
    program: PathBuf,
    pub dir: tempfile::TempDir,
    base: u16,
    pub processes: Vec<(String, Child)>,
}

impl Lab {
    /// A lab of this topology, whose links have `ports` ends; `program` is the `phitwire` command.
    pub fn new(program: impl Into<PathBuf>, topology: &str, ports: u16) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("lab.toml"), topology).expect("a file");
        Self {
            program: program.into(),
            dir,
            base: free_ports(ports),
            processes: Vec::new(),
        }
    }

    pub fn file(&self) -> String {
        self.dir.path().join("lab.toml").display().to_string()
    }

    pub fn run_dir(&self) -> PathBuf {
        self.dir.path().join("run")
    }

    pub fn phitwire(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments.split(' '))
            .env("PHITWIRE_RUN_DIR", self.run_dir());
        command
    }

    pub fn run_command(&self, node: &str, more: &str) -> Command {
        let (file, base) = (self.file(), self.base);
        self.phitwire(&format!(
            "run --topology {file} --node {node} --lab t --loopback {base}{more}"
        ))
    }

    pub fn start(&mut self, node: &str) {
        self.start_with(node, "");
    }

    pub fn start_with(&mut self, node: &str, more: &str) {
        let mut command = self.run_command(node, more);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = command.spawn().expect("the command starts");
        self.processes.push((node.to_owned(), child));
        let socket = self.socket(node);
        wait_for(|| socket.exists(), "the control socket");
    }

    pub fn socket(&self, node: &str) -> PathBuf {
        self.run_dir().join(format!("t/{node}.sock"))
    }

    pub fn take(&mut self, node: &str) -> Child {
        let at = self.processes.iter().position(|(name, _)| name == node);
        self.processes.swap_remove(at.expect("it was started")).1
    }

    /// Waits until all links are up.
    pub fn wait(&self, more: &str) {
        let wait = format!("wait --lab t --timeout 60{more}");
        let waited = self.phitwire(&wait).output().expect("the command starts");
        assert!(waited.status.success(), "{waited:?}");
    }

    pub fn ctl(&self, arguments: &str) -> Output {
        self.phitwire(&format!("ctl --lab t {arguments}"))
            .output()
            .expect("the command starts")
    }

    pub fn ctl_json(&self, arguments: &str) -> Value {
        let output = self.ctl(&format!("{arguments} --json"));
        assert!(output.status.success(), "{arguments}: {output:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for (_, child) in &mut self.processes {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The first of `count` consecutive unused UDP ports on loopback: below those that the kernel
/// assigns, and different for labs that are created at the same time.
fn free_ports(count: u16) -> u16 {
    static TRIED: AtomicU16 = AtomicU16::new(0);
    let seed = (std::process::id() as u16).wrapping_mul(97);
    let is_free = |port| UdpSocket::bind(("127.0.0.1", port)).is_ok();
    let bases = (0..200).map(|_| TRIED.fetch_add(61, Ordering::Relaxed));
    bases
        .map(|tried| 20_000 + seed.wrapping_add(tried) % 12_000)
        .find(|&base| (base..base + count).all(is_free))
        .expect("some ports are free")
}

/// Waits until `done`, for a minute at most.
///
/// # Panics
/// After that time.
pub fn wait_for(mut done: impl FnMut() -> bool, what: &str) {
    let start = Instant::now();
    while !done() {
        let waited = start.elapsed();
        assert!(waited < Duration::from_secs(60), "{what} does not come");
        sleep(Duration::from_millis(10));
    }
}
