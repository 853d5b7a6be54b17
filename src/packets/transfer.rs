//! Transfers between NICs or the simulator's terminals, independent of the machine's packet format.

/// Maximum number of bytes that a transfer carries.
pub const MAX_DATA: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes its data.
    Put,
    /// Reads `len` bytes.
    Get,
    /// Reply: done. Carries the data read by a get, or the old word of an atomic operation.
    Done,
    /// Reply: rejected.
    Refused,
    /// Reply: not done, since the request arrived damaged.
    Damaged,
    /// Atomically adds one to a word.
    Increment,
    /// Atomically adds its data to a word.
    Add,
    /// Carries two words: atomically writes the second if memory holds the first.
    CompareSwap,
    /// Carries two words: atomically replaces the bits that are set in the first by those of the
    /// second.
    MaskedSwap,
    /// Carries a message of [`MESSAGE_BYTES`] to the end of the queue whose number is the address.
    /// Rejected if the queue is full.
    Message,
}

/// Bytes of a message to a queue.
pub(crate) const MESSAGE_BYTES: usize = 64;
/// Bytes of the words that atomic operations act on, lowest bits first.
pub(crate) const WORD_BYTES: usize = size_of::<u64>();

/// Why a target rejects a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The addresses lie outside the memory.
    OutOfRange,
    /// The operation is unknown here, or an announcement is malformed.
    Unsupported,
    /// No room for another traffic run, or for another message.
    Full,
    /// The announced run is older than the latest of its source.
    Outdated,
    UnknownRun,
}

impl Kind {
    /// All kinds, by code.
    pub const ALL: [Self; 10] = [
        Self::Put,
        Self::Get,
        Self::Done,
        Self::Refused,
        Self::Damaged,
        Self::Increment,
        Self::Add,
        Self::CompareSwap,
        Self::MaskedSwap,
        Self::Message,
    ];

    /// Whether a transfer of this kind needs a reply.
    pub const fn is_request(self) -> bool {
        !matches!(self, Self::Done | Self::Refused | Self::Damaged)
    }

    /// Number of words that an atomic operation carries; `None` for other kinds.
    pub(crate) const fn operands(self) -> Option<usize> {
        match self {
            Self::Increment => Some(0),
            Self::Add => Some(1),
            Self::CompareSwap | Self::MaskedSwap => Some(2),
            _ => None,
        }
    }

    /// Bytes that the reply to such a request of `len` bytes carries on success.
    pub(crate) const fn answer_bytes(self, len: u8) -> u8 {
        match self {
            Self::Get => len,
            _ if self.operands().is_some() => WORD_BYTES as u8,
            _ => 0,
        }
    }
}

/// A request or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Number of the destination NIC.
    pub to: u16,
    /// Number of the source NIC.
    pub from: u16,
    pub kind: Kind,
    /// Whether a request must not overtake anything sent to the same NIC before it. Always the case
    /// where packets have only one path.
    pub ordered: bool,
    /// Address to write or read. A reply repeats the request's, where its packet has room; NICs
    /// ignore it.
    pub address: u64,
    /// Name of the request, repeated in the reply.
    pub name: u64,
    /// Bytes carried or requested.
    pub len: u8,
    /// The data, padded with zeros.
    pub data: [u8; MAX_DATA],
    /// The reason for a rejection, in replies whose packets carry one.
    pub refusal: Option<Refusal>,
}

impl Transfer {
    /// A transfer without name, data and source.
    pub const fn new(to: u16, kind: Kind, address: u64) -> Self {
        Self {
            to,
            from: 0,
            kind,
            ordered: false,
            address,
            name: 0,
            len: 0,
            data: [0; MAX_DATA],
            refusal: None,
        }
    }

    pub fn data(&self) -> &[u8] {
        &self.data[..usize::from(self.len).min(MAX_DATA)]
    }

    /// Data word number `index`; zero beyond the end.
    pub fn word(&self, index: usize) -> u64 {
        let words = self.data.as_chunks().0;
        words.get(index).map_or(0, |&word| u64::from_le_bytes(word))
    }

    /// This transfer, carrying `data` or requesting as many bytes.
    ///
    /// # Panics
    /// If `data` is longer than [`MAX_DATA`].
    #[must_use]
    pub fn with(mut self, data: &[u8]) -> Self {
        self.data = [0; MAX_DATA];
        self.data[..data.len()].copy_from_slice(data);
        self.len = data.len() as u8;
        self
    }

    /// This transfer, carrying `words`.
    ///
    /// # Panics
    /// If `words` are longer than [`MAX_DATA`].
    #[must_use]
    pub fn with_words(mut self, words: &[u64]) -> Self {
        self = self.with(&[]);
        for (at, word) in self.data.as_chunks_mut().0[..words.len()]
            .iter_mut()
            .zip(words)
        {
            *at = word.to_le_bytes();
        }
        self.len = (words.len() * WORD_BYTES) as u8;
        self
    }

    /// A reply to this transfer from its destination, without data.
    #[must_use]
    pub(crate) fn answer(&self, kind: Kind) -> Self {
        Self {
            from: self.to,
            name: self.name,
            ..Self::new(self.from, kind, self.address)
        }
    }
}
