//! Record of a packet's passage through a router.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A packet's passage through a router. Times are picoseconds of the router's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// Distinguishes the packet from others of its flow, if the router saw its identity.
    pub identity: Option<u64>,
    /// Whether the packet is a response.
    pub response: bool,
    /// Length of the packet in phits or flits, if its header carries it.
    pub units: Option<u8>,
    /// The port by which it arrived.
    pub port: u8,
    /// Virtual channel at the input.
    pub vc: u8,
    /// When its header arrived; `None` if before the watch began.
    pub arrived_ps: Option<u64>,
    /// The stages that it has left, in order.
    pub steps: Vec<Step>,
    /// The decisions about it, in order.
    pub choices: Vec<Choice>,
    pub departure: Option<Departure>,
    /// Why it was discarded.
    pub discarded: Option<Cow<'static, str>>,
}

/// A stage that a packet has left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub stage: Cow<'static, str>,
    /// When the header left it.
    pub left_ps: u64,
    /// Time it takes without contention.
    pub least_ps: u64,
}

/// A routing decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// Kind of the candidates: `port`, or another part of the router.
    pub among: Cow<'static, str>,
    /// Routing mode that the packet requests.
    pub mode: Cow<'static, str>,
    /// The candidates considered.
    pub candidates: Vec<Candidate>,
    /// The number of the winner.
    pub winner: u8,
    /// Why it won.
    pub why: Cow<'static, str>,
    /// Number of times the route was decided. A decision that cannot be executed is repeated; the
    /// candidates are those of the last one.
    pub times: u32,
}

/// A candidate of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Number of the port or other part.
    pub number: u8,
    /// Kind of route through it, where there are several.
    pub kind: Cow<'static, str>,
    /// Load of the candidate as the router saw it, if it was considered.
    pub load: Option<u32>,
    /// Cost of that load in the comparison.
    pub cost: Option<u32>,
}

/// Output of a packet, and its fate on that link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// The output port.
    pub port: u8,
    /// The output virtual channel.
    pub vc: u8,
    /// Units that the link had resent when it was first checked after the departure.
    pub resent_before: Option<u64>,
    /// Units resent since the packet left, until everything sent was acknowledged, or until now.
    pub resent: Option<u64>,
    /// Whether the link has since acknowledged everything it sent: the packet has arrived.
    pub acknowledged: bool,
    /// Whether the link went down before that: packets in flight are lost.
    #[serde(default)]
    pub link_ended: bool,
}

impl Passage {
    /// Time at which the packet left the router, if it has.
    pub fn left_ps(&self) -> Option<u64> {
        self.departure?;
        self.steps.last().map(|step| step.left_ps)
    }

    /// Time at which the packet was last seen in the router.
    pub fn last_ps(&self) -> Option<u64> {
        let step = self.steps.last().map(|step| step.left_ps);
        step.or(self.arrived_ps)
    }

    /// The passage in the time of a clock that is `by_ps` picoseconds ahead.
    #[must_use]
    pub fn shifted(mut self, by_ps: i64) -> Self {
        let shift = |ps: &mut u64| *ps = ps.saturating_add_signed(by_ps);
        self.arrived_ps.iter_mut().for_each(shift);
        self.steps
            .iter_mut()
            .for_each(|step| shift(&mut step.left_ps));
        self
    }

    /// Per stage: its name, when the packet arrived, how long it stayed, and its waiting time.
    /// `None` if it arrived before the watch began.
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
