//! The shape of a machine: its nodes and their wiring.

use core::fmt;
use core::str::FromStr;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Coordinates;

use super::registers::RouteRegisters;

/// Stands for no node; the size limits keep node numbers far below.
const NONE: u32 = u32::MAX;

/// A torus and its partial planes: incompletely filled planes above it in Z (T3E sec. 2.3).
///
/// `8x12x8+8x4x2+4x12x1` is a torus of 8x12x8 nodes with two planes of 8x4 nodes above it, Z
/// ordinates 8 and 9, and one plane of 4x12 above those, ordinate 10: 880 nodes. The nodes of a
/// partial plane are those whose X and Y are below its sizes.
///
/// # Rings
/// A ring in Z has the nodes of its column, so its ordinates may skip. A row of a partial plane in
/// X or Y that is shorter than the torus is not a ring: its ends are not wired together, since the
/// cable would have to change with each board added. A ring of two nodes has two links, one in each
/// direction from either node; one of a single node has none.
///
/// # Node numbers
/// If all sizes in X and Y are even, nodes are numbered in blocks of four, X=2, Y=2: bit 0 is the
/// lowest bit of X and bit 1 that of Y. Above 544 processors the look-up tables require this (T3E
/// sec. 2: "the two low bits of the logical node address are untranslated"). The blocks, or the
/// nodes themselves if any size is odd, are numbered X first, then Y, then Z.
#[derive(Clone, Debug)]
pub struct Shape {
    size: [u8; 3],
    partial: Vec<[u8; 3]>,
    in_fours: bool,
    coordinates: Vec<Coordinates>,
    /// Node numbers by [`Coordinates::bits`].
    numbers: Vec<u32>,
    neighbours: Vec<[u32; 6]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    pub nodes: Vec<u32>,
    /// Whether the last node is wired to the first.
    pub closed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    #[error("invalid size `{0}`: expected three numbers, such as 8x8x8")]
    Syntax(String),
    #[error("the size in {0} is zero")]
    Empty(char),
    #[error("{size} nodes in {dimension}: addresses allow at most {most}")]
    TooLarge {
        dimension: char,
        size: u32,
        most: u32,
    },
    #[error("a partial plane of {found} nodes in {dimension} exceeds the torus of {torus}")]
    Overhang {
        dimension: char,
        found: u8,
        torus: u8,
    },
    /// A partial plane is as large as the torus. Rejected because two names for one shape would
    /// compare unequal.
    #[error("a partial plane is full: increase Z of the torus instead")]
    Full,
    /// With partial planes, rings in Z need a dateline ordinate that every column has and that is
    /// not directly above a partial node.
    #[error("partial planes need a torus of at least two planes")]
    SinglePlane,
}

impl Shape {
    /// A torus of `size` nodes, with `partial` planes above it, lowest first, given as X, Y and
    /// number of planes.
    ///
    /// # Errors
    /// If the machine is impossible or does not fit into addresses.
    pub fn new(size: [u8; 3], partial: Vec<[u8; 3]>) -> Result<Self, ShapeError> {
        check(size, &partial)?;
        let even = |size: &[u8; 3]| size[0].is_multiple_of(2) && size[1].is_multiple_of(2);
        let mut shape = Self {
            size,
            in_fours: even(&size) && partial.iter().all(even),
            partial,
            coordinates: Vec::new(),
            numbers: vec![NONE; 1 << Coordinates::BITS.iter().sum::<u32>()],
            neighbours: Vec::new(),
        };
        shape.number();
        shape.wire();
        Ok(shape)
    }

    fn number(&mut self) {
        let block = if self.in_fours { 2 } else { 1 };
        let mut z = 0;
        for [across, deep, high] in core::iter::once(self.size).chain(self.partial.iter().copied())
        {
            for _ in 0..high {
                for y in (0..deep).step_by(block) {
                    for x in (0..across).step_by(block) {
                        for in_block in 0..(block * block) as u8 {
                            let coordinates = Coordinates([x | in_block & 1, y | in_block >> 1, z]);
                            self.numbers[usize::from(coordinates.bits())] =
                                self.coordinates.len() as u32;
                            self.coordinates.push(coordinates);
                        }
                    }
                }
                z += 1;
            }
        }
    }

    fn wire(&mut self) {
        self.neighbours = vec![[NONE; 6]; self.coordinates.len()];
        for dimension in 0..3 {
            for node in 0..self.nodes() {
                let ring = self.ring(node, dimension);
                if ring.nodes[0] != node {
                    continue; // Wired from the first node of the ring.
                }
                let wraps = ring
                    .closed
                    .then(|| (ring.nodes[ring.nodes.len() - 1], node));
                let next = ring.nodes.windows(2).map(|pair| (pair[0], pair[1]));
                for (below, above) in next.chain(wraps) {
                    self.neighbours[below as usize][dimension] = above;
                    self.neighbours[above as usize][dimension + 3] = below;
                }
            }
        }
    }

    /// Number of nodes, which are numbered from 0.
    pub fn nodes(&self) -> u32 {
        self.coordinates.len() as u32
    }

    /// The size of the torus without partial planes.
    pub fn size(&self) -> [u8; 3] {
        self.size
    }

    pub fn partial(&self) -> &[[u8; 3]] {
        &self.partial
    }

    pub fn in_fours(&self) -> bool {
        self.in_fours
    }

    /// The position of a node.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn coordinates(&self, node: u32) -> Coordinates {
        self.coordinates[node as usize]
    }

    /// The node at a position, if it exists.
    pub fn node(&self, coordinates: Coordinates) -> Option<u32> {
        let fits =
            (0..3).all(|dimension| coordinates.0[dimension] >> Coordinates::BITS[dimension] == 0);
        let node = fits.then(|| self.numbers[usize::from(coordinates.bits())])?;
        (node != NONE).then_some(node)
    }

    /// The neighbour of a node in `direction`, if there is one.
    ///
    /// # Panics
    /// If the node does not exist.
    #[inline]
    pub fn neighbour(&self, node: u32, direction: Direction) -> Option<u32> {
        let neighbour = self.neighbours[node as usize][direction.index()];
        (neighbour != NONE).then_some(neighbour)
    }

    /// The line of nodes along `dimension` through `node`.
    ///
    /// # Panics
    /// If the node or dimension does not exist.
    pub fn ring(&self, node: u32, dimension: usize) -> Ring {
        let mut coordinates = self.coordinates(node);
        let at = |ordinate| {
            coordinates.0[dimension] = ordinate;
            self.node(coordinates)
        };
        let nodes: Vec<u32> = (0..1 << Coordinates::BITS[dimension])
            .filter_map(at)
            .collect();
        let whole = dimension == 2 || nodes.len() == usize::from(self.size[dimension]);
        let closed = whole && nodes.len() > 1;
        Ring { nodes, closed }
    }

    /// Each link once: a node, a plus direction, and the neighbour.
    pub fn links(&self) -> impl Iterator<Item = (u32, Direction, u32)> {
        (0..self.nodes()).flat_map(move |node| {
            Direction::ALL[..3].iter().filter_map(move |&direction| {
                let to = self.neighbour(node, direction)?;
                Some((node, direction, to))
            })
        })
    }

    /// Directions whose rings have their dateline at `node`, one bit each.
    ///
    /// The dateline of a plus direction is the lowest ordinate; that of a minus direction is its
    /// mirror image, the highest. With partial planes the dateline of +Z is ordinate 1, in all
    /// columns: the initial hop of the uppermost node of a column leads to ordinate 0 and must not
    /// lead into a dateline (T3E sec. 3.1). If other columns kept ordinate 0, initial hops could
    /// bypass both datelines by changing columns. Open lines need none.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn datelines(&self, node: u32) -> u8 {
        let mut bits = 0;
        for dimension in 0..3 {
            let ring = self.ring(node, dimension);
            if !ring.closed {
                continue;
            }
            let first = usize::from(dimension == 2 && !self.partial.is_empty());
            bits |= u8::from(ring.nodes[first] == node) << dimension;
            bits |= u8::from(ring.nodes.last() == Some(&node)) << (dimension + 3);
        }
        bits
    }

    /// The Z ordinate of a node's neighbour in +Z, or its own if there is none.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn plus_z(&self, node: u32) -> u8 {
        let above = self.neighbour(node, Direction::PlusZ).unwrap_or(node);
        self.coordinates(above).0[2]
    }

    /// The registers of a node that let packets change channels only at the dateline.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn registers(&self, node: u32) -> RouteRegisters {
        let absent = |dimension| {
            let ring = self.ring(node, dimension);
            let ordinates = ring
                .nodes
                .iter()
                .map(|&node| self.coordinates(node).0[dimension]);
            ordinates.fold(u32::MAX, |absent, ordinate| absent & !(1 << ordinate))
        };
        RouteRegisters {
            absent: core::array::from_fn(absent),
            escapes: 0,
            coordinates: self.coordinates(node),
            plus_z: self.plus_z(node),
            datelines: self.datelines(node),
            vc_tables: [0; 6],
        }
    }
}

/// Checks that the machine is possible.
fn check(size: [u8; 3], partial: &[[u8; 3]]) -> Result<(), ShapeError> {
    let names = ['X', 'Y', 'Z'];
    for block in core::iter::once(&size).chain(partial) {
        if let Some(empty) = block.iter().position(|&size| size == 0) {
            return Err(ShapeError::Empty(names[empty]));
        }
    }
    let planes: u32 = partial.iter().map(|block| u32::from(block[2])).sum();
    for dimension in 0..3 {
        let above = if dimension == 2 { planes } else { 0 };
        let found = u32::from(size[dimension]) + above;
        let most = 1 << Coordinates::BITS[dimension];
        if found > most {
            return Err(ShapeError::TooLarge {
                dimension: names[dimension],
                size: found,
                most,
            });
        }
    }
    for block in partial {
        for dimension in 0..2 {
            if block[dimension] > size[dimension] {
                return Err(ShapeError::Overhang {
                    dimension: names[dimension],
                    found: block[dimension],
                    torus: size[dimension],
                });
            }
        }
        if block[..2] == size[..2] {
            return Err(ShapeError::Full);
        }
    }
    if size[2] < 2 && !partial.is_empty() {
        return Err(ShapeError::SinglePlane);
    }
    Ok(())
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        (self.size, &self.partial) == (other.size, &other.partial)
    }
}

impl Eq for Shape {}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.size;
        write!(f, "{x}x{y}x{z}")?;
        for [x, y, z] in &self.partial {
            write!(f, "+{x}x{y}x{z}")?;
        }
        Ok(())
    }
}

impl FromStr for Shape {
    type Err = ShapeError;

    fn from_str(text: &str) -> Result<Self, ShapeError> {
        let mut blocks = text.split('+').map(block);
        let size = blocks.next().expect("a split has at least one part")?;
        Self::new(size, blocks.collect::<Result<_, _>>()?)
    }
}

/// Parses three numbers such as `8x4x2`.
fn block(text: &str) -> Result<[u8; 3], ShapeError> {
    let number = |digits: &str| {
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok()).flatten()
    };
    let numbers: Option<Vec<u8>> = text.split('x').map(number).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    numbers.ok_or_else(|| ShapeError::Syntax(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Shape {
        text.parse().expect("a shape")
    }

    #[test]
    fn a_torus_is_wired_in_rings() {
        let shape = shape("4x3x2");
        assert_eq!(shape.nodes(), 24);
        assert_eq!(shape.links().count(), 3 * 24);
        for node in 0..24 {
            assert_eq!(shape.node(shape.coordinates(node)), Some(node));
            for direction in Direction::ALL {
                let there = shape.neighbour(node, direction).expect("closed rings");
                assert_eq!(shape.neighbour(there, direction.opposite()), Some(node));
                let dimension = direction.dimension();
                let [from, to] = [node, there].map(|node| shape.coordinates(node).0[dimension]);
                let step = if direction.is_minus() {
                    shape.size()[dimension] - 1
                } else {
                    1
                };
                assert_eq!(to, (from + step) % shape.size()[dimension]);
            }
        }
        // X first, since one size is odd.
        assert_eq!(shape.coordinates(5), Coordinates([1, 1, 0]));
        assert_eq!(shape.node(Coordinates([4, 0, 0])), None);
        assert_eq!(
            shape.node(Coordinates([16, 0, 0])),
            None,
            "outside the address"
        );
    }

    #[test]
    fn even_sizes_are_numbered_in_fours() {
        let shape = shape("8x12x8+8x4x2+4x12x1");
        assert_eq!(shape.nodes(), 880);
        for node in 0..880 {
            let [x, y, z] = shape.coordinates(node).0;
            assert_eq!(
                [node & 1, node >> 1 & 1],
                [x, y].map(|at| u32::from(at & 1))
            );
            assert_eq!(
                shape.coordinates(node & !3),
                Coordinates([x & !1, y & !1, z])
            );
        }
        assert_eq!(shape.coordinates(4), Coordinates([2, 0, 0]));
        assert_eq!(shape.coordinates(16), Coordinates([0, 2, 0]));
    }

    #[test]
    fn partial_planes_lengthen_columns_and_leave_short_rows_open() {
        let shape = shape("8x12x8+8x4x2+4x12x1");
        let at = |coordinates| shape.node(Coordinates(coordinates)).expect("a node");
        let column = |coordinates| {
            let ring = shape.ring(at(coordinates), 2);
            assert!(ring.closed);
            ring.nodes.len()
        };
        assert_eq!(column([7, 5, 0]), 8);
        assert_eq!(column([7, 3, 0]), 10);
        assert_eq!(column([3, 3, 0]), 11);
        assert_eq!(column([3, 4, 0]), 9);
        // Ordinates skip where a plane has no node.
        let up = |coordinates| shape.neighbour(at(coordinates), Direction::PlusZ);
        assert_eq!(up([3, 4, 7]), Some(at([3, 4, 10])));
        assert_eq!(up([3, 4, 10]), Some(at([3, 4, 0])));
        assert_eq!(shape.plus_z(at([7, 3, 9])), 0);
        // A row as long as the torus is closed, but a shorter one is not.
        assert!(shape.ring(at([0, 0, 8]), 0).closed);
        assert!(!shape.ring(at([0, 0, 8]), 1).closed);
        assert_eq!(shape.neighbour(at([0, 3, 8]), Direction::PlusY), None);
        assert_eq!(shape.neighbour(at([0, 0, 10]), Direction::MinusX), None);
        assert!(shape.neighbour(at([0, 0, 10]), Direction::MinusY).is_some());
        // A node without a link has no link back either.
        for (from, direction, to) in shape.links() {
            assert_eq!(shape.neighbour(to, direction.opposite()), Some(from));
        }
    }

    #[test]
    fn each_ring_has_a_dateline_in_both_directions() {
        for text in ["4x4x4", "5x3x4", "1x2x8", "8x12x8+8x4x2+4x12x1"] {
            let shape = shape(text);
            for node in 0..shape.nodes() {
                for direction in Direction::ALL {
                    let ring = shape.ring(node, direction.dimension());
                    let has = |&&node: &&u32| shape.registers(node).is_dateline(direction);
                    let datelines = ring.nodes.iter().filter(has).count();
                    assert_eq!(datelines, usize::from(ring.closed), "{text} {direction}");
                }
                // Initial hops of partial nodes do not lead into a dateline.
                if shape.coordinates(node).0[2] >= shape.size()[2] {
                    let above = shape.neighbour(node, Direction::PlusZ).expect("a column");
                    assert!(!shape.registers(above).is_dateline(Direction::PlusZ));
                }
            }
        }
    }

    #[test]
    fn two_nodes_have_two_links_and_one_has_none() {
        let shape = shape("2x1x2");
        assert_eq!(shape.links().count(), 8);
        let [plus, minus] = [Direction::PlusX, Direction::MinusX].map(|d| shape.neighbour(0, d));
        assert_eq!((plus, minus), (Some(1), Some(1)));
        assert_eq!(shape.neighbour(0, Direction::PlusY), None);
    }

    #[test]
    fn texts_are_read_and_written() {
        for text in ["8x12x8+8x4x2+4x12x1", "16x32x16", "1x1x1"] {
            assert_eq!(shape(text).to_string(), text);
        }
        let wrong = |text: &str| text.parse::<Shape>().expect_err("no shape").to_string();
        for text in [
            "", "8x8", "8x8x8x8", "8x8x8+", "8x+8x8", "8x8x256", "8 x8x8",
        ] {
            assert!(wrong(text).contains("invalid size"), "{text}");
        }
        assert_eq!(wrong("0x8x8"), "the size in X is zero");
        assert!(wrong("17x8x8").contains("addresses allow at most 16"));
        assert!(wrong("8x8x8+4x4x9").starts_with("17 nodes in Z"));
        assert!(wrong("8x8x8+4x9x1").contains("a partial plane of 9 nodes in Y exceeds"));
        assert!(wrong("8x8x8+8x8x1").contains("full"));
        assert!(wrong("8x8x1+4x8x1").contains("at least two planes"));
    }
}
