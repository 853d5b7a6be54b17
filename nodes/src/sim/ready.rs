//! Topologies by name.

use std::path::Path;

use miette::{IntoDiagnostic, Report, WrapErr, miette};
use phitwire::topology::dragonfly::{DragonflySpec, Shape};
use phitwire::topology::{BlackwidowSpec, Network, Rank, Shown};

use crate::description;

/// Descriptions that come with the command, by name.
const READY: [(&str, &str); 9] = [
    (
        "yarc-64",
        include_str!("../../../netns-scripts/topologies/yarc-64.toml"),
    ),
    (
        "quickstart",
        include_str!("../../../netns-scripts/topologies/quickstart.toml"),
    ),
    (
        "pair",
        include_str!("../../../netns-scripts/topologies/pair.toml"),
    ),
    (
        "r2-sidelinks",
        include_str!("../../../netns-scripts/topologies/r2-sidelinks.toml"),
    ),
    (
        "r2-virtual-routers",
        include_str!("../../../netns-scripts/topologies/r2-virtual-routers.toml"),
    ),
    (
        "three-subtrees",
        include_str!("../../../netns-scripts/topologies/three-subtrees.toml"),
    ),
    (
        "aries-pair",
        include_str!("../../../netns-scripts/topologies/aries-pair.toml"),
    ),
    (
        "aries-group",
        include_str!("../../../netns-scripts/topologies/aries-group.toml"),
    ),
    (
        "aries-3x4",
        include_str!("../../../netns-scripts/topologies/aries-3x4.toml"),
    ),
];

/// The topology of a file, or of a name: one that comes with the command, or a generated
/// network such as `r2-1024`, a rank and a number of processors, or `aries-9x4x2x4:16`, groups, chassis,
/// blades, NICs and, if given, links between each pair of groups.
///
/// # Errors
/// Neither a file nor a name, or a description with mistakes.
pub fn find(name: &str) -> miette::Result<Network> {
    if name == "-" || Path::new(name).exists() {
        return description::open(Path::new(name));
    }
    if let Some((_, text)) = READY.iter().find(|(ready, _)| *ready == name) {
        return Network::read(name, text).map_err(Report::new);
    }
    if let Some(spec) = generated(name) {
        let topology = spec.generate().into_diagnostic();
        return topology
            .map(Network::Blackwidow)
            .wrap_err_with(|| Shown(name).to_string());
    }
    if let Some(spec) = dragonfly(name) {
        let network = spec.generate().into_diagnostic();
        return network
            .map(Network::Aries)
            .wrap_err_with(|| Shown(name).to_string());
    }
    let names: Vec<&str> = READY.iter().map(|(name, _)| *name).collect();
    Err(miette!(
        help = format!(
            "ready ones: {}; or RANK-PROCESSORS, such as r1-32, r1.5-288, r2-1024, r3-16384 and \
             r3.5-32768; or aries-GROUPSxCHASSISxBLADESxNICS[:LINKS], such as aries-9x4x2x4",
            names.join(", ")
        ),
        "`{}` is neither a file nor the name of a topology",
        Shown(name)
    ))
}

/// `r1.5-288`: the network that the generator makes with its defaults.
fn generated(name: &str) -> Option<BlackwidowSpec> {
    let (rank, processors) = name.split_once('-')?;
    let rank: Rank = rank.strip_prefix('r')?.parse().ok()?;
    Some(BlackwidowSpec {
        processors: processors.parse().ok()?,
        rank: Some(rank),
        ..BlackwidowSpec::default()
    })
}

/// Black ports of a router.
const BLACK_PORTS: u8 = 15;

/// `aries-9x4x2x4:16`: a dragonfly with all 15 black ports in use, as far as they can be shared out evenly, and
/// otherwise what the generator makes with its defaults.
fn dragonfly(name: &str) -> Option<DragonflySpec> {
    let shape = name.strip_prefix("aries-")?;
    let (shape, links) = match shape.split_once(':') {
        Some((shape, links)) => (shape, Some(links.parse().ok()?)),
        None => (shape, None),
    };
    let mut parts = shape.split('x');
    let shape = Shape {
        groups: parts.next()?.parse().ok()?,
        chassis: parts.next()?.parse().ok()?,
        blades: parts.next()?.parse().ok()?,
        nics: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then(|| DragonflySpec {
        name: name.replace(':', "-"),
        black_links: (shape.chassis > 1)
            .then(|| BLACK_PORTS / (shape.chassis - 1).min(BLACK_PORTS)),
        shape,
        global_links: links,
        ..DragonflySpec::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_topology_can_be_read() {
        for (name, _) in READY {
            assert!(terminals(name) > 0);
        }
        assert_eq!(terminals("r1.5-64"), 64);
        assert_eq!(terminals("aries-3x2x2x2:2"), 24);
    }

    fn terminals(name: &str) -> usize {
        match find(name).expect(name) {
            Network::Blackwidow(topology) => topology.processors.len(),
            Network::Aries(network) => network.nics().count(),
        }
    }

    #[test]
    fn what_is_not_there_is_refused_with_names() {
        let report = find("nowhere").expect_err("no such thing");
        assert!(format!("{report:?}").contains("yarc-64"), "{report:?}");
        assert!(find("r9-32").is_err());
        assert!(find("r1-99").is_err());
        assert!(find("aries-3x2x2").is_err());
        assert!(find("aries-3x2x2x9").is_err());
    }
}
