//! The result of a reroute, as text and JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use phitwire::manage::ReroutePhase;
use phitwire::net::{Network, NodeRef};
use schemars::JsonSchema;
use serde::Serialize;

use super::execute::Done;
use super::manager::Tables;
use super::routers;
use super::survey::Survey;

/// Maximum number of pairs listed; all are counted.
const MOST_PAIRS: usize = 10_000;
/// Maximum number of pairs and names shown as text.
const MOST_SHOWN: usize = 12;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every working router had the tables that it needs.
    #[default]
    NothingToDo,
    /// Every working router now has the tables that it needs.
    Done,
    /// A dry run.
    Planned,
    /// Some routers do not have the tables that they need.
    Incomplete,
    /// Stopped before everything was installed.
    Interrupted,
}

/// A failed link between routers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedLink {
    /// Number of the link in the topology.
    pub link: u32,
    /// The machine's word for its kind, such as a colour.
    pub kind: &'static str,
    /// `NODE:PORT`.
    pub a: String,
    /// `NODE:PORT`.
    pub b: String,
    /// Why it is not up.
    pub why: String,
}

/// A failed router, which gets no more packets, or an unreachable NIC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FailedNode {
    /// Name of the node.
    pub name: String,
    /// Why it counts as failed.
    pub why: String,
}

/// Two routers, the first of which cannot send packets to the second.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Disconnected {
    /// Source of the packets.
    pub from: String,
    /// Destination that they cannot reach.
    pub to: String,
    /// `dead`: one of them has failed; `cut`: no chain of links joins them; `unroutable`: a chain
    /// does, but none that keeps the order of channels.
    pub why: &'static str,
}

/// The findings and actions of a reroute.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    /// Name of the lab.
    pub lab: String,
    /// Outcome of the reroute.
    pub status: Status,
    /// Links that are not up, between routers that reply.
    pub failed_links: Vec<FailedLink>,
    /// Routers that do not reply, or have no link up.
    pub failed_routers: Vec<FailedNode>,
    /// NICs whose link is not up: no table can help them.
    pub failed_nics: Vec<FailedNode>,
    /// Routers that got new tables (or would get them).
    pub changed_routers: Vec<String>,
    /// NICs that got another number, and that number.
    pub renumbered: BTreeMap<String, u16>,
    /// Why no tables exist for these failures; null if they do.
    pub refused: Option<String>,
    /// Number of times that tables were computed because of changes during the reroute.
    pub rounds: u32,
    /// Duration of each phase in milliseconds, over all rounds.
    pub took_ms: BTreeMap<&'static str, f64>,
    /// Routers that did not finish a phase in time.
    pub late: BTreeMap<&'static str, Vec<String>>,
    /// Routers that stopped replying during the reroute, and why.
    pub lost_meanwhile: Vec<FailedNode>,
    /// Pairs of routers that were disconnected or could have lost packets, and now reach each
    /// other; null if no tables change, or the network has more than 1,024 routers.
    pub restored_pairs: Option<usize>,
    /// Pairs of routers, from and to, that do not reach each other.
    pub disconnected_pairs: u64,
    /// Disconnected pairs of which neither router has failed.
    pub living_disconnected: u64,
    /// The disconnected pairs, at most 10,000.
    pub disconnected: Vec<Disconnected>,
}

pub(super) fn phase_name(phase: ReroutePhase) -> &'static str {
    match phase {
        ReroutePhase::Quiesce => "quiesce",
        ReroutePhase::Drain => "drain",
        ReroutePhase::Install => "install",
        ReroutePhase::Release => "release",
        ReroutePhase::Done => "done",
    }
}

impl Report {
    /// Adds the findings of `survey`, and the pairs that the tables cannot connect.
    pub(super) fn found(&mut self, tables: &Tables<'_>, survey: &Survey) {
        let network = tables.network;
        let link = |(&link, why): (&u32, &String)| {
            let (a, b) = network.ends(link as usize);
            FailedLink {
                link,
                kind: tables.planner.link_kind(link),
                a: network.end_name(a),
                b: network.end_name(b),
                why: why.clone(),
            }
        };
        self.failed_links = survey.links.iter().map(link).collect();
        let router = |router: &u32| FailedNode {
            name: network.node_name(NodeRef::Chip(*router)).into_owned(),
            why: match survey.silent.get(router) {
                _ if survey.faults.isolated.contains(router) => String::from("isolated by command"),
                Some(why) => why.clone(),
                None => String::from("it answers, but all its links to other routers are down"),
            },
        };
        self.failed_routers = survey.faults.routers.iter().map(router).collect();
        let nic = |(&nic, why): (&u32, &String)| FailedNode {
            name: network.node_name(NodeRef::Processor(nic)).into_owned(),
            why: why.clone(),
        };
        self.failed_nics = survey.nics.iter().map(nic).collect();
        self.find_disconnected(tables, survey);
    }

    fn find_disconnected(&mut self, tables: &Tables<'_>, survey: &Survey) {
        let all: Vec<u32> = routers(tables.network).collect();
        let name = |router| tables.network.node_name(NodeRef::Chip(router)).into_owned();
        let dead = |router: u32| survey.faults.routers.contains(&router);
        self.disconnected_pairs = 0;
        self.living_disconnected = 0;
        self.disconnected.clear();
        for &from in &all {
            for &to in all.iter().filter(|&&to| to != from) {
                let why = if dead(from) || dead(to) {
                    "dead"
                } else if tables.routed.joins(from, to) {
                    continue;
                } else if tables.routed.is_unroutable(from, to) {
                    "unroutable"
                } else {
                    "cut"
                };
                self.disconnected_pairs += 1;
                self.living_disconnected += u64::from(why != "dead");
                if self.disconnected.len() < MOST_PAIRS {
                    self.disconnected.push(Disconnected {
                        from: name(from),
                        to: name(to),
                        why,
                    });
                }
            }
        }
    }

    /// Adds the result of a round.
    pub(super) fn did(&mut self, network: &dyn Network, done: &Done) {
        let name = |node: &NodeRef| network.node_name(*node).into_owned();
        for (&phase, took) in &done.outcome.took {
            *self.took_ms.entry(phase_name(phase)).or_default() += took.as_ns() as f64 / 1e6;
        }
        for (&phase, nodes) in &done.outcome.late {
            let late = self.late.entry(phase_name(phase)).or_default();
            late.extend(nodes.iter().map(name));
        }
        for node in &done.outcome.gone {
            let why = match node {
                NodeRef::Chip(router) => done.troubles.get(router).cloned().unwrap_or_default(),
                NodeRef::Processor(_) => String::new(),
            };
            let name = name(node);
            if !self.lost_meanwhile.iter().any(|lost| lost.name == name) {
                self.lost_meanwhile.push(FailedNode { name, why });
            }
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_text(&mut text);
        text
    }

    fn write_text(&self, out: &mut String) -> std::fmt::Result {
        writeln!(
            out,
            "lab {}: {} failed, {} failed",
            self.lab,
            count(self.failed_links.len(), "link"),
            count(self.failed_routers.len(), "router")
        )?;
        for link in &self.failed_links {
            let FailedLink { a, b, why, .. } = link;
            writeln!(out, "  {} link {}, {a} - {b}: {why}", link.kind, link.link)?;
        }
        for router in &self.failed_routers {
            writeln!(out, "  router {}: {}", router.name, router.why)?;
        }
        for nic in &self.failed_nics {
            let FailedNode { name, why } = nic;
            writeln!(out, "  {name} has no link, which no table can fix: {why}")?;
        }
        if let Some(why) = &self.refused {
            writeln!(
                out,
                "no tables can route around that, so all remain unchanged: {why}"
            )?;
        }
        self.write_deeds(out)?;
        for (name, number) in &self.renumbered {
            writeln!(out, "{name} is now processor {number}")?;
        }
        self.write_pairs(out)
    }

    fn write_deeds(&self, out: &mut String) -> std::fmt::Result {
        let changed = self.changed_routers.len();
        let routers = count(changed, "router");
        match self.status {
            Status::NothingToDo => writeln!(out, "every router already has the right tables")?,
            Status::Planned => writeln!(out, "{routers} would get new tables")?,
            Status::Done => writeln!(out, "{routers} got new tables: {}", self.times())?,
            Status::Incomplete => writeln!(
                out,
                "NOT all routers have the right tables; try again, or inspect them with `phitwire \
                 ctl`"
            )?,
            Status::Interrupted => writeln!(
                out,
                "interrupted: every router was released, {}; run the same command to continue",
                if self.took_ms.contains_key("install") {
                    "some have new tables"
                } else {
                    "none have new tables"
                }
            )?,
        }
        for (phase, nodes) in &self.late {
            let what = if *phase == "install" || *phase == "release" {
                "timed out"
            } else {
                "timed out, which is harmless"
            };
            writeln!(out, "  {phase}: {what}: {}", names(nodes))?;
        }
        for FailedNode { name, why } in &self.lost_meanwhile {
            writeln!(out, "  {name} was lost during the reroute: {why}")?;
        }
        Ok(())
    }

    fn times(&self) -> String {
        let time = |(phase, ms): (&&str, &f64)| format!("{phase} {ms:.1} ms");
        let order = ["quiesce", "drain", "install", "release"];
        let mut times = Vec::new();
        for phase in order {
            times.extend(self.took_ms.get_key_value(phase).map(time));
        }
        times.join(", ")
    }

    fn write_pairs(&self, out: &mut String) -> std::fmt::Result {
        if let Some(pairs @ 1..) = self.restored_pairs {
            let pairs = count(pairs, "pair");
            writeln!(
                out,
                "{pairs} of routers had lost their safe routes and reach each other again"
            )?;
        }
        if self.disconnected_pairs == 0 {
            return writeln!(out, "every router reaches every other");
        }
        let pairs = count(self.disconnected_pairs as usize, "pair");
        let dead = self.disconnected_pairs - self.living_disconnected;
        writeln!(
            out,
            "{pairs} of routers, counted in both directions, cannot reach each other; in {dead} of \
             them a router has failed"
        )?;
        let living = || self.disconnected.iter().filter(|pair| pair.why != "dead");
        for pair in living().take(MOST_SHOWN) {
            let why = match pair.why {
                "cut" => "no links connect them",
                _ => "links connect them, but no route keeps the order of channels",
            };
            writeln!(out, "  {} to {}: {why}", pair.from, pair.to)?;
        }
        if living().nth(MOST_SHOWN).is_some() {
            writeln!(out, "  ... (--json lists all)")?;
        }
        Ok(())
    }
}

fn count(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    }
}

fn names(names: &[String]) -> String {
    let shown = names[..names.len().min(MOST_SHOWN)].join(" ");
    match names.len() {
        0..=MOST_SHOWN => shown,
        all => format!("{shown} ... ({all} in all)"),
    }
}
