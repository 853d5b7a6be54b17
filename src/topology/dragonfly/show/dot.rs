//! The Graphviz language.

use core::fmt::Write as _;

use super::table::nics_name;
use super::{joined, summary};
use crate::router::aries::registers::PortKind;
use crate::topology::dragonfly::model::Dragonfly;

/// The network for `neato` or `fdp`: a cluster per group, a box per router with its network interfaces, a line
/// for all links between two routers.
pub fn dot(network: &Dragonfly) -> String {
    let mut out = String::new();
    // Writing into a String never fails.
    let _ = write_dot(&mut out, network);
    out
}

fn write_dot(out: &mut String, network: &Dragonfly) -> core::fmt::Result {
    // Names are letters, digits and dashes: nothing in them needs an escape.
    writeln!(out, "graph \"{}\" {{", network.name)?;
    writeln!(out, "  label=\"{}\";", summary(network))?;
    writeln!(out, "  layout=fdp; splines=true; K=1.2;")?;
    writeln!(
        out,
        "  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=10];"
    )?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=8];")?;
    for group in 0..network.shape.groups {
        writeln!(
            out,
            "  subgraph cluster_g{group} {{ label=\"group {group}\"; color=gray;"
        )?;
        for router in network
            .routers()
            .filter(|&r| network.shape.group_of(r) == group)
        {
            let name = network.shape.router_name(router);
            writeln!(
                out,
                "    \"{name}\" [label=\"{name}\\n{}\"];",
                nics_name(network, router)
            )?;
        }
        writeln!(out, "  }}")?;
    }
    for ((a, b), (kind, links)) in joined(network) {
        let colour = match kind {
            PortKind::Green => "forestgreen",
            PortKind::Black => "black",
            PortKind::Blue | PortKind::Processor => "royalblue",
        };
        let label = match links {
            1 => String::new(),
            _ => format!(", label=\"{links}\", penwidth=2"),
        };
        let (a, b) = (network.shape.router_name(a), network.shape.router_name(b));
        writeln!(out, "  \"{a}\" -- \"{b}\" [color={colour}{label}];")?;
    }
    writeln!(out, "}}")
}
