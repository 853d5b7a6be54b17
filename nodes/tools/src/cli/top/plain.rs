//! One sample of a lab as text or JSON.

use phitwire::net::harmless;
use phitwire::text_table::TextTable;
use phitwire_nodes::control::NodeKind;
use schemars::JsonSchema;
use serde::Serialize;

use super::rows::{self, Sort, short, span};
use super::worker::LabUpdate;
use crate::watch::{LabEvent, Rates, Sample};

/// The version of the JSON.
const VERSION: u32 = 1;

/// A sample of a lab, as JSON.
#[derive(Serialize, JsonSchema)]
pub struct Snapshot<'a> {
    /// Version of this schema.
    version: u32,
    /// Name of the lab.
    lab: &'a str,
    /// The network that it runs, in one line.
    network: &'a str,
    /// The state of all nodes.
    sample: &'a Sample,
    /// Rates per second since the previous sample.
    rates: &'a Rates,
    /// Events since the previous sample.
    events: &'a [LabEvent],
}

impl<'a> Snapshot<'a> {
    pub fn new(lab: &'a str, network: &'a str, look: &'a LabUpdate) -> Self {
        Self {
            version: VERSION,
            lab,
            network,
            sample: &look.sample,
            rates: &look.rates,
            events: &look.events,
        }
    }
}

/// The sample as text: totals, links in trouble, silent nodes, NICs with traffic.
pub fn text(lab: &str, network: &str, look: &LabUpdate) -> String {
    let mut text = format!("lab {lab}: {network}\n");
    text += &format!("{}\n\n", rows::totals(&look.sample, &look.rates));
    text += &links(look);
    let silent = look.sample.nodes.iter().filter_map(|node| {
        let why = node.silent.as_ref()?;
        Some(format!("{} {}: {why}\n", node.kind, node.name))
    });
    let silent: String = silent.collect();
    if !silent.is_empty() {
        text += &format!("\n{silent}");
    }
    text += &traffic(look);
    for event in &look.events {
        text += &format!("\n{}", super::detail::event_text(event));
    }
    if !look.events.is_empty() {
        text += "\n";
    }
    harmless(&text)
}

fn links(look: &LabUpdate) -> String {
    let mut table = TextTable::new(&[
        "link", "ends", "state", "lanes", "frames/s", "use", "resent/s", "bad/s", "resent",
        "problem",
    ])
    .figures(4..9);
    for row in rows::links(&look.sample, &look.rates, None, "", Sort::Trouble) {
        table.row([
            row.link.to_string(),
            row.ends(),
            row.state().to_owned(),
            row.lanes(),
            short(row.frames()),
            format!("{:.0}%", row.share() * 100.0),
            short(row.resent()),
            short(row.bad()),
            row.resent_total().to_string(),
            row.why(),
        ]);
    }
    table.render()
}

fn traffic(look: &LabUpdate) -> String {
    let nics = look.sample.nodes.iter().zip(&look.rates.nodes);
    let nics = nics.filter(|(node, _)| node.kind == NodeKind::Nic);
    let running: Vec<_> = nics
        .filter_map(|(node, rates)| Some((node, rates, node.traffic.as_ref()?)))
        .collect();
    if running.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new(&[
        "nic",
        "answered/s",
        "outstanding",
        "timed out",
        "median",
        "p99",
        "most",
    ])
    .figures(1..7);
    for (node, rates, run) in running {
        table.row([
            node.name.clone(),
            short(rates.acknowledged),
            run.outstanding.to_string(),
            run.timed_out.to_string(),
            span(run.latency.quantile(500)),
            span(run.latency.quantile(990)),
            span(run.latency.max_ns),
        ]);
    }
    format!("\n{}", table.render())
}
