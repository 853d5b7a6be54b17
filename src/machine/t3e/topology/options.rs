//! Tori from the options of a command.

use super::channels::Channels;
use super::defects::{Defect, DefectError, Defects};
use super::model::{MAX_NODES, TorusSpec};
use super::read::within;
use crate::catalogue::{Generator, Given, Kind, OptionError, OptionSpec, common, readable};
use crate::machine::t3e::route::Shape;
use crate::net::Generated;

/// Makes tori from options.
pub const GENERATOR: Generator = Generator {
    name: "t3e",
    about: "A three-dimensional torus of a Cray T3E: a router and a processor at each node",
    options: OPTIONS,
    generate,
};

/// Partial planes of different sizes, and things that are broken, at most in a command.
const MOST: usize = 64;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "size",
        "XxYxZ",
        Kind::Text,
        "Nodes in X, Y and Z, such as 4x4x4: up to 16x32x16, 2176 in all",
    )
    .required()
    .checked(readable::<Shape>),
    OptionSpec::new(
        "partial",
        "XxYxZ",
        Kind::Text,
        "Partial planes above it, lowest first: nodes in X and Y, number of planes [default: none]",
    )
    .up_to(MOST)
    .checked(readable::<Shape>),
    OptionSpec::new(
        "spares",
        "NODES",
        Kind::Number(0, MAX_NODES as u64),
        "Spare nodes, the last ones, that take the place of broken ones [default: 0]",
    ),
    OptionSpec::new(
        "broken",
        "LINKS",
        Kind::Text,
        "Links such as (0,1,2)+X or r5-Y, and nodes such as (0,1,2) or r5, that are broken \
         [default: none]",
    )
    // A place has commas of its own.
    .up_to(3 * MOST),
    OptionSpec::new(
        "adaptive",
        "ADAPTIVE",
        Kind::Words(&["yes", "no"]),
        "Whether look-up tables let packets travel adaptively [default: yes]",
    ),
    OptionSpec::new(
        "channels",
        "CHANNELS",
        Kind::Words(&[Channels::ALL[0].0, Channels::ALL[1].0]),
        "Virtual channels of packets that may choose: by tables that balance them, or until the \
         dateline is crossed [default: optimised]",
    ),
];

fn generate(given: &Given) -> Generated {
    Ok(Box::new(spec(given)?.torus()))
}

fn spec(given: &Given) -> Result<TorusSpec, String> {
    let (name, settings) = common(given)?;
    let mut size: Vec<String> = given.all("size").to_vec();
    size.extend_from_slice(given.all("partial"));
    let shape: Shape = size.join("+").parse().map_err(|error| {
        let wrong = OptionError {
            name: "size",
            value: size.join("+"),
            reason: format!("{error}"),
        };
        String::from(wrong)
    })?;
    let mut spec = TorusSpec {
        settings,
        ..TorusSpec::new(within(shape)?)
    };
    if !name.is_empty() {
        spec.name = name;
    }
    spec.spares = given.get("spares")?.unwrap_or(0);
    if spec.spares >= spec.shape.nodes() {
        return Err(format!("--spares {}: no node is left", spec.spares));
    }
    spec.defects = defects(&given.all("broken").join(","), &spec.shape)?;
    let adaptive = |word: &str| Ok(word == "yes");
    spec.adaptive = given.get_with("adaptive", adaptive)?.unwrap_or(true);
    let channels = |word: &str| {
        let found = Channels::ALL.iter().find(|(name, _)| *name == word);
        let found = found.map(|(_, channels)| *channels);
        found.ok_or_else(|| String::from("it is no way to choose them"))
    };
    spec.channels = given.get_with("channels", channels)?.unwrap_or_default();
    Ok(spec)
}

/// What is broken, from a list with commas also within parentheses.
fn defects(list: &str, shape: &Shape) -> Result<Defects, String> {
    let mut defects = Defects::default();
    let mut is_inside = false;
    let parts = list.split(|letter| {
        is_inside = letter == '(' || is_inside && letter != ')';
        letter == ',' && !is_inside
    });
    for part in parts.filter(|part| !part.is_empty()) {
        let defect = Defect::read(part, shape);
        let defect =
            defect.map_err(|error| format!("--broken {part}: {error}; {}", DefectError::HELP))?;
        defects.add(defect);
    }
    Ok(defects)
}
