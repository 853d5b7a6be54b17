//! `phitwire soak`: random networks with random faults, one case per seed.

mod report;

pub(super) use report::Summary;

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::machines::machines;
use clap::Args;
use clap::builder::PossibleValuesParser;
use miette::{IntoDiagnostic, Result, miette};
use phitwire::sim::soak::{CaseReport, Family, Keep, Late, SoakCase};
use phitwire_nodes::output::end_with_reader;
use phitwire_nodes::stop::Stop;

use super::by_signal::ended;
use super::print;
use super::progress::Shown;

/// Number of failures after which no more seeds are started.
const ENOUGH: usize = 10;

#[derive(Debug, Args)]
pub struct SoakArgs {
    /// Seeds to run: one (17) or an inclusive range (1..1000)
    #[arg(long, value_name = "SEEDS", value_parser = Seeds::parse, default_value = "1..1000")]
    seeds: Seeds,
    /// Networks to build for each seed: by machine, over faulty links, or in direct mode with
    /// missing links
    #[arg(long, value_parser = PossibleValuesParser::new(choices()), default_value = ALL)]
    family: String,
    /// Redeliver frames up to ten seconds late in every case, along with disabled lanes, stopped
    /// link ends and restarted routers; without this option, in one case of twelve. Omits direct
    /// mode, which has no frames
    #[arg(long)]
    late_copies: bool,
    /// Start no further seed after this many minutes
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    minutes: Option<u64>,
    /// Threads, each with its own seed [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print every fault and event with its virtual time
    #[arg(long)]
    trace: bool,
    /// Keep only these faults of the schedule, or missing links, by index; an empty list keeps none
    #[arg(long, value_name = "INDICES", value_parser = indices)]
    keep_harms: Option<Indices>,
    /// Omit the impairment of all links; in direct mode, long cables, bursts and partitions
    #[arg(long)]
    clear: bool,
    /// Messages per source, or cycles of the measurement, instead of the case's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    messages: Option<u64>,
    /// Do not reduce failures to a minimal case
    #[arg(long)]
    no_shrink: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A range of seeds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seeds {
    first: u64,
    last: u64,
}

impl Seeds {
    fn parse(text: &str) -> Result<Self, String> {
        let number = |text: &str| {
            let wrong = |_| format!("invalid seed `{text}`: expected 17 or 1..1000");
            text.trim().parse::<u64>().map_err(wrong)
        };
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
            None => (number(text)?, number(text)?),
        };
        if last == u64::MAX {
            return Err(format!("the largest seed is {}", u64::MAX - 1));
        }
        if first > last {
            return Err(format!(
                "empty seed range `{text}`: the first seed must not exceed the last"
            ));
        }
        Ok(Self { first, last })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Indices(Vec<usize>);

fn indices(text: &str) -> Result<Indices, String> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let number = |part: &str| {
        let wrong = |_| format!("invalid index `{part}`: expected a list such as 0,3");
        part.trim().parse().map_err(wrong)
    };
    parts.map(number).collect::<Result<_, _>>().map(Indices)
}

/// The word for all families.
const ALL: &str = "both";

/// All families, in the order in which a seed runs them.
fn families() -> impl Iterator<Item = &'static Family> {
    machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.soak)
}

/// The values of `--family`: everything, all of a machine, or one family.
fn choices() -> Vec<&'static str> {
    let names = families().flat_map(|of| [of.machine, of.name]);
    let mut choices = vec![ALL];
    for name in names {
        if !choices.contains(&name) {
            choices.push(name);
        }
    }
    choices
}

/// A seed that failed.
struct Failed {
    seed: u64,
    family: &'static Family,
    why: String,
    keep: Keep,
}

/// The results of all threads.
#[derive(Default)]
struct Tally {
    passed: u64,
    done: CaseReport,
    failed: Vec<Failed>,
}

impl SoakArgs {
    /// The chosen families.
    fn families(&self) -> impl Iterator<Item = &'static Family> + '_ {
        let chosen = |of: &&Family| [ALL, of.machine, of.name].contains(&self.family.as_str());
        let all = families().filter(chosen);
        all.filter(|family| !self.late_copies || family.has_frames)
    }

    /// The complete case of a seed.
    fn whole_case(&self, family: &Family, seed: u64) -> Box<dyn SoakCase> {
        let late = if self.late_copies {
            Late::Always
        } else {
            Late::Seldom
        };
        (family.case)(seed, late)
    }

    /// The case of a seed, reduced as the arguments specify.
    fn case(&self, family: &Family, seed: u64) -> Box<dyn SoakCase> {
        self.whole_case(family, seed).reduced(&reduction(self))
    }

    /// Checks `--keep-harms` against the first thousand seeds. If no case has the highest index,
    /// returns that index and the largest number of harms of a case.
    fn unknown_harm(&self) -> Option<(usize, usize)> {
        let wanted = *self.keep_harms.as_ref()?.0.iter().max()?;
        let mut most = 0;
        for seed in (self.seeds.first..=self.seeds.last).take(1_000) {
            for family in self.families() {
                most = most.max(self.whole_case(family, seed).whole().harms?.len());
                if wanted < most {
                    return None;
                }
            }
        }
        Some((wanted, most))
    }
}

pub fn run(args: SoakArgs) -> Result<ExitCode> {
    if args.families().next().is_none() {
        let others = families().filter(|family| family.has_frames);
        let others: Vec<&str> = others.map(|family| family.name).collect();
        return Err(miette!(
            help = format!("specify another --family: {}", others.join(" or ")),
            "--late-copies: direct mode has no frames to redeliver"
        ));
    }
    if let Some((index, most)) = args.unknown_harm() {
        return Err(miette!(
            "--keep-harms {index}: no case of these seeds has a fault with that index; indices \
             start at 0, and the largest case has {most} faults"
        ));
    }
    if args.trace && args.seeds.first != args.seeds.last {
        return Err(miette!(
            "--trace follows a single seed, but --seeds specifies {}",
            args.seeds.last - args.seeds.first + 1
        ));
    }
    if args.trace {
        return replay(&args);
    }
    // Catch signals only here, where they end the soak between seeds. A signal ends a replay like
    // any command.
    let stop = Stop::at_signals().into_diagnostic()?;
    end_with_reader().into_diagnostic()?;
    let begin = Instant::now();
    let tally = soak(&args, &stop, begin);
    print(&report::report(&args, &tally, begin.elapsed())?)?;
    let interrupted = stop.requests() > 0;
    Ok(match (tally.failed.is_empty(), interrupted) {
        (false, _) => ExitCode::FAILURE,
        (true, true) => ended(true),
        (true, false) => ExitCode::SUCCESS,
    })
}

fn reduction(args: &SoakArgs) -> Keep {
    Keep {
        harms: args.keep_harms.as_ref().map(|list| list.0.clone()),
        clear: args.clear,
        messages: args.messages,
    }
}

/// Runs one seed with its trace.
fn replay(args: &SoakArgs) -> Result<ExitCode> {
    let mut status = ExitCode::SUCCESS;
    for family in args.families() {
        let case = args.case(family, args.seeds.first);
        if replay_one(&*case)? != ExitCode::SUCCESS {
            status = ExitCode::FAILURE;
        }
    }
    Ok(status)
}

fn replay_one(case: &dyn SoakCase) -> Result<ExitCode> {
    print(&format!("{case:#?}\n"))?;
    let mut trouble = Ok(ExitCode::SUCCESS);
    let mut log = |at: phitwire::time::Time, text: &str| {
        if trouble.is_ok() {
            trouble = print(&format!("{:>12} ns  {text}\n", at.as_ns()));
        }
    };
    let outcome = attempt(case, &mut log);
    trouble?;
    match outcome {
        Ok(outcome) => print(&format!("passed: {outcome:?}\n")),
        Err(why) => {
            print(&format!("FAILED: {why}\n"))?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs a case; a panic counts as a failure.
fn attempt(
    case: &dyn SoakCase,
    trace: &mut dyn FnMut(phitwire::time::Time, &str),
) -> Result<CaseReport, String> {
    match catch_unwind(AssertUnwindSafe(|| case.run(trace))) {
        Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", text.unwrap_or("no message")))
        }
    }
}

/// Runs all seeds on all threads.
fn soak(args: &SoakArgs, stop: &Stop, begin: Instant) -> Tally {
    let threads = args.threads.map_or_else(
        || std::thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
    let limit = args
        .minutes
        .map(|minutes| Duration::from_secs(60 * minutes));
    let next = AtomicU64::new(args.seeds.first);
    let enough = AtomicBool::new(false);
    let tally = Mutex::new(Tally::default());
    let seeds = args.seeds.last - args.seeds.first + 1;
    let done = AtomicU64::new(0);
    let shown = Shown::new(
        "phitwire soak",
        "[{bar:30}] {pos} of {len} seeds, {eta} left",
    );
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let over = || limit.is_some_and(|limit| begin.elapsed() >= limit);
                while stop.requests() == 0 && !over() && !enough.load(Ordering::Relaxed) {
                    let more = |seed: u64| (seed <= args.seeds.last).then(|| seed + 1);
                    let Ok(seed) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
                    else {
                        break;
                    };
                    for family in args.families() {
                        let failed = soak_one(args, family, seed, &tally);
                        if failed >= ENOUGH {
                            enough.store(true, Ordering::Relaxed);
                        }
                    }
                    let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                    shown.show("soaking", done, seeds, "seeds");
                }
            });
        }
    });
    drop(shown);
    let mut tally = tally
        .into_inner()
        .unwrap_or_else(|broken| broken.into_inner());
    // Sort by seed only: the failures of one seed are already in the order of the families.
    tally.failed.sort_by_key(|failed| failed.seed);
    tally
}

/// Runs the case of a seed. Returns the number of failed cases so far.
fn soak_one(args: &SoakArgs, family: &'static Family, seed: u64, tally: &Mutex<Tally>) -> usize {
    let case = args.case(family, seed);
    let outcome = attempt(&*case, &mut |_, _| {});
    let failed = outcome.as_ref().err().map(|why| Failed {
        seed,
        family,
        why: why.clone(),
        keep: shrunk(args, &*case),
    });
    let mut tally = tally.lock().unwrap_or_else(|broken| broken.into_inner());
    if let Ok(done) = outcome {
        tally.passed += 1;
        tally.done.frames += done.frames;
        tally.done.flit_hops += done.flit_hops;
        tally.done.acknowledged += done.acknowledged;
        tally.done.timed_out += done.timed_out;
        tally.done.late_copies += done.late_copies;
        tally.done.lanes_given_up += done.lanes_given_up;
    }
    tally.failed.extend(failed);
    tally.failed.len()
}

/// The smallest reduction of `case` that still fails.
fn shrunk(args: &SoakArgs, case: &dyn SoakCase) -> Keep {
    if args.no_shrink {
        return reduction(args);
    }
    let keep = case.shrink(|smaller| attempt(smaller, &mut |_, _| {}).is_err());
    let chosen = args.keep_harms.as_ref().map(|list| list.0.as_slice());
    Keep {
        // Convert indices in the reduced case to those in the full one.
        harms: keep.harms.map(|kept| match chosen {
            Some(chosen) => kept
                .iter()
                .filter_map(|at| chosen.get(*at).copied())
                .collect(),
            None => kept,
        }),
        clear: keep.clear || args.clear,
        messages: keep.messages.or(args.messages),
    }
}

/// The command that replays a failure.
fn command(seed: u64, family: &Family, late_copies: bool, keep: &Keep) -> String {
    let family = family.name;
    let mut text = format!("phitwire soak --seeds {seed} --family {family} --trace");
    if late_copies {
        text.push_str(" --late-copies");
    }
    if let Some(harms) = &keep.harms {
        let list: Vec<String> = harms.iter().map(ToString::to_string).collect();
        let _ = write!(text, " --keep-harms '{}'", list.join(","));
    }
    if keep.clear {
        text.push_str(" --clear");
    }
    if let Some(messages) = keep.messages {
        let _ = write!(text, " --messages {messages}");
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn seeds_are_one_or_a_range_with_both_ends() {
        let seeds = |first, last| Ok(Seeds { first, last });
        assert_eq!(Seeds::parse("17"), seeds(17, 17));
        assert_eq!(Seeds::parse("1..1000"), seeds(1, 1000));
        assert_eq!(Seeds::parse("1..=3"), seeds(1, 3));
        for (wrong, why) in [
            ("", "invalid seed"),
            ("x", "invalid seed"),
            ("3..1", "the first seed must not exceed the last"),
            ("1..", "invalid seed"),
            ("-1", "invalid seed"),
            (
                "18446744073709551615",
                "the largest seed is 18446744073709551614",
            ),
            (
                "18446744073709551615..1",
                "the first seed must not exceed the last",
            ),
        ] {
            let error = Seeds::parse(wrong).expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    fn names(args: &SoakArgs) -> Vec<&'static str> {
        args.families().map(|family| family.name).collect()
    }

    #[test]
    fn a_machine_is_all_its_families() {
        let of = |families: &[Family]| -> Vec<_> { families.iter().map(|of| of.name).collect() };
        let all: Vec<&str> = machines()
            .machines()
            .iter()
            .flat_map(|machine| of(machine.soak))
            .collect();
        assert_eq!(names(&args("")), all);
        assert_eq!(names(&args("--family both")), all);
        for machine in machines().machines() {
            let word = machine.networks.word;
            assert_eq!(names(&args(&format!("--family {word}"))), of(machine.soak));
            for family in machine.soak.iter().filter(|of| of.name != word) {
                let one = args(&format!("--family {}", family.name));
                assert_eq!(names(&one), [family.name]);
            }
        }
        let unknown = Cli::try_parse_from(["soak", "--family", "abacus"]);
        assert!(unknown.is_err());
    }

    #[test]
    fn the_command_replays_what_is_left() {
        let keep = Keep {
            harms: Some(vec![0, 3]),
            clear: true,
            messages: Some(5),
        };
        let family = families().next().expect("there is a machine");
        let begin = format!("phitwire soak --seeds 17 --family {} --trace", family.name);
        assert_eq!(
            command(17, family, false, &keep),
            format!("{begin} --keep-harms '0,3' --clear --messages 5")
        );
        assert_eq!(
            command(17, family, true, &Keep::default()),
            format!("{begin} --late-copies")
        );
        assert_eq!(indices("0,3"), Ok(Indices(vec![0, 3])));
        assert_eq!(indices(""), Ok(Indices(vec![])));
        assert!(indices("zero").is_err());
    }

    #[test]
    fn a_harm_that_no_case_has_is_refused() {
        let family = families().next().expect("there is a machine");
        let harms = (family.case)(17, Late::Seldom).whole().harms;
        let most = harms.expect("a case names its harms").len();
        let with = |index| {
            args(&format!(
                "--seeds 17 --family {} --keep-harms {index}",
                family.name
            ))
        };
        assert_eq!(with(most).unknown_harm(), Some((most, most)));
        let error = run(with(most))
            .expect_err("it has no such harm")
            .to_string();
        assert!(error.contains("no case of these seeds"), "{error}");
        if most > 0 {
            assert_eq!(with(most - 1).unknown_harm(), None);
        }
        // Accept an index that only one of many seeds has.
        assert_eq!(args("--seeds 1..1000 --keep-harms 0").unknown_harm(), None);
    }

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        soak: SoakArgs,
    }

    fn args(line: &str) -> SoakArgs {
        let words = ["soak"].into_iter().chain(line.split_whitespace());
        Cli::try_parse_from(words).expect("good options").soak
    }

    #[test]
    fn late_copies_are_in_every_case_that_has_frames() {
        let late = args("--late-copies");
        let frames = families().filter(|family| family.has_frames);
        assert_eq!(names(&late), frames.map(|of| of.name).collect::<Vec<_>>());
        for seed in 1..20 {
            for family in late.families() {
                let text = format!("{:?}", late.case(family, seed));
                assert!(text.contains("LateCopies"), "{text}");
            }
        }
        let direct = families().find(|family| !family.has_frames);
        let direct = direct.expect("a machine is soaked in direct mode").name;
        let words = args(&format!("--late-copies --family {direct}"));
        let error = run(words).expect_err("nothing to copy");
        assert!(error.to_string().contains("no frames"), "{error}");
    }
}
