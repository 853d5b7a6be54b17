//! A containerlab topology: a container per node, whose process uses the interfaces that
//! containerlab creates.

use std::fmt::Write as _;

use super::Export;
use super::graph::{Graph, Node};

/// Path of the description in containers.
const DESCRIPTION: &str = "/etc/phitwire/topology.toml";

/// Writes the topology. It expects the description in the same directory, as `NAME.toml`.
pub(super) fn write(graph: &Graph) -> Export {
    let title = name_of(&graph.title);
    let mut text = format!(
        "name: {title}\n\
         topology:\n  \
           defaults:\n    \
             kind: linux\n    \
             image: phitwire:latest\n    \
             network-mode: none\n    \
             binds:\n      \
               - {title}.toml:{DESCRIPTION}:ro\n  \
           nodes:\n"
    );
    // Writing to a String cannot fail.
    for name in graph.routers.iter().chain(&graph.nics) {
        let _ = write!(
            text,
            "    {name}:\n      cmd: phitwire run --lab {title} --topology {DESCRIPTION} --node {name} --link ethernet\n"
        );
    }
    text.push_str("  links:\n");
    let end = |node: Node, port: Option<u8>| {
        format!("\"{}:p{}\"", graph.name(node), port.unwrap_or_default())
    };
    for [a, b] in &graph.links {
        let (a, b) = (end(a.node, a.port), end(b.node, b.port));
        let _ = writeln!(text, "    - endpoints: [{a}, {b}]");
    }
    let left_out = vec![
        format!("save the description next to this file as {title}.toml"),
        "make the image phitwire:latest with netns-scripts/Containerfile".to_owned(),
    ];
    Export { text, left_out }
}

/// Replaces characters that are invalid in lab names.
fn name_of(title: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    title
        .chars()
        .map(|c| if fits(c) { c } else { '-' })
        .collect()
}
