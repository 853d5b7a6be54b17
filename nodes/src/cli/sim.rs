//! `phitwire sim`: a network in virtual time.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::chip::Grain;
use phitwire::link::impair::Netem;
use phitwire::machine::Known;
use phitwire::machine::aries::cycle::{AriesOptions, MAX_ARIES_MESSAGE_BYTES};
use phitwire::net::Network;
use phitwire::sim::direct::{
    Config, Fault, Load, MAX_LINK_CYCLES, Pattern, Phase, Process, Progress, Traffic, Warmup,
};
use phitwire_framing::flit48::Routing;
use serde_json::{Map, Value, json};

use super::grain::GrainName;
use super::progress::Shown;
use crate::output::{NOT_READ, complain, end_with_reader, print_if_read};
use crate::sim::{Links, Measured, measure, output, plot, ready};

/// Points of a sweep at most.
const MOST_POINTS: usize = 10_000;
/// Cycles of a phase at most: 20 minutes of virtual time.
const MOST_CYCLES: u64 = 1_000_000_000_000;

/// Simulate a network in virtual time.
///
/// Cycles are those of the router, 1.25 ns, or 1.143 ns of Aries. Load is the fraction of a port's phit rate that every
/// processor offers, all phits (flits) of its packets and of replies counted; a NIC of Aries has two flits per cycle.
#[derive(Args, Debug)]
pub struct SimArgs {
    /// A description, or the name of a ready one: yarc-64, aries-3x4, or RANK-PROCESSORS such as r1.5-288, r2-1024,
    /// or aries-GROUPSxCHASSISxBLADESxNICS[:LINKS between each pair of groups] such as aries-9x4x2x4
    topology: String,
    /// Who sends to whom: uniform, bit-complement, transpose, bit-reverse, shuffle, permutation,
    /// tornado, neighbour, diagonal, asymmetric, hotspot[:TARGET,...[:PERCENT]], row-adversary, group-adversarial
    #[arg(long, default_value = "uniform")]
    traffic: Pattern,
    /// Only the first N processors send and receive [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    participants: Option<u32>,
    /// One load or FROM..TO:STEP
    #[arg(long, value_parser = parse_loads, default_value = "0.3")]
    load: Loads,
    /// Bytes that each message writes [default: 16, packets of 13 phits, the machine's average; Aries: 64, 14 flits]
    #[arg(long, value_name = "B",
          value_parser = clap::value_parser!(u8).range(1..=MAX_ARIES_MESSAGE_BYTES as i64))]
    message_bytes: Option<u8>,
    /// Answer each request, and measure until the answer is there
    #[arg(long)]
    request_reply: bool,
    /// When packets are made
    #[arg(long, value_enum, default_value_t)]
    process: ProcessName,
    /// Cycles before the measurement [default: until latency and accepted load are steady]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(0..=MOST_CYCLES))]
    warmup: Option<u64>,
    /// Cycles of the measurement
    #[arg(long, value_name = "N", default_value_t = Config::default().measure_cycles,
          value_parser = clap::value_parser!(u64).range(1..=MOST_CYCLES))]
    measure: u64,
    /// Cycles that the measured packets have to arrive in afterwards
    #[arg(long, value_name = "N", default_value_t = Config::default().drain_cycles,
          value_parser = clap::value_parser!(u64).range(0..=MOST_CYCLES))]
    drain: u64,
    /// Cycles that a phit travels on a link whose length the description does not say [default: 20; Aries' links: see
    /// --metres]
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=MAX_LINK_CYCLES as i64))]
    link_cycles: Option<u32>,
    /// Aries: how ways are chosen, one or several to compare: adaptive0 to adaptive3, minimal, valiant, ordered,
    /// ordered-non-minimal [default: adaptive0]
    #[arg(long, value_name = "MODE,...", value_delimiter = ',', value_enum)]
    routing: Vec<RoutingName>,
    /// Aries: what moves through the routers at once: flits, as on the chip, or whole packets, as processes have it by
    /// default [default: flit]
    #[arg(long, value_enum)]
    grain: Option<GrainName>,
    /// Aries: metres of cable of green, black and blue links, at 5 ns each [default: 1,3,20]
    #[arg(long, value_name = "G,B,O", value_delimiter = ',',
          value_parser = clap::value_parser!(u32).range(1..=200))]
    metres: Vec<u32>,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run so many seeds, from --seed on, and give confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Threads; they change nothing but the time it takes [default: all processors]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Whether links hand phits over (direct) or carry them in frames between link control blocks
    /// (encoded) [default: direct, or encoded with --netem]
    #[arg(long, value_enum)]
    links: Option<LinksName>,
    /// Impair every direction of every link with these words of tc netem, such as "loss 1% delay 10us"
    #[arg(long, value_name = "WORDS", value_parser = parse_netem)]
    netem: Option<Netem>,
    /// Break something while it runs, and mend it: "link NUMBER down at TIME for TIME" or "router NAME down at TIME";
    /// without `for` it stays broken, which over encoded links nothing may. Several times for several faults
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    /// Print JSON: an object, or an array for several loads
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Draw the latency-load curve
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LinksName {
    Direct,
    Encoded,
}

/// Aries' routing modes by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RoutingName {
    Adaptive0,
    Adaptive1,
    Adaptive2,
    Adaptive3,
    Minimal,
    Valiant,
    Ordered,
    OrderedNonMinimal,
}

impl RoutingName {
    const fn routing(self) -> Routing {
        match self {
            Self::Adaptive0 => Routing::Adaptive0,
            Self::Adaptive1 => Routing::Adaptive1,
            Self::Adaptive2 => Routing::Adaptive2,
            Self::Adaptive3 => Routing::Adaptive3,
            Self::Minimal => Routing::Minimal,
            Self::Valiant => Routing::Valiant,
            Self::Ordered => Routing::Ordered,
            Self::OrderedNonMinimal => Routing::OrderedNonMinimal,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Adaptive0 => "adaptive0",
            Self::Adaptive1 => "adaptive1",
            Self::Adaptive2 => "adaptive2",
            Self::Adaptive3 => "adaptive3",
            Self::Minimal => "minimal",
            Self::Valiant => "valiant",
            Self::Ordered => "ordered",
            Self::OrderedNonMinimal => "ordered-non-minimal",
        }
    }
}

fn parse_netem(words: &str) -> Result<Netem, String> {
    let wrong = |error| format!("{error} (tc netem's words: \"loss 1% delay 10us 2us\")");
    words.parse().map_err(wrong)
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum ProcessName {
    #[default]
    Bernoulli,
    OnOff,
}

/// The loads of a run, and whether they were written as a range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Loads {
    all: Vec<Load>,
    is_sweep: bool,
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let wrong = || "a number from 1 to 1024".to_owned();
    let count = text.parse().map_err(|_| wrong())?;
    (1..=1024)
        .contains(&count)
        .then_some(count)
        .ok_or_else(wrong)
}

/// A decimal fraction in millionths, exactly.
fn millionths(text: &str) -> Result<u32, String> {
    let wrong = || format!("`{text}` is no load: above 0 and at most 1, with up to six decimals");
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if rest.len() > 6 || !digits(whole) || !digits(rest) || whole.len() + rest.len() == 0 {
        return Err(wrong());
    }
    let number = format!("0{whole}{rest:0<6}");
    number.parse().map_err(|_| wrong())
}

fn load(text: &str) -> Result<Load, String> {
    Load::from_millionths(millionths(text)?)
        .ok_or_else(|| format!("a load of {text}: it must be above 0 and at most 1"))
}

fn parse_loads(text: &str) -> Result<Loads, String> {
    let Some((from, rest)) = text.split_once("..") else {
        return Ok(Loads {
            all: vec![load(text)?],
            is_sweep: false,
        });
    };
    let (to, step) = rest
        .split_once(':')
        .ok_or_else(|| format!("`{text}` has no step: write FROM..TO:STEP"))?;
    let (from, to, step) = (load(from)?, load(to)?, load(step)?);
    let mut all = Vec::new();
    let mut next = from.millionths();
    while next <= to.millionths() {
        if all.len() == MOST_POINTS {
            return Err(format!("more than {MOST_POINTS} loads"));
        }
        all.extend(Load::from_millionths(next));
        next += step.millionths();
    }
    if all.is_empty() {
        return Err(format!("no load lies in {text}"));
    }
    Ok(Loads {
        all,
        is_sweep: true,
    })
}

impl SimArgs {
    /// Refuses options of the other family; the routing modes to run, `None` where there is no choice.
    fn modes(&self, network: &dyn Network) -> miette::Result<Vec<Option<RoutingName>>> {
        let other = |option, family| Err(miette!("{option} is for {family} networks only"));
        match Known::of(network) {
            Known::Blackwidow(_) if !self.routing.is_empty() => other("--routing", "Aries"),
            Known::Blackwidow(_) if !self.metres.is_empty() => other("--metres", "Aries"),
            Known::Blackwidow(_) if self.grain == Some(GrainName::Packet) => Err(miette!(
                "--grain packet is for Aries networks: a YARC sends phits on before their packet is whole"
            )),
            Known::Blackwidow(_) => Ok(vec![None]),
            Known::Aries(_) if self.link_cycles.is_some() => Err(miette!(
                help = "--metres says how long cables are",
                "--link-cycles is for BlackWidow networks only"
            )),
            Known::Aries(_) if ![0, 3].contains(&self.metres.len()) => Err(miette!(
                "--metres takes three lengths: green, black and blue"
            )),
            Known::Aries(_) if self.routing.is_empty() => Ok(vec![Some(RoutingName::Adaptive0)]),
            Known::Aries(_) => Ok(self.routing.iter().copied().map(Some).collect()),
        }
    }

    fn links(&self) -> miette::Result<Links> {
        match (self.links, self.netem) {
            (Some(LinksName::Direct), Some(_)) => Err(miette!(
                help = "leave --links out, or name encoded",
                "--netem impairs frames, and direct links have none"
            )),
            (Some(LinksName::Direct) | None, None) => Ok(Links::Direct),
            (_, netem) => Ok(Links::Encoded(netem)),
        }
    }

    fn message_bytes(&self, network: &dyn Network) -> u8 {
        let default = match Known::of(network) {
            Known::Blackwidow(_) => Traffic::default().message_bytes,
            Known::Aries(_) => MAX_ARIES_MESSAGE_BYTES,
        };
        self.message_bytes.unwrap_or(default)
    }

    fn config(&self, network: &dyn Network, mode: Option<RoutingName>, load: Load) -> Config {
        let defaults = Config::default();
        let metres = <[u32; 3]>::try_from(&self.metres[..]).unwrap_or(AriesOptions::METRES);
        let routing = mode.map_or(Routing::default(), RoutingName::routing);
        Config {
            seed: self.seed,
            traffic: Traffic {
                pattern: self.traffic.clone(),
                participants: self.participants,
                load,
                message_bytes: self.message_bytes(network),
                request_reply: self.request_reply,
                process: match self.process {
                    ProcessName::Bernoulli => Process::Bernoulli,
                    ProcessName::OnOff => Process::OnOff,
                },
            },
            link_cycles: self.link_cycles.unwrap_or(defaults.link_cycles),
            warmup: self.warmup.map_or(defaults.warmup, Warmup::Cycles),
            measure_cycles: self.measure,
            drain_cycles: self.drain,
            faults: self.fault.clone(),
            aries: AriesOptions {
                grain: self.grain.unwrap_or_default().into(),
                ..AriesOptions::with_metres(routing, metres)
            },
        }
    }

    /// What does not change over the loads.
    fn about(&self, network: &dyn Network, mode: Option<RoutingName>) -> Map<String, Value> {
        let process = match self.process {
            ProcessName::Bernoulli => "bernoulli",
            ProcessName::OnOff => "on-off",
        };
        let config = self.config(network, mode, Load::FULL);
        let mut about = Map::new();
        let mut add = |key: &str, value| about.insert(key.to_owned(), value);
        add("topology", network.name().into());
        add("traffic", self.traffic.to_string().into());
        add("participants", self.participants.into());
        add("message_bytes", config.traffic.message_bytes.into());
        add("request_reply", self.request_reply.into());
        add("process", process.into());
        if !self.fault.is_empty() {
            let faults = self.fault.iter().map(ToString::to_string);
            add("faults", faults.collect::<Vec<_>>().into());
        }
        match mode {
            None => add("link_cycles", config.link_cycles.into()),
            Some(mode) => {
                add("routing", mode.name().into());
                let grain = match config.aries.grain {
                    Grain::Flit => "flit",
                    Grain::Packet => "packet",
                };
                add("grain", grain.into());
                let [nic, green, black, blue] = config.aries.link_cycles;
                let cycles = json!({ "nic": nic, "green": green, "black": black, "blue": blue });
                add("link_cycles", cycles)
            }
        };
        about
    }
}

/// Runs `phitwire sim`. The exit status is 1 if a checker found something.
///
/// # Errors
/// A topology that cannot be read or does not suit the traffic, or a file that cannot be written.
pub fn run(args: &SimArgs) -> miette::Result<ExitCode> {
    let links = args.links()?;
    let network = ready::find(&args.topology)?;
    let network = &*network;
    let modes = args.modes(network)?;
    // A run of hours is not to end with the news that nobody may write here.
    for file in [&args.csv, &args.plot].into_iter().flatten() {
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        opened.map_err(|error| cannot_write(file, error))?;
    }
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    if args.csv.is_none() && args.plot.is_none() {
        end_with_reader().into_diagnostic()?;
    }
    let Some(all) = points(args, network, &modes, links, threads)? else {
        return Ok(ExitCode::from(NOT_READ));
    };
    write_files(args, network, &all)?;
    let mut failed = false;
    for violation in all.iter().flat_map(|m| &m.report.violations) {
        complain(&format!("violation: {violation}"));
        failed = true;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// Measures and prints all points; `None` when nobody reads them and no file is wanted.
fn points(
    args: &SimArgs,
    network: &dyn Network,
    modes: &[Option<RoutingName>],
    links: Links,
    threads: usize,
) -> miette::Result<Option<Vec<Measured>>> {
    let people = !args.json;
    let wanted = |read: bool| read || args.csv.is_some() || args.plot.is_some();
    if people && !wanted(say(&format!("{}\n", output::HEADING))?) {
        return Ok(None);
    }
    let mut all: Vec<Measured> = Vec::new();
    let mut values = Vec::new();
    let number = modes.len() * args.load.all.len();
    let shown = Shown::new("phitwire sim", "{msg:40} {wide_bar} {pos}/{len} {elapsed}");
    for &mode in modes {
        let about = args.about(network, mode);
        for &load in &args.load.all {
            let config = args.config(network, mode, load);
            let point = Point::new(&shown, (all.len() + 1, number), mode, load);
            point.building();
            let show = |seed, progress| point.show(seed, progress);
            let mut measured =
                measure(network, &config, links, threads, args.seeds, show).into_diagnostic()?;
            measured.routing = mode.map(RoutingName::name);
            if !people {
                values.push(output::json(&about, &measured));
            } else if !wanted(shown.aside(|| say(&format!("{}\n", output::line(&measured))))?) {
                return Ok(None);
            }
            all.push(measured);
        }
    }
    drop(shown);
    let mut rest = String::new();
    if people && !args.load.is_sweep {
        for measured in &all {
            rest.push_str(&format!("\n{}", output::details(measured)));
        }
    }
    if args.json {
        let value = match values.first() {
            Some(first) if number == 1 && !args.load.is_sweep => first.clone(),
            _ => Value::Array(values),
        };
        rest.push_str(&format!("{value:#}\n"));
    }
    // All is done by now, whether it is read or not.
    say(&rest)?;
    Ok(Some(all))
}

/// Prints to standard output; whether somebody, such as `head`, still reads it.
fn say(text: &str) -> miette::Result<bool> {
    print_if_read(text)
        .into_diagnostic()
        .wrap_err("cannot write to standard output")
}

fn cannot_write(file: &Path, error: std::io::Error) -> miette::Report {
    miette::Report::msg(error).wrap_err(format!("cannot write {}", file.display()))
}

fn write_files(args: &SimArgs, network: &dyn Network, all: &[Measured]) -> miette::Result<()> {
    let write = |file: &Path, text: String| {
        std::fs::write(file, text).map_err(|error| cannot_write(file, error))
    };
    if let Some(file) = &args.csv {
        write(file, output::csv(all))?;
    }
    if let Some(file) = &args.plot {
        let title = format!("{}: {} traffic", network.name(), args.traffic);
        write(file, plot::svg(&title, all)?)?;
    }
    Ok(())
}

/// One point of a run, whose progress is shown.
struct Point<'a> {
    shown: &'a Shown,
    name: String,
}

impl<'a> Point<'a> {
    /// The point of that number, from one on, out of so many.
    fn new(
        shown: &'a Shown,
        (number, of): (usize, usize),
        mode: Option<RoutingName>,
        load: Load,
    ) -> Self {
        let mut name = if of > 1 {
            format!("{number}/{of} ")
        } else {
            String::new()
        };
        name.push_str(&format!("load {}", load.fraction()));
        if let Some(mode) = mode {
            name.push_str(&format!(" {}", mode.name()));
        }
        Self { shown, name }
    }

    fn building(&self) {
        let doing = format!("{} building the network", self.name);
        self.shown.show(&doing, 0, 0, "");
    }

    fn show(&self, seed: u64, progress: Progress) {
        let phase = match progress.phase {
            Phase::Warmup => "warming up",
            Phase::Measure => "measuring",
            Phase::Drain => "draining",
            Phase::Empty => "emptying",
        };
        let seed = if seed == 0 {
            String::new()
        } else {
            format!(" seed +{seed}")
        };
        let doing = format!("{}{seed} {phase}", self.name);
        self.shown
            .show(&doing, progress.cycles, progress.limit, "cycles");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(text: &str) -> Vec<u32> {
        let loads = parse_loads(text).expect(text);
        loads.all.iter().map(|load| load.millionths()).collect()
    }

    #[test]
    fn loads_are_read_exactly() {
        assert_eq!(loads("0.3"), [300_000]);
        assert_eq!(loads("1"), [1_000_000]);
        assert_eq!(loads(".000001"), [1]);
        assert_eq!(loads("0.2..1.0:0.4"), [200_000, 600_000, 1_000_000]);
        assert_eq!(loads("0.05..1.0:0.05").len(), 20);
        for wrong in [
            "",
            ".",
            "0",
            "1.1",
            "-1",
            "0.1234567",
            "0.1..0.2",
            "0.2..0.1:0.1",
            "x",
        ] {
            assert!(parse_loads(wrong).is_err(), "{wrong}");
        }
    }
}
