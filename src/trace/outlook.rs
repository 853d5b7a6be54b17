//! Which way a packet would go from a router, without one being sent.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A packet that might come to a router.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The port by which it comes.
    pub port: u8,
    /// The number, as routers know it, of the network interface that it goes to.
    pub to: u32,
    /// Whether it is an answer.
    pub response: bool,
    /// Whether it asks to keep its order.
    pub ordered: bool,
    /// The address of a request, where machines route by it.
    pub address: u64,
    /// What the router before it said of it; nothing at its source.
    pub state: Option<u64>,
}

/// What a router would do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Tables and registers that are looked at.
    pub consulted: Vec<String>,
    /// How it is chosen among the ways.
    pub how: String,
    /// The ways; those that would be taken without load come first.
    pub ways: Vec<Onward>,
    /// Whether the first is the one that is taken, whatever the load.
    pub is_certain: bool,
}

/// A way on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Onward {
    /// The port by which it leaves.
    pub port: u8,
    /// The virtual channel there.
    pub vc: u8,
    /// What kind of way that is.
    pub kind: Cow<'static, str>,
    /// What the next router has to know.
    pub state: u64,
    /// Whether the link of the port is up, if that is known.
    pub is_up: Option<bool>,
}

/// A router that can be asked.
pub trait Outlooks {
    /// What it would do with a packet. It does nothing.
    fn outlook(&self, question: &Question) -> Outlook;
}
