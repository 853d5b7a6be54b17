//! `phitwire ctl`: sends a request or a command to a running node.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use miette::miette;
use phitwire::device::PipelineReport;
use phitwire::device::RegisterInfo;
use phitwire::device::pipeline::Place;
use phitwire::nic::{CollectiveSpec, TrafficSpec};
use phitwire::text_table::TextTable;
use phitwire_nodes::control::{self, Client, ClientError, Fault, LinkReport, Register, Request};
use phitwire_nodes::nearest::nearest;
use phitwire_nodes::output;
use phitwire_nodes::run_dir::LabDir;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::print;
use super::via::{Maintenance, ViaArgs};
use crate::description;

#[derive(Debug, Args)]
pub struct CtlArgs {
    /// Lab
    #[arg(long, env = super::LAB, hide_env_values = true)]
    lab: String,
    /// Node, or `all`
    node: String,
    /// Print JSON; with `all`, an object keyed by node
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print counters
    ///
    /// The guide explains each in its reference, reference/counters.md, which
    /// `docs/guide/build.sh --reference-only` writes.
    Stats {
        /// Only counters whose name contains this
        filter: Option<String>,
        /// Include counters that are zero
        #[arg(long)]
        zero: bool,
    },
    /// Print the state of the links: when a data frame of the peer was last accepted, resends
    /// (packets, or sets of flits), and problems
    Links,
    /// Print the contents of each pipeline stage by virtual channel, and how often it stalled
    Pipeline,
    /// Print what the node is running
    Info,
    /// Read a register by name or address; without one, list all. JSON has the value as `value`,
    /// and exactly as `hex`: many JSON readers round integers to 53 bits
    Get {
        /// Register name or numeric address
        register: Option<Register>,
        #[command(flatten)]
        via: ViaArgs,
    },
    /// Write a register
    Set {
        /// Register name or numeric address
        register: Register,
        /// New value, decimal or hexadecimal (0x...)
        #[arg(value_parser = parse_value)]
        value: u64,
        #[command(flatten)]
        via: ViaArgs,
    },
    /// Inject a fault
    ///
    /// No fault loses a frame: `phitwire lab impair LINK loss 3%` loses a share of them.
    Fault {
        #[command(subcommand)]
        fault: Fault,
    },
    /// Start, query and stop a traffic run at a NIC
    Traffic {
        #[command(subcommand)]
        command: TrafficCommand,
    },
    /// Start, query and stop collective operations at a NIC that has a collective engine
    Collective {
        #[command(subcommand)]
        command: CollectiveCommand,
    },
    /// Allow or forbid sending several frames in one segmentation-offload call
    Offload {
        #[arg(value_parser = ["on", "off"])]
        state: String,
    },
    /// Quiesce a router: accept no more packets from its NICs
    Quiesce {
        /// Release automatically after this many milliseconds
        #[arg(long = "for", value_name = "MS", default_value_t = 10_000)]
        hold_ms: u64,
    },
    /// Release a quiesced router
    Release,
    /// Print whether a router is quiesced and drained, and the digest of its route tables
    Routing,
    /// Print the route tables of a router
    Tables,
    /// End the process, as SIGTERM does
    Shutdown,
}

#[derive(Debug, Subcommand)]
enum TrafficCommand {
    /// Start a run
    Start {
        /// Run specification, in JSON
        #[arg(value_parser = parse_json::<TrafficSpec>)]
        spec: Box<TrafficSpec>,
    },
    /// Print the state of a run
    Status {
        /// Run number [default: the latest]
        run: Option<u64>,
    },
    /// Stop sending messages
    Stop,
}

#[derive(Debug, Subcommand)]
enum CollectiveCommand {
    /// Start a run; every participant needs this command
    Start {
        /// Run specification, in JSON
        #[arg(value_parser = parse_json::<CollectiveSpec>)]
        spec: Box<CollectiveSpec>,
    },
    /// Print the state of the latest run
    Status,
    /// Stop all participants after the same operation; a second time: also those waiting for a peer
    Stop,
}

/// Maximum number of positions of a stage that are printed.
const MOST_POSITIONS: usize = 8;

/// An invalid register value.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a number: write it in decimal, or in hexadecimal after 0x")]
pub(super) struct NoNumber(String);

pub(super) fn parse_value(text: &str) -> Result<u64, NoNumber> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|_| NoNumber(text.to_owned()))
}

fn parse_json<T: DeserializeOwned>(text: &str) -> serde_json::Result<Box<T>> {
    serde_json::from_str(text)
}

impl Command {
    fn request(&self) -> Request {
        match self {
            Self::Stats { .. } => Request::Stats,
            Self::Links => Request::Links,
            Self::Pipeline => Request::Pipeline,
            Self::Info => Request::Info,
            Self::Get { register: None, .. } => Request::Registers,
            Self::Get {
                register: Some(register),
                ..
            } => Request::Get {
                register: register.clone(),
            },
            Self::Set {
                register, value, ..
            } => Request::Set {
                register: register.clone(),
                value: *value,
            },
            Self::Fault { fault } => Request::Fault(fault.clone()),
            Self::Traffic { command } => match command {
                TrafficCommand::Start { spec } => Request::TrafficStart { spec: spec.clone() },
                TrafficCommand::Status { run } => Request::TrafficStatus { run: *run },
                TrafficCommand::Stop => Request::TrafficStop,
            },
            Self::Collective { command } => match command {
                CollectiveCommand::Start { spec } => {
                    Request::CollectiveStart { spec: spec.clone() }
                }
                CollectiveCommand::Status => Request::CollectiveStatus,
                CollectiveCommand::Stop => Request::CollectiveStop,
            },
            Self::Offload { state } => Request::Offload {
                enabled: state == "on",
            },
            Self::Quiesce { hold_ms } => Request::Quiesce { hold_ms: *hold_ms },
            Self::Release => Request::Release,
            Self::Routing => Request::Routing,
            Self::Tables => Request::Tables,
            Self::Shutdown => Request::Shutdown,
        }
    }

    /// The reply as text.
    fn render(&self, data: &Value) -> String {
        match (self, data) {
            (Self::Links, data) => match Vec::<LinkReport>::deserialize(data) {
                Ok(links) => links_table(&links),
                Err(_) => pretty(data),
            },
            (Self::Pipeline, data) => match PipelineReport::deserialize(data) {
                Ok(report) => pipeline_table(&report),
                Err(_) => pretty(data),
            },
            (Self::Stats { zero, .. }, Value::Object(counters)) => counters
                .iter()
                .filter(|(_, value)| *zero || value.as_u64() != Some(0))
                .map(|(name, value)| format!("{name} {value}\n"))
                .collect(),
            (Self::Get { register: None, .. }, data) => {
                match Vec::<RegisterInfo>::deserialize(data) {
                    Ok(registers) => registers_table(&registers),
                    Err(_) => pretty(data),
                }
            }
            (
                Self::Get {
                    register: Some(register),
                    ..
                }
                | Self::Set { register, .. },
                data,
            ) => match data["value"].as_u64() {
                Some(value) => format!("{register} = {value} (0x{value:x})\n"),
                None => pretty(data),
            },
            (_, Value::Object(object)) if object.is_empty() => "done\n".to_owned(),
            (Self::Info | Self::Routing, Value::Object(object)) => object
                .iter()
                .map(|(name, value)| format!("{name} {value}\n"))
                .collect(),
            _ => pretty(data),
        }
    }

    /// Reduces a reply to the requested part.
    fn narrow(&self, data: Value) -> Value {
        match (self, data) {
            (
                Self::Stats {
                    filter: Some(filter),
                    ..
                },
                Value::Object(mut counters),
            ) => {
                counters.retain(|name, _| name.contains(filter.as_str()));
                Value::Object(counters)
            }
            (_, data) => data,
        }
    }
}

impl Command {
    /// The existing register whose name is most similar to the requested one.
    fn nearest(&self, client: &mut Client) -> Option<String> {
        let (Self::Get {
            register: Some(Register::Name(name)),
            ..
        }
        | Self::Set {
            register: Register::Name(name),
            ..
        }) = self
        else {
            return None;
        };
        let list = client.ask(&Request::Registers).ok()?;
        let list = Vec::<RegisterInfo>::deserialize(list).ok()?;
        let names: Vec<String> = list.iter().flat_map(RegisterInfo::names).collect();
        if names.contains(name) {
            return None;
        }
        nearest(name, &names).map(str::to_owned)
    }
}

/// All registers, one line per group of similar ones.
fn registers_table(registers: &[RegisterInfo]) -> String {
    let mut table = TextTable::new(&["address", "register", "bits", "access", "description"]);
    for register in registers {
        let address = register.address;
        table.row([
            address.map_or("-".to_owned(), |address| format!("0x{address:04x}")),
            shortened(&register.name),
            register.bits.to_string(),
            if register.writable { "rw" } else { "r" }.to_owned(),
            register.about.clone(),
        ]);
    }
    table.render()
}

/// A name with long lists abbreviated; only JSON has them in full.
fn shortened(name: &str) -> String {
    const MOST: usize = 40;
    let Some((before, (among, after))) = name
        .split_once('{')
        .and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return name.to_owned();
    };
    let words: Vec<&str> = among.split(',').collect();
    let among = match words[..] {
        [first, .., last] if among.len() > MOST => format!("{first},...,{last}"),
        _ => among.to_owned(),
    };
    format!("{before}{{{among}}}{}", shortened(after))
}

fn pretty(data: &Value) -> String {
    // Cannot fail: every `Value` can be serialised.
    serde_json::to_string_pretty(data).unwrap_or_default() + "\n"
}

fn links_table(links: &[LinkReport]) -> String {
    let mut table = TextTable::new(&[
        "port",
        "link",
        "peer",
        "state",
        "lanes",
        "heard",
        "resent",
        "charged to lanes",
        "rtt",
        "problem",
    ]);
    for link in links {
        table.row([
            link.port.to_string(),
            link.link.to_string(),
            link.peer.clone(),
            link.state.clone(),
            format!("rx {} tx {}", link.rx_lanes, link.tx_lanes),
            link.heard_ms.map_or("-".to_owned(), age),
            link.resent.to_string(),
            link.retries_by_lane(),
            link.rtt_ns
                .map_or("-".to_owned(), |ns| format!("{:.1} us", ns as f64 / 1e3)),
            link.why.clone().unwrap_or_default(),
        ]);
    }
    table.render()
}

/// A table of the stages with one row per channel, followed by the occupied positions.
fn pipeline_table(report: &PipelineReport) -> String {
    let mut table = TextTable::new(&["stage", "channel", "held", "of", "unit", "stalls", "where"]);
    for stage in &report.stages {
        for (channel, name) in stage.channels.iter().enumerate() {
            let held = |position: &Place| position.held.get(channel).copied().unwrap_or(0);
            let holding = stage.places.iter().filter(|position| held(position) > 0);
            let positions =
                holding.map(|position| format!("{}: {}", position.number, held(position)));
            let mut positions: Vec<_> = positions.take(MOST_POSITIONS + 1).collect();
            if positions.len() > MOST_POSITIONS {
                positions[MOST_POSITIONS] = "...".to_owned();
            }
            let is_first = channel == 0;
            let capacity = stage.capacity.get(channel);
            let room = capacity.map(|each| (each * stage.places.len() as u64).to_string());
            let stalls = stage.stalls.filter(|_| is_first);
            table.row([
                stage.name.to_string(),
                name.to_string(),
                stage.places.iter().map(held).sum::<u64>().to_string(),
                room.unwrap_or_default(),
                stage.unit.to_string(),
                stalls.map(|stalls| stalls.to_string()).unwrap_or_default(),
                match positions.is_empty() {
                    true => String::new(),
                    false => format!("{} {}", stage.place, positions.join(", ")),
                },
            ]);
        }
    }
    table.render()
}

/// An age for display.
fn age(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{ms} ms"),
        _ => format!("{} s", ms / 1000),
    }
}

/// Reads or writes a register of a router through a maintenance packet of router `from`.
fn ask_via(args: &CtlArgs, from: &str) -> miette::Result<Value> {
    let (register, value) = match &args.command {
        Command::Get {
            register: Some(register),
            ..
        } => (register.clone(), None),
        Command::Set {
            register, value, ..
        } => (register.clone(), Some(*value)),
        _ => {
            return Err(miette!(
                "maintenance packets can only read and write registers"
            ));
        }
    };
    let dir = LabDir::new(&args.lab).map_err(|error| miette!("{error}"))?;
    let network = description::open(&dir.path().join("topology.toml"))?;
    let mut maintenance = Maintenance::new(&args.lab, &*network, from)?;
    maintenance.ask(&args.node, register, value)
}

pub fn run(args: CtlArgs) -> miette::Result<ExitCode> {
    let from = match &args.command {
        Command::Get { via, .. } | Command::Set { via, .. } => via.router()?,
        _ => None,
    };
    if let Some(from) = from {
        let data = ask_via(&args, from)?;
        let text = if args.json {
            pretty(&data)
        } else {
            args.command.render(&data)
        };
        return print(&text);
    }
    let request = args.command.request();
    if args.node != "all" {
        let mut client =
            Client::connect(&args.lab, &args.node).map_err(|error| miette!("{error}"))?;
        let data = client.ask(&request).map_err(|error| {
            let report = miette!("{}: {error}", args.node);
            match args.command.nearest(&mut client) {
                Some(name) => miette!("{report}; did you mean `{name}`?"),
                None => report,
            }
        })?;
        let data = args.command.narrow(data);
        let text = if args.json {
            pretty(&data)
        } else {
            args.command.render(&data)
        };
        return print(&text);
    }
    let dir = LabDir::new(&args.lab).map_err(|error| miette!("{error}"))?;
    let nodes = dir.nodes().map_err(|error| miette!("{error}"))?;
    if nodes.is_empty() {
        return Err(miette!(
            "lab `{}` is not running: no control sockets in {}",
            args.lab,
            dir.path().display()
        ));
    }
    let mut failed = false;
    let mut all = Map::new();
    let answers = control::ask_all(&args.lab, &nodes, &request, control::TIMEOUT);
    for (node, answer) in nodes.into_iter().zip(answers) {
        match answer.map(|data| args.command.narrow(data)) {
            Ok(data) if args.json => {
                all.insert(node, data);
            }
            Ok(data) => {
                print(&format!("{node}\n{}\n", args.command.render(&data)))?;
            }
            Err(error) => {
                failed = true;
                // The error already names an unreachable node.
                let error = match error {
                    ClientError::Name(_) | ClientError::Unreachable { .. } => error.to_string(),
                    _ => format!("{node}: {error}"),
                };
                output::print_error(&error);
                all.insert(node, json!({ "error": error }));
            }
        }
    }
    if args.json {
        print(&pretty(&Value::Object(all)))?;
    }
    Ok(if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}
