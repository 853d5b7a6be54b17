use super::{role, summary};
use crate::topology::model::Torus;
use phitwire::net::show::Dot;
use phitwire::net::{Network, NodeRef};

const LAYOUT: [&str; 3] = [
    "layout=fdp; splines=true; K=1.2",
    "node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=\"sans-serif\", fontsize=10]",
    "edge [fontname=\"sans-serif\", fontsize=8]",
];

/// The torus for `neato` or `fdp`, with a cluster per Z plane, a box per router with its processor,
/// and a line per link between routers.
pub fn dot(torus: &Torus) -> String {
    let shape = torus.shape();
    let mut dot = Dot::new(torus.name(), &summary(torus), &LAYOUT);
    let coordinates = |node| shape.coordinates(node).0;
    let planes = (0..shape.nodes())
        .map(|node| coordinates(node)[2])
        .max()
        .unwrap_or(0);
    for z in 0..=planes {
        let head = format!("subgraph cluster_z{z} {{ label=\"Z {z}\"; color=gray;");
        let nodes = (0..shape.nodes()).filter(|&node| coordinates(node)[2] == z);
        let nodes = nodes.map(|node| {
            let name = torus.node_name(NodeRef::Chip(node)).into_owned();
            let nic = torus.node_name(NodeRef::Processor(node));
            let label = format!(
                "{name} {}\n{nic}, {}",
                shape.coordinates(node),
                role(torus, node)
            );
            (name, label)
        });
        dot.part(&head, nodes);
    }
    for link in &torus.graph().links {
        if matches!(link.a.node, NodeRef::Processor(_)) {
            continue;
        }
        let mut attributes = Vec::new();
        if torus.is_broken(link) {
            attributes.push(String::from("color=red, style=dashed"));
        }
        let [a, b] = [link.a, link.b].map(|end| torus.node_name(end.node));
        dot.edge(&a, &b, &attributes);
    }
    dot.finish()
}
