//! From TOML to a dragonfly.

use core::ops::Range;
use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use toml::Spanned;
use toml::de::DeTable;

use super::check;
use super::generate::{DragonflySpec, DragonflySpecError, Generator};
use super::model::{Classes, Dragonfly, DragonflyLink, DragonflySettings, Shape, gbps};
use crate::link::LaneRate;
use crate::nic::MAX_MEMORY_BYTES;
use crate::router::aries::registers::{AriesRegisters, Bias, ModeBias};
use crate::topology::description::fields::{Fields, Section, Value};
use crate::topology::description::read::clock;
use crate::topology::description::wiring::cable;
use crate::topology::limits::Effort;
use crate::topology::mistake::{Mistake, MistakeKind, Mistakes, Place, Problems};
use crate::topology::model::{End, NodeRef, Profile, Settings};
use crate::topology::parsed::{self, Parsed};
use crate::topology::shown::Shown;

/// Where the parts of a network stand in its text.
#[derive(Debug, Default)]
struct Spans {
    network: Range<usize>,
    shape: Range<usize>,
    /// How many links are generated: they come first.
    generated: usize,
    listed: Vec<Range<usize>>,
}

impl Spans {
    fn of(&self, place: &Place) -> Range<usize> {
        match place {
            Place::Text(span) => span.clone(),
            Place::Link(l) => (*l as usize)
                .checked_sub(self.generated)
                .and_then(|listed| self.listed.get(listed))
                .unwrap_or(&self.shape)
                .clone(),
            Place::Network => self.network.clone(),
            _ => self.shape.clone(),
        }
    }
}

/// Reads and checks the description of a dragonfly, which has `family = "aries"`. `file` is what
/// diagnostics call it.
///
/// # Errors
/// All mistakes that could be found, in the order of the text.
pub fn read(file: &str, text: &str) -> Result<Dragonfly, Problems> {
    let parsed = parsed::parse(file, text)?;
    read_parsed(file, text, &parsed, Effort::Bounded).map(|(network, _)| network)
}

/// The same for a text that has been parsed, and with so much effort; and whether all packets were followed to their ends.
pub(in crate::topology) fn read_parsed(
    file: &str,
    text: &str,
    parsed: &Parsed<'_>,
    effort: Effort,
) -> Result<(Dragonfly, bool), Problems> {
    let (network, spans, mut mistakes) = read_unchecked(parsed);
    let mut followed = false;
    if mistakes.is_empty() {
        (mistakes, followed) = check::within(&network, effort);
    }
    if mistakes.is_empty() {
        return Ok((network, followed));
    }
    Err(Problems::new(file, text, mistakes, |place| spans.of(place)))
}

fn read_unchecked(Parsed { table, errors }: &Parsed<'_>) -> (Dragonfly, Spans, Mistakes) {
    let mut fields = Fields::default();
    for error in errors {
        fields.syntax(error);
    }
    let mut spans = Spans::default();
    let network = if errors.is_empty() {
        network(&mut fields, table, &mut spans)
    } else {
        empty()
    };
    (network, spans, fields.mistakes)
}

fn empty() -> Dragonfly {
    Dragonfly {
        name: String::from("unnamed"),
        shape: DragonflySpec::default().shape,
        generator: None,
        settings: DragonflySettings::default(),
        classes: Classes::default(),
        bias: AriesRegisters::BIAS,
        absent: Vec::new(),
        links: Vec::new(),
    }
}

fn network(fields: &mut Fields, table: &Spanned<DeTable<'_>>, spans: &mut Spans) -> Dragonfly {
    let mut network = empty();
    let mut root = Section::new(table.get_ref(), 0..0, "the description of a dragonfly");
    if let Some(value) = root.take("family") {
        let _ = fields.word(value, &[("aries", ())]);
    }
    match root.take("name") {
        Some(value) => {
            spans.network = value.span();
            if let Some(name) = fields.text(value) {
                name.clone_into(&mut network.name);
            }
        }
        None => fields.missing(&root, "name", "\"my-lab\""),
    }
    match root.take("dragonfly") {
        Some(value) => {
            spans.shape = value.span();
            // A section's span is its contents; its first line is enough to point at.
            spans.shape.end = spans.shape.end.min(spans.shape.start + "[dragonfly]".len());
            if let Some(section) = fields.table(value, "[dragonfly]") {
                dragonfly(fields, section, &mut network);
            }
        }
        None => fields.missing(
            &root,
            "dragonfly",
            "{ groups = 3, chassis = 2, blades = 2, nics = 1 }",
        ),
    }
    if let Some(value) = root.take("network")
        && let Some(section) = fields.table(value, "[network]")
    {
        network.settings = settings(fields, section);
    }
    if let Some(value) = root.take("routing")
        && let Some(section) = fields.table(value, "[routing]")
    {
        routing(fields, section, &mut network);
    }
    if fields.mistakes.is_empty()
        && let Some(generator) = network.generator
    {
        network.links = generator.links(&network.shape, &network.absent);
    }
    if let Some(value) = root.take("wiring")
        && let Some(section) = fields.table(value, "[wiring]")
    {
        wiring(fields, section, &mut network, spans);
    }
    fields.finish(root);
    network
}

fn dragonfly(fields: &mut Fields, mut section: Section<'_, '_>, network: &mut Dragonfly) {
    let mut part = |key, most: u64, default: Option<u64>| -> u64 {
        match section.take(key) {
            Some(value) => fields.integer(value, 1..=most).unwrap_or(1),
            None => default.unwrap_or_else(|| {
                fields.missing(&section, key, "2");
                1
            }),
        }
    };
    let shape = Shape {
        groups: part("groups", u64::from(Shape::MAX_GROUPS), None) as u16,
        chassis: part("chassis", u64::from(Shape::MAX_CHASSIS), None) as u8,
        blades: part("blades", u64::from(Shape::MAX_BLADES), None) as u8,
        nics: part("nics", u64::from(Shape::MAX_NICS), Some(1)) as u8,
    };
    network.shape = shape;
    let generate = match section.take("generate") {
        Some(value) => fields
            .word(value, &[("all", true), ("nothing", false)])
            .unwrap_or(true),
        None => true,
    };
    let mut spec = DragonflySpec {
        shape,
        ..DragonflySpec::default()
    };
    let mut spans = [0..0, 0..0, 0..0];
    let mut number = |key, range, right, span: &mut Range<usize>| -> Option<u64> {
        let value = section.take(key)?;
        *span = value.span();
        if !generate {
            fields.bad(
                value.span(),
                "this says how links are generated, and none are",
                "remove this key, or `generate = \"nothing\"`",
            );
        }
        fields.integer_told(value, range, right)
    };
    // What the shape does not allow, the generator says.
    let bytes = 0..=u64::from(u8::MAX);
    let right = 1..=u64::from(Generator::most_black_links(&shape));
    let black = number("black_links", bytes.clone(), right, &mut spans[0]);
    spec.black_links = black.map(|n| n as u8);
    let words = 0..=u64::from(u16::MAX);
    let right = match Generator::most_global_links(&shape) {
        Some(most) => 1..=u64::from(most),
        None => words.clone(),
    };
    let global = number("global_links", words, right, &mut spans[1]);
    spec.global_links = global.map(|n| n as u16);
    let sets = number("set_links", bytes, 1..=4, &mut spans[2]);
    spec.set_links = sets.map(|n| n as u8);
    if let Some(value) = section.take("arrangement") {
        let words = super::arrangement::Arrangement::ALL;
        spec.arrangement = fields.word(value, &words).unwrap_or_default();
    }
    if generate {
        match spec.generator() {
            Ok(generator) => network.generator = Some(generator),
            Err(error) => {
                let span = match &error {
                    DragonflySpecError::BlackLinks { .. } => &spans[0],
                    DragonflySpecError::GlobalLinks { .. } => &spans[1],
                    DragonflySpecError::Sets(_) => &spans[2],
                    DragonflySpecError::Shape { .. } => &section.span(),
                };
                let known = span.end > 0;
                let span = if known { span.clone() } else { section.span() };
                fields.bad(
                    span,
                    error.to_string(),
                    "change the number, or leave it out",
                );
            }
        }
    }
    if let Some(value) = section.take("absent") {
        network.absent = absent(fields, value, shape);
    }
    fields.finish(section);
}

/// Names of blades that are not there, sorted by number.
fn absent(fields: &mut Fields, value: Value<'_, '_>, shape: Shape) -> Vec<u32> {
    let mut absent = BTreeMap::new();
    for item in fields.items(value) {
        let Some(name) = fields.text(item) else {
            continue;
        };
        match shape.find(name) {
            Some(NodeRef::Chip(router)) => match absent.entry(router) {
                Entry::Vacant(slot) => {
                    slot.insert(item.span());
                }
                Entry::Occupied(first) => {
                    let message = format!("{name} is absent twice");
                    named_twice(fields, item, first.get(), message);
                }
            },
            _ => fields.bad(
                item.span(),
                format!("there is no router `{}`", Shown(name)),
                "name one of this shape, like \"g0-c0s1\": group 0, chassis 0, slot 1",
            ),
        }
    }
    absent.into_keys().collect()
}

/// A list names a thing again.
fn named_twice(fields: &mut Fields, item: Value<'_, '_>, first: &Range<usize>, message: String) {
    fields.mistakes.push(
        Mistake::new(MistakeKind::NamedTwice, Place::Text(item.span()), message)
            .label("again")
            .other(Place::Text(first.clone()), "first")
            .help("name it once"),
    );
}

fn settings(fields: &mut Fields, mut section: Section<'_, '_>) -> DragonflySettings {
    let mut settings = DragonflySettings::default();
    if let Some(value) = section.take("profile") {
        let words = [("live", Profile::Live), ("paper", Profile::Paper)];
        settings.profile = fields.word(value, &words).unwrap_or(settings.profile);
    }
    let mut clocked = Settings::default();
    clock(fields, &mut section, &mut clocked);
    settings.clock = clocked.clock;
    for (key, rate) in [
        ("lane_rate", &mut settings.lane_rate),
        ("global_lane_rate", &mut settings.global_lane_rate),
    ] {
        if let Some(value) = section.take(key) {
            *rate = lane_rate(fields, value).unwrap_or(*rate);
        }
    }
    // A day in milliseconds keeps every sum of picoseconds far inside of 64 bits.
    const DAY_MS: u64 = 86_400_000;
    if let Some(value) = section.take("memory_bytes")
        && let Some(bytes) = fields.integer(value, 64..=MAX_MEMORY_BYTES)
    {
        settings.memory_bytes = bytes;
        if !bytes.is_multiple_of(64) {
            let help = "memory comes in cache lines: write a multiple of 64";
            fields.bad(value.span(), "this is no whole number of cache lines", help);
        }
    }
    let mut number = |key, range, default: u64| match section.take(key) {
        Some(value) => fields.integer(value, range).unwrap_or(default),
        None => default,
    };
    let degrades = u64::from(settings.degrades_allowed);
    settings.degrades_allowed = number("degrades_allowed", 0..=2, degrades) as u8;
    let threshold = u64::from(settings.lane_retry_threshold);
    settings.lane_retry_threshold =
        number("lane_retry_threshold", 0..=u64::from(u32::MAX), threshold) as u32;
    settings.request_timeout_ms = number(
        "request_timeout_ms",
        1..=DAY_MS,
        settings.request_timeout_ms,
    );
    settings.forward_progress_ms = number(
        "forward_progress_ms",
        1..=DAY_MS,
        settings.forward_progress_ms,
    );
    settings.give_up_ms = number("give_up_ms", 0..=DAY_MS, settings.give_up_ms);
    settings.silence_ms = number("silence_ms", 0..=DAY_MS, settings.silence_ms);
    let most = u64::from(DragonflySettings::MAX_OUTSTANDING);
    settings.outstanding = number("outstanding", 1..=most, u64::from(settings.outstanding)) as u32;
    fields.finish(section);
    settings
}

/// One of the two rates, in Gb/s.
fn lane_rate(fields: &mut Fields, value: Value<'_, '_>) -> Option<LaneRate> {
    let text = fields.number_text(value)?;
    let wanted: f64 = text.parse().unwrap_or(0.0);
    let found = LaneRate::ARIES
        .into_iter()
        .find(|&rate| (gbps(rate) - wanted).abs() < 1e-9);
    if found.is_none() {
        fields.bad(
            value.span(),
            format!("{} Gb/s is no rate of a lane", Shown(text)),
            "write 14 (copper) or 12.5 (optical cables)",
        );
    }
    found
}

fn routing(fields: &mut Fields, mut section: Section<'_, '_>, network: &mut Dragonfly) {
    let classes = &mut network.classes;
    if let Some(value) = section.take("blue_classes") {
        let rows: Vec<[u8; 4]> = fields
            .items(value)
            .iter()
            .filter_map(|row| four(fields, row))
            .collect();
        match <[[u8; 4]; 2]>::try_from(rows) {
            Ok(rows) => classes.blue = rows,
            Err(_) => fields.bad(
                value.span(),
                "there are two rows: for the destination's group and for an intermediate one",
                "write [[3, 3, 3, 3], [1, 1, 2, 3]], say",
            ),
        }
    }
    if let Some(value) = section.take("root_classes")
        && let Some(row) = four(fields, value)
    {
        classes.root = row;
    }
    if let Some(value) = section.take("local_up_class") {
        let class = fields.integer(value, 0..=3);
        classes.local_up = class.map_or(classes.local_up, |class| class as u8);
    }
    if let Some(value) = section.take("bias") {
        let modes: Vec<ModeBias> = fields
            .tables(value, "the bias of a mode")
            .into_iter()
            .map(|section| mode_bias(fields, section))
            .collect();
        match <[ModeBias; 4]>::try_from(modes) {
            Ok(modes) => network.bias = modes,
            Err(_) => fields.bad(
                value.span(),
                "there are four adaptive modes",
                "write four tables like { minimal = [0, 0], non_minimal = [0, 8] }",
            ),
        }
    }
    fields.finish(section);
}

/// Four classes, 0 to 3.
fn four(fields: &mut Fields, value: Value<'_, '_>) -> Option<[u8; 4]> {
    let classes: Vec<u8> = fields
        .items(value)
        .iter()
        .filter_map(|item| fields.integer(item, 0..=3))
        .map(|class| class as u8)
        .collect();
    let row = classes.try_into().ok();
    if row.is_none() {
        fields.bad(
            value.span(),
            "these are not four classes",
            "write one of 0 to 3 for each class that a packet may have",
        );
    }
    row
}

fn mode_bias(fields: &mut Fields, mut section: Section<'_, '_>) -> ModeBias {
    let mut bias = |key| -> Bias {
        let Some(value) = section.take(key) else {
            return Bias::default();
        };
        let items = fields.items(value);
        if let [shift, add] = items {
            let shift = fields.integer(shift, 0..=3).unwrap_or(0) as u8;
            let add = fields.integer(add, 0..=63).unwrap_or(0) as u8;
            return Bias { shift, add };
        }
        fields.bad(
            value.span(),
            "a bias is a shift and a number to add",
            "write [0, 8], say",
        );
        Bias::default()
    };
    let bias = ModeBias {
        minimal: bias("minimal"),
        non_minimal: bias("non_minimal"),
    };
    fields.finish(section);
    bias
}

fn wiring(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    network: &mut Dragonfly,
    spans: &mut Spans,
) {
    if let Some(value) = section.take("remove") {
        let removed = removed(fields, value, network);
        let mut index = 0;
        network.links.retain(|_| {
            index += 1;
            !removed.contains_key(&(index - 1))
        });
    }
    spans.generated = network.links.len();
    if let Some(value) = section.take("links") {
        for section in fields.tables(value, "a link") {
            let span = section.span();
            if let Some(link) = link(fields, section, network) {
                network.links.push(link);
                spans.listed.push(span);
            }
        }
    }
    fields.finish(section);
}

/// Indices of the generated links that are not there, with the places where they are named.
fn removed(
    fields: &mut Fields,
    value: Value<'_, '_>,
    network: &Dragonfly,
) -> BTreeMap<usize, Range<usize>> {
    let links = network.links.iter().enumerate();
    let by_end: HashMap<End, usize> = links
        .flat_map(|(index, link)| [(link.a, index), (link.b, index)])
        .collect();
    let mut removed = BTreeMap::new();
    for item in fields.items(value) {
        let Some(wanted) = end(fields, item, network) else {
            continue;
        };
        match by_end.get(&wanted).map(|&link| removed.entry(link)) {
            Some(Entry::Vacant(slot)) => {
                slot.insert(item.span());
            }
            Some(Entry::Occupied(first)) => {
                let link = &network.links[*first.key()];
                let (a, b) = (network.end_name(link.a), network.end_name(link.b));
                let message = format!("the link {a} - {b} is removed twice");
                named_twice(fields, item, first.get(), message);
            }
            // Without a generator that could make links, its mistake is the one to tell.
            None if fields.mistakes.is_empty() || !network.links.is_empty() => fields.bad(
                item.span(),
                format!(
                    "no generated link has an end at {}",
                    network.end_name(wanted)
                ),
                "name either end of a link; `phitwire topology show` lists them",
            ),
            None => {}
        }
    }
    removed
}

fn link(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    network: &Dragonfly,
) -> Option<DragonflyLink> {
    let mut at = |key, example| match section.take(key) {
        Some(value) => end(fields, value, network),
        None => {
            fields.missing(&section, key, example);
            None
        }
    };
    let (a, b) = (at("a", "\"g0-c0s0:30\""), at("b", "\"g1-c0s0:30\""));
    let cable = cable(fields, &mut section);
    fields.finish(section);
    Some(DragonflyLink {
        a: a?,
        b: b?,
        cable,
    })
}

/// `NODE:PORT`.
fn end(fields: &mut Fields, value: Value<'_, '_>, network: &Dragonfly) -> Option<End> {
    let text = fields.text(value)?;
    let split = text.rsplit_once(':');
    let Some((name, port)) = split.and_then(|(n, p)| Some((n, p.parse::<u32>().ok()?))) else {
        fields.bad(
            value.span(),
            format!("\"{}\" names no port", Shown(text)),
            "write NODE:PORT, like \"g0-c0s0:30\"",
        );
        return None;
    };
    let Some(node) = network.find(name) else {
        fields.mistakes.push(
            Mistake::new(
                MistakeKind::UnknownNode,
                Place::Text(value.span()),
                format!("there is no node `{}`", Shown(name)),
            )
            .label("unknown node")
            .help("routers are named like g0-c1s3 (group, chassis, slot), network interfaces like nic7"),
        );
        return None;
    };
    let ports = Dragonfly::ports_of(node);
    match u8::try_from(port).ok().filter(|&port| port < ports) {
        Some(port) => Some(End { node, port }),
        None => {
            fields.mistakes.push(
                Mistake::new(
                    MistakeKind::PortOutOfRange,
                    Place::Text(value.span()),
                    format!("`{}` has no port {port}", Shown(name)),
                )
                .help("a router has ports 0 to 39 for routers and 40 to 43 for NICs, a NIC has port 0"),
            );
            None
        }
    }
}
