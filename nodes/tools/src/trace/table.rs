//! A trace as a table, one line per stage.

use std::fmt::Write as _;

use phitwire::text_table::TextTable;
use phitwire::trace::{Candidate, Choice};

use super::{HopReport, PathReport, Trace};

pub fn render(trace: &Trace) -> String {
    let mut text = format!(
        "{}: {} from {} to {}, identity {:#x}: {}",
        trace.source, trace.operation, trace.from, trace.to, trace.identity, trace.outcome
    );
    if let Some(ended) = trace.ended {
        let _ = write!(text, " after {} {}", number(ended), trace.unit.name);
    }
    text.push('\n');
    for way in &trace.ways {
        let _ = write!(
            text,
            "\n{} from {} to {}: {}\n",
            way.kind, way.from, way.to, way.end
        );
        text.push_str(&table(way, trace.unit.name));
    }
    for note in &trace.notes {
        let _ = write!(text, "\nnote: {note}");
    }
    if !trace.notes.is_empty() {
        text.push('\n');
    }
    text
}

fn table(way: &PathReport, unit: &str) -> String {
    let at = format!("at {unit}");
    let mut table = TextTable::new(&[at.as_str(), "where", "stage", "time", "wait", "what"]);
    if let Some(began) = way.began {
        let what = format!("{} sends it", way.from);
        table.row([
            number(began),
            way.from.clone(),
            String::new(),
            String::new(),
            String::new(),
            what,
        ]);
    }
    for hop in &way.hops {
        hop_rows(&mut table, hop);
    }
    if let (true, Some(came)) = (way.delivered, way.came) {
        let left = way.hops.last().and_then(|hop| hop.stages.last());
        let link = left.map_or(String::new(), |stage| number(came - stage.left));
        table.row([
            number(came),
            way.to.clone(),
            "link".into(),
            link,
            String::new(),
            "arrived".into(),
        ]);
    }
    table.render()
}

fn hop_rows(table: &mut TextTable, hop: &HopReport) {
    let by = format!("in by port {} VC {}", hop.in_port, hop.in_vc);
    let units = hop
        .units
        .map_or(String::new(), |units| format!(", {units} flits"));
    table.row([
        hop.arrived.map_or("-".into(), number),
        hop.router.clone(),
        "link".into(),
        hop.link.map_or("-".into(), number),
        String::new(),
        by + &units,
    ]);
    // Show decisions about the row buffers after the first queue.
    let (later, first): (Vec<_>, Vec<_>) = hop.choices.iter().partition(|of| of.among == "row");
    let (mut first, mut later) = (first.into_iter(), later.into_iter());
    let last = hop.stages.len().saturating_sub(1);
    for (index, stage) in hop.stages.iter().enumerate() {
        // Show the first decisions at the first queue that is not just an input port.
        let mut what: Vec<String> = Vec::new();
        if !stage.stage.ends_with(" in") {
            what.extend(first.by_ref().map(describe_choice));
        }
        if index > 0 && !stage.stage.starts_with("input") {
            what.extend(later.by_ref().map(describe_choice));
        }
        if index == last {
            what.extend(leaving(hop));
        }
        let mut what = what.into_iter();
        table.row([
            number(stage.left),
            hop.router.clone(),
            stage.stage.clone(),
            stage.time.map_or("-".into(), number),
            stage.wait.map_or("-".into(), number),
            what.next().unwrap_or_default(),
        ]);
        for more in what {
            let none = String::new;
            table.row([none(), none(), none(), none(), none(), more]);
        }
    }
    // Show decisions for a packet that has not left a stage yet.
    for choice in first.chain(later) {
        let none = String::new;
        table.row([
            "-".into(),
            hop.router.clone(),
            none(),
            none(),
            none(),
            describe_choice(choice),
        ]);
    }
}

fn leaving(hop: &HopReport) -> Option<String> {
    let (port, vc) = (hop.out_port?, hop.out_vc?);
    let next = hop.next.as_deref().unwrap_or("nowhere");
    let resent = match hop.resent {
        Some(1..) => format!(", link resent {}", hop.resent.unwrap_or(0)),
        _ => String::new(),
    };
    Some(format!("out by port {port} VC {vc} to {next}{resent}"))
}

/// A decision in one line.
pub fn describe_choice(choice: &Choice) -> String {
    const MOST: usize = 8;
    let named = |candidate: &Candidate| {
        let mut text = candidate.number.to_string();
        let mut facts = Vec::new();
        if !candidate.kind.is_empty() {
            facts.push(candidate.kind.to_string());
        }
        facts.extend(candidate.load.map(|load| format!("load {load}")));
        facts.extend(candidate.cost.map(|cost| format!("costs {cost}")));
        if !facts.is_empty() {
            let _ = write!(text, " ({})", facts.join(", "));
        }
        text
    };
    let shown = choice.candidates.iter().take(MOST).map(named);
    let mut all = shown.collect::<Vec<_>>().join(", ");
    if choice.candidates.len() > MOST {
        let _ = write!(all, " and {} more", choice.candidates.len() - MOST);
    }
    let chosen = match (choice.winner, choice.candidates.is_empty()) {
        (u8::MAX, true) => format!("no {}", choice.among),
        (u8::MAX, false) => format!("no {} yet of {all}", choice.among),
        (winner, _) => format!("{} {winner} of {all}", choice.among),
    };
    let times = match choice.times {
        0 | 1 => String::new(),
        times => format!(", decided {times} times"),
    };
    format!("{chosen}: {} [{}{times}]", choice.why, choice.mode)
}

/// A time with one decimal, unless that is zero.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}
