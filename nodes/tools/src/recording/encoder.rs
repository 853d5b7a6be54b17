//! Encodes moments as lines.

use std::collections::BTreeMap;

use phitwire::device::PipelineReport;
use phitwire::device::pipeline::Stage;

use super::header::{END_FIELDS, EndField, Event, Header, NODE_FIELDS, NodeField};
use super::state::{Line, State, changes};

/// The state of a network at one moment.
#[derive(Clone, Debug, Default)]
pub struct Moment {
    /// Link ends, two per link in the order of the header. `None` if nothing is known: the end
    /// keeps its numbers but counts as down.
    pub ends: Vec<Option<EndMoment>>,
    /// Nodes, in the order of the header.
    pub nodes: Vec<NodeMoment>,
}

/// The state of a link end.
#[derive(Clone, Debug)]
pub struct EndMoment {
    pub state: String,
    /// Why packets do not flow.
    pub why: Option<String>,
    /// The other numbers, by [`EndField`].
    pub numbers: [i64; END_FIELDS],
}

/// The state of a node.
#[derive(Clone, Debug)]
pub struct NodeMoment {
    /// Why the node does not reply; if set, the other fields are not used.
    pub silent: Option<String>,
    /// The other numbers, by [`NodeField`].
    pub numbers: [i64; NODE_FIELDS],
    /// Contents of the node's stages, if requested.
    pub pipeline: Option<PipelineReport>,
}

impl Default for EndMoment {
    fn default() -> Self {
        Self {
            state: String::new(),
            why: None,
            numbers: [0; END_FIELDS],
        }
    }
}

impl Default for NodeMoment {
    fn default() -> Self {
        Self {
            silent: None,
            numbers: [0; NODE_FIELDS],
            pipeline: None,
        }
    }
}

/// Encodes moments as lines.
#[derive(Debug)]
pub struct Encoder {
    header: Header,
    state: State,
    numbers: BTreeMap<String, i64>,
    /// The state of an unknown end.
    unknown: EndMoment,
}

impl Encoder {
    pub fn new(header: Header) -> Self {
        Self {
            state: State::new(&header),
            header,
            numbers: BTreeMap::new(),
            unknown: EndMoment {
                state: "unknown".to_owned(),
                why: Some("the node does not answer".to_owned()),
                ..EndMoment::default()
            },
        }
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The state after all lines so far.
    #[cfg(test)]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The line for a moment.
    ///
    /// # Panics
    /// If the moment has other nodes or links than the header.
    pub fn line(&mut self, t: u64, moment: &Moment, events: Vec<Event>) -> Line {
        assert_eq!(moment.nodes.len(), self.header.nodes.len());
        assert_eq!(moment.ends.len(), 2 * self.header.links.len());
        let mut line = Line {
            t: t.max(self.state.t),
            e: events,
            ..Line::default()
        };
        let mut next = self.state.numbers.clone();
        for (at, end) in moment.ends.iter().enumerate() {
            let numbers = &mut next[at * END_FIELDS..][..END_FIELDS];
            let report = end.as_ref().unwrap_or(&self.unknown);
            let (state, why) = (report.state.clone(), report.why.clone());
            if let Some(end) = end {
                numbers.copy_from_slice(&end.numbers);
            } else {
                numbers[EndField::Up as usize] = 0;
            }
            numbers[EndField::State as usize] = self.text(&state, &mut line);
            numbers[EndField::Why as usize] = self.text(why.as_deref().unwrap_or(""), &mut line);
        }
        for (number, node) in moment.nodes.iter().enumerate() {
            let at = self.header.node_at(number);
            let numbers = &mut next[at..at + NODE_FIELDS];
            if node.silent.is_none() {
                numbers.copy_from_slice(&node.numbers);
            }
            let silent = node.silent.as_deref().unwrap_or("");
            numbers[NodeField::Silent as usize] = self.text(silent, &mut line);
            if let Some(report) = &node.pipeline {
                self.stages(number, report, &mut next, &mut line);
            }
        }
        line.v = changes(&self.state.numbers, &next);
        self.state.numbers = next;
        self.state.t = line.t;
        line
    }

    /// The number of a text; 0 if the text is empty, or the table of texts is full.
    fn text(&mut self, text: &str, line: &mut Line) -> i64 {
        if text.is_empty() {
            return 0;
        }
        // Mask numbers that change with every moment, since the table of texts would grow without
        // limit.
        let text = steady(text);
        if let Some(&number) = self.numbers.get(&text) {
            return number;
        }
        if self.state.texts.len() >= MOST_TEXTS {
            return 0;
        }
        self.state.texts.push(text.clone());
        line.s.push(text.clone());
        let number = self.state.texts.len() as i64;
        self.numbers.insert(text, number);
        number
    }

    fn stages(
        &mut self,
        node: usize,
        report: &PipelineReport,
        next: &mut Vec<i64>,
        line: &mut Line,
    ) {
        let known = self.state.stages(node);
        if !known.is_some_and(|known| is_alike(&known.stages, &report.stages)) {
            let stages = report.stages.iter().map(emptied).collect();
            let Some(placed) = self.state.add(node, stages) else {
                return;
            };
            line.p.push(placed.clone());
            next.resize(self.state.numbers.len(), 0);
        }
        let Some(placed) = self.state.stages(node) else {
            return;
        };
        let mut at = placed.at;
        for stage in &report.stages {
            next[at] = stage.stalls.unwrap_or(0) as i64;
            at += 1;
            for position in &stage.places {
                for channel in 0..stage.channels.len() {
                    next[at] = position.held.get(channel).copied().unwrap_or(0) as i64;
                    at += 1;
                }
            }
        }
    }
}

const MOST_TEXTS: usize = 4_096;

/// Masks numbers that change with time: those that precede a unit of time.
fn steady(text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    for at in 1..words.len() {
        let is_unit = matches!(words[at].trim_end_matches([',', ';']), "s" | "ms");
        if is_unit && words[at - 1].parse::<f64>().is_ok() {
            words[at - 1] = "some";
        }
    }
    let mut text = words.join(" ");
    let end = (0..=text.len().min(1_024))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
    text
}

/// Whether two lists of stages can share the same positions.
fn is_alike(known: &[Stage], stages: &[Stage]) -> bool {
    let same = |(a, b): (&Stage, &Stage)| {
        a.name == b.name
            && a.channels == b.channels
            && a.capacity == b.capacity
            && a.stalls.is_some() == b.stalls.is_some()
            && a.places.len() == b.places.len()
            && a.places
                .iter()
                .zip(&b.places)
                .all(|(a, b)| a.number == b.number)
    };
    known.len() == stages.len() && known.iter().zip(stages).all(same)
}

/// A stage with its content removed.
fn emptied(stage: &Stage) -> Stage {
    let mut stage = stage.clone();
    stage.stalls = stage.stalls.map(|_| 0);
    for position in &mut stage.places {
        position.held.clear();
    }
    stage
}
