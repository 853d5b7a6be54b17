//! `phitwire sim --trace`: the paths of single packets under load.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use miette::miette;
use phitwire::net::{Network, NodeRef, Peers, TracedPacket};
use phitwire::sim::direct::{Found, Message, Traced};
use phitwire::time::Duration;
use phitwire::trace::Flow;
use phitwire_nodes::output::print_error;

use super::trace::write_perfetto;
use crate::trace::live::numbers_of;
use crate::trace::{Ends, Trace, TraceContext, Unit, VERSION, table};

/// Maximum number of messages traced per run.
const MOST_MESSAGES: usize = 100;

/// Tracing options of a run.
#[derive(Args, Debug)]
pub(super) struct SimTraceArgs {
    /// Trace the first COUNT messages (default 1) of the measurement from one NIC to another, such
    /// as nic0:nic7:3: every router, stage, wait and decision
    #[arg(long, value_name = "FROM:TO[:COUNT]")]
    trace: Option<Wanted>,
    /// Write the traces to a file for ui.perfetto.dev and chrome://tracing
    #[arg(long, value_name = "FILE", requires = "trace")]
    pub(super) perfetto: Option<PathBuf>,
}

/// The source and destination NIC, and the number of messages to trace.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    from: String,
    to: String,
    count: usize,
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "invalid trace `{text}`: expected FROM:TO or FROM:TO:COUNT, such as nic0:nic7:3, \
                 with a count of 1 to {MOST_MESSAGES}"
            )
        };
        let (from, to, count) = match text.split(':').collect::<Vec<_>>()[..] {
            [from, to] => (from, to, 1),
            [from, to, count] => (from, to, count.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        };
        let is_right = !from.is_empty() && !to.is_empty() && (1..=MOST_MESSAGES).contains(&count);
        let [from, to] = [from, to].map(str::to_owned);
        is_right
            .then_some(Self { from, to, count })
            .ok_or_else(wrong)
    }
}

impl SimTraceArgs {
    /// The tracing options, resolved for a network.
    ///
    /// # Errors
    /// If a NIC does not exist, or there are several points.
    pub(super) fn traced(
        &self,
        network: &dyn Network,
        points: usize,
    ) -> miette::Result<Option<Traced>> {
        let Some(wanted) = &self.trace else {
            return Ok(None);
        };
        if points > 1 {
            return Err(miette!(
                "--trace follows packets of a single point, but these options give {points}"
            ));
        }
        let (from, to) = (
            numbers_of(network, &wanted.from)?,
            numbers_of(network, &wanted.to)?,
        );
        let (NodeRef::Processor(source), NodeRef::Processor(target)) = (from.node, to.node) else {
            return Err(miette!("packets go from one NIC to another"));
        };
        Ok(Some(Traced {
            from: source,
            to: target,
            flow: Flow {
                from: from.routed,
                to: to.routed,
            },
            count: wanted.count,
        }))
    }

    /// The traces of the messages found. Also writes them to the requested file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn traces(
        &self,
        network: &dyn Network,
        cycle: Duration,
        found: Option<&Found>,
    ) -> miette::Result<Vec<Trace>> {
        let (Some(wanted), Some(found)) = (&self.trace, found) else {
            return Ok(Vec::new());
        };
        let peers = Peers::of(network);
        let of = |message| trace_of(network, &peers, cycle, wanted, (found, message));
        let traces = found
            .messages
            .iter()
            .map(of)
            .collect::<miette::Result<Vec<Trace>>>()?;
        if let Some(file) = &self.perfetto {
            write_perfetto(file, &traces)?;
            print_error(&format!("written: {}", file.display()));
        }
        Ok(traces)
    }

    /// The traces as text.
    pub(super) fn text(&self, traces: &[Trace]) -> String {
        let Some(wanted) = &self.trace else {
            return String::new();
        };
        if traces.is_empty() {
            return format!(
                "\nno message from {} to {} was sent during the measurement: measure longer, or \
                 choose other NICs\n",
                wanted.from, wanted.to
            );
        }
        traces
            .iter()
            .map(|trace| format!("\n{}", table::render(trace)))
            .collect()
    }
}

fn trace_of(
    network: &dyn Network,
    peers: &Peers,
    cycle: Duration,
    wanted: &Wanted,
    (found, message): (&Found, &Message),
) -> miette::Result<Trace> {
    let cycle_ps = cycle.as_ps();
    let ps = |cycle: u64| cycle * cycle_ps;
    let (from, to) = (
        numbers_of(network, &wanted.from)?.node,
        numbers_of(network, &wanted.to)?.node,
    );
    let context = TraceContext {
        network,
        peers,
        seen: &found.seen,
        unit: Unit {
            name: "cycles",
            ps: cycle_ps,
        },
        zero_ps: ps(message.birth),
    };
    let request = TracedPacket {
        from,
        to,
        response: false,
        identity: message.identity,
        not_before_ps: ps(message.birth),
        slack_ps: 0,
    };
    let ends = Ends {
        began_ps: Some(ps(message.birth)),
        came_ps: message.arrived.map(ps),
        has_come: false,
    };
    let mut ways = vec![context.report_path(request, ends).0];
    if let Some((arrived, answered)) = message.arrived.zip(message.answered) {
        let response = TracedPacket {
            from: to,
            to: from,
            response: true,
            identity: message.answer_identity,
            not_before_ps: ps(arrived),
            slack_ps: 0,
        };
        let ends = Ends {
            began_ps: Some(ps(arrived)),
            came_ps: Some(ps(answered)),
            has_come: false,
        };
        ways.push(context.report_path(response, ends).0);
    }
    let ended = message.answered.or(message.arrived);
    let mut notes = Vec::new();
    if found.dropped > 0 && ways.iter().any(|way| !way.delivered) {
        let dropped = found.dropped;
        notes.push(format!("routers did not record {dropped} packets: no room"));
    }
    Ok(Trace {
        version: VERSION,
        source: format!("sim {}", network.name()),
        unit: context.unit,
        from: wanted.from.clone(),
        to: wanted.to.clone(),
        operation: "message".to_owned(),
        identity: message.identity,
        outcome: match ended {
            Some(_) => "arrived".to_owned(),
            None => "has not arrived".to_owned(),
        },
        ended: ended.map(|cycle| context.at(ps(cycle))),
        ways,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_selections_parse_with_or_without_a_count() {
        let wanted = |from: &str, to: &str, count| Wanted {
            from: from.to_owned(),
            to: to.to_owned(),
            count,
        };
        assert_eq!("nic0:nic7".parse(), Ok(wanted("nic0", "nic7", 1)));
        assert_eq!("a:b:3".parse(), Ok(wanted("a", "b", 3)));
        for wrong in [
            "", "nic0", "nic0:", ":nic1", "a:b:0", "a:b:x", "a:b:1:2", "a:b:101",
        ] {
            assert!(wrong.parse::<Wanted>().is_err(), "{wrong}");
        }
    }
}
