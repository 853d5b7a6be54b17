//! Descriptions shipped with the command.

pub const READY: &[(&str, &str)] = &[
    (
        "t3e-2x2x2",
        include_str!("../../../../netns-scripts/topologies/t3e-2x2x2.toml"),
    ),
    (
        "t3e-4x2x2-partial",
        include_str!("../../../../netns-scripts/topologies/t3e-4x2x2-partial.toml"),
    ),
    (
        "t3e-3x3x3",
        include_str!("../../../../netns-scripts/topologies/t3e-3x3x3.toml"),
    ),
];
