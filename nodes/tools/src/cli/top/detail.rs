//! Pages of one node and of one link.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Sparkline, Table};
use serde_json::Value;

use phitwire::device::pipeline::Stage;
use phitwire::nic::{LatencyCounts, TrafficReport};
use phitwire_nodes::control::{LinkReport, NodeKind, PipelineReport};

use super::app::App;
use super::draw::{draw_links, faint, line, right, strong, style};
use super::rows::{self, EndRow, LinkRow, Trouble, clock, short, span};
use crate::watch::{EventKind, LabEvent, NodeSample};

/// Width of a stage's columns before its content by channel.
const FIRST: u16 = 55;
/// Number of lines of a latency distribution.
const LATENCY_LINES: usize = 6;

pub fn event_text(event: &LabEvent) -> String {
    let port = event.port.map_or(String::new(), |port| format!(":{port}"));
    let (time, node) = (clock(event.at_ms), &event.node);
    format!("{time} {node}{port} {}: {}", event.kind.name(), event.text)
}

pub fn event_style(kind: EventKind) -> Style {
    style(match kind {
        EventKind::NodeSilent | EventKind::LinkDown => Trouble::Down,
        EventKind::LaneLost | EventKind::NodeRestarted => Trouble::Lanes,
        EventKind::FaultInjected => Trouble::Retries,
        _ => Trouble::None,
    })
}

/// Draws one router or NIC.
pub fn draw_node(frame: &mut Frame<'_>, app: &App, name: &str, area: Rect) {
    let (Some(node), Some(look)) = (app.node(name), &app.look) else {
        let text = format!("lab {} no longer has node {name}", app.lab);
        return frame.render_widget(Paragraph::new(text), area);
    };
    let links = app.link_rows();
    let earlier = app.before.as_ref().and_then(|sample| sample.node(name));
    let earlier = earlier.filter(|before| before.pid == node.pid);
    let pipeline = node.pipeline.as_ref().map(|now| {
        let before = earlier.and_then(|before| before.pipeline.as_ref());
        pipeline_lines(before, now, look.rates.seconds, area.width)
    });
    let pipeline = pipeline.unwrap_or_default();
    let list = (links.len() as u16 + 2).min(area.height / 3).max(3);
    let own = match node.kind {
        NodeKind::Nic if node.traffic.is_some() => 3 + LATENCY_LINES as u16,
        NodeKind::Nic => 1,
        NodeKind::Router => 0,
    };
    let stages = match node.kind {
        // In a small area, prefer the messages of a NIC to its stages.
        NodeKind::Nic if area.height < 30 => 0,
        _ => (pipeline.len() as u16).min(area.height * 2 / 5),
    };
    let [about, middle, inside, below, counters] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(own),
        Constraint::Length(stages),
        Constraint::Length(list),
        Constraint::Min(3),
    ])
    .areas(area);
    frame.render_widget(about_node(node), about);
    match (node.kind, &node.traffic) {
        (NodeKind::Nic, Some(run)) => {
            let before = earlier.and_then(|node| node.traffic.as_ref());
            draw_traffic(frame, app, (name, before, run), middle);
        }
        (NodeKind::Nic, None) => {
            let text = "no traffic run since this process started (phitwire-msgrate starts one)";
            frame.render_widget(Line::styled(text, faint()), middle);
        }
        (NodeKind::Router, _) => {}
    }
    frame.render_widget(Paragraph::new(pipeline), inside);
    draw_links(frame, app, &links, below);
    let page = app.page();
    let seconds = look.rates.seconds;
    let all = rows::counters((earlier, node), None, seconds, &page.filter);
    draw_counters(frame, &all, page.scroll, counters);
}

fn about_node(node: &NodeSample) -> Line<'static> {
    let mut spans = vec![Span::styled(
        format!("{} {}", node.kind, node.name),
        strong(),
    )];
    if let Some(why) = &node.silent {
        spans.push(Span::styled(format!("  {why}"), style(Trouble::Down)));
        return Line::from(spans);
    }
    if let Some(pid) = node.pid {
        spans.push(Span::raw(format!("  process {pid}")));
    }
    if let Some(routing) = &node.routing {
        let state = match (routing.quiesced, routing.drained) {
            (true, true) => "quiesced and drained",
            (true, false) => "quiesced",
            (false, _) => "routing",
        };
        let digest: String = routing.digest.chars().take(8).collect();
        spans.push(Span::raw(format!("  {state}, tables {digest}")));
    }
    Line::from(spans)
}

/// Lines of the pipeline stages: content and capacity by channel, and stalls per second.
fn pipeline_lines(
    before: Option<&PipelineReport>,
    now: &PipelineReport,
    seconds: f64,
    width: u16,
) -> Vec<Line<'static>> {
    let stages = now.stages.iter().enumerate();
    let lines = stages.map(|(at, stage)| {
        let old = before.and_then(|before| before.stages.get(at));
        let old = old.and_then(|stage| stage.stalls);
        let stalls = match (old, stage.stalls) {
            (Some(old), Some(new)) if seconds > 0.0 => {
                let rate = new.saturating_sub(old) as f64 / seconds;
                format!("{}/s stalled", short(rate))
            }
            _ => String::new(),
        };
        let by_channel = by_channel(stage, usize::from(width.saturating_sub(FIRST)));
        let (total, room) = (stage.total(), stage.room());
        let held = match room {
            Some(room) => format!("{total} of {room} {}", stage.unit),
            None => format!("{total} {}", stage.unit),
        };
        let share = room.filter(|&room| room > 0);
        let share = share.map_or(0.0, |room| total as f64 / room as f64);
        let style = match share {
            0.9.. => style(Trouble::Down),
            0.5.. => style(Trouble::Retries),
            _ => Style::new(),
        };
        Line::from(vec![
            Span::styled(format!("{:<18.18} ", stage.name), strong()),
            Span::styled(format!("{held:<20} "), style),
            Span::raw(format!("{stalls:<14} ")),
            Span::raw(by_channel),
        ])
    });
    lines.collect()
}

/// The content of a stage by channel, with the channels' names if they fit.
fn by_channel(stage: &Stage, room: usize) -> String {
    let held = |channel: usize| {
        let positions = stage.places.iter();
        let held = positions.filter_map(|position| position.held.get(channel));
        held.sum::<u64>()
    };
    let channels = stage.channels.iter().enumerate();
    let named: Vec<String> = channels
        .map(|(at, name)| format!("{name} {}", held(at)))
        .collect();
    let named = named.join("  ");
    if named.chars().count() <= room {
        return named;
    }
    let bare: Vec<String> = (0..stage.channels.len())
        .map(|at| held(at).to_string())
        .collect();
    bare.join(" ")
}

fn draw_traffic(
    frame: &mut Frame<'_>,
    app: &App,
    (name, before, run): (&str, Option<&TrafficReport>, &TrafficReport),
    area: Rect,
) {
    let kept = app.node_rates.get(name);
    let answered = kept.and_then(|rates| rates.back().copied()).unwrap_or(0.0);
    let phase = serde_json::to_value(run.phase).ok();
    let phase = phase
        .as_ref()
        .and_then(Value::as_str)
        .unwrap_or("?")
        .to_owned();
    let what = if run.gets { "gets" } else { "puts, adds" };
    let about = Line::raw(format!(
        "run {} {phase}: {what} of {}, {}/s answered, {} waiting, {} timed out",
        run.run,
        run.size,
        short(answered),
        run.outstanding,
        run.timed_out
    ));
    let latest = before.filter(|before| before.run == run.run);
    let latest = latest.map(|before| since(&before.latency, &run.latency));
    let (of, counts) = match latest.filter(|counts| counts.count() > 0) {
        Some(counts) => ("lately", counts),
        None => ("whole run", run.latency.clone()),
    };
    let quantiles: Vec<String> = [("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999)]
        .into_iter()
        .map(|(name, share)| format!("{name} {}", span(counts.quantile(share))))
        .collect();
    let most = span(counts.max_ns);
    let [first, second, graph, bars] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Length(1),
        Constraint::Min(1),
    ])
    .areas(area);
    frame.render_widget(about, first);
    let text = format!("{of}: {}  max {most}", quantiles.join("  "));
    frame.render_widget(Line::raw(text), second);
    let label = "answered/s ";
    let [left, rest] =
        Layout::horizontal([Constraint::Length(label.len() as u16), Constraint::Min(1)])
            .areas(graph);
    frame.render_widget(Line::styled(label, faint()), left);
    let rates = kept.into_iter().flatten().copied();
    spark(frame, rates, rest);
    let width = usize::from(area.width.saturating_sub(32));
    let lines: Vec<Line<'_>> = distribution(&counts, LATENCY_LINES)
        .into_iter()
        .map(|(from, to, count, share)| {
            let bar = "█".repeat((share * width as f64).round() as usize);
            let text = format!(
                "{:>9} - {:<9} {:>7} ",
                span(from),
                span(to),
                short(count as f64)
            );
            Line::from(vec![Span::raw(text), Span::raw(bar)])
        })
        .collect();
    frame.render_widget(Paragraph::new(lines), bars);
}

/// Draws the latest of these rates, as many as fit.
fn spark(frame: &mut Frame<'_>, rates: impl Iterator<Item = f64>, area: Rect) {
    let rates: Vec<u64> = rates.map(|rate| rate.round() as u64).collect();
    let from = rates.len().saturating_sub(usize::from(area.width));
    frame.render_widget(Sparkline::default().data(&rates[from..]), area);
}

/// The latencies counted between two reports.
fn since(before: &LatencyCounts, after: &LatencyCounts) -> LatencyCounts {
    let old = |ns: u64| {
        let found = before.buckets.binary_search_by_key(&ns, |&(ns, _)| ns);
        found.map_or(0, |at| before.buckets[at].1)
    };
    let buckets = after.buckets.iter();
    let buckets: Vec<(u64, u64)> = buckets
        .map(|&(ns, count)| (ns, count.saturating_sub(old(ns))))
        .filter(|&(_, count)| count > 0)
        .collect();
    LatencyCounts {
        max_ns: buckets.last().map_or(0, |&(ns, _)| ns),
        buckets,
    }
}

/// Latencies in a few ranges of equal ratio: from, to, count, and count relative to the largest.
pub fn distribution(counts: &LatencyCounts, ranges: usize) -> Vec<(u64, u64, u64, f64)> {
    let (Some(&(first, _)), Some(&(last, _))) = (counts.buckets.first(), counts.buckets.last())
    else {
        return Vec::new();
    };
    let ratio = (last as f64 / first.max(1) as f64)
        .powf(1.0 / ranges as f64)
        .max(1.0);
    let mut bounds: Vec<u64> = (1..=ranges as i32)
        .map(|n| (first.max(1) as f64 * ratio.powi(n)).round() as u64)
        .collect();
    // Include `last` in the last range despite rounding.
    bounds[ranges - 1] = bounds[ranges - 1].max(last);
    bounds.dedup();
    let (mut from, mut seen) = (first, 0);
    let mut rows = Vec::new();
    for to in bounds {
        let upto: u64 = counts
            .buckets
            .iter()
            .take_while(|b| b.0 <= to)
            .map(|b| b.1)
            .sum();
        rows.push((from, to, upto - seen, 0.0));
        (from, seen) = (to, upto);
    }
    let most = rows.iter().map(|row| row.2).max().unwrap_or(0).max(1) as f64;
    for row in &mut rows {
        row.3 = row.2 as f64 / most;
    }
    rows
}

fn draw_counters(frame: &mut Frame<'_>, all: &[(String, u64, f64)], scroll: usize, area: Rect) {
    let columns = usize::from((area.width / 60).max(1));
    let lines = usize::from(area.height.saturating_sub(1)).max(1);
    let scroll = scroll.min(all.len().saturating_sub(1));
    let shown: Vec<_> = all.iter().skip(scroll).collect();
    let areas = Layout::horizontal(vec![Constraint::Fill(1); columns])
        .spacing(2)
        .split(area);
    for (area, part) in areas.iter().zip(shown.chunks(lines)) {
        let rows = part
            .iter()
            .map(|(name, value, rate)| Row::new([name.clone(), value.to_string(), short(*rate)]));
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(14),
            Constraint::Length(8),
        ];
        let head = Row::new(["counter".into(), right("value"), right("per s")]).style(strong());
        frame.render_widget(Table::new(rows, widths).header(head), *area);
    }
}

/// Draws one link with both ends.
pub fn draw_link(frame: &mut Frame<'_>, app: &App, link: usize, area: Rect) {
    let (Some(row), Some(look)) = (app.link_row(link), &app.look) else {
        let text = format!("lab {} no longer has link {link}", app.lab);
        return frame.render_widget(Paragraph::new(text), area);
    };
    let facts = facts(&row);
    let [about, both, graphs, counters] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(facts.len() as u16 + 1),
        Constraint::Length(2),
        Constraint::Min(3),
    ])
    .areas(area);
    let state = match row.why() {
        why if why.is_empty() => row.state().to_owned(),
        why => format!("{}: {why}", row.state()),
    };
    let head = Line::from(vec![
        Span::styled(format!("link {link}  {}  ", row.name()), strong()),
        Span::styled(state, style(row.trouble)),
    ]);
    frame.render_widget(head, about);
    let widths = [
        Constraint::Length(18),
        Constraint::Fill(1),
        Constraint::Fill(1),
    ];
    let [a, b] = row.ends.each_ref().map(EndRow::name);
    let head = Row::new([String::new(), format!("A {a}"), format!("B {b}")]).style(strong());
    let rows = facts.into_iter().map(|(name, [a, b])| {
        Row::new([
            Cell::from(name).style(faint()),
            Cell::from(a),
            Cell::from(b),
        ])
    });
    frame.render_widget(Table::new(rows, widths).header(head), both);
    draw_graphs(frame, app, &row, graphs);
    let page = app.page();
    let before = app.before.as_ref();
    let of_end = |end: &EndRow| {
        let node = look.sample.node(&end.node)?;
        let before = before.and_then(|sample| sample.node(&end.node));
        let seconds = look.rates.seconds;
        Some(rows::counters(
            (before, node),
            Some(end.port),
            seconds,
            &page.filter,
        ))
    };
    let [a, b] = row
        .ends
        .each_ref()
        .map(|end| of_end(end).unwrap_or_default());
    draw_both(frame, &both_ends(a, b), page.scroll, counters);
}

fn draw_graphs(frame: &mut Frame<'_>, app: &App, row: &LinkRow, area: Rect) {
    let kept = app.link_rates.get(&row.link);
    for (at, (way, name)) in row.directions.iter().zip(["A to B", "B to A"]).enumerate() {
        let [left, rest] = Layout::horizontal([Constraint::Length(24), Constraint::Min(1)])
            .areas(line(area, at as u16));
        let text = format!("{name} {:>7} frames/s ", short(way.frames));
        frame.render_widget(Line::styled(text, faint()), left);
        let rates = kept.into_iter().flat_map(|kept| &kept[at]).copied();
        spark(frame, rates, rest);
    }
}

/// The properties of both ends, by name.
fn facts(row: &LinkRow) -> Vec<(&'static str, [String; 2])> {
    let reports = row.ends.each_ref().map(|end| end.report.as_ref());
    let of = |what: &dyn Fn(&LinkReport) -> String| {
        reports.map(|report| report.map_or("-".to_owned(), what))
    };
    let [out, back] = &row.directions;
    vec![
        (
            "state",
            of(&|link| format!("{} (LCB {})", link.state, link.lcb)),
        ),
        (
            "lanes rx, tx",
            of(&|link| format!("{}, {}", link.rx_lanes, link.tx_lanes)),
        ),
        (
            "heard",
            of(&|link| {
                link.heard_ms.map_or("-".to_owned(), |ms| match ms {
                    0..10_000 => format!("{ms} ms ago"),
                    _ => format!("{} s ago", ms / 1_000),
                })
            }),
        ),
        (
            "round trip",
            of(&|link| link.rtt_ns.map_or("-".to_owned(), span)),
        ),
        ("credits per VC", of(&|link| runs(&link.credits))),
        ("offers per VC", of(&|link| runs(&link.offers))),
        (
            "unacknowledged",
            of(&|link| {
                let (window, unit) = (link.window, &link.unit);
                let packets = link.unacknowledged_packets;
                format!("{window} {unit}, {packets} packets")
            }),
        ),
        (
            "resent, per s",
            [
                pair(reports[0].map(|link| link.resent), out.resent),
                pair(reports[1].map(|link| link.resent), back.resent),
            ],
        ),
        (
            "bad checks, per s",
            [
                pair(reports[0].map(|link| link.bad_checks), back.bad_checks),
                pair(reports[1].map(|link| link.bad_checks), out.bad_checks),
            ],
        ),
        ("charged to lanes", of(&LinkReport::retries_by_lane)),
    ]
}

/// Numbers by virtual channel, equal neighbours as `COUNTxNUMBER`: a column may be narrow.
fn runs(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a == b);
    let runs: Vec<String> = runs
        .map(|run| match run.len() {
            1 => run[0].to_string(),
            count => format!("{count}x{}", run[0]),
        })
        .collect();
    runs.join(" ")
}

fn pair(total: Option<u64>, rate: f64) -> String {
    match total {
        Some(total) => format!("{total}, {}", short(rate)),
        None => "-".to_owned(),
    }
}

/// A counter of both ends: name, then value and rate at A and at B.
type Both = (String, [Option<(u64, f64)>; 2]);

fn both_ends(a: Vec<(String, u64, f64)>, b: Vec<(String, u64, f64)>) -> Vec<Both> {
    let mut rows: Vec<Both> = Vec::new();
    for (end, counters) in [a, b].into_iter().enumerate() {
        for (name, value, rate) in counters {
            match rows.iter_mut().find(|row| row.0 == name) {
                Some(row) => row.1[end] = Some((value, rate)),
                None => {
                    let mut ends = [None, None];
                    ends[end] = Some((value, rate));
                    rows.push((name, ends));
                }
            }
        }
    }
    let active = |row: &Both| {
        let ends = row.1.iter().flatten();
        ends.fold((false, false), |(moving, used), &(value, rate)| {
            (moving || rate > 0.0, used || value > 0)
        })
    };
    rows.sort_by(|a, b| active(b).cmp(&active(a)).then(a.0.cmp(&b.0)));
    rows
}

fn draw_both(frame: &mut Frame<'_>, all: &[Both], scroll: usize, area: Rect) {
    let shown = all.iter().skip(scroll.min(all.len().saturating_sub(1)));
    let rows = shown.map(|(name, ends)| {
        let mut cells = vec![Cell::from(name.clone())];
        for end in ends {
            let (value, rate) = match end {
                Some((value, rate)) => (value.to_string(), short(*rate)),
                None => ("-".to_owned(), "-".to_owned()),
            };
            cells.extend([right(value), right(rate)]);
        }
        Row::new(cells)
    });
    let widths = [
        Constraint::Fill(1),
        Constraint::Length(13),
        Constraint::Length(6),
        Constraint::Length(13),
        Constraint::Length(6),
    ];
    let figures = ["A", "per s", "B", "per s"].map(right);
    let head = [Cell::from("counter")].into_iter().chain(figures);
    let head = Row::new(head).style(strong());
    frame.render_widget(Table::new(rows, widths).header(head), area);
}
