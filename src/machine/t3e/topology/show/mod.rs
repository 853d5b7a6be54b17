//! A torus for the eye: tables, Graphviz, a drawing.

mod dot;
mod measures;
mod svg;
mod table;

use super::defects::Defect;
use super::model::Torus;
use crate::net::show::counted;

pub use dot::dot;
pub use measures::Measures;
pub use svg::svg;
pub use table::{inventory, table};

/// The name and measure of a torus, in one line.
pub fn summary(torus: &Torus) -> String {
    let spares = match torus.spares {
        0 => String::new(),
        spares => format!(" ({spares} spare)"),
    };
    let broken = match torus.defects.is_empty() {
        true => String::new(),
        false => format!(", {} broken", torus.defects),
    };
    format!(
        "{}: torus of {}, {}{spares}, {}{broken}",
        torus.graph.name,
        torus.shape,
        counted(torus.shape.nodes() as usize, "node"),
        counted(torus.graph.links.len(), "link"),
    )
}

/// What processor a node has: its logical number, or that it is spare or cut off.
fn role(torus: &Torus, node: u32) -> String {
    match torus.processor(node) {
        _ if torus.defects.has(Defect::Node(node)) => String::from("cut off"),
        Some(number) => format!("PE {number}"),
        None => String::from("spare"),
    }
}
