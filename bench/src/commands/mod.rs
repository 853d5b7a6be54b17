//! The measuring tools as commands of `phitwire`: `phitwire msgrate` and `phitwire bench`.
//!
//! Linking the libraries dominates a release build, so there is only one binary. `phitwire-msgrate`
//! and `phitwire-bench` run it under their own names.

use clap::CommandFactory;
use phitwire_tools::cli::Tool;

mod bench;
mod msgrate;

/// The tools, in the form that [`phitwire_tools::cli::main`] takes.
pub const TOOLS: &[Tool] = &[
    Tool {
        name: "msgrate",
        about: "Measure the message rate of a running lab, verifying every message",
        command: crate::msgrate::Options::command,
        outputs: &[],
        main: msgrate::main,
    },
    Tool {
        name: "bench",
        about: "Measure latency, bandwidth, random updates and collective operations of a running lab",
        command: crate::suite::Options::command,
        outputs: &[],
        main: bench::main,
    },
];
