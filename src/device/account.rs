//! Plain accounts of what is under way, for those who check that nothing is at rest.

/// What the numbers of a link's account count, for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// What credits are for.
    pub credits: &'static str,
    /// What is acknowledged.
    pub unacknowledged: &'static str,
    /// What must be conserved.
    pub conserved: &'static str,
}

impl Units {
    /// Those of a link that counts nothing but packets.
    pub const PACKETS: Self = Self {
        credits: "packets",
        unacknowledged: "packets",
        conserved: "packets",
    };
}

/// What one end of a link says about the direction that it sends in, and about what it received.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndAccount {
    /// What the numbers count.
    pub units: Units,
    /// Whether the link is active; otherwise nothing is demanded of it.
    pub active: bool,
    /// Credit left, per virtual channel.
    pub credits: Vec<u32>,
    /// What this end offers to its peer on each virtual channel when all others are empty.
    pub offers: Vec<u32>,
    /// Sent and not acknowledged.
    pub unacknowledged: u64,
    /// Taken from the core and not sent, in units of credit.
    pub unsent: u64,
    /// Handed over by the core.
    pub taken: u64,
    /// Of `taken`, how much at most was given up because the link went down; `None` if nobody
    /// knows.
    pub given_up: Option<u64>,
    /// Received and handed up to the core.
    pub accepted: u64,
}

/// What is inside a node, its links aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeAccount {
    /// Inside a router, in its unit.
    pub inside: u64,
    /// The unit of `inside`: `phits`, `flits`.
    pub unit: &'static str,
    /// Requests without answer or time-out.
    pub requests: u32,
    /// Block transfers that have not come to their end.
    pub transfers: usize,
}

impl NodeAccount {
    /// Everything inside.
    pub const fn total(self) -> u64 {
        self.inside + self.requests as u64 + self.transfers as u64
    }
}
