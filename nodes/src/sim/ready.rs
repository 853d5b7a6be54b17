//! Topologies by name.

use std::path::Path;

use miette::{IntoDiagnostic, Report, WrapErr, miette};
use phitwire::topology::{BlackwidowSpec, Rank, Topology, read};

/// Descriptions that come with the command, by name.
const READY: [(&str, &str); 6] = [
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
];

/// The topology of a file, or of a name: one that comes with the command, or a generated
/// network such as `r2-1024`, a rank and a number of processors.
///
/// # Errors
/// Neither a file nor a name, or a description with mistakes.
pub fn find(name: &str) -> miette::Result<Topology> {
    if Path::new(name).exists() {
        let text = std::fs::read_to_string(name)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot read {name}"))?;
        return Ok(read(name, &text).map_err(Report::new)?.topology);
    }
    if let Some((_, text)) = READY.iter().find(|(ready, _)| *ready == name) {
        return Ok(read(name, text).map_err(Report::new)?.topology);
    }
    if let Some(spec) = generated(name) {
        return spec
            .generate()
            .into_diagnostic()
            .wrap_err_with(|| name.to_owned());
    }
    let names: Vec<&str> = READY.iter().map(|(name, _)| *name).collect();
    Err(miette!(
        help = format!(
            "ready ones: {}; or RANK-PROCESSORS, such as r1-32, r1.5-288, r2-1024, r3-16384 and \
             r3.5-32768",
            names.join(", ")
        ),
        "`{name}` is neither a file nor the name of a topology"
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_ready_topology_can_be_read() {
        for (name, _) in READY {
            assert!(!find(name).expect(name).processors.is_empty());
        }
        assert_eq!(find("r1.5-64").expect("a network").processors.len(), 64);
    }

    #[test]
    fn what_is_not_there_is_refused_with_names() {
        let report = find("nowhere").expect_err("no such thing");
        assert!(format!("{report:?}").contains("yarc-64"), "{report:?}");
        assert!(find("r9-32").is_err());
        assert!(find("r1-99").is_err());
    }
}
