//! What network interfaces and the terminals of the simulator say to each other, whatever the
//! packets of a machine look like.

use super::packet::Packet;

/// Bytes that a transfer carries at most.
pub const MAX_DATA: usize = 64;

/// What a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes what it carries.
    Put,
    /// Reads as many bytes.
    Get,
    /// Answers: carried out; of a get, with what was read.
    Done,
    /// Answers: not carried out.
    Refused,
}

impl Kind {
    /// All of them, by their codes.
    pub const ALL: [Self; 4] = [Self::Put, Self::Get, Self::Done, Self::Refused];

    /// Whether an answer is owed to it.
    pub const fn is_request(self) -> bool {
        matches!(self, Self::Put | Self::Get)
    }
}

/// A request, or the answer to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The number of the network interface that it goes to.
    pub to: u16,
    /// And of that which it comes from.
    pub from: u16,
    /// What it is.
    pub kind: Kind,
    /// The address that is written or read; in an answer, that of the request.
    pub address: u64,
    /// The name of the request, which its answer has as well.
    pub name: u64,
    /// Bytes that it carries, or asks for.
    pub len: u8,
    /// The bytes, zeros behind them.
    pub data: [u8; MAX_DATA],
}

impl Transfer {
    /// What it carries.
    pub fn data(&self) -> &[u8] {
        &self.data[..usize::from(self.len).min(MAX_DATA)]
    }

    /// The same transfer with this to carry, or to ask for as many bytes.
    #[must_use]
    pub fn with(mut self, data: &[u8]) -> Self {
        self.data = [0; MAX_DATA];
        self.data[..data.len()].copy_from_slice(data);
        self.len = data.len() as u8;
        self
    }

    /// The answer to it from where it went, which carries nothing yet.
    #[must_use]
    pub fn answer(&self, kind: Kind) -> Self {
        let (to, from) = (self.from, self.to);
        Self {
            to,
            from,
            kind,
            ..*self
        }
        .with(&[])
    }
}

/// A packet that holds a transfer.
pub trait TransferPacket: Packet {
    /// Bytes that a transfer carries at most: 32 for the announcement of a traffic run, and no more
    /// than [`MAX_DATA`].
    const MAX_BYTES: usize;

    /// The packet of a transfer.
    fn pack(transfer: &Transfer) -> Self;

    /// The transfer of a packet; `None` if network interfaces send no such packet.
    fn unpack(&self) -> Option<Transfer>;
}
