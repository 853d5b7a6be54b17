//! A link end's account of its credits and data, to check that everything has drained.

/// Names of the units in an [`EndAccount`], for messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Units {
    /// Unit of `credits`, `offers` and `unsent`.
    pub credits: &'static str,
    /// Unit of `unacknowledged`.
    pub unacknowledged: &'static str,
    /// Unit of `taken`, `given_up` and `accepted`, which must be conserved.
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

/// One end's account of its sent and received units.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndAccount {
    pub units: Units,
    /// Whether the link is active; if not, nothing is checked.
    pub active: bool,
    /// Credit left, per virtual channel.
    pub credits: Vec<u32>,
    /// Credit offered to the peer on each virtual channel when all others are empty.
    pub offers: Vec<u32>,
    /// Data sent but not acknowledged.
    pub unacknowledged: u64,
    /// Words taken from the core and not sent, in units of credit.
    pub unsent: u64,
    /// Data taken from the core.
    pub taken: u64,
    /// Upper bound on the part of `taken` that was discarded because the link went down; `None` if
    /// unknown.
    pub given_up: Option<u64>,
    /// Data received and handed up to the core.
    pub accepted: u64,
}
