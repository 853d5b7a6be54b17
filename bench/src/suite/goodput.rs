//! Bandwidth over links that lose frames. Impairs the lab's links, measures, and restores them.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use phitwire_nodes::stop::Stop;
use phitwire_tools::cli::scripts;
use schemars::JsonSchema;
use serde::Serialize;
use thiserror::Error;

use super::Ending;
use super::options::{Benchmark, GoodputOptions, Loss};
use super::point::{PointRow, PointSuite};
use crate::msgrate::{Lab, RunError};

/// Exit status of the scripts if this machine does not support the impairment.
const CANNOT: i32 = 4;

/// A row of the table; the names are those of the JSON output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GoodputRow {
    /// Percentage of frames that each link drops, in each direction.
    pub loss_percent: f64,
    #[serde(flatten)]
    pub row: PointRow,
}

/// Why nothing was measured, or the measurement was cut short.
#[derive(Debug, Error)]
pub enum GoodputError {
    /// The scripts were not found.
    #[error("{0}")]
    Scripts(String),
    /// The script failed with this error.
    #[error("cannot impair links: {0}")]
    Impair(String),
    /// The links are impaired already, and would not be restored.
    #[error(
        "links of lab `{lab}` are already impaired ({what}), and this run would replace that; \
         `impair.sh --lab {lab} all clear` removes it"
    )]
    Impaired { lab: String, what: String },
    /// The measurement failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The impairment of all links of a lab. Dropping it removes the impairment.
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

    /// Calls the script. Returns its status and output.
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

    /// Makes every link drop this share of frames, by netem if the kernel has it, otherwise by
    /// nftables.
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

    /// Removes all impairments, of netem and of nftables.
    fn clear(&self) -> Result<(), GoodputError> {
        self.call(false, &["all", "clear"]).map(|_| ())
    }
}

impl Drop for Impaired {
    fn drop(&mut self) {
        if let Err(error) = self.clear() {
            phitwire_nodes::output::print_error(&format!(
                "{error}; `impair.sh --lab {} all clear` removes the impairment",
                self.lab
            ));
        }
    }
}

/// Measures at each loss rate, one row after the other, and restores the links.
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
