//! Mail between parts as bytes.
//!
//! Parts that share no memory exchange such mail. A mail holds everything that one part sends to
//! another between two exchanges. It is sent even without entries, so that a lost mail is detected.
//! All numbers are little-endian:
//!
//! | bytes | contents |
//! |---|---|
//! | 0-3 | `PWM`, then the [version](VERSION) of the format |
//! | 4 | the [kind](Kind) of the contents; 5-7 are zero |
//! | 8-11, 12-15 | numbers of the sending and of the receiving part |
//! | 16-23 | number of the exchange, from 1 |
//! | 24-27 | number of entries |
//! | 28-31 | length of the whole mail |
//! | 32- | entries |
//! | last 8 | [hash](TraceHash) of all bytes before |
//!
//! An entry of [`Kind::Phits`] is a slot (4 bytes), its window (8), a mask of the window's cycles
//! in which a phit arrives (8), the machine's credits, and the phits in cycle order. An entry of
//! [`Kind::Frames`] is a link (4), 1 if the frames go to its end B and otherwise 0 (1), the number
//! of frames (4), and for each the time of sending in ps (8), its length (2) and its bytes.

use thiserror::Error;

use crate::sim::TraceHash;

/// Version of the format. Parts of different versions do not understand each other.
pub const VERSION: u8 = 1;

const MAGIC: [u8; 4] = [b'P', b'W', b'M', VERSION];
const HEADER_BYTES: usize = 32;
const HASH_BYTES: usize = 8;

/// Kind of the contents of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Phits and credits of direct links.
    Phits = 1,
    /// Frames of encoded links.
    Frames = 2,
}

/// Why a mail is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MailError {
    #[error("the mail has {0} bytes, fewer than its header and its hash")]
    Short(usize),
    #[error("not a mail of version {VERSION}")]
    Magic,
    #[error("the mail has {found} bytes instead of {stated}")]
    Length { stated: u32, found: usize },
    #[error("the hash of the mail is wrong")]
    Hash,
    #[error("reserved bytes of the header are not zero")]
    Reserved,
    #[error("the mail has kind {0}, which does not match the links")]
    Kind(u8),
    #[error("unexpected mail, from part {0} to part {1}")]
    Address(u32, u32),
    #[error("the mail belongs to exchange {found}, not {expected}")]
    Exchange { expected: u64, found: u64 },
    #[error("the mail has already been taken")]
    Again,
    #[error("the previous mail of part {0} was never taken")]
    Missing(u32),
    #[error("the entries do not fill the mail exactly")]
    Entries,
    #[error("slot {0} is not a link end of this part")]
    Slot(u32),
    #[error("window {0} has passed, or is farther ahead than the longest link reaches")]
    Window(u64),
    #[error("an entry has no arrival in its window")]
    Cycle,
    #[error("invalid phit for these links")]
    Phit,
    #[error("invalid credits for these links")]
    Credits,
    #[error("link {0} does not lead from the sender to this part, or appears twice")]
    Link(u32),
    #[error("invalid number of a link end: {0}")]
    End(u8),
    #[error("a frame was sent outside the windows of the exchange, or before an earlier one")]
    Time,
    #[error("a frame of {0} bytes exceeds the limit of links")]
    FrameLength(u16),
}

/// Sender, receiver and number of the exchange of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub from: u32,
    pub to: u32,
    pub exchange: u64,
}

/// Numbers the exchanges of a part, and addresses its mail.
#[derive(Clone, Debug)]
pub(super) struct Addresses {
    own: u32,
    /// Number of the last exchange, from 1.
    exchange: u64,
    /// Number of the exchange whose mail was taken last, by sender.
    taken: Vec<u64>,
}

impl Addresses {
    /// The addresses of part `own` of `count`.
    pub(super) fn new(own: u32, count: usize) -> Self {
        Self {
            own,
            exchange: 0,
            taken: vec![0; count],
        }
    }

    /// Begins an exchange.
    pub(super) fn advance(&mut self) {
        self.exchange += 1;
    }

    /// The address of the mail to part number `to`.
    pub(super) fn to(&self, to: usize) -> Address {
        Address {
            from: self.own,
            to: to as u32,
            exchange: self.exchange,
        }
    }

    /// The address that mail from part number `from` must have. Mail is taken once per exchange.
    ///
    /// # Errors
    /// If this mail has been taken, or the previous one has not, or there is no part `from`.
    pub(super) fn from(&self, from: usize) -> Result<Address, MailError> {
        let address = Address {
            from: from as u32,
            to: self.own,
            exchange: self.exchange,
        };
        match self.taken.get(from) {
            None => Err(MailError::Address(address.from, address.to)),
            Some(&taken) if taken == self.exchange => Err(MailError::Again),
            Some(&taken) if taken + 1 != self.exchange => Err(MailError::Missing(address.from)),
            Some(_) => Ok(address),
        }
    }

    /// Records that the mail of part number `from` has been taken.
    pub(super) fn took(&mut self, from: usize) {
        self.taken[from] = self.exchange;
    }
}

pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    entries: u32,
}

impl<'a> Writer<'a> {
    /// Clears `out` and begins a mail in it.
    pub fn begin(out: &'a mut Vec<u8>, kind: Kind, address: Address) -> Self {
        out.clear();
        out.extend(MAGIC);
        out.extend([kind as u8, 0, 0, 0]);
        out.extend(address.from.to_le_bytes());
        out.extend(address.to.to_le_bytes());
        out.extend(address.exchange.to_le_bytes());
        out.extend([0; 8]);
        Self { out, entries: 0 }
    }

    pub fn entry(&mut self) -> &mut Vec<u8> {
        self.entries += 1;
        self.out
    }

    /// Completes the mail.
    ///
    /// # Panics
    /// If it is longer than 4 GiB.
    pub fn finish(self) {
        let length =
            u32::try_from(self.out.len() + HASH_BYTES).expect("a mail is shorter than 4 GiB");
        self.out[24..28].copy_from_slice(&self.entries.to_le_bytes());
        self.out[28..32].copy_from_slice(&length.to_le_bytes());
        let hash = hash(self.out);
        self.out.extend(hash.to_le_bytes());
    }
}

/// Corrects the hash of a changed mail, for tests that forge mail.
#[cfg(any(test, feature = "testing"))]
pub fn seal(mail: &mut [u8]) {
    if let Some((signed, hashed)) = mail.split_last_chunk_mut::<HASH_BYTES>() {
        *hashed = hash(signed).to_le_bytes();
    }
}

fn hash(bytes: &[u8]) -> u64 {
    let mut hash = TraceHash::default();
    hash.add_bytes(bytes);
    hash.value()
}

/// Reads the entries of a mail. Reading beyond the end fails with [`MailError::Entries`].
#[derive(Clone, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads plain entries, without header and hash.
    pub const fn new(entries: &'a [u8]) -> Self {
        Self(entries)
    }

    /// The number of entries of an intact mail, and its entries.
    ///
    /// # Errors
    /// See [`MailError`].
    pub fn open(mail: &'a [u8], kind: Kind, address: Address) -> Result<(u32, Self), MailError> {
        let short = MailError::Short(mail.len());
        let (signed, hashed) = mail.split_last_chunk::<HASH_BYTES>().ok_or(short)?;
        let (header, entries) = signed.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
        let mut header = Self(header);
        if header.take::<4>()? != MAGIC {
            return Err(MailError::Magic);
        }
        let [found_kind, reserved @ ..] = header.take::<4>()?;
        let (from, to) = (header.u32()?, header.u32()?);
        let (exchange, count, stated) = (header.u64()?, header.u32()?, header.u32()?);
        let found = mail.len();
        if stated as usize != found {
            return Err(MailError::Length { stated, found });
        }
        if hash(signed) != u64::from_le_bytes(*hashed) {
            return Err(MailError::Hash);
        }
        if reserved != [0; 3] {
            return Err(MailError::Reserved);
        }
        if found_kind != kind as u8 {
            return Err(MailError::Kind(found_kind));
        }
        if (from, to) != (address.from, address.to) {
            return Err(MailError::Address(from, to));
        }
        if exchange != address.exchange {
            return Err(MailError::Exchange {
                expected: address.exchange,
                found: exchange,
            });
        }
        Ok((count, Self(entries)))
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], MailError> {
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(MailError::Entries)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// If there are fewer.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], MailError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(MailError::Entries)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn u8(&mut self) -> Result<u8, MailError> {
        self.take().map(u8::from_le_bytes)
    }

    pub fn u16(&mut self) -> Result<u16, MailError> {
        self.take().map(u16::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32, MailError> {
        self.take().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, MailError> {
        self.take().map(u64::from_le_bytes)
    }

    /// Checks that all entries have been read.
    ///
    /// # Errors
    /// If bytes are left.
    pub fn end(self) -> Result<(), MailError> {
        match self.0 {
            [] => Ok(()),
            _ => Err(MailError::Entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mail_is_taken_once() {
        let mut marks = Addresses::new(1, 3);
        let mut others = Addresses::new(2, 3);
        for exchange in 1..4 {
            marks.advance();
            others.advance();
            assert_eq!(marks.from(2), Ok(others.to(1)));
            assert_eq!(others.to(1).exchange, exchange);
            marks.took(2);
            assert_eq!(marks.from(2), Err(MailError::Again));
            marks.took(0);
        }
        marks.advance();
        marks.took(2);
        marks.advance();
        assert!(marks.from(2).is_ok());
        assert_eq!(marks.from(0), Err(MailError::Missing(0)));
        assert_eq!(marks.from(3), Err(MailError::Address(3, 1)));
    }
}
