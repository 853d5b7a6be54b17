//! `phitwire sim --op`: runs of network interfaces (NICs) in the machine's time.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use miette::{IntoDiagnostic, WrapErr, miette};
use phitwire::device::DeviceError;
use phitwire::net::{HostUse, Network, NodeRef};
use phitwire::nic::{SpecError, TrafficPattern, TrafficSpec};
use phitwire::sim::direct::Pattern;
use phitwire::sim::{Measured, MessageOp, World};
use phitwire::time::Duration;
use phitwire_nodes::output::{end_with_reader, print_error};
use serde_json::Value;

use super::{SimArgs, memory, print_text};
use crate::sim::messages::{About, Printed, Row, table};
use crate::sizes::{Sizes, parse_sizes};
use crate::trace::live;

/// Default message size, in bytes.
const BYTES: u32 = 8;
/// Default number of messages per source, or of collective operations.
const COUNT: u64 = 1_000;
/// Time allowed for links to train.
const TRAINING: Duration = Duration::from_ms(100);
/// Time without a completed operation after which a run is stuck: longer than all timeouts of a NIC.
const PATIENCE: Duration = Duration::from_ms(10_000);

/// Options of runs of NICs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Messages of network interfaces")]
pub(super) struct MessageOptions {
    /// Let the network interfaces run this operation, verified, instead of a pattern of packets:
    /// put, get, amo, send (one message at a time from each source), or allreduce, barrier, eureka
    /// (by --nics).
    /// On Aries, processes, host interfaces and memory take the times of the section host
    #[arg(long, value_name = "OP", value_parser = operation(), conflicts_with_all = [
        "load", "message_bytes", "request_reply", "process", "warmup", "measure", "drain", "seeds",
        "threads", "links", "netem", "fault", "trace", "perfetto", "csv", "file", "plot", "hgrm",
        "capture", "every",
    ])]
    pub(super) op: Option<MessageOp>,
    /// Bytes of each message, one row each: numbers, or FROM..TO:xFACTOR, with K and M for 2^10 and
    /// 2^20, such as 8..64K:x2 [default: 8]
    #[arg(long, value_name = "B", requires = "op", value_parser = parse_sizes)]
    bytes: Option<Sizes>,
    /// Outstanding messages of each source; NICs limit them, too
    #[arg(long, value_name = "N", requires = "op", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=65_536))]
    window: u32,
    /// Source [default: the first NIC; with --traffic, all]
    #[arg(long, value_name = "NIC", requires = "op", conflicts_with = "traffic")]
    from: Option<String>,
    /// Target [default: the last NIC]
    #[arg(long, value_name = "NIC", requires = "op", conflicts_with = "traffic")]
    to: Option<String>,
    /// Messages of each source, or collective operations [default: 1000]
    #[arg(long, value_name = "N", requires = "op",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    count: Option<u64>,
    /// Send messages for this many microseconds of the machine's time, instead of --count
    #[arg(long, value_name = "US", requires = "op", conflicts_with = "count",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    span_us: Option<u64>,
    /// Processes that issue messages at each network interface, where the description has times of
    /// hosts [default: those of its section host]
    #[arg(long, value_name = "N", requires = "op",
          value_parser = clap::value_parser!(u32).range(1..=1_024))]
    processes: Option<u32>,
    /// Let hosts take no time: only links, routers and the ends of links count
    #[arg(long, requires = "op", conflicts_with = "processes")]
    no_host: bool,
    /// Network interfaces in a collective operation, one row each: numbers, or FROM..TO:xFACTOR
    /// [default: all]
    #[arg(long, value_name = "N", requires = "op", value_parser = parse_sizes)]
    nics: Option<Sizes>,
}

fn operation() -> impl TypedValueParser<Value = MessageOp> {
    let names = MessageOp::ALL.map(MessageOp::name);
    PossibleValuesParser::new(names).try_map(|name| {
        let mut all = MessageOp::ALL.into_iter();
        all.find(|op| op.name() == name).ok_or("unknown operation")
    })
}

/// Runs `phitwire sim --op`. The exit status is 1 if a message or the network was found damaged.
///
/// # Errors
/// If the network or its NICs do not suit the options.
pub(super) fn run(
    args: &SimArgs,
    op: MessageOp,
    network: Box<dyn Network>,
) -> miette::Result<ExitCode> {
    let (machine, chosen) = args.own.of(&*network)?;
    args.own.refuse_others(&machine)?;
    let one = chosen.first().ok_or_else(|| miette!("no simulator"))?;
    let wires = one.wires(&*network).into_diagnostic()?;
    let begin = Instant::now();
    end_with_reader().into_diagnostic()?;
    let host = host_of(&args.messages, &*network)?;
    memory::warn_with_nics(&*network);
    let mut world = World::with_hosts(network, args.seed, &wires, host).into_diagnostic()?;
    let has = world.operations();
    if !has.contains(&op) {
        let names: Vec<_> = has.into_iter().map(MessageOp::name).collect();
        return Err(miette!(
            help = format!("available: {}", names.join(", ")),
            "the network interfaces of {} have no `{}`",
            world.topology().name(),
            op.name()
        ));
    }
    let runs = Runs::new(args, op, &world)?;
    if !world.bring_up(TRAINING) {
        let links = world.link_states();
        return Err(miette!("links did not come up:\n{}", links.trim_end()));
    }
    let (rows, violations) = measure_all(args, op, &mut world, &runs)?;
    let about = About {
        options: args.given.of_run(),
        topology: world.topology().name().to_owned(),
        operation: op.name(),
        between: runs.between,
        window: (!op.is_collective()).then_some(args.messages.window),
        hosts: host.is_some(),
        processes: args.messages.processes,
        seed: args.seed,
        trace_hash: format!("{:016x}", world.fabric.trace_hash()),
        machine_us: world.fabric.now().as_ps() as f64 / 1e6,
        frames: world.fabric.wire_counters().sent,
        wall_seconds: begin.elapsed().as_secs_f64(),
    };
    for violation in &violations {
        print_error(&format!("violation: {violation}"));
    }
    let is_clean = violations.is_empty();
    let printed = Printed {
        about,
        rows,
        violations,
    };
    print_text(&match args.json {
        true => crate::cli::json(&printed)?,
        false => table(&printed),
    })?;
    Ok(match is_clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Runs one after another, up to the first with a finding.
fn measure_all(
    args: &SimArgs,
    op: MessageOp,
    world: &mut World<dyn Network>,
    runs: &Runs,
) -> miette::Result<(Vec<Row>, Vec<String>)> {
    let mut rows = Vec::new();
    let mut violations = Vec::new();
    for (number, run) in (1..).zip(&runs.all) {
        let measured = run.measure(args, world, (op, number))?;
        if measured.completed == 0 && measured.violations.is_empty() {
            return Err(miette!(
                help = "use another pattern, or more --participants",
                "--traffic {}: among {} network interfaces, none has another one as its target",
                args.traffic,
                participants(args, world)?.len()
            ));
        }
        let found = measured.violations.iter();
        violations.extend(found.map(|found| format!("{}: {found}", run.name())));
        rows.push(run.row(op, &measured));
        // Nothing can be measured on a network that is not at rest.
        if !measured.violations.is_empty() {
            break;
        }
    }
    Ok((rows, violations))
}

/// The use of host times; `None` if hosts take no time.
fn host_of(options: &MessageOptions, network: &dyn Network) -> miette::Result<Option<HostUse>> {
    let processes = options.processes;
    match network.has_host_times() {
        true if options.no_host => Ok(None),
        true => Ok(Some(HostUse { processes })),
        false if processes.is_some() => Err(miette!(
            "--processes: {} has no times of hosts",
            network.name()
        )),
        false => Ok(None),
    }
}

/// The runs of one command.
struct Runs {
    /// Sources and targets, or participants, for the heading.
    between: String,
    all: Vec<Run>,
}

/// A row of the table.
enum Run {
    Messages(TrafficSpec),
    Collective { numbers: Vec<u16>, count: u64 },
}

impl Runs {
    fn new(args: &SimArgs, op: MessageOp, world: &World<dyn Network>) -> miette::Result<Self> {
        match op.is_collective() {
            false => Self::of_messages(args, op, world),
            true => Self::of_collectives(args, world),
        }
    }

    fn of_messages(
        args: &SimArgs,
        op: MessageOp,
        world: &World<dyn Network>,
    ) -> miette::Result<Self> {
        let options = &args.messages;
        if options.nics.is_some() {
            return Err(miette!("--nics applies only to collective operations"));
        }
        if op == MessageOp::Send && options.processes.is_some() {
            return Err(miette!(
                "--processes does not apply to sends, which one program at each network interface \
                 issues"
            ));
        }
        let all = participants(args, world)?;
        let (processors, pattern, between) = match args.given.has("traffic") {
            true => (all, pattern(&args.traffic)?, args.traffic.to_string()),
            false => {
                if args.participants.is_some() {
                    return Err(miette!(
                        "--participants applies to --traffic and to collective operations"
                    ));
                }
                let from = nic(world, ("--from", options.from.as_deref()), true)?;
                let to = nic(world, ("--to", options.to.as_deref()), false)?;
                if from.1 == to.1 {
                    return Err(miette!(
                        help = "without --from, the first NIC sends; without --to, the last one \
                                receives",
                        "--from and --to: {} cannot send to itself",
                        from.0
                    ));
                }
                let destinations = vec![to.1];
                let pattern = TrafficPattern::List { destinations };
                (vec![from.1], pattern, format!("{} to {}", from.0, to.0))
            }
        };
        let sizes = options.bytes.as_ref();
        let sizes = sizes.map_or_else(|| vec![BYTES], |sizes| sizes.0.clone());
        let groups = match pattern {
            TrafficPattern::GroupAdversarial => groups(world, &processors)?,
            _ => Vec::new(),
        };
        let span = options.span_us;
        let specs = (1..).zip(sizes).map(|(run, size)| TrafficSpec {
            run,
            pattern: pattern.clone(),
            processors: processors.clone(),
            groups: groups.clone(),
            op: op.of_traffic(),
            size,
            window: options.window,
            count: options
                .count
                .unwrap_or(if span.is_some() { 0 } else { COUNT }),
            duration_ns: span.unwrap_or(0) * 1_000,
            seed: args.seed,
            ..TrafficSpec::default()
        });
        let specs: Vec<_> = specs.collect();
        for spec in &specs {
            let checked = world.check_traffic(spec);
            checked.map_err(|error| miette!("{}{error}", option_of(&error, args)))?;
        }
        let all = specs.into_iter().map(Run::Messages).collect();
        Ok(Self { between, all })
    }

    fn of_collectives(args: &SimArgs, world: &World<dyn Network>) -> miette::Result<Self> {
        let options = &args.messages;
        let foreign = [
            ("--bytes", options.bytes.is_some()),
            ("--window", args.given.has("window")),
            ("--from", options.from.is_some()),
            ("--to", options.to.is_some()),
            ("--traffic", args.given.has("traffic")),
            ("--span-us", options.span_us.is_some()),
        ];
        if let Some((name, _)) = foreign.iter().find(|(_, is_given)| *is_given) {
            return Err(miette!(
                "{name} does not apply to collective operations; use --nics and --count"
            ));
        }
        let all = participants(args, world)?;
        let nics = options.nics.as_ref();
        let nics = nics.map_or_else(|| vec![all.len() as u32], |nics| nics.0.clone());
        let run = |nics: u32| {
            if nics < 2 {
                return Err(miette!(
                    "--nics {nics}: a collective operation needs at least 2 network interfaces"
                ));
            }
            let numbers = all.get(..nics as usize).ok_or_else(|| {
                let there = all.len();
                match args.participants {
                    Some(_) => miette!("--nics {nics}: more than the {there} of --participants"),
                    None => {
                        let name = world.topology().name();
                        miette!("--nics {nics}: {name} has {there} network interfaces")
                    }
                }
            })?;
            Ok(Run::Collective {
                numbers: numbers.to_vec(),
                count: options.count.unwrap_or(COUNT),
            })
        };
        Ok(Self {
            between: "among the first NICs".to_owned(),
            all: nics.into_iter().map(run).collect::<miette::Result<_>>()?,
        })
    }
}

impl Run {
    /// Bytes of a message, or NICs in a collective operation.
    fn size(&self) -> u32 {
        match self {
            Self::Messages(spec) => spec.size,
            Self::Collective { numbers, .. } => numbers.len() as u32,
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Messages(spec) => format!("{} bytes", spec.size),
            Self::Collective { numbers, .. } => format!("{} NICs", numbers.len()),
        }
    }

    fn measure(
        &self,
        args: &SimArgs,
        world: &mut World<dyn Network>,
        (op, number): (MessageOp, u32),
    ) -> miette::Result<Measured> {
        let measured = match self {
            Self::Messages(spec) => match world.measure_messages(op, spec, PATIENCE) {
                Err(DeviceError::Traffic(why)) => Err(miette!("{}{why}", option_of(&why, args))),
                measured => measured.into_diagnostic(),
            },
            Self::Collective { numbers, count } => world
                .measure_collective(op, numbers, (number, *count), PATIENCE)
                .into_diagnostic(),
        };
        measured.wrap_err_with(|| self.name())
    }

    fn row(&self, op: MessageOp, measured: &Measured) -> Row {
        let per_second = measured.per_second(op);
        let bytes = (!op.is_collective()).then(|| self.size());
        Row {
            bytes,
            nics: measured.nics,
            completed: measured.completed,
            elapsed_ns: measured.elapsed.as_ns(),
            latency_ns: (&measured.latency).into(),
            per_second,
            gbytes_per_second: bytes.map(|bytes| per_second * f64::from(bytes) / 1e9),
        }
    }
}

/// The numbers of the NICs that take part: the first `--participants`.
fn participants(args: &SimArgs, world: &World<dyn Network>) -> miette::Result<Vec<u16>> {
    let mut all = world.traffic_numbers();
    match args.participants {
        Some(wanted) if wanted as usize > all.len() => Err(miette!(
            "--participants {wanted}: {} has {} network interfaces",
            world.topology().name(),
            all.len()
        )),
        wanted => {
            all.truncate(wanted.map_or(usize::MAX, |wanted| wanted as usize));
            Ok(all)
        }
    }
}

/// The option at fault and its value, as the start of a message.
fn option_of(error: &SpecError, args: &SimArgs) -> String {
    match *error {
        SpecError::Size { size, .. } | SpecError::GetSize { size, .. } => {
            format!("--bytes {size}: ")
        }
        SpecError::AmoSize(size) | SpecError::Unnumbered(size) => format!("--bytes {size}: "),
        SpecError::Window(window) => format!("--window {window}: "),
        SpecError::Participants { .. }
        | SpecError::Groups { .. }
        | SpecError::Hotspot
        | SpecError::Processor(_)
        | SpecError::Twice(_)
        | SpecError::NotParticipant(_) => format!("--traffic {}: ", args.traffic),
        _ => String::new(),
    }
}

/// The name and number of the NIC that `option` names; without a name, of the first or the last
/// one.
fn nic(
    world: &World<dyn Network>,
    (option, name): (&str, Option<&str>),
    is_first: bool,
) -> miette::Result<(String, u16)> {
    let topology = world.topology();
    let all = topology.nodes().into_iter();
    let mut all = all.filter(|&node| number(world, node).is_some());
    let node = match name {
        Some(name) => {
            let found = live::find(topology, name);
            Some(found.map_err(|error| miette!("{option} {name}: {error}"))?)
        }
        None if is_first => all.next(),
        None => all.next_back(),
    };
    let numbered = node.and_then(|node| {
        let name = topology.node_name(node).into_owned();
        Some((name, number(world, node)?))
    });
    numbered.ok_or_else(|| {
        let name = name.map_or_else(
            || topology.name().to_owned(),
            |name| format!("{option} {name}"),
        );
        miette!("{name} is not a network interface that takes part in runs")
    })
}

fn number(world: &World<dyn Network>, node: NodeRef) -> Option<u16> {
    match node {
        NodeRef::Processor(_) => world.number(world.id(node)),
        NodeRef::Chip(_) => None,
    }
}

/// The group of each of these NICs.
fn groups(world: &World<dyn Network>, processors: &[u16]) -> miette::Result<Vec<u16>> {
    let mut of: BTreeMap<u16, u16> = BTreeMap::new();
    for nic in world.nics() {
        let group = world.fabric.node(nic).describe();
        let group = group.get("group").and_then(Value::as_u64);
        of.extend(world.number(nic).zip(group.map(|group| group as u16)));
    }
    let groups = processors.iter().map(|number| of.get(number).copied());
    groups.collect::<Option<_>>().ok_or_else(|| {
        let name = world.topology().name();
        miette!("--traffic group-adversarial: the network interfaces of {name} are in no groups")
    })
}

fn pattern(pattern: &Pattern) -> miette::Result<TrafficPattern> {
    match pattern {
        Pattern::Common(pattern) => Ok(pattern.clone()),
        other => Err(miette!(
            "--traffic {other}: network interfaces do not have this pattern"
        )),
    }
}
