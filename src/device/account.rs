//! Accounts of data in flight, to check that everything has drained.

/// Units of the numbers in a link's account, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Unit of the credits.
    pub credits: &'static str,
    /// Unit of the numbers of acknowledged data.
    pub unacknowledged: &'static str,
    /// Unit of the numbers that must be conserved.
    pub conserved: &'static str,
}

impl Units {
    /// The units of a link that counts only packets.
    pub(crate) const PACKETS: Self = Self {
        credits: "packets",
        unacknowledged: "packets",
        conserved: "packets",
    };
}

/// The account of one link end, for its sending and receiving directions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndAccount {
    pub units: Units,
    /// Whether the link is active. Inactive links are not checked.
    pub active: bool,
    /// Credit left, per virtual channel.
    pub credits: Vec<u32>,
    /// Credit offered to the peer on each virtual channel when all others are empty.
    pub offers: Vec<u32>,
    /// Sent and not acknowledged.
    pub unacknowledged: u64,
    /// Words taken from the core and not sent, in units of credit.
    pub unsent: u64,
    /// Taken from the core.
    pub taken: u64,
    /// Upper limit of the part of `taken` that was given up because the link went down; `None` if
    /// unknown.
    pub given_up: Option<u64>,
    /// Units received and handed up to the core.
    pub accepted: u64,
}

/// Contents of a node, its links aside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeAccount {
    /// Contents of a router, in its unit.
    pub inside: u64,
    /// The unit of `inside`: `phits`, `flits`.
    pub unit: &'static str,
    /// Requests without a response that have not timed out.
    pub requests: u32,
    /// Unfinished block transfers.
    pub transfers: usize,
}

impl NodeAccount {
    /// Sum of all contents.
    pub const fn total(self) -> u64 {
        self.inside + self.requests as u64 + self.transfers as u64
    }
}
