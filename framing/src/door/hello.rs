//! Handshake of a program and a NIC: one message in each direction over the socket.
//!
//! ```text
//! hello:   0 .. 3  magic          welcome:  0 .. 3  magic
//!          4   5   version                  4   5   version
//!          6       member                   6       entry: 0, or the reason for the refusal
//!          7       zero                     7       member
//!          8 .. 15 job                      8   9   number of the NIC
//!         16 .. 23 bytes of data           10  11   bytes of its longest put
//!                                          12      operations: atomic (0), events (1), blocks (2),
//!                                                  messages (3), collectives (4)
//!                                          13      1 in a virtual lab, else 0
//!                                          14, 15  zero
//!                                          16 .. 23 bytes of data
//! ```
//! Three descriptors accompany a welcome: the [segment](super::segment)'s memory, an eventfd that
//! wakes the NIC, and a socket that becomes readable to wake the program.

use super::{EntryError, need_zeros, store, u16_at, u32_at, u64_at};

/// Length of either message in bytes.
pub const HELLO_BYTES: usize = 24;
/// Number of descriptors that accompany a welcome.
pub const DESCRIPTORS: usize = 3;
/// Requests any free member number.
pub const ANY_MEMBER: u8 = u8::MAX;
const MAGIC: u32 = u32::from_le_bytes(*b"phwD");
const VERSION: u16 = 3;

/// Admission of a program, or the reason for its refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Entry {
    /// The program is admitted.
    Welcome = 0,
    /// The NIC has the maximum number of clients.
    Full,
    /// The job already has this member at the NIC, or all members.
    MemberTaken,
    /// Another job at the NIC has the same key. Another job number gives another key.
    KeyTaken,
    /// The NIC cannot share that much memory.
    NoMemory,
    /// The NIC has no number yet, because it is a spare.
    NoNumber,
    /// The message is not a valid hello, or has an unknown version.
    NotUnderstood,
}

crate::listed!(Entry {
    Welcome = "welcome",
    Full = "full",
    MemberTaken = "member_taken",
    KeyTaken = "key_taken",
    NoMemory = "no_memory",
    NoNumber = "nameless",
    NotUnderstood = "not_understood",
});

/// The first message, from the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Member number in the job on this NIC; [`ANY_MEMBER`]: any free one.
    pub member: u8,
    /// Number of the job, known only to its programs.
    pub job: u64,
    /// Size of the requested data memory in bytes.
    pub data_bytes: u64,
}

/// Operations that a NIC supports in addition to puts and gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    /// At least some of the atomic operations.
    pub atomics: bool,
    /// Puts with an event for the target program.
    pub events: bool,
    /// Block transfers are supported.
    pub blocks: bool,
    /// Sends and receives are supported.
    pub messages: bool,
    /// Collective operations are supported.
    pub collectives: bool,
}

impl Operations {
    /// No operations besides puts and gets.
    pub const NONE: Self = Self {
        atomics: false,
        events: false,
        blocks: false,
        messages: false,
        collectives: false,
    };

    /// All of these operations.
    pub const ALL: Self = Self {
        atomics: true,
        events: true,
        blocks: true,
        messages: true,
        collectives: true,
    };

    const fn bits(self) -> u8 {
        self.atomics as u8
            | (self.events as u8) << 1
            | (self.blocks as u8) << 2
            | (self.messages as u8) << 3
            | (self.collectives as u8) << 4
    }

    const fn from_bits(bits: u8) -> Result<Self, EntryError> {
        if bits > Self::ALL.bits() {
            return Err(EntryError::Code);
        }
        Ok(Self {
            atomics: bits & 1 != 0,
            events: bits & 2 != 0,
            blocks: bits & 4 != 0,
            messages: bits & 8 != 0,
            collectives: bits & 16 != 0,
        })
    }
}

/// The NIC's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome {
    /// Admission of the program, or the reason for its refusal.
    pub entry: Entry,
    /// The program's member number in the job on this NIC.
    pub member: u8,
    /// The NIC's processor number.
    pub processor: u16,
    /// Longest put in bytes.
    pub longest_put: u16,
    /// Operations in addition to puts and gets of up to that length.
    pub operations: Operations,
    /// Whether the NIC runs in virtual time: the program then takes turns
    /// ([`TURN_AT`](super::segment::TURN_AT)).
    pub is_virtual: bool,
    /// Size of the program's data memory in bytes.
    pub data_bytes: u64,
}

fn parse_head(message: &[u8; HELLO_BYTES]) -> Result<(), EntryError> {
    match (u32_at(message, 0), u16_at(message, 4)) {
        (MAGIC, VERSION) => Ok(()),
        (MAGIC, _) => Err(EntryError::Version),
        _ => Err(EntryError::Magic),
    }
}

fn emit_head(message: &mut [u8; HELLO_BYTES]) {
    message.fill(0);
    store(message, 0, MAGIC.to_le_bytes());
    store(message, 4, VERSION.to_le_bytes());
}

impl Hello {
    /// Reads a hello.
    ///
    /// # Errors
    /// See [`EntryError`].
    pub fn parse(message: &[u8; HELLO_BYTES]) -> Result<Self, EntryError> {
        parse_head(message)?;
        need_zeros(&message[7..8])?;
        Ok(Self {
            member: message[6],
            job: u64_at(message, 8),
            data_bytes: u64_at(message, 16),
        })
    }

    /// Encodes the hello.
    pub fn emit(&self, message: &mut [u8; HELLO_BYTES]) {
        emit_head(message);
        message[6] = self.member;
        store(message, 8, self.job.to_le_bytes());
        store(message, 16, self.data_bytes.to_le_bytes());
    }
}

impl Welcome {
    /// A refusal for the reason `entry`.
    pub const fn refused(entry: Entry) -> Self {
        Self {
            entry,
            member: 0,
            processor: 0,
            longest_put: 0,
            operations: Operations::NONE,
            is_virtual: false,
            data_bytes: 0,
        }
    }

    /// Reads a welcome.
    ///
    /// # Errors
    /// See [`EntryError`].
    pub fn parse(message: &[u8; HELLO_BYTES]) -> Result<Self, EntryError> {
        parse_head(message)?;
        need_zeros(&message[14..16])?;
        let entry = Entry::ALL.get(usize::from(message[6])).copied();
        let is_virtual = match message[13] {
            0 => false,
            1 => true,
            _ => return Err(EntryError::Reserved),
        };
        Ok(Self {
            entry: entry.ok_or(EntryError::Code)?,
            member: message[7],
            processor: u16_at(message, 8),
            longest_put: u16_at(message, 10),
            operations: Operations::from_bits(message[12])?,
            is_virtual,
            data_bytes: u64_at(message, 16),
        })
    }

    /// Encodes the welcome.
    pub fn emit(&self, message: &mut [u8; HELLO_BYTES]) {
        emit_head(message);
        message[6] = self.entry as u8;
        message[7] = self.member;
        store(message, 8, self.processor.to_le_bytes());
        store(message, 10, self.longest_put.to_le_bytes());
        message[12] = self.operations.bits();
        message[13] = self.is_virtual.into();
        store(message, 16, self.data_bytes.to_le_bytes());
    }
}
