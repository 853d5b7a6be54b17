//! Draws a large folded Clos with one box per subtree, and one for the routers of each slice above
//! the subtrees. All links between two boxes are one line.

use std::collections::{BTreeMap, BTreeSet};

use super::headline;
use super::svg::{SIDE, SLICES};
use crate::route::registers::PortKind;
use crate::topology::model::{FoldedClos, range_of_subtree};
use crate::topology::wiring::ClosWiring;
use phitwire::net::show::{FAINT, Grid, INK, Point, Svg, bounds, counted};
use phitwire::net::{End, NodeRef};

/// Maximum number of subtrees that are drawn; with more, larger subtrees are.
const MOST_SUBTREES: usize = 24;
/// Maximum number of subtrees in a single row; more are drawn as a field.
const MOST_IN_ROW: usize = 10;
/// Number of subtrees in each row of a field.
const FIELD_ROW: usize = 8;
/// Distance between subtrees, and the size of their boxes.
const STEP: Point = (122.0, 82.0);
const BOX: Point = (106.0, 66.0);
/// Size of the box for the routers of a slice.
const UPPER_BOX: Point = (190.0, 66.0);
const RISE: f64 = 200.0;
/// Maximum number of lines that are labelled with the number of links.
const MOST_NUMBERED: usize = 80;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Block {
    /// A complete subtree, by its number.
    Subtree(usize),
    /// All routers of a rank above the subtrees, in one subtree and slice.
    Above {
        rank: u8,
        first: u16,
        last: u16,
        slice: u8,
    },
}

pub(super) struct Subtrees {
    pub(super) rank: u8,
    /// First and last processor number of each subtree.
    pub(super) ranges: Vec<(u16, u16)>,
}

impl Subtrees {
    /// The subtrees of the lowest rank that has few enough for a row, or else of the highest rank
    /// below the roots.
    pub(super) fn of(topology: &FoldedClos) -> Self {
        let top = topology.routers().map(|(_, r)| r.rank).max().unwrap_or(1);
        let of_rank = |rank: u8| {
            let routers = topology.routers().filter(|(_, r)| r.rank == rank);
            let ranges: BTreeSet<_> = routers.map(|(_, r)| range_of_subtree(r.subtree)).collect();
            Self {
                rank,
                ranges: ranges.into_iter().collect(),
            }
        };
        let below: Vec<Self> = (1..top.max(2)).map(of_rank).collect();
        let fits = below
            .iter()
            .position(|all| all.ranges.len() <= MOST_SUBTREES);
        let last = below.len() - 1;
        below
            .into_iter()
            .nth(fits.unwrap_or(last))
            .unwrap_or(of_rank(1))
    }

    pub(super) fn with(&self, number: u16) -> Option<usize> {
        let found = self.ranges.partition_point(|&(_, last)| last < number);
        let range = self.ranges.get(found)?;
        (range.0 <= number).then_some(found)
    }

    /// The subtree called `name`: its number, or its first and last processor.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        let name = name.strip_prefix("subtree").unwrap_or(name).trim();
        let number = name
            .parse()
            .ok()
            .filter(|&number| number < self.ranges.len());
        number.or_else(|| {
            let (first, last) = name.split_once('-')?;
            let range = (first.parse().ok()?, last.parse().ok()?);
            self.ranges.iter().position(|&own| own == range)
        })
    }

    /// The box that contains an end of a link.
    fn block(&self, topology: &FoldedClos, wiring: &ClosWiring, end: End) -> Option<Block> {
        match end.node {
            NodeRef::Processor(p) => {
                let number = topology.processors.get(p as usize)?.number;
                self.with(number).map(Block::Subtree)
            }
            NodeRef::Chip(_) => {
                let router = wiring.router(topology, wiring.router_at(end)?);
                let (first, last) = range_of_subtree(router.subtree);
                match router.rank <= self.rank {
                    true => self.with(first).map(Block::Subtree),
                    false => Some(Block::Above {
                        rank: router.rank,
                        first,
                        last,
                        slice: router.slice,
                    }),
                }
            }
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Inside {
    processors: Vec<u32>,
    routers: usize,
    chips: BTreeSet<u32>,
}

type Insides = BTreeMap<Block, Inside>;
type Bundles = BTreeMap<(Block, Block), (PortKind, Vec<usize>)>;

fn insides(topology: &FoldedClos, wiring: &ClosWiring, subtrees: &Subtrees) -> Insides {
    let mut insides = Insides::new();
    for (p, processor) in topology.processors.iter().enumerate() {
        if let Some(subtree) = subtrees.with(processor.number) {
            let inside = insides.entry(Block::Subtree(subtree)).or_default();
            inside.processors.push(p as u32);
        }
    }
    for (chip, router) in topology.routers() {
        let port = (0..64)
            .find(|&port| router.ports.contains(port))
            .unwrap_or(0);
        let end = End::chip(chip as u32, port);
        if let Some(block) = subtrees.block(topology, wiring, end) {
            let inside = insides.entry(block).or_default();
            inside.routers += 1;
            inside.chips.insert(chip as u32);
        }
    }
    insides
}

fn bundles(topology: &FoldedClos, wiring: &ClosWiring, subtrees: &Subtrees) -> Bundles {
    let mut bundles = Bundles::new();
    for (number, link) in topology.links.iter().enumerate() {
        let blocks = [link.a, link.b].map(|end| subtrees.block(topology, wiring, end));
        let [Some(a), Some(b)] = blocks else { continue };
        if a != b {
            let kind = topology.kind_of(link.a, link.b);
            let known = bundles
                .entry((a.min(b), a.max(b)))
                .or_insert((kind, Vec::new()));
            known.1.push(number);
        }
    }
    bundles
}

struct Layout {
    points: BTreeMap<Block, Point>,
    is_field: bool,
    size: Point,
}

impl Layout {
    fn new(insides: &Insides, arches: f64) -> Self {
        let mut rows: BTreeMap<u8, Vec<Block>> = BTreeMap::new();
        for &block in insides.keys() {
            let row = match block {
                Block::Subtree(_) => 0,
                Block::Above { rank, .. } => rank,
            };
            rows.entry(row).or_default().push(block);
        }
        let lowest = rows.remove(&0).unwrap_or_default();
        let is_field = lowest.len() > MOST_IN_ROW;
        let across = match is_field {
            true => FIELD_ROW,
            false => lowest.len(),
        };
        let step = STEP;
        let upper = rows.values().map(Vec::len).max().unwrap_or(0);
        let width = f64::max(
            (across as f64 * step.0).max(upper as f64 * (UPPER_BOX.0 + 30.0)),
            700.0,
        );
        let top = 110.0 + arches;
        let bottom = top + RISE * rows.len() as f64;
        let mut points = BTreeMap::new();
        for (above, row) in rows.values().rev().enumerate() {
            let apart = width / row.len() as f64;
            for (at, &block) in row.iter().enumerate() {
                let x = 40.0 + apart * (at as f64 + 0.5);
                points.insert(block, (x, top + RISE * above as f64 + UPPER_BOX.1 / 2.0));
            }
        }
        let left = 40.0 + (width - across as f64 * step.0) / 2.0;
        let subtrees = Grid {
            first: (left + step.0 / 2.0, bottom + BOX.1 / 2.0),
            step,
        };
        for (at, &block) in lowest.iter().enumerate() {
            let (column, row) = (at % across, at / across);
            points.insert(block, subtrees.at(column as f64, row as f64));
        }
        let lines = lowest.len().div_ceil(across.max(1)) as f64;
        let height = bottom + step.1 * (lines - 1.0) + BOX.1 + arches + 80.0;
        Self {
            points,
            is_field,
            size: (width + 80.0, height),
        }
    }
}

/// The network as an SVG document with a box per subtree.
pub fn overview(topology: &FoldedClos) -> String {
    let wiring = ClosWiring::new(topology);
    let subtrees = Subtrees::of(topology);
    let insides = insides(topology, &wiring, &subtrees);
    let bundles = bundles(topology, &wiring, &subtrees);
    let has_sides = bundles.values().any(|(kind, _)| *kind == PortKind::Side);
    let layout = Layout::new(&insides, if has_sides { 90.0 } else { 0.0 });
    let mut out = Svg::new(layout.size, &headline(topology, &wiring), (40.0, 38.0));
    let mut numbers = Svg::default();
    let is_numbered = bundles.len() <= MOST_NUMBERED;
    if layout.is_field {
        together(&mut out, &layout, &bundles);
    }
    for ((a, b), (kind, links)) in &bundles {
        // All subtrees of a field share one line to each box above.
        if layout.is_field && matches!(a, Block::Subtree(_)) && *kind != PortKind::Side {
            continue;
        }
        let [Some(&from), Some(&to)] = [layout.points.get(a), layout.points.get(b)] else {
            continue;
        };
        let (path, colour, at) = line((*a, from), (*b, to), *kind);
        let wide = 1.0 + (links.len() as f64).log2() * 0.4;
        let style = format!(
            "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{wide:.1}\" stroke-opacity=\"0.7\""
        );
        out.links(links.iter().copied(), |out| out.path(path, &style));
        if is_numbered {
            numbers.haloed(at.0, at.1 + 3.5, "middle", colour, &links.len().to_string());
        }
    }
    out.append(numbers);
    for (&block, inside) in &insides {
        if let Some(&point) = layout.points.get(&block) {
            draw_block(&mut out, topology, &subtrees, (block, inside), point);
        }
    }
    let y = layout.size.1 - 24.0;
    let each = bundles.values().map(|(_, links)| links.len());
    let most = each.max().unwrap_or(0);
    let words = format!(
        "each line shows all links between two boxes, at most {most}; --expand SUBTREE draws the \
         inside of a subtree"
    );
    out.part("legend", |out| {
        out.text(40.0, y, "start", 11.5, FAINT, &words)
    });
    out.finish()
}

/// A frame around all subtrees, with a line to each box above.
fn together(out: &mut Svg, layout: &Layout, bundles: &Bundles) {
    let subtrees = layout
        .points
        .iter()
        .filter(|(block, _)| matches!(block, Block::Subtree(_)));
    let points = subtrees.map(|(_, &point)| point);
    let [low, high] = bounds(points);
    let (left, top) = (low.0 - STEP.0 / 2.0, low.1 - STEP.1 / 2.0);
    let (right, low) = (high.0 + STEP.0 / 2.0, high.1 + STEP.1 / 2.0);
    let style = format!("rx=\"12\" fill=\"none\" stroke=\"{FAINT}\" stroke-dasharray=\"4 3\"");
    out.frame((left, top), (right - left, low - top), &style);
    let mut above: BTreeMap<Block, Vec<&Vec<usize>>> = BTreeMap::new();
    for ((a, b), (kind, links)) in bundles {
        if matches!(a, Block::Subtree(_)) && *kind != PortKind::Side {
            above.entry(*b).or_default().push(links);
        }
    }
    for (block, links) in above {
        let Some(&(x, y)) = layout.points.get(&block) else {
            continue;
        };
        let slice = match block {
            Block::Above { slice, .. } => usize::from(slice),
            Block::Subtree(_) => 0,
        };
        let colour = SLICES[slice % SLICES.len()].1;
        let style = format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"6\"");
        let from = y + UPPER_BOX.1 / 2.0;
        let all: usize = links.iter().map(|links| links.len()).sum();
        let most = links.iter().map(|links| links.len()).max().unwrap_or(0);
        let numbers = links.iter().flat_map(|links| links.iter().copied());
        out.links(numbers, |out| {
            out.path(format_args!("M{x:.1} {from:.1}V{top:.1}"), &style)
        });
        let middle = f64::midpoint(from, top);
        out.haloed(
            x + 12.0,
            middle - 3.0,
            "start",
            colour,
            &format!("{all} links"),
        );
        let words = format!("{most} per subtree");
        out.haloed(x + 12.0, middle + 12.0, "start", colour, &words);
    }
}

/// The line between two boxes, its colour, and the position of its number.
fn line(
    (a, from): (Block, Point),
    (b, to): (Block, Point),
    kind: PortKind,
) -> (String, &'static str, Point) {
    if kind == PortKind::Side {
        // Lines within a row are arches, below the lowest row and above the others.
        let is_low = matches!(a, Block::Subtree(_)) && matches!(b, Block::Subtree(_));
        let (half, ahead) = match is_low {
            true => (BOX.1 / 2.0, 1.0),
            false => (UPPER_BOX.1 / 2.0, -1.0),
        };
        let reach = (30.0 + (to.0 - from.0).abs() * 0.12).min(110.0);
        let (y, bend) = (from.1 + ahead * half, from.1 + ahead * (half + reach));
        let path = format!(
            "M{:.1} {y:.1}C{:.1} {bend:.1} {:.1} {bend:.1} {:.1} {y:.1}",
            from.0, from.0, to.0, to.0
        );
        let middle = (f64::midpoint(from.0, to.0), y + ahead * 0.75 * reach);
        return (path, SIDE, middle);
    }
    let slice = match b {
        Block::Above { slice, .. } => slice,
        Block::Subtree(_) => 0,
    };
    let half = BOX.1 / 2.0;
    let (low, high) = ((from.0, from.1 - half), (to.0, to.1 + UPPER_BOX.1 / 2.0));
    let path = format!("M{:.1} {:.1}L{:.1} {:.1}", low.0, low.1, high.0, high.1);
    // Place the numbers near the lower ends, where the lines are apart, and stagger them.
    let part = 0.2 + 0.16 * f64::from(slice % 4);
    let at = (
        low.0 + (high.0 - low.0) * part,
        low.1 + (high.1 - low.1) * part,
    );
    (path, SLICES[usize::from(slice) % SLICES.len()].1, at)
}

fn draw_block(
    out: &mut Svg,
    topology: &FoldedClos,
    subtrees: &Subtrees,
    (block, inside): (Block, &Inside),
    point: Point,
) {
    let (count, chips) = (inside.routers, inside.chips.len());
    let routers = match count == chips {
        true => counted(count, "router"),
        false => format!("{}, {}", counted(count, "router"), counted(chips, "chip")),
    };
    let processors = inside
        .processors
        .iter()
        .map(|&p| topology.processors[p as usize].name.as_str());
    let chips = inside
        .chips
        .iter()
        .map(|&c| topology.chips[c as usize].name.as_str());
    let nodes = chips.chain(processors).collect::<Vec<_>>().join(" ");
    let (size, fill, edge, name, below) = match block {
        Block::Subtree(number) => {
            let (first, last) = subtrees.ranges[number];
            let below = [
                format!("{} nodes", inside.processors.len()),
                routers,
                format!("#{first}-{last}"),
            ];
            (BOX, "#f1f2f4", FAINT, format!("subtree {number}"), below)
        }
        Block::Above {
            rank,
            first,
            last,
            slice,
        } => {
            let (fill, edge) = SLICES[usize::from(slice) % SLICES.len()];
            let slice = match topology.slices {
                1 => String::new(),
                _ => format!(", slice {slice}"),
            };
            let from = format!("above #{first}-{last}");
            (
                UPPER_BOX,
                fill,
                edge,
                format!("rank {rank}{slice}"),
                [routers, from, String::new()],
            )
        }
    };
    out.nodes(&nodes, |out| {
        let style = format!("rx=\"7\" fill=\"{fill}\" stroke=\"{edge}\"");
        let lines = [
            (-15.0, 12.5, INK, &*name),
            (1.0, 11.0, INK, &below[0]),
            (14.0, 10.0, FAINT, &below[1]),
            (27.0, 10.0, FAINT, &below[2]),
        ];
        out.block(point, size, &style, &lines);
    });
}

/// One subtree as a separate network, with its processors, its routers and the links between them.
pub(super) fn subtree(topology: &FoldedClos, subtrees: &Subtrees, number: usize) -> FoldedClos {
    let (first, last) = subtrees.ranges[number];
    let is_inside = |number: u16| (first..=last).contains(&number);
    let mut processors = BTreeMap::new();
    for (p, _) in topology
        .processors
        .iter()
        .enumerate()
        .filter(|(_, p)| is_inside(p.number))
    {
        processors.insert(p as u32, processors.len() as u32);
    }
    let mut chips = BTreeMap::new();
    let mut kept = Vec::new();
    for (c, chip) in topology.chips.iter().enumerate() {
        let mut chip = chip.clone();
        chip.routers.retain(|router| {
            router.rank <= subtrees.rank && is_inside(range_of_subtree(router.subtree).0)
        });
        if !chip.routers.is_empty() {
            chips.insert(c as u32, kept.len() as u32);
            kept.push(chip);
        }
    }
    let moved = |end: End| {
        let node = match end.node {
            NodeRef::Processor(p) => NodeRef::Processor(*processors.get(&p)?),
            NodeRef::Chip(c) => {
                let own = *chips.get(&c)?;
                let is_kept = kept[own as usize]
                    .routers
                    .iter()
                    .any(|r| r.ports.contains(end.port));
                NodeRef::Chip(is_kept.then_some(own)?)
            }
        };
        Some(End { node, ..end })
    };
    let links = topology.links.iter().filter_map(|link| {
        let (a, b) = (moved(link.a)?, moved(link.b)?);
        Some(phitwire::net::Link {
            a,
            b,
            ..link.clone()
        })
    });
    FoldedClos {
        name: format!("{}, subtree {number} (#{first}-{last})", topology.name),
        slices: topology.slices,
        settings: topology.settings.clone(),
        processors: processors
            .keys()
            .map(|&p| topology.processors[p as usize].clone())
            .collect(),
        links: links.collect(),
        chips: kept,
    }
}
