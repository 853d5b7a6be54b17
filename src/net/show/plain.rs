//! Default tables and drawings of networks.

use super::{Dot, FAINT, INK, Svg, Table, TooLarge, on_circle};
use crate::net::{End, Network, NodeRef};

/// Maximum number of nodes that can be drawn.
const MAX_DRAWN: usize = 200;

/// Tables of nodes and links, of at most `rows` rows each.
pub(crate) fn table<N: Network + ?Sized>(network: &N, rows: usize) -> String {
    let mut out = network.summary() + "\n\n";
    let nodes = network.nodes();
    let mut table = Table::new(["NODE", "KIND"]);
    for &node in nodes.iter().take(rows) {
        let kind = match node {
            NodeRef::Chip(_) => "router",
            NodeRef::Processor(_) => "nic",
        };
        table.row([&network.node_name(node), &kind]);
    }
    table.write_of(&mut out, nodes.len(), "node");
    let count = network.link_count();
    let mut table = Table::new(["LINK", "A", "B"]);
    for link in 0..count.min(rows) {
        let (a, b) = network.ends(link);
        table.row([&link, &network.end_name(a), &network.end_name(b)]);
    }
    table.write_of(&mut out, count, "link");
    out
}

/// All nodes and links in Graphviz format, in a circular layout.
pub(crate) fn dot<N: Network + ?Sized>(network: &N) -> String {
    let mut dot = Dot::new(network.name(), &network.summary(), &["layout=twopi"]);
    let nodes = network.node_names().into_iter();
    dot.part("{", nodes.map(|name| (name.clone(), name)));
    for link in 0..network.link_count() {
        let (a, b) = network.ends(link);
        dot.edge(&network.node_name(a.node), &network.node_name(b.node), &[]);
    }
    dot.finish()
}

/// A drawing with routers on a circle and NICs around them.
///
/// # Errors
/// [`TooLarge`].
pub(crate) fn svg<N: Network + ?Sized>(network: &N) -> Result<String, TooLarge> {
    let nodes = network.nodes();
    if nodes.len() > MAX_DRAWN {
        return Err(TooLarge(nodes.len(), "nodes", MAX_DRAWN));
    }
    let routers = nodes.iter().filter(|node| matches!(node, NodeRef::Chip(_)));
    let routers = routers.count();
    let outer = 12.0 * nodes.len() as f64 + 60.0;
    let (middle, size) = ((outer + 60.0, outer + 120.0), 2.0 * outer + 120.0);
    let point = |node| {
        let (number, of, radius) = match node {
            NodeRef::Chip(n) => (n, routers, outer * 0.6),
            NodeRef::Processor(n) => (n, nodes.len() - routers, outer),
        };
        on_circle(middle, radius, number, of as u32)
    };
    let mut svg = Svg::new((size, size + 60.0), &network.summary(), (24.0, 32.0));
    for link in 0..network.link_count() {
        let (a, b): (End, End) = network.ends(link);
        let ((x1, y1), (x2, y2)) = (point(a.node), point(b.node));
        let path = format!("M{x1:.1} {y1:.1}L{x2:.1} {y2:.1}");
        let style = format!("fill=\"none\" stroke=\"{FAINT}\"");
        svg.links([link], |svg| svg.path(path, &style));
    }
    for &node in &nodes {
        let (x, y) = point(node);
        let name = network.node_name(node);
        svg.nodes(&name, |svg| svg.haloed(x, y + 4.0, "middle", INK, &name));
    }
    Ok(svg.finish())
}
