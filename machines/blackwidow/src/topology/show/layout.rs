//! Positions of a drawing's boxes, and of the line ends on them.

use std::collections::BTreeMap;

use super::{Bundle, Shape, bundles};
use crate::route::registers::PortKind;
use crate::topology::model::FoldedClos;
use crate::topology::wiring::ClosWiring;
use phitwire::net::show::Point;

/// If there are more processors than this, those of a subtree are drawn as one box.
const MOST_PROCESSORS: usize = 36;
/// Processors above which they are stacked, and the height of a stack.
const MOST_ABREAST: usize = 16;
const STACK: usize = 4;
/// Distance between the processors of a stack.
const STACK_GAP: f64 = 10.0;
/// Distance between the lines beside a stack.
const LANE: f64 = 5.0;
/// Width of a letter of the port labels, in pixels.
const LETTER: f64 = 5.6;
const LABEL_GAP: f64 = 7.0;
/// Maximum width of the labels at a router's edge; wider ones are omitted.
const MOST_LABEL_WIDTH: f64 = 460.0;
const GAP: f64 = 26.0;
const MARGIN: f64 = 40.0;
pub(super) const ROUTER_HEIGHT: f64 = 66.0;
pub(super) const PROCESSOR_HEIGHT: f64 = 38.0;
/// Distance between rows in a narrow drawing, and its maximum in a wide one.
const ROW_DISTANCE: (f64, f64) = (170.0, 460.0);
const TITLE: f64 = 100.0;
const LEAST_WIDTH: f64 = 640.0;
const HIGHEST_ARCH: f64 = 300.0;

#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) shape: Shape,
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    /// Whether port labels are written along the upper and the lower edge.
    pub(super) labels: [bool; 2],
}

impl Frame {
    pub(super) fn middle(&self) -> f64 {
        self.x + self.width / 2.0
    }
}

/// The point where a bundle meets a box, and its label.
#[derive(Clone, Debug)]
pub(super) struct Joint {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) label: String,
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) bundle: Bundle,
    pub(super) a: Joint,
    pub(super) b: Joint,
    /// Height of a sidelink's arch above its ends.
    pub(super) rise: f64,
    /// Horizontal position of the lane to a processor in a stack.
    pub(super) lane: Option<f64>,
}

/// The geometry of a drawing.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) frames: Vec<Frame>,
    pub(super) lines: Vec<Line>,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Layout {
    /// Upper edge of the lowest row.
    pub(super) fn stacks(&self) -> f64 {
        self.frames.first().map_or(0.0, |frame| frame.y)
    }
}

/// The edge of a box at which a line ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Upper,
    Lower,
}

/// The boxes in rows: processors at the bottom, then routers by rank.
fn rows(topology: &FoldedClos, wiring: &ClosWiring) -> Vec<Vec<Shape>> {
    let grouped = topology.processors.len() > MOST_PROCESSORS;
    let lowest: Vec<Shape> = if grouped {
        let mut groups: Vec<u16> = topology
            .routers()
            .filter(|(_, r)| r.rank == 1)
            .map(|(_, r)| r.subtree.location)
            .collect();
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter().map(Shape::Group).collect()
    } else {
        let mut order: Vec<u32> = (0..topology.processors.len() as u32).collect();
        order.sort_by_key(|&p| topology.processors[p as usize].number);
        order.into_iter().map(Shape::Processor).collect()
    };
    let mut rows = vec![lowest];
    for rank in 1..=3 {
        let mut row: Vec<u32> = (0..wiring.router_count() as u32)
            .filter(|&r| wiring.router(topology, r).rank == rank)
            .collect();
        row.sort_by_key(|&r| {
            let router = wiring.router(topology, r);
            (router.subtree.location, router.slice, r)
        });
        if !row.is_empty() {
            rows.push(row.into_iter().map(Shape::Router).collect());
        }
    }
    rows
}

/// Height of each sidelink's arch above its row, which grows with the arch's width.
fn arches(bundles: &[Bundle], rows: &[Vec<Shape>]) -> BTreeMap<(Shape, Shape), f64> {
    let column: BTreeMap<Shape, usize> = rows
        .iter()
        .flat_map(|row| row.iter().enumerate().map(|(i, &shape)| (shape, i)))
        .collect();
    let reach = |bundle: &Bundle| Some(column.get(&bundle.a)?.abs_diff(*column.get(&bundle.b)?));
    let side = bundles
        .iter()
        .filter(|bundle| bundle.kind == PortKind::Side);
    let reaches: Vec<((Shape, Shape), usize)> = side
        .filter_map(|bundle| Some(((bundle.a, bundle.b), reach(bundle)?)))
        .collect();
    let furthest = reaches.iter().map(|(_, reach)| *reach).max().unwrap_or(1) as f64;
    let step = (HIGHEST_ARCH / furthest).min(30.0);
    reaches
        .into_iter()
        .map(|(ends, reach)| (ends, 26.0 + step * reach as f64))
        .collect()
}

/// Number of boxes in the widest row.
pub(super) fn widest(topology: &FoldedClos) -> usize {
    rows(topology, &ClosWiring::new(topology))
        .iter()
        .map(Vec::len)
        .max()
        .unwrap_or(0)
}

/// Line ends at each edge of each box: (line, end).
type Ends = BTreeMap<(Shape, Edge), Vec<(usize, bool)>>;

fn ends(bundles: &[Bundle]) -> Ends {
    let mut ends: Ends = BTreeMap::new();
    for (i, bundle) in bundles.iter().enumerate() {
        let at_b = if bundle.kind == PortKind::Side {
            Edge::Upper
        } else {
            Edge::Lower
        };
        ends.entry((bundle.a, Edge::Upper))
            .or_default()
            .push((i, false));
        ends.entry((bundle.b, at_b)).or_default().push((i, true));
    }
    ends
}

fn label(bundle: &Bundle, at_b: bool) -> String {
    let (shape, ports) = if at_b {
        (bundle.b, bundle.ports_b)
    } else {
        (bundle.a, bundle.ports_a)
    };
    match shape {
        Shape::Router(_) => ports.to_string().replace(", ", ","),
        Shape::Processor(_) | Shape::Group(_) => String::new(),
    }
}

fn label_width(bundle: &Bundle, at_b: bool) -> f64 {
    label(bundle, at_b).len() as f64 * LETTER + LABEL_GAP
}

pub(super) fn layout(topology: &FoldedClos, wiring: &ClosWiring) -> Layout {
    let grouped = topology.processors.len() > MOST_PROCESSORS;
    let bundles = bundles(topology, wiring, grouped);
    let ends = ends(&bundles);
    let rows = rows(topology, wiring);
    let mut frames: Vec<Frame> = Vec::new();
    let mut row_starts = Vec::new();
    for row in &rows {
        row_starts.push(frames.len());
        frames.extend(
            row.iter()
                .map(|&shape| frame(topology, wiring, &bundles, &ends, shape)),
        );
    }
    row_starts.push(frames.len());
    let arches = arches(&bundles, &rows);
    let top = TITLE + arches.values().copied().fold(0.0, f64::max);
    let stacked = stack(&rows[0], topology);
    let row_width = |row: &[Frame]| row.iter().map(|f| f.width + GAP).sum::<f64>() - GAP;
    let inner = row_starts
        .windows(2)
        .enumerate()
        .map(|(r, w)| row_width(&frames[w[0]..w[1]]) / if r == 0 { stacked as f64 } else { 1.0 })
        .fold(LEAST_WIDTH, f64::max);
    // Lines that cross in a wide drawing need height to stay apart; the lowest ones do not cross.
    let upper = (inner / 9.0).clamp(ROW_DISTANCE.0, ROW_DISTANCE.1);
    let above_lowest = |r: usize| {
        let lowest = if topology.slices == 1 {
            ROW_DISTANCE.0
        } else {
            upper
        };
        if r == 0 {
            0.0
        } else {
            lowest + upper * (r - 1) as f64
        }
    };
    let lowest_y = top + above_lowest(rows.len() - 1);
    for (r, window) in row_starts.windows(2).enumerate() {
        let row = &mut frames[window[0]..window[1]];
        if r == 0 && stacked > 1 {
            place_stacks(row, stacked, (inner, lowest_y));
            continue;
        }
        // Spread rows that are narrower than the drawing over its width.
        let spare = (inner - row_width(row)) / row.len() as f64;
        let mut x = MARGIN + spare / 2.0;
        let y = lowest_y - above_lowest(r);
        for frame in row {
            frame.x = x;
            frame.y = y;
            x += frame.width + GAP + spare;
        }
    }
    let lines = lines(bundles, &ends, &frames, &arches, (stacked, lowest_y));
    let height = lowest_y + stacked as f64 * (PROCESSOR_HEIGHT + STACK_GAP) + 60.0;
    Layout {
        frames,
        lines,
        width: inner + 2.0 * MARGIN,
        height,
    }
}

/// Height of the stacks of processors: 1 if they stand side by side.
fn stack(lowest: &[Shape], topology: &FoldedClos) -> usize {
    let are_processors = matches!(lowest.first(), Some(Shape::Processor(_)));
    match are_processors && topology.slices == 1 && lowest.len() > MOST_ABREAST {
        true => STACK,
        false => 1,
    }
}

/// Places processors in stacks, over this width and below this height.
fn place_stacks(row: &mut [Frame], stacked: usize, (width, top): Point) {
    let step = width / row.len().div_ceil(stacked) as f64;
    for (at, frame) in row.iter_mut().enumerate() {
        let (column, depth) = (at / stacked, at % stacked);
        frame.x = MARGIN + step * (column as f64 + 0.5) - frame.width / 2.0;
        frame.y = top + depth as f64 * (PROCESSOR_HEIGHT + STACK_GAP);
    }
}

fn frame(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    bundles: &[Bundle],
    ends: &Ends,
    shape: Shape,
) -> Frame {
    let mut labels = [true; 2];
    let (name, least, height) = match shape {
        Shape::Processor(p) => (
            topology.processors[p as usize].name.len(),
            52.0,
            PROCESSOR_HEIGHT,
        ),
        Shape::Group(_) => (14, 96.0, PROCESSOR_HEIGHT),
        Shape::Router(r) => (wiring.router(topology, r).name.len(), 92.0, ROUTER_HEIGHT),
    };
    let mut width = f64::max(least, name as f64 * 8.0 + 16.0);
    for (slot, edge) in [(0, Edge::Upper), (1, Edge::Lower)] {
        let here = ends.get(&(shape, edge)).map_or(&[][..], Vec::as_slice);
        let wanted: f64 = here
            .iter()
            .map(|&(i, at_b)| label_width(&bundles[i], at_b))
            .sum();
        if wanted > MOST_LABEL_WIDTH {
            labels[slot] = false;
        } else {
            width = width.max(wanted + 12.0);
        }
    }
    Frame {
        shape,
        x: 0.0,
        y: 0.0,
        width,
        height,
        labels,
    }
}

fn lines(
    bundles: Vec<Bundle>,
    ends: &Ends,
    frames: &[Frame],
    arches: &BTreeMap<(Shape, Shape), f64>,
    (stacked, lowest): (usize, f64),
) -> Vec<Line> {
    let at: BTreeMap<Shape, &Frame> = frames.iter().map(|frame| (frame.shape, frame)).collect();
    let mut joints: BTreeMap<(usize, bool), Joint> = BTreeMap::new();
    for (&(shape, edge), here) in ends {
        if let Some(&frame) = at.get(&shape) {
            let here = in_order(&bundles, &at, frame, here);
            joints.extend(joined(&bundles, frame, edge, &here));
        }
    }
    bundles
        .into_iter()
        .enumerate()
        .filter_map(|(i, bundle)| {
            let (a, b) = (joints.remove(&(i, false))?, joints.remove(&(i, true))?);
            let rise = arches.get(&(bundle.a, bundle.b)).copied().unwrap_or(0.0);
            let frame = at.get(&bundle.a).filter(|_| stacked > 1);
            let line = Line {
                bundle,
                a,
                b,
                rise,
                lane: None,
            };
            Some(match frame {
                Some(frame) => beside(line, frame, lowest),
                None => line,
            })
        })
        .collect()
}

/// The ends at an edge of a frame, sorted by destination, so that their lines do not cross. Arches
/// are nested: the widest starts farthest from its destination.
fn in_order(
    bundles: &[Bundle],
    at: &BTreeMap<Shape, &Frame>,
    frame: &Frame,
    here: &[(usize, bool)],
) -> Vec<(usize, bool)> {
    let mut here = here.to_vec();
    let far = |&(i, at_b): &(usize, bool)| {
        let bundle = &bundles[i];
        at.get(if at_b { &bundle.a } else { &bundle.b })
            .map_or(0.0, |f| f.middle())
    };
    here.sort_by(|x, y| match (bundles[x.0].kind, bundles[y.0].kind) {
        (PortKind::Side, PortKind::Side) => {
            let rightwards = |end| far(end) > frame.middle();
            let nested = far(y).total_cmp(&far(x));
            rightwards(x).cmp(&rightwards(y)).then(nested)
        }
        // Of a stack, the lowest is reached farthest on the left.
        _ => far(x).total_cmp(&far(y)).then(y.0.cmp(&x.0)),
    });
    here
}

/// The joints of these ends, from left to right along an edge of a frame.
fn joined(
    bundles: &[Bundle],
    frame: &Frame,
    edge: Edge,
    here: &[(usize, bool)],
) -> Vec<((usize, bool), Joint)> {
    let (y, slot) = match edge {
        Edge::Upper => (frame.y, 0),
        Edge::Lower => (frame.y + frame.height, 1),
    };
    let has_labels = frame.labels[slot];
    let width = |&(i, at_b): &(usize, bool)| match has_labels {
        true => label_width(&bundles[i], at_b),
        false => 1.0,
    };
    let widths: Vec<f64> = here.iter().map(width).collect();
    let scale = (frame.width - 12.0) / widths.iter().sum::<f64>();
    let mut x = frame.x + 6.0;
    let ends = here.iter().zip(&widths);
    ends.map(|(&(i, at_b), width)| {
        let label = match has_labels {
            true => label(&bundles[i], at_b),
            false => String::new(),
        };
        let middle = x + width * scale / 2.0;
        x += width * scale;
        (
            (i, at_b),
            Joint {
                x: middle,
                y,
                label,
            },
        )
    })
    .collect()
}

/// Leads a line to the left of its frame, if the frame is a processor in a stack.
fn beside(mut line: Line, frame: &Frame, lowest: f64) -> Line {
    if matches!(frame.shape, Shape::Processor(_)) {
        let depth = (frame.y - lowest) / (PROCESSOR_HEIGHT + STACK_GAP);
        (line.a.x, line.a.y) = (frame.x, frame.y + frame.height / 2.0);
        line.lane = Some(frame.x - LANE * (depth + 1.0));
    }
    line
}
