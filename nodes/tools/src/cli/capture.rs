//! `phitwire capture`: records the frames on the links of a running lab, for Wireshark.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use miette::miette;
use phitwire::net::Network;
use phitwire::sim::direct::Links;
use phitwire::text_table::TextTable;
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use phitwire_nodes::stop::Stop;
use schemars::JsonSchema;
use serde::Serialize;

use super::by_signal::ended;
use super::{json, print};
use crate::capture::{
    Capture, CapturePoint, CapturedDirection, End, Filter, Limits, SimulatedCapture, Sink, Until,
    links, tail,
};

#[derive(Debug, Args)]
pub struct CaptureArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Capture only these links: a link id, NODE:PORT, NODE-NODE (every link between the two) or
    /// NODE (every link of the node); may be repeated
    #[arg(long = "link", value_name = "LINK")]
    links: Vec<String>,
    /// Capture only these frames: kinds (data, ack, training, retry) and names of sending nodes,
    /// separated by commas; ack means link control only
    #[arg(long = "filter", value_name = "WORDS")]
    filter: Vec<String>,
    /// Where to capture each direction of a link
    #[arg(long, value_enum, default_value_t = CapturePoint::Sender)]
    at: CapturePoint,
    /// Output file, overwritten if it exists; `-` is standard output
    #[arg(short = 'w', long = "write", value_name = "FILE.pcapng")]
    file: PathBuf,
    /// Stop after this many seconds
    #[arg(long)]
    seconds: Option<f64>,
    /// Stop after this many frames
    #[arg(long, value_name = "FRAMES")]
    count: Option<u64>,
    /// Maximum file size, after which the capture stops; suffixes k, M and G mean 1,000, 10^6 and
    /// 10^9. Standard output is unlimited by default
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_bytes: Option<u64>,
    /// Write a ring of this many files of --max-bytes each, FILE-00001.pcapng and so on; a new file
    /// replaces the oldest
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    files: u16,
    /// Print the result of each direction as JSON
    #[arg(long)]
    json: bool,
}

/// The result, as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Summary {
    /// Version of this schema.
    version: u32,
    /// The file written.
    file: String,
    /// Bytes of the file.
    bytes: u64,
    /// Frames written.
    frames: u64,
    /// Frames that the capture missed because it was too slow. Frames that the link lost are not
    /// among them.
    missed: u64,
    /// Why the capture ended.
    end: &'static str,
    /// Each direction of each link.
    directions: Vec<Direction>,
}

/// A direction of a link.
#[derive(Serialize, JsonSchema)]
struct Direction {
    /// `LINK:FROM->TO`.
    name: String,
    /// Frames written.
    frames: u64,
    /// Packets, or sets of flits, that were resent.
    retries: u64,
    /// Frames that the capture missed because it was too slow. Frames that the link lost are not
    /// among them.
    missed: u64,
}

/// Default limit of a file, which keeps a forgotten capture from filling the disk.
const DEFAULT_BYTES: u64 = 1_000_000_000;

/// The version of the JSON. 2: `missed` instead of `dropped`.
const VERSION: u32 = 2;

fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let number: Option<u64> = digits.parse().ok();
    let bytes = number.and_then(|number| number.checked_mul(unit));
    bytes.ok_or_else(|| {
        "expected a number, optionally followed by k, M or G, such as 500M".to_owned()
    })
}

pub fn run(args: &CaptureArgs) -> miette::Result<ExitCode> {
    let is_output = args.file == Path::new("-");
    if is_output && args.json {
        return Err(miette!(
            "--json and the capture cannot both go to standard output: specify a file for the \
             capture"
        ));
    }
    let time = args.seconds.map(Duration::try_from_secs_f64).transpose();
    let time = time.map_err(|_| {
        miette!(
            "invalid --seconds: expected a non-negative number of \
                                         seconds"
        )
    })?;
    let dir = LabDir::new(&args.lab).map_err(|error| miette!("{error}"))?;
    let links = links(&dir, &args.links).map_err(|error| miette!("{error}"))?;
    let filter = Filter::new(&args.filter, &links).map_err(|error| miette!("{error}"))?;
    let stop = Stop::at_signals().map_err(|error| miette!("cannot wait for signals: {error}"))?;
    let opened = Capture::open(&args.lab, &links, args.at, &filter);
    let (mut capture, gone) = opened.map_err(|error| miette!("{error}"))?;
    if !gone.is_empty() {
        let gone = gone.join(", ");
        output::print_error(&format!("skipping deleted interfaces: {gone}"));
    }
    let bytes = match args.max_bytes {
        Some(bytes) => bytes,
        None if is_output => u64::MAX,
        None => DEFAULT_BYTES,
    };
    let limits = Limits {
        bytes,
        files: args.files.into(),
    };
    let directions = capture.heard().len();
    let sink = Sink::new(&args.file, capture.head(), tail(directions), limits);
    let mut sink = sink.map_err(|error| miette!("{error}"))?;
    let (count, file) = (links.len(), args.file.display());
    output::print_error(&format!(
        "capturing {directions} directions of {count} links into {file}"
    ));
    let until = Until {
        time,
        frames: args.count,
    };
    let ran = capture.run(&mut sink, &filter, until, &stop);
    let ran = ran.map_err(|error| miette!("{error}"))?;
    summary(args, &capture, &sink, ran.as_ref().ok())?;
    let end = ran.map_err(|error| miette!("{error}"))?;
    if end == End::Full && args.max_bytes.is_none() {
        output::print_error(&format!(
            "the capture stops at {DEFAULT_BYTES} bytes; --max-bytes raises the limit"
        ));
    }
    Ok(match end {
        End::Asked => ended(args.seconds.is_some() || args.count.is_some()),
        _ => ExitCode::SUCCESS,
    })
}

/// Prints the results of each direction; to standard error if the capture goes to standard output.
fn summary(
    args: &CaptureArgs,
    capture: &Capture,
    sink: &Sink,
    end: Option<&End>,
) -> miette::Result<()> {
    let heard = capture.heard();
    let frames: u64 = heard.iter().map(|heard| heard.frames).sum();
    let missed: u64 = heard.iter().map(|heard| heard.missed).sum();
    let why = match end {
        Some(End::Asked) => "interrupted by a signal",
        Some(End::Reached) => "reached the requested limit",
        Some(End::Full) => "the file is full",
        Some(End::Unread) => "the reader is gone",
        Some(End::Gone) => "the lab has been taken down",
        None => "cannot write the file",
    };
    if args.json {
        let direction = |heard: &CapturedDirection| Direction {
            name: heard.name.clone(),
            frames: heard.frames,
            retries: heard.retries,
            missed: heard.missed,
        };
        print(&json(&Summary {
            version: VERSION,
            file: sink.file().display().to_string(),
            bytes: sink.written(),
            frames,
            missed,
            end: why,
            directions: heard.iter().map(direction).collect(),
        })?)?;
        return Ok(());
    }
    let mut table = TextTable::new(&["direction", "frames", "retries", "missed"]);
    for heard in heard {
        let numbers = [heard.frames, heard.retries, heard.missed];
        let [frames, retries, missed] = numbers.map(|number| number.to_string());
        table.row([heard.name.clone(), frames, retries, missed]);
    }
    let (text, bytes, file) = (table.render(), sink.written(), sink.file().display());
    output::print_error(&format!(
        "{text}{frames} frames, {bytes} bytes written to {file}; the capture missed {missed} \
         frames; {why}"
    ));
    Ok(())
}

/// Opens a capture of one simulated run over encoded links, for `phitwire sim`.
pub fn simulated(
    file: &Path,
    network: &dyn Network,
    links: Links,
    runs: u64,
) -> miette::Result<Arc<SimulatedCapture>> {
    if links == Links::Direct {
        return Err(miette!(
            help = "add --links encoded",
            "--capture records frames, but direct links carry none"
        ));
    }
    if runs != 1 {
        return Err(miette!(
            help = "specify one --load, one seed and one value of each option",
            "--capture records a single run, but these options give {runs}"
        ));
    }
    if file == Path::new("-") {
        return Err(miette!(
            "results go to standard output: specify a file for --capture"
        ));
    }
    let capture = SimulatedCapture::new(file, network, DEFAULT_BYTES);
    let capture = capture.map_err(|error| miette!("{error}"))?;
    Ok(Arc::new(capture))
}

/// Ends the capture, and prints the number of frames.
pub fn finish(capture: &SimulatedCapture) -> miette::Result<()> {
    let (frames, whole) = capture.finish().map_err(|error| miette!("{error}"))?;
    let rest = match whole {
        true => String::new(),
        false => format!("; the rest did not fit in {DEFAULT_BYTES} bytes"),
    };
    output::print_error(&format!("{frames} frames captured{rest}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("12"), Ok(12));
        assert_eq!(parse_bytes("12k"), Ok(12_000));
        assert_eq!(parse_bytes("2G"), Ok(2_000_000_000));
        for bad in ["", "k", "-1", "1.5M", "1T", "99999999999G", "1é"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
