//! Tori as data: wiring, descriptions, mistakes, tables and configurations.

mod channels;
mod faults;
mod pictures;
mod plans;
mod routes;
mod texts;

use phitwire_framing::t3e::direction::Direction;

use super::{Defect, Torus, TorusSpec};
use crate::route::Shape;
use crate::router::PROCESSOR;
use phitwire::net::{Describe, End, Network, NodeRef};

/// Shapes with all special cases: rings of two and of one, odd sizes, and partial planes.
pub(super) const SHAPES: [&str; 8] = [
    "2x2x2",
    "2x1x1",
    "3x3x3",
    "4x2x2",
    "1x5x2",
    "4x2x2+4x1x1",
    "4x4x2+2x4x1+2x2x1",
    "1x1x1",
];

pub(super) fn shape(text: &str) -> Shape {
    text.parse().expect("a shape")
}

pub(super) fn torus(text: &str) -> Torus {
    TorusSpec::new(shape(text)).torus()
}

/// A torus of the given shape, with these defects and this number of spares.
pub(super) fn broken(text: &str, defects: &[&str], spares: u32) -> Torus {
    let mut spec = TorusSpec::new(shape(text));
    for defect in defects {
        let defect = Defect::read(defect, &spec.shape).expect("a defect");
        spec.defects.add(defect);
    }
    spec.spares = spares;
    spec.torus()
}

#[test]
fn links_join_neighbours_by_the_ports_of_their_directions() {
    for text in SHAPES {
        let torus = torus(text);
        let shape = torus.shape();
        let mut ports = std::collections::BTreeSet::new();
        for id in 0..torus.link_count() {
            let (a, b) = torus.ends(id);
            for (end, other) in [(a, b), (b, a)] {
                assert!(ports.insert(end), "{text}: {end:?} has one link");
                match (end.node, other.node) {
                    (NodeRef::Chip(node), NodeRef::Chip(peer)) => {
                        let direction = Direction::ALL[usize::from(end.port)];
                        assert_eq!(shape.neighbour(node, direction), Some(peer));
                        let back = Direction::ALL[usize::from(other.port)];
                        assert_eq!(back, direction.opposite());
                        assert_eq!(torus.link_at(node, end.port), Some(id));
                    }
                    (NodeRef::Chip(node), NodeRef::Processor(nic)) => {
                        assert_eq!((node, usize::from(end.port)), (nic, PROCESSOR));
                    }
                    (NodeRef::Processor(_), _) => assert_eq!(end.port, 0),
                }
            }
        }
        // Every link of the shape is present, and each processor has one.
        let nodes = shape.nodes();
        let links = shape.links().count() + nodes as usize;
        assert_eq!(torus.link_count(), links, "{text}");
        let nics = (0..nodes).all(|nic| ports.contains(&End::processor(nic, 0)));
        assert!(nics, "{text}");
    }
}

#[test]
fn two_nodes_of_a_ring_have_two_links() {
    let torus = torus("2x1x1");
    let between: Vec<(End, End)> = (0..torus.link_count())
        .map(|id| torus.ends(id))
        .filter(|(a, _)| matches!(a.node, NodeRef::Chip(_)))
        .collect();
    let [plus, minus] = [Direction::PlusX, Direction::MinusX].map(|d| d.index() as u8);
    let expected = [
        (End::chip(0, plus), End::chip(1, minus)),
        (End::chip(1, plus), End::chip(0, minus)),
    ];
    assert_eq!(between[..2], expected);
    assert_eq!(torus.node_names(), ["r0", "r1", "nic0", "nic1"]);
}

#[test]
fn names_describe_generated_tori() {
    for text in SHAPES {
        let name = TorusSpec::name_of(&shape(text));
        let made = Torus::generate(&name).expect("a name").expect("a torus");
        assert_eq!(made, torus(text));
        assert_eq!(made.name(), name);
        assert!(made.check().is_empty(), "{text}: {:?}", made.check());
    }
    let refused = |name: &str| {
        Torus::generate(name)
            .expect("the name of a torus")
            .unwrap_err()
    };
    assert!(refused("t3e-8x8").contains("invalid size"));
    assert!(refused("t3e-16x32x16").contains("distinguish at most 2176"));
    assert!(refused("t3e-4x4x4-4x4x1").contains("full"));
    assert!(Torus::generate("ring-8").is_none());
}

#[test]
fn a_machine_that_was_has_a_name() {
    let torus = torus("8x12x8+8x4x2+4x12x1");
    assert_eq!(torus.name(), "t3e-8x12x8-8x4x2-4x12x1");
    assert_eq!(torus.shape().nodes(), 880);
    assert!(torus.plan_lines().is_ok());
}
