//! `phitwire topology`: generate, check, show and plan descriptions of networks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use miette::{IntoDiagnostic, Report, miette};
use phitwire::link::LaneRate;
use phitwire::machine;
use phitwire::machine::aries::topology::{Arrangement, DragonflySettings, DragonflySpec, Shape};
use phitwire::machine::blackwidow::topology::{
    BlackwidowSpec, ClosLinks, ClosSettings, Rank, Taper, parse_rate,
};
use phitwire::net::{self, Clock, Effort, MAX_DESCRIPTION_BYTES, Network, Profile};

use super::print;
use crate::description::{bytes_of, open};

/// What a description may have as dilation.
const MAX_DILATION: i64 = net::MAX_DILATION as i64;
/// What it may have as length of a cable.
const MAX_METRES: i64 = net::MAX_METRES as i64;

/// Generate, check, show and plan descriptions of networks.
#[derive(Args, Debug)]
pub struct TopologyArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Write the description of a network to standard output.
    Generate {
        #[command(subcommand)]
        family: Family,
    },
    /// Find everything that is wrong with a description; exit status 1 if anything is.
    Check {
        /// The description; `-` is standard input.
        file: PathBuf,
        /// Print one line FILE:LINE:COLUMN: MESSAGE per mistake instead of excerpts.
        #[arg(long)]
        lines: bool,
        /// Follow every packet to its end, also in networks where that takes minutes.
        #[arg(long)]
        exact: bool,
    },
    /// Show a network.
    Show {
        /// The description; `-` is standard input.
        file: PathBuf,
        /// As tables, in the language of Graphviz, or as a drawing.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
        /// Rows of each table at most.
        #[arg(long, default_value_t = 200)]
        rows: usize,
        /// Count devices and cables instead, with bandwidths (dragonflies).
        #[arg(long, conflicts_with_all = ["format", "rows"])]
        inventory: bool,
    },
    /// Print nodes and links for scripts, separated by tabs.
    ///
    /// `node NAME router|nic` for every node, then `link ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B
    /// ADDR_A ADDR_B` for every link.
    Plan {
        /// The description; `-` is standard input.
        file: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Table,
    Dot,
    Svg,
}

#[derive(Subcommand, Debug)]
enum Family {
    /// A folded Clos with sidelinks: R1, R1.5, R2, R2.5, R3 or R3.5.
    Blackwidow(Box<Blackwidow>),
    /// A dragonfly of Aries routers: groups of chassis of blades.
    Dragonfly(Box<DragonflyArgs>),
}

#[derive(Args, Debug)]
struct Blackwidow {
    /// Processors in all, 1 to 32768.
    #[arg(long)]
    processors: u32,
    /// Processors of each rank-1 subtree, 1 to 32.
    #[arg(long, default_value_t = 32)]
    subtree: u32,
    /// 1, 1.5, 2, 2.5, 3 or 3.5 [default: the smallest that holds all processors]
    #[arg(long)]
    rank: Option<Rank>,
    /// Slices: separate networks, one per port of every processor.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    slices: u8,
    /// Fraction of the up and side links kept, like 0.5 or 1/2; up to three, for ranks 1, 2 and 3.
    #[arg(long, value_delimiter = ',', num_args = 1..=3, value_name = "F[,F2[,F3]]")]
    taper: Vec<Taper>,
    /// Up or side links of a rank-1 router, before the taper [default: one per processor]
    #[arg(long)]
    uplinks: Option<u32>,
    /// Ports of each virtual router of ranks 2 and 3; two of 32 share a chip.
    #[arg(long, default_value_t = 32)]
    virtual_radix: u32,
    /// Rank-1 subtrees per rank-2 subtree, above R2 [default: half of the virtual radix]
    #[arg(long)]
    group: Option<u32>,
    /// Links from a rank-1 router to each of its rank-2 routers: 1, 2, 4, ...
    #[arg(long, default_value_t = 1)]
    parallel: u32,
    /// Gb/s of a lane: 6.25, 5.0, 3.125, 2.5, 1.5625 or 1.25.
    #[arg(long, value_parser = parse_rate, default_value = "6.25")]
    rate: LaneRate,
    /// Gb/s of a lane between routers [default: that of --rate]
    #[arg(long, value_parser = parse_rate)]
    router_rate: Option<LaneRate>,
    /// Metres of cable, at 5 ns each in virtual time, 1 to 200 [default: not said]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=MAX_METRES))]
    metres: Option<u16>,
    /// Metres of cable between routers [default: those of --metres]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=MAX_METRES))]
    router_metres: Option<u16>,
    /// Depths of buffers and windows: for processes, or the chip's own.
    #[arg(long, value_enum, default_value_t = ProfileName::Live)]
    profile: ProfileName,
    /// Pace the clock: one emulated nanosecond takes so many real ones [default: free-running]
    #[arg(long, value_name = "DILATION", value_parser = clap::value_parser!(u32).range(1..=MAX_DILATION))]
    paced: Option<u32>,
    /// Retries of a lane after which it is given up; 0 is never.
    #[arg(long, default_value_t = ClosSettings::default().lane_retry_threshold)]
    lane_retry_threshold: u32,
    /// Name of the network [default: made from rank and size]
    #[arg(long, default_value = "")]
    name: String,
}

#[derive(Args, Debug)]
struct DragonflyArgs {
    /// Groups, 1 to 241.
    #[arg(long)]
    groups: u16,
    /// Chassis of each group, 1 to 6.
    #[arg(long)]
    chassis: u8,
    /// Blades of each chassis, 1 to 16, with a router each.
    #[arg(long)]
    blades: u8,
    /// Network interfaces of each router, 1 to 4.
    #[arg(long, default_value_t = 1)]
    nics: u8,
    /// Links between each pair of groups [default: as many as 10 per router allow; whole cables of four between
    /// groups of full chassis]
    #[arg(long)]
    global_links: Option<u16>,
    /// Which global ports of a group lead to which other group: absolute, relative or circulant.
    #[arg(long, default_value_t = Arrangement::Absolute)]
    arrangement: Arrangement,
    /// Links from a router to its peer in each other chassis, as far as 15 ports allow.
    #[arg(long, default_value_t = 3)]
    black_links: u8,
    /// Global links that share a cable and two neighbouring blades, 1 or 4 [default: 4 for whole cables between
    /// full chassis]
    #[arg(long)]
    set_links: Option<u8>,
    /// Depths of buffers and windows: for processes, or the chip's own.
    #[arg(long, value_enum, default_value_t = ProfileName::Live)]
    profile: ProfileName,
    /// Pace the clock: one emulated nanosecond takes so many real ones [default: free-running]
    #[arg(long, value_name = "DILATION", value_parser = clap::value_parser!(u32).range(1..=MAX_DILATION))]
    paced: Option<u32>,
    /// Name of the network [default: made from the shape]
    #[arg(long, default_value = "")]
    name: String,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProfileName {
    Live,
    Paper,
}

/// Runs `phitwire topology`. The exit status is 1 if a description has mistakes.
///
/// # Errors
/// A file that cannot be read, or a network that cannot be generated, shown or planned.
pub fn run(args: TopologyArgs) -> miette::Result<ExitCode> {
    match args.command {
        Command::Generate { family } => generate(&family),
        Command::Check { file, lines, exact } => {
            let effort = if exact {
                Effort::Exact
            } else {
                Effort::Bounded
            };
            check_file(&file, lines, effort)
        }
        Command::Show {
            file,
            format,
            rows,
            inventory,
        } => {
            let network = open(&file)?;
            let text = match format {
                _ if inventory => inventory_of(&*network)?,
                Format::Table => network.table(rows),
                Format::Dot => network.dot(),
                Format::Svg => network.svg().into_diagnostic()?,
            };
            print(&text)
        }
        Command::Plan { file } => print(&open(&file)?.plan_lines().into_diagnostic()?),
    }
}

fn inventory_of(network: &dyn Network) -> miette::Result<String> {
    let counted = network.inventory();
    counted.ok_or_else(|| miette!("an inventory is counted of dragonflies only"))
}

fn check_file(file: &Path, lines: bool, effort: Effort) -> miette::Result<ExitCode> {
    let (name, bytes) = bytes_of(file)?;
    match machine::read_with(&name, &bytes, effort) {
        Ok(read) => {
            let summary = read.network.summary();
            let rest = match read.followed {
                true => "",
                false => "; not every way was followed, which --exact does",
            };
            print(&format!("{name}: ok, {summary}{rest}\n"))
        }
        Err(problems) if lines => {
            print(&problems.lines())?;
            Ok(ExitCode::FAILURE)
        }
        Err(problems) => Err(Report::new(problems)),
    }
}

fn profile(name: ProfileName) -> Profile {
    match name {
        ProfileName::Live => Profile::Live,
        ProfileName::Paper => Profile::Paper,
    }
}

fn clock(paced: Option<u32>) -> Clock {
    paced.map_or(Clock::FreeRunning, |dilation| Clock::Paced { dilation })
}

impl DragonflyArgs {
    fn spec(&self) -> DragonflySpec {
        DragonflySpec {
            name: self.name.clone(),
            shape: Shape {
                groups: self.groups,
                chassis: self.chassis,
                blades: self.blades,
                nics: self.nics,
            },
            black_links: Some(self.black_links),
            global_links: self.global_links,
            arrangement: self.arrangement,
            set_links: self.set_links,
            settings: DragonflySettings {
                profile: profile(self.profile),
                clock: clock(self.paced),
                ..DragonflySettings::default()
            },
        }
    }
}

impl Blackwidow {
    fn spec(&self) -> BlackwidowSpec {
        let mut taper = [Taper::FULL; 3];
        for (slot, wanted) in taper.iter_mut().zip(&self.taper) {
            *slot = *wanted;
        }
        let settings = ClosSettings {
            profile: profile(self.profile),
            clock: clock(self.paced),
            lane_retry_threshold: self.lane_retry_threshold,
            own: ClosLinks {
                rate: self.rate,
                metres: self.metres,
                ..ClosLinks::default()
            },
            ..ClosSettings::default()
        };
        BlackwidowSpec {
            name: self.name.clone(),
            processors: self.processors,
            subtree: self.subtree,
            rank: self.rank,
            slices: self.slices,
            uplinks: self.uplinks,
            taper,
            virtual_radix: self.virtual_radix,
            group: self.group,
            parallel: self.parallel,
            router_rate: self.router_rate,
            router_metres: self.router_metres,
            settings,
        }
    }
}

fn generate(family: &Family) -> miette::Result<ExitCode> {
    let network: Box<dyn Network> = match family {
        Family::Blackwidow(options) => Box::new(options.spec().generate().into_diagnostic()?),
        Family::Dragonfly(options) => Box::new(options.spec().generate().into_diagnostic()?),
    };
    // Options that contradict each other, such as rates within one octant, show only in the whole.
    let mistakes = network.check_with(Effort::Bounded);
    if let Some(mistake) = mistakes.into_iter().next() {
        return Err(miette!(help = mistake.help.clone(), "{}", mistake.message)
            .wrap_err("these options do not make a network"));
    }
    let text = described(&*network);
    if text.len() > MAX_DESCRIPTION_BYTES {
        return Err(miette!(
            help = "take fewer slices: they are separate networks, and one of several alike stands for all",
            "the description would have {} bytes, and no more than {MAX_DESCRIPTION_BYTES} can be read",
            text.len()
        ));
    }
    print(&text)
}

fn described(network: &dyn Network) -> String {
    let summary = network.summary();
    format!(
        "# {summary}\n# Written by `phitwire topology generate`; check changes with `phitwire \
         topology check`.\n\n{}",
        network.write()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        topology: TopologyArgs,
    }

    fn spec(line: &str) -> Result<BlackwidowSpec, clap::Error> {
        let words = ["topology", "generate", "blackwidow"]
            .into_iter()
            .chain(line.split(' '));
        match Cli::try_parse_from(words)?.topology.command {
            Command::Generate {
                family: Family::Blackwidow(options),
            } => Ok(options.spec()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_become_a_network() {
        let line = "--processors 8 --subtree 4 --rank 1.5 --slices 1 --taper 1/2";
        let topology = spec(line)
            .expect("good options")
            .generate()
            .expect("a network");
        let network = topology;
        let summary = "r1.5-8: R1.5, 8 processors, 1 slice, 2 routers on 2 chips, 10 links";
        assert_eq!(network.summary(), summary);
        assert!(described(&network).starts_with(&format!("# {summary}\n")));
    }

    #[test]
    fn each_rank_has_a_taper_of_its_own() {
        let spec = spec("--processors 8 --taper 0.5,1/4 --paced 9 --profile paper");
        let spec = spec.expect("good options");
        assert_eq!(spec.taper[1], Taper::new(1, 4).expect("a quarter"));
        assert_eq!(spec.taper[2], Taper::FULL);
        assert_eq!(spec.settings.clock, Clock::Paced { dilation: 9 });
        assert_eq!(spec.settings.profile, Profile::Paper);
    }

    fn dragonfly_spec(line: &str) -> Result<DragonflySpec, clap::Error> {
        let words = ["topology", "generate", "dragonfly"]
            .into_iter()
            .chain(line.split(' '));
        match Cli::try_parse_from(words)?.topology.command {
            Command::Generate {
                family: Family::Dragonfly(options),
            } => Ok(options.spec()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_become_a_dragonfly() {
        let line =
            "--groups 3 --chassis 2 --blades 2 --nics 2 --global-links 4 --arrangement circulant";
        let spec = dragonfly_spec(line).expect("good options");
        let network = spec.generate().expect("a network");
        let summary =
            "aries-3x2x2x2: dragonfly, 3 groups of 2 x 2 blades, 12 routers, 24 NICs, 60 links";
        assert_eq!(network.summary(), summary);
        assert!(
            inventory_of(&network)
                .expect("a dragonfly")
                .contains("12X active optical cables")
        );
        let text = described(&network);
        assert_eq!(
            &*machine::read("-", &text).expect("what was written"),
            &network as &dyn Network
        );
        for bad in [
            "--groups 3 --chassis 2",
            "--groups 3 --chassis 2 --blades 2 --arrangement random",
        ] {
            assert!(dragonfly_spec(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bad_options_are_refused() {
        for bad in [
            "--rank 4",
            "--slices 5",
            "--taper 2",
            "--rate 6",
            "--paced 0",
        ] {
            assert!(spec(&format!("--processors 8 {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_description_with_mistakes_is_reported_with_its_place() {
        let file = tempfile::NamedTempFile::new().expect("a scratch file");
        std::fs::write(file.path(), "nmae = \"x\"\n").expect("it can be written");
        let report = open(file.path()).expect_err("a mistake");
        assert!(
            format!("{report:?}").contains("did you mean `name`?"),
            "{report:?}"
        );
        let status = check_file(file.path(), true, Effort::Bounded).expect("it can be read");
        assert_eq!(status, ExitCode::FAILURE);
    }
}
