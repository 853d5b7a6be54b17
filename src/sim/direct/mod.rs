//! Virtual time at scale: the routers' own cores, joined phit to phit.
//!
//! A [`Simulation`] runs a network cycle by cycle. Links hand phits and credits over after a fixed
//! number of cycles, without frames and bytes, where the machine has a [`DirectModel`]; nothing is
//! lost on them. Or they are encoded: whole link control blocks, whose frames may be impaired. The
//! routers are the machine's own, the same that processes run. Processors are open-loop sources and
//! sinks of synthetic [`Traffic`].
//!
//! # Windows
//!
//! The network runs in *windows* of as many cycles as a link takes. What is sent in one window
//! arrives in the next, in the cycle of the same number, so that within a window no node can hear
//! of another. Each node therefore runs a whole window at a time while it is in the cache, nodes
//! can run in any order, and a network can be cut into [`Partition`]s that run at the same time and
//! exchange mail between windows. An [`Executor`] does that; [`Serial`] without threads. The trace
//! of a run depends on topology and configuration alone.
//!
//! Nodes without anything to do are not looked at: bit masks and a calendar name those that have.
//!
//! # Phases
//!
//! A run warms up until latency and accepted load are steady, measures the packets born in an
//! interval, drains until they have arrived while traffic goes on, and then stops the sources and
//! waits until the network is empty. The checkers compare what was sent with what arrived, and
//! every credit with what it stands for. `docs/guide/src/virtual-time.md` says what each stage costs and what
//! the figures mean.

pub mod build;
pub mod check;
pub(crate) mod coming;
pub mod config;
pub mod encoded;
pub mod exchange;
pub(crate) mod executor;
pub(crate) mod fault;
pub(crate) mod grid;
pub mod model;
pub mod partition;
pub mod pattern;
pub mod places;
pub(crate) mod report;
pub(crate) mod run;
pub mod shared;
pub(crate) mod simulator;
pub mod source;
pub(crate) mod steady;
pub(crate) mod tally;
pub(crate) mod watch;
pub(crate) mod witness;

pub use check::Violation;
pub use config::{Config, ConfigError, Load, Process, Traffic, Warmup};
pub use executor::{Executor, Serial, Worker};
pub use fault::{Broken, Fault, FaultError};
pub use grid::{Grid, GridPattern};
pub use model::CycleModel;
pub(crate) use model::{DirectModel, NoDirectLinks};
pub use partition::Partition;
pub use pattern::{Pattern, PatternError};
pub use report::{Fairness, LatencySummary, LinkUse, Report, StageUse, State, Unsettled};
pub use run::{SimPhase, SimProgress, Simulation};
pub use simulator::{Chosen, Links, Run, Simulator};
pub use watch::{EndSnapshot, Snapshot, Watcher};
pub use witness::{Found, Message, Traced};
