//! The lists of `top`: links and nodes as rows, rated, filtered and sorted.

use std::cmp::Ordering;

use phitwire_nodes::control::{LinkReport, NodeKind};

use crate::watch::{DirectionRates, LabEvent, LinkRates, NodeRates, NodeSample, Rates, Sample};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Broken links first, then those with the largest losses.
    #[default]
    Trouble,
    /// In the order of the topology.
    Place,
    /// The busiest links first.
    Frames,
    /// By resends, the highest rate first.
    Resent,
    /// By damage, the highest rate first.
    Bad,
}

impl Sort {
    const ALL: [Self; 5] = [
        Self::Trouble,
        Self::Place,
        Self::Frames,
        Self::Resent,
        Self::Bad,
    ];

    /// The next order, cyclically.
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|&sort| sort == self);
        Self::ALL[at.map_or(0, |at| (at + 1) % Self::ALL.len())]
    }

    /// The label of the order.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trouble => "trouble",
            Self::Place => "place",
            Self::Frames => "frames/s",
            Self::Resent => "resent/s",
            Self::Bad => "bad/s",
        }
    }
}

/// The severity of a problem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    #[default]
    None,
    /// Data was resent, or arrived damaged, since the last sample.
    Retries,
    /// Lanes are missing.
    Lanes,
    /// The state is unknown because a node does not reply.
    Silent,
    /// The link or node is down.
    Down,
}

#[derive(Clone, Debug)]
pub struct EndRow {
    pub node: String,
    pub port: u8,
    /// The node's report of this link end, if it replies.
    pub report: Option<LinkReport>,
}

impl EndRow {
    fn new(sample: &Sample, node: &str, port: u8) -> Self {
        let found = sample.node(node).filter(|node| node.silent.is_none());
        Self {
            node: node.to_owned(),
            port,
            report: found.and_then(|node| node.link(port).cloned()),
        }
    }

    /// Name of the end: `NODE:PORT`.
    pub fn name(&self) -> String {
        format!("{}:{}", self.node, self.port)
    }

    fn state(&self) -> &str {
        self.report.as_ref().map_or("no answer", |link| &link.state)
    }

    fn is_up(&self) -> bool {
        self.report.as_ref().is_some_and(|link| link.up)
    }
}

/// A link with both ends.
#[derive(Clone, Debug)]
pub struct LinkRow {
    /// Number of the link in the topology.
    pub link: usize,
    /// Ends A and B of the link.
    pub ends: [EndRow; 2],
    /// Rates from A to B, and from B to A.
    pub directions: [DirectionRates; 2],
    pub trouble: Trouble,
}

impl LinkRow {
    fn new(sample: &Sample, rates: &LinkRates, lanes: u32) -> Self {
        let ends = rates
            .directions
            .each_ref()
            .map(|way| EndRow::new(sample, &way.from, way.from_port));
        let mut row = Self {
            link: rates.link,
            ends,
            directions: rates.directions.clone(),
            trouble: Trouble::None,
        };
        let lacks = |end: &EndRow| {
            let report = end.report.as_ref();
            report.is_some_and(|link| link.rx_lanes < lanes || link.tx_lanes < lanes)
        };
        // Do not treat a link as down because an end hears nothing of a node that does not reply.
        let is_silent = row.ends.iter().any(|end| end.report.is_none());
        let is_down = |end: &EndRow| {
            let report = end.report.as_ref();
            report.is_some_and(|link| !(link.up || is_silent && link.hears_nothing()))
        };
        row.trouble = if row.ends.iter().any(is_down) {
            Trouble::Down
        } else if is_silent {
            Trouble::Silent
        } else if row.ends.iter().any(lacks) {
            Trouble::Lanes
        } else if row.resent() + row.bad() > 0.0 {
            Trouble::Retries
        } else {
            Trouble::None
        };
        row
    }

    pub fn name(&self) -> String {
        let [a, b] = &self.ends;
        format!("{} - {}", a.name(), b.name())
    }

    /// The name, marked if the link is impaired.
    pub fn ends(&self) -> String {
        let mark = if self.is_impaired() { " *" } else { "" };
        format!("{}{mark}", self.name())
    }

    /// State of the end that is down, or a note that an end does not reply.
    pub fn state(&self) -> &str {
        let mut ends = self.ends.iter();
        let found = match self.trouble {
            Trouble::Silent => ends.find(|end| end.report.is_none()),
            _ => ends.find(|end| end.report.is_some() && !end.is_up()),
        };
        found.map_or("up", EndRow::state)
    }

    /// Why the link is not up, if known.
    pub fn why(&self) -> String {
        let found = self.ends.iter().find_map(|end| {
            let why = end.report.as_ref()?.why.as_ref()?;
            Some(format!("{}: {why}", end.node))
        });
        found.unwrap_or_default()
    }

    /// Numbers of lanes on which A and B receive.
    pub fn lanes(&self) -> String {
        let of = |end: &EndRow| {
            let report = end.report.as_ref();
            report.map_or("-".to_owned(), |link| link.rx_lanes.to_string())
        };
        format!("{}/{}", of(&self.ends[0]), of(&self.ends[1]))
    }

    /// Frames per second of the busier direction.
    pub fn frames(&self) -> f64 {
        self.directions[0].frames.max(self.directions[1].frames)
    }

    /// Use of the busier direction, as a share of a full wire.
    pub fn share(&self) -> f64 {
        self.directions[0].share.max(self.directions[1].share)
    }

    /// Resends per second, of both ends.
    pub fn resent(&self) -> f64 {
        self.directions[0].resent + self.directions[1].resent
    }

    /// Damaged units per second, at both ends.
    pub fn bad(&self) -> f64 {
        self.directions[0].bad_checks + self.directions[1].bad_checks
    }

    /// Resends since the processes started.
    pub fn resent_total(&self) -> u64 {
        let reports = self.ends.iter().filter_map(|end| end.report.as_ref());
        reports.map(|link| link.resent).sum()
    }

    /// Whether netem, nftables or a similar mechanism impairs either end.
    pub fn is_impaired(&self) -> bool {
        let mut reports = self.ends.iter().filter_map(|end| end.report.as_ref());
        reports.any(|link| link.impaired)
    }

    /// Whether the row contains the filter's text.
    fn matches(&self, filter: &str) -> bool {
        let text = format!("{} {} {}", self.link, self.name(), self.state());
        contains(&text, filter)
    }

    fn order(&self, other: &Self, by: Sort) -> Ordering {
        let falling = |a: f64, b: f64| b.total_cmp(&a);
        let worse = |a: &Self, b: &Self| falling(a.resent() + a.bad(), b.resent() + b.bad());
        let order = match by {
            Sort::Trouble => other.trouble.cmp(&self.trouble).then(worse(self, other)),
            Sort::Place => Ordering::Equal,
            Sort::Frames => falling(self.frames(), other.frames()),
            Sort::Resent => falling(self.resent(), other.resent()),
            Sort::Bad => falling(self.bad(), other.bad()),
        };
        order.then(self.link.cmp(&other.link))
    }
}

/// All links, or those of a node, that contain `filter`, sorted.
pub fn links(
    sample: &Sample,
    rates: &Rates,
    of: Option<&str>,
    filter: &str,
    by: Sort,
) -> Vec<LinkRow> {
    let reports = || sample.nodes.iter().flat_map(|node| &node.links);
    // Assume that the best link in the lab has the full number of lanes.
    let lanes = reports().map(|link| link.rx_lanes).max().unwrap_or(0);
    let is_wanted =
        |link: &&LinkRates| of.is_none_or(|of| link.directions.iter().any(|way| way.from == of));
    let rows = rates.links.iter().filter(is_wanted);
    let rows = rows.map(|link| LinkRow::new(sample, link, lanes));
    let mut rows: Vec<LinkRow> = rows.filter(|row| row.matches(filter)).collect();
    rows.sort_by(|a, b| a.order(b, by));
    rows
}

#[derive(Clone, Debug)]
pub struct NodeRow {
    pub node: NodeSample,
    /// Rates of the node since the last sample.
    pub rates: NodeRates,
    pub links_up: usize,
    /// Resends per second, on all links of the node.
    pub resent: f64,
    /// Damaged units per second, on all links of the node.
    pub bad: f64,
    pub trouble: Trouble,
    index: usize,
}

impl NodeRow {
    fn new(node: &NodeSample, rates: &Rates, index: usize) -> Self {
        let ways = || rates.links.iter().flat_map(|link| &link.directions);
        let resent = ways().filter(|way| way.from == node.name);
        let bad = ways().filter(|way| way.to == node.name);
        let (resent, bad) = (
            resent.map(|way| way.resent).sum(),
            bad.map(|way| way.bad_checks).sum(),
        );
        let links_up = node.links.iter().filter(|link| link.up).count();
        let trouble = match &node.silent {
            Some(_) => Trouble::Silent,
            None if links_up < node.links.len() => Trouble::Lanes,
            None if resent + bad > 0.0 => Trouble::Retries,
            None => Trouble::None,
        };
        Self {
            node: node.clone(),
            rates: rates.nodes.get(index).cloned().unwrap_or_default(),
            links_up,
            resent,
            bad,
            trouble,
            index,
        }
    }

    /// State of the node as text.
    pub fn state(&self) -> &'static str {
        match (&self.node.silent, self.trouble) {
            (Some(_), _) => "no answer",
            (None, Trouble::Lanes) => "links down",
            (None, _) => "up",
        }
    }

    fn matches(&self, filter: &str) -> bool {
        let node = &self.node;
        let text = format!("{} {} {}", node.name, node.kind, self.state());
        contains(&text, filter)
    }

    fn order(&self, other: &Self, by: Sort) -> Ordering {
        let falling = |a: f64, b: f64| b.total_cmp(&a);
        let order = match by {
            Sort::Trouble => other
                .trouble
                .cmp(&self.trouble)
                .then(falling(self.resent + self.bad, other.resent + other.bad)),
            Sort::Place => Ordering::Equal,
            Sort::Frames => falling(self.rates.bytes_sent, other.rates.bytes_sent),
            Sort::Resent => falling(self.resent, other.resent),
            Sort::Bad => falling(self.bad, other.bad),
        };
        order.then(self.index.cmp(&other.index))
    }
}

/// All nodes that contain `filter`, sorted.
pub fn nodes(sample: &Sample, rates: &Rates, filter: &str, by: Sort) -> Vec<NodeRow> {
    let rows = sample.nodes.iter().zip(0..);
    let rows = rows.map(|(node, index)| NodeRow::new(node, rates, index));
    let mut rows: Vec<NodeRow> = rows.filter(|row| row.matches(filter)).collect();
    rows.sort_by(|a, b| a.order(b, by));
    rows
}

/// Counters of a node, or of one of its ports, by name with their rates: the fastest first, then
/// other nonzero ones, then the rest.
pub fn counters(
    (before, after): (Option<&NodeSample>, &NodeSample),
    port: Option<u8>,
    seconds: f64,
    filter: &str,
) -> Vec<(String, u64, f64)> {
    let same = before.filter(|before| before.pid == after.pid);
    let of_port = |name: &str| name.starts_with("port") && name.contains('.');
    let wanted = |name: &&String| match port {
        Some(port) => name.starts_with(&format!("port{port}.")),
        None => !of_port(name),
    };
    let names = after.counters.keys().filter(wanted);
    let mut rows: Vec<_> = names
        .filter(|name| contains(name, filter))
        .map(|name| {
            let value = after.counter(name);
            let grown = same.map_or(0, |before| value.saturating_sub(before.counter(name)));
            let rate = if seconds > 0.0 {
                grown as f64 / seconds
            } else {
                0.0
            };
            let short = match port {
                Some(_) => name.split_once('.').map_or(&**name, |(_, name)| name),
                None => name,
            };
            (short.to_owned(), value, rate)
        })
        .collect();
    rows.sort_by(|a, b| {
        let active = |row: &(String, u64, f64)| (row.2 > 0.0, row.1 > 0);
        active(b).cmp(&active(a)).then(a.0.cmp(&b.0))
    });
    rows
}

/// Events that contain `filter`, the latest first.
pub fn events<'a>(
    all: impl DoubleEndedIterator<Item = &'a LabEvent>,
    filter: &str,
) -> Vec<&'a LabEvent> {
    let is_wanted = |event: &&LabEvent| {
        let text = format!("{} {} {}", event.node, event.kind.name(), event.text);
        contains(&text, filter)
    };
    all.rev().filter(is_wanted).collect()
}

fn contains(text: &str, filter: &str) -> bool {
    let (text, filter) = (text.to_lowercase(), filter.to_lowercase());
    filter.split_whitespace().all(|word| text.contains(word))
}

/// A summary of the lab in one line.
pub fn totals(sample: &Sample, rates: &Rates) -> String {
    let links = links(sample, rates, None, "", Sort::Place);
    let up = links.iter().filter(|row| row.trouble < Trouble::Silent);
    let answering = sample.nodes.iter().filter(|node| node.silent.is_none());
    let sum = |of: fn(&LinkRow) -> f64| links.iter().map(of).sum::<f64>();
    let both = |row: &LinkRow| row.directions.iter().map(|way| way.frames).sum();
    let of_kind = |kind: NodeKind| sample.nodes.iter().filter(|node| node.kind == kind).count();
    format!(
        "links {}/{} up  nodes {}/{} ({} routers)  {} frames/s  {} resent/s  {} bad/s",
        up.count(),
        links.len(),
        answering.count(),
        sample.nodes.len(),
        of_kind(NodeKind::Router),
        short(sum(both)),
        short(sum(LinkRow::resent)),
        short(sum(LinkRow::bad)),
    )
}

/// A rate in at most five characters.
pub fn short(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        ..10.0 => format!("{rate:.1}"),
        ..9_999.5 => format!("{rate:.0}"),
        ..99_950.0 => format!("{:.1}k", rate / 1e3),
        ..999_500.0 => format!("{:.0}k", rate / 1e3),
        ..99_950_000.0 => format!("{:.1}M", rate / 1e6),
        _ => format!("{:.1}G", rate / 1e9),
    }
}

/// A count in at most six characters.
pub fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        _ => short(number as f64),
    }
}

/// A time span in at most seven characters.
pub fn span(ns: u64) -> String {
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// Time of day of an event, in UTC.
pub fn clock(at_ms: u64) -> String {
    let seconds = at_ms / 1000 % 86_400;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}", seconds % 60)
}
