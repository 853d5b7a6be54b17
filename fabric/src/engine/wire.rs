//! Messages between endpoints. Each is one send of the NIC: a head of 96 bytes, followed by up to
//! [`MOST_EAGER`] bytes. All numbers are little endian.
//!
//! ```text
//!  0        kind               24 .. 31 sequence number     64 .. 71 bytes of the whole
//!  1        flags              32 .. 39 acknowledgement     72 .. 79 number of the operation
//!  2        type of elements   40 .. 47 tag or address      80 .. 87 where a part is staged
//!  3        atomic operation   48 .. 55 key                 88 .. 91 bytes of the part
//!  4   5    zero               56 .. 63 data                92 .. 95 the part's number
//!  6   7    handle
//!  8 .. 15  sender             16 .. 19 receiver's incarnation        20 .. 23 elements
//! ```

use std::fmt;
use std::str::FromStr;

/// The beginning of an address as text.
const SCHEME: &str = "phitwire://";
/// Bytes of the head.
pub const HEAD: usize = 96;
/// Bytes of a slot: head and data.
pub const SLOT: usize = 8192;
/// Maximum number of bytes after the head.
pub const MOST_EAGER: usize = SLOT - HEAD;
/// Bytes of a part of a long transfer.
pub const PART: usize = 256 << 10;
/// Part number of a transfer that is fetched in place, as a whole.
pub const IN_PLACE: u32 = u32::MAX;

// A message has room for data, and every part but the last is whole lines.
const _: () = assert!(HEAD < SLOT && SLOT < PART && PART.is_multiple_of(64));

/// Address of an endpoint. A later program at the same address has another incarnation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// Number of the NIC.
    pub processor: u16,
    /// Number of the program among the job's programs at that NIC.
    pub member: u8,
    /// Identity of the program: 16 random bits, and the handle of its registered memory.
    pub incarnation: u32,
}

impl Address {
    /// Length in bytes.
    pub const BYTES: usize = 8;
    /// The fourth byte, which distinguishes addresses of endpoints from those of doors.
    const OF_AN_ENDPOINT: u8 = 1;
    /// The fourth byte of an address that names a door.
    pub const OF_A_DOOR: u8 = 2;

    /// The handle of its registered memory.
    pub const fn handle(self) -> u16 {
        self.incarnation as u16
    }

    /// The form in which libfabric programs exchange it.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [p, q] = self.processor.to_le_bytes();
        let [a, b, c, d] = self.incarnation.to_le_bytes();
        [p, q, self.member, Self::OF_AN_ENDPOINT, a, b, c, d]
    }

    /// Parses an address; `None` if invalid.
    pub fn of_bytes(bytes: [u8; Self::BYTES]) -> Option<Self> {
        let [p, q, member, Self::OF_AN_ENDPOINT, a, b, c, d] = bytes else {
            return None;
        };
        Some(Self {
            processor: u16::from_le_bytes([p, q]),
            member,
            incarnation: u32::from_le_bytes([a, b, c, d]),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (processor, member) = (self.processor, self.member);
        write!(f, "{SCHEME}{processor}.{member}/{:x}", self.incarnation)
    }
}

impl FromStr for Address {
    type Err = ();

    /// Parses the text of an address, such as `phitwire://3.0/f00d0001`.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.strip_prefix(SCHEME).ok_or(())?;
        let (endpoint, incarnation) = text.split_once('/').ok_or(())?;
        let (processor, member) = endpoint.split_once('.').ok_or(())?;
        Ok(Self {
            processor: processor.parse().map_err(drop)?,
            member: member.parse().map_err(drop)?,
            incarnation: u32::from_str_radix(incarnation, 16).map_err(drop)?,
        })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// An acknowledgement without sequence number.
    #[default]
    Credit = 0,
    /// A whole transfer.
    Whole,
    /// Announces a long transfer, perhaps with its first part staged.
    Ready,
    /// Another part is staged.
    Part,
    /// A part was fetched or, with no bytes, the transfer was matched.
    Took,
    /// A request ended without data.
    Done,
    /// Requests memory.
    Read,
    /// Requests an atomic operation.
    Atomic,
    /// The sender has given up the receiver; without sequence number.
    Lost,
    /// Requests a new handle for opened memory, since a put with the old one may still arrive.
    Renew,
    /// The handle of opened memory.
    Renewed,
}

const KINDS: [Kind; 11] = [
    Kind::Credit,
    Kind::Whole,
    Kind::Ready,
    Kind::Part,
    Kind::Took,
    Kind::Done,
    Kind::Read,
    Kind::Atomic,
    Kind::Lost,
    Kind::Renew,
    Kind::Renewed,
];

// A kind is its index in the table that parses it.
const _: () = {
    let mut n = 0;
    while n < KINDS.len() {
        assert!(KINDS[n] as usize == n);
        n += 1;
    }
};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Purpose {
    /// An untagged message.
    #[default]
    Message = 0,
    /// A tagged message.
    Tagged,
    /// A write to registered memory.
    Write,
    /// The reply to a request.
    Reply,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    pub purpose: Purpose,
    /// Whether `data` is valid.
    pub has_data: bool,
    /// Whether the operation failed at the peer.
    pub failed: bool,
    /// Atomic operations: whether to return the old value.
    pub fetch: bool,
    /// Whether to acknowledge soon.
    pub wants_ack: bool,
    /// Atomic operations: type of the elements.
    pub datatype: u8,
    /// Atomic operations: libfabric's number.
    pub op: u8,
    /// Handle of the memory where parts are staged.
    pub handle: u16,
    pub from: Address,
    /// Incarnation of the receiver.
    pub to_incarnation: u32,
    /// Atomic operations: count of elements.
    pub count: u32,
    /// Sequence number, per sender and receiver, from 0.
    pub seq: u64,
    /// Number of messages received in order from the other direction.
    pub ack: u64,
    /// Tag, or address in registered memory.
    pub tag: u64,
    /// Key of registered memory.
    pub key: u64,
    /// The program's data.
    pub data: u64,
    /// Bytes of the whole transfer.
    pub len: u64,
    /// Number of the operation at its initiator; in a reply, that of the request.
    pub id: u64,
    /// Offset at which the part is staged.
    pub staged: u64,
    pub part_bytes: u32,
    /// Index of the part, which begins at this many times [`PART`].
    pub part: u32,
}

const HAS_DATA: u8 = 1 << 2;
const FAILED: u8 = 1 << 3;
const FETCH: u8 = 1 << 4;
const WANTS_ACK: u8 = 1 << 5;

fn word<const N: usize>(bytes: &[u8; HEAD], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

impl Head {
    /// Requests a handle of a key's memory other than this one.
    pub fn renewal(key: u64, handle: u16) -> Self {
        Self {
            kind: Kind::Renew,
            key,
            handle,
            ..Self::default()
        }
    }

    pub fn emit(&self) -> [u8; HEAD] {
        let mut out = [0; HEAD];
        let flag = |is: bool, flag: u8| if is { flag } else { 0 };
        out[0] = self.kind as u8;
        out[1] = self.purpose as u8
            | flag(self.has_data, HAS_DATA)
            | flag(self.failed, FAILED)
            | flag(self.fetch, FETCH)
            | flag(self.wants_ack, WANTS_ACK);
        out[2..4].copy_from_slice(&[self.datatype, self.op]);
        out[6..8].copy_from_slice(&self.handle.to_le_bytes());
        out[8..16].copy_from_slice(&self.from.to_bytes());
        out[16..20].copy_from_slice(&self.to_incarnation.to_le_bytes());
        out[20..24].copy_from_slice(&self.count.to_le_bytes());
        let words = [
            self.seq,
            self.ack,
            self.tag,
            self.key,
            self.data,
            self.len,
            self.id,
            self.staged,
        ];
        out[24..88].copy_from_slice(words.map(u64::to_le_bytes).as_flattened());
        out[88..92].copy_from_slice(&self.part_bytes.to_le_bytes());
        out[92..96].copy_from_slice(&self.part.to_le_bytes());
        out
    }

    /// Parses a head; `None` if invalid.
    pub fn parse(bytes: &[u8; HEAD]) -> Option<Self> {
        let is = |flag| bytes[1] & flag != 0;
        let long = |at| u64::from_le_bytes(word(bytes, at));
        let short = |at| u32::from_le_bytes(word(bytes, at));
        let head = Self {
            kind: *KINDS.get(usize::from(bytes[0]))?,
            purpose: match bytes[1] & 3 {
                0 => Purpose::Message,
                1 => Purpose::Tagged,
                2 => Purpose::Write,
                _ => Purpose::Reply,
            },
            has_data: is(HAS_DATA),
            failed: is(FAILED),
            fetch: is(FETCH),
            wants_ack: is(WANTS_ACK),
            datatype: bytes[2],
            op: bytes[3],
            handle: u16::from_le_bytes(word(bytes, 6)),
            from: Address::of_bytes(word(bytes, 8))?,
            to_incarnation: short(16),
            count: short(20),
            seq: long(24),
            ack: long(32),
            tag: long(40),
            key: long(48),
            data: long(56),
            len: long(64),
            id: long(72),
            staged: long(80),
            part_bytes: short(88),
            part: short(92),
        };
        (head.emit() == *bytes).then_some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_an_address_is_parsed() {
        let address = example().from;
        let text = "phitwire://2057.10/c0d0e0f";
        assert_eq!(address.to_string(), text);
        assert_eq!(text.parse(), Ok(address));
        for wrong in [
            "127.0.0.1",
            "phitwire://",
            "phitwire://1/2",
            "phitwire://70000.0/1",
        ] {
            assert_eq!(wrong.parse::<Address>(), Err(()), "{wrong}");
        }
    }

    fn example() -> Head {
        Head {
            kind: Kind::Ready,
            purpose: Purpose::Reply,
            has_data: true,
            failed: true,
            fetch: true,
            wants_ack: true,
            datatype: 4,
            op: 5,
            handle: 0x607,
            from: Address {
                processor: 0x809,
                member: 0x0a,
                incarnation: 0x0c0d_0e0f,
            },
            to_incarnation: 0x1011_1213,
            count: 0x1415_1617,
            seq: 18,
            ack: 19,
            tag: u64::MAX,
            key: 20,
            data: 21,
            len: 22,
            id: 23,
            staged: 24,
            part_bytes: 25,
            part: 26,
        }
    }

    #[test]
    fn heads_come_back() {
        assert_eq!(Head::parse(&example().emit()), Some(example()));
        assert_eq!(
            Head::parse(&Head::default().emit()).map(|h| h.kind),
            Some(Kind::Credit)
        );
    }

    #[test]
    fn invalid_heads_are_refused() {
        for (at, value) in [(0, 11), (1, 0x80), (4, 1), (11, 0)] {
            let mut bytes = example().emit();
            bytes[at] = value;
            assert_eq!(Head::parse(&bytes), None, "byte {at}");
        }
        assert_eq!(Address::of_bytes([0; 8]), None);
    }
}
