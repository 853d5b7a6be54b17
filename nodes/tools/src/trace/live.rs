//! Tracing in a running lab: all routers watch, the NIC sends, and all report their records.

use std::collections::BTreeMap;
use std::fs::File;
use std::thread;
use std::time::{Duration, Instant};

use miette::miette;
use phitwire::device::capability;
use phitwire::net::{Network, NodeRef, Peers, Runtime, Sightings, TracedPacket};
use phitwire::nic::{Operation, ProbeEnd, ProbeOutcome, ProbeSpec};
use phitwire::time::Time;
use phitwire::trace::Flow;
use phitwire_nodes::control::{
    self, Client, ClientError, Code, NodeInfo, ProbeReport, Request, WatchedReport,
};
use phitwire_nodes::nearest::nearest;
use phitwire_nodes::run_dir::LabDir;
use serde::Deserialize;
use serde_json::Value;

use super::{Ends, Trace, TraceContext, Unit, VERSION};
use crate::description;

/// Maximum time that routers watch, unless stopped earlier.
const HOLD: Duration = Duration::from_secs(60);
/// Timeout of the replies of all routers together.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interval of polls for the response to the probe.
const LOOK: Duration = Duration::from_millis(1);
/// Interval of attempts to send from a NIC that cannot send yet.
const EARLY: Duration = Duration::from_millis(20);
/// Maximum duration of these attempts: several times the wait of a restarted NIC with ordinary
/// timeouts.
const MOST_EARLY: Duration = Duration::from_secs(30);
/// Tolerated error of the offset between two processes' clocks, in picoseconds: a process may be
/// interrupted between reading two clocks.
const SLACK_PS: u64 = 2_000_000_000;
/// Tolerance on an overloaded host, in picoseconds, where the clock of a suspended process lags and
/// catches up.
const WIDE_SLACK_PS: u64 = 2_000_000_000_000;
/// Time after the response for links to acknowledge the last packet.
const SETTLE: Duration = Duration::from_millis(20);

/// The numbers of a NIC in a lab.
#[derive(Clone, Copy, Debug)]
pub struct NicNumbers {
    pub node: NodeRef,
    /// Number used by tools.
    pub number: u16,
    /// Number used by routers.
    pub routed: u32,
}

pub struct Lab {
    pub name: String,
    pub network: Box<dyn Network>,
}

impl Lab {
    /// Opens the lab of this name.
    ///
    /// # Errors
    /// If the lab is not running, or its description cannot be read.
    pub fn open(name: &str) -> miette::Result<Self> {
        let dir = LabDir::new(name).map_err(|error| miette!("{error}"))?;
        let file = dir.path().join("topology.toml");
        if !file.exists() {
            let others = phitwire_nodes::run_dir::labs();
            return Err(match nearest(name, &others) {
                Some(other) => miette!("lab `{name}` is not running; did you mean `{other}`?"),
                None => miette!(
                    "lab `{name}` is not running: {} does not exist",
                    file.display()
                ),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            network: description::open(&file)?,
        })
    }

    /// The numbers of a NIC.
    ///
    /// # Errors
    /// If the NIC does not exist.
    pub fn numbers_of(&self, nic: &str) -> miette::Result<NicNumbers> {
        let numbers = numbers_of(&*self.network, nic)?;
        // Query the NIC, because a spare may have taken over a number.
        let info =
            Client::connect(&self.name, nic).and_then(|mut client| client.ask(&Request::Info));
        let info = info.ok().and_then(|info| NodeInfo::deserialize(info).ok());
        Ok(match info.and_then(|info| info.processor) {
            Some(number) if number != numbers.number => NicNumbers {
                node: numbers.node,
                number,
                routed: number.into(),
            },
            _ => numbers,
        })
    }

    pub fn routers(&self) -> Vec<(NodeRef, String)> {
        let nodes = self.network.nodes().into_iter();
        let routers = nodes.filter(|node| matches!(node, NodeRef::Chip(_)));
        routers
            .map(|node| (node, self.network.node_name(node).into_owned()))
            .collect()
    }

    /// Waits for exclusive use of tracing in this lab, since a router watches one flow at a time.
    /// The returned lock excludes others until it is dropped.
    fn alone(&self) -> miette::Result<File> {
        let dir = LabDir::new(&self.name).map_err(|error| miette!("{error}"))?;
        // Lock the directory itself, which nothing else locks, so that no lock file is left behind.
        let locked = File::open(dir.path()).and_then(|held| held.lock().map(|()| held));
        locked.map_err(|error| miette!("{}: {error}", dir.path().display()))
    }

    /// Sends one request to all routers.
    fn ask_routers(&self, request: &Request) -> Vec<(NodeRef, String, Result<Value, ClientError>)> {
        let routers = self.routers();
        let names: Vec<String> = routers.iter().map(|(_, name)| name.clone()).collect();
        let answers = control::ask_all(&self.name, &names, request, PATIENCE);
        let all = routers.into_iter().zip(answers);
        all.map(|((node, name), answer)| (node, name, answer))
            .collect()
    }
}

/// The numbers of a NIC according to the description alone.
///
/// # Errors
/// If the NIC does not exist.
pub fn numbers_of(network: &dyn Network, nic: &str) -> miette::Result<NicNumbers> {
    let node = find(network, nic)?;
    if !matches!(node, NodeRef::Processor(_)) {
        return Err(miette!(
            "`{nic}` is a router: packets go from one NIC to another"
        ));
    }
    let runtime = Runtime::new("trace", 1);
    let made = network.device(nic, &runtime, Time::ZERO);
    let mut device = made.map_err(|error| miette!("{nic}: {error}"))?;
    let number = device.traffic().and_then(|traffic| traffic.number());
    let number =
        number.ok_or_else(|| miette!("`{nic}` has no number, so it cannot be a target"))?;
    let probes = device
        .need::<capability::Probing>()
        .map_err(|error| miette!("{nic}: {error}"))?;
    Ok(NicNumbers {
        node,
        number,
        routed: probes.routed_number(),
    })
}

/// The node of this name.
///
/// # Errors
/// If no node has the name; the error suggests the nearest one.
pub fn find(network: &dyn Network, name: &str) -> miette::Result<NodeRef> {
    let nodes = network.nodes();
    let found = nodes.iter().find(|&&node| network.node_name(node) == name);
    found.copied().ok_or_else(|| {
        let network_name = network.name();
        match nearest(name, &network.node_names()) {
            Some(other) => miette!("{network_name} has no node `{name}`; did you mean `{other}`?"),
            None => miette!("{network_name} has no node `{name}`"),
        }
    })
}

/// A probe in words.
pub fn words(spec: &ProbeSpec) -> String {
    match spec.op {
        Operation::Put => format!("put of {} bytes", spec.bytes),
        Operation::Get => format!("get of {} bytes", spec.bytes),
        Operation::Amo => "amo of 8 bytes".to_owned(),
    }
}

/// A probe that was sent, and its end if that was seen before the timeout.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The NIC's report on sending it.
    pub report: ProbeReport,
    pub end: Option<ProbeEnd>,
}

/// Sends a probe and waits for its end, up to `limit` or until `is_over`.
///
/// # Errors
/// If the NIC does not send it.
pub fn send(
    client: &mut Client,
    nic: &str,
    spec: &ProbeSpec,
    limit: Duration,
    is_over: &dyn Fn() -> bool,
) -> miette::Result<Sent> {
    let report = begin(client, nic, spec, is_over)?;
    end(client, nic, report, limit, is_over)
}

/// Starts a probe; waits for a NIC that was restarted and cannot send yet.
fn begin(
    client: &mut Client,
    nic: &str,
    spec: &ProbeSpec,
    is_over: &dyn Fn() -> bool,
) -> miette::Result<ProbeReport> {
    let begun = Instant::now();
    let answer = loop {
        match client.ask(&Request::Probe(spec.clone())) {
            Err(error) if is_early(&error) && begun.elapsed() < MOST_EARLY && !is_over() => {
                thread::sleep(EARLY);
            }
            answer => break answer.map_err(|error| miette!("{nic}: {error}"))?,
        }
    };
    let malformed = |error| miette!("{nic}: malformed answer: {error}");
    ProbeReport::deserialize(answer).map_err(malformed)
}

fn is_early(error: &ClientError) -> bool {
    let code = error.refusal().and_then(|refusal| refusal.code);
    code == Some(Code::Early)
}

/// Waits for the end of a probe, up to `limit` or until `is_over`.
fn end(
    client: &mut Client,
    nic: &str,
    report: ProbeReport,
    limit: Duration,
    is_over: &dyn Fn() -> bool,
) -> miette::Result<Sent> {
    let malformed = |error| miette!("{nic}: malformed answer: {error}");
    let number = report.probe.number;
    let begun = Instant::now();
    loop {
        let answer = client.ask(&Request::ProbeEnded { number });
        let answer = answer.map_err(|error| miette!("{nic}: {error}"))?;
        if answer["pending"] != true {
            let end = ProbeEnd::deserialize(answer).map_err(malformed)?;
            return Ok(Sent {
                report,
                end: Some(end),
            });
        }
        if begun.elapsed() >= limit || is_over() {
            return Ok(Sent { report, end: None });
        }
        thread::sleep(LOOK);
    }
}

/// Traces one probe from one NIC to another.
///
/// # Errors
/// If the source does not reply. Unanswered requests to routers are noted in the trace.
pub fn trace(
    lab: &Lab,
    (from, to): (&str, &str),
    spec: &ProbeSpec,
    limit: Duration,
) -> miette::Result<Trace> {
    let (source, target) = (lab.numbers_of(from)?, lab.numbers_of(to)?);
    let spec = ProbeSpec {
        to: target.number,
        ..spec.clone()
    };
    let connected = Client::connect(&lab.name, from);
    let mut client = connected.map_err(|error| miette!("{error}"))?;
    let flow = Flow {
        from: source.routed,
        to: target.routed,
    };
    let _alone = lab.alone()?;
    let hold_ms = (HOLD + limit).as_millis() as u64;
    let mut notes = Vec::new();
    for (_, name, answer) in lab.ask_routers(&Request::Watch { flow, hold_ms }) {
        if let Err(error) = answer {
            notes.push(format!("{name} does not record packets: {error}"));
        }
    }
    let sent = begin(&mut client, from, &spec, &|| false).and_then(|report| {
        // Request the records soon, before other packets between the two NICs evict those of this
        // packet.
        let identity = report.probe.identity;
        lab.ask_routers(&Request::Want { identity });
        let sent = end(&mut client, from, report, limit, &|| false)?;
        thread::sleep(SETTLE);
        Ok(sent)
    });
    let identity = sent.as_ref().ok().map(|sent| sent.report.probe.identity);
    let answers = lab.ask_routers(&Request::Watched { identity });
    lab.ask_routers(&Request::Unwatch);
    let sent = sent?;
    let seen = sightings(answers, sent.report.clock_offset_ns, &mut notes);
    let assembled = |slack_ps| {
        trace_of(
            lab,
            (from, to),
            (source, target),
            &spec,
            (&sent, &seen),
            (slack_ps, notes.clone()),
        )
    };
    let trace = assembled(SLACK_PS);
    if trace.ways.len() == 2 && !trace.ways.iter().all(|way| way.delivered) {
        let wide = assembled(WIDE_SLACK_PS);
        if wide.ways.iter().all(|way| way.delivered) {
            return Ok(wide);
        }
    }
    Ok(trace)
}

/// Records of the routers, by the clock of the source.
fn sightings(
    answers: Vec<(NodeRef, String, Result<Value, ClientError>)>,
    offset_ns: i64,
    notes: &mut Vec<String>,
) -> Sightings {
    let mut seen = BTreeMap::new();
    for (node, name, answer) in answers {
        let Ok(answer) = answer else { continue };
        let Ok(report) = WatchedReport::deserialize(answer) else {
            notes.push(format!("{name}: malformed answer"));
            continue;
        };
        if report.watched.dropped > 0 {
            let dropped = report.watched.dropped;
            notes.push(format!(
                "{name} discarded its records of {dropped} other packets between the two"
            ));
        }
        let by_ps = (report.clock_offset_ns - offset_ns).saturating_mul(1_000);
        let passages = report.watched.passages.into_iter();
        seen.insert(
            node,
            passages.map(|passage| passage.shifted(by_ps)).collect(),
        );
    }
    seen
}

fn trace_of(
    lab: &Lab,
    (from, to): (&str, &str),
    (source, target): (NicNumbers, NicNumbers),
    spec: &ProbeSpec,
    (sent, seen): (&Sent, &Sightings),
    (slack_ps, mut notes): (u64, Vec<String>),
) -> Trace {
    let network = &*lab.network;
    let peers = Peers::of(network);
    let context = TraceContext {
        network,
        peers: &peers,
        seen,
        unit: Unit::NS,
        zero_ps: sent.report.sent_ps,
    };
    let identity = sent.report.probe.identity;
    let request = TracedPacket {
        from: source.node,
        to: target.node,
        response: false,
        identity,
        not_before_ps: sent.report.sent_ps,
        slack_ps,
    };
    let ended = sent.end.filter(|end| end.outcome != ProbeOutcome::TimedOut);
    let mut ends = Ends {
        began_ps: Some(sent.report.sent_ps),
        came_ps: None,
        has_come: ended.is_some(),
    };
    let (mut there, last_ps) = context.report_path(request, ends);
    let response = TracedPacket {
        from: target.node,
        to: source.node,
        response: true,
        not_before_ps: last_ps.unwrap_or(sent.report.sent_ps),
        ..request
    };
    let back = Ends {
        began_ps: None,
        came_ps: ended.map(|end| end.ended_ps),
        has_come: false,
    };
    let (back, _) = context.report_path(response, back);
    if !there.delivered && !back.hops.is_empty() {
        // A response proves that the request arrived.
        ends.has_come = true;
        there = context.report_path(request, ends).0;
    }
    let mut ways = vec![there];
    if ways[0].delivered || sent.end.is_some() {
        if back.hops.is_empty() && ended.is_some() {
            let note = "no router saw a separate answer: one packet may answer several requests";
            notes.push(note.to_owned());
        }
        ways.push(back);
    }
    Trace {
        version: VERSION,
        source: format!("lab {}", lab.name),
        unit: Unit::NS,
        from: from.to_owned(),
        to: to.to_owned(),
        operation: words(spec),
        identity,
        outcome: outcome(sent.end).to_owned(),
        ended: sent.end.map(|end| context.at(end.ended_ps)),
        ways,
        notes,
    }
}

/// The end of a probe in words.
fn outcome(end: Option<ProbeEnd>) -> &'static str {
    match end.map(|end| end.outcome) {
        Some(ProbeOutcome::Done) => "done",
        Some(ProbeOutcome::Refused) => "refused",
        Some(ProbeOutcome::Damaged) => "damaged",
        Some(ProbeOutcome::TimedOut) => "timed out",
        None => "no answer yet",
    }
}
