//! Reads a folded Clos from TOML tables.

use core::fmt::{self, Write as _};
use core::ops::Range;

use super::links::wiring;
use super::overrides::{Overrides, named_registers};
use crate::nic;
use crate::route::registers::{PORTS, Subtree};
use crate::topology::check;
use crate::topology::computed::ENTIRE_NETWORK;
use crate::topology::generate::{BlackWidowSpec, blank_registers, fill_registers};
use crate::topology::model::{
    Chip, ClosLinks, ClosSettings, FoldedClos, MAX_PROCESSORS, MAX_SLICES, Processor,
    VirtualRouter, is_aligned, parse_rate, rate_text, subtree_of_range,
};
use phitwire::link::LaneRate;
use phitwire::net::{
    Describe, Fields, Location, MAX_CHIPS, MistakeKind as K, Mistakes, OwnSettings, PortSet,
    Section, Shown, Spans, Value, metres, name, name_in_range, stem,
};

impl Describe for FoldedClos {
    const FAMILY: &'static str = "blackwidow";
    const WHAT: &'static str = "a description";
    const NAMES: &'static str =
        "RANK-PROCESSORS, such as r1-32, r1.5-288, r2-1024, r3-16384 and r3.5-32768";

    fn read(
        name: String,
        fields: &mut Fields,
        root: &mut Section<'_, '_>,
        spans: &mut Spans,
    ) -> Self {
        let mut topology = Self {
            name,
            slices: 1,
            settings: ClosSettings::default(),
            processors: Vec::new(),
            chips: Vec::new(),
            links: Vec::new(),
        };
        let mut overrides = Overrides::default();
        parts(fields, root, &mut topology, spans, &mut overrides);
        if fields.mistakes.is_empty() {
            fill_registers(&mut topology);
            overrides.apply(&mut topology);
        }
        topology
    }

    fn generate(name: &str) -> Option<Result<Self, String>> {
        let spec = BlackWidowSpec::named(name)?;
        Some(spec.generate().map_err(|error| error.to_string()))
    }

    fn judge_part(&self) -> Mistakes {
        check::structure_of_a_part(self)
    }
}

/// Reads everything except the computed registers.
fn parts(
    fields: &mut Fields,
    root: &mut Section<'_, '_>,
    into: &mut FoldedClos,
    spans: &mut Spans,
    overrides: &mut Overrides,
) {
    let slices = fields.number(root, "slices", 1..=u64::from(MAX_SLICES));
    into.slices = slices.map_or(1, |slices| slices as u8);
    if let Some(section) = fields.part(root, "network", "[network]") {
        into.settings = ClosSettings::read(fields, section);
    }
    let (nodes, chips, links) = (
        root.take("processors"),
        root.take("chip"),
        root.take("wiring"),
    );
    if is_too_large(fields, nodes, chips) {
        return;
    }
    match nodes {
        Some(value) => processors(fields, value, into, spans),
        None => fields.missing(root, "processors", "{ nic0 = 0, nic1 = 1 }"),
    }
    match chips {
        Some(value) => {
            for item in fields.items(value) {
                if let Some(section) = fields.table(item, "a chip") {
                    chip(fields, section, into, spans, overrides);
                }
            }
        }
        None => fields.missing(root, "chip", "[{ name = \"r1-0\", rank = 1, ... }]"),
    }
    match links {
        Some(value) => wiring(fields, value, into, spans),
        None => fields.missing(root, "wiring", "{ links = [ ... ] }"),
    }
}

impl OwnSettings for ClosLinks {
    // Never give up: a link resumes when its cable is reconnected (BlackWidow sec. 4.3).
    const GIVE_UP_MS: u64 = 0;
    // "... thousands of outstanding global memory references" per processor (BlackWidow sec. 2.1).
    const OUTSTANDING: u32 = 1 << 14;
    const MAX_OUTSTANDING: u32 = nic::MAX_OUTSTANDING;

    fn read(&mut self, fields: &mut Fields, section: &mut Section<'_, '_>) {
        if let Some(value) = section.take("lane_rate") {
            self.rate = rate(fields, value).unwrap_or(self.rate);
        }
        self.metres = metres(fields, section);
        let phits = fields.number(section, "max_packet_phits", 4..=19);
        self.max_packet_phits = phits.map_or(self.max_packet_phits, |phits| phits as u8);
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "lane_rate = {}", rate_text(self.rate))?;
        if let Some(metres) = self.metres {
            writeln!(out, "metres = {metres}")?;
        }
        if self.max_packet_phits != Self::default().max_packet_phits {
            writeln!(out, "max_packet_phits = {}", self.max_packet_phits)?;
        }
        Ok(())
    }
}

/// Whether the description has more processors or chips than any network, so that reading the rest
/// is pointless.
fn is_too_large(
    fields: &mut Fields,
    processors: Option<Value<'_, '_>>,
    chips: Option<Value<'_, '_>>,
) -> bool {
    let processors = processors.and_then(|value| Some((value, value.get_ref().as_table()?.len())));
    let chips = chips.and_then(|value| Some((value, value.get_ref().as_array()?.len())));
    let counts = [
        (
            processors,
            MAX_PROCESSORS as usize,
            "processors",
            "processor numbers have 15 bits (BlackWidow sec. 5.1)",
        ),
        (
            chips,
            MAX_CHIPS,
            "chips",
            "each chip has a link, and link ids end at 65535",
        ),
    ];
    for (count, most, what, help) in counts {
        if let Some((value, count)) = count.filter(|(_, count)| *count > most) {
            fields.mistakes.push(
                K::TooLarge
                    .at(
                        Location::Text(value.span()),
                        format!("{count} {what} exceed the limit of {most} per network"),
                    )
                    .help(help),
            );
            return true;
        }
    }
    false
}

pub(super) fn rate(fields: &mut Fields, value: Value<'_, '_>) -> Option<LaneRate> {
    match parse_rate(fields.number_text(value)?) {
        Ok(rate) => Some(rate),
        Err(message) => {
            let help = "the SerDes support only these rates (BlackWidow sec. 4.4)";
            fields.bad(value.span(), message, help);
            None
        }
    }
}

fn processors(fields: &mut Fields, value: Value<'_, '_>, into: &mut FoldedClos, spans: &mut Spans) {
    let Some(table) = value.get_ref().as_table() else {
        fields.bad(
            value.span(),
            "`processors` must be a table",
            "write `[processors]` with `nic0 = 0` below it",
        );
        return;
    };
    // The table is sorted by name, so restore the order of the description.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let text: &str = key.get_ref();
        name_in_range(fields, text, key.span());
        let right = 0..=u64::from(MAX_PROCESSORS - 1);
        let Some(number) = fields.integer_within(value, 0..=u64::from(u16::MAX), right) else {
            continue;
        };
        let location = Location::Processor(into.processors.len() as u32);
        spans.add(location, key.span().start..value.span().end);
        into.processors.push(Processor {
            name: stem(text).to_owned(),
            number: number as u16,
        });
    }
}

fn chip(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    into: &mut FoldedClos,
    spans: &mut Spans,
    overrides: &mut Overrides,
) {
    let chip = into.chips.len();
    let (name, name_span) = called(fields, &mut section, "\"r1-0\"", chip);
    spans.add(Location::Chip(chip as u32), name_span.clone());
    into.chips.push(Chip {
        name: name.clone(),
        routers: Vec::new(),
    });
    if section.has("router") {
        let routers = section.take("router");
        let routers = routers.map(|value| routers_of_a_chip(fields, value));
        for mut section in routers.unwrap_or_default() {
            let (name, span) = called(fields, &mut section, "\"r2-0a\"", chip);
            let named_chip = (chip, name, span);
            router(fields, &mut section, named_chip, into, spans, overrides);
            fields.finish(section);
        }
    } else {
        // A chip with a single router needs no section for the router.
        let named_chip = (chip, name, name_span);
        router(fields, &mut section, named_chip, into, spans, overrides);
        section.take("router");
    }
    fields.finish(section);
}

/// Name and span of a chip, or of a router on it.
fn called(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    example: &str,
    chip: usize,
) -> (String, Range<usize>) {
    match fields.need(section, "name", example) {
        Some(value) => (name(fields, value).unwrap_or_default(), value.span()),
        None => (format!("unnamed-{chip}"), section.span()),
    }
}

/// The sections of a chip's routers, at most one per port.
fn routers_of_a_chip<'r, 't>(fields: &mut Fields, value: Value<'r, 't>) -> Vec<Section<'r, 't>> {
    let count = fields.items(value).len();
    if count > PORTS {
        fields.mistakes.push(
            K::TooLarge
                .at(
                    Location::Text(value.span()),
                    format!("this chip has {count} routers but only {PORTS} ports"),
                )
                .help("each virtual router needs at least one port (BlackWidow sec. 7.4)"),
        );
        return Vec::new();
    }
    fields.tables(value, "a router")
}

fn router(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    (chip, name, span): (usize, String, Range<usize>),
    into: &mut FoldedClos,
    spans: &mut Spans,
    overrides: &mut Overrides,
) {
    let rank = fields.need(section, "rank", "1");
    let rank = rank.and_then(|value| fields.integer(value, 1..=3));
    let last = u64::from(into.slices.saturating_sub(1));
    let slices = 0..=u64::from(MAX_SLICES - 1);
    let slice = section
        .take("slice")
        .and_then(|value| fields.integer_within(value, slices, 0..=last));
    let ports = section.take("ports").and_then(|value| ports(fields, value));
    let below = fields.need(section, "processors", "\"0-3\"");
    let subtree = below.and_then(|value| subtree(fields, value));
    let routers = &mut into.chips[chip].routers;
    let index = routers.len();
    routers.push(VirtualRouter {
        name,
        rank: rank.unwrap_or(1) as u8,
        slice: slice.unwrap_or(0) as u8,
        ports: ports.unwrap_or(PortSet::ALL),
        subtree: subtree.unwrap_or_default(),
        registers: blank_registers(),
    });
    let (at, number) = (chip as u32, index as u32);
    spans.add(Location::Router(at, number), span);
    let mut entries = Vec::new();
    let named = named_registers(fields, section, &mut entries);
    for (entry, span) in entries {
        spans.add(Location::Entry(at, number, entry), span);
    }
    overrides.0.push((chip, index, named));
}

pub(super) fn location_and_mask(
    fields: &mut Fields,
    location: Value<'_, '_>,
    mask: Value<'_, '_>,
) -> Option<Subtree> {
    let location = fields.integer(location, 0..=0x7fff);
    let mask = fields.integer(mask, 0..=0x7fff);
    Some(Subtree {
        location: location? as u16,
        mask: mask? as u16,
    })
}

pub(super) fn ports(fields: &mut Fields, value: Value<'_, '_>) -> Option<PortSet> {
    let text = fields.text(value)?;
    match PortSet::parse(text) {
        Ok(ports) => Some(ports),
        Err(error) => {
            let help = "write port numbers and ranges, like \"0-3, 32-35\"";
            fields.bad(value.span(), error.to_string(), help);
            None
        }
    }
}

/// Reads `"4-7"`, `"4"`, `"all"` or `{ location = 4, mask = 3 }`.
pub(super) fn subtree(fields: &mut Fields, value: Value<'_, '_>) -> Option<Subtree> {
    if value.get_ref().is_table() {
        let mut section = fields.table(value, "a subtree")?;
        let (location, mask) = (section.take("location"), section.take("mask"));
        let subtree = match (location, mask) {
            (Some(location), Some(mask)) => location_and_mask(fields, location, mask),
            _ => {
                fields.missing(&section, "location` and `mask", "...");
                None
            }
        };
        fields.finish(section);
        return subtree;
    }
    let text = fields.text(value)?.trim();
    if text == "all" {
        return Some(ENTIRE_NETWORK);
    }
    let number = |s: &str| s.trim().parse::<u16>().ok().filter(|&n| n < 1 << 15);
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        let help = "write a range of numbers below 32768, like \"4-7\", or \"all\"";
        fields.bad(
            value.span(),
            format!("\"{}\" is not a range of processors", Shown(text)),
            help,
        );
        return None;
    };
    let subtree = subtree_of_range(first.min(last), first.max(last));
    let (from, to) = (subtree.location, subtree.location | subtree.mask);
    if (from, to) != (first, last) || !is_aligned(subtree) {
        fields.mistakes.push(
            K::BadSubtree
                .at(
                    Location::Text(value.span()),
                    format!("{first}-{last} is not a subtree: no location and mask can express it"),
                )
                .label("its size is not a power of two, or it is not aligned")
                .help(format!("write the enclosing range, \"{from}-{to}\"")),
        );
        return None;
    }
    Some(subtree)
}
