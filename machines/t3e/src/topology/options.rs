//! Tori from the options of a command.

use super::channels::Channels;
use super::defects::{Defect, DefectError, Defects};
use super::model::{MAX_NODES, TorusSpec};
use super::read::within;
use crate::route::Shape;
use phitwire::catalogue::{
    Generator, Kind, OptionError, OptionSpec, OptionValues, Outline, common, readable,
};
use phitwire::net::Generated;

pub const GENERATOR: Generator = Generator {
    name: "t3e",
    about: "A three-dimensional torus of a Cray T3E, with a router and a processor at each node",
    options: OPTIONS,
    generate,
    sizes,
};

/// Maximum number of partial planes of different sizes, and of defects, in a command.
const MOST: usize = 64;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new(
        "size",
        "XxYxZ",
        Kind::Text,
        "Nodes in X, Y and Z, such as 4x4x4: at most 16x32x16, and 2176 in total",
    )
    .required()
    .checked(readable::<Shape>),
    OptionSpec::new(
        "partial",
        "XxYxZ",
        Kind::Text,
        "Partial planes above the torus, lowest first: nodes in X and Y, number of planes \
         [default: none]",
    )
    .up_to(MOST)
    .checked(readable::<Shape>),
    OptionSpec::new(
        "spares",
        "NODES",
        Kind::Number(0, MAX_NODES as u64),
        "Number of spare nodes, the last ones, which can replace broken ones [default: 0]",
    ),
    OptionSpec::new(
        "broken",
        "LINKS",
        Kind::Text,
        "Broken links, such as (0,1,2)+X or r5-Y, and broken nodes, such as (0,1,2) or r5 \
         [default: none]",
    )
    // A position contains commas.
    .up_to(3 * MOST),
    OptionSpec::new(
        "adaptive",
        "ADAPTIVE",
        Kind::Words(&["yes", "no"]),
        "Whether look-up tables allow adaptive routing [default: yes]",
    ),
    OptionSpec::new(
        "channels",
        "CHANNELS",
        Kind::Words(&[Channels::ALL[0].0, Channels::ALL[1].0]),
        "Assignment of virtual channels where packets may choose: balanced tables, or by dateline \
         crossing [default: optimised]",
    ),
];

/// All tori with the given number of nodes, including those with partial planes of one size.
fn sizes(outline: &Outline) -> Vec<OptionValues> {
    let nodes = outline.routers;
    if nodes != outline.nics || nodes > MAX_NODES as usize {
        return Vec::new();
    }
    let boxes = |most: [usize; 3], nodes: usize| {
        let [x, y, _] = most.map(|most| (1..=most).filter(move |size| nodes.is_multiple_of(*size)));
        let planes = x.flat_map(move |x| y.clone().map(move |y| [x, y]));
        planes.filter_map(move |[x, y]| {
            let z = nodes / (x * y);
            (nodes.is_multiple_of(x * y) && z <= most[2]).then_some([x, y, z])
        })
    };
    let text = |[x, y, z]: [usize; 3]| format!("{x}x{y}x{z}");
    let is_joined = |size, partial| pairs(size, partial) == outline.joined;
    // Keep full tori whatever number of links is given: links may be missing, and there are few of
    // these sizes.
    let whole = boxes(MOST_NODES, nodes).map(|size| OptionValues::of([("size", text(size))]));
    let mut all: Vec<OptionValues> = whole.collect();
    for rest in 1..nodes {
        for size in boxes(MOST_NODES, nodes - rest).filter(|size| size[2] > 1) {
            let [x, y, z] = size;
            let partial = boxes([x, y, MOST_NODES[2].saturating_sub(z)], rest);
            let partial = partial.filter(|partial| partial[0] < x || partial[1] < y);
            let partial = partial.filter(|&partial| is_joined(size, partial));
            all.extend(partial.map(|partial| {
                OptionValues::of([("size", text(size)), ("partial", text(partial))])
            }));
        }
    }
    all
}

/// Number of connected pairs of nodes in a torus of that size with the given partial planes.
fn pairs([x, y, z]: [usize; 3], [part_x, part_y, part_z]: [usize; 3]) -> usize {
    let ring = |nodes: usize| match nodes {
        0 | 1 => 0,
        2 => 1,
        _ => nodes,
    };
    // A row shorter than the torus is open.
    let row = |nodes: usize, whole: usize| match nodes == whole {
        true => ring(nodes),
        false => nodes.saturating_sub(1),
    };
    let columns = part_x * part_y;
    z * (ring(x) * y + ring(y) * x)
        + part_z * (row(part_x, x) * part_y + row(part_y, y) * part_x)
        + columns * ring(z + part_z)
        + (x * y - columns) * ring(z)
}

/// Maximum number of nodes in X, Y and Z.
const MOST_NODES: [usize; 3] = [16, 32, 16];

fn generate(given: &OptionValues) -> Generated {
    Ok(Box::new(spec(given)?.torus()))
}

fn spec(given: &OptionValues) -> Result<TorusSpec, String> {
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
        return Err(format!(
            "--spares {}: no node is left for processors",
            spec.spares
        ));
    }
    spec.defects = defects(&given.all("broken").join(","), &spec.shape)?;
    let adaptive = |word: &str| Ok(word == "yes");
    spec.adaptive = given.get_with("adaptive", adaptive)?.unwrap_or(true);
    let channels = |word: &str| {
        let found = Channels::ALL.iter().find(|(name, _)| *name == word);
        let found = found.map(|(_, channels)| *channels);
        found.ok_or_else(|| String::from("unknown assignment"))
    };
    spec.channels = given.get_with("channels", channels)?.unwrap_or_default();
    Ok(spec)
}

/// Parses defects from a list that has commas also within parentheses.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Torus;
    use phitwire::net::{Network, Profile};

    fn given(options: &[(&'static str, &str)]) -> OptionValues {
        let mut given = OptionValues::default();
        for &(name, values) in options {
            let values = values.split(',').map(str::to_owned).collect();
            given.add(name, values);
        }
        given
    }

    #[test]
    fn pairs_that_are_joined_are_counted_without_a_torus() {
        for (size, partial) in [
            ("1x1x1", None),
            ("2x2x2", None),
            ("5x2x1", None),
            ("4x4x2", Some("4x2x1")),
            ("3x4x3", Some("1x4x2")),
            ("2x3x4", Some("2x1x1")),
        ] {
            let mut given = given(&[("size", size)]);
            partial
                .into_iter()
                .for_each(|partial| given.add("partial", vec![partial.to_owned()]));
            let spec = spec(&given).expect(size);
            let links = spec.shape.links();
            let joined = links.map(|(from, _, to)| [from.min(to), from.max(to)]);
            let joined: std::collections::BTreeSet<_> = joined.collect();
            let read = |text: &str| {
                let numbers: Vec<usize> = text.split('x').flat_map(str::parse).collect();
                [numbers[0], numbers[1], numbers[2]]
            };
            let counted = pairs(read(size), partial.map_or([0; 3], read));
            assert_eq!(counted, joined.len(), "{size} {partial:?}");
            // The generated sizes include this torus.
            let nodes = spec.shape.nodes() as usize;
            let sizes = sizes(&Outline {
                routers: nodes,
                nics: nodes,
                joined: counted,
                ..Outline::default()
            });
            assert!(sizes.contains(&given), "{size} {partial:?}");
        }
    }

    #[test]
    fn options_become_a_torus() {
        let options = given(&[
            ("size", "4x4x2"),
            ("partial", "4x2x1,2x2x1"),
            ("spares", "4"),
            ("broken", "(0,1,0)+X,r5-Y,(3,3,1),r2"),
            ("adaptive", "no"),
            ("channels", "time-of-crossing"),
            ("profile", "paper"),
        ]);
        let network = generate(&options).expect("a torus");
        let torus: &Torus = network.of_machine().expect("a torus");
        assert_eq!(torus.name(), "t3e-4x4x2-4x2x1-2x2x1");
        assert_eq!(torus.shape().to_string(), "4x4x2+4x2x1+2x2x1");
        assert_eq!((torus.spares(), torus.is_adaptive()), (4, false));
        assert_eq!(torus.channels(), Channels::TimeOfCrossing);
        assert_eq!(torus.settings().profile, Profile::Paper);
        assert_eq!(torus.defects().iter().count(), 4);
        assert_eq!(torus.defects().to_string(), "2 links and 2 nodes");
        let named = generate(&given(&[("size", "2x2x2"), ("name", "lab")]));
        assert_eq!(named.expect("a torus").name(), "lab");
    }

    #[test]
    fn options_that_make_no_torus_are_refused() {
        for (options, expected) in [
            (&[("size", "4x4")][..], "invalid size"),
            (
                &[("size", "4x4x4"), ("partial", "5x1x1")],
                "of 5 nodes in X",
            ),
            (&[("size", "16x16x16")], "distinguish at most 2176"),
            (&[("size", "2x2x2"), ("spares", "8")], "no node is left"),
            (
                &[("size", "2x2x2"), ("broken", "r8")],
                "--broken r8: no such node in the torus",
            ),
            (
                &[("size", "2x2x2"), ("broken", "(0,0")],
                "not a link or node",
            ),
        ] {
            let refused = generate(&given(options)).expect_err(expected);
            assert!(refused.contains(expected), "{refused}");
        }
    }
}
