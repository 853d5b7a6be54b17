//! The benchmarks of `phitwire-bench`, in the manner of the OSU microbenchmarks, on a running lab.
//!
//! [`point`] are those made of messages (latency, bandwidth, random updates, all to all), which
//! [`msgrate`](crate::msgrate) measures and verifies; [`collective`] are those that the collective
//! engines of network interfaces carry out, whose results every participant verifies; [`units`]
//! those that barrier units of the hardware carry out; [`goodput`] is bandwidth over links that lose
//! frames; [`programs`] those of programs at doors.

use std::process::ExitCode;

use phitwire_nodes::output;

pub mod collective;
pub mod goodput;
mod options;
pub mod point;
pub mod programs;
mod table;
pub mod units;

pub use options::{
    AllreduceOptions, AlltoallOptions, BarrierOptions, Benchmark, CollectiveOptions, Common,
    EurekaOptions, FileOptions, GoodputOptions, Loss, Options, PairOp, PairOptions, SetOptions,
    SizeRange,
};
pub use table::{collective_row, goodput_row, head, point_row, unit_row, verdict};

/// How a benchmark came out, for the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everything was as it should be.
    Clean = 0,
    /// Something was lost, duplicated, corrupted or wrong.
    Damaged = 1,
    /// Clean as far as it went; the status is that of a shell's command that SIGINT ended.
    Interrupted = 130,
}

impl Ending {
    /// The exit status of a command that came to this end, or to none: then the reason is told.
    pub fn status(done: miette::Result<Self>) -> ExitCode {
        match done {
            Ok(ending) => ExitCode::from(ending as u8),
            Err(report) => {
                output::complain(&format!("{report:?}"));
                ExitCode::from(2)
            }
        }
    }
}
