//! Plots of measurements, over the size of messages or over the loss of links.

use std::path::{Path, PathBuf};

use phitwire_tools::chart::{
    Axis, COLOURS, Chart, Colour, Curve, Panel, Point, Scale, Stroke, around,
};
use phitwire_tools::hgrm;
use phitwire_tools::whole_file;
use thiserror::Error;

use crate::msgrate::RateResult;
use crate::suite::point::PointRow;

/// Why a file was not written.
#[derive(Debug, Error)]
pub enum FileError {
    /// There is nothing to draw, or drawing failed.
    #[error("{0}: {1}")]
    Drawing(PathBuf, String),
    /// The disk is full, or permission is missing.
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, std::io::Error),
}

/// Checks before the measurement that the files can be written.
///
/// # Errors
/// [`FileError::Write`].
pub fn check(files: &[&Option<PathBuf>]) -> Result<(), FileError> {
    for file in files.iter().filter_map(|file| file.as_ref()) {
        let was_there = file.exists();
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(file);
        opened.map_err(|error| FileError::Write(file.clone(), error))?;
        if !was_there {
            // Remove the file created by the check, since the output may have derived names
            // instead.
            let _ = std::fs::remove_file(file);
        }
    }
    Ok(())
}

/// Writes a chart.
///
/// # Errors
/// See [`FileError`].
pub fn write(file: &Path, chart: &Chart) -> Result<(), FileError> {
    let drawing = chart.svg();
    let drawing =
        drawing.map_err(|error| FileError::Drawing(file.to_owned(), error.to_string()))?;
    whole_file::write(file, drawing).map_err(|error| FileError::Write(file.to_owned(), error))
}

/// Writes the latencies of rows in microseconds: with several rows one file each, with the size in
/// its name.
///
/// # Errors
/// [`FileError::Write`].
pub fn write_hgrm<'a>(
    file: &Path,
    rows: impl IntoIterator<Item = &'a RateResult>,
) -> Result<(), FileError> {
    let rows = rows
        .into_iter()
        .map(|row| (row.size.to_string(), &row.latency));
    hgrm::write(file, rows, 1e3).map_err(|(file, error)| FileError::Write(file, error))
}

/// A curve: name, colour, stroke, and its value for a row.
type Figure<T> = (&'static str, Colour, Stroke, fn(&T) -> f64);

/// A panel whose logarithmic scale covers all figures.
fn panel<T>(name: &str, share: u32, rows: &[T], x: fn(&T) -> f64, figures: &[Figure<T>]) -> Panel {
    let curve = |&(name, colour, stroke, of): &Figure<T>| Curve {
        name: name.to_owned(),
        colour,
        stroke,
        points: rows.iter().map(|row| Point::new(x(row), of(row))).collect(),
    };
    let values = figures.iter().flat_map(|figure| rows.iter().map(figure.3));
    Panel {
        axis: Axis {
            name: name.to_owned(),
            scale: Scale::Decades,
            range: around(Scale::Decades, values).unwrap_or((1.0, 10.0)),
        },
        share,
        curves: figures.iter().map(curve).collect(),
    }
}

const P50: Colour = COLOURS[0];
const P99: Colour = COLOURS[1];
const MEAN: Colour = COLOURS[2];
const RATE: Colour = COLOURS[4];

fn latencies<T>(rows: &[T], x: fn(&T) -> f64, figures: &[Figure<T>]) -> Panel {
    panel("latency (us)", 50, rows, x, figures)
}

fn sizes(range: Option<(f64, f64)>) -> Axis {
    Axis {
        name: "payload per message (bytes)".to_owned(),
        scale: Scale::Doublings,
        range: range.unwrap_or((1.0, 2.0)),
    }
}

fn chart(title: String, subtitle: String, x: Axis, panels: Vec<Panel>) -> Chart {
    Chart {
        title,
        subtitle,
        x,
        panels,
        marks: Vec::new(),
        unsteady: String::new(),
        band: String::new(),
    }
}

fn sized(row: &PointRow) -> f64 {
    f64::from(row.outcome.size)
}

fn megabytes(outcome: &RateResult) -> f64 {
    outcome.payload_bytes_per_second / 1e6
}

/// Plots a benchmark against message size: latencies, and throughput if it was measured.
pub fn by_size(lab: &str, who: &str, rows: &[PointRow]) -> Chart {
    let name = rows.first().map_or("", |row| row.benchmark);
    let p50: Figure<PointRow> = ("median", P50, Stroke::Solid, |row| {
        row.outcome.latency_us.p50
    });
    let p99: Figure<PointRow> = ("99th percentile", P99, Stroke::Dashed, |row| {
        row.outcome.latency_us.p99
    });
    let mean: Figure<PointRow> = ("mean", MEAN, Stroke::Dashed, |row| row.mean_us);
    let moved: Figure<PointRow> = ("payload", COLOURS[2], Stroke::Solid, |row| {
        megabytes(&row.outcome)
    });
    let rate: Figure<PointRow> = ("messages", RATE, Stroke::Solid, |row| {
        row.outcome.messages_per_second
    });
    let panels = match name {
        "latency" => vec![latencies(rows, sized, &[p99, mean, p50])],
        _ => vec![
            panel("MB/s acknowledged", 40, rows, sized, &[moved]),
            panel("messages/s", 30, rows, sized, &[rate]),
            panel("latency (us)", 30, rows, sized, &[p99, p50]),
        ],
    };
    let x = sizes(around(Scale::Doublings, rows.iter().map(sized)));
    chart(
        format!("phitwire-bench {name}, lab {lab}"),
        who.to_owned(),
        x,
        panels,
    )
}

/// Plots message rates against message size.
pub fn rates(lab: &str, who: &str, rows: &[RateResult]) -> Chart {
    let size: fn(&RateResult) -> f64 = |row| f64::from(row.size);
    let rate: Figure<RateResult> = ("messages", RATE, Stroke::Solid, |row| {
        row.messages_per_second
    });
    let moved: Figure<RateResult> = ("payload", COLOURS[2], Stroke::Solid, megabytes);
    let p50: Figure<RateResult> = ("median", P50, Stroke::Solid, |row| row.latency_us.p50);
    let p99: Figure<RateResult> = ("99th percentile", P99, Stroke::Dashed, |row| {
        row.latency_us.p99
    });
    let panels = vec![
        panel("messages/s", 40, rows, size, &[rate]),
        panel("MB/s acknowledged", 30, rows, size, &[moved]),
        panel("latency (us)", 30, rows, size, &[p99, p50]),
    ];
    let x = sizes(around(Scale::Doublings, rows.iter().map(size)));
    chart(
        format!("phitwire-msgrate, lab {lab}"),
        who.to_owned(),
        x,
        panels,
    )
}

/// Plots goodput over the loss of links: a curve for each size.
pub fn by_loss(lab: &str, who: &str, rows: &[(f64, PointRow)]) -> Chart {
    let mut sizes: Vec<u32> = rows.iter().map(|(_, row)| row.outcome.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let curves = |name: &dyn Fn(u32) -> String, of: fn(&PointRow) -> f64| {
        let curve = |(&size, &colour): (&u32, &Colour)| {
            let own = rows.iter().filter(|(_, row)| row.outcome.size == size);
            Curve {
                name: name(size),
                colour,
                stroke: Stroke::Solid,
                points: own.map(|(loss, row)| Point::new(*loss, of(row))).collect(),
            }
        };
        let curves = sizes.iter().zip(COLOURS.iter().cycle()).map(curve);
        curves.collect::<Vec<_>>()
    };
    let axis = |name: &str, scale: Scale, of: fn(&PointRow) -> f64| Axis {
        name: name.to_owned(),
        scale,
        range: around(scale, rows.iter().map(|(_, row)| of(row))).unwrap_or((1.0, 10.0)),
    };
    let named = |size: u32| format!("messages of {size} bytes");
    let unnamed = |_: u32| String::new();
    let moved = |row: &PointRow| megabytes(&row.outcome);
    let slowest = |row: &PointRow| row.outcome.latency_us.p99;
    let panels = vec![
        Panel {
            axis: axis("goodput (MB/s)", Scale::Linear, moved),
            share: 60,
            curves: curves(&named, moved),
        },
        Panel {
            axis: axis("99th percentile (us)", Scale::Decades, slowest),
            share: 40,
            curves: curves(&unnamed, slowest),
        },
    ];
    let x = Axis {
        name: "frames lost on each link in each direction (%)".to_owned(),
        scale: Scale::Linear,
        range: around(Scale::Linear, rows.iter().map(|(loss, _)| loss.max(1e-3)))
            .unwrap_or((0.0, 1.0)),
    };
    chart(
        format!("phitwire-bench goodput, lab {lab}"),
        who.to_owned(),
        x,
        panels,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(benchmark: &'static str, size: u32) -> PointRow {
        PointRow {
            benchmark,
            sources: 1,
            window: 1,
            mean_us: 12.0,
            gups: None,
            outcome: RateResult {
                size,
                messages_per_second: 1e5,
                payload_bytes_per_second: 1e5 * f64::from(size),
                latency_us: crate::msgrate::LatencyUs {
                    p50: 10.0,
                    p99: 40.0,
                    ..Default::default()
                },
                ..RateResult::default()
            },
        }
    }

    #[test]
    fn each_benchmark_has_its_panels() {
        for (name, panels, words) in [
            ("latency", 1, "latency (us)"),
            ("bandwidth", 3, "MB/s acknowledged"),
        ] {
            let rows = [row(name, 8), row(name, 64), row(name, 4096)];
            let chart = by_size("x", "nic0 -> nic1", &rows);
            assert_eq!(chart.panels.len(), panels);
            assert_eq!(chart.x.range, (8.0, 4096.0));
            let drawing = chart.svg().expect("a drawing");
            assert!(
                drawing.contains(words) && drawing.contains("4 Ki"),
                "{drawing}"
            );
        }
        let rates = rates("x", "all", &[row("", 8).outcome, row("", 16).outcome]);
        assert!(rates.svg().expect("a drawing").contains("messages/s"));
    }

    #[test]
    fn goodput_has_a_curve_for_each_size() {
        let rows = [
            (0.0, row("goodput", 64)),
            (0.0, row("goodput", 1024)),
            (5.0, row("goodput", 64)),
            (5.0, row("goodput", 1024)),
        ];
        let chart = by_loss("x", "nic0 -> nic1", &rows);
        assert_eq!(chart.panels[0].curves.len(), 2);
        assert_eq!(chart.panels[0].curves[1].points.len(), 2);
        assert_eq!(chart.x.range, (0.0, 5.0));
        assert!(
            chart
                .svg()
                .expect("a drawing")
                .contains("messages of 1024 bytes")
        );
    }

    #[test]
    fn unwritable_files_are_reported_before_the_run() {
        assert!(check(&[&None, &Some(PathBuf::from("/nonexistent/x.svg"))]).is_err());
    }
}
