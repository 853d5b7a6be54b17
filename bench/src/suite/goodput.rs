//! What is left of the bandwidth over links that lose frames: the lab's links are impaired, measured,
//! and put back.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use phitwire_nodes::stop::Stop;
use phitwire_tools::cli::scripts;
use serde::Serialize;
use thiserror::Error;

use super::Ending;
use super::options::{Benchmark, GoodputOptions, Loss};
use super::point::{PointRow, PointSuite};
use crate::msgrate::{Lab, RunError};

/// Status of the scripts where this machine cannot do it.
const CANNOT: i32 = 4;

/// A row of the table; the names are those of the JSON output.
#[derive(Clone, Debug, Serialize)]
pub struct GoodputRow {
    /// Frames of a hundred that each link loses in each direction.
    pub loss_percent: f64,
    /// What was measured.
    #[serde(flatten)]
    pub row: PointRow,
}

/// Why nothing was measured, or it did not come to its end.
#[derive(Debug, Error)]
pub enum GoodputError {
    /// No scripts.
    #[error("{0}")]
    Scripts(String),
    /// What the script says.
    #[error("links cannot be impaired: {0}")]
    Impair(String),
    /// They are already, and would not be put back.
    #[error(
        "links of lab `{lab}` are impaired already ({what}), which this would replace; \
         `impair.sh --lab {lab} all clear` ends it"
    )]
    Impaired {
        /// The lab.
        lab: String,
        /// One of the impairments.
        what: String,
    },
    /// The measurement failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The impairment of all links of a lab, which ends with this.
struct Impaired {
    script: PathBuf,
    lab: String,
    by_nft: bool,
}

impl Impaired {
    fn new(lab: &str) -> Result<Self, GoodputError> {
        let scripts = scripts().map_err(|error| GoodputError::Scripts(error.to_string()))?;
        let own = Self {
            script: scripts.join("impair.sh"),
            lab: lab.to_owned(),
            by_nft: false,
        };
        let (_, shown) = own.call(false, &["all", "show"])?;
        let is_clear = |line: &&str| matches!(line.split_whitespace().last(), None | Some("clear"));
        match shown.lines().find(|line| !is_clear(line)) {
            None => Ok(own),
            Some(line) => Err(GoodputError::Impaired {
                lab: lab.to_owned(),
                what: line.split_whitespace().collect::<Vec<_>>().join(" "),
            }),
        }
    }

    /// The script's status and what it says.
    fn call(&self, by_nft: bool, words: &[&str]) -> Result<(i32, String), GoodputError> {
        let mut command = Command::new(&self.script);
        command.args(["--lab", &self.lab]);
        command.args(by_nft.then_some("--nft"));
        command.args(words).stdin(Stdio::null());
        let done = command.output();
        let done = done.map_err(|error| GoodputError::Impair(error.to_string()))?;
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        match done.status.code() {
            Some(0) => Ok((0, String::from_utf8_lossy(&done.stdout).into_owned())),
            Some(CANNOT) => Ok((CANNOT, said)),
            _ => Err(GoodputError::Impair(said)),
        }
    }

    /// Lets every link lose that share: by netem where the kernel has it, otherwise by nftables.
    fn lose(&mut self, loss: Loss) -> Result<(), GoodputError> {
        if loss.per_million == 0 {
            return self.clear();
        }
        let share = loss.to_string();
        let words = ["all", "loss", &share];
        match self.call(self.by_nft, &words)? {
            (0, _) => Ok(()),
            _ if !self.by_nft => {
                self.by_nft = true;
                match self.call(self.by_nft, &words)? {
                    (0, _) => Ok(()),
                    (_, said) => Err(GoodputError::Impair(said)),
                }
            }
            (_, said) => Err(GoodputError::Impair(said)),
        }
    }

    /// Ends all impairments, of netem and of nftables.
    fn clear(&self) -> Result<(), GoodputError> {
        self.call(false, &["all", "clear"]).map(|_| ())
    }
}

impl Drop for Impaired {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            phitwire_nodes::output::complain(&format!(
                "{error}; `impair.sh --lab {} all clear` ends the impairment",
                self.lab
            ));
        }
    }
}

/// Measures at each loss, row by row, and puts the links back.
///
/// # Errors
/// See [`GoodputError`].
pub fn run(
    options: &GoodputOptions,
    lab: &mut dyn Lab,
    stop: &Stop,
    mut run_number: impl FnMut() -> u64,
    mut show: impl FnMut(&str, &GoodputRow),
) -> Result<Ending, GoodputError> {
    let benchmark = Benchmark::Bandwidth(options.pair());
    let suite = PointSuite::new(&benchmark, lab)?;
    let plan = suite.plan();
    let who = format!("{}, window {}", plan.describe(), plan.window);
    let mut impaired = Impaired::new(&options.common.lab)?;
    let mut ending = Ending::Clean;
    for &loss in &options.loss {
        impaired.lose(loss)?;
        let done = suite.run(lab, stop, &mut run_number, |row| {
            let row = GoodputRow {
                loss_percent: loss.percent(),
                row: PointRow {
                    benchmark: "goodput",
                    ..row.clone()
                },
            };
            show(&who, &row);
        })?;
        match done {
            Ending::Clean => {}
            Ending::Damaged => ending = Ending::Damaged,
            Ending::Interrupted => return Ok(Ending::Interrupted),
        }
    }
    Ok(ending)
}
