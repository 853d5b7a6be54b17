use super::draw::{pieces_below, up_to};
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
