//! The account of a link end, to check that everything has drained.

/// Units of the numbers in a link's account, for messages.
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

/// One end's account of its sending direction and of its receptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndAccount {
    /// Units of the numbers.
    pub units: Units,
    /// Whether the link is active; if not, nothing is checked.
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
    /// Received and handed up to the core.
    pub accepted: u64,
}
