//! Message rate of a running lab: `phitwire-msgrate`.
//!
//! The network interfaces make the traffic themselves ([`phitwire::nic::TrafficSpec`]); this tool
//! tells them what to do through their control sockets, watches, and adds up what sources and
//! targets report. A put is an acknowledged remote write whose payload carries a stamp that the
//! target checks: lost, duplicated, corrupted and misordered messages all show. Link counters of
//! every process, taken before and after, tell what the links had to do for it. With `--client`
//! programs at the doors make it instead, and see for themselves ([`measure_programs`]).

mod claim;
mod course;
mod door_error;
mod lab;
pub(crate) mod message;
mod options;
mod outcome;
mod plan;
mod processes;
mod programs;
mod run;
mod table;
mod work;

pub(crate) use claim::holder;
pub use claim::{ClaimError, claim};
pub use door_error::DoorError;
pub use lab::{ControlLab, Lab, LabError, Member, ProcessState, Role, ask};
pub use options::{GapsName, Op, Options, PatternName, RoutingName};
pub use outcome::{Ends, LatencyUs, Pace, RateResult, Unanswered};
pub use plan::Plan;
pub use processes::Fates;
pub use programs::measure_programs;
pub use run::{Clock, RealClock, RunError, RunProgress, measure, run_number};
pub use table::{head, row, standstills, verdict};
pub use work::{Decisions, LinkWork, Work};
