//! A drawing in layers: processors below, routers above them by rank.

use core::fmt::Write as _;
use std::collections::BTreeSet;

use thiserror::Error;

use super::layout::{Frame, Layout, Line, layout, widest};
use super::{Shape, headline};
use crate::router::yarc::registers::PortKind;
use crate::topology::model::{Topology, range_of_subtree, rate_text};
use crate::topology::wiring::Wiring;

/// Boxes in a row above which nobody could read the drawing.
const MOST_IN_A_ROW: usize = 144;
/// Lines above which they are drawn straight.
const MOST_BENT_LINES: usize = 120;
/// Lines between routers above which they have no words of their own: the ports say how many links.
const MOST_LABELLED_LINES: usize = 24;
/// Fill and line of the routers of each slice.
const SLICES: [(&str, &str); 4] = [
    ("#e3edfb", "#2f6db5"),
    ("#e4f4e6", "#2f8a4c"),
    ("#f6e9f7", "#8d4a9e"),
    ("#fdf0dc", "#a86e1a"),
];
const SIDE: &str = "#d9730d";
const INK: &str = "#22272e";
const FAINT: &str = "#6b7480";

/// A network that is too large to be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} boxes in a row are too many to draw (144 at most); show it as a table")]
pub struct TooLarge(pub usize);

/// The network as an SVG document. Links between the same two nodes are one line; the ports stand
/// in the routers, at the line's end. Processors of large networks are drawn as one box per subtree.
///
/// # Errors
/// [`TooLarge`] if a row would have more than 144 boxes.
pub fn svg(topology: &Topology) -> Result<String, TooLarge> {
    let widest = widest(topology);
    if widest > MOST_IN_A_ROW {
        return Err(TooLarge(widest));
    }
    let wiring = Wiring::new(topology);
    let layout = layout(topology, &wiring);
    let mut out = String::new();
    // Writing into a String never fails.
    let _ = document(&mut out, topology, &wiring, &layout);
    Ok(out)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn document(
    out: &mut String,
    topology: &Topology,
    wiring: &Wiring,
    layout: &Layout,
) -> core::fmt::Result {
    let (width, height) = (layout.width.ceil(), layout.height.ceil());
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"Helvetica, Arial, sans-serif\">"
    )?;
    let title = headline(topology, wiring);
    writeln!(out, "<title>{}</title>", escaped(&title))?;
    writeln!(
        out,
        "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"
    )?;
    let (name, rest) = title.split_once(": ").unwrap_or((&title, ""));
    text(out, 40.0, 38.0, "start", 19.0, INK, name)?;
    text(out, 40.0, 60.0, "start", 12.5, FAINT, rest)?;
    let mut labels = chips(out, topology, wiring, &layout.frames)?;
    for line in &layout.lines {
        draw_line(out, &mut labels, topology, layout, line)?;
    }
    out.push_str(&labels);
    for frame in &layout.frames {
        draw_frame(out, topology, wiring, frame)?;
    }
    // Labels come last, so that no line or box covers them.
    for line in &layout.lines {
        for (joint, below) in [
            (&line.a, true),
            (&line.b, line.bundle.kind == PortKind::Side),
        ] {
            let y = if below { joint.y + 11.0 } else { joint.y - 4.0 };
            text(out, joint.x, y, "middle", 9.5, FAINT, &joint.label)?;
        }
    }
    legend(out, topology, layout)?;
    writeln!(out, "</svg>")
}

pub(in crate::topology) fn text(
    out: &mut String,
    x: f64,
    y: f64,
    anchor: &str,
    size: f64,
    colour: &str,
    words: &str,
) -> core::fmt::Result {
    if words.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"{size}\" \
         fill=\"{colour}\">{}</text>",
        escaped(words)
    )
}

/// A text on top of lines.
fn haloed(
    out: &mut String,
    x: f64,
    y: f64,
    anchor: &str,
    colour: &str,
    words: &str,
) -> core::fmt::Result {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" font-size=\"10.5\" \
         fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"4\" stroke-linejoin=\"round\" \
         paint-order=\"stroke\">{}</text>",
        escaped(words)
    )
}

/// A line; its words go to `labels`, which are to stand above all lines.
fn draw_line(
    out: &mut String,
    labels: &mut String,
    topology: &Topology,
    layout: &Layout,
    line: &Line,
) -> core::fmt::Result {
    let Line { bundle, a, b, .. } = line;
    let colour = match bundle.kind {
        PortKind::Side => SIDE,
        _ => SLICES[usize::from(bundle.slice) % SLICES.len()].1,
    };
    // Many thin links or few thick ones: width grows slowly with the number of links.
    let width = 1.0 + f64::from(bundle.links).log2() * 0.55;
    let opacity = if layout.lines.len() > 400 { 0.35 } else { 0.8 };
    let dash = match bundle.rate == topology.settings.rate {
        true => "",
        false => " stroke-dasharray=\"6 3\"",
    };
    let style = format!(
        "fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.1}\" opacity=\"{opacity}\"{dash}"
    );
    let (x1, y1, x2, y2) = (a.x, a.y, b.x, b.y);
    let (label_x, label_y) = if bundle.kind == PortKind::Side {
        // A cubic curve reaches three quarters of the way to its control points.
        let top = y1.min(y2) - line.rise / 0.75;
        writeln!(
            out,
            "<path d=\"M{x1:.1} {y1:.1} C{x1:.1} {top:.1} {x2:.1} {top:.1} {x2:.1} {y2:.1}\" {style}/>"
        )?;
        (
            f64::midpoint(x1, x2),
            f64::midpoint(y1, y2) - line.rise + 3.5,
        )
    } else {
        // A few lines look best bent; of many, straight ones are easier to follow.
        let middle = f64::midpoint(y1, y2);
        let curve = match layout.lines.len() > MOST_BENT_LINES {
            true => String::from("L"),
            false => format!("C{x1:.1} {middle:.1} {x2:.1} {middle:.1}"),
        };
        writeln!(
            out,
            "<path d=\"M{x1:.1} {y1:.1} {curve} {x2:.1} {y2:.1}\" {style}/>"
        )?;
        (f64::midpoint(x1, x2) + 6.0, middle)
    };
    let mut words = Vec::new();
    if bundle.links > 1 {
        words.push(format!("{} links", bundle.links));
    }
    if bundle.rate != topology.settings.rate {
        words.push(format!("{} Gb/s", rate_text(bundle.rate)));
    }
    let between_routers = |line: &&Line| matches!(line.bundle.a, Shape::Router(_));
    let crowded = between_routers(&line)
        && layout.lines.iter().filter(between_routers).count() > MOST_LABELLED_LINES;
    if words.is_empty() || crowded {
        return Ok(());
    }
    let anchor = if bundle.kind == PortKind::Side {
        "middle"
    } else {
        "start"
    };
    haloed(labels, label_x, label_y, anchor, colour, &words.join(", "))
}

/// The outlines of chips that several routers share (section 7.4); returns their names, which are
/// to stand above the lines.
fn chips(
    out: &mut String,
    topology: &Topology,
    wiring: &Wiring,
    frames: &[Frame],
) -> Result<String, core::fmt::Error> {
    let mut labels = String::new();
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
        writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"10\" \
             fill=\"#f4f6f8\" stroke=\"{FAINT}\" stroke-dasharray=\"4 3\"/>"
        )?;
        haloed(
            &mut labels,
            x + 8.0,
            y + 3.5,
            "start",
            FAINT,
            &format!("chip {}", chip.name),
        )?;
    }
    Ok(labels)
}

fn draw_frame(
    out: &mut String,
    topology: &Topology,
    wiring: &Wiring,
    frame: &Frame,
) -> core::fmt::Result {
    let Frame {
        x,
        y,
        width,
        height,
        ..
    } = *frame;
    let (fill, edge, radius) = match frame.shape {
        Shape::Router(r) => {
            let slice = usize::from(wiring.router(topology, r).slice);
            let (fill, edge) = SLICES[slice % SLICES.len()];
            (fill, edge, 6)
        }
        Shape::Processor(_) | Shape::Group(_) => ("#f1f2f4", FAINT, 17),
    };
    writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         rx=\"{radius}\" fill=\"{fill}\" stroke=\"{edge}\"/>"
    )?;
    let (middle, centre) = (frame.middle(), y + height / 2.0);
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
    text(out, middle, centre - 1.0, "middle", 13.0, INK, &name)?;
    text(out, middle, centre + 12.0, "middle", 10.0, FAINT, &below)
}

fn legend(out: &mut String, topology: &Topology, layout: &Layout) -> core::fmt::Result {
    let y = layout.height - 24.0;
    let mut x = 40.0;
    let mut item = |colour: &str, words: &str| {
        writeln!(
            out,
            "<line x1=\"{x:.1}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" \
             stroke-width=\"2.5\"/>",
            x + 22.0
        )?;
        text(out, x + 28.0, y + 4.0, "start", 11.0, FAINT, words)?;
        x += 28.0 + words.len() as f64 * 6.2 + 24.0;
        Ok(())
    };
    for slice in 0..topology.slices {
        let words = match topology.slices {
            1 => String::from("up and down"),
            _ => format!("slice {slice}"),
        };
        item(SLICES[usize::from(slice) % SLICES.len()].1, &words)?;
    }
    if layout
        .lines
        .iter()
        .any(|line| line.bundle.kind == PortKind::Side)
    {
        item(SIDE, "sidelinks")?;
    }
    let rates: BTreeSet<&str> = layout
        .lines
        .iter()
        .filter(|line| line.bundle.rate != topology.settings.rate)
        .map(|line| rate_text(line.bundle.rate))
        .collect();
    let mut words = String::from("numbers in routers are ports");
    for rate in rates {
        words.push_str(&format!("; dashed: {rate} Gb/s per lane"));
    }
    text(out, x, y + 4.0, "start", 11.0, FAINT, &words)
}
