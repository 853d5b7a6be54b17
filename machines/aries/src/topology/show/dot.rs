use super::table::nics_name;
use super::{joined, summary};
use crate::route::registers::PortKind;
use crate::topology::model::Dragonfly;
use phitwire::net::show::Dot;

const LAYOUT: [&str; 3] = [
    "layout=fdp; splines=true; K=1.2",
    "node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=10]",
    "edge [fontname=\"sans-serif\", fontsize=8]",
];

/// The network for `neato` or `fdp`, with a cluster per group, a box per router with its NICs, and
/// one line for all links between two routers.
pub fn dot(network: &Dragonfly) -> String {
    let shape = &network.shape;
    let mut dot = Dot::new(&network.name, &summary(network), &LAYOUT);
    for group in 0..shape.groups {
        let head = format!("subgraph cluster_g{group} {{ label=\"group {group}\"; color=gray;");
        let routers = network.routers().filter(|&r| shape.group_of(r) == group);
        let routers = routers.map(|router| {
            let name = shape.router_name(router);
            let label = format!("{name}\n{}", nics_name(network, router));
            (name, label)
        });
        dot.part(&head, routers);
    }
    for ((a, b), (kind, links)) in joined(network) {
        let colour = match kind {
            PortKind::Green => "forestgreen",
            PortKind::Black => "black",
            PortKind::Blue | PortKind::Processor => "royalblue",
        };
        let mut attributes = vec![format!("color={colour}")];
        if links.len() > 1 {
            attributes.push(format!("label=\"{}\", penwidth=2", links.len()));
        }
        dot.edge(&shape.router_name(a), &shape.router_name(b), &attributes);
    }
    dot.finish()
}
