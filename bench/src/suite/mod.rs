//! The benchmarks of `phitwire-bench`, in the style of the OSU microbenchmarks, on a running lab.
//!
//! [`point`] has the message benchmarks (latency, bandwidth, random updates, all to all), which
//! [`msgrate`](crate::msgrate) measures and verifies. [`collective`] has those of the NICs'
//! collective engines, whose results every participant verifies. [`units`] has those of the
//! hardware's barrier units, and [`goodput`] bandwidth over lossy links.

use std::process::ExitCode;

use phitwire_nodes::output;

pub mod collective;
pub mod goodput;
mod options;
pub mod point;
mod table;
pub mod units;

pub use options::{
    AllreduceOptions, AlltoallOptions, BarrierOptions, Benchmark, CollectiveOptions, Common,
    EurekaOptions, FileOptions, GoodputOptions, Loss, Options, PairOptions, SetOptions, SizeRange,
};
pub use table::{collective_row, goodput_row, head, point_row, unit_row, verdict};

/// The result of a benchmark, as an exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// No fault was found.
    Clean = 0,
    /// Messages were lost, duplicated or corrupted, or results were incorrect.
    Damaged = 1,
    /// The run was interrupted without damage. The status is the shell's for a command ended by
    /// SIGINT.
    Interrupted = 130,
}

impl Ending {
    /// The exit status of a command; an error is printed.
    pub fn status(done: miette::Result<Self>) -> ExitCode {
        match done {
            Ok(ending) => ExitCode::from(ending as u8),
            Err(report) => {
                output::print_error(&format!("{report:?}"));
                ExitCode::from(2)
            }
        }
    }
}
