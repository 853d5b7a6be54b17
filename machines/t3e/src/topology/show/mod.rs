//! Views of a torus: tables, Graphviz output and drawings.

mod dot;
mod measures;
mod overview;
mod planes;
mod svg;
mod table;

use super::defects::Defect;
use super::model::Torus;
use phitwire::net::DrawError;
use phitwire::net::show::counted;

pub use dot::dot;
pub use measures::Measures;
pub use svg::svg;
pub use table::{inventory, table};

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

/// Maximum number of nodes that are drawn with their names: more are illegible at the width of a
/// page.
const MOST_NAMED: u32 = 128;

/// The drawing of a torus: in full, with small boxes, or of one plane of Z.
///
/// # Errors
/// [`DrawError::NoPart`].
pub fn drawing(torus: &Torus, part: Option<&str>) -> Result<String, DrawError> {
    let Some(part) = part else {
        return match torus.shape().nodes() <= MOST_NAMED {
            true => Ok(svg(torus)?),
            false => Ok(overview::overview(torus)),
        };
    };
    let planes = planes::planes(torus);
    let number = part.trim_start_matches("plane").trim_start();
    let number = number.trim_start_matches(['Z', 'z']).trim_start();
    match number.parse() {
        Ok(plane) if plane < planes => Ok(svg::plane(torus, plane)),
        _ => Err(DrawError::NoPart {
            wanted: part.to_owned(),
            parts: format!("planes Z 0 to {}", planes - 1),
        }),
    }
}

/// The role of a node: its logical processor number, spare or cut off.
fn role(torus: &Torus, node: u32) -> String {
    match torus.processor(node) {
        _ if torus.defects.has(Defect::Node(node)) => String::from("cut off"),
        Some(number) => format!("PE {number}"),
        None => String::from("spare"),
    }
}
