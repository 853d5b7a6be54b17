//! The links of a description.

use std::collections::BTreeMap;

use phitwire_framing::lanes::Permutation;

use super::Described;
use super::fields::{Fields, Section, Value};
use super::read::{metres, rate, stem};
use crate::topology::mistake::{Mistake, MistakeKind, Place};
use crate::topology::model::{End, Link, NodeRef, Settings, Topology};
use crate::topology::shown::Shown;

pub(super) fn wiring(fields: &mut Fields, value: Value<'_, '_>, into: &mut Described) {
    let Some(mut section) = fields.table(value, "[wiring]") else {
        return;
    };
    match section.take("links") {
        Some(value) => {
            let nodes = node_names(&into.topology);
            for item in fields.items(value) {
                let Some(section) = fields.table(item, "a link") else {
                    continue;
                };
                let span = section.span();
                if let Some(link) = link(fields, section, &nodes, &into.topology.settings) {
                    into.topology.links.push(link);
                    into.spans.links.push(span);
                }
            }
        }
        None => fields.missing(&section, "links", "[ { a = \"nic0:0\", b = \"r1-0:0\" } ]"),
    }
    fields.finish(section);
}

fn node_names(topology: &Topology) -> BTreeMap<String, NodeRef> {
    let mut nodes = BTreeMap::new();
    for (i, chip) in topology.chips.iter().enumerate().rev() {
        nodes.insert(chip.name.clone(), NodeRef::Chip(i as u32));
    }
    for (i, processor) in topology.processors.iter().enumerate().rev() {
        nodes.insert(processor.name.clone(), NodeRef::Processor(i as u32));
    }
    nodes
}

fn link(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    nodes: &BTreeMap<String, NodeRef>,
    settings: &Settings,
) -> Option<Link> {
    let mut end = |key, example: &str| match section.take(key) {
        Some(value) => end(fields, value, nodes),
        None => {
            fields.missing(&section, key, example);
            None
        }
    };
    let (a, b) = (end("a", "\"nic0:0\""), end("b", "\"r1-0:0\""));
    let rate = section
        .take("rate")
        .and_then(|value| rate(fields, value))
        .unwrap_or(settings.rate);
    let metres = metres(fields, &mut section).or(settings.metres);
    let cable = cable(fields, &mut section);
    fields.finish(section);
    Some(Link {
        a: a?,
        b: b?,
        rate,
        metres,
        cable,
    })
}

pub(in crate::topology) fn cable(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
) -> Permutation {
    let (mut order, mut invert) = ([0, 1, 2], [false; 3]);
    let (swizzle, polarity) = (section.take("swizzle"), section.take("invert"));
    if let Some(value) = polarity {
        let flags: Vec<Option<bool>> = fields
            .items(value)
            .iter()
            .map(|item| item.get_ref().as_bool())
            .collect();
        match flags[..] {
            [Some(x), Some(y), Some(z)] => invert = [x, y, z],
            _ => fields.bad(
                value.span(),
                "a link has three lanes, each inverted or not",
                "write [true, false, false], say",
            ),
        }
    }
    if let Some(value) = swizzle {
        let items = fields.items(value).iter();
        let lanes: Vec<u8> = items
            .filter_map(|item| fields.integer(item, 0..=2))
            .map(|lane| lane as u8)
            .collect();
        match <[u8; 3]>::try_from(lanes)
            .ok()
            .filter(|lanes| Permutation::new(*lanes, invert).is_some())
        {
            Some(lanes) => order = lanes,
            None => fields.bad(
                value.span(),
                "this is no order of three lanes",
                "name each of 0, 1 and 2 once, like [2, 0, 1]",
            ),
        }
    }
    Permutation::new(order, invert).unwrap_or_default()
}

/// `NODE:PORT`.
fn end(
    fields: &mut Fields,
    value: Value<'_, '_>,
    nodes: &BTreeMap<String, NodeRef>,
) -> Option<End> {
    let text = fields.text(value)?;
    let split = text
        .rsplit_once(':')
        .and_then(|(n, p)| Some((n, p.parse::<u32>().ok()?)));
    let Some((name, port)) = split else {
        fields.bad(
            value.span(),
            format!("\"{}\" names no port", Shown(text)),
            "write NODE:PORT, like \"r1-0:32\"",
        );
        return None;
    };
    let Some(&node) = nodes.get(stem(name)) else {
        fields.mistakes.add(|| {
            let help = match nodes.keys().find(|known| known.eq_ignore_ascii_case(name)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => String::from("name a processor or a chip of this description"),
            };
            Mistake::new(
                MistakeKind::UnknownNode,
                Place::Text(value.span()),
                format!("there is no node `{}`", Shown(name)),
            )
            .label("unknown node")
            .help(help)
        });
        return None;
    };
    // What cannot be stored is far out of range for every node; `check` says so of 64 to 255.
    let Ok(port) = u8::try_from(port) else {
        fields.mistakes.push(
            Mistake::new(
                MistakeKind::PortOutOfRange,
                Place::Text(value.span()),
                format!("`{}` has no port {port}", Shown(name)),
            )
            .help("a chip has ports 0 to 63, a processor one port per slice"),
        );
        return None;
    };
    Some(End { node, port })
}
