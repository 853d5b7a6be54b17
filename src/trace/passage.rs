//! What is known of a packet's way through a router.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A packet's way through a router. Times are picoseconds of the router's own clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// What tells it from others of its flow, as far as the router saw it.
    pub identity: Option<u64>,
    /// Whether it is an answer.
    pub response: bool,
    /// Its phits or flits, where its header says how many there are.
    pub units: Option<u8>,
    /// The port by which it came.
    pub port: u8,
    /// Its virtual channel there.
    pub vc: u8,
    /// When its header came; `None` if that was before the watch began.
    pub arrived_ps: Option<u64>,
    /// The stages that it has left, in their order.
    pub steps: Vec<Step>,
    /// What was decided about it, in the order of the decisions.
    pub choices: Vec<Choice>,
    /// By what it left.
    pub departure: Option<Departure>,
    /// Why it did not leave.
    pub discarded: Option<Cow<'static, str>>,
}

/// A stage that a packet has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// What the machine calls it.
    pub stage: Cow<'static, str>,
    /// When the header left it.
    pub left_ps: u64,
    /// What it takes with nobody in the way.
    pub least_ps: u64,
}

/// A decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// Among what: `port`, or another part of the router.
    pub among: Cow<'static, str>,
    /// How the packet asked to be routed.
    pub mode: Cow<'static, str>,
    /// Whom the router looked at.
    pub candidates: Vec<Candidate>,
    /// The number of the winner.
    pub winner: u8,
    /// Why that one.
    pub why: Cow<'static, str>,
    /// How often it was decided: a decision that cannot be carried out is taken anew. The candidates
    /// are those of the last time.
    pub times: u32,
}

/// One that was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its number among its like.
    pub number: u8,
    /// What kind of way leads by it, where there are several.
    pub kind: Cow<'static, str>,
    /// Its load as the router saw it, if it looked.
    pub load: Option<u32>,
    /// What that load counts for against the others.
    pub cost: Option<u32>,
}

/// How a packet left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// The port.
    pub port: u8,
    /// The virtual channel.
    pub vc: u8,
    /// What the link had sent again so far.
    pub resent_before: Option<u64>,
    /// What it has sent again from then until all that it had sent was acknowledged, or until now.
    pub resent: Option<u64>,
    /// Whether all was acknowledged since: the packet is at the other end.
    pub acknowledged: bool,
    /// Whether the link went down before that: what was under way on it is lost.
    #[serde(default)]
    pub link_ended: bool,
}

impl Passage {
    /// When it left, if it has.
    pub fn left_ps(&self) -> Option<u64> {
        self.departure?;
        self.steps.last().map(|step| step.left_ps)
    }

    /// When it was last seen here.
    pub fn last_ps(&self) -> Option<u64> {
        let step = self.steps.last().map(|step| step.left_ps);
        step.or(self.arrived_ps)
    }

    /// The same by a clock that is so many picoseconds ahead.
    #[must_use]
    pub fn shifted(mut self, by_ps: i64) -> Self {
        let shift = |ps: &mut u64| *ps = ps.saturating_add_signed(by_ps);
        self.arrived_ps.iter_mut().for_each(shift);
        self.steps
            .iter_mut()
            .for_each(|step| shift(&mut step.left_ps));
        self
    }

    /// The times in the stages: name, when it came there, how long it was there, and how much of that
    /// it waited. Unknown where it came before the watch began.
    pub fn stays(&self) -> impl Iterator<Item = (&str, Option<u64>, Option<[u64; 2]>)> {
        let mut before = self.arrived_ps;
        self.steps.iter().map(move |step| {
            let came = before.replace(step.left_ps);
            let stay = came.map(|came| step.left_ps.saturating_sub(came));
            let both = stay.map(|stay| [stay, stay.saturating_sub(step.least_ps)]);
            (&*step.stage, came, both)
        })
    }
}
