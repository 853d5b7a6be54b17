//! Route predictions: where a router would send a packet, without sending one.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A packet that might arrive at a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The port by which it arrives.
    pub port: u8,
    /// Destination NIC of the packet, by the number that routers use.
    pub to: u32,
    /// Whether the packet is a response.
    pub response: bool,
    /// Whether the packet must stay in order.
    pub ordered: bool,
    /// The address of a request, where machines route by it.
    pub address: u64,
    /// The [`Onward::state`] of the router before; `None` at its source.
    pub state: Option<u64>,
}

/// Prediction of a router's decision for the packet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outlook {
    /// Tables and registers consulted.
    pub consulted: Vec<String>,
    /// Rule by which the router chooses among the outputs.
    pub how: String,
    /// The possible outputs; those taken without load come first.
    pub ways: Vec<Onward>,
    /// Whether the first output is taken, whatever the load.
    pub is_certain: bool,
}

/// A possible output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Onward {
    /// The port by which it leaves.
    pub port: u8,
    /// The virtual channel there.
    pub vc: u8,
    /// Kind of route.
    pub kind: Cow<'static, str>,
    /// State for the next router.
    pub state: u64,
    /// Whether the link of the port is up; null if that is not known.
    pub is_up: Option<bool>,
}

/// A router that can predict routes.
pub trait Outlooks {
    /// Predicts the route of a packet, without side effects.
    fn outlook(&self, question: &Question) -> Outlook;
}
