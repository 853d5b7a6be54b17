//! `phitwire sim`: a network in virtual time.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches, ValueEnum};
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::catalogue::{Given, Simulation};
use phitwire::link::impair::Netem;
use phitwire::machine::MACHINES;
use phitwire::net::Network;
use phitwire::sim::direct::{
    Config, Fault, Links, Load, Pattern, Process, SimPhase, SimProgress, Simulator, Traffic, Warmup,
};
use phitwire::sim::tap::Tap;
use serde_json::{Map, Value};

use super::capture;
use super::machine_options::{args, given};
use super::progress::Shown;
use super::sim_record::RecordOptions;
use super::sim_trace::SimTraceArgs;
use crate::output::{NOT_READ, complain, end_with_reader, print_if_read};
use crate::sim::{Measured, measure, output, plot, ready};

/// Points of a sweep at most.
const MOST_POINTS: usize = 10_000;
/// Cycles of a phase at most: 20 minutes of virtual time.
const MOST_CYCLES: u64 = 1_000_000_000_000;

/// Simulate a network in virtual time.
///
/// Cycles are those of the machine's routers. Load is the fraction of a port's rate that every
/// processor offers, all phits (flits) of its packets and of replies counted.
#[derive(Args, Debug)]
pub struct SimArgs {
    #[arg(help = networks())]
    topology: String,
    /// Who sends to whom: uniform, bit-complement, transpose, bit-reverse, shuffle, permutation,
    /// tornado, neighbour, diagonal, asymmetric, hotspot[:TARGET,...[:PERCENT]], row-adversary,
    /// group-adversarial; or by ordinates, on networks that are grids: grid-transpose, grid-reversal,
    /// grid-rotation, grid-complement, grid-tornado, grid-opposite, grid-bit-reverse, grid-shuffle
    #[arg(long, default_value = "uniform")]
    traffic: Pattern,
    /// Only the first N processors send and receive [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    participants: Option<u32>,
    /// One load or FROM..TO:STEP
    #[arg(long, value_parser = parse_loads, default_value = "0.3")]
    load: Loads,
    #[arg(long, value_name = "B", help = message_sizes(),
          value_parser = clap::value_parser!(u8).range(1..=largest_message()))]
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
    #[command(flatten)]
    own: OwnOptions,
    /// Seed of everything random
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run N seeds, from --seed on, and give confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Threads; they change nothing but the time it takes [default: all processors]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    threads: Option<usize>,
    /// Whether links hand phits over (direct) or carry them in frames between link control blocks
    /// (encoded) [default: direct where the machine has it, or encoded with --netem]
    #[arg(long, value_enum)]
    links: Option<LinksName>,
    /// Impair every direction of every link with these words of tc netem, such as "loss 1% delay
    /// 10us"
    #[arg(long, value_name = "WORDS", value_parser = parse_netem)]
    netem: Option<Netem>,
    /// Break something while it runs, and mend it: "link NUMBER down at TIME for TIME" or "router
    /// NAME down at TIME"; without `for` it stays broken, which over encoded links nothing may.
    /// Several times for several faults
    #[arg(long, value_name = "FAULT")]
    fault: Vec<Fault>,
    #[command(flatten)]
    traced: SimTraceArgs,
    /// Print JSON: an object, or an array for several loads
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    #[command(flatten)]
    record: RecordOptions,
    /// Draw the latency-load curve
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write the frames of all links to a file for Wireshark, as they leave their senders. It needs
    /// encoded links and one run: one load, one seed; it takes one thread
    #[arg(long, value_name = "FILE.pcapng")]
    capture: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LinksName {
    Direct,
    Encoded,
}

/// The options that machines have for their own networks.
#[derive(Clone, Debug)]
struct OwnOptions(Vec<(Simulation, Given)>);

fn simulations() -> impl Iterator<Item = Simulation> {
    MACHINES.iter().filter_map(|machine| machine.simulation)
}

impl Args for OwnOptions {
    fn augment_args(command: Command) -> Command {
        let all = simulations().map(|simulation| (simulation.machine, simulation.options));
        command.args(args(&all.collect::<Vec<_>>()))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for OwnOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = simulations().map(|machine| (machine, given(matches, machine.options)));
        Ok(Self(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl OwnOptions {
    /// The machine of a network, and what was chosen of its options, one or several to compare.
    /// Refuses options that only other machines have.
    fn of(&self, network: &dyn Network) -> miette::Result<(Simulation, Vec<Box<dyn Simulator>>)> {
        let (own, given) = self
            .0
            .iter()
            .find(|(machine, _)| (machine.is_of)(network))
            .ok_or_else(|| miette!("networks such as {} cannot be simulated", network.name()))?;
        let has = |name: &&str| own.options.iter().any(|option| option.name == *name);
        for (machine, given) in &self.0 {
            if let Some(other) = given.names().find(|name| !has(name)) {
                let names = own
                    .options
                    .iter()
                    .map(|option| format!("--{}", option.name));
                return Err(miette!(
                    help = match own.options.is_empty() {
                        true => format!("{} networks have no such options", own.machine),
                        false => format!(
                            "{} networks have {}",
                            own.machine,
                            names.collect::<Vec<_>>().join(", ")
                        ),
                    },
                    "--{other} is for {} networks only",
                    machine.machine
                ));
            }
        }
        let chosen = (own.choose)(given).map_err(|error| miette!("{error}"))?;
        Ok((*own, chosen))
    }

    /// What was chosen for all curves of a network alike, for the title of a plot.
    fn alike(&self, network: &dyn Network) -> String {
        let mut own = self
            .0
            .iter()
            .filter(|(machine, _)| (machine.is_of)(network));
        let given = own
            .next()
            .into_iter()
            .flat_map(|(_, given)| given.one_each());
        given
            .map(|(name, value)| format!(", {name} {value}"))
            .collect()
    }
}

/// The networks that there are, as the help has them.
fn networks() -> String {
    let names = MACHINES
        .iter()
        .map(|machine| machine.networks.names)
        .collect::<Vec<_>>();
    format!(
        "A description, or the name of a ready one such as quickstart or pair, or {}",
        names.join("; or ")
    )
}

fn message_sizes() -> String {
    let sizes = simulations().map(|of| format!("{}: {}", of.machine, of.message_bytes));
    let sizes: Vec<String> = sizes.collect();
    format!(
        "Bytes that each message writes [default: {}]",
        sizes.join(", ")
    )
}

fn largest_message() -> i64 {
    let all = simulations().map(|machine| machine.max_message_bytes.into());
    all.max().unwrap_or(1)
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
    fn links(&self, machine: &Simulation) -> miette::Result<Links> {
        match (self.links, self.netem) {
            (Some(LinksName::Direct), Some(_)) => Err(miette!(
                help = "leave --links out, or name encoded",
                "--netem impairs frames, and direct links have none"
            )),
            (Some(LinksName::Direct), None) if !machine.has_direct_links => Err(miette!(
                help = "leave --links out, or name encoded",
                "links of {} networks carry frames: they are simulated encoded only",
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
            measure_cycles: self.measure,
            drain_cycles: self.drain,
            faults: self.fault.clone(),
            traced: None,
        }
    }

    /// What does not change over the loads.
    fn about(
        &self,
        network: &dyn Network,
        machine: &Simulation,
        chosen: &dyn Simulator,
    ) -> Map<String, Value> {
        let process = match self.process {
            ProcessName::Bernoulli => "bernoulli",
            ProcessName::OnOff => "on-off",
        };
        let config = self.config(machine, Load::FULL);
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
        about.extend(chosen.about());
        about
    }
}

/// Runs `phitwire sim`. The exit status is 1 if a checker found something.
///
/// # Errors
/// A topology that cannot be read or does not suit the traffic, or a file that cannot be written.
pub fn run(args: &SimArgs) -> miette::Result<ExitCode> {
    let network = ready::find(&args.topology)?;
    let network = &*network;
    let (machine, chosen) = args.own.of(network)?;
    let links = args.links(&machine)?;
    // A run of hours is not to end with the news that nobody may write here.
    for file in [&args.csv, &args.plot].into_iter().flatten() {
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        opened.map_err(|error| cannot_write(file, error))?;
    }
    if let (Some(csv), Some(plot)) = (&args.csv, &args.plot)
        && is_one_file(csv, plot)
    {
        return Err(miette!(
            "--csv and --plot both name {}: one would be written over the other",
            csv.display()
        ));
    }
    let threads = args
        .threads
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    args.record.check(args.load.all.len() * chosen.len())?;
    let runs = chosen.len() as u64 * args.load.all.len() as u64 * args.seeds;
    let capture = args.capture.as_deref();
    let capture = capture.map(|file| capture::simulated(file, network, links, runs));
    let capture = capture.transpose()?;
    // In one partition frames come in the order of their time.
    let threads = if capture.is_some() { 1 } else { threads };
    let leaves_files = args.csv.is_some() || args.plot.is_some() || args.record.file.is_some();
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
    write_files(args, network, &all)?;
    for measured in &all {
        for fault in &measured.report.late_faults {
            let load = measured.load.fraction();
            complain(&format!(
                "load {load}: `{fault}` begins after the end of the run: nothing broke"
            ));
        }
    }
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
    (machine, chosen): (&Simulation, &[Box<dyn Simulator>]),
    links: (Links, Option<&Tap>),
    threads: usize,
) -> miette::Result<Option<Vec<Measured>>> {
    let people = !args.json;
    let wanted = |read: bool| {
        read || [&args.csv, &args.plot, &args.capture]
            .iter()
            .any(|file| file.is_some())
    };
    if people && !wanted(say(&format!("{}\n", output::HEADING))?) {
        return Ok(None);
    }
    let mut all: Vec<Measured> = Vec::new();
    let mut values = Vec::new();
    let number = chosen.len() * args.load.all.len();
    let traced = args.traced.traced(network, number)?;
    let mut traces = Vec::new();
    let shown = Shown::new("phitwire sim", "{msg:40} {wide_bar} {pos}/{len} {elapsed}");
    for one in chosen {
        let one = &**one;
        let about = args.about(network, machine, one);
        let config = args.config(machine, Load::FULL);
        let bound = one.bound(network, &config).into_diagnostic()?;
        for &load in &args.load.all {
            let config = Config {
                traced,
                ..args.config(machine, load)
            };
            let point = Point::new(&shown, (all.len() + 1, number), one.name(), load);
            point.building();
            let show = |seed, progress| point.show(seed, progress);
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
            let measured = Measured { bound, ..measured };
            let found = measured.found.as_ref();
            traces.extend(args.traced.traces(network, machine.cycle, found)?);
            if !people {
                let mut value = output::json(&about, &measured);
                if traced.is_some() {
                    value["traces"] = serde_json::to_value(&traces).into_diagnostic()?;
                }
                values.push(value);
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
    if people {
        rest.push_str(&args.traced.text(&traces));
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

/// Whether two names are those of one file, whose contents would be lost.
fn is_one_file(a: &Path, b: &Path) -> bool {
    let file = |path| std::fs::metadata(path).ok().filter(|file| file.is_file());
    let [a, b] = [a, b].map(|path| file(path).map(|file| (file.dev(), file.ino())));
    a.is_some() && a == b
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
        let (name, traffic, options) = (network.name(), &args.traffic, args.own.alike(network));
        let title = format!("{name}: {traffic} traffic{options}");
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
    /// The point of that number, counted from one, out of `points`.
    fn new(
        shown: &'a Shown,
        (number, of): (usize, usize),
        chosen: Option<&str>,
        load: Load,
    ) -> Self {
        let mut name = if of > 1 {
            format!("{number}/{of} ")
        } else {
            String::new()
        };
        name.push_str(&format!("load {}", load.fraction()));
        if let Some(chosen) = chosen {
            name.push_str(&format!(" {chosen}"));
        }
        Self { shown, name }
    }

    fn building(&self) {
        let doing = format!("{} building the network", self.name);
        self.shown.show(&doing, 0, 0, "");
    }

    fn show(&self, seed: u64, progress: SimProgress) {
        let phase = match progress.phase {
            SimPhase::Warmup => "warming up",
            SimPhase::Measure => "measuring",
            SimPhase::Drain => "draining",
            SimPhase::Empty => "emptying",
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
