use super::draw::{pieces_below, up_to};
use super::layout::labels;
use super::legend::broken;
use super::*;

#[test]
fn ticks_are_round() {
    let ticks = |scale: Scale, range| {
        let ticks = scale.ticks(range);
        ticks
            .iter()
            .map(|&tick| scale.label(tick, range))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        ticks(Scale::Linear, (0.0, 0.5)),
        "0.00 0.05 0.10 0.15 0.20 0.25 0.30 0.35 0.40 0.45 0.50"
    );
    assert_eq!(
        ticks(Scale::Linear, (0.0, 1.0)),
        "0.0 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1.0"
    );
    assert_eq!(
        ticks(Scale::Linear, (0.0, 4_000.0)),
        "0 500 1,000 1,500 2,000 2,500 3,000 3,500 4,000"
    );
    assert_eq!(ticks(Scale::Decades, (0.5, 20.0)), "0.5 1 2 5 10 20");
    assert_eq!(
        ticks(Scale::Decades, (0.04, 11.0)),
        "0.05 0.1 0.2 0.5 1 2 5 10"
    );
    assert_eq!(
        ticks(Scale::Decades, (1.0, 1e6)),
        "1 10 100 1,000 10,000 100,000 1,000,000"
    );
    assert_eq!(ticks(Scale::Doublings, (1.0, 32.0)), "1 2 4 8 16 32");
    assert_eq!(
        ticks(Scale::Doublings, (256.0, 65_536.0)),
        "256 512 1 Ki 2 Ki 4 Ki 8 Ki 16 Ki 32 Ki 64 Ki"
    );
    assert_eq!(
        ticks(Scale::Doublings, (1.0, 65_536.0)),
        "1 4 16 64 256 1 Ki 4 Ki 16 Ki 64 Ki"
    );
}

#[test]
fn logarithmic_scales_have_fine_lines() {
    let fine = Scale::Decades.fine_ticks((4.0, 30.0));
    assert_eq!(fine, [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0]);
    assert!(Scale::Linear.fine_ticks((0.0, 1.0)).is_empty());
}

fn chart(points: Vec<Point>, marks: Vec<Mark>) -> Chart {
    let axis = |range| Axis {
        name: String::new(),
        scale: Scale::Linear,
        range,
    };
    let curve = Curve {
        name: "curve".to_owned(),
        colour: COLOURS[0],
        stroke: Stroke::Solid,
        points,
    };
    Chart {
        title: String::new(),
        subtitle: String::new(),
        x: axis((0.0, 1.0)),
        panels: vec![Panel {
            axis: axis((0.0, 100.0)),
            share: 1,
            curves: vec![curve],
        }],
        marks,
        unsteady: "not steady".to_owned(),
        band: "spread".to_owned(),
    }
}

#[test]
fn the_legend_explains_only_what_is_visible() {
    let unsteady = |y| {
        let point = Point {
            is_steady: false,
            ..Point::new(0.5, y)
        };
        let chart = chart(vec![Point::new(0.2, 10.0), point], Vec::new());
        chart.svg().expect("a drawing").contains("not steady")
    };
    assert!(unsteady(100.0));
    assert!(!unsteady(101.0));
}

fn mark(x: f64, colour: Colour) -> Mark {
    Mark {
        x,
        label: x.to_string(),
        name: format!("end at {x}"),
        colour,
        is_dotted: false,
    }
}

#[test]
fn numbers_above_lines_do_not_overlap() {
    let marks = [0.5, 0.51, 0.5, 0.9].map(|x| mark(x, COLOURS[0]));
    let drawn = chart(vec![Point::new(0.2, 10.0)], marks.to_vec());
    let (shown, rows) = labels(&drawn);
    let texts: Vec<_> = shown.iter().map(|label| label.text).collect();
    assert_eq!((texts, rows), (vec!["0.5", "0.51", "0.9"], 2));
    let heights: Vec<_> = shown.iter().map(|label| label.position.1).collect();
    assert_eq!(heights[0], heights[2]);
    assert!(heights[1] < heights[0]);
    // A number that curves share is of none's colour.
    let marks = [0, 1].map(|at| mark(0.5, COLOURS[at]));
    let drawn = chart(vec![Point::new(0.2, 10.0)], marks.to_vec());
    assert_eq!(labels(&drawn).0[0].colour, GREY);
    // More rows would be hard to read: the legend has the numbers.
    let marks = [0.5, 0.501, 0.502, 0.503].map(|x| mark(x, COLOURS[0]));
    let drawn = chart(vec![Point::new(0.2, 10.0)], marks.to_vec());
    assert_eq!(labels(&drawn), (Vec::new(), 0));
    assert!(drawn.svg().expect("a drawing").contains("end at 0.503"));
}

#[test]
fn ranges_begin_and_end_at_round_numbers() {
    assert_eq!(around(Scale::Linear, [3.0, 970.0]), Some((0.0, 1_000.0)));
    assert_eq!(around(Scale::Linear, [0.62]), Some((0.0, 0.7)));
    assert_eq!(
        around(Scale::Decades, [0.0, 3.0, 970.0]),
        Some((2.0, 1_000.0))
    );
    assert_eq!(around(Scale::Doublings, [8.0, 100.0]), Some((8.0, 128.0)));
    assert_eq!(around(Scale::Doublings, [8.0]), Some((8.0, 16.0)));
    assert_eq!(around(Scale::Decades, [0.0, f64::NAN]), None);
}

#[test]
fn curves_end_at_the_top() {
    let points = [(0.1, 50.0), (0.2, 60.0), (0.4, 160.0), (0.5, 90.0)];
    assert_eq!(
        up_to(110.0, &points),
        [(0.1, 50.0), (0.2, 60.0), (0.30000000000000004, 110.0)]
    );
    assert_eq!(up_to(200.0, &points), points);
    assert_eq!(up_to(40.0, &points), []);
    let pieces = pieces_below(110.0, &points);
    assert_eq!(pieces.len(), 2);
    assert_eq!((pieces[0].len(), pieces[1].len()), (3, 2));
    assert_eq!(pieces_below(200.0, &points), [points.to_vec()]);
    assert!(pieces_below(40.0, &points).is_empty());
}

#[test]
fn long_words_take_several_lines() {
    assert_eq!(broken("mean latency"), ["mean latency"]);
    let lines = broken("past saturation: queues grow, latency is not steady");
    assert_eq!(
        lines,
        ["past saturation: queues grow,", "latency is not steady"]
    );
}
