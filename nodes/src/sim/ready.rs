//! Topologies by name.

use std::path::Path;

use miette::{Report, miette};
use phitwire::machine;
use phitwire::net::{Network, Shown};

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

/// The network of a file, or of a name: one that comes with the command, or one that a machine generates, such as
/// `r2-1024` or `aries-9x4x2x4:16`.
///
/// # Errors
/// Neither a file nor a name, or a description with mistakes.
pub fn find(name: &str) -> miette::Result<Box<dyn Network>> {
    if name == "-" || Path::new(name).exists() {
        return description::open(Path::new(name));
    }
    if let Some((_, text)) = READY.iter().find(|(ready, _)| *ready == name) {
        return machine::read(name, text).map_err(Report::new);
    }
    if let Some(generated) = machine::generate(name) {
        return generated.map_err(|error| miette!("{error}").wrap_err(Shown(name).to_string()));
    }
    let names: Vec<&str> = READY.iter().map(|(name, _)| *name).collect();
    let others = machine::FAMILIES.map(|family| family.names);
    Err(miette!(
        help = format!(
            "ready ones: {}; or {}",
            names.join(", "),
            others.join("; or ")
        ),
        "`{}` is neither a file nor the name of a topology",
        Shown(name)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::net::NodeRef;

    #[test]
    fn every_ready_topology_can_be_read() {
        for (name, _) in READY {
            assert!(terminals(name) > 0);
        }
        assert_eq!(terminals("r1.5-64"), 64);
        assert_eq!(terminals("aries-3x2x2x2:2"), 24);
    }

    fn terminals(name: &str) -> usize {
        let nodes = find(name).expect(name).nodes();
        let is_terminal = |node: &NodeRef| matches!(node, NodeRef::Processor(_));
        nodes.iter().filter(|node| is_terminal(node)).count()
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
