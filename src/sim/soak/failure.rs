//! What did not hold.

use core::fmt;

use thiserror::Error;

use crate::device::DeviceError;
use crate::net::PlanError;
use crate::nic::{BarrierReport, CollectiveReport, TrafficReport};
use crate::sim::check::Violation;
use crate::sim::direct::{ConfigError, Report};
use crate::sim::world::{BarrierError, WorldError};
use crate::time::Duration;

/// What did not hold.
#[derive(Debug, Error)]
pub enum Failure {
    /// The specification is no network.
    #[error("no network: {0}")]
    Topology(String),
    /// The topology does not become a network in virtual time.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A run cannot be, or a link cannot suffer what it should.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Barriers do not begin.
    #[error(transparent)]
    Barriers(#[from] BarrierError),
    /// Links that must be up are not.
    #[error("{when}, not all links are up\n{links}")]
    LinksDown {
        /// At which point.
        when: &'static str,
        /// The link ends.
        links: String,
    },
    /// A run did not end.
    #[error("run {run} has not ended {} ms after the last harm: {came_to}", limit.as_ns() / 1_000_000)]
    Endless {
        /// The run.
        run: u64,
        /// How long it was waited for.
        limit: Duration,
        /// What it had come to.
        came_to: Box<CameTo>,
    },
    /// A checker found something.
    #[error("run {run}: {}\n{came_to}", lines(violations))]
    Violations {
        /// The run.
        run: u64,
        /// What was found.
        violations: Vec<Violation>,
        /// What the run came to.
        came_to: Box<CameTo>,
    },
    /// The tables of what the cuts leave are wrong.
    #[error("the route tables are wrong: {0}")]
    Routes(String),
    /// A run in direct mode cannot begin.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A checker of direct mode found something.
    #[error("{}\n{report:#?}", lines(&report.violations))]
    Direct {
        /// What the run came to.
        report: Box<Report>,
    },
    /// Partitions made a difference.
    #[error("{partitions} partitions leave the trace {theirs:016x} instead of {ours:016x}")]
    Partitions {
        /// Their number.
        partitions: usize,
        /// Trace of one.
        ours: u64,
        /// Theirs.
        theirs: u64,
    },
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::World(error.into())
    }
}

/// What a run came to, and how the network stands.
#[derive(Clone, Debug)]
pub struct CameTo {
    /// The traffic.
    pub(crate) report: TrafficReport,
    /// The collective operations beside it.
    pub(crate) collectives: Option<CollectiveReport>,
    /// The barriers beside it, unit by unit.
    pub(crate) barriers: Vec<BarrierReport>,
    /// The link ends.
    pub(crate) links: String,
}

impl fmt::Display for CameTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:#?}", self.report)?;
        if let Some(report) = &self.collectives {
            writeln!(f, "{report:#?}")?;
        }
        for report in &self.barriers {
            writeln!(f, "{report:#?}")?;
        }
        f.write_str(&self.links)
    }
}

fn lines<V: fmt::Display>(violations: &[V]) -> String {
    let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
    texts.join("\n")
}
