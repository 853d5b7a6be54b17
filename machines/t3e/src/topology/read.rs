//! Reads a torus from TOML, or from a name.

use core::ops::Range;
use std::collections::BTreeMap;

use super::channels::Channels;
use super::defects::{Defect, DefectError, Defects};
use super::given;
use super::model::{MAX_NODES, Torus, TorusSpec};
use crate::route::Shape;
use phitwire::net::{
    Describe, Fields, Location, MistakeKind as K, Section, Settings, Shown, Spans, Value,
};

/// Help for an invalid size.
const SIZE: &str = "write the sizes in X, Y and Z, such as \"8x8x8\" or [8, 8, 8]";

impl Describe for Torus {
    const FAMILY: &'static str = "t3e";
    const WHAT: &'static str = "the description of a torus";
    const NAMES: &'static str =
        "t3e-SIZE[-PARTIAL_PLANES...], such as t3e-4x4x4 or t3e-8x8x8-8x4x2";

    fn read(
        name: String,
        fields: &mut Fields,
        root: &mut Section<'_, '_>,
        spans: &mut Spans,
    ) -> Self {
        let shape = shape(fields, root, spans);
        let mut spec = TorusSpec {
            name,
            ..TorusSpec::new(shape.clone().unwrap_or_else(smallest))
        };
        if let Some(value) = root.take("spares") {
            let spares = fields.integer(value, 0..=u64::from(MAX_NODES));
            spec.spares = spares.unwrap_or(0) as u32;
            spans.add(Location::Network, value.span());
            if shape.is_some() && spec.spares >= spec.shape.nodes() {
                let message = format!("all {} nodes are spare", spec.shape.nodes());
                fields.bad(value.span(), message, "leave some nodes for processors");
            }
        }
        if let Some(value) = root.take("broken") {
            spec.defects = defects(fields, value, shape.as_ref(), spans);
        }
        if let Some(value) = root.take("adaptive") {
            let adaptive = value.get_ref().as_bool();
            if adaptive.is_none() {
                fields.bad(value.span(), "expected a boolean", "write true or false");
            }
            spec.adaptive = adaptive.unwrap_or(spec.adaptive);
        }
        if let Some(value) = root.take("channels") {
            let channels = fields.word(value, &Channels::ALL);
            spec.channels = channels.unwrap_or(spec.channels);
        }
        if let Some(value) = root.take("vc_tables") {
            spec.vc_tables = given::read(fields, value, shape.as_ref(), spans);
        }
        if let Some(section) = fields.part(root, "network", "[network]") {
            spec.settings = Settings::read(fields, section);
        }
        spec.torus()
    }

    fn generate(name: &str) -> Option<Result<Self, String>> {
        let shape = name.strip_prefix("t3e-")?.replace('-', "+");
        Some(match shape.parse::<Shape>() {
            // Several names denote one shape, such as `8x8x08`; the torus gets the canonical one.
            Ok(shape) => within(shape).map(|shape| TorusSpec::new(shape).torus()),
            Err(error) => Err(error.to_string()),
        })
    }
}

fn smallest() -> Shape {
    Shape::new([1; 3], Vec::new()).expect("a single node")
}

/// Checks that look-up tables support the shape.
///
/// # Errors
/// If it has more nodes than look-up tables can distinguish.
pub(super) fn within(shape: Shape) -> Result<Shape, String> {
    match shape.nodes() {
        ..=MAX_NODES => Ok(shape),
        nodes => Err(format!(
            "{nodes} nodes are too many: look-up tables distinguish at most {MAX_NODES}"
        )),
    }
}

fn shape(fields: &mut Fields, root: &mut Section<'_, '_>, spans: &mut Spans) -> Option<Shape> {
    let size = fields.need(root, "size", "\"4x4x4\"");
    let partial = root.take("partial");
    let size = size?;
    spans.others = Some(size.span());
    let of_torus = block(fields, size);
    let planes = partial.map_or(&[][..], |value| fields.items(value));
    let of_planes: Vec<_> = planes.iter().map(|plane| block(fields, plane)).collect();
    let of_planes: Option<Vec<[u8; 3]>> = of_planes.into_iter().collect();
    let made = Shape::new(of_torus?, of_planes?);
    match made.map_err(|error| error.to_string()).and_then(within) {
        Ok(shape) => Some(shape),
        Err(why) => {
            let value = partial.unwrap_or(size);
            let help = "a torus has up to 16 nodes in X, 32 in Y and, with partial planes, 16 in \
                        Z; partial planes are smaller than the torus in X or Y";
            fields.bad(value.span(), why, help);
            None
        }
    }
}

/// Reads three sizes, of a torus or of partial planes.
fn block(fields: &mut Fields, value: Value<'_, '_>) -> Option<[u8; 3]> {
    let sizes = match value.get_ref().as_str() {
        Some(text) => {
            let numbers = text.split('x').map(|number| number.parse().ok());
            let numbers: Option<Vec<u8>> = numbers.collect();
            numbers.and_then(|numbers| numbers.try_into().ok())
        }
        None => fields.array(value, u8::MAX),
    };
    if sizes.is_none() {
        let text = value.get_ref().as_str().unwrap_or_default();
        let message = match text.is_empty() {
            true => String::from("expected three sizes"),
            false => format!("\"{}\" is not three sizes", Shown(text)),
        };
        fields.bad(value.span(), message, SIZE);
    }
    sizes
}

/// Reads defects. Returns none if the shape could not be read.
fn defects(
    fields: &mut Fields,
    value: Value<'_, '_>,
    shape: Option<&Shape>,
    spans: &mut Spans,
) -> Defects {
    let mut defects = Defects::default();
    let mut named: BTreeMap<Defect, Range<usize>> = BTreeMap::new();
    for item in fields.items(value) {
        let (Some(text), Some(shape)) = (fields.text(item), shape) else {
            continue;
        };
        match Defect::read(text, shape) {
            Ok(defect) if defects.add(defect) => {
                named.insert(defect, item.span());
                if let Defect::Node(node) = defect {
                    spans.add(Location::Chip(node), item.span());
                }
            }
            Ok(defect) => fields.mistakes.add(|| {
                let first = named.get(&defect).cloned().unwrap_or_default();
                let message = format!("{} is listed twice", defect.write(shape));
                let help = "list it once; a link is the same from both of its nodes";
                let mistake = K::NamedTwice.at(Location::Text(item.span()), message);
                mistake.again(Location::Text(first)).help(help)
            }),
            Err(error) => {
                let message = format!("\"{}\": {error}", Shown(text));
                fields.bad(item.span(), message, DefectError::HELP);
            }
        }
    }
    defects
}
