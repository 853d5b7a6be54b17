//! Tests of recordings, written and read: whole, truncated and hostile.

use phitwire::device::PipelineReport;
use phitwire::device::pipeline::Stage;
use serde_json::json;

use super::header::{LATENCY_BUCKETS, NodeField, latency_bucket};
use super::*;
use crate::description;

fn header() -> Header {
    let network = description::find("quickstart").unwrap();
    header_of(&*network, "demo", 1_000)
}

/// Moments with growing counters and one link that goes down.
fn moments(header: &Header) -> Vec<Moment> {
    (0..5)
        .map(|step: i64| {
            let ends = (0..2 * header.links.len()).map(|at| {
                let mut end = EndMoment {
                    state: "active".to_owned(),
                    ..EndMoment::default()
                };
                end.numbers[EndField::Carried as usize] = 1_000 * step + at as i64;
                end.numbers[EndField::Window as usize] = 7 - step;
                end.numbers[EndField::Up as usize] = 1;
                (at != 3 || step < 3).then_some(end)
            });
            let nodes = (0..header.nodes.len()).map(|node| {
                let mut stage = Stage::inside("row buffer", "phits", "tile")
                    .channels(&["request", "response"])
                    .capacity([16, 16])
                    .stalls(step as u64);
                stage.holds(3, [node as u64, step as u64]);
                let stages = vec![stage];
                NodeMoment {
                    silent: (node == 1 && step == 2).then(|| "it is stopped".to_owned()),
                    // Stages are requested only in every second moment.
                    pipeline: (step % 2 == 0).then_some(PipelineReport { stages }),
                    ..NodeMoment::default()
                }
            });
            Moment {
                ends: ends.collect(),
                nodes: nodes.collect(),
            }
        })
        .collect()
}

fn event() -> Event {
    Event {
        kind: "link-down".to_owned(),
        node: Some("r1-0".to_owned()),
        link: Some(1),
        text: "to r1-1:1: cut".to_owned(),
    }
}

fn written() -> (Vec<u8>, Encoder) {
    let header = header();
    let moments = moments(&header);
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut encoder = Encoder::new(header);
    for (step, moment) in moments.iter().enumerate() {
        let events = (step == 3).then(event).into_iter().collect();
        let line = encoder.line(200 * step as u64, moment, events);
        writer.line(&line).unwrap();
        writer.flush().unwrap();
    }
    (writer.finish().unwrap(), encoder)
}

/// The lines of a recording.
fn lines_of(recording: &Recording) -> Vec<Line> {
    let text = std::io::read_to_string(flate2::read::GzDecoder::new(&recording.packed[..]));
    let text = text.unwrap();
    let lines = text.lines().skip(1);
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn written_values_are_read_back() {
    let (bytes, encoder) = written();
    let recording = read(&bytes[..]).unwrap();
    let lines = lines_of(&recording);
    assert_eq!(recording.moments, 5);
    assert_eq!((lines.len(), recording.cut.as_ref()), (5, None));
    assert_eq!(&recording.header, encoder.header());
    assert_eq!(lines[3].e, [event()]);
    let header = &recording.header;
    let mut state = State::new(header);
    for line in &lines {
        state.apply(line).unwrap();
    }
    assert_eq!(&state, encoder.state());
    let end =
        |link, is_b, field: EndField| state.numbers[header.end_at(link, is_b) + field as usize];
    assert_eq!(end(1, false, EndField::Carried), 4_002);
    assert_eq!(end(1, false, EndField::Window), 3);
    let text = |number: i64| state.texts[number as usize - 1].as_str();
    assert_eq!(text(end(1, false, EndField::State)), "active");
    assert_eq!(text(end(1, true, EndField::State)), "unknown");
    assert_eq!(end(1, true, EndField::Up), 0);
    let silent = |node| state.numbers[header.node_at(node) + NodeField::Silent as usize];
    assert_eq!(silent(1), 0, "it has answered again");
    let stages = state.stages(2).unwrap();
    assert_eq!(state.numbers[stages.at..][..stages.numbers()], [4, 2, 4]);
}

#[test]
fn the_whole_state_leads_to_where_the_lines_do() {
    let (bytes, encoder) = written();
    let recording = read(&bytes[..]).unwrap();
    let mut state = State::new(&recording.header);
    state.apply(&encoder.state().whole()).unwrap();
    assert_eq!(&state, encoder.state());
}

#[test]
fn changed_stages_are_recorded_again() {
    let header = header();
    let mut moments = moments(&header);
    let mut encoder = Encoder::new(header.clone());
    let mut state = State::new(&header);
    for (step, moment) in moments.iter_mut().enumerate() {
        if step >= 2
            && let Some(report) = &mut moment.nodes[4].pipeline
        {
            report.stages[0].holds(9, [1, 2]);
        }
        state
            .apply(&encoder.line(step as u64, moment, Vec::new()))
            .unwrap();
    }
    let stages = state.stages(4).unwrap();
    assert_eq!(stages.stages[0].places.len(), 2);
    assert_eq!(
        state.numbers[stages.at..][..stages.numbers()],
        [4, 4, 4, 1, 2]
    );
    let mut other = State::new(&header);
    other.apply(&state.whole()).unwrap();
    assert_eq!(other, state, "what follows follows either");
}

#[test]
fn truncated_recordings_are_read_up_to_the_cut() {
    let (bytes, _) = written();
    let mut most = 0;
    for length in (0..bytes.len()).rev().step_by(7) {
        match read(&bytes[..length]) {
            Ok(recording) => {
                assert!(recording.cut.is_some(), "{length}");
                most = most.max(recording.moments);
            }
            Err(error) => assert!(matches!(error, FileError::NoRecording(_)), "{error}"),
        }
    }
    assert!(most >= 4, "{most}");
}

/// The error of reading these lines, compressed without validation.
fn refusal(lines: &[String]) -> String {
    use std::io::Write as _;
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for line in lines {
        writeln!(out, "{line}").unwrap();
    }
    read(&out.finish().unwrap()[..]).unwrap_err().to_string()
}

#[test]
fn hostile_files_are_refused_with_position_and_reason() {
    let good = serde_json::to_value(header()).unwrap();
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut header = good.clone();
        change(&mut header);
        refusal(&[header.to_string()])
    };
    for (error, word) in [
        (
            read(&b"PK not a recording"[..]).unwrap_err().to_string(),
            "gzip",
        ),
        (refusal(&[]), "the file is empty"),
        (refusal(&["{}".to_owned()]), "header"),
        (
            with(&|header| header["phitrec"] = json!(2)),
            "format version 2",
        ),
        (
            with(&|header| header["layout"][1] = json!(3)),
            "has the layout",
        ),
        (
            with(&|header| header["links"][2] = json!([[99, 1], [0, 1]])),
            "link 2 ends at node 99",
        ),
        (
            with(&|header| header["clock"]["per_second"] = json!(0.0)),
            "above zero",
        ),
        (
            with(&|header| header["svg"] = json!("<svg ><script>x</script></svg>")),
            "active content",
        ),
        (
            with(&|header| header["svg"] = json!("<html>")),
            "not an SVG",
        ),
        (with(&|header| header["surprise"] = json!(1)), "surprise"),
    ] {
        assert!(error.contains(word), "{word}: {error}");
    }
    for (line, word) in [
        (json!({"t": 5, "v": [1]}), "pairs"),
        (json!({"t": 5, "v": [0, 1]}), "out of range"),
        (json!({"t": 5, "v": [-7, 1]}), "out of range"),
        (json!({"t": 5, "v": [99_999_999, 1]}), "out of range"),
        (json!({"t": 5, "v": [i64::MAX, 1]}), "out of range"),
        (json!({"t": 4}), "time runs backwards: 4 after 5"),
        (json!({"t": 5, "x": 1}), "x"),
        (
            json!({"t": 5, "e": [{"kind": "link-down", "link": 99_999, "text": ""}]}),
            "at link 99999, but there are only 10",
        ),
        (json!({"t": 5, "s": ["x".repeat(5_000)]}), "texts"),
        (
            json!({"t": 5, "p": [{"node": 0, "at": 3, "stages": []}]}),
            "stages of node 0 at invalid position 3",
        ),
        (json!("what"), "line 3"),
    ] {
        let first = json!({"t": 5}).to_string();
        let error = refusal(&[good.to_string(), first, line.to_string()]);
        assert!(
            error.starts_with("line 3: ") && error.contains(word),
            "{word}: {error}"
        );
    }
}

#[test]
fn times_in_texts_do_not_make_new_ones() {
    let header = header();
    let mut moment = moments(&header).remove(0);
    let mut encoder = Encoder::new(header);
    for step in 0..50 {
        let why = format!("nothing accepted from r1-1:2 for {step}.0 s, despite probes");
        if let Some(end) = &mut moment.ends[0] {
            end.why = Some(why);
        }
        encoder.line(step, &moment, Vec::new());
    }
    assert_eq!(
        encoder.state().texts.len(),
        2,
        "{:?}",
        encoder.state().texts
    );
}

#[test]
fn buckets_of_latencies_double_by_twos() {
    let buckets = [0, 256, 257, 362, 363, 512, 513, u64::MAX].map(latency_bucket);
    assert_eq!(buckets, [0, 0, 1, 1, 2, 2, 3, LATENCY_BUCKETS - 1]);
}
