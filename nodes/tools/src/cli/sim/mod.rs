//! `phitwire sim`: a network in virtual time.

mod config;
mod config_file;
mod files;
mod given;
mod loads;
mod memory;
mod messages;
mod own;
mod point;

use std::path::PathBuf;
use std::process::ExitCode;

use crate::description;
use crate::machines::machines;
use clap::{Args, ValueEnum};
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::catalogue::Simulation;
use phitwire::link::impair::Netem;
use phitwire::net::Network;
use phitwire::sim::direct::{
    Config, Fault, Links, Load, Pattern, PatternError, Process, Simulator, Traffic, Warmup,
};
use phitwire::sim::tap::Tap;
use phitwire_nodes::nearest::did_you_mean;
use phitwire_nodes::output::{NOT_READ, end_with_reader, print_error, print_if_read};

pub use config::with_config;
use given::GivenOptions;
use loads::{Loads, parse_loads};
use messages::MessageOptions;
use own::{OwnOptions, simulations};
use point::Point;

use super::capture;
use super::progress::Shown;
use super::sim_record::RecordOptions;
use super::sim_trace::SimTraceArgs;
use crate::sim::json::{self, Common};
use crate::sim::{Measured, measure, output};
use crate::trace::Trace;

/// Longest phase, in cycles: 20 minutes of virtual time.
const MOST_CYCLES: u64 = 1_000_000_000_000;
/// Limit of an automatic measurement, as a multiple of the default length.
const LONGEST: u64 = 8;

/// Simulate a network in virtual time.
///
/// Cycles are those of the machine's routers. Load is the fraction of a port's rate that every
/// processor offers, counting all phits (flits) of its packets and of replies.
#[derive(Args, Debug)]
pub struct SimArgs {
    // Must be the first field: it reads the arguments before the others consume them.
    #[command(flatten)]
    given: GivenOptions,
    #[arg(help = networks())]
    topology: String,
    /// Take options from a file, a line each: `OPTION = VALUE` (TOML), with the long names of these
    /// options and `topology`. The output of --json is such a file. Options on the command line
    /// replace those of the file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Traffic pattern. On all networks: uniform, bit-complement, transpose, bit-reverse, shuffle,
    /// permutation, tornado, neighbour, diagonal, asymmetric, hotspot[:TARGET,...[:PERCENT]]. On
    /// BlackWidow networks also row-adversary; on Aries networks also group-adversarial; on T3E
    /// networks also patterns by coordinates: grid-transpose, grid-reversal, grid-rotation,
    /// grid-complement, grid-tornado, grid-opposite, grid-bit-reverse, grid-shuffle
    #[arg(long, default_value = "uniform", value_parser = parse_pattern)]
    traffic: Pattern,
    /// Only the first N processors send and receive [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    participants: Option<u32>,
    /// Loads, separated by commas: numbers, or FROM..TO:STEP
    #[arg(long, value_parser = parse_loads, default_value = "0.3")]
    load: Loads,
    #[arg(long, value_name = "B", help = message_sizes(),
          value_parser = clap::value_parser!(u8).range(1..=largest_message()))]
    message_bytes: Option<u8>,
    /// Answer each request, and measure until the answer arrives
    #[arg(long)]
    request_reply: bool,
    /// Arrival process of packets
    #[arg(long, value_enum, default_value_t)]
    process: ProcessName,
    /// Warm-up cycles before the measurement [default: until latency and accepted load are steady]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(0..=MOST_CYCLES))]
    warmup: Option<u64>,
    /// Cycles to measure [default: 10000, and up to 80000 until a steady state or saturation is
    /// known]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=MOST_CYCLES))]
    measure: Option<u64>,
    /// Cycles to wait for measured packets to arrive afterwards
    #[arg(long, value_name = "N", default_value_t = Config::default().drain_cycles,
          value_parser = clap::value_parser!(u64).range(0..=MOST_CYCLES))]
    drain: u64,
    #[command(flatten)]
    own: OwnOptions,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run N seeds, starting with --seed, and report confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Threads; results do not depend on their number [default: all processors]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Whether links pass phits directly (direct) or carry them in frames between link control
    /// blocks (encoded) [default: direct if the machine supports it, or encoded with --netem]
    #[arg(long, value_enum)]
    links: Option<LinksName>,
    /// Impair every direction of every link, in the words of tc netem, such as "loss 1% delay 10us"
    #[arg(long, value_name = "WORDS", value_parser = parse_netem)]
    netem: Option<Netem>,
    /// Inject a fault and repair it: "link NUMBER down at TIME for TIME" or "router NAME down at
    /// TIME"; without `for` it is permanent, which encoded links do not support. May be repeated
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    #[command(flatten)]
    traced: SimTraceArgs,
    /// Print JSON: an object, or an array for several loads
    #[arg(long)]
    json: bool,
    /// Write CSV
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    record: RecordOptions,
    /// Plot latency and accepted load against offered load
    #[arg(long, value_name = "FILE.svg", value_parser = files::picture())]
    plot: Option<PathBuf>,
    /// Write the latencies in HdrHistogram's text format, in cycles; for several points one file
    /// each, with the load in its name
    #[arg(long, value_name = "FILE.hgrm")]
    hgrm: Option<PathBuf>,
    /// Write the frames of all links to a file for Wireshark, as their senders emit them. Requires
    /// encoded links and a single run (one load, one seed); uses one thread
    #[arg(long, value_name = "FILE.pcapng")]
    capture: Option<PathBuf>,
    #[command(flatten)]
    messages: MessageOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LinksName {
    Direct,
    Encoded,
}

/// The available networks, for the help.
fn networks() -> String {
    let names = machines()
        .machines()
        .iter()
        .map(|machine| machine.networks.names)
        .collect::<Vec<_>>();
    format!(
        "A description, or the name of a ready-made one such as quickstart or pair, or {}",
        names.join("; or ")
    )
}

fn message_sizes() -> String {
    let sizes = simulations().map(|of| format!("{}: {}", of.machine, of.message_bytes));
    let sizes: Vec<String> = sizes.collect();
    format!(
        "Bytes written by each message [default: {}]",
        sizes.join(", ")
    )
}

fn largest_message() -> i64 {
    let all = simulations().map(|machine| machine.max_message_bytes.into());
    all.max().unwrap_or(1)
}

fn parse_pattern(text: &str) -> Result<Pattern, String> {
    let name = text.split(':').next().unwrap_or(text);
    let near = did_you_mean(name, Pattern::names());
    text.parse()
        .map_err(|error: PatternError| format!("{error}{near}"))
}

fn parse_netem(words: &str) -> Result<Netem, String> {
    let wrong = |error| {
        format!(
            "{error} (expected tc netem's words, such as \"loss 1% delay 10us \
                                 2us\")"
        )
    };
    words.parse().map_err(wrong)
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ProcessName {
    #[default]
    Bernoulli,
    OnOff,
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let wrong = || "expected a number from 1 to 1024".to_owned();
    let count = text.parse().map_err(|_| wrong())?;
    (1..=1024)
        .contains(&count)
        .then_some(count)
        .ok_or_else(wrong)
}

impl SimArgs {
    fn links(&self, machine: &Simulation) -> miette::Result<Links> {
        match (self.links, self.netem) {
            (Some(LinksName::Direct), Some(_)) => Err(miette!(
                help = "omit --links, or specify encoded",
                "--netem impairs frames, but direct links carry none"
            )),
            (Some(LinksName::Direct), None) if !machine.has_direct_links => Err(miette!(
                help = "omit --links, or specify encoded",
                "links of {} networks carry frames: only encoded links can be simulated",
                machine.machine
            )),
            (Some(LinksName::Direct), None) => Ok(Links::Direct),
            (None, None) if machine.has_direct_links => Ok(Links::Direct),
            (_, netem) => Ok(Links::Encoded(netem)),
        }
    }

    fn config(&self, machine: &Simulation, load: Load) -> Config {
        let defaults = Config::default();
        Config {
            seed: self.seed,
            traffic: Traffic {
                pattern: self.traffic.clone(),
                participants: self.participants,
                load,
                message_bytes: self.message_bytes.unwrap_or(machine.message_bytes),
                request_reply: self.request_reply,
                process: match self.process {
                    ProcessName::Bernoulli => Process::Bernoulli,
                    ProcessName::OnOff => Process::OnOff,
                },
            },
            warmup: self.warmup.map_or(defaults.warmup, Warmup::Cycles),
            measure_cycles: self.measure.unwrap_or(defaults.measure_cycles),
            most_measure_cycles: match self.measure {
                Some(_) => 0,
                None => LONGEST * defaults.measure_cycles,
            },
            drain_cycles: self.drain,
            faults: self.fault.clone(),
            traced: None,
        }
    }

    /// The lines above a table of points.
    fn heading(&self, machine: &Simulation) -> String {
        let broken = self.fault.iter().map(|fault| format!("with {fault}\n"));
        let heading = output::heading(machine.other_ways);
        format!("{}{heading}\n", broken.collect::<String>())
    }

    /// The part of the output that all loads share.
    fn common(
        &self,
        network: &dyn Network,
        machine: &Simulation,
        chosen: &dyn Simulator,
    ) -> Common {
        let traffic = self.config(machine, Load::FULL).traffic;
        let mut options = self.given.of_run();
        options.insert("message-bytes".to_owned(), traffic.message_bytes.into());
        Common {
            options,
            topology: network.name().to_owned(),
            traffic: self.traffic.to_string(),
            participants: self.participants,
            message_bytes: traffic.message_bytes,
            request_reply: self.request_reply,
            process: traffic.process,
            faults: self.fault.iter().map(ToString::to_string).collect(),
            machine: chosen.about(),
        }
    }
}

/// Runs `phitwire sim`. The exit status is 1 if a checker found a violation.
///
/// # Errors
/// If a topology cannot be read or does not suit the traffic, or a file cannot be written.
pub fn run(args: &SimArgs) -> miette::Result<ExitCode> {
    let network = description::find(&args.topology)?;
    if let Some(op) = args.messages.op {
        return messages::run(args, op, network);
    }
    let network = &*network;
    let (machine, chosen) = args.own.of(network)?;
    let links = args.links(&machine)?;
    files::check(args)?;
    memory::warn(network, links);
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    args.record.check(args.load.all.len() * chosen.len())?;
    let runs = chosen.len() as u64 * args.load.all.len() as u64 * args.seeds;
    let capture = args.capture.as_deref();
    let capture = capture.map(|file| capture::simulated(file, network, links, runs));
    let capture = capture.transpose()?;
    // Use one partition for a capture, since it delivers frames in order of time.
    let threads = if capture.is_some() { 1 } else { threads };
    let leaves_files = files::are_left(args) || args.record.file.is_some();
    if !leaves_files && capture.is_none() {
        end_with_reader().into_diagnostic()?;
    }
    let tap = capture.as_ref().map(|capture| capture.clone() as Tap);
    let links = (links, tap.as_ref());
    let Some(all) = points(args, network, (&machine, &chosen), links, threads)? else {
        return Ok(ExitCode::from(NOT_READ));
    };
    if let Some(capture) = capture {
        capture::finish(&capture)?;
    }
    files::write(args, network, &all)?;
    args.record.print_written();
    for measured in &all {
        let mut late: Vec<_> = measured.reports().flat_map(|r| &r.late_faults).collect();
        late.sort_unstable();
        late.dedup();
        for fault in late {
            let load = measured.load.fraction();
            print_error(&format!(
                "load {load}: `{fault}` starts after the end of the run and had no effect"
            ));
        }
    }
    let mut failed = false;
    let reports = all.iter().flat_map(Measured::reports);
    for violation in reports.flat_map(|report| &report.violations) {
        print_error(&format!("violation: {violation}"));
        failed = true;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Measures and prints all points; `None` if the reader is gone and no file is requested.
fn points(
    args: &SimArgs,
    network: &dyn Network,
    (machine, chosen): (&Simulation, &[Box<dyn Simulator>]),
    links: (Links, Option<&Tap>),
    threads: usize,
) -> miette::Result<Option<Vec<Measured>>> {
    let people = !args.json;
    let wanted = |read: bool| read || files::are_left(args) || args.capture.is_some();
    // Printed once the network is built, so that the reason why it cannot be built stands alone.
    let mut above = args.heading(machine);
    let mut all: Vec<Measured> = Vec::new();
    let mut printed_points = Vec::new();
    let number = chosen.len() * args.load.all.len();
    let traced = args.traced.traced(network, number)?;
    let mut traces = Vec::new();
    let shown = Shown::new("phitwire sim", "{msg:40} {wide_bar} {pos}/{len} {elapsed}");
    for one in chosen {
        let one = &**one;
        let common = args.common(network, machine, one);
        let config = args.config(machine, Load::FULL);
        let bound = one.bound(network, &config).into_diagnostic()?;
        above.extend(one.name().map(|name| format!("{name}\n")));
        for &load in &args.load.all {
            let config = Config {
                traced,
                // Do not extend a traced measurement: the trace covers only the first cycles.
                most_measure_cycles: if traced.is_some() {
                    0
                } else {
                    config.most_measure_cycles
                },
                ..args.config(machine, load)
            };
            let point = Point::new(&shown, (all.len() + 1, number), one.name(), load);
            point.building();
            let mut read = Ok(true);
            let show = |seed, progress| {
                let text = std::mem::take(&mut above);
                if people && !text.is_empty() {
                    read = shown.aside(|| print_text(&text));
                }
                point.show(seed, progress);
            };
            let by = (one, machine.cycle);
            let record = args.record.begin(network, links.0)?;
            let measured = measure(
                by,
                network,
                &config,
                links,
                threads,
                args.seeds,
                record.as_ref(),
                show,
            )
            .into_diagnostic()?;
            args.record.end(record)?;
            if !wanted(read?) {
                return Ok(None);
            }
            let measured = Measured { bound, ..measured };
            let found = measured.found.as_ref();
            traces.extend(args.traced.traces(network, machine.cycle, found)?);
            if !people {
                let mut printed = json::Point::new(&common, &measured);
                printed.traces = traced.map(|_| traces.clone());
                printed_points.push(printed);
            } else if !wanted(
                shown.aside(|| print_text(&format!("{}\n", output::line(&measured))))?,
            ) {
                return Ok(None);
            }
            all.push(measured);
        }
    }
    drop(shown);
    let rest = match people {
        true => below(args, &all, &traces),
        false => printed(printed_points, number == 1 && !args.load.is_sweep)?,
    };
    // Print after all other work, so that a closed reader interrupts nothing else.
    print_text(&rest)?;
    Ok(Some(all))
}

/// The lines below a table of points.
fn below(args: &SimArgs, all: &[Measured], traces: &[Trace]) -> String {
    let mut text: String = all.iter().filter_map(output::warning).collect();
    match args.load.is_sweep {
        true => text.push_str(&output::summary(all)),
        false => text.extend(all.iter().map(|one| format!("\n{}", output::details(one)))),
    }
    text.push_str(&args.traced.text(traces));
    text
}

/// The points as JSON: an object for a single one, otherwise an array.
fn printed(mut points: Vec<json::Point>, is_one: bool) -> miette::Result<String> {
    let points = match points.pop() {
        Some(point) if is_one => json::Points::One(Box::new(point)),
        last => json::Points::Several(points.into_iter().chain(last).collect()),
    };
    super::json(&points)
}

/// Prints to standard output. Returns whether its reader, such as `head`, is still there.
fn print_text(text: &str) -> miette::Result<bool> {
    print_if_read(text)
        .into_diagnostic()
        .wrap_err("cannot write to standard output")
}
