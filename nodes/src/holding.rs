//! Who keeps a network interface for runs: one measurement at a time.
//!
//! A tool claims each network interface that takes part before it starts anything, and keeps the connection open on
//! which it did. While it does, nobody else starts a run there, neither as source nor as target. When the
//! connection is closed, by the tool or because the kernel buried it, its runs end: nobody is left sending. A
//! lease would do the same later, and would end the runs of a tool that only stands still.

use phitwire::nic::Phase;
use phitwire::time::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::control::server::ClientId;
use crate::control::{Code, Holder, Refusal, RunKind};
use crate::live_node::LiveNode;

/// See the module's text.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    now: Option<(ClientId, Holder)>,
    /// Who went before its run was over, and the run.
    gone: Option<(Holder, RunKind, u64)>,
}

/// Of the report of a run, traffic or collective, what tells whether it goes on.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Course {
    run: u64,
    phase: Phase,
}

impl Course {
    fn of(report: Result<Value, String>) -> Option<Self> {
        Self::deserialize(report.ok()?).ok()
    }
}

/// The runs that are going on at `node`.
fn going_on<N: LiveNode>(node: &N) -> impl Iterator<Item = (RunKind, Course)> + use<N> {
    let traffic = Course::of(node.traffic_status(None));
    let collective = Course::of(node.collective_status());
    let both = [
        (RunKind::Traffic, traffic),
        (RunKind::Collective, collective),
    ];
    let some = both
        .into_iter()
        .filter_map(|(kind, course)| Some((kind, course?)));
    some.filter(|(_, course)| course.phase != Phase::Done)
}

impl Holding {
    /// `holder`, who is `client`, wants to keep `node`.
    pub(crate) fn claim<N: LiveNode>(
        &mut self,
        node: &N,
        client: ClientId,
        holder: Holder,
    ) -> Result<Value, Refusal> {
        if N::KIND != "nic" {
            return Err(format!("a {} makes no traffic", N::KIND).into());
        }
        self.may_start(client)?;
        if self.now.is_none()
            && let Some((kind, course)) = going_on(node).next()
        {
            return Err(self.busy(kind, course));
        }
        self.now = Some((client, holder));
        let latest = Course::of(node.traffic_status(None)).map_or(0, |course| course.run);
        Ok(json!({ "latest_run": latest }))
    }

    fn busy(&self, kind: RunKind, course: Course) -> Refusal {
        let run = course.run;
        let gone = self.gone.as_ref();
        let gone = gone.filter(|(_, what, of)| (*what, *of) == (kind, run));
        let holder = gone.map(|(holder, _, _)| holder.clone());
        let ending = holder.is_some() || course.phase == Phase::Draining;
        let whose = holder.as_ref().map_or_else(
            || "which nobody keeps".to_owned(),
            |holder| format!("whose {holder} has gone"),
        );
        let (doing, code) = match ending {
            true => ("still waits for its last answers", Code::Ending),
            false => ("is still going on", Code::Busy),
        };
        Refusal {
            text: format!("{kind} run {run}, {whose}, {doing}"),
            code: Some(code),
            holder,
            run: Some((kind, run)),
        }
    }

    /// Whether `client` may start a run.
    pub(crate) fn may_start(&self, client: ClientId) -> Result<(), Refusal> {
        match &self.now {
            Some((keeper, holder)) if *keeper != client => Err(Refusal {
                text: format!("{holder} measures here"),
                code: Some(Code::Taken),
                holder: Some(holder.clone()),
                run: None,
            }),
            _ => Ok(()),
        }
    }

    /// Nothing is known here of the run that was asked about.
    pub(crate) fn unknown_run<N: LiveNode>(text: String) -> Refusal {
        Refusal {
            code: (N::KIND == "nic").then_some(Code::UnknownRun),
            ..text.into()
        }
    }

    /// A client has gone, whoever it was.
    pub(crate) fn client_gone<N: LiveNode>(&mut self, node: &mut N, now: Time, client: ClientId) {
        let Some((_, holder)) = self.now.take_if(|(keeper, _)| *keeper == client) else {
            return;
        };
        for (kind, course) in going_on(node).collect::<Vec<_>>() {
            let run = course.run;
            tracing::warn!(run, %kind, %holder, "gone before its run was over, which ends now");
            self.gone = Some((holder.clone(), kind, run));
            // Not refused by a node that has such a run.
            let _ = match kind {
                RunKind::Traffic => node.traffic_stop(),
                // The second time although others may not come.
                RunKind::Collective => node
                    .collective_stop(now)
                    .and_then(|()| node.collective_stop(now)),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Request;
    use crate::station::Station;
    use phitwire::link::{EndName, LinkConfig};
    use phitwire::nic::{BlackwidowNic, NicConfig};
    use phitwire::node::Node;
    use phitwire_framing::frame::LinkEnd;

    const NOW: Time = Time::ZERO;

    /// A network interface whose link nobody answers.
    fn station() -> Station<BlackwidowNic> {
        let end = |node: &str| EndName {
            node: node.to_owned(),
            port: 0,
        };
        let link = LinkConfig::builder(0, LinkEnd::A, end("nic0"), end("nic1")).build();
        let nic = NicConfig::builder("nic0", 0, vec![link.expect("a legal link")]);
        let nic = nic.memory_bytes(1 << 20).build().expect("a legal one");
        Station::new(BlackwidowNic::new(nic, NOW), 1)
    }

    fn claim(station: &mut Station<BlackwidowNic>, client: ClientId) -> Result<Value, Refusal> {
        let holder = Holder {
            tool: "tool".to_owned(),
            pid: client as u32,
        };
        station.answer(NOW, client, Request::Claim(holder))
    }

    fn start(
        station: &mut Station<BlackwidowNic>,
        client: ClientId,
        run: u64,
    ) -> Result<Value, Refusal> {
        let spec = json!({ "run": run, "pattern": { "list": { "destinations": [1] } } });
        let answer = station.answer(NOW, client, Request::TrafficStart { spec });
        station.advance(NOW);
        answer
    }

    fn phase(station: &mut Station<BlackwidowNic>, run: Option<u64>) -> Value {
        let report = station.answer(NOW, 99, Request::TrafficStatus { run });
        report.expect("there is a run")["phase"].clone()
    }

    #[test]
    fn who_claims_keeps_it_until_the_connection_ends() {
        let mut station = station();
        assert_eq!(claim(&mut station, 1), Ok(json!({ "latest_run": 0 })));
        assert_eq!(claim(&mut station, 1), Ok(json!({ "latest_run": 0 })));
        for refused in [claim(&mut station, 2), start(&mut station, 2, 5)] {
            let refusal = refused.expect_err("it is taken");
            assert_eq!(refusal.code, Some(Code::Taken));
            assert_eq!(refusal.text, "tool (process 1) measures here");
        }
        start(&mut station, 1, 5).expect("nobody else does");
        // Whoever else goes changes nothing.
        station.client_gone(NOW, 2);
        station.advance(NOW);
        assert_eq!(phase(&mut station, None), "opening");
        assert!(claim(&mut station, 2).is_err());

        station.client_gone(NOW, 1);
        station.advance(NOW);
        assert_eq!(
            phase(&mut station, Some(5)),
            "draining",
            "it ends by itself"
        );
        let refusal = claim(&mut station, 2).expect_err("its last answers are out");
        assert_eq!(refusal.code, Some(Code::Ending));
        assert_eq!(refusal.run, Some((RunKind::Traffic, 5)));
        assert!(
            refusal.text.contains("tool (process 1) has gone"),
            "{refusal}"
        );
    }

    #[test]
    fn a_run_that_nobody_keeps_is_in_the_way() {
        let mut station = station();
        start(&mut station, 1, 5).expect("nobody keeps it");
        station.client_gone(NOW, 1);
        station.advance(NOW);
        assert_eq!(
            phase(&mut station, None),
            "opening",
            "begun by hand, it goes on"
        );
        let refusal = claim(&mut station, 2).expect_err("it is in the way");
        assert_eq!(refusal.code, Some(Code::Busy));
        assert_eq!(refusal.run, Some((RunKind::Traffic, 5)));
    }

    #[test]
    fn what_is_not_known_is_said_by_a_code() {
        let mut station = station();
        let unknown = station.answer(NOW, 1, Request::TrafficStatus { run: Some(7) });
        assert_eq!(unknown.expect_err("no run").code, Some(Code::UnknownRun));
        let other = station.answer(NOW, 1, Request::Quiesce { hold_ms: 0 });
        assert_eq!(other.expect_err("no router").code, None);
    }
}
