use super::marks::{Saturation, common, saturation};
use super::*;

fn sample(load: f64, latency: f64, saturated: bool) -> Sample {
    Sample {
        load,
        seed: 1,
        accepted_load: load.min(0.7),
        saturated,
        latency_mean: Some(latency),
        latency_p99: Some(2.0 * latency),
        topology: "r1-32".to_owned(),
        traffic: "uniform".to_owned(),
        cycle_ns: 1.25,
        full_gbytes_per_second: Some(2.0),
        ..Sample::default()
    }
}

fn of_machine(all: &[Sample]) -> Vec<Mode> {
    modes(all, Units::of(all, Some(LoadUnit::Load)))
}

#[test]
fn bounds_are_named_by_their_common_part() {
    assert_eq!(common(&["steady, one", "steady, other"]), "(steady)");
    assert_eq!(common(&["steady, one"]), "(steady, one)");
    assert_eq!(common(&["steady, one", "steadier, one"]), "");
    assert_eq!(common(&[""]), "");
}

#[test]
fn saturation_is_above_the_last_steady_load_before_it() {
    let at = |saturated: &[bool]| {
        let loads = saturated.iter().zip([0.2, 0.4, 0.6]);
        let all: Vec<_> = loads.map(|(&is, load)| sample(load, 50.0, is)).collect();
        saturation(&of_machine(&all)[0])
    };
    assert_eq!(at(&[false, false, true]), Saturation::Above(0.4));
    assert_eq!(at(&[false, true, false]), Saturation::Above(0.2));
    assert_eq!(at(&[true, true, true]), Saturation::Always);
    assert_eq!(at(&[false, false, false]), Saturation::Never);
    let mut unsettled = [sample(0.2, 50.0, false), sample(0.4, 60.0, false)];
    unsettled[1].state = "unsettled".to_owned();
    let mode = &of_machine(&unsettled)[0];
    assert_eq!(saturation(mode), Saturation::Above(0.2));
}

#[test]
fn the_scale_is_of_what_is_steady() {
    let units = Units::of(&[], None);
    let highest = |modes: &[Mode]| latency_axis(modes, units).range.1;
    let all = [
        sample(0.2, 50.0, false),
        sample(0.4, 100.0, false),
        sample(0.6, 9e6, true),
    ];
    assert_eq!(highest(&of_machine(&all)), 250.0);
    let all = [sample(0.2, 50.0, false), sample(0.4, 4e3, false)];
    assert_eq!(highest(&of_machine(&all)), 600.0);
    assert_eq!(highest(&[]), 1.0);
}

#[test]
fn points_past_saturation_are_not_drawn_as_latency() {
    let all = [sample(0.2, 50.0, false), sample(0.6, 60.0, true)];
    let drawing = svg(&all).expect("a drawing");
    for words in [
        "r1-32: uniform traffic",
        "not known to be steady",
        "mean latency",
    ] {
        assert!(drawing.contains(words), "{words}");
    }
    let steady = svg(&all[..1]).expect("a drawing");
    assert!(!steady.contains("not known to be steady") && !steady.contains("steady up to"));
    assert!(drawing.contains("steady up to"));
    assert!(!drawing.contains("95 % interval"));
    assert!(svg(&[]).is_err());
}

#[test]
fn seeds_of_a_load_are_one_point_with_an_interval() {
    let mut all = [sample(0.2, 50.0, false), sample(0.2, 60.0, false)];
    all[1].seed = 2;
    let mode = &of_machine(&all)[0];
    assert_eq!(mode.points.len(), 1);
    let mean = mode.points[0].mean.expect("both have one");
    assert_eq!(mean.mean, 55.0);
    assert!(mean.half_width > 0.0);
    let drawing = svg(&all).expect("a drawing");
    assert!(drawing.contains("95 % interval over seeds"));
    assert!(drawing.contains("means over 2 seeds"));
}

#[test]
fn different_networks_of_one_name_are_two_curves() {
    let mut all = [1, 2].map(|_| sample(0.2, 50.0, false));
    for (sample, description) in all.iter_mut().zip(["rate = 12.5", "rate = 14"]) {
        sample.network = Some(super::super::sweep::fingerprint(description));
    }
    let names: Vec<_> = modes(&all, Units::of(&all, Some(LoadUnit::Gbytes)))
        .into_iter()
        .map(|mode| mode.name)
        .collect();
    let own = |sample: &Sample| format!("r1-32 #{:.8}", sample.network.as_deref().unwrap_or(""));
    assert_eq!(names, [own(&all[0]), own(&all[1])]);
    assert!(!svg(&all).expect("a drawing").contains("95 % interval"));
    // An old file does not identify its network.
    all[1].network = None;
    assert_eq!(of_machine(&all).len(), 1);
}

#[test]
fn several_networks_and_options_are_labelled_in_common_units() {
    let mut all = [0.2, 0.4, 0.2, 0.4].map(|load| sample(load, 50.0, false));
    for other in &mut all[2..] {
        other.topology = "t3e-4x4x4".to_owned();
        other.cycle_ns = 13.0;
        other.full_gbytes_per_second = Some(0.5);
        other.options = "message-bytes 8".to_owned();
    }
    let both = modes(&all, Units::of(&all, Some(LoadUnit::Gbytes)));
    assert_eq!(both[0].name, "r1-32, default options");
    assert_eq!(both[1].name, "t3e-4x4x4, message-bytes 8");
    assert_eq!(both[1].points[1].x, 0.2);
    assert_eq!(both[1].points[0].mean.expect("it has one").mean, 650.0);
    let drawing = svg(&all).expect("a drawing");
    for words in [
        "latency (ns)",
        "GB/s",
        "t3e-4x4x4, message-bytes 8",
        "uniform traffic",
    ] {
        assert!(drawing.contains(words), "{words}");
    }
}

/// Points of a small, slow network, and of one whose capacity is `factor` times as large.
fn two_networks(factor: f64) -> Vec<Sample> {
    let mut all = [0.2, 0.4, 0.6]
        .map(|load| sample(load, 100.0, load > 0.5))
        .to_vec();
    let small = all.clone().into_iter().map(|mut other| {
        other.topology = "t3e-4x4x4".to_owned();
        other.cycle_ns = 13.0;
        other.full_gbytes_per_second = Some(2.0 / factor);
        other
    });
    all.extend(small.collect::<Vec<_>>());
    all
}

#[test]
fn scales_are_logarithmic_if_capacities_differ_much() {
    let of = |all: &[Sample], wanted| {
        let chart = chart(all, Units::of(all, wanted));
        let all = [&chart.x, &chart.panels[0].axis, &chart.panels[1].axis];
        for axis in all {
            let (low, high) = axis.range;
            assert!(low < high, "{axis:?}");
        }
        all.map(|axis| axis.scale)
    };
    let (linear, decades) = (Scale::Linear, Scale::Decades);
    let wide = two_networks(5.0);
    assert_eq!(of(&wide, None), [decades; 3]);
    assert_eq!(of(&two_networks(4.0), None), [linear, decades, linear]);
    assert_eq!(of(&wide, Some(LoadUnit::Load)), [linear, decades, linear]);
    assert_eq!(of(&wide[..3], None), [linear; 3]);
    // A load of zero has no position on a logarithmic scale.
    let mut silent = wide;
    silent[3].load = 0.0;
    silent[3].accepted_load = 0.0;
    assert_eq!(of(&silent, None), [decades; 3]);
    assert!(svg(&silent).is_ok_and(|drawing| !drawing.contains("NaN")));
}

#[test]
fn the_latencies_of_every_network_are_visible() {
    // The second network is 20.8 times as slow as the first.
    let mut all = two_networks(2.0);
    for slow in &mut all[3..] {
        slow.cycle_ns = 26.0;
    }
    let drawn = chart(&all, Units::of(&all, None));
    let panel = &drawn.panels[0];
    for curve in &panel.curves {
        let steady = curve.points.iter().filter(|point| point.is_steady);
        assert!(steady.clone().count() > 0);
        assert!(
            steady.clone().all(|point| panel.axis.shows(point.y)),
            "{curve:?}"
        );
    }
}

#[test]
fn points_that_are_not_steady_are_hollow_in_both_panels() {
    let mut all = [0.2, 0.4, 0.6].map(|load| sample(load, 50.0, load > 0.5));
    all[1].state = "unsettled".to_owned();
    let chart = chart(&all, Units::of(&all, None));
    for curve in chart.panels.iter().flat_map(|panel| &panel.curves) {
        if curve.stroke != Stroke::Thin {
            let steady: Vec<_> = curve.points.iter().map(|point| point.is_steady).collect();
            assert_eq!(steady, [true, false, false], "{}", curve.name);
        }
    }
}

#[test]
fn title_and_unit_can_be_chosen() {
    let mut all = [0.2, 0.4].map(|load| sample(load, 50.0, false));
    let drawn = |all: &[Sample], units| {
        let title = Some("Two <machines>".to_owned());
        svg_with(all, &Choices { title, units })
    };
    let text = drawn(&all, Some(LoadUnit::Gbytes)).expect("a drawing");
    assert!(text.contains("Two &lt;machines&gt;") && !text.contains("r1-32: uniform"));
    assert!(text.contains("latency (ns)") && text.contains("accepted (GB/s)"));
    let two = two_networks(5.0);
    let text = drawn(&two, Some(LoadUnit::Load)).expect("a drawing");
    // Cycles of several machines cannot be compared.
    assert!(text.contains("latency (ns)") && text.contains("fraction of a port"));
    // Old files lack the capacity.
    all[1].full_gbytes_per_second = None;
    assert!(drawn(&all, None).is_ok());
    let refused = drawn(&all, Some(LoadUnit::Gbytes)).expect_err("no unit");
    assert!(refused.to_string().contains("full_gbytes_per_second"));
}

#[test]
fn curves_differ_in_colour_or_stroke() {
    let styles: Vec<_> = styles().take(2 * COLOURS.len()).collect();
    let repeats = |at: usize| styles[..at].contains(&styles[at]);
    assert!(!(0..styles.len()).any(repeats));
}
