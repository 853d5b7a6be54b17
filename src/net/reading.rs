//! Reads networks from TOML: the parts of descriptions common to all machines.

use core::ops::Range;
use std::collections::HashMap;

use phitwire_framing::carrier::lanes::{Lanes, MAX_LANES, Permutation};

use super::fields::{Fields, Section, Value};
use super::files::Files;
use super::limits::Effort;
use super::mistake::{Location, MistakeKind as K, Mistakes, Problems};
use super::model::{End, Link, MAX_METRES, MAX_NAME_BYTES, NodeRef};
use super::network::Network;
use super::parsed::{self, Parsed};
use super::shown::Shown;

/// A network that can be read from a description.
pub trait Describe: Network + Sized {
    /// The name of its machine: `family = "..."`.
    const FAMILY: &'static str;
    /// Noun for descriptions of the machine, in messages.
    const WHAT: &'static str;
    /// Format of the names that [`generate`](Self::generate) accepts, with examples.
    const NAMES: &'static str;

    /// Reads all keys except family and name.
    fn read(
        name: String,
        fields: &mut Fields,
        root: &mut Section<'_, '_>,
        spans: &mut Spans,
    ) -> Self;

    /// The network that `name` generates; `None` if it is not a name of this machine.
    ///
    /// # Errors
    /// Why the network cannot be generated.
    fn generate(name: &str) -> Option<Result<Self, String>>;

    /// Mistakes that can be found even if parts of the description could not be read.
    fn judge_part(&self) -> Mistakes {
        Mistakes::default()
    }
}

/// A network with the positions of its parts in the text.
#[derive(Clone, Debug)]
pub struct Described<N> {
    pub topology: N,
    /// Whether all packets were followed to their destinations: see [`Effort`].
    pub followed: bool,
}

/// Positions of the parts of a network in its text.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    network: Range<usize>,
    /// Position reported for parts without a recorded one; `None`: the network's name.
    pub others: Option<Range<usize>>,
    parts: HashMap<Location, Range<usize>>,
}

impl Spans {
    /// Records the position of a part.
    pub fn add(&mut self, location: Location, span: Range<usize>) {
        self.parts.entry(location).or_insert(span);
    }

    fn of(&self, location: &Location) -> Range<usize> {
        let router = match location {
            Location::Text(span) => return span.clone(),
            Location::Network => return self.network.clone(),
            Location::Entry(chip, router, _) => Some(Location::Router(*chip, *router)),
            _ => None,
        };
        let found = self
            .parts
            .get(location)
            .or_else(|| self.parts.get(&router?));
        let others = self.others.as_ref().unwrap_or(&self.network);
        found.unwrap_or(others).clone()
    }
}

/// Reads and checks a description. Diagnostics call it `file`.
///
/// # Errors
/// All mistakes found, in the order of the text. A description with mistakes in its text or
/// structure is not checked for their consequences, such as unreachable processors.
pub fn read<N: Describe>(file: &str, text: &str) -> Result<Described<N>, Problems> {
    let parsed = parsed::parse(file, text)?;
    read_parsed(file, text, &parsed, Effort::Bounded, &Files::default())
}

/// Reads and checks parsed text, like [`read`].
pub(super) fn read_parsed<N: Describe>(
    file: &str,
    text: &str,
    Parsed { table, errors }: &Parsed<'_>,
    effort: Effort,
    files: &Files,
) -> Result<Described<N>, Problems> {
    let mut fields = Fields {
        files: files.clone(),
        ..Fields::default()
    };
    for error in errors {
        fields.syntax(error);
    }
    let mut spans = Spans::default();
    if errors.is_empty() {
        let topology: N = network(&mut fields, table.get_ref(), &mut spans);
        let mut followed = false;
        if fields.mistakes.is_empty() {
            (fields.mistakes, followed) = topology.judge(effort);
        } else {
            fields.mistakes.append(topology.judge_part());
        }
        if fields.mistakes.is_empty() {
            return Ok(Described { topology, followed });
        }
    }
    Err(Problems::new(file, text, fields.mistakes, |location| {
        spans.of(location)
    }))
}

/// Reads a text that describes something other than a network; messages call it `what`.
///
/// # Errors
/// All mistakes found, in the order of the text.
pub fn read_other<T>(
    file: &str,
    bytes: &[u8],
    what: &'static str,
    read: impl FnOnce(&mut Fields, &mut Section<'_, '_>) -> T,
) -> Result<T, Problems> {
    let text = parsed::text(file, bytes)?;
    let Parsed { table, errors } = parsed::parse(file, text)?;
    let mut fields = Fields::default();
    for error in &errors {
        fields.syntax(error);
    }
    if errors.is_empty() {
        let mut root = Section::new(table.get_ref(), 0..0, what);
        let found = read(&mut fields, &mut root);
        fields.finish(root);
        if fields.mistakes.is_empty() {
            return Ok(found);
        }
    }
    Err(Problems::new(
        file,
        text,
        fields.mistakes,
        parsed::span_in_text,
    ))
}

fn network<N: Describe>(
    fields: &mut Fields,
    table: &toml::de::DeTable<'_>,
    spans: &mut Spans,
) -> N {
    let mut root = Section::new(table, 0..0, N::WHAT);
    if let Some(value) = root.take("family") {
        let _ = fields.word(value, &[(N::FAMILY, ())]);
    }
    let called = fields
        .need(&mut root, "name", "\"my-lab\"")
        .and_then(|value| {
            spans.network = value.span();
            name(fields, value)
        });
    let called = called.unwrap_or_else(|| String::from("unnamed"));
    let network = N::read(called, fields, &mut root, spans);
    fields.finish(root);
    network
}

/// The network of a well-formed description, even if the network itself has mistakes.
#[cfg(any(test, feature = "testing"))]
pub fn read_unchecked<N: Describe>(text: &str) -> Option<N> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let mut fields = Fields::default();
    let network = network(&mut fields, table.get_ref(), &mut Spans::default());
    fields.mistakes.is_empty().then_some(network)
}

/// Reads a name. The structure checks validate its characters later.
pub fn name(fields: &mut Fields, value: Value<'_, '_>) -> Option<String> {
    let text = fields.text(value)?;
    name_in_range(fields, text, value.span());
    Some(stem(text).to_owned())
}

/// Reports a name that is too long. Other messages quote only its [`stem`].
pub fn name_in_range(fields: &mut Fields, text: &str, span: Range<usize>) {
    if text.len() > MAX_NAME_BYTES {
        fields.bad(
            span,
            format!("\"{}\" is not a valid name: it is too long", Shown(text)),
            format!("write 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` or `.`"),
        );
    }
}

/// The longest prefix that may be a name.
pub fn stem(text: &str) -> &str {
    let mut end = text.len().min(MAX_NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Why a text cannot be a name: names become network namespaces, files and wire fields.
pub fn name_problem(text: &str) -> Option<&'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match text.chars().next() {
        None => Some("it is empty"),
        Some(first) if !first.is_ascii_alphanumeric() => {
            Some("it must begin with a letter or digit")
        }
        _ if text.len() > MAX_NAME_BYTES => Some("it is too long"),
        _ if !text.chars().all(plain) => Some("it contains an invalid character"),
        _ => None,
    }
}

/// Reads `metres` of cable.
pub fn metres(fields: &mut Fields, section: &mut Section<'_, '_>) -> Option<u16> {
    let metres = fields.number(section, "metres", 1..=u64::from(MAX_METRES));
    metres.map(|metres| metres as u16)
}

/// The notation of link ends in a machine's descriptions.
pub trait Ends {
    /// Examples of both ends of a link.
    const EXAMPLES: [&'static str; 2];
    /// An example of a router's link end.
    const EXAMPLE: &'static str;
    const LANES: Lanes;
    /// The valid ports, for messages.
    const PORTS: &'static str;

    fn find(&self, name: &str) -> Option<NodeRef>;

    /// Advice for a `name` that no node has.
    fn instead_of(&self, name: &str) -> String;

    /// Whether `node` can have `port`. The structure checks decide which ports exist.
    fn is_port(&self, node: NodeRef, port: u8) -> bool;
}

/// Reads the common fields of a link, `a`, `b` and the cable. `own` reads the machine's own fields,
/// rate and metres.
pub fn link<Rate, E: Ends>(
    fields: &mut Fields,
    mut section: Section<'_, '_>,
    names: &E,
    own: impl FnOnce(&mut Fields, &mut Section<'_, '_>) -> (Rate, Option<u16>),
) -> Option<Link<Rate>> {
    let [a, b] = ends(fields, &mut section, names);
    let (rate, metres) = own(fields, &mut section);
    let cable = cable(fields, &mut section, E::LANES);
    fields.finish(section);
    Some(Link {
        a: a?,
        b: b?,
        rate,
        metres,
        cable,
    })
}

fn ends<E: Ends>(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    names: &E,
) -> [Option<End>; 2] {
    let [a, b] = E::EXAMPLES;
    [("a", a), ("b", b)].map(|(key, example)| {
        let value = fields.need(section, key, &format!("\"{example}\""))?;
        end(fields, value, names)
    })
}

/// Lane order and polarity of a cable with these `lanes`.
fn cable(fields: &mut Fields, section: &mut Section<'_, '_>, lanes: Lanes) -> Permutation {
    const NUMBERS: [&str; MAX_LANES + 1] = ["no", "one", "two", "three", "four"];
    let (count, number) = (lanes.count(), NUMBERS[lanes.count()]);
    let mut order: Vec<u8> = (0..count as u8).collect();
    let mut invert = vec![false; count];
    let (swizzle, polarity) = (section.take("swizzle"), section.take("invert"));
    if let Some(value) = polarity {
        let items = fields.items(value).iter();
        let flags: Option<Vec<bool>> = items.map(|item| item.get_ref().as_bool()).collect();
        match flags.filter(|flags| flags.len() == count) {
            Some(flags) => invert = flags,
            None => {
                let mut example = invert.clone();
                example[0] = true;
                fields.bad(
                    value.span(),
                    format!("`invert` must be {number} booleans, one per lane"),
                    format!("write for example {example:?}"),
                );
            }
        }
    }
    if let Some(value) = swizzle {
        let found = fields.numbers(value, count as u8 - 1);
        match found.len() == count && Permutation::new(&found, &invert).is_some() {
            true => order = found,
            false => {
                let mut example = order.clone();
                example.rotate_right(1);
                let all: Vec<String> = order.iter().map(u8::to_string).collect();
                let all = match all.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
                    None => String::new(),
                };
                fields.bad(
                    value.span(),
                    format!("this is not an order of the {number} lanes"),
                    format!("write {all} once each, like {example:?}"),
                );
            }
        }
    }
    Permutation::new(order, invert).unwrap_or_default()
}

pub fn end<E: Ends>(fields: &mut Fields, value: Value<'_, '_>, names: &E) -> Option<End> {
    let text = fields.text(value)?;
    let split = text.rsplit_once(':');
    let Some((name, port)) = split.and_then(|(n, p)| Some((n, p.parse::<u32>().ok()?))) else {
        fields.bad(
            value.span(),
            format!("\"{}\" does not specify a port", Shown(text)),
            format!("write NODE:PORT, like \"{}\"", E::EXAMPLE),
        );
        return None;
    };
    let location = Location::Text(value.span());
    let Some(node) = names.find(name) else {
        fields.mistakes.add(|| {
            let message = format!("unknown node `{}`", Shown(name));
            K::UnknownNode
                .at(location, message)
                .label("not in this description")
                .help(names.instead_of(name))
        });
        return None;
    };
    let found = u8::try_from(port)
        .ok()
        .filter(|&port| names.is_port(node, port));
    if found.is_none() {
        let message = format!("`{}` has no port {port}", Shown(name));
        let mistake = K::PortOutOfRange.at(location, message);
        fields.mistakes.push(mistake.help(E::PORTS));
    }
    found.map(|port| End { node, port })
}
