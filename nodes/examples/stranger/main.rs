//! A stranger on the wires of a lab: sees the link frames that pass and sends what no peer would.
//!
//! For tests (`tests/netns/attacks.sh`), never installed. It enters the namespaces of a running
//! lab, listens at both ends of the links it is given with packet sockets, and sends frames out of
//! each end, so that every node of these links is attacked. What it sends is as real as can be:
//! Ethernet frames, or IP and UDP with right checksums, from the right addresses, made of the
//! frames that pass at that moment.
//!
//! ```text
//! stranger --lab demo --links 0,8 --form copies --delay-ms 50 --share 5 --count 100000
//! ```
//!
//! One line of JSON on stdout says what was sent, by form and end. Status 0 when all of it was.
//!
//! It does not guess: who can compute a whole frame of the present session with a sequence number
//! that is due can make a link say anything, and no check of these formats is meant to keep them
//! from it.

mod forge;
mod options;
mod plan;
mod run;
mod wire;

use std::process::ExitCode;

use clap::Parser;
use options::Options;

fn main() -> ExitCode {
    let options = Options::parse();
    match run::run(&options) {
        Ok(report) => {
            println!("{}", report.json(&options));
            if report.is_whole(&options) {
                ExitCode::SUCCESS
            } else {
                eprintln!("stranger: not all was sent within {} s", options.seconds);
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("stranger: {error}");
            ExitCode::from(2)
        }
    }
}
