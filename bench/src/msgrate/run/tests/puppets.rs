//! A lab of puppets: replies are scripted, and the clock moves only on request.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::super::super::lab::{LabError, Member, ProcessState, Role};
use super::super::*;
use phitwire::nic::{LatencyCounts, TrafficPattern, TrafficReport, TrafficSpec};
use phitwire_nodes::control::{ClientError, Code, Refusal, Request};
use serde_json::{Value, json};

/// A lab that replies by script. Sources finish at the second poll.
#[derive(Default)]
pub(super) struct Puppets {
    pub nodes: BTreeMap<&'static str, Role>,
    /// Nodes whose processes had ended before.
    pub dead: Vec<String>,
    pub asked: Vec<(String, Request)>,
    pub started: BTreeMap<String, TrafficSpec>,
    pub looks: u32,
    /// Changes the report of a node.
    pub spoil: Option<fn(&str, &mut TrafficReport)>,
    /// Processors that n0 does not reach, and those that refuse its run.
    pub unreached: Vec<u16>,
    pub refusers: Vec<u16>,
    /// Whether the network moves nothing: nothing is sent and nothing arrives.
    pub deserted: bool,
    /// A node that refuses to be claimed: its name, the reason, and the end of the refusal, if any.
    pub busy: Option<(&'static str, Refusal, Option<Duration>)>,
    /// A node that is stopped, with the start and end of that time.
    pub still: Option<(&'static str, Duration, Duration)>,
    pub clock: Rc<Cell<Duration>>,
    /// The number of the latest run.
    pub latest: u64,
    pub stuck: bool,
    /// Whether routers choose between kinds of paths.
    pub decides: bool,
    /// Whether sources finish only when stopped.
    pub endless: bool,
    /// A node that dies, or is restarted, after this many polls in total.
    pub dies: Option<(&'static str, u32)>,
}

impl Puppets {
    fn stands_still(&self, node: &str) -> bool {
        let now = self.clock.get();
        self.still
            .is_some_and(|(who, from, to)| who == node && (from..to).contains(&now))
    }

    /// Process id of the node at present.
    fn pid(&self, node: &str) -> u64 {
        let again = |(who, when): (&str, u32)| who == node && self.looks > when;
        1 + u64::from(self.dies.is_some_and(again))
    }

    /// Counters that grow with each request; routers make one decision per request.
    fn stats(&self, node: &str) -> Value {
        let asked = self.asked.len();
        match self.nodes[node] {
            Role::Router if self.decides => json!({
                "port0.tx_frames": 1_000 + asked,
                "minimal_decisions": 3 * asked,
                "non_minimal_decisions": asked,
            }),
            _ => json!({ "port0.tx_frames": 1_000 + asked }),
        }
    }

    /// The nodes that got a stop request.
    pub fn stopped(&self) -> Vec<&str> {
        let requests = self.asked.iter();
        requests
            .filter(|(_, request)| *request == Request::TrafficStop)
            .map(|(node, _)| node.as_str())
            .collect()
    }

    pub fn new() -> Self {
        let group = None;
        let nic = |processor| Role::Nic { processor, group };
        let nics = [("n0", nic(0)), ("n1", nic(1)), ("n2", nic(2))];
        let nodes = nics.into_iter().chain([("r0", Role::Router)]).collect();
        Self {
            nodes,
            ..Self::default()
        }
    }

    fn report(&self, node: &str) -> TrafficReport {
        let Some(spec) = self.started.get(node) else {
            return TrafficReport::default();
        };
        let sends = |spec: &&TrafficSpec| spec.pattern != to(&[]);
        let is_source = sends(&spec);
        let sources = self.started.values().filter(sends).count() as u64;
        let receivers = match &spec.pattern {
            TrafficPattern::List { .. } => self.started.len() as u64 - sources,
            _ => sources,
        };
        let receives = !matches!(&spec.pattern, TrafficPattern::List { destinations } if !destinations.is_empty());
        let mut report = TrafficReport {
            run: spec.run,
            size: spec.size,
            ..Default::default()
        };
        if is_source {
            let is_stopped = self.stopped().contains(&node);
            let busy =
                self.stuck || self.looks < 2 * sources as u32 || (self.endless && !is_stopped);
            report.phase = if busy {
                RunPhase::Running
            } else {
                RunPhase::Done
            };
            report.sent = 60;
            report.acknowledged = 60;
            report.elapsed_ns = 1_000_000;
            report.latency = LatencyCounts {
                buckets: vec![(5_000, 60)],
                max_ns: 5_000,
            };
        }
        if receives {
            report.delivered = 60 * sources / receivers.max(1);
        }
        if node == "n0" {
            report.unreachable = self.unreached.len() as u64;
            report.unwilling = self.refusers.len() as u64;
            (report.unreached, report.refusers) = (self.unreached.clone(), self.refusers.clone());
        } else if !self.refusers.is_empty() {
            report.outdated_by = 90;
        }
        if self.deserted {
            (report.sent, report.acknowledged, report.delivered) = (0, 0, 0);
        }
        if let Some(spoil) = self.spoil {
            spoil(node, &mut report);
        }
        report
    }
}

pub(super) fn to(destinations: &[u16]) -> TrafficPattern {
    let destinations = destinations.to_vec();
    TrafficPattern::List { destinations }
}

impl Lab for Puppets {
    fn members(&mut self) -> Result<Vec<Member>, LabError> {
        let member = |(name, role): (&&str, &Role)| Member {
            name: (*name).to_owned(),
            role: *role,
        };
        Ok(self.nodes.iter().map(member).collect())
    }

    fn ask(&mut self, node: &str, request: &Request) -> Result<Value, LabError> {
        self.asked.push((node.to_owned(), request.clone()));
        let wrap = |error| LabError::Client {
            node: node.to_owned(),
            error,
        };
        if self.stands_still(node) {
            return Err(wrap(ClientError::Silent));
        }
        match request {
            // A restarted process counts from zero.
            Request::Stats if self.pid(node) > 1 => Ok(json!({ "port0.tx_frames": 7 })),
            Request::Stats => Ok(self.stats(node)),
            Request::Info => Ok(json!({ "kind": "nic", "pid": self.pid(node) })),
            Request::Claim(_) => {
                let now = self.clock.get();
                let refuses = |(who, _, until): &&(&str, Refusal, Option<Duration>)| {
                    *who == node && until.is_none_or(|at| now < at)
                };
                match self.busy.as_ref().filter(refuses) {
                    Some((_, refusal, _)) => Err(wrap(refused(refusal.clone()))),
                    None => Ok(json!({ "latest_run": self.latest })),
                }
            }
            Request::TrafficStart { spec } => {
                self.started.insert(node.to_owned(), (**spec).clone());
                Ok(json!({}))
            }
            Request::TrafficStatus { .. } => {
                self.looks += 1;
                if self.pid(node) > 1 {
                    let knows_nothing = Refusal {
                        code: Some(Code::UnknownRun),
                        ..Refusal::default()
                    };
                    return Err(wrap(refused(knows_nothing)));
                }
                Ok(serde_json::to_value(self.report(node)).expect("a report"))
            }
            Request::TrafficStop => Ok(json!({})),
            other => panic!("{other:?} is not asked for"),
        }
    }

    fn dead(&self) -> &[String] {
        &self.dead
    }

    fn state(&mut self, node: &str) -> ProcessState {
        match self.stands_still(node) {
            true => ProcessState::Stopped(4711),
            false => ProcessState::Alive,
        }
    }
}

pub(super) fn refused(refusal: Refusal) -> ClientError {
    ClientError::Refused(Box::new(refusal))
}

/// A clock that only moves during sleeps.
#[derive(Default)]
pub(super) struct Sleeper {
    pub now: Rc<Cell<Duration>>,
    /// Times at which the user requests to stop.
    pub interrupts: Vec<Duration>,
}

impl Clock for Sleeper {
    fn now(&self) -> Duration {
        self.now.get()
    }

    fn sleep(&self, span: Duration) {
        self.now.set(self.now.get() + span);
    }

    fn stops(&self) -> u32 {
        let past = self.interrupts.iter().filter(|&&at| at <= self.now());
        past.count() as u32
    }
}
