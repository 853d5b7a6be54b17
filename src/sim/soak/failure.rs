//! Failures of a case.

use core::fmt;

use thiserror::Error;

use crate::device::DeviceError;
use crate::net::PlanError;
use crate::nic::{BarrierReport, CollectiveReport, TrafficReport};
use crate::sim::check::Violation;
use crate::sim::direct::{ConfigError, Report};
use crate::sim::world::{BarrierError, WorldError};
use crate::time::Duration;

/// Why a soak case failed.
#[derive(Debug, Error)]
pub enum Failure {
    #[error("cannot build the network: {0}")]
    Topology(String),
    /// The topology could not become a world.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A run is not possible, or a link does not support a fault.
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error(transparent)]
    Barriers(#[from] BarrierError),
    #[error("{when}, some links are down\n{links}")]
    LinksDown {
        when: &'static str,
        /// State of the link ends.
        links: String,
    },
    #[error(
        "run {run} did not end within {} ms after the last fault: {outcome}",
        limit.as_ns() / 1_000_000
    )]
    Endless {
        run: u64,
        /// Time allowed for the run after the last harm.
        limit: Duration,
        outcome: Box<Outcome>,
    },
    #[error("run {run}: {}\n{outcome}", lines(violations))]
    Violations {
        run: u64,
        violations: Vec<Violation>,
        outcome: Box<Outcome>,
    },
    #[error("wrong route tables: {0}")]
    Routes(String),
    /// A run in direct mode cannot start.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A checker of direct mode found violations.
    #[error("{}\n{report:#?}", lines(&report.violations))]
    Direct { report: Box<Report> },
    /// The number of partitions changed the result.
    #[error("{partitions} partitions produce trace {theirs:016x} instead of {ours:016x}")]
    Partitions {
        partitions: usize,
        /// Trace hash with one partition.
        ours: u64,
        /// Trace hash with `partitions` partitions.
        theirs: u64,
    },
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        Self::World(error.into())
    }
}

/// The results of a run, and the final state of the network.
#[derive(Clone, Debug)]
pub struct Outcome {
    pub(crate) report: TrafficReport,
    pub(crate) collectives: Option<CollectiveReport>,
    /// The concurrent barriers, by unit.
    pub(crate) barriers: Vec<BarrierReport>,
    /// State of the link ends.
    pub(crate) links: String,
}

impl fmt::Display for Outcome {
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
