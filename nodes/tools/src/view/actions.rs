//! Actions on a lab from the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use phitwire_nodes::control::{Client, Fault, Request};
use phitwire_nodes::run_dir::{LabDir, RunDirError, ThisLab};
use serde::{Deserialize, Serialize};

use crate::recording::Event;

/// Time limit of a node's reply, and of the script.
const PATIENCE: Duration = Duration::from_secs(2);
const SCRIPT_PATIENCE: Duration = Duration::from_secs(20);
/// Maximum number of words of an impairment, and of letters of a word.
const MOST_WORDS: usize = 24;
const LONGEST_WORD: usize = 16;

/// A requested action.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// A fault of the control protocol, at a node's port.
    Fault {
        node: String,
        /// Number of the link, for the timeline.
        link: u32,
        /// The fault to inject or remove.
        fault: Fault,
    },
    /// An impairment of a link's wires by the kernel, in both directions.
    Impair {
        link: u32,
        /// Arguments of `tc qdisc ... netem`; empty removes it.
        netem: String,
    },
}

/// The actions that the viewer can take on the lab, and why others are unavailable.
#[derive(Debug, Serialize)]
pub struct Actions {
    #[serde(skip)]
    lab: String,
    /// The viewed lab. A later lab of the same name is never touched.
    #[serde(skip)]
    this: ThisLab,
    /// The mechanism that impairs links, if any.
    pub wires: Option<Wires>,
    /// Why links cannot be impaired, or only by nftables.
    pub why_not: Option<String>,
    #[serde(skip)]
    script: Option<PathBuf>,
}

/// The mechanism that impairs wires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wires {
    /// The kernel's netem.
    Netem,
    /// The kernel's nftables, which can only drop frames.
    Nft,
}

impl Wires {
    /// The mechanism reported by the script, and the reason if that is not netem.
    fn of(script: &Path) -> (Option<Self>, Option<String>) {
        let mut command = Command::new(script);
        command.arg("--kernel");
        let printed = match run(command, script) {
            Ok(printed) => printed,
            Err(why) => return (None, Some(why)),
        };
        let has = |word: &str| printed.lines().any(|line| line == word);
        match (has("netem"), has("nft")) {
            (true, _) => (Some(Self::Netem), None),
            (false, true) => {
                let why = "this kernel has no netem: impairments are limited to dropping frames \
                           with nftables";
                (Some(Self::Nft), Some(why.to_owned()))
            }
            (false, false) => {
                let why = "this kernel has neither netem nor random loss in nftables; bring the \
                           lab up with with-netem.sh, in a kernel that has netem";
                (None, Some(why.to_owned()))
            }
        }
    }
}

impl Actions {
    /// The actions that this process can take on a lab, using the scripts in `scripts`, if any.
    ///
    /// # Errors
    /// If the lab does not exist.
    pub fn of(lab: &str, scripts: Option<&Path>) -> Result<Self, RunDirError> {
        let this = LabDir::new(lab)?.this()?;
        let found = scripts.map(|scripts| scripts.join("impair.sh"));
        let found = found.filter(|script| script.is_file());
        let is_root = nix::unistd::geteuid().is_root();
        let none = |why: &str| (None, Some(why.to_owned()));
        let (wires, why_not) = match (&found, is_root) {
            (None, _) => none("cannot find netns-scripts/impair.sh near this executable"),
            (_, false) => none("impairing wires requires root"),
            (Some(script), true) => Wires::of(script),
        };
        Ok(Self {
            lab: lab.to_owned(),
            this,
            wires,
            why_not,
            script: found,
        })
    }

    /// Sends a request to a node of this lab.
    ///
    /// # Errors
    /// If the node does not reply in time, or refuses, or the lab has been taken down.
    pub fn ask(
        &self,
        node: &str,
        request: &Request,
        patience: Duration,
    ) -> Result<serde_json::Value, String> {
        let client = Client::connect_for(&self.lab, node, patience);
        // Check after connecting: if the lab still has its name now, the node belongs to it.
        self.is_there()?;
        let answer = client.and_then(|mut client| client.ask(request));
        answer.map_err(|error| format!("{node}: {error}"))
    }

    fn is_there(&self) -> Result<(), String> {
        match self.this.is_there() {
            true => Ok(()),
            false => Err("this lab has been taken down".to_owned()),
        }
    }

    /// Carries out an action and returns its event for the timeline.
    ///
    /// # Errors
    /// The error of the node or the script.
    pub fn carry_out(&self, act: Act) -> Result<Event, String> {
        match act {
            Act::Fault { node, link, fault } => self.fault(&node, link, fault),
            Act::Impair { link, netem } => self.impair(link, &netem),
        }
    }

    fn fault(&self, node: &str, link: u32, fault: Fault) -> Result<Event, String> {
        // The serialised fault uses the words of the command line.
        let words = serde_json::to_value(&fault).unwrap_or_default();
        let port = fault.port();
        self.ask(node, &Request::Fault(fault), PATIENCE)?;
        Ok(Event {
            kind: "command".to_owned(),
            node: Some(node.to_owned()),
            link: Some(link),
            text: format!(
                "{} at port {port}, by hand",
                words["kind"].as_str().unwrap_or("a fault")
            ),
        })
    }

    fn impair(&self, link: u32, netem: &str) -> Result<Event, String> {
        let (script, wires) = self.script.as_deref().zip(self.wires).ok_or_else(|| {
            let why = self.why_not.as_deref().unwrap_or("not supported here");
            format!("cannot impair links: {why}")
        })?;
        let words = words_of(netem)?;
        self.is_there()?;
        let by_nft = wires == Wires::Nft && !words.is_empty();
        let mut command = Command::new(script);
        command.args(["--lab", &self.lab]);
        command.args(by_nft.then_some("--nft"));
        command.arg(link.to_string());
        match words.is_empty() {
            true => command.arg("clear"),
            false => command.args(&words),
        };
        run(command, script)?;
        Ok(Event {
            kind: "command".to_owned(),
            node: None,
            link: Some(link),
            text: match words.is_empty() {
                true => "wires cleared, by hand".to_owned(),
                false => format!(
                    "wires impaired: {}{}, by hand",
                    words.join(" "),
                    if by_nft { " by nftables" } else { "" }
                ),
            },
        })
    }
}

/// The words of an impairment. Only names, numbers and units are accepted, so nothing can be
/// interpreted by a shell or `tc`.
fn words_of(netem: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = netem.split_whitespace().map(str::to_owned).collect();
    let is_plain = |word: &String| {
        let mut letters = word.bytes();
        word.len() <= LONGEST_WORD
            && !word.starts_with('-')
            && letters.all(|b| b.is_ascii_alphanumeric() || b"%.".contains(&b))
    };
    match words.len() <= MOST_WORDS && words.iter().all(is_plain) {
        true => Ok(words),
        false => Err(format!(
            "invalid impairment `{}`: expected words such as `loss 3% delay 2ms 1ms`",
            netem.chars().take(60).collect::<String>().escape_debug()
        )),
    }
}

/// Runs the script with a time limit and returns its short output.
fn run(mut command: Command, script: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", script.display());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + SCRIPT_PATIENCE;
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} timed out", script.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = child.wait_with_output().map_err(failed)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let error = String::from_utf8_lossy(&done.stderr);
    let error: String = error.chars().take(1_000).collect();
    Err(format!("impair.sh: {}", error.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_read_as_the_page_writes_them() {
        let read = |text: &str| serde_json::from_str::<Act>(text);
        let fault =
            read(r#"{"act":"fault","node":"r0","link":3,"fault":{"kind":"link-down","port":2}}"#);
        assert_eq!(
            fault.unwrap(),
            Act::Fault {
                node: "r0".to_owned(),
                link: 3,
                fault: Fault::LinkDown { port: 2 },
            }
        );
        assert!(read(r#"{"act":"impair","link":3,"netem":"loss 3%"}"#).is_ok());
        for wrong in [
            r#"{"act":"shutdown"}"#,
            r#"{"act":"impair","link":-1,"netem":""}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_impairment_tool_is_detected_before_use() {
        use std::os::unix::fs::PermissionsExt as _;

        let dir = tempfile::tempdir().expect("a folder");
        let script = dir.path().join("impair.sh");
        for (says, wires, why) in [
            ("echo netem; echo nft", Some(Wires::Netem), ""),
            ("echo nft", Some(Wires::Nft), "no netem"),
            ("true", None, "neither"),
            ("echo no such option >&2; exit 2", None, "no such option"),
        ] {
            let text = format!("#!/bin/sh\n[ \"$*\" = --kernel ] || exit 3\n{says}\n");
            crate::whole_file::write(&script, text).expect("it is written");
            let rights = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&script, rights).expect("it is ours");
            let mut read = Wires::of(&script);
            // Retry: a process forked by another test may still have the file open.
            while read.1.as_ref().is_some_and(|why| why.contains("busy")) {
                read = Wires::of(&script);
            }
            assert_eq!(read.0, wires, "{says}");
            assert!(read.1.unwrap_or_default().contains(why), "{says}");
        }
    }

    #[test]
    fn impairments_are_plain_words() {
        assert_eq!(
            words_of(" loss 3%  delay 2ms 1ms").unwrap(),
            ["loss", "3%", "delay", "2ms", "1ms"]
        );
        assert!(words_of("").unwrap().is_empty());
        for wrong in [
            "loss $(id)",
            "-x",
            "loss 3%;",
            "a\nb|c",
            "../../etc",
            &"x ".repeat(30),
        ] {
            assert!(words_of(wrong).is_err(), "{wrong}");
        }
    }
}
