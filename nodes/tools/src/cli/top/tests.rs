//! Tests of the screens of a made-up lab, and of the keys.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use phitwire::device::PipelineReport;
use phitwire::device::pipeline::{Place, Stage};
use phitwire::nic::{LatencyCounts, RunPhase, TrafficReport};
use phitwire_nodes::control::{Fault, Request};

use super::app::{Action, App, View};
use super::detail::distribution;
use super::draw::{bar, draw};
use super::plain;
use super::rows::{self, LinkRow, Sort, Trouble};
use super::worker::{LabUpdate, News};
use crate::watch::tests::lab;
use crate::watch::{NodeSample, Rates, Sample, events};

/// A screen after these samples, the last of which is current.
fn app(samples: &[Sample]) -> App {
    let (network, _) = lab();
    let mut app = App::new("demo".to_owned(), network.summary());
    let mut before = &samples[0];
    for sample in samples {
        app.handle_news(News::LabUpdate(Box::new(LabUpdate {
            rates: Rates::between(&*network, before, sample),
            events: events(before, sample),
            sample: Arc::new(sample.clone()),
        })));
        before = sample;
    }
    app
}

/// A lab in which link 3 is down, link 5 loses packets and has lost a lane, and a NIC runs traffic:
/// the previous sample, and the latest.
fn troubled() -> [Sample; 2] {
    let (network, mut before) = lab();
    before.at_ms = 50_000_000;
    let nic = before.nodes.last_mut().expect("it has nodes");
    let run = |acknowledged, buckets: &[(u64, u64)]| TrafficReport {
        run: 77,
        phase: RunPhase::Running,
        size: 8,
        acknowledged,
        latency: LatencyCounts {
            buckets: buckets.to_vec(),
            max_ns: 900_000,
        },
        ..TrafficReport::default()
    };
    nic.traffic = Some(run(1_000, &[(10_000, 900), (900_000, 100)]));
    let mut after = before.clone();
    after.at_ms += 500;
    let nic = after.nodes.last_mut().expect("it has nodes");
    nic.traffic = Some(run(2_000, &[(10_000, 1_850), (900_000, 150)]));
    for (id, change) in [(3, true), (5, false)] {
        let (a, b) = network.ends(id);
        for end in [a, b] {
            let name = network.node_name(end.node);
            let node = after.nodes.iter_mut().find(|node| node.name == name);
            let node = node.expect("it is there");
            let link = node.links.iter_mut().find(|link| link.port == end.port);
            let link = link.expect("it is there");
            if change {
                link.up = false;
                link.state = "disabled".to_owned();
                link.why = Some("taken down by command at this end".to_owned());
            } else {
                (link.resent, link.bad_checks, link.rx_lanes) = (50, 40, 2);
                (link.frames_sent, link.frames_received) = (5_000, 4_000);
                let name = format!("port{}.tx_frames", end.port);
                node.counters.insert(name, 5_000);
            }
        }
    }
    [before, after]
}

/// The text of the screen, without trailing blanks.
fn screen(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
    terminal.draw(|frame| draw(frame, app)).expect("a buffer");
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
    let lines = cells.chunks(usize::from(width)).map(|line| line.concat());
    lines
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect()
}

fn press(app: &mut App, keys: &[KeyCode]) -> Option<Action> {
    let mut last = None;
    for &key in keys {
        last = app.press(KeyEvent::new(key, KeyModifiers::NONE));
    }
    last
}

fn letters(text: &str) -> Vec<KeyCode> {
    text.chars().map(KeyCode::Char).collect()
}

#[track_caller]
fn shows(screen: &str, words: &[&str]) {
    for word in words {
        assert!(screen.contains(word), "no {word:?} on\n{screen}");
    }
}

#[test]
fn links_in_trouble_come_first_and_fit_into_80_columns() {
    let app = app(&troubled());
    let screen = screen(&app, 80, 24);
    shows(
        &screen,
        &[
            "lab demo",
            "links",
            "by trouble",
            "disabled",
            "frames/s",
            "2/2",
        ],
    );
    let lines: Vec<&str> = screen.lines().collect();
    assert_eq!(lines.len(), 24);
    let at = |link: &str| {
        let starts = |line: &&str| line.starts_with(link);
        lines.iter().position(starts).expect(link)
    };
    assert_eq!(
        at("3 "),
        at("link ends") + 1,
        "what is down is first\n{screen}"
    );
    assert_eq!(at("5 "), at("3 ") + 1, "what lacks lanes is next\n{screen}");
    let line = lines[at("5 ")];
    shows(line, &["10.0k", "100%", "200", "160"]);
    shows(lines[22], &["last event: 13:53:20"]);
    shows(lines[23], &["/ filter", "i inject", "? q"]);
}

#[test]
fn links_of_a_silent_node_are_distinguished_from_those_that_are_down() {
    let (network, before) = lab();
    let (a, b) = network.ends(0);
    let [a, b] = [a, b].map(|end| (network.node_name(end.node).into_owned(), end.port));
    let looked = |silent: &[&str], state: Option<(&str, &str)>| {
        let mut after = before.clone();
        for node in &mut after.nodes {
            if silent.contains(&&*node.name) {
                let unknown = NodeSample::unknown(node.name.clone(), node.kind);
                *node = NodeSample {
                    silent: Some("it does not answer".to_owned()),
                    ..unknown
                };
            } else if let (Some((state, why)), true) = (state, node.name == b.0) {
                let link = node.links.iter_mut().find(|link| link.port == b.1);
                let link = link.expect("it is there");
                (link.up, link.state) = (false, state.to_owned());
                link.why = Some(why.to_owned());
            }
        }
        let rates = Rates::between(&*network, &before, &after);
        let rows = rows::links(&after, &rates, None, "", Sort::Place);
        (rows[0].trouble, rows[0].state().to_owned())
    };
    let state = |trouble, state: &str| (trouble, state.to_owned());
    let unknown = state(Trouble::Silent, "no answer");
    assert_eq!(looked(&[], None), state(Trouble::None, "up"));
    assert_eq!(looked(&[&a.0], None), unknown);
    assert_eq!(looked(&[&a.0, &b.0], None), unknown);
    // If one node does not reply, the silence at the other end adds no information.
    let probes = Some(("silent", "nothing accepted for 2.0 s, despite probes"));
    assert_eq!(looked(&[&a.0], probes), unknown);
    assert_eq!(looked(&[], probes), state(Trouble::Down, "silent"));
    let trains = Some(("training", "the other end is silent"));
    assert_eq!(looked(&[&a.0], trains), unknown);
    let training = state(Trouble::Down, "training");
    assert_eq!(looked(&[], trains), training);
    let failed = Some(("training", "all lanes failed after too many retries"));
    assert_eq!(looked(&[&a.0], failed), training);
}

#[test]
fn names_of_links_are_whole_at_any_width() {
    let names: Vec<String> = app(&troubled())
        .link_rows()
        .iter()
        .map(LinkRow::name)
        .collect();
    for width in (80..=200).step_by(8) {
        let screen = screen(&app(&troubled()), width, 99);
        for name in &names {
            assert!(screen.contains(&format!("{name} ")), "{name}\n{screen}");
        }
    }
}

#[test]
fn a_wide_screen_also_shows_reasons() {
    let screen = screen(&app(&troubled()), 200, 50);
    shows(
        &screen,
        &["problem", "taken down by command at this end", "waiting"],
    );
}

#[test]
fn picked_rows_have_a_page() {
    let mut app = app(&troubled());
    press(&mut app, &[KeyCode::Down, KeyCode::Enter]);
    assert_eq!(app.page().view, View::Link(5));
    let link = screen(&app, 80, 24);
    shows(
        &link,
        &["link 5", "A to B", "credits per VC", "tx_frames", "10.0k"],
    );
    press(&mut app, &[KeyCode::Char('a')]);
    assert!(matches!(app.page().view, View::Node(_)));
    shows(
        &screen(&app, 80, 24),
        &["its links", "counter", "process 10"],
    );
    press(
        &mut app,
        &[KeyCode::Esc, KeyCode::Esc, KeyCode::Char('2'), KeyCode::End],
    );
    press(
        &mut app,
        &[KeyCode::Char('s'), KeyCode::End, KeyCode::Enter],
    );
    let nic = screen(&app, 80, 24);
    shows(&nic, &["run 77 running", "2000/s answered", "lately: p50"]);
    shows(&nic, &["p50 10.0 us", "p99 900.0 us", "█"]);
    press(&mut app, &[KeyCode::Char('3')]);
    shows(
        &screen(&app, 80, 24),
        &["link-down", "lane-lost", "taken down by command"],
    );
}

#[test]
fn pipeline_stages_are_sampled_only_while_shown() {
    let [before, mut after] = troubled();
    let stage = |held, stalls| PipelineReport {
        stages: vec![Stage {
            name: "row buffer".into(),
            unit: "phits".into(),
            channels: vec!["request".into(), "response".into()],
            capacity: vec![16, 16],
            stalls: Some(stalls),
            places: vec![Place {
                number: 3,
                held: vec![held, 1],
            }],
            ..Stage::default()
        }],
    };
    let mut before = before;
    before.nodes[0].pipeline = Some(stage(0, 0));
    after.nodes[0].pipeline = Some(stage(9, 50));
    let mut app = app(&[before, after]);
    assert!(!app.shows_pipeline());
    press(
        &mut app,
        &[
            KeyCode::Char('2'),
            KeyCode::Char('s'),
            KeyCode::Home,
            KeyCode::Enter,
        ],
    );
    assert!(app.shows_pipeline());
    let words = [
        "row buffer",
        "10 of 32 phits",
        "100/s stalled",
        "request 9  response 1",
    ];
    shows(&screen(&app, 80, 24), &words);
}

#[test]
fn nothing_is_done_without_a_yes() {
    let down = |answer: char| {
        let mut app = app(&troubled());
        press(&mut app, &letters("x"));
        shows(&screen(&app, 80, 24), &["take the link down", "[y/N]"]);
        let action = press(&mut app, &[KeyCode::Char(answer)]);
        assert!(app.prompt.is_none());
        action
    };
    for answer in ['n', 'x', ' '] {
        assert_eq!(down(answer), None);
    }
    let Some(Action::Ask(order)) = down('y') else {
        panic!("it is done after a yes");
    };
    assert!(matches!(
        order.request,
        Request::Fault(Fault::LinkDown { .. })
    ));

    let mut app = app(&troubled());
    press(
        &mut app,
        &[
            KeyCode::Char('i'),
            KeyCode::Tab,
            KeyCode::Down,
            KeyCode::Down,
        ],
    );
    shows(
        &screen(&app, 80, 24),
        &["inject a fault", "flip a bit of the next packet"],
    );
    press(&mut app, &[KeyCode::Enter]);
    let Some(Action::Ask(order)) = press(&mut app, &letters("y")) else {
        panic!("it is done after a yes");
    };
    assert!(matches!(
        order.request,
        Request::Fault(Fault::SoftError { .. })
    ));
}

#[test]
fn a_filter_leaves_rows_with_its_words_and_keeps_something_selected() {
    let mut app = app(&troubled());
    press(&mut app, &letters("/disab"));
    press(&mut app, &[KeyCode::Enter]);
    assert_eq!(app.keys(), ["3"]);
    assert_eq!(app.selected(), Some(0));
    shows(&screen(&app, 80, 24), &["with \"disab\": 1"]);
    press(&mut app, &letters("/zzz"));
    press(
        &mut app,
        &[KeyCode::Enter, KeyCode::Enter, KeyCode::Char('x')],
    );
    assert!(app.keys().is_empty() && app.prompt.is_none());
    press(&mut app, &[KeyCode::Esc]);
    assert!(app.keys().len() > 5, "Esc takes the filter away");
}

#[test]
fn the_selection_follows_its_row() {
    let mut app = app(&troubled());
    press(&mut app, &[KeyCode::Down]);
    assert_eq!(app.page().selected.as_deref(), Some("5"));
    press(&mut app, &letters("s"));
    assert_eq!(app.page().sort, Sort::Place);
    assert_eq!(app.selected(), Some(5));
}

#[test]
fn no_screen_is_too_small_and_no_key_is_wrong() {
    let keys = "123s/?iabxuygGjkhp q";
    for (width, height) in [(1, 1), (10, 3), (40, 8), (80, 24), (300, 90)] {
        let mut app = app(&troubled());
        // Drawing the largest takes four fifths of the time: its first keys are those of pages.
        let firsts = if width == 300 { &keys[..3] } else { keys };
        for first in firsts.chars() {
            for second in keys.chars() {
                press(&mut app, &letters(&format!("{first}{second}")));
                press(&mut app, &[KeyCode::Enter, KeyCode::PageDown]);
                screen(&app, width, height);
                press(&mut app, &[KeyCode::Esc, KeyCode::Up, KeyCode::Esc]);
            }
        }
    }
    let empty = App::new("demo".into(), String::new());
    shows(&screen(&empty, 80, 24), &["querying the lab"]);
}

#[test]
fn a_stopped_lab_is_reported_and_its_successor_is_sampled() {
    let mut app = app(&troubled());
    app.handle_news(News::Gone);
    shows(&screen(&app, 80, 24), &["DOWN"]);
    app.handle_news(News::Another("a new one".into()));
    shows(&screen(&app, 80, 24), &["a new one", "querying the lab"]);
}

#[test]
fn numbers_are_short() {
    let rates = [
        0.0,
        0.25,
        12.4,
        9_999.0,
        12_345.0,
        123_456.0,
        1_234_567.0,
        2e9,
    ];
    let expected = ["0", "0.2", "12", "9999", "12.3k", "123k", "1.2M", "2.0G"];
    assert_eq!(rates.map(rows::short), expected);
    assert_eq!([bar(0.0), bar(1.0), bar(0.55)], ["", "█████", "██▊"]);
    assert_eq!(rows::clock(86_399_000), "23:59:59");
}

#[test]
fn a_distribution_leaves_no_latency_out() {
    for buckets in [
        vec![(7, 3)],
        vec![(1, 1), (2, 1)],
        vec![(100, 5), (1_000, 50), (123_457, 5), (9_999_999, 1)],
    ] {
        let counts = LatencyCounts {
            max_ns: 0,
            buckets: buckets.clone(),
        };
        let rows = distribution(&counts, 6);
        let seen: u64 = rows.iter().map(|row| row.2).sum();
        assert_eq!(seen, buckets.iter().map(|b| b.1).sum::<u64>(), "{rows:?}");
        assert!(rows.len() <= 6);
    }
    assert!(distribution(&LatencyCounts::default(), 6).is_empty());
}

#[test]
fn an_impaired_link_is_marked_on_the_screen_and_in_text() {
    let (network, before) = lab();
    let mut after = before.clone();
    after.at_ms += 500;
    after.nodes[0].links[0].impaired = true;
    let mark = |text: &str| text.lines().filter(|line| line.contains(" * ")).count();
    for (sample, marks) in [(&before, 0), (&after, 1)] {
        let app = app(&[before.clone(), sample.clone()]);
        assert_eq!(mark(&screen(&app, 120, 30)), marks);
        let look = LabUpdate {
            rates: Rates::between(&*network, &before, sample),
            events: Vec::new(),
            sample: Arc::new(sample.clone()),
        };
        assert_eq!(mark(&plain::text("demo", "", &look)), marks);
    }
}
