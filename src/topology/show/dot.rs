//! The Graphviz language.

use core::fmt::Write as _;

use super::{Shape, bundles, headline};
use crate::router::yarc::registers::PortKind;
use crate::topology::model::{Topology, range_of_subtree};
use crate::topology::wiring::Wiring;

/// The network for `dot`: one box per virtual router, one ellipse per processor, one line for all
/// links between two of them, labelled with the ports where there are several.
pub fn dot(topology: &Topology) -> String {
    let wiring = Wiring::new(topology);
    let mut out = String::new();
    // Writing into a String never fails.
    let _ = write_dot(&mut out, topology, &wiring);
    out
}

/// A quoted string of the language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

fn write_dot(out: &mut String, topology: &Topology, wiring: &Wiring) -> core::fmt::Result {
    writeln!(out, "graph {} {{", quoted(&topology.name))?;
    writeln!(out, "  label={};", quoted(&headline(topology, wiring)))?;
    writeln!(out, "  rankdir=BT; ranksep=1.2; splines=false;")?;
    writeln!(out, "  node [fontname=\"sans-serif\", fontsize=11];")?;
    writeln!(out, "  edge [fontname=\"sans-serif\", fontsize=9];")?;
    let name = |shape| match shape {
        Shape::Router(r) => quoted(&format!("router {}", wiring.router(topology, r).name)),
        Shape::Processor(p) => quoted(&topology.processors[p as usize].name),
        Shape::Group(location) => quoted(&format!("processors from {location}")),
    };
    writeln!(out, "  {{ rank=same; node [shape=ellipse];")?;
    for (p, processor) in topology.processors.iter().enumerate() {
        let label = quoted(&format!("{}\n#{}", processor.name, processor.number));
        let label = label.replace('\n', "\\n");
        writeln!(
            out,
            "    {} [label={label}];",
            name(Shape::Processor(p as u32))
        )?;
    }
    writeln!(out, "  }}")?;
    for rank in 1..=3 {
        let of_rank: Vec<u32> = (0..wiring.router_count() as u32)
            .filter(|&r| wiring.router(topology, r).rank == rank)
            .collect();
        if of_rank.is_empty() {
            continue;
        }
        writeln!(
            out,
            "  {{ rank=same; node [shape=box, style=\"rounded,filled\", fillcolor=white];"
        )?;
        for number in of_rank {
            let router = wiring.router(topology, number);
            let (first, last) = range_of_subtree(router.subtree);
            let chip = &topology.chips[wiring.chip_of(number) as usize].name;
            let on = if *chip == router.name {
                String::new()
            } else {
                format!("\\non {chip}")
            };
            let label = format!("\"{}{on}\\n{first}-{last}\"", router.name);
            writeln!(out, "    {} [label={label}];", name(Shape::Router(number)))?;
        }
        writeln!(out, "  }}")?;
    }
    for bundle in bundles(topology, wiring, false) {
        let mut attributes = Vec::new();
        if bundle.links > 1 {
            attributes.push(format!("label=\"{} links\"", bundle.links));
            attributes.push(String::from("penwidth=2"));
        }
        if bundle.kind == PortKind::Side {
            attributes.push(String::from("color=darkorange, constraint=false"));
        }
        let attributes = match attributes.is_empty() {
            true => String::new(),
            false => format!(" [{}]", attributes.join(", ")),
        };
        writeln!(
            out,
            "  {} -- {}{attributes};",
            name(bundle.a),
            name(bundle.b)
        )?;
    }
    writeln!(out, "}}")
}
