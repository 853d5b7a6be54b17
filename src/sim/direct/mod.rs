//! Virtual time at scale: the cores of routers, connected phit by phit.
//!
//! A [`Simulation`] runs a network cycle by cycle. Direct links, on machines with a
//! [`DirectModel`], pass on phits and credits after a fixed number of cycles, without frames, bytes
//! or loss. Encoded links have complete link control blocks, whose frames may be impaired. The
//! routers are the ones that processes run. Processors are open-loop sources and sinks of synthetic
//! [`Traffic`].
//!
//! # Windows
//!
//! The network runs in *windows* as long as the latency of the shortest link. Phits sent in one
//! window arrive in the next, in the cycle of the same number, or later over a longer link, so
//! within a window no node affects another. Each node therefore runs a whole window while it is in
//! the cache, nodes can run in any order, and a network can be cut into [`Part`]s that run
//! concurrently and exchange mail between windows. An [`Executor`] runs them; [`Serial`] does so
//! without threads. Parts that share no memory exchange bytes ([`mail`], [`byte_parts`]). The trace
//! of a run depends only on topology and configuration.
//!
//! Idle nodes are skipped: bit masks and a calendar name the busy ones.
//!
//! # Phases
//!
//! A run warms up until latency and accepted load are steady, measures the packets born in an
//! interval, drains until they have arrived while traffic continues, then stops the sources and
//! waits until the network is empty. The checkers compare what was sent with what arrived, and
//! every credit with what it stands for. `docs/guide/src/virtual-time.md` describes the cost of
//! each stage and the meaning of the figures.

pub mod build;
pub mod byte_parts;
pub mod check;
pub mod config;
pub mod direct_part;
pub mod encoded;
pub mod endpoints;
pub mod exchange;
pub(crate) mod executor;
pub(crate) mod fault;
pub(crate) mod grid;
pub(crate) mod in_flight;
pub mod mail;
mod mailboxes;
pub(crate) mod message_trace;
pub mod model;
pub mod part;
pub mod parts;
pub mod pattern;
mod phit_mail;
pub mod placement;
pub(crate) mod report;
pub(crate) mod run;
pub mod shared;
pub(crate) mod simulator;
pub mod source;
pub(crate) mod steady;
pub mod summary;
pub(crate) mod tally;
pub(crate) mod watch;

pub use check::Violation;
pub use config::{Config, ConfigError, Load, Process, Traffic, Warmup};
pub use direct_part::DirectPart;
pub use encoded::EncodedPart;
pub use executor::{Executor, Serial, Worker};
pub use fault::{Broken, Fault, FaultError};
pub use grid::{Grid, GridPattern};
pub use message_trace::{Found, Message, MessageTrace, Traced};
pub(crate) use model::DirectModel;
pub use model::{CycleModel, NoDirectLinks};
pub use part::Part;
pub use pattern::{Pattern, PatternError};
pub use report::{Fairness, LatencySummary, LinkUse, Report, StageUse, State, Unsettled};
pub use run::{SimPhase, SimProgress, Simulation};
pub use simulator::{Chosen, Links, Run, Simulator};
pub use tally::Tally;
pub use watch::{EndSnapshot, Snapshot, Watcher};
