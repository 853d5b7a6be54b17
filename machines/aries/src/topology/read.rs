//! Parsing a dragonfly from TOML.

use core::fmt::{self, Write as _};
use core::ops::Range;
use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use phitwire_framing::carrier::lanes::Lanes;

use super::arrangement::Arrangement;
use super::generate::{DragonflySpec, DragonflySpecError, Generator};
use super::host;
use super::model::{Classes, Dragonfly, DragonflyLanes, DragonflySettings, Shape, gbps};
use crate::link::{STANDARD, rates};
use crate::nic::HostTimes;
use crate::route::registers::{AriesRegisters, Bias, ModeBias};
use phitwire::link::LaneRate;
use phitwire::net::{
    Describe, End, Ends, Fields, Location, MistakeKind as K, NodeRef, OwnSettings, Problems,
    Section, Shown, Spans, Value, describe, end, link,
};

/// Reads and checks the description of a dragonfly, which has `family = "aries"`. `file` is its
/// name in diagnostics.
///
/// # Errors
/// All mistakes, in text order.
pub fn read(file: &str, text: &str) -> Result<Dragonfly, Problems> {
    describe(file, text).map(|described| described.topology)
}

impl Describe for Dragonfly {
    const FAMILY: &'static str = "aries";
    const WHAT: &'static str = "the description of a dragonfly";
    const NAMES: &'static str = "aries-GROUPSxCHASSISxBLADESxNICS[:LINKS], such as aries-9x4x2x4";

    fn read(
        name: String,
        fields: &mut Fields,
        root: &mut Section<'_, '_>,
        spans: &mut Spans,
    ) -> Self {
        let mut network = Self {
            name,
            shape: DragonflySpec::default().shape,
            generator: None,
            settings: DragonflySettings::default(),
            classes: Classes::default(),
            bias: AriesRegisters::BIAS,
            host: HostTimes::PAPER,
            absent: Vec::new(),
            links: Vec::new(),
        };
        let example = "{ groups = 3, chassis = 2, blades = 2, nics = 1 }";
        if let Some(value) = fields.need(root, "dragonfly", example) {
            // Point only at the section's first line: its span covers all its contents.
            let Range { start, end } = value.span();
            spans.others = Some(start..end.min(start + "[dragonfly]".len()));
            if let Some(section) = fields.table(value, "[dragonfly]") {
                dragonfly(fields, section, &mut network);
            }
        }
        if let Some(section) = fields.part(root, "network", "[network]") {
            network.settings = DragonflySettings::read(fields, section);
        }
        if let Some(section) = fields.part(root, "routing", "[routing]") {
            routing(fields, section, &mut network);
        }
        if let Some(section) = fields.part(root, "host", "[host]") {
            network.host = host::read(fields, section);
        }
        if fields.mistakes.is_empty()
            && let Some(generator) = network.generator
        {
            network.links = generator.links(&network.shape, &network.absent);
        }
        if let Some(section) = fields.part(root, "wiring", "[wiring]") {
            wiring(fields, section, &mut network, spans);
        }
        network
    }

    fn generate(name: &str) -> Option<Result<Self, String>> {
        let spec = DragonflySpec::named(name)?;
        Some(spec.generate().map_err(|error| error.to_string()))
    }
}

fn dragonfly(fields: &mut Fields, mut section: Section<'_, '_>, network: &mut Dragonfly) {
    network.shape = shape(fields, &mut section);
    network.generator = generator(fields, &mut section, network.shape);
    if let Some(value) = section.take("absent") {
        network.absent = absent(fields, value, network.shape);
    }
    fields.finish(section);
}

fn shape(fields: &mut Fields, section: &mut Section<'_, '_>) -> Shape {
    let mut needed = |key, most: u64| {
        let value = fields.need(section, key, "2")?;
        fields.integer(value, 1..=most)
    };
    let groups = needed("groups", u64::from(Shape::MAX_GROUPS));
    let chassis = needed("chassis", u64::from(Shape::MAX_CHASSIS));
    let blades = needed("blades", u64::from(Shape::MAX_BLADES));
    let nics = fields.number(section, "nics", 1..=u64::from(Shape::MAX_NICS));
    Shape {
        groups: groups.unwrap_or(1) as u16,
        chassis: chassis.unwrap_or(1) as u8,
        blades: blades.unwrap_or(1) as u8,
        nics: nics.unwrap_or(1) as u8,
    }
}

/// Parameters of generated links; `None` if links are listed or there is a mistake.
fn generator(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    shape: Shape,
) -> Option<Generator> {
    let generate = section
        .take("generate")
        .and_then(|value| fields.word(value, &[("all", true), ("nothing", false)]));
    let generate = generate.unwrap_or(true);
    let mut spec = DragonflySpec {
        shape,
        ..DragonflySpec::default()
    };
    let mut spans = [None, None, None];
    let mut number = |key, range, right, span: &mut Option<Range<usize>>| -> Option<u64> {
        let value = section.take(key)?;
        *span = Some(value.span());
        if !generate {
            fields.bad(
                value.span(),
                "this key configures generated links, but `generate` is \"nothing\"",
                "remove this key, or `generate = \"nothing\"`",
            );
        }
        fields.integer_within(value, range, right)
    };
    // The generator reports values that the shape does not allow.
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
        spec.arrangement = fields.word(value, &Arrangement::ALL).unwrap_or_default();
    }
    if !generate {
        return None;
    }
    let [black, global, sets] = spans;
    let error = match spec.generator() {
        Ok(generator) => return Some(generator),
        Err(error) => error,
    };
    let span = match &error {
        DragonflySpecError::BlackLinks { .. } => black,
        DragonflySpecError::GlobalLinks { .. } => global,
        DragonflySpecError::Sets(_) => sets,
        DragonflySpecError::Shape { .. } => None,
    };
    let help = "change the number or omit it";
    fields.bad(span.unwrap_or(section.span()), error.to_string(), help);
    None
}

/// Absent blades, given by name and sorted by number.
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
                    let message = format!("{name} is listed twice in `absent`");
                    named_twice(fields, item, first.get(), message);
                }
            },
            _ => fields.bad(
                item.span(),
                format!("unknown router `{}`", Shown(name)),
                "write a router of this shape, like \"g0-c0s1\": group 0, chassis 0, slot 1",
            ),
        }
    }
    absent.into_keys().collect()
}

fn named_twice(fields: &mut Fields, item: Value<'_, '_>, first: &Range<usize>, message: String) {
    fields.mistakes.push(
        K::NamedTwice
            .at(Location::Text(item.span()), message)
            .label("again")
            .other(Location::Text(first.clone()), "first")
            .help("list it once"),
    );
}

impl OwnSettings for DragonflyLanes {
    // Eight of the longest retry timeouts: losses alone do not take that long. It is well below the
    // timeout of requests, which can then be resent on another path.
    const GIVE_UP_MS: u64 = 2_000;
    // "Each NIC supports up to 1,024 outstanding packets" (XC white paper, "Aries Performance").
    const OUTSTANDING: u32 = Self::MAX_OUTSTANDING;
    const MAX_OUTSTANDING: u32 = 1024;
    const MEMORY_UNIT_BYTES: u64 = 64;

    fn read(&mut self, fields: &mut Fields, section: &mut Section<'_, '_>) {
        for (key, rate) in [
            ("lane_rate", &mut self.rate),
            ("global_lane_rate", &mut self.global_rate),
        ] {
            if let Some(value) = section.take(key) {
                *rate = lane_rate(fields, value).unwrap_or(*rate);
            }
        }
        let degrades = fields.number(section, "degrades_allowed", 0..=2);
        self.degrades_allowed = degrades.map_or(self.degrades_allowed, |n| n as u8);
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let (rate, global) = (gbps(self.rate), gbps(self.global_rate));
        writeln!(out, "lane_rate = {rate}\nglobal_lane_rate = {global}")?;
        writeln!(out, "degrades_allowed = {}", self.degrades_allowed)
    }
}

/// Reads `lane_rate` or `global_lane_rate`, in Gb/s.
fn lane_rate(fields: &mut Fields, value: Value<'_, '_>) -> Option<LaneRate> {
    let text = fields.number_text(value)?;
    let wanted: f64 = text.parse().unwrap_or(0.0);
    let found = rates::ALL
        .into_iter()
        .find(|&rate| (gbps(rate) - wanted).abs() < 1e-9);
    if found.is_none() {
        fields.bad(
            value.span(),
            format!("{} Gb/s is not a valid lane rate", Shown(text)),
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
                "expected two rows: for the destination group and for an intermediate group",
                "write for example [[3, 3, 3, 3], [1, 1, 2, 3]]",
            ),
        }
    }
    if let Some(value) = section.take("root_classes")
        && let Some(row) = four(fields, value)
    {
        classes.root = row;
    }
    let class = fields.number(&mut section, "local_up_class", 0..=3);
    classes.local_up = class.map_or(classes.local_up, |class| class as u8);
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
                "expected four adaptive modes",
                "write four tables like { minimal = [0, 0], non_minimal = [0, 8], growth = 0 }",
            ),
        }
    }
    fields.finish(section);
}

/// Reads four classes, each 0 to 3.
fn four(fields: &mut Fields, value: Value<'_, '_>) -> Option<[u8; 4]> {
    let row = fields.array(value, 3);
    if row.is_none() {
        fields.bad(
            value.span(),
            "expected four classes",
            "write a class from 0 to 3 for each class that a packet may have",
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
            "expected a bias: a shift and a number to add",
            "write for example [0, 8]",
        );
        Bias::default()
    };
    let (minimal, non_minimal) = (bias("minimal"), bias("non_minimal"));
    let growth = fields.number(&mut section, "growth", 0..=63);
    let bias = ModeBias {
        minimal,
        non_minimal,
        growth: growth.map_or(0, |growth| growth as u8),
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
    if let Some(value) = section.take("links") {
        for section in fields.tables(value, "a link") {
            let span = section.span();
            let none = |_: &mut Fields, _: &mut Section<'_, '_>| ((), None);
            if let Some(link) = link(fields, section, network, none) {
                spans.add(Location::Link(network.links.len() as u32), span);
                network.links.push(link);
            }
        }
    }
    fields.finish(section);
}

/// Indices of removed generated links, with the spans that name them.
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
                let message = format!("link {a} - {b} is removed twice");
                named_twice(fields, item, first.get(), message);
            }
            // If a generator with a mistake made no links, report only that mistake.
            None if fields.mistakes.is_empty() || !network.links.is_empty() => fields.bad(
                item.span(),
                format!(
                    "no generated link has an end at {}",
                    network.end_name(wanted)
                ),
                "write either end of a link; `phitwire topology show` lists them",
            ),
            None => {}
        }
    }
    removed
}

impl Ends for Dragonfly {
    const LANES: Lanes = STANDARD.lanes;
    const EXAMPLES: [&'static str; 2] = ["g0-c0s0:30", "g1-c0s0:30"];
    const EXAMPLE: &'static str = "g0-c0s0:30";
    const PORTS: &'static str = PORTS;

    fn find(&self, name: &str) -> Option<NodeRef> {
        self.find(name)
    }

    fn instead_of(&self, _: &str) -> String {
        String::from("router names are like g0-c1s3 (group, chassis, slot), NIC names like nic7")
    }

    fn is_port(&self, node: NodeRef, port: u8) -> bool {
        port < Self::ports_of(node)
    }
}

/// Lists the valid ports in the message about an unknown one.
pub(super) const PORTS: &str =
    "a router has ports 0 to 39 for routers and 40 to 43 for NICs; a NIC has port 0";
