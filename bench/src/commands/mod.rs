//! The measuring tools as commands of `phitwire`: `phitwire msgrate` and `phitwire bench`.
//!
//! Linking the libraries dominates a release build, so there is only one binary. `phitwire-msgrate`
//! and `phitwire-bench` run it under their own names.

use clap::CommandFactory;
use phitwire_tools::cli::Tool;
use phitwire_tools::schema::Output;

use crate::suite::collective::CollectiveRow;
use crate::suite::goodput::GoodputRow;
use crate::suite::point::PointRow;
use crate::suite::units::UnitRow;

mod bench;
mod msgrate;

/// The tools in the form expected by [`phitwire_tools::cli::main`].
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "msgrate",
        about: "Measure the message rate of a running lab, verifying every message",
        command: crate::msgrate::Options::command,
        outputs: &[Output::of::<msgrate::Results>(
            "msgrate",
            1,
            "phitwire-msgrate --json",
            "Message rate of one size, or of several",
        )],
        main: msgrate::main,
    },
    Tool {
        name: "bench",
        about: "Measure latency, bandwidth, random updates and collective operations of a running \
                lab",
        command: crate::suite::Options::command,
        outputs: &[
            Output::of::<Vec<CollectiveRow>>(
                "bench-collectives",
                1,
                "phitwire-bench allreduce|barrier --json",
                "Rows of a benchmark of collective engines",
            ),
            Output::of::<Vec<GoodputRow>>(
                "bench-goodput",
                1,
                "phitwire-bench goodput --json",
                "Rows of bandwidth over losses",
            ),
            Output::of::<Vec<PointRow>>(
                "bench-messages",
                1,
                "phitwire-bench latency|bandwidth|bibw|gups|alltoall --json",
                "Rows of a benchmark made of messages",
            ),
            Output::of::<Vec<UnitRow>>(
                "bench-units",
                1,
                "phitwire-bench barrier --unit|eureka --json",
                "Rows of a benchmark of barrier units",
            ),
        ],
        main: bench::main,
    },
];
