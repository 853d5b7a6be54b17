use std::collections::BTreeMap;

use phitwire_framing::carrier::lanes::Lanes;

use super::read::rate;
use crate::link::STANDARD;
use crate::topology::model::{ClosSettings, FoldedClos};
use phitwire::net::{
    Ends, Fields, Link, Location, NodeRef, Section, Spans, Value, link, metres, stem,
};

pub(super) fn wiring(
    fields: &mut Fields,
    value: Value<'_, '_>,
    into: &mut FoldedClos,
    spans: &mut Spans,
) {
    let Some(mut section) = fields.table(value, "[wiring]") else {
        return;
    };
    let nodes = Names::new(into);
    let example = "[ { a = \"nic0:0\", b = \"r1-0:0\" } ]";
    let links = fields.need(&mut section, "links", example);
    for section in links.map_or(Vec::new(), |value| fields.tables(value, "a link")) {
        let span = section.span();
        if let Some(link) = one(fields, section, &nodes, &into.settings) {
            spans.add(Location::Link(into.links.len() as u32), span);
            into.links.push(link);
        }
    }
    fields.finish(section);
}

fn one(
    fields: &mut Fields,
    section: Section<'_, '_>,
    nodes: &Names,
    settings: &ClosSettings,
) -> Option<Link> {
    link(fields, section, nodes, |fields, section| {
        let rate = section.take("rate").and_then(|value| rate(fields, value));
        let metres = metres(fields, section).or(settings.own.metres);
        (rate.unwrap_or(settings.own.rate), metres)
    })
}

/// Nodes by name; among duplicates the first wins.
struct Names(BTreeMap<String, NodeRef>);

impl Names {
    fn new(topology: &FoldedClos) -> Self {
        let chips = topology.chips.iter().enumerate();
        let chips = chips.map(|(i, chip)| (chip.name.clone(), NodeRef::Chip(i as u32)));
        let processors = topology.processors.iter().enumerate();
        let processors = processors.map(|(i, p)| (p.name.clone(), NodeRef::Processor(i as u32)));
        Self(chips.rev().chain(processors.rev()).collect())
    }
}

impl Ends for Names {
    const LANES: Lanes = STANDARD.lanes;
    const EXAMPLES: [&'static str; 2] = ["nic0:0", "r1-0:0"];
    const EXAMPLE: &'static str = "r1-0:32";
    const PORTS: &'static str = "a chip has ports 0 to 63, a processor one port per slice";

    fn find(&self, name: &str) -> Option<NodeRef> {
        self.0.get(stem(name)).copied()
    }

    fn instead_of(&self, name: &str) -> String {
        let mut names = self.0.keys();
        match names.find(|known| known.eq_ignore_ascii_case(name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => String::from("use the name of a processor or chip in this description"),
        }
    }

    fn is_port(&self, _: NodeRef, _: u8) -> bool {
        true
    }
}
