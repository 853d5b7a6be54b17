use super::{Shape, bundles, headline};
use crate::route::registers::PortKind;
use crate::topology::model::{FoldedClos, range_of_subtree};
use crate::topology::wiring::ClosWiring;
use phitwire::net::show::Dot;

const LAYOUT: [&str; 3] = [
    "rankdir=BT; ranksep=1.2; splines=false",
    "node [fontname=\"sans-serif\", fontsize=11]",
    "edge [fontname=\"sans-serif\", fontsize=9]",
];

/// The network for `dot`: one box per virtual router, one ellipse per processor, and one line for
/// all links between two of them, labelled with the ports if there are several.
pub fn dot(topology: &FoldedClos) -> String {
    let wiring = &ClosWiring::new(topology);
    let mut dot = Dot::new(&topology.name, &headline(topology, wiring), &LAYOUT);
    let name = |shape| match shape {
        Shape::Router(r) => format!("router {}", wiring.router(topology, r).name),
        Shape::Processor(p) => topology.processors[p as usize].name.clone(),
        Shape::Group(location) => format!("processors from {location}"),
    };
    let processors = topology.processors.iter();
    dot.part(
        "{ rank=same; node [shape=ellipse];",
        processors.map(|p| (p.name.clone(), format!("{}\n#{}", p.name, p.number))),
    );
    for rank in 1..=3 {
        let of_rank: Vec<u32> = (0..wiring.router_count() as u32)
            .filter(|&r| wiring.router(topology, r).rank == rank)
            .collect();
        if of_rank.is_empty() {
            continue;
        }
        let routers = of_rank.into_iter().map(|number| {
            let router = wiring.router(topology, number);
            let (first, last) = range_of_subtree(router.subtree);
            let chip = &topology.chips[wiring.chip_of(number) as usize].name;
            let on = match *chip == router.name {
                true => String::new(),
                false => format!("\non {chip}"),
            };
            let label = format!("{}{on}\n{first}-{last}", router.name);
            (name(Shape::Router(number)), label)
        });
        dot.part(
            "{ rank=same; node [shape=box, style=\"rounded,filled\", fillcolor=white];",
            routers,
        );
    }
    for bundle in bundles(topology, wiring, false) {
        let mut attributes = Vec::new();
        let links = bundle.numbers.len();
        if links > 1 {
            attributes.push(format!("label=\"{links} links\""));
            attributes.push(String::from("penwidth=2"));
        }
        if bundle.kind == PortKind::Side {
            attributes.push(String::from("color=darkorange, constraint=false"));
        }
        dot.edge(&name(bundle.a), &name(bundle.b), &attributes);
    }
    dot.finish()
}
