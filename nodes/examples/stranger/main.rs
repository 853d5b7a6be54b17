//! Attacks the links of a lab: captures the link frames that pass and injects frames that no peer
//! would send.
//!
//! For tests (`tests/netns/attacks.sh`), never installed. It enters the namespaces of a running
//! lab, listens at both ends of the given links with packet sockets, and sends frames out of each
//! end, so that every node of these links is attacked. The frames are as realistic as possible:
//! Ethernet frames, or IP and UDP with correct checksums, from the right addresses, made from the
//! frames that pass at that moment.
//!
//! ```text
//! stranger --lab demo --links 0,8 --form copies --delay-ms 50 --share 5 --count 100000
//! ```
//!
//! It reports the frames sent as one line of JSON on stdout, by form and end. The exit status is 0
//! when all of them were sent.
//!
//! It does not guess. An attacker that can compute a whole frame of the present session with a
//! valid sequence number can make a link accept anything, and no check of these formats is meant to
//! prevent that.

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
