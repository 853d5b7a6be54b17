//! Source-routed maintenance packets: reading and writing the configuration registers of a router
//! (BlackWidow sec. 4.1: such a packet is accompanied by a routing vector; layout ours).
//!
//! ```text
//!           21    18 17            12 11             6 5              0
//! head     | hop  |r=1 a=0 h=0  v | destination, zero                 |
//! second   |  operation 3 | hops 4|            zero (15)              |
//! phit 2   | 0 (4) |    hop 2      |     hop 1      |     hop 0       |
//! phit 3   | 0 (4) |    hop 5      |     hop 4      |     hop 3       |
//! phit 4   | 0 (2) |     tag 8        |  hop 7        |    hop 6       |
//! ```
//!
//! A request continues with its return vector in the same form (with the number of return hops in
//! place of the tag); a reply has none. Then come a phit with the register address and, if there is
//! a value, three phits with it:
//!
//! ```text
//! address  | 0 (2) | status 4 |           register address 16           |
//! value    | 0 (2) |  bits 63:44 |     |  bits 43:22  |     | bits 21:0  |
//! ```
//!
//! The head's three payload bits are the hop index. The router at which the hop index equals the
//! number of hops is the destination; any other sends the packet to the port that the vector names
//! for this hop and increments the index, updating the check with [`super::crc16::CrcPatch`]. The
//! port of a hop lies within one phit, so a router needs only the phits up to that one.

use super::bits::PayloadWriter;
use super::memory::{DecodeError, healthy};
use super::packet::{
    HEAD_PAYLOAD_SHIFT, Head, PacketBuf, SECOND_PAYLOAD_BITS, Vc, hash_bits, head_payload,
    head_source_routed, second_payload,
};
use super::phit::{CONTENT_BITS, CONTENT_MASK, Phit};

/// Maximum number of hops of a routing vector.
pub const MAX_HOPS: usize = 8;
/// Maximum number of hops to a router: the eighth increment would wrap the index to 0.
pub const MAX_REQUEST_HOPS: usize = MAX_HOPS - 1;
/// Bits of a port.
pub const PORT_BITS: u32 = 6;
/// Hops in one phit of a vector.
pub const HOPS_PER_PHIT: usize = 3;
/// Phits of a vector.
pub const VECTOR_PHITS: usize = MAX_HOPS.div_ceil(HOPS_PER_PHIT);
/// Index of the first phit of the routing vector.
pub const VECTOR_AT: usize = 2;
/// Phits of a read request.
pub const READ_PHITS: usize = VECTOR_AT + 2 * VECTOR_PHITS + 1 + 1;
/// Phits of a write request.
pub const WRITE_PHITS: usize = READ_PHITS + VALUE_PHITS;
/// Phits of the reply to a read.
pub const READ_REPLY_PHITS: usize = VECTOR_AT + VECTOR_PHITS + 1 + VALUE_PHITS + 1;
/// Phits of the reply to a write.
pub const WRITE_REPLY_PHITS: usize = READ_REPLY_PHITS - VALUE_PHITS;

const VALUE_PHITS: usize = 3;
const EXTRA_SHIFT: u32 = 2 * PORT_BITS;
const EXTRA_BITS: u32 = 8;
const STATUS_SHIFT: u32 = 16;
const HOPS_BITS: u32 = 4;

const _: () = assert!(WRITE_PHITS <= super::packet::MAX_PACKET_PHITS);
const _: () = assert!(VALUE_PHITS * CONTENT_BITS as usize >= 64);

/// The path of a packet: the output port at each router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteVector {
    ports: [u8; MAX_HOPS],
    hops: u8,
}

impl RouteVector {
    /// A path through these output ports; `None` for more than [`MAX_HOPS`] or a port above 63.
    pub fn new(ports: &[u8]) -> Option<Self> {
        let mut vector = Self {
            ports: [0; MAX_HOPS],
            hops: u8::try_from(ports.len()).ok()?,
        };
        vector.ports.get_mut(..ports.len())?.copy_from_slice(ports);
        ports
            .iter()
            .all(|port| port >> PORT_BITS == 0)
            .then_some(vector)
    }

    /// The output ports in order.
    pub fn ports(&self) -> &[u8] {
        &self.ports[..usize::from(self.hops)]
    }

    /// The phits of the vector, with `extra` in the last one's free bits.
    fn emit(&self, extra: u8) -> [u32; VECTOR_PHITS] {
        let mut contents = [0; VECTOR_PHITS];
        for (hop, port) in self.ports().iter().enumerate() {
            let shift = PORT_BITS * (hop % HOPS_PER_PHIT) as u32;
            contents[hop / HOPS_PER_PHIT] |= u32::from(*port) << shift;
        }
        contents[VECTOR_PHITS - 1] |= u32::from(extra) << EXTRA_SHIFT;
        contents
    }

    /// The vector in `contents` and the extra bits; `hops` of `None` takes the number of hops from
    /// the extra bits.
    fn parse(contents: &[Phit], hops: Option<u8>) -> Result<(Self, u8), DecodeError> {
        let last = contents.last().ok_or(DecodeError::Size)?.content();
        let extra = (last >> EXTRA_SHIFT) as u8;
        let hops = hops.unwrap_or(extra);
        if usize::from(hops) > MAX_HOPS {
            return Err(DecodeError::Length);
        }
        let mut vector = Self {
            ports: [0; MAX_HOPS],
            hops,
        };
        for (hop, port) in vector.ports[..usize::from(hops)].iter_mut().enumerate() {
            *port = port_in_phit(contents[hop / HOPS_PER_PHIT].content(), hop as u8);
        }
        // Reject unused bits that are not zero: `emit` writes zeros.
        let same = vector
            .emit(extra)
            .iter()
            .zip(contents)
            .all(|(a, b)| *a == b.content());
        if same {
            Ok((vector, extra))
        } else {
            Err(DecodeError::Padding)
        }
    }
}

/// Index within the packet of the phit that holds the port of `hop` (0 to 7).
#[inline]
pub const fn vector_phit(hop: u8) -> usize {
    VECTOR_AT + hop as usize / HOPS_PER_PHIT
}

/// The port of `hop` in the content of its phit ([`vector_phit`]).
#[inline]
pub const fn port_in_phit(content: u32, hop: u8) -> u8 {
    (content >> (PORT_BITS * (hop as u32 % HOPS_PER_PHIT as u32))) as u8 & ((1 << PORT_BITS) - 1)
}

/// The number of hops in the content of the second phit of a source-routed packet.
#[inline]
pub const fn hops_in_second(content: u32) -> u8 {
    second_payload(content) & ((1 << HOPS_BITS) - 1)
}

/// The content of a head phit with its hop index incremented (modulo 8).
#[inline]
pub const fn next_hop(head_content: u32) -> u32 {
    let rest = head_content & ((1 << HEAD_PAYLOAD_SHIFT) - 1);
    rest | ((head_payload(head_content) as u32 + 1) & 7) << HEAD_PAYLOAD_SHIFT
}

/// Result of a register access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RegisterStatus {
    /// The access succeeded.
    Done = 0,
    /// No register has this address.
    Unknown = 1,
    /// The register cannot be written.
    ReadOnly = 2,
    /// Not a valid value of the register.
    BadValue = 3,
}

/// The operation of a maintenance packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Read the register; reply along the return vector.
    Read {
        /// Path of the reply.
        back: RouteVector,
    },
    /// Write the register; reply along the return vector.
    Write {
        /// Path of the reply.
        back: RouteVector,
        /// The new value.
        value: u64,
    },
    /// Reply to a read.
    ReadReply {
        /// Result of the access.
        status: RegisterStatus,
        /// Value of the register; 0 unless done.
        value: u64,
    },
    /// Reply to a write.
    WriteReply {
        /// Result of the access.
        status: RegisterStatus,
    },
}

impl Operation {
    const fn code(&self) -> u8 {
        match self {
            Self::Read { .. } => 0,
            Self::Write { .. } => 1,
            Self::ReadReply { .. } => 2,
            Self::WriteReply { .. } => 3,
        }
    }

    /// The virtual channel: requests and replies use different ones.
    pub const fn vc(&self) -> Vc {
        match self {
            Self::Read { .. } | Self::Write { .. } => Vc::Request,
            Self::ReadReply { .. } | Self::WriteReply { .. } => Vc::Response,
        }
    }
}

/// A maintenance packet with all its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Maintenance {
    /// Path of the packet.
    pub route: RouteVector,
    /// Hops already taken: 0 when sent. Modulo 8.
    pub hop: u8,
    /// Register address.
    pub register: u16,
    /// Copied to the reply.
    pub tag: u8,
    /// The request or reply.
    pub operation: Operation,
}

impl Maintenance {
    /// The reply to this request, along its return path; `None` when this is a reply.
    pub fn reply(&self, status: RegisterStatus, value: u64) -> Option<Self> {
        let (route, operation) = match self.operation {
            Operation::Read { back } => (back, Operation::ReadReply { status, value }),
            Operation::Write { back, .. } => (back, Operation::WriteReply { status }),
            Operation::ReadReply { .. } | Operation::WriteReply { .. } => return None,
        };
        Some(Self {
            route,
            hop: 0,
            operation,
            ..*self
        })
    }

    /// Writes the packet into `out`, which is cleared first. Returns `false` and writes nothing
    /// when a request has more than [`MAX_REQUEST_HOPS`] hops.
    #[must_use]
    pub fn encode(&self, out: &mut PacketBuf) -> bool {
        let request = self.operation.vc() == Vc::Request;
        if request && self.route.ports().len() > MAX_REQUEST_HOPS {
            return false;
        }
        let head = head(self.operation.vc(), self.hop).emit();
        let mut writer = PayloadWriter::new(out, head, 0);
        let second = self.operation.code() << HOPS_BITS | self.route.hops;
        writer.put(second.into(), SECOND_PAYLOAD_BITS);
        let mut phit = |content: u32| writer.put(content.into(), CONTENT_BITS);
        self.route.emit(self.tag).into_iter().for_each(&mut phit);
        let (value, status) = match self.operation {
            Operation::Read { back } => {
                back.emit(back.hops).into_iter().for_each(&mut phit);
                (None, RegisterStatus::Done)
            }
            Operation::Write { back, value } => {
                back.emit(back.hops).into_iter().for_each(&mut phit);
                (Some(value), RegisterStatus::Done)
            }
            Operation::ReadReply { status, value } => (Some(value), status),
            Operation::WriteReply { status } => (None, status),
        };
        phit(u32::from(self.register) | (status as u32) << STATUS_SHIFT);
        if let Some(value) = value {
            for shift in [44, 22, 0] {
                phit((value >> shift) as u32 & CONTENT_MASK);
            }
        }
        writer.close();
        true
    }

    /// Reads a whole packet. The check must have been verified.
    ///
    /// # Errors
    /// [`DecodeError`]; `Routing` also when the packet is not source-routed, `Length` when a vector
    /// has too many hops.
    pub fn decode(phits: &[Phit]) -> Result<Self, DecodeError> {
        healthy(phits)?;
        let (head_content, second) = (phits[0].content(), phits[1].content());
        let code = second_payload(second) >> HOPS_BITS;
        let vc = if code < 2 { Vc::Request } else { Vc::Response };
        let size = match code {
            0 => READ_PHITS,
            1 => WRITE_PHITS,
            2 => READ_REPLY_PHITS,
            3 => WRITE_REPLY_PHITS,
            _ => return Err(DecodeError::Operation),
        };
        let hop = head_payload(head_content);
        if !head_source_routed(head_content) || head(vc, hop).emit() != head_content {
            return Err(DecodeError::Routing);
        }
        if hash_bits(second) != 0 {
            return Err(DecodeError::Hash);
        }
        if phits.len() != size {
            return Err(DecodeError::Size);
        }
        let hops = hops_in_second(second);
        if vc == Vc::Request && usize::from(hops) > MAX_REQUEST_HOPS {
            return Err(DecodeError::Length);
        }
        let (vector, rest) = phits[VECTOR_AT..phits.len() - 1].split_at(VECTOR_PHITS);
        let (route, tag) = RouteVector::parse(vector, Some(hops))?;
        let (operation, register) = decode_rest(code, rest)?;
        Ok(Self {
            route,
            hop,
            register,
            tag,
            operation,
        })
    }
}

const _: () = assert!(EXTRA_SHIFT + EXTRA_BITS <= CONTENT_BITS);

const fn head(vc: Vc, hop: u8) -> Head {
    Head {
        dest: 0,
        vc,
        hashed: false,
        adaptive: false,
        source_routed: true,
        payload: hop,
    }
}

/// Reads the part after the routing vector; the number of phits agrees with `code`.
fn decode_rest(code: u8, rest: &[Phit]) -> Result<(Operation, u16), DecodeError> {
    let (back, rest) = if code < 2 {
        let (vector, rest) = rest.split_at(VECTOR_PHITS);
        (RouteVector::parse(vector, None)?.0, rest)
    } else {
        (RouteVector::default(), rest)
    };
    let (address, value) = rest.split_first().ok_or(DecodeError::Size)?;
    let status = match address.content() >> STATUS_SHIFT {
        0 => RegisterStatus::Done,
        1 if code >= 2 => RegisterStatus::Unknown,
        2 if code >= 2 => RegisterStatus::ReadOnly,
        3 if code >= 2 => RegisterStatus::BadValue,
        _ => return Err(DecodeError::Status),
    };
    let value = value.iter().try_fold(0_u128, |value, phit| {
        let value = value << CONTENT_BITS | u128::from(phit.content());
        (value >> 64 == 0).then_some(value as u64 as u128)
    });
    let value = value.ok_or(DecodeError::Padding)? as u64;
    let operation = match code {
        0 => Operation::Read { back },
        1 => Operation::Write { back, value },
        2 => Operation::ReadReply { status, value },
        _ => Operation::WriteReply { status },
    };
    Ok((operation, address.content() as u16))
}
