//! Message rate of a running lab: `phitwire-msgrate`.
//!
//! The NICs generate the traffic ([`phitwire::nic::TrafficSpec`]). This tool starts them through
//! their control sockets, polls them, and sums up the reports of sources and targets. A put is an
//! acknowledged remote write whose payload carries a stamp that the target checks, so lost,
//! duplicated, corrupted and misordered messages are all detected. Link counters of every process,
//! read before and after, show the work of the links. With `--client`, programs at the doors
//! generate and check the traffic ([`measure_programs`]).

mod claim;
mod course;
mod door_error;
mod lab;
mod message;
mod options;
mod outcome;
mod plan;
mod processes;
mod program;
mod programs;
mod receiver;
mod run;
mod table;
mod work;

pub(crate) use claim::holder;
pub use claim::{ClaimError, claim};
pub use door_error::DoorError;
pub use lab::{ControlLab, Lab, LabError, Member, ProcessState, Role, ask};
pub use options::{GapsName, Op, Options, PairOp, PatternName, RoutingName};
pub use outcome::{Ends, LatencyUs, Pace, RateResult, Unanswered};
pub use plan::Plan;
pub use processes::Fates;
pub use programs::{measure_programs, measure_shared, sizes_between_programs};
pub use run::{Clock, RealClock, RunError, RunProgress, measure, run_number};
pub use table::{head, row, standstills, verdict};
pub use work::{Decisions, LinkWork, Work};
