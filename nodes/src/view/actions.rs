//! What can be done to a lab from the page.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::control::{Client, Fault, Request};
use crate::recording::Event;
use crate::run_dir::{LabDir, RunDirError, ThisLab};

/// How long a node, and the script, may take.
const PATIENCE: Duration = Duration::from_secs(2);
const SCRIPT_PATIENCE: Duration = Duration::from_secs(20);
/// Words of an impairment at most, and letters of one.
const MOST_WORDS: usize = 24;
const LONGEST_WORD: usize = 16;

/// Something that is to be done.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Act {
    /// A fault of the control protocol, at the port of a node.
    Fault {
        /// The node.
        node: String,
        /// The number of the link, for the time line.
        link: u32,
        /// What is to be broken or mended.
        fault: Fault,
    },
    /// An impairment of a link's wires by the kernel, both directions alike.
    Impair {
        /// The number of the link.
        link: u32,
        /// What `tc qdisc ... netem` takes; nothing ends it.
        netem: String,
    },
}

/// What can be done.
#[derive(Debug, Serialize)]
pub struct Actions {
    #[serde(skip)]
    lab: String,
    /// The lab that is looked at: nothing is done to one of its name that comes after it.
    #[serde(skip)]
    this: ThisLab,
    /// Whether links can be impaired.
    pub netem: bool,
    /// Why not.
    pub why_not: Option<String>,
    #[serde(skip)]
    script: Option<PathBuf>,
}

impl Actions {
    /// What can be done to a lab by this process, with the scripts in that directory, if there are any.
    ///
    /// # Errors
    /// When there is no such lab.
    pub fn of(lab: &str, scripts: Option<&Path>) -> Result<Self, RunDirError> {
        let this = LabDir::new(lab)?.this()?;
        let found = scripts.map(|scripts| scripts.join("impair.sh"));
        let found = found.filter(|script| script.is_file());
        let is_root = nix::unistd::geteuid().is_root();
        let why_not = match (&found, is_root) {
            (None, _) => {
                Some("netns-scripts/impair.sh was not found beside this command".to_owned())
            }
            (_, false) => Some("impairing wires takes root".to_owned()),
            _ => None,
        };
        Ok(Self {
            lab: lab.to_owned(),
            this,
            netem: why_not.is_none(),
            why_not,
            script: found.filter(|_| is_root),
        })
    }

    /// Asks a node of this lab.
    ///
    /// # Errors
    /// When it does not answer in time, or refuses, or the lab has been taken down.
    pub fn ask(
        &self,
        node: &str,
        request: &Request,
        patience: Duration,
    ) -> Result<serde_json::Value, String> {
        let client = Client::connect_for(&self.lab, node, patience);
        // Asked afterwards: a node met under its name until now was met in this lab.
        self.is_there()?;
        let answer = client.and_then(|mut client| client.ask(request));
        answer.map_err(|error| format!("{node}: {error}"))
    }

    fn is_there(&self) -> Result<(), String> {
        match self.this.is_there() {
            true => Ok(()),
            false => Err("the lab that is shown has been taken down".to_owned()),
        }
    }

    /// Does it; what the time line is to say.
    ///
    /// # Errors
    /// What the node or the script says.
    pub fn carry_out(&self, act: Act) -> Result<Event, String> {
        match act {
            Act::Fault { node, link, fault } => self.fault(&node, link, fault),
            Act::Impair { link, netem } => self.impair(link, &netem),
        }
    }

    fn fault(&self, node: &str, link: u32, fault: Fault) -> Result<Event, String> {
        // The words of the command line.
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
        let script = self.script.as_deref().ok_or_else(|| {
            let why = self.why_not.as_deref().unwrap_or("it cannot be done here");
            format!("links are not impaired from here: {why}")
        })?;
        let words = words_of(netem)?;
        self.is_there()?;
        let mut command = Command::new(script);
        command.args(["--lab", &self.lab, &link.to_string()]);
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
                true => "its wires are clear again, by hand".to_owned(),
                false => format!("its wires have {}, by hand", words.join(" ")),
            },
        })
    }
}

/// The words of an impairment: names, numbers and units, nothing that a shell or `tc` takes for
/// something else.
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
            "`{}` is no impairment: words such as `loss 3% delay 2ms 1ms`",
            netem.chars().take(60).collect::<String>().escape_debug()
        )),
    }
}

/// Runs the script and waits for it, for a while.
fn run(mut command: Command, script: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", script.display());
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let deadline = Instant::now() + SCRIPT_PATIENCE;
    while child.try_wait().map_err(failed)?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{} takes too long", script.display()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = child.wait_with_output().map_err(failed)?;
    if done.status.success() {
        return Ok(());
    }
    let told = String::from_utf8_lossy(&done.stderr);
    let told: String = told.chars().take(1_000).collect();
    Err(format!("impair.sh: {}", told.trim()))
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
