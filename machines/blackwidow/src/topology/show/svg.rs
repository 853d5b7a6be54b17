//! Draws the network in layers: processors at the bottom, routers above by rank.

use std::collections::BTreeSet;

use super::layout::{Frame, Layout, Line, layout, widest};
use super::{Shape, headline};
use crate::route::registers::PortKind;
use crate::topology::model::{FoldedClos, range_of_subtree, rate_text};
use crate::topology::wiring::ClosWiring;
use phitwire::net::show::{FAINT, INK, Point, Svg};
use phitwire::net::{NodeRef, TooLarge};

/// Maximum number of boxes in a row of a readable drawing.
const MOST_IN_A_ROW: usize = 144;
/// Maximum number of lines that are drawn as curves.
const MOST_BENT_LINES: usize = 120;
/// Maximum number of lines between routers that are labelled; with more, the ports show the number
/// of links.
const MOST_LABELLED_LINES: usize = 24;
/// Fill and stroke colours of the routers of each slice.
pub(super) const SLICES: [(&str, &str); 4] = [
    ("#e3edfb", "#2f6db5"),
    ("#e4f4e6", "#2f8a4c"),
    ("#f6e9f7", "#8d4a9e"),
    ("#fdf0dc", "#a86e1a"),
];
pub(super) const SIDE: &str = "#d9730d";

/// The network as an SVG document. Links between the same two nodes are one line, with the port
/// numbers in the routers at its ends. Processors of large networks are drawn as one box per
/// subtree.
///
/// # Errors
/// [`TooLarge`] if a row would have more than 144 boxes.
pub fn svg(topology: &FoldedClos) -> Result<String, TooLarge> {
    let widest = widest(topology);
    if widest > MOST_IN_A_ROW {
        return Err(TooLarge(widest, "boxes in a row", MOST_IN_A_ROW));
    }
    let wiring = ClosWiring::new(topology);
    let layout = layout(topology, &wiring);
    let size = (layout.width.ceil(), layout.height.ceil());
    let mut out = Svg::new(size, &headline(topology, &wiring), (40.0, 38.0));
    let mut labels = chips(&mut out, topology, &wiring, &layout.frames);
    for line in &layout.lines {
        draw_line(&mut out, &mut labels, topology, &layout, line);
    }
    out.append(labels);
    for frame in &layout.frames {
        draw_frame(&mut out, topology, &wiring, frame);
    }
    // Draw labels last, so that no line or box covers them.
    for line in &layout.lines {
        for (joint, below) in [
            (&line.a, true),
            (&line.b, line.bundle.kind == PortKind::Side),
        ] {
            let y = if below { joint.y + 11.0 } else { joint.y - 4.0 };
            out.text(joint.x, y, "middle", 9.5, FAINT, &joint.label);
        }
    }
    out.part("legend", |out| legend(out, topology, &layout));
    Ok(out.finish())
}

/// Draws a line; its text is added to `labels`, which are drawn above all lines.
fn draw_line(out: &mut Svg, labels: &mut Svg, topology: &FoldedClos, layout: &Layout, line: &Line) {
    let bundle = &line.bundle;
    let colour = match bundle.kind {
        PortKind::Side => SIDE,
        _ => SLICES[usize::from(bundle.slice) % SLICES.len()].1,
    };
    // The width grows slowly with the number of links in a line.
    let width = 1.0 + (bundle.numbers.len() as f64).log2() * 0.55;
    let opacity = if layout.lines.len() > 400 { 0.35 } else { 0.8 };
    let dash = match bundle.rate == topology.settings.own.rate {
        true => "",
        false => " stroke-dasharray=\"6 3\"",
    };
    let style = format!(
        "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\" opacity=\"{opacity}\"{dash}"
    );
    let numbers = bundle.numbers.iter().copied();
    let (path, (label_x, label_y)) = course(layout, line);
    out.links(numbers, |out| out.path(path, &style));
    let mut words = Vec::new();
    if bundle.numbers.len() > 1 {
        words.push(format!("{} links", bundle.numbers.len()));
    }
    if bundle.rate != topology.settings.own.rate {
        words.push(format!("{} Gb/s", rate_text(bundle.rate)));
    }
    let between_routers = |line: &&Line| matches!(line.bundle.a, Shape::Router(_));
    let crowded = between_routers(&line)
        && layout.lines.iter().filter(between_routers).count() > MOST_LABELLED_LINES;
    if words.is_empty() || crowded {
        return;
    }
    let anchor = if bundle.kind == PortKind::Side {
        "middle"
    } else {
        "start"
    };
    labels.haloed(label_x, label_y, anchor, colour, &words.join(", "));
}

/// The path of a line, and the position of its label.
fn course(layout: &Layout, line: &Line) -> (String, Point) {
    let (x1, y1, x2, y2) = (line.a.x, line.a.y, line.b.x, line.b.y);
    let (middle_x, middle_y) = (f64::midpoint(x1, x2), f64::midpoint(y1, y2));
    if line.bundle.kind == PortKind::Side {
        // A cubic curve reaches three quarters of the distance to its control points.
        let top = y1.min(y2) - line.rise / 0.75;
        let curve = format_args!("C{x1:.1} {top:.1} {x2:.1} {top:.1}");
        let path = format!("M{x1:.1} {y1:.1} {curve} {x2:.1} {y2:.1}");
        return (path, (middle_x, middle_y - line.rise - 5.0));
    }
    if let Some(lane) = line.lane {
        let top = layout.stacks() - 0.28 * (layout.stacks() - y2);
        let bend = f64::midpoint(top, y2);
        let curve = format_args!("C{lane:.1} {bend:.1} {x2:.1} {bend:.1}");
        let path = format!("M{x1:.1} {y1:.1}H{lane:.1}V{top:.1} {curve} {x2:.1} {y2:.1}");
        return (path, (lane, bend));
    }
    // Few lines look best as curves; many are easier to follow when straight.
    let curve = match layout.lines.len() > MOST_BENT_LINES {
        true => String::from("L"),
        false => format!("C{x1:.1} {middle_y:.1} {x2:.1} {middle_y:.1}"),
    };
    let path = format!("M{x1:.1} {y1:.1} {curve} {x2:.1} {y2:.1}");
    (path, (middle_x + 6.0, middle_y))
}

/// Draws the outlines of chips that several routers share (BlackWidow sec. 7.4). Returns their
/// names, which are drawn above the lines.
fn chips(out: &mut Svg, topology: &FoldedClos, wiring: &ClosWiring, frames: &[Frame]) -> Svg {
    let mut labels = Svg::default();
    for (c, chip) in topology
        .chips
        .iter()
        .enumerate()
        .filter(|(_, chip)| chip.routers.len() > 1)
    {
        let mine: Vec<&Frame> = frames
            .iter()
            .filter(|f| matches!(f.shape, Shape::Router(r) if wiring.chip_of(r) == c as u32))
            .collect();
        let same_row = mine.windows(2).all(|pair| pair[0].y == pair[1].y);
        let (Some(first), Some(last)) = (mine.first(), mine.last()) else {
            continue;
        };
        if !same_row {
            continue;
        }
        let (x, y) = (first.x - 9.0, first.y - 9.0);
        let (width, height) = (last.x + last.width + 9.0 - x, first.height + 18.0);
        let style =
            format!("rx=\"10\" fill=\"#f4f6f8\" stroke=\"{FAINT}\" stroke-dasharray=\"4 3\"");
        out.frame((x, y), (width, height), &style);
        let name = format!("chip {}", chip.name);
        labels.haloed(x + 8.0, y + 3.5, "start", FAINT, &name);
    }
    labels
}

fn draw_frame(out: &mut Svg, topology: &FoldedClos, wiring: &ClosWiring, frame: &Frame) {
    let Frame {
        y, width, height, ..
    } = *frame;
    let (fill, edge, radius) = match frame.shape {
        Shape::Router(r) => {
            let slice = usize::from(wiring.router(topology, r).slice);
            let (fill, edge) = SLICES[slice % SLICES.len()];
            (fill, edge, 6)
        }
        Shape::Processor(_) | Shape::Group(_) => ("#f1f2f4", FAINT, 17),
    };
    let centre = (frame.middle(), y + height / 2.0);
    let (name, below) = match frame.shape {
        Shape::Processor(p) => {
            let processor = &topology.processors[p as usize];
            (processor.name.clone(), format!("#{}", processor.number))
        }
        Shape::Group(location) => {
            let inside = |number: u16| {
                let router = topology
                    .routers()
                    .find(|(_, r)| r.rank == 1 && r.subtree.location == location);
                router.is_some_and(|(_, r)| r.subtree.contains(number))
            };
            let numbers = || {
                topology
                    .processors
                    .iter()
                    .map(|p| p.number)
                    .filter(|&n| inside(n))
            };
            let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
            (
                format!("{} nodes", numbers().count()),
                format!("#{first}-{last}"),
            )
        }
        Shape::Router(r) => {
            let router = wiring.router(topology, r);
            let (first, last) = range_of_subtree(router.subtree);
            (
                router.name.clone(),
                format!("rank {}, {first}-{last}", router.rank),
            )
        }
    };
    let nodes = nodes_of(topology, wiring, frame.shape);
    out.nodes(&nodes, |out| {
        let style = format!("rx=\"{radius}\" fill=\"{fill}\" stroke=\"{edge}\"");
        let lines = [(-1.0, 13.0, INK, &*name), (12.0, 10.0, FAINT, &below)];
        out.block(centre, (width, height), &style, &lines);
    });
}

fn nodes_of(topology: &FoldedClos, wiring: &ClosWiring, shape: Shape) -> String {
    match shape {
        Shape::Processor(p) => topology.processors[p as usize].name.clone(),
        Shape::Router(r) => topology.chips[wiring.chip_of(r) as usize].name.clone(),
        Shape::Group(location) => {
            let ends = topology.links.iter().map(|link| (link.a, link.b));
            let ends = ends.flat_map(|(a, b)| [(a, b), (b, a)]);
            let inside = ends.filter_map(|(low, high)| {
                let NodeRef::Processor(p) = low.node else {
                    return None;
                };
                let router = wiring.router(topology, wiring.router_at(high)?);
                (router.subtree.location == location).then_some(p)
            });
            let inside: BTreeSet<u32> = inside.collect();
            let names = inside
                .iter()
                .map(|&p| topology.processors[p as usize].name.as_str());
            names.collect::<Vec<_>>().join(" ")
        }
    }
}

fn legend(out: &mut Svg, topology: &FoldedClos, layout: &Layout) {
    let y = layout.height - 24.0;
    let mut x = 40.0;
    let mut item = |colour: &str, words: &str| {
        let style = format!("stroke=\"{colour}\" stroke-width=\"2.5\"");
        out.sample((x, y), 22.0, &style, 11.0, words);
        x += 28.0 + words.len() as f64 * 6.2 + 24.0;
    };
    for slice in 0..topology.slices {
        let words = match topology.slices {
            1 => String::from("up and down"),
            _ => format!("slice {slice}"),
        };
        item(SLICES[usize::from(slice) % SLICES.len()].1, &words);
    }
    if layout
        .lines
        .iter()
        .any(|line| line.bundle.kind == PortKind::Side)
    {
        item(SIDE, "sidelinks");
    }
    let rates: BTreeSet<&str> = layout
        .lines
        .iter()
        .filter(|line| line.bundle.rate != topology.settings.own.rate)
        .map(|line| rate_text(line.bundle.rate))
        .collect();
    let mut words = String::from("numbers in routers are ports");
    for rate in rates {
        words.push_str(&format!("; dashed: {rate} Gb/s per lane"));
    }
    out.text(x, y + 4.0, "start", 11.0, FAINT, &words);
}
