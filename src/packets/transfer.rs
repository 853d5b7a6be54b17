//! What network interfaces and the terminals of the simulator say to each other, whatever the
//! packets of a machine look like.

/// Bytes that a transfer carries at most.
pub const MAX_DATA: usize = 64;

/// What a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Writes what it carries.
    Put,
    /// Reads as many bytes.
    Get,
    /// Answers: carried out; of a get, with what was read; of an atomic operation, with the word as
    /// it was before.
    Done,
    /// Answers: not carried out.
    Refused,
    /// Answers: not carried out, since the request came damaged.
    Damaged,
    /// Adds one to a word, atomically.
    Increment,
    /// Adds what it carries to a word, atomically.
    Add,
    /// Carries two words; where the first is found, the second is written, atomically.
    CompareSwap,
    /// Carries two words; writes those bits of the second that are ones in the first, atomically.
    MaskedSwap,
    /// Carries a message of [`MESSAGE_BYTES`], which goes to the end of the queue whose number is
    /// the address. It is refused when the queue is full.
    Message,
}

/// Bytes of a message to a queue.
pub(crate) const MESSAGE_BYTES: usize = 64;
/// Bytes of a word, which is what atomic operations act on. Words have their lowest bits first.
pub(crate) const WORD_BYTES: usize = size_of::<u64>();

impl Kind {
    /// All of them, by their codes.
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

    /// Whether an answer is owed to it.
    pub const fn is_request(self) -> bool {
        !matches!(self, Self::Done | Self::Refused | Self::Damaged)
    }

    /// Of an atomic operation, the words that it carries.
    pub(crate) const fn operands(self) -> Option<usize> {
        match self {
            Self::Increment => Some(0),
            Self::Add => Some(1),
            Self::CompareSwap | Self::MaskedSwap => Some(2),
            _ => None,
        }
    }

    /// Bytes that the answer to such a request of `len` bytes carries if all is well.
    pub(crate) const fn answer_bytes(self, len: u8) -> u8 {
        match self {
            Self::Get => len,
            _ if self.operands().is_some() => WORD_BYTES as u8,
            _ => 0,
        }
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
    /// Of a request: whether it comes behind all that went to the same network interface before.
    /// Where packets have no choice of ways, it does anyway.
    pub ordered: bool,
    /// The address that is written or read; in an answer, that of the request, for those who have
    /// room for it: network interfaces do not look.
    pub address: u64,
    /// The name of the request, which its answer has as well.
    pub name: u64,
    /// Bytes that it carries, or asks for.
    pub len: u8,
    /// The bytes, zeros behind them.
    pub data: [u8; MAX_DATA],
}

impl Transfer {
    /// One without a name and contents, from nobody yet.
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
        }
    }

    /// What it carries.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data[..usize::from(self.len).min(MAX_DATA)]
    }

    /// Word number `index` of what it carries: zero behind the end.
    pub fn word(&self, index: usize) -> u64 {
        let words = self.data.as_chunks().0;
        words.get(index).map_or(0, |&word| u64::from_le_bytes(word))
    }

    /// The same transfer with this to carry, or to ask for as many bytes.
    ///
    /// # Panics
    /// If it is more than [`MAX_DATA`].
    #[must_use]
    pub fn with(mut self, data: &[u8]) -> Self {
        self.data = [0; MAX_DATA];
        self.data[..data.len()].copy_from_slice(data);
        self.len = data.len() as u8;
        self
    }

    /// The same transfer with these words to carry.
    ///
    /// # Panics
    /// If they are more than [`MAX_DATA`].
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

    /// The answer to it from where it went, which carries nothing yet.
    #[must_use]
    pub(crate) fn answer(&self, kind: Kind) -> Self {
        Self {
            from: self.to,
            name: self.name,
            ..Self::new(self.from, kind, self.address)
        }
    }
}
