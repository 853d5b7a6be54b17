//! From TOML tables to a topology.

use core::ops::Range;

use toml::Spanned;
use toml::de::DeTable;

use super::Described;
use super::fields::{Fields, Section, Value};
use super::overrides::{Overrides, named_registers};
use super::wiring::wiring;
use crate::link::LaneRate;
use crate::nic::{MAX_MEMORY_BYTES, MAX_OUTSTANDING};
use crate::router::yarc::registers::{PORTS, Subtree};
use crate::topology::computed::ENTIRE_NETWORK;
use crate::topology::generate::blank_registers;
use crate::topology::limits::{MAX_CHIPS, MAX_DILATION};
use crate::topology::mistake::{Mistake, MistakeKind, Place};
use crate::topology::model::{
    Chip, Clock, MAX_METRES, MAX_NAME_BYTES, MAX_PROCESSORS, MAX_SLICES, Processor, Profile,
    Settings, Topology, VirtualRouter, is_aligned, parse_rate, subtree_of_range,
};
use crate::topology::ports::PortSet;
use crate::topology::shown::Shown;

/// A topology of nothing, to be filled.
pub(super) fn empty() -> Topology {
    Topology {
        name: String::new(),
        slices: 1,
        settings: Settings::default(),
        processors: Vec::new(),
        chips: Vec::new(),
        links: Vec::new(),
    }
}

/// Reads everything but the registers that follow from the structure.
pub(super) fn topology(
    fields: &mut Fields,
    table: &Spanned<DeTable<'_>>,
    into: &mut Described,
) -> Overrides {
    let mut root = Section::new(table.get_ref(), 0..0, "a description");
    if let Some(value) = root.take("family") {
        // Descriptions of the other family have a reader of their own.
        let _ = fields.word(value, &[("blackwidow", ()), ("aries", ())]);
    }
    match root.take("name") {
        Some(value) => {
            into.spans.network = value.span();
            if let Some(name) = name(fields, value) {
                into.topology.name = name;
            }
        }
        None => {
            fields.missing(&root, "name", "\"my-lab\"");
            into.topology.name = String::from("unnamed");
        }
    }
    if let Some(value) = root.take("slices") {
        let slices = fields.integer(value, 1..=u64::from(MAX_SLICES));
        into.topology.slices = slices.map_or(1, |s| s as u8);
    }
    if let Some(value) = root.take("network")
        && let Some(section) = fields.table(value, "[network]")
    {
        into.topology.settings = settings(fields, section);
    }
    let mut overrides = Overrides::default();
    let (nodes, chips) = (root.take("processors"), root.take("chip"));
    if is_too_large(fields, nodes, chips) {
        return overrides;
    }
    match nodes {
        Some(value) => processors(fields, value, into),
        None => fields.missing(&root, "processors", "{ nic0 = 0, nic1 = 1 }"),
    }
    match chips {
        Some(value) => {
            for item in fields.items(value) {
                if let Some(section) = fields.table(item, "a chip") {
                    chip(fields, section, into, &mut overrides);
                }
            }
        }
        None => fields.missing(&root, "chip", "[{ name = \"r1-0\", rank = 1, ... }]"),
    }
    match root.take("wiring") {
        Some(value) => wiring(fields, value, into),
        None => fields.missing(&root, "wiring", "{ links = [ ... ] }"),
    }
    fields.finish(root);
    overrides
}

/// Whether there are more processors or chips than any network has: then nothing else is worth reading.
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
            "packets are addressed by numbers of 15 bits (paper, section 5.1)",
        ),
        (
            chips,
            MAX_CHIPS,
            "chips",
            "each has a link, and their ids end at 65535",
        ),
    ];
    for (count, most, what, help) in counts {
        if let Some((value, count)) = count.filter(|(_, count)| *count > most) {
            fields.mistakes.push(
                Mistake::new(
                    MistakeKind::TooLarge,
                    Place::Text(value.span()),
                    format!("there are {count} {what}, and a network has at most {most}"),
                )
                .help(help),
            );
            return true;
        }
    }
    false
}

/// A name; [`check`](crate::topology::check) judges what is in it.
fn name(fields: &mut Fields, value: Value<'_, '_>) -> Option<String> {
    let text = fields.text(value)?;
    name_in_range(fields, text, value.span());
    Some(stem(text).to_owned())
}

/// Tells of a name that is too long. Nothing else quotes more of it than its [`stem`].
fn name_in_range(fields: &mut Fields, text: &str, span: Range<usize>) {
    if text.len() > MAX_NAME_BYTES {
        fields.bad(
            span,
            format!("\"{}\" cannot be a name: it is too long", Shown(text)),
            format!("write 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`"),
        );
    }
}

/// As much of a text as may be a name.
pub(super) fn stem(text: &str) -> &str {
    let mut end = text.len().min(MAX_NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn settings(fields: &mut Fields, mut section: Section<'_, '_>) -> Settings {
    let mut settings = Settings::default();
    if let Some(value) = section.take("profile") {
        let words = [("live", Profile::Live), ("paper", Profile::Paper)];
        settings.profile = fields.word(value, &words).unwrap_or(settings.profile);
    }
    clock(fields, &mut section, &mut settings);
    if let Some(value) = section.take("lane_rate") {
        settings.rate = rate(fields, value).unwrap_or(settings.rate);
    }
    settings.metres = metres(fields, &mut section);
    let mut number = |key, range, into: &mut u64| {
        if let Some(value) = section.take(key) {
            *into = fields.integer(value, range).unwrap_or(*into);
        }
    };
    const U32: u64 = u32::MAX as u64;
    // A day in milliseconds keeps every sum of picoseconds far inside of 64 bits.
    const DAY_MS: u64 = 86_400_000;
    let mut threshold = u64::from(settings.lane_retry_threshold);
    number("lane_retry_threshold", 0..=U32, &mut threshold);
    let mut max_packet = u64::from(settings.max_packet_phits);
    number("max_packet_phits", 4..=19, &mut max_packet);
    number(
        "memory_bytes",
        64..=MAX_MEMORY_BYTES,
        &mut settings.memory_bytes,
    );
    number(
        "request_timeout_ms",
        1..=DAY_MS,
        &mut settings.request_timeout_ms,
    );
    number(
        "forward_progress_ms",
        1..=DAY_MS,
        &mut settings.forward_progress_ms,
    );
    number("give_up_ms", 0..=DAY_MS, &mut settings.give_up_ms);
    number("silence_ms", 0..=DAY_MS, &mut settings.silence_ms);
    let mut outstanding = u64::from(settings.outstanding);
    number(
        "outstanding",
        1..=u64::from(MAX_OUTSTANDING),
        &mut outstanding,
    );
    settings.lane_retry_threshold = threshold as u32;
    settings.max_packet_phits = max_packet as u8;
    settings.outstanding = outstanding as u32;
    fields.finish(section);
    settings
}

pub(in crate::topology) fn clock(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    settings: &mut Settings,
) {
    let paced = match section.take("clock") {
        Some(value) => fields
            .word(value, &[("free-running", false), ("paced", true)])
            .unwrap_or(false),
        None => false,
    };
    let dilation = section.take("dilation");
    match (paced, dilation) {
        (true, Some(value)) => {
            let dilation = fields
                .integer(value, 1..=u64::from(MAX_DILATION))
                .unwrap_or(1) as u32;
            settings.clock = Clock::Paced { dilation };
        }
        (true, None) => settings.clock = Clock::Paced { dilation: 1 },
        (false, Some(value)) => fields.bad(
            value.span(),
            "only a paced clock has a dilation",
            "write `clock = \"paced\"` or remove this key",
        ),
        (false, None) => {}
    }
}

pub(super) fn rate(fields: &mut Fields, value: Value<'_, '_>) -> Option<LaneRate> {
    match parse_rate(fields.number_text(value)?) {
        Ok(rate) => Some(rate),
        Err(message) => {
            let help = "the SerDes have these rates only (paper, section 4.4)";
            fields.bad(value.span(), message, help);
            None
        }
    }
}

/// Metres of cable.
pub(super) fn metres(fields: &mut Fields, section: &mut Section<'_, '_>) -> Option<u16> {
    let value = section.take("metres")?;
    let metres = fields.integer(value, 1..=u64::from(MAX_METRES));
    metres.map(|metres| metres as u16)
}

fn processors(fields: &mut Fields, value: Value<'_, '_>, into: &mut Described) {
    let Some(table) = value.get_ref().as_table() else {
        fields.bad(
            value.span(),
            "this is no table",
            "write `[processors]` and `nic0 = 0` below",
        );
        return;
    };
    // The table is sorted by name; the description has an order of its own.
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let text: &str = key.get_ref();
        name_in_range(fields, text, key.span());
        let right = 0..=u64::from(MAX_PROCESSORS - 1);
        let Some(number) = fields.integer_told(value, 0..=u64::from(u16::MAX), right) else {
            continue;
        };
        into.topology.processors.push(Processor {
            name: stem(text).to_owned(),
            number: number as u16,
        });
        into.spans
            .processors
            .push(key.span().start..value.span().end);
    }
}

fn chip(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    into: &mut Described,
    overrides: &mut Overrides,
) {
    let span = section.span();
    let (name, name_span) = match section.take("name") {
        Some(value) => (name(fields, value).unwrap_or_default(), value.span()),
        None => {
            fields.missing(&section, "name", "\"r1-0\"");
            (format!("unnamed-{}", into.topology.chips.len()), span)
        }
    };
    let chip = into.topology.chips.len();
    into.spans.chips.push(name_span.clone());
    into.spans.routers.push(Vec::new());
    into.topology.chips.push(Chip {
        name: name.clone(),
        routers: Vec::new(),
    });
    if section.has("router") {
        let routers = section
            .take("router")
            .map(|value| routers_of_a_chip(fields, value));
        for mut section in routers.unwrap_or_default() {
            let named = section.take("name");
            let (name, span) = match named {
                Some(value) => (self::name(fields, value).unwrap_or_default(), value.span()),
                None => {
                    fields.missing(&section, "name", "\"r2-0a\"");
                    (format!("unnamed-{chip}"), section.span())
                }
            };
            router(fields, &mut section, (chip, name, span), into, overrides);
            fields.finish(section);
        }
    } else {
        // A chip that is one router needs no section for it.
        router(
            fields,
            &mut section,
            (chip, name, name_span),
            into,
            overrides,
        );
        section.take("router");
    }
    fields.finish(section);
}

/// The sections of a chip's routers: no more than it has ports for.
fn routers_of_a_chip<'r, 't>(fields: &mut Fields, value: Value<'r, 't>) -> Vec<Section<'r, 't>> {
    let count = fields.items(value).len();
    if count > PORTS {
        fields.mistakes.push(
            Mistake::new(
                MistakeKind::TooLarge,
                Place::Text(value.span()),
                format!("there are {count} routers on this chip, and it has {PORTS} ports"),
            )
            .help("a chip has at most as many virtual routers as ports (paper, section 7.4)"),
        );
        return Vec::new();
    }
    fields.tables(value, "a router")
}

fn router(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    (chip, name, span): (usize, String, Range<usize>),
    into: &mut Described,
    overrides: &mut Overrides,
) {
    let rank = match section.take("rank") {
        Some(value) => fields.integer(value, 1..=3).unwrap_or(1) as u8,
        None => {
            fields.missing(section, "rank", "1");
            1
        }
    };
    let last = u64::from(into.topology.slices.saturating_sub(1));
    let slices = 0..=u64::from(MAX_SLICES - 1);
    let slice = section
        .take("slice")
        .and_then(|value| fields.integer_told(value, slices, 0..=last));
    let ports = section.take("ports").and_then(|value| ports(fields, value));
    let subtree = match section.take("processors") {
        Some(value) => subtree(fields, value),
        None => {
            fields.missing(section, "processors", "\"0-3\"");
            None
        }
    };
    let routers = &mut into.topology.chips[chip].routers;
    let index = routers.len();
    routers.push(VirtualRouter {
        name,
        rank,
        slice: slice.unwrap_or(0) as u8,
        ports: ports.unwrap_or(PortSet::ALL),
        subtree: subtree.unwrap_or_default(),
        registers: blank_registers(),
    });
    into.spans.routers[chip].push(span);
    let mut entries = Vec::new();
    let named = named_registers(fields, section, &mut entries);
    for (entry, span) in entries {
        into.spans
            .entries
            .push(((chip as u32, index as u32, entry), span));
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

/// `"4-7"`, `"4"`, `"all"` or `{ location = 4, mask = 3 }`.
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
        let help = "write a range of numbers below 32768 like \"4-7\", or \"all\"";
        fields.bad(
            value.span(),
            format!("\"{}\" is no range of processors", Shown(text)),
            help,
        );
        return None;
    };
    let subtree = subtree_of_range(first.min(last), first.max(last));
    let (from, to) = (subtree.location, subtree.location | subtree.mask);
    if (from, to) != (first, last) || !is_aligned(subtree) {
        fields.mistakes.push(
            Mistake::new(
                MistakeKind::BadSubtree,
                Place::Text(value.span()),
                format!("{first}-{last} is no subtree: location and mask cannot name it"),
            )
            .label("no power of two, or not aligned to it")
            .help(format!("write the range around it, \"{from}-{to}\"")),
        );
        return None;
    }
    Some(subtree)
}
