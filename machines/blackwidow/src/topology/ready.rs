//! Descriptions shipped with the command.

pub const READY: &[(&str, &str)] = &[
    (
        "yarc-64",
        include_str!("../../../../netns-scripts/topologies/yarc-64.toml"),
    ),
    (
        "quickstart",
        include_str!("../../../../netns-scripts/topologies/quickstart.toml"),
    ),
    (
        "pair",
        include_str!("../../../../netns-scripts/topologies/pair.toml"),
    ),
    (
        "r2-sidelinks",
        include_str!("../../../../netns-scripts/topologies/r2-sidelinks.toml"),
    ),
    (
        "r2-virtual-routers",
        include_str!("../../../../netns-scripts/topologies/r2-virtual-routers.toml"),
    ),
    (
        "three-subtrees",
        include_str!("../../../../netns-scripts/topologies/three-subtrees.toml"),
    ),
];
