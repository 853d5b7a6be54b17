use super::arrangement::Arrangement;
use super::generate::DragonflySpec;
use super::model::Shape;
use phitwire::catalogue::{Generator, Kind, OptionSpec, OptionValues, Outline, common, readable};
use phitwire::net::Generated;

pub const GENERATOR: Generator = Generator {
    name: "dragonfly",
    about: "A dragonfly of Aries routers: groups of chassis of blades",
    options: OPTIONS,
    generate,
    sizes,
};

/// A byte; the generator checks its range.
const BYTE: Kind = Kind::Number(0, u8::MAX as u64);
/// A larger number; the generator checks its range too.
const WORD: Kind = Kind::Number(0, u16::MAX as u64);
/// Default number of links from a router to its peer in each other chassis.
const BLACK_LINKS: u8 = 3;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::new("groups", "GROUPS", WORD, "Groups, 1 to 241").required(),
    OptionSpec::new(
        "chassis",
        "CHASSIS",
        BYTE,
        "Number of chassis in each group, 1 to 6",
    )
    .required(),
    OptionSpec::new(
        "blades",
        "BLADES",
        BYTE,
        "Number of blades in each chassis, 1 to 16, with one router each",
    )
    .required(),
    OptionSpec::new(
        "nics",
        "NICS",
        BYTE,
        "Number of NICs of each router, 1 to 4 [default: 1]",
    ),
    OptionSpec::new(
        "global-links",
        "GLOBAL_LINKS",
        WORD,
        "Number of links between each pair of groups [default: as many as 10 per router allow; \
         whole cables of four between groups of full chassis]",
    ),
    OptionSpec::new(
        "arrangement",
        "ARRANGEMENT",
        Kind::Text,
        "Arrangement of global ports: which ports of a group lead to which group (absolute, \
         relative or circulant) [default: absolute]",
    )
    .checked(readable::<Arrangement>),
    OptionSpec::new(
        "black-links",
        "BLACK_LINKS",
        BYTE,
        "Number of links from a router to its peer in each other chassis, limited by its 15 black \
         ports [default: 3]",
    ),
    OptionSpec::new(
        "set-links",
        "SET_LINKS",
        BYTE,
        "Number of global links that share a cable and two neighbouring blades, 1 or 4 [default: \
         4 for whole cables between full chassis]",
    ),
];

/// All shapes with the given numbers of routers and NICs, first with default links, then with other
/// numbers, each in all arrangements.
fn sizes(outline: &Outline) -> Vec<OptionValues> {
    let (routers, nics) = (outline.routers, outline.nics);
    if routers == 0 || !nics.is_multiple_of(routers) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for chassis in 1..=usize::from(Shape::MAX_CHASSIS) {
        for blades in 1..=usize::from(Shape::MAX_BLADES) {
            let own = chassis * blades;
            let groups = routers / own;
            if !routers.is_multiple_of(own) || groups > Shape::MAX_GROUPS.into() {
                continue;
            }
            let shape = [
                ("groups", groups.to_string()),
                ("chassis", chassis.to_string()),
                ("blades", blades.to_string()),
                ("nics", (nics / routers).to_string()),
            ];
            let black = match chassis {
                1 => vec![BLACK_LINKS],
                _ => usual_first(BLACK_LINKS, 15 / (chassis as u8 - 1)),
            };
            for black in black {
                let green = groups * chassis * (blades * (blades - 1) / 2);
                let black_links =
                    groups * (chassis * (chassis - 1) / 2) * blades * usize::from(black);
                // Number of pairs connected by links between groups; each pair of groups has at
                // least one.
                let inside = green + black_links / usize::from(black.max(1));
                let between = outline.joined.checked_sub(inside);
                let Some(between) = between.filter(|&joined| joined >= groups * (groups - 1) / 2)
                else {
                    continue;
                };
                let blue = outline
                    .links
                    .map(|links| links.checked_sub(nics + green + black_links));
                for more in global_links(groups, own, between, blue) {
                    let mut given = OptionValues::of(shape.clone());
                    if black != BLACK_LINKS {
                        given.add("black-links", vec![black.to_string()]);
                    }
                    given.extend(more);
                    all.push(given);
                }
            }
        }
    }
    // Shapes with defaults come first.
    all.sort_by_key(|given| given.names().count());
    all
}

/// The numbers up to `most`, starting with the default.
fn usual_first(usual: u8, most: u8) -> Vec<u8> {
    let others = (1..=most).filter(|&other| other != usual);
    [usual].into_iter().chain(others).collect()
}

/// Options for links between groups that connect the given number of pairs of routers, with `blue`
/// links in total if known. Empty if that is impossible.
fn global_links(
    groups: usize,
    own: usize,
    joined: usize,
    blue: Option<Option<usize>>,
) -> Vec<OptionValues> {
    let pairs = groups * (groups - 1) / 2;
    let most = match pairs {
        0 => 0,
        _ => (10 * own / (groups - 1)).min(40),
    };
    let counts: Vec<Option<usize>> = match blue {
        Some(None) => return Vec::new(),
        Some(Some(0)) if pairs == 0 => vec![None],
        Some(Some(blue)) if pairs > 0 && blue.is_multiple_of(pairs) => {
            vec![None, Some(blue / pairs)]
        }
        Some(Some(_)) => return Vec::new(),
        None if pairs == 0 => vec![None],
        None => {
            let least = joined.div_ceil(pairs);
            [None].into_iter().chain((least..=most).map(Some)).collect()
        }
    };
    let mut all = Vec::new();
    for count in counts {
        for (arrangement, sets) in [
            (None, None),
            (Some("relative"), None),
            (Some("circulant"), None),
        ]
        .into_iter()
        .chain([None, Some("relative"), Some("circulant")].map(|of| (of, Some("1"))))
        {
            let mut given = OptionValues::default();
            if let Some(count) = count {
                given.add("global-links", vec![count.to_string()]);
            }
            for (name, value) in [("arrangement", arrangement), ("set-links", sets)] {
                if let Some(value) = value {
                    given.add(name, vec![value.to_owned()]);
                }
            }
            all.push(given);
        }
    }
    all
}

fn generate(given: &OptionValues) -> Generated {
    let spec = spec(given)?;
    match spec.generate() {
        Ok(network) => Ok(Box::new(network)),
        Err(error) => Err(error.to_string()),
    }
}

fn spec(given: &OptionValues) -> Result<DragonflySpec, String> {
    let usual = DragonflySpec::default();
    let (name, settings) = common(given)?;
    Ok(DragonflySpec {
        name,
        shape: Shape {
            groups: given.get("groups")?.unwrap_or(usual.shape.groups),
            chassis: given.get("chassis")?.unwrap_or(usual.shape.chassis),
            blades: given.get("blades")?.unwrap_or(usual.shape.blades),
            nics: given.get("nics")?.unwrap_or(usual.shape.nics),
        },
        black_links: Some(given.get("black-links")?.unwrap_or(BLACK_LINKS)),
        global_links: given.get("global-links")?,
        arrangement: given.get("arrangement")?.unwrap_or(usual.arrangement),
        set_links: given.get("set-links")?,
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_a_dragonfly() {
        let mut given = OptionValues::default();
        for (name, value) in [
            ("groups", "3"),
            ("chassis", "2"),
            ("blades", "2"),
            ("nics", "2"),
            ("global-links", "4"),
            ("arrangement", "circulant"),
        ] {
            given.add(name, vec![value.to_owned()]);
        }
        let network = generate(&given).expect("a network");
        let summary =
            "aries-3x2x2x2-4: dragonfly, 3 groups of 2 x 2 blades, 12 routers, 24 NICs, 60 links";
        assert_eq!(network.summary(), summary);
        let counted = network.inventory().expect("a dragonfly has an inventory");
        assert!(counted.contains("12X active optical cables"));
        given.add("set-links", vec!["3".to_owned()]);
        let refused = generate(&given).expect_err("1 or 4");
        assert!(
            refused.starts_with("links cannot share cables in sets of 3"),
            "{refused}"
        );
        let mut given = OptionValues::default();
        given.add("arrangement", vec!["random".to_owned()]);
        assert!(spec(&given).is_err());
    }
}
