//! Descriptions shipped with the command.

pub const READY: &[(&str, &str)] = &[
    (
        "aries-pair",
        include_str!("../../../../netns-scripts/topologies/aries-pair.toml"),
    ),
    (
        "aries-group",
        include_str!("../../../../netns-scripts/topologies/aries-group.toml"),
    ),
    (
        "aries-3x4",
        include_str!("../../../../netns-scripts/topologies/aries-3x4.toml"),
    ),
];
