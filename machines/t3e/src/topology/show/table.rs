//! Tables for terminals.

use core::fmt::Write as _;

use phitwire_framing::t3e::direction::Direction;

use super::{Measures, role, summary};
use crate::link::CARRIER_LANES;
use crate::route::Broken;
use crate::router::PROCESSOR;
use crate::topology::model::Torus;
use phitwire::net::show::{Table, links, or_dash};
use phitwire::net::{End, Link, Network, NodeRef};

/// Tables of routers and links with at most `rows` rows each; omitted rows are counted.
pub fn table(torus: &Torus, rows: usize) -> String {
    let mut out = format!("{}\n{}\n\n", summary(torus), settings(torus));
    let head = [
        "ROUTER",
        "PLACE",
        "NIC",
        "PROCESSOR",
        "+X",
        "+Y",
        "+Z",
        "-X",
        "-Y",
        "-Z",
    ];
    let mut table = Table::new(head);
    let (nodes, broken) = (torus.shape().nodes(), torus.broken());
    for node in (0..nodes).take(rows) {
        let to = Direction::ALL.map(|direction| neighbour(torus, &broken, node, direction));
        table.row([
            &torus.node_name(NodeRef::Chip(node)),
            &torus.shape().coordinates(node),
            &torus.node_name(NodeRef::Processor(node)),
            &role(torus, node),
            &to[0],
            &to[1],
            &to[2],
            &to[3],
            &to[4],
            &to[5],
        ]);
    }
    table.write_of(&mut out, nodes as usize, "router");
    let all = (&torus.graph().links[..], CARRIER_LANES);
    links(&mut out, torus, all, rows, ["DIRECTION", "STATE"], |link| {
        let state = match torus.is_broken(link) {
            true => "broken",
            false => "whole",
        };
        [direction(link), state]
    });
    out
}

/// The router in the given direction, or `-`; in brackets if the link is broken.
fn neighbour(torus: &Torus, broken: &Broken, node: u32, direction: Direction) -> String {
    let peer = torus.shape().neighbour(node, direction);
    let name = peer.map(|peer| torus.node_name(NodeRef::Chip(peer)).into_owned());
    match name {
        Some(name) if !broken.works(node, direction) => {
            format!("[{name}]")
        }
        name => or_dash(name.unwrap_or_default()),
    }
}

/// The direction of a link as seen from end A.
fn direction(link: &Link<()>) -> &'static str {
    let End { port, .. } = link.a;
    match link.a.node {
        NodeRef::Chip(_) if usize::from(port) < PROCESSOR => {
            Direction::ALL[usize::from(port)].name()
        }
        _ => "nic",
    }
}

fn settings(torus: &Torus) -> String {
    let adaptive = match torus.is_adaptive() {
        true => "adaptive and deterministic",
        false => "deterministic",
    };
    let headline = torus.settings().headline();
    let channels = torus.channels().name();
    format!("{headline}, {adaptive} routing, virtual channels {channels}")
}

/// Nodes, links, rings, distances and bandwidths, and differences from all machines that were
/// built.
pub fn inventory(torus: &Torus) -> String {
    let (shape, measures) = (torus.shape(), Measures::of(torus));
    let nodes = shape.nodes();
    let mut out = summary(torus) + "\n\n";
    let mut table = Table::new(["MEASURE", "VALUE", "OF"]);
    let spares = or_dash(match torus.spares() {
        0 => String::new(),
        spares => format!("{spares} spare"),
    });
    table.row([&"nodes", &nodes, &spares]);
    let links = measures.links;
    table.row([&"links between routers", &links, &"600 MB/s per direction"]);
    for (dimension, name) in ["X", "Y", "Z"].into_iter().enumerate() {
        let open = or_dash(match measures.open[dimension] {
            0 => String::new(),
            open => format!("plus {open} open rows"),
        });
        let what = format!("rings in {name}");
        table.row([&what, &measures.rings[dimension], &open]);
    }
    let average = format!("{:.2} on average", measures.average_hops);
    table.row([&"diameter in hops", &measures.diameter, &average]);
    let cut = match shape.partial().is_empty() {
        true => format!("{} links", measures.bisection_links),
        false => format!("{} links, without partial planes", measures.bisection_links),
    };
    let gbytes = measures.bisection_gbytes();
    table.row([&"bisection in GB/s", &format_args!("{gbytes:.1}"), &cut]);
    let global = measures.global_mbytes(nodes);
    table.row([
        &"global MB/s per node",
        &format_args!("{global:.0}"),
        &"upper bound, with headers",
    ]);
    table.write(&mut out);
    let unusual = unusual(torus);
    if !unusual.is_empty() {
        let _ = writeln!(out, "\nDifferences from all machines in T3E sec. 1:");
        for rule in unusual {
            let _ = writeln!(out, "- {rule}");
        }
    }
    out
}

/// Differences from all machines mentioned in T3E sec. 1.
fn unusual(torus: &Torus) -> Vec<String> {
    let [x, y, z] = torus.shape().size();
    let nodes = torus.shape().nodes();
    let mut rules = Vec::new();
    for (name, size, most) in [("X", x, 8), ("Y", y, 32), ("Z", z, 8)] {
        if size > most {
            rules.push(format!(
                "{size} nodes in {name}: no machine had more than {most}"
            ));
        }
    }
    if nodes < 8 {
        rules.push(format!("{nodes} nodes: the smallest machine had 8"));
    }
    let (least, most) = (x.min(y).min(z), x.max(y).max(z));
    if torus.shape().partial().is_empty() && most > 2 * least && nodes <= 1_024 {
        rules.push(format!(
            "{least} and {most} nodes: up to 1024 nodes, no dimension exceeded twice another"
        ));
    }
    rules
}
