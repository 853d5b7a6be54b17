use core::fmt;
use std::collections::BTreeSet;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Coordinates;

use crate::route::{Broken, Shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Defect {
    /// The link of a node in a plus direction.
    Link(u32, Direction),
    /// A node with its processor.
    Node(u32),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefectError {
    #[error("not a link or node")]
    Syntax,
    #[error("no such node in the torus")]
    NoNode,
    #[error("node {0} has no link in {1}")]
    NoLink(Coordinates, Direction),
}

impl DefectError {
    pub const HELP: &'static str = "write (0,1,2)+X for the link of that node in that direction, \
                                    r5-Y for a link of router 5, or (0,1,2) or r5 for the whole \
                                    node";
}

impl Defect {
    /// The link of `node` in `direction`, if there is one.
    pub fn link(shape: &Shape, node: u32, direction: Direction) -> Option<Self> {
        let peer = shape.neighbour(node, direction)?;
        Some(match direction.is_minus() {
            false => Self::Link(node, direction),
            true => Self::Link(peer, direction.opposite()),
        })
    }

    /// Parses a defect: a node, by position or by router name, optionally followed by the direction
    /// of a link.
    ///
    /// # Errors
    /// If the text denotes no defect of a machine of that shape.
    pub fn read(text: &str, shape: &Shape) -> Result<Self, DefectError> {
        let suffix = |direction: &Direction| text.ends_with(direction.name());
        let direction = Direction::ALL.into_iter().find(suffix);
        let node = text.len() - direction.map_or(0, |direction| direction.name().len());
        let node = node_of(&text[..node], shape)?;
        match direction {
            None => Ok(Self::Node(node)),
            Some(direction) => {
                let missing = DefectError::NoLink(shape.coordinates(node), direction);
                Self::link(shape, node, direction).ok_or(missing)
            }
        }
    }

    /// Text in the format of [`read`](Self::read).
    pub fn write(self, shape: &Shape) -> String {
        match self {
            Self::Link(node, direction) => format!("{}{direction}", shape.coordinates(node)),
            Self::Node(node) => shape.coordinates(node).to_string(),
        }
    }
}

/// Parses a node such as `r5` or `(0,1,2)`.
fn node_of(text: &str, shape: &Shape) -> Result<u32, DefectError> {
    let number = |digits: &str| -> Option<u32> {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.trim().parse().ok()).flatten()
    };
    if let Some(digits) = text.strip_prefix('r') {
        let node = number(digits).ok_or(DefectError::Syntax)?;
        let found = Some(node).filter(|&node| node < shape.nodes());
        return found.ok_or(DefectError::NoNode);
    }
    let inner = text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let ordinates = inner.ok_or(DefectError::Syntax)?.split(',');
    let ordinates: Option<Vec<u32>> = ordinates.map(|digits| number(digits.trim())).collect();
    let ordinates: Option<[u32; 3]> = ordinates.and_then(|numbers| numbers.try_into().ok());
    let ordinates = ordinates.ok_or(DefectError::Syntax)?;
    let coordinates = ordinates.map(|ordinate| u8::try_from(ordinate).unwrap_or(u8::MAX));
    shape
        .node(Coordinates(coordinates))
        .ok_or(DefectError::NoNode)
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defects(BTreeSet<Defect>);

impl Defects {
    /// Adds a defect; returns false if it is already there.
    pub fn add(&mut self, defect: Defect) -> bool {
        self.0.insert(defect)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the defects: links first, by node, then nodes.
    pub fn iter(&self) -> impl Iterator<Item = Defect> {
        self.0.iter().copied()
    }

    pub fn has(&self, defect: Defect) -> bool {
        self.0.contains(&defect)
    }

    /// The defects in the form that the computation of routes uses.
    ///
    /// # Panics
    /// If a node is not in `shape`.
    pub fn broken(&self, shape: &Shape) -> Broken {
        let mut broken = Broken::none(shape);
        for defect in self.iter() {
            match defect {
                Defect::Link(node, direction) => broken.set_link(shape, node, direction, true),
                Defect::Node(node) => broken.set_isolated(shape, node, true),
            }
        }
        broken
    }
}

impl fmt::Display for Defects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_link = |defect: &Defect| matches!(defect, Defect::Link(..));
        let links = self.iter().filter(is_link).count();
        let nodes = self.0.len() - links;
        let counted = |count, what| match count {
            1 => format!("1 {what}"),
            _ => format!("{count} {what}s"),
        };
        match (links, nodes) {
            (0, 0) => f.write_str("nothing"),
            (links, 0) => f.write_str(&counted(links, "link")),
            (0, nodes) => f.write_str(&counted(nodes, "node")),
            _ => write!(
                f,
                "{} and {}",
                counted(links, "link"),
                counted(nodes, "node")
            ),
        }
    }
}
