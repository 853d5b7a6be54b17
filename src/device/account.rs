//! The account of a node, to check that everything has drained.

/// Contents of a node, without its links.
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
