//! A computation on a two-dimensional grid, one tile per program: before each step, each program
//! puts the edges of its tile into the memory of its four neighbours, with an event. The result
//! must equal that of one program with the whole grid.
//!
//!     cargo run --example halo -- --door PATH PATH...

pub mod common;

use common::{Outcome, Program};
use phitwire_client::door::{Completion, Local};

/// Points along the side of a tile.
const SIDE: usize = 32;
const STEPS: u64 = 50;
const EDGE_BYTES: u64 = SIDE as u64 * 8;
/// Incoming edges of even and of odd steps, since a neighbour is at most one step ahead: it needs
/// this program's edges to go on. Outgoing edges and messages follow.
const IN: u64 = 0;
const OUT: u64 = 8 * EDGE_BYTES;
const TALK: u64 = 1 << 15;
/// Bytes of data that each program needs.
pub const DATA_BYTES: u64 = 1 << 16;

/// Above, below, left and right.
const SIDES: [(isize, isize); 4] = [(0, -1), (0, 1), (-1, 0), (1, 0)];

/// A grid that wraps around at its edges.
struct Grid {
    width: usize,
    points: Vec<u64>,
}

impl Grid {
    fn new(width: usize, height: usize, start: impl Fn(usize, usize) -> u64) -> Self {
        let points = (0..width * height).map(|at| start(at % width, at / width));
        let points = points.collect();
        Self { width, points }
    }

    fn at(&self, x: usize, y: usize) -> u64 {
        self.points[y * self.width + x]
    }
}

fn start(x: usize, y: usize) -> u64 {
    (x * 1_000 + y) as u64
}

/// The next value of a point, from its own and those above, below, left and right of it.
fn next(point: u64, around: [u64; 4]) -> u64 {
    let parts = around.iter().zip([3, 5, 7, 11]);
    parts.fold(point, |sum, (n, factor)| {
        sum.wrapping_add(n.wrapping_mul(factor))
    })
}

/// The whole grid after all steps, computed by one program.
fn whole(width: usize, height: usize) -> Grid {
    let mut grid = Grid::new(width, height, start);
    for _ in 0..STEPS {
        let around = |x: usize, y: usize| {
            SIDES.map(|(dx, dy)| grid.at(moved(x, dx, width), moved(y, dy, height)))
        };
        grid = Grid::new(width, height, |x, y| next(grid.at(x, y), around(x, y)));
    }
    grid
}

fn moved(at: usize, by: isize, size: usize) -> usize {
    (at + size).wrapping_add_signed(by) % size
}

/// The edge of a tile on a side.
fn edge(tile: &Grid, side: usize) -> Vec<u64> {
    let along = 0..SIDE;
    match side {
        0 => along.map(|x| tile.at(x, 0)).collect(),
        1 => along.map(|x| tile.at(x, SIDE - 1)).collect(),
        2 => along.map(|y| tile.at(0, y)).collect(),
        _ => along.map(|y| tile.at(SIDE - 1, y)).collect(),
    }
}

/// A step of a tile, with the edges of its neighbours around it.
fn step(tile: &Grid, halo: &[Vec<u64>; 4]) -> Grid {
    Grid::new(SIDE, SIDE, |x, y| {
        let above = if y == 0 {
            halo[0][x]
        } else {
            tile.at(x, y - 1)
        };
        let below = match y == SIDE - 1 {
            true => halo[1][x],
            false => tile.at(x, y + 1),
        };
        let left = if x == 0 {
            halo[2][y]
        } else {
            tile.at(x - 1, y)
        };
        let right = match x == SIDE - 1 {
            true => halo[3][y],
            false => tile.at(x + 1, y),
        };
        next(tile.at(x, y), [above, below, left, right])
    })
}

impl Program {
    /// Puts the edges of a step, and receives those of the neighbours.
    fn exchange(
        &mut self,
        tile: &Grid,
        count: u64,
        neighbours: [usize; 4],
        handles: &[u64],
    ) -> Outcome<[Vec<u64>; 4]> {
        let offset = |side: usize| (count % 2 * 4 + side as u64) * EDGE_BYTES;
        let mut names = Vec::new();
        for (side, rank) in neighbours.into_iter().enumerate() {
            let bytes: Vec<u8> = edge(tile, side)
                .into_iter()
                .flat_map(u64::to_le_bytes)
                .collect();
            // The neighbour above sees our upper edge as its lower one.
            let theirs = side ^ 1;
            if rank == self.rank {
                self.nic.write(IN + offset(theirs), &bytes)?;
                continue;
            }
            self.nic.write(OUT + offset(side), &bytes)?;
            let name = self.name();
            let to = self.remote(rank, handles[rank], offset(theirs));
            let from = Local {
                offset: OUT + offset(side),
                bytes: EDGE_BYTES,
            };
            let event = Some(count * 4 + theirs as u64);
            self.nic.block_put(name, to, from, event)?;
            names.push(name);
        }
        for (side, rank) in neighbours.into_iter().enumerate() {
            let expected = count * 4 + side as u64;
            if rank != self.rank {
                self.until(|completion| match *completion {
                    Completion::BlockEvent { word, .. } => (word == expected).then_some(()),
                    _ => None,
                })?;
            }
        }
        for name in names {
            self.end(name)?;
        }
        let mut halo = [const { Vec::new() }; 4];
        for (side, edge) in halo.iter_mut().enumerate() {
            let mut bytes = [[0; 8]; SIDE];
            self.nic.read(IN + offset(side), bytes.as_flattened_mut())?;
            *edge = bytes.map(u64::from_le_bytes).to_vec();
        }
        Ok(halo)
    }
}

pub fn program(this: &mut Program) -> Outcome {
    let handle = this.register(Local {
        offset: IN,
        bytes: 8 * EDGE_BYTES,
    })?;
    let handles = this.all_gather(TALK, u64::from(handle))?;
    // Arrange the programs as close to a square as their number allows.
    let all = this.all.len();
    let is_fit = |n: &usize| all.is_multiple_of(*n) && n * n <= all;
    let down = (1..=all).rev().find(is_fit).unwrap_or(1);
    let across = all / down;
    let (column, row) = (this.rank % across, this.rank / across);
    let neighbours =
        SIDES.map(|(dx, dy)| moved(row, dy, down) * across + moved(column, dx, across));

    let (x0, y0) = (column * SIDE, row * SIDE);
    let mut tile = Grid::new(SIDE, SIDE, |x, y| start(x0 + x, y0 + y));
    for count in 0..STEPS {
        let halo = this.exchange(&tile, count, neighbours, &handles)?;
        tile = step(&tile, &halo);
    }
    let whole = whole(across * SIDE, down * SIDE);
    let expected = Grid::new(SIDE, SIDE, |x, y| whole.at(x0 + x, y0 + y));
    match tile.points == expected.points {
        true => Ok(()),
        false => Err("the tile differs from the result of a single program".into()),
    }
}

#[allow(dead_code, reason = "the tests run `program` alone")]
fn main() -> std::process::ExitCode {
    common::main(DATA_BYTES, program)
}
