//! Explicit tables of virtual channels: in a description, or in a file.
//!
//! Both have the same sections `[[vc_tables]]`, one for each kind of equivalent rings:
//!
//! ```toml
//! [[vc_tables]]
//! dimensions = ["X", "Y"]
//! ordinates = [0, 1, 2, 3]
//! datelines = [0, 3]
//! plus = ["00000000", "00110000", "00010000", "00000000"]
//! minus = ["00000000", "10000000", "11000000", "00000000"]
//! ```
//!
//! `datelines` are the ordinates of + and of -. Each text is the table of the router at the
//! ordinate with the same index: digit n, from 0, is the channel on which packets to the ordinates
//! n, n + 8, n + 16 and n + 24 enter the ring.

use core::fmt::{self, Write as _};
use core::ops::Range;
use std::collections::{BTreeMap, BTreeSet};

use phitwire_framing::t3e::direction::Direction;

use crate::route::{RouteRegisters, Shape};
use phitwire::net::{
    Fields, Location, MistakeKind as K, Problems, Section, Shown, Spans, Value, read_other,
};

pub(super) const KEY: &str = "vc_tables";
/// Name of a file of tables in messages.
const WHAT: &str = "the file of tables";
pub(super) const DIMENSIONS: [(&str, usize); 3] = [("X", 0), ("Y", 1), ("Z", 2)];
const MOST_NODES: usize = 32;

/// A kind of equivalent rings. Its fields are all that affects a ring's tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RingKind {
    /// 0 for X, 1 for Y, 2 for Z.
    pub dimension: usize,
    /// The ordinates of the ring's nodes, in ascending order.
    pub ordinates: Vec<u8>,
}

impl RingKind {
    /// The kind of the ring through a node; `None` if the line is not closed.
    pub fn of(shape: &Shape, node: u32, dimension: usize) -> Option<Self> {
        let ring = shape.ring(node, dimension);
        let ordinate = |&node: &u32| shape.coordinates(node).0[dimension];
        ring.closed.then(|| Self {
            dimension,
            ordinates: ring.nodes.iter().map(ordinate).collect(),
        })
    }

    /// All kinds in a shape, each with the nodes of its rings by ordinate.
    pub fn all(shape: &Shape) -> BTreeMap<Self, Vec<Vec<u32>>> {
        let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for dimension in 0..3 {
            for node in 0..shape.nodes() {
                let ring = shape.ring(node, dimension);
                if ring.closed && ring.nodes[0] == node {
                    let kind = Self::of(shape, node, dimension).expect("the ring is closed");
                    kinds.entry(kind).or_default().push(ring.nodes);
                }
            }
        }
        kinds
    }

    /// The ordinates of the datelines of + and -, in a ring of the given nodes.
    pub fn datelines(&self, shape: &Shape, nodes: &[u32]) -> [u8; 2] {
        [false, true].map(|minus| {
            let bit = Direction::of(self.dimension, minus).index();
            let mut nodes = nodes.iter().zip(&self.ordinates);
            let found = nodes.find(|(node, _)| shape.datelines(**node) >> bit & 1 != 0);
            *found.expect("a closed ring has datelines").1
        })
    }
}

impl fmt::Display for RingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimension = DIMENSIONS[self.dimension].0;
        write!(
            f,
            "{dimension} of the ordinates {}",
            ranges(&self.ordinates)
        )
    }
}

/// Ordinates as ranges: `0 to 7, 10`.
pub(super) fn ranges(ordinates: &[u8]) -> String {
    let mut text = String::new();
    for range in ordinates.chunk_by(|a, b| a.checked_add(1) == Some(*b)) {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a String never fails.
        let _ = match range {
            [one] => write!(text, "{comma}{one}"),
            _ => write!(text, "{comma}{} to {}", range[0], range[range.len() - 1]),
        };
    }
    text
}

/// The tables of a ring: per node those of + and of -, with bit n for the ordinates that are n
/// modulo 8.
type Entries = Vec<[u8; 2]>;

/// Tables for some rings of a torus, as written, whether correct or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenTables(BTreeMap<RingKind, ([u8; 2], Entries)>);

impl GivenTables {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn kinds(&self) -> impl Iterator<Item = &RingKind> {
        self.0.keys()
    }

    /// Whether there are tables for the ring through a node.
    pub fn names(&self, shape: &Shape, node: u32, dimension: usize) -> bool {
        let kind = RingKind::of(shape, node, dimension);
        kind.is_some_and(|kind| self.0.contains_key(&kind))
    }

    /// Extracts the tables of rings of the wanted kinds from registers of routers.
    ///
    /// # Panics
    /// If there are fewer registers than nodes.
    pub fn of_registers(
        shape: &Shape,
        registers: &[RouteRegisters],
        wanted: impl Fn(&RingKind) -> bool,
    ) -> Self {
        let kinds = RingKind::all(shape).into_iter();
        let of = |(kind, rings): (RingKind, Vec<Vec<u32>>)| {
            let nodes = &rings[0];
            let entries = |&node: &u32| {
                [false, true].map(|minus| {
                    let direction = Direction::of(kind.dimension, minus);
                    registers[node as usize].vc_tables[direction.index()]
                })
            };
            let tables = (
                kind.datelines(shape, nodes),
                nodes.iter().map(entries).collect(),
            );
            (kind, tables)
        };
        Self(kinds.filter(|(kind, _)| wanted(kind)).map(of).collect())
    }

    /// Every router and direction with a table, and the table.
    pub fn entries(&self, shape: &Shape) -> Vec<(u32, Direction, u8)> {
        let mut all = Vec::new();
        for (kind, rings) in RingKind::all(shape) {
            let Some((_, entries)) = self.0.get(&kind) else {
                continue;
            };
            for nodes in rings {
                for (&node, entries) in nodes.iter().zip(entries) {
                    for (minus, &table) in [false, true].into_iter().zip(entries) {
                        all.push((node, Direction::of(kind.dimension, minus), table));
                    }
                }
            }
        }
        all
    }

    /// Writes the tables into the registers of the routers of these rings.
    ///
    /// # Panics
    /// If there are fewer registers than nodes.
    pub fn fill(&self, shape: &Shape, registers: &mut [RouteRegisters]) {
        if self.is_empty() {
            return;
        }
        for (node, direction, table) in self.entries(shape) {
            registers[node as usize].vc_tables[direction.index()] = table;
        }
    }

    /// Sections to write. Rings with equal tables share one, with all their dimensions.
    pub(super) fn sections(&self) -> Vec<(Vec<usize>, &RingKind, [u8; 2], &Entries)> {
        let mut sections: Vec<(Vec<usize>, &RingKind, [u8; 2], &Entries)> = Vec::new();
        for (kind, (datelines, entries)) in &self.0 {
            let same = sections.iter_mut().find(|(_, other, others, tables)| {
                (&other.ordinates, *others, *tables) == (&kind.ordinates, *datelines, entries)
            });
            match same {
                Some((dimensions, ..)) => dimensions.push(kind.dimension),
                None => sections.push((vec![kind.dimension], kind, *datelines, entries)),
            }
        }
        sections
    }

    /// Writes the tables as sections.
    ///
    /// # Errors
    /// The errors of `out`.
    pub fn write(&self, out: &mut String) -> fmt::Result {
        for (n, (dimensions, kind, datelines, entries)) in self.sections().into_iter().enumerate() {
            let names: Vec<String> = dimensions
                .into_iter()
                .map(|dimension| format!("\"{}\"", DIMENSIONS[dimension].0))
                .collect();
            let break_ = if n == 0 { "" } else { "\n" };
            writeln!(
                out,
                "{break_}[[{KEY}]]\ndimensions = [{}]",
                names.join(", ")
            )?;
            writeln!(out, "ordinates = {:?}", kind.ordinates)?;
            writeln!(out, "datelines = {datelines:?}")?;
            for (way, key) in ["plus", "minus"].into_iter().enumerate() {
                writeln!(out, "{key} = [")?;
                for (table, ordinate) in entries.iter().zip(&kind.ordinates) {
                    writeln!(out, "  \"{}\", # {ordinate}", digits(table[way]))?;
                }
                writeln!(out, "]")?;
            }
        }
        Ok(())
    }

    /// Reads a file of tables for a torus of that shape.
    ///
    /// # Errors
    /// The mistakes in the file.
    pub fn read_file(file: &str, bytes: &[u8], shape: &Shape) -> Result<Self, Problems> {
        read_other(file, bytes, WHAT, |fields, root| {
            let example = "{ dimensions = ..., ordinates = ..., ... }, or sections [[vc_tables]]";
            match fields.need(root, KEY, example) {
                Some(value) => sections(fields, value, shape, &mut |_, _| ()),
                None => Self::default(),
            }
        })
    }
}

/// A table as eight digits.
pub(super) fn digits(table: u8) -> String {
    (0..8)
        .map(|entry| char::from(b'0' + (table >> entry & 1)))
        .collect()
}

/// Reads tables in a description: sections, or the name of a file. Empty if the shape could not be
/// read.
pub(super) fn read(
    fields: &mut Fields,
    value: Value<'_, '_>,
    shape: Option<&Shape>,
    spans: &mut Spans,
) -> GivenTables {
    let Some(shape) = shape else {
        return GivenTables::default();
    };
    let mut note = |kind: &RingKind, span: Range<usize>| {
        for node in 0..shape.nodes() {
            if RingKind::of(shape, node, kind.dimension).as_ref() == Some(kind) {
                // The tables of a router in a dimension.
                spans.add(Location::Router(node, kind.dimension as u32), span.clone());
            }
        }
    };
    let Some(name) = value.get_ref().as_str() else {
        return sections(fields, value, shape, &mut note);
    };
    let location = Location::Text(value.span());
    let opened = fields.files.open(name);
    let read = opened.map(|bytes| GivenTables::read_file(name, &bytes, shape));
    match read {
        Ok(Ok(tables)) => {
            tables.kinds().for_each(|kind| note(kind, value.span()));
            tables
        }
        Ok(Err(problems)) => {
            for (index, mistake) in problems.mistakes().enumerate() {
                let (line, column) = problems.line_and_column(index);
                fields.mistakes.add(|| {
                    let message = format!("{}:{line}:{column}: {}", Shown(name), mistake.message);
                    mistake
                        .kind
                        .at(location.clone(), message)
                        .help(mistake.help.clone())
                });
            }
            for _ in 0..problems.more() {
                // The limit of reported mistakes is reached, so only count this one.
                fields
                    .mistakes
                    .add(|| K::BadValue.at(location.clone(), "further mistakes are not shown"));
            }
            GivenTables::default()
        }
        Err(why) => {
            let message = format!("\"{}\": {why}", Shown(name));
            let help = "specify a file of tables relative to the description, as written by \
                        `phitwire topology channels FILE --output TABLES`, or write its sections \
                        here";
            fields.bad(value.span(), message, help);
            GivenTables::default()
        }
    }
}

/// Reads sections, with at most one per kind of rings, and passes their spans to `note`.
fn sections(
    fields: &mut Fields,
    value: Value<'_, '_>,
    shape: &Shape,
    note: &mut dyn FnMut(&RingKind, Range<usize>),
) -> GivenTables {
    let kinds = RingKind::all(shape);
    let mut found = GivenTables::default();
    let mut spans: BTreeMap<RingKind, Range<usize>> = BTreeMap::new();
    for section in fields.tables(value, "a section [[vc_tables]]") {
        let span = section.span();
        let Some((named, datelines, entries)) = self::section(fields, section, &kinds, shape)
        else {
            continue;
        };
        for kind in named {
            if let Some(first) = spans.get(&kind) {
                fields.mistakes.add(|| {
                    let message = format!("the rings in {kind} already have tables");
                    let mistake = K::NamedTwice.at(Location::Text(span.clone()), message);
                    let help = "one section covers all equal rings: remove one of the sections";
                    mistake.again(Location::Text(first.clone())).help(help)
                });
                continue;
            }
            note(&kind, span.clone());
            spans.insert(kind.clone(), span.clone());
            found.0.insert(kind, (datelines, entries.clone()));
        }
    }
    found
}

/// The kinds of rings to which a section applies, with their datelines and tables.
fn section(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    kinds: &BTreeMap<RingKind, Vec<Vec<u32>>>,
    shape: &Shape,
) -> Option<(Vec<RingKind>, [u8; 2], Entries)> {
    let dimensions = fields
        .need(&mut section, "dimensions", "[\"X\"]")
        .and_then(|value| dimensions(fields, value));
    let ordinates = fields
        .need(&mut section, "ordinates", "[0, 1, 2, 3]")
        .and_then(|value| Some((ordinates(fields, value)?, value.span())));
    let datelines = fields
        .need(&mut section, "datelines", "[0, 3]")
        .and_then(|value| Some((datelines(fields, value)?, value.span())));
    let ways = ["plus", "minus"].map(|key| {
        let value = fields.need(&mut section, key, "[\"00000000\", ...]")?;
        tables(fields, value, ordinates.as_ref()?.0.len())
    });
    fields.finish(section);
    let (ordinates, span) = ordinates?;
    let named: Vec<RingKind> = dimensions?
        .into_iter()
        .map(|dimension| RingKind {
            dimension,
            ordinates: ordinates.clone(),
        })
        .collect();
    if let Some(missing) = named.iter().find(|kind| !kinds.contains_key(kind)) {
        let there: Vec<String> = kinds.keys().map(RingKind::to_string).collect();
        let help = match there.is_empty() {
            true => String::from("the torus has no rings: remove the section"),
            false => format!("the torus has rings in {}", there.join("; in ")),
        };
        fields.bad(span, format!("no ring in {missing}"), help);
        return None;
    }
    let (datelines, span) = datelines?;
    for kind in &named {
        let right = kind.datelines(shape, &kinds[kind][0]);
        if datelines != right {
            let message = format!("wrong datelines of + and - in {kind}");
            fields.bad(span, message, format!("write {right:?}"));
            return None;
        }
    }
    let [plus, minus] = ways;
    let entries = plus?.into_iter().zip(minus?);
    let entries = entries.map(|(plus, minus)| [plus, minus]).collect();
    Some((named, datelines, entries))
}

fn dimensions(fields: &mut Fields, value: Value<'_, '_>) -> Option<Vec<usize>> {
    let items = fields.items(value);
    value.get_ref().as_array()?;
    let words: Vec<_> = items
        .iter()
        .filter_map(|item| fields.word(item, &DIMENSIONS))
        .collect();
    if words.len() < items.len() {
        return None;
    }
    let different: BTreeSet<usize> = words.iter().copied().collect();
    if words.is_empty() || different.len() < words.len() {
        let message = "expected one or more distinct dimensions";
        fields.bad(
            value.span(),
            message,
            "list each of \"X\", \"Y\" and \"Z\" at most once",
        );
        return None;
    }
    Some(words)
}

fn ordinates(fields: &mut Fields, value: Value<'_, '_>) -> Option<Vec<u8>> {
    let items = fields.items(value);
    value.get_ref().as_array()?;
    let most = MOST_NODES as u64 - 1;
    let first = items.iter().take(MOST_NODES + 1);
    let numbers: Vec<u8> = first
        .filter_map(|item| fields.integer(item, 0..=most))
        .map(|number| number as u8)
        .collect();
    let rise = numbers.windows(2).all(|pair| pair[0] < pair[1]);
    if numbers.len() != items.len().min(MOST_NODES + 1) {
        return None;
    }
    if !rise || numbers.is_empty() {
        let message = "ordinates must be in ascending order";
        fields.bad(
            value.span(),
            message,
            "write each ordinate once, such as [0, 1, 2, 3]",
        );
        return None;
    }
    Some(numbers)
}

fn datelines(fields: &mut Fields, value: Value<'_, '_>) -> Option<[u8; 2]> {
    let before = fields.mistakes.len();
    let datelines = fields.array(value, MOST_NODES as u8 - 1);
    if datelines.is_none() && fields.mistakes.len() == before {
        let message = "expected the two datelines of a ring";
        fields.bad(
            value.span(),
            message,
            "write the ordinates of the datelines of + and -, such as [0, 3]",
        );
    }
    datelines
}

/// The tables of one direction of a ring with `nodes` nodes.
fn tables(fields: &mut Fields, value: Value<'_, '_>, nodes: usize) -> Option<Vec<u8>> {
    let items = fields.items(value);
    if value.get_ref().as_array().is_some() && items.len() != nodes {
        let message = format!("{} tables for a ring of {nodes} nodes", items.len());
        let help = "write one table per entry of `ordinates`, in the same order";
        fields.bad(value.span(), message, help);
        return None;
    }
    let read = items.iter().map(|item| table(fields, item));
    let read: Vec<Option<u8>> = read.collect();
    let all: Option<Vec<u8>> = read.into_iter().collect();
    all.filter(|all| all.len() == nodes)
}

fn table(fields: &mut Fields, value: Value<'_, '_>) -> Option<u8> {
    let text = fields.text(value)?;
    // Read just enough of a long text to detect that it is too long.
    let bit = |(entry, letter): (usize, u8)| match letter {
        b'0' if entry < 8 => Some(0),
        b'1' if entry < 8 => Some(1_u8 << entry),
        _ => None,
    };
    let bits: Option<Vec<u8>> = text.bytes().enumerate().take(9).map(bit).collect();
    let table = bits.filter(|bits| bits.len() == 8);
    if table.is_none() {
        let message = format!("\"{}\" is not a table of eight entries", Shown(text));
        let help = "write eight digits: digit n, from 0, is the channel (0 or 1) to the ordinates \
                    n, n + 8, n + 16 and n + 24";
        fields.bad(value.span(), message, help);
    }
    table.map(|bits| bits.into_iter().sum())
}
