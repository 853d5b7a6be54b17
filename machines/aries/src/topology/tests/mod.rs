mod faults;
mod plans;
mod shapes;
mod texts;

use crate::topology::{Dragonfly, DragonflySpec, Shape};

/// A spec with `links` links between each pair of groups.
fn spec(groups: u16, chassis: u8, blades: u8, links: u16) -> DragonflySpec {
    DragonflySpec {
        shape: Shape {
            groups,
            chassis,
            blades,
            nics: 1,
        },
        global_links: Some(links),
        ..DragonflySpec::default()
    }
}

fn network(groups: u16, chassis: u8, blades: u8, links: u16) -> Dragonfly {
    spec(groups, chassis, blades, links)
        .generate()
        .expect("a valid spec")
}
