//! Memory requests and responses of BlackWidow as packets.
//!
//! BlackWidow gives these sizes and routes: a write of 32 bytes has 6 header phits, 12 data phits
//! and the end of packet (sec. 4.3); a packet of 4 phits carries 32 payload bits (sec. 4.1);
//! requests carry address bits 20:6 as hash bits and route deterministically (sec. 5 and 7.8.2);
//! responses route adaptively (sec. 5). The fields inside are ours, chosen to meet all of these
//! sizes without a spare bit; see `docs/guide/src/wire-format.md`.
//!
//! A request stays within one naturally aligned line of 32 bytes: order per address requires equal
//! hash bits, and the byte mask of a write covers just one line.

use super::bits::{PayloadReader, PayloadWriter};
use super::packet::{
    DEST_MASK, Head, MAX_PACKET_PHITS, PacketBuf, PacketError, Vc, check_shape, eop_status,
    hash_bits,
};
use super::packet::{EopError, EopStatus};
use crate::carrier::names::reasons;

/// Length of a line in bytes: the largest request.
pub const LINE_BYTES: usize = 32;
/// Bits of an address.
pub const ADDRESS_BITS: u32 = 48;
/// Bits of a transaction id.
pub const TID_BITS: u32 = 20;
/// Lowest address bit that is carried as a hash bit (BlackWidow sec. 7.8.2: bits 20:6).
pub const HASH_SHIFT: u32 = 6;
/// Bits of a processor number.
pub const SOURCE_BITS: u32 = 15;
/// Header phits of a write, head and second phit included (BlackWidow sec. 4.3).
pub const WRITE_HEADER_PHITS: usize = 6;

const OP_WRITE: u8 = 0;
const OP_READ: u8 = 1;
const OP_WRITE_DONE: u8 = 0;
const OP_READ_DATA: u8 = 1;
const OP_REFUSED: u8 = 2;

/// Address bits 47:21, above the hash bits.
const HIGH_SHIFT: u32 = 21;
const HIGH_BITS: u32 = ADDRESS_BITS - HIGH_SHIFT;
const LEN_BITS: u32 = 5;
const STATUS_BITS: u32 = 4;
const MASK_BITS: u32 = LINE_BYTES as u32;

const fn data_phits(bytes: usize) -> usize {
    (bytes * 8).div_ceil(super::phit::CONTENT_BITS as usize)
}

/// Phits of a write of `bytes` bytes.
pub const fn write_phits(bytes: usize) -> usize {
    WRITE_HEADER_PHITS + data_phits(bytes) + 1
}

/// Phits of a read request.
pub const READ_PHITS: usize = 6;

/// Phits of the response to a read of `bytes` bytes.
pub const fn read_data_phits(bytes: usize) -> usize {
    3 + data_phits(bytes) + 1
}

// The head's three bits are the operation; the rest must fill whole phits.
const _: () = assert!(write_phits(LINE_BYTES) == MAX_PACKET_PHITS);
const _: () = assert!(
    SOURCE_BITS + TID_BITS + HIGH_BITS + 1 + MASK_BITS == 7 + 4 * 22,
    "6 header phits"
);
const _: () = assert!(
    SOURCE_BITS + TID_BITS + HIGH_BITS + 6 + LEN_BITS == 7 + 3 * 22,
    "read"
);
const _: () = assert!(
    TID_BITS + LEN_BITS + STATUS_BITS == 7 + 22,
    "response of 4 phits"
);

/// A processor's request to another one's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Stores bytes within a line.
    Write {
        /// Address of the first byte, 48 bits.
        address: u64,
        /// The data; bytes after the first `len` are zero when decoded.
        data: [u8; LINE_BYTES],
        /// Number of bytes, 1 to 32; `address % 32 + len` is at most 32.
        len: u8,
    },
    /// Loads bytes within a line.
    Read {
        /// Address of the first byte, 48 bits.
        address: u64,
        /// Number of bytes, 1 to 32; `address % 32 + len` is at most 32.
        len: u8,
    },
}

impl Request {
    /// Address of the first byte.
    pub const fn address(&self) -> u64 {
        match self {
            Self::Write { address, .. } | Self::Read { address, .. } => *address,
        }
    }

    /// Number of bytes.
    pub const fn len(&self) -> u8 {
        match self {
            Self::Write { len, .. } | Self::Read { len, .. } => *len,
        }
    }

    /// Whether the range of bytes is empty; such a request cannot be encoded.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// The request was executed.
    Done = 0,
    /// The address is outside this memory.
    OutOfRange = 1,
    /// The memory does not support the operation.
    Unsupported = 2,
    /// The memory has no room for the request now.
    Busy = 3,
}

/// The response of a memory to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Response {
    /// The write with this transaction id is in memory.
    WriteDone {
        /// Transaction id of the request, 20 bits.
        tid: u32,
        /// Result of the write.
        status: Status,
    },
    /// The bytes of a read.
    ReadData {
        /// Transaction id of the request, 20 bits.
        tid: u32,
        /// Number of bytes, 1 to 32.
        len: u8,
        /// The data; bytes after the first `len` are zero when decoded.
        data: [u8; LINE_BYTES],
    },
    /// The request was not executed.
    Refused {
        /// Transaction id of the request, 20 bits.
        tid: u32,
        /// Reason of the refusal.
        status: Status,
    },
}

/// A request with source, destination and transaction id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestPacket {
    /// Processor with the memory, 15 bits.
    pub dest: u16,
    /// Requesting processor, 15 bits: destination of the response.
    pub source: u16,
    /// Transaction id, 20 bits.
    pub tid: u32,
    /// Operation on the memory.
    pub request: Request,
}

reasons! {
    /// Why a request or response has no encoding.
    EncodeError {
        Dest: "destination has more than 15 bits",
        Source: "source has more than 15 bits",
        Tid: "transaction id has more than 20 bits",
        Address: "address has more than 48 bits",
        Length: "length is not 1 to 32 bytes",
        CrossesLine: "bytes are not within one aligned line of 32",
    }
}

/// Why phits are not a valid memory request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeError {
    /// The length, the kinds, or the end of packet is invalid.
    Packet(PacketError),
    /// The `ok` field marks the packet as damaged.
    Unhealthy(EopStatus),
    /// `v`, `h`, `a` or `r` has an invalid value.
    Routing,
    /// The operation has a reserved code.
    Operation,
    /// The hash field of a response is not zero.
    Hash,
    /// The byte mask of a write is empty or has holes.
    Mask,
    /// The range extends beyond the line.
    Length,
    /// The status has a reserved code.
    Status,
    /// The number of phits does not match the fields.
    Size,
    /// Bits after the data are not zero.
    Padding,
}

impl DecodeError {
    /// Name of the counter.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet(_) => "packet_shape",
            Self::Unhealthy(_) => "packet_unhealthy",
            Self::Routing => "packet_routing_bits",
            Self::Operation => "packet_operation",
            Self::Hash => "packet_hash_bits",
            Self::Mask => "packet_byte_mask",
            Self::Length => "packet_data_length",
            Self::Status => "packet_status",
            Self::Size => "packet_size",
            Self::Padding => "packet_padding",
        }
    }
}

impl core::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Packet(error) => return error.fmt(f),
            Self::Unhealthy(_) => "packet is marked as damaged",
            Self::Routing => "invalid v, h, a or r bit for this kind of packet",
            Self::Operation => "reserved code in the operation field",
            Self::Hash => "nonzero hash field in a response",
            Self::Mask => "byte mask is empty or not contiguous",
            Self::Length => "length field exceeds the line",
            Self::Status => "reserved code in the status field",
            Self::Size => "packet length does not match its fields",
            Self::Padding => "nonzero bits after the data",
        })
    }
}

impl core::error::Error for DecodeError {}

const fn request_head(dest: u16, op: u8) -> Head {
    Head {
        dest,
        vc: Vc::Request,
        hashed: true,
        adaptive: false,
        source_routed: false,
        payload: op,
    }
}

const fn response_head(dest: u16, op: u8) -> Head {
    Head {
        dest,
        vc: Vc::Response,
        hashed: false,
        adaptive: true,
        source_routed: false,
        payload: op,
    }
}

const fn fits(value: u64, bits: u32) -> bool {
    value >> bits == 0
}

fn put_data(writer: &mut PayloadWriter<'_>, data: &[u8]) {
    let (words, rest) = data.as_chunks::<4>();
    for word in words {
        writer.put(u64::from(u32::from_be_bytes(*word)), 32);
    }
    for byte in rest {
        writer.put(u64::from(*byte), 8);
    }
}

fn take_data(reader: &mut PayloadReader<'_>, len: usize) -> [u8; LINE_BYTES] {
    let mut data = [0; LINE_BYTES];
    let (words, rest) = data[..len].as_chunks_mut::<4>();
    for word in words {
        *word = (reader.take(32) as u32).to_be_bytes();
    }
    for byte in rest {
        *byte = reader.take(8) as u8;
    }
    data
}

/// Writes a request into `out`, which is cleared first: head to end of packet, with its check.
///
/// # Errors
/// A field is out of range; see [`EncodeError`]. `out` is then unchanged.
pub fn encode_request(
    dest: u16,
    source: u16,
    tid: u32,
    request: &Request,
    out: &mut PacketBuf,
) -> Result<(), EncodeError> {
    let (address, len) = (request.address(), usize::from(request.len()));
    let in_line = address as usize % LINE_BYTES;
    if u32::from(dest) > DEST_MASK {
        return Err(EncodeError::Dest);
    } else if u32::from(source) > DEST_MASK {
        return Err(EncodeError::Source);
    } else if !fits(u64::from(tid), TID_BITS) {
        return Err(EncodeError::Tid);
    } else if !fits(address, ADDRESS_BITS) {
        return Err(EncodeError::Address);
    } else if len == 0 || len > LINE_BYTES {
        return Err(EncodeError::Length);
    } else if in_line + len > LINE_BYTES {
        return Err(EncodeError::CrossesLine);
    }
    let hash = (address >> HASH_SHIFT) as u16 & DEST_MASK as u16;
    let op = if matches!(request, Request::Write { .. }) {
        OP_WRITE
    } else {
        OP_READ
    };
    let mut writer = PayloadWriter::new(out, request_head(dest, op).emit(), hash);
    writer.put(u64::from(source), SOURCE_BITS);
    writer.put(u64::from(tid), TID_BITS);
    writer.put(address >> HIGH_SHIFT, HIGH_BITS);
    match request {
        Request::Write { data, .. } => {
            writer.put(address >> 5 & 1, 1);
            writer.put(((1 << len) - 1) << in_line, MASK_BITS);
            put_data(&mut writer, &data[..len]);
        }
        Request::Read { .. } => {
            writer.put(address & 0x3f, 6);
            writer.put(len as u64 - 1, LEN_BITS);
        }
    }
    writer.close();
    Ok(())
}

/// Checks that phits have the shape of a packet (a head, two body phits at least, an end of packet)
/// and are not marked as damaged.
pub(super) fn healthy(phits: &[super::phit::Phit]) -> Result<(), DecodeError> {
    check_shape(phits).map_err(DecodeError::Packet)?;
    match eop_status(phits[phits.len() - 1].content()) {
        Some(EopStatus::Healthy) => Ok(()),
        Some(status) => Err(DecodeError::Unhealthy(status)),
        None => Err(DecodeError::Packet(PacketError::Eop(
            EopError::StatusReserved,
        ))),
    }
}

fn finish(reader: PayloadReader<'_>) -> Result<(), DecodeError> {
    match reader.finish() {
        Some(true) => Ok(()),
        Some(false) => Err(DecodeError::Padding),
        None => Err(DecodeError::Size),
    }
}

/// Reads a request from a whole packet. Does not verify the check, which is the link control
/// block's task ([`super::packet::check_packet`] does).
///
/// # Errors
/// See [`DecodeError`].
pub fn decode_request(phits: &[super::phit::Phit]) -> Result<RequestPacket, DecodeError> {
    healthy(phits)?;
    let head = Head::parse(phits[0].content());
    if head != request_head(head.dest, head.payload) {
        return Err(DecodeError::Routing);
    }
    let mut reader = PayloadReader::new(phits);
    let source = reader.take(SOURCE_BITS) as u16;
    let tid = reader.take(TID_BITS) as u32;
    let hash = u64::from(hash_bits(phits[1].content()));
    let line = reader.take(HIGH_BITS) << HIGH_SHIFT | hash << HASH_SHIFT;
    let request = match head.payload {
        OP_WRITE => {
            let half = reader.take(1) << 5;
            let mask = reader.take(MASK_BITS);
            let (first, len) = (mask.trailing_zeros(), mask.count_ones());
            if len == 0 || mask >> first != (1 << len) - 1 {
                return Err(DecodeError::Mask);
            }
            let data = take_data(&mut reader, len as usize);
            Request::Write {
                address: line | half | u64::from(first),
                data,
                len: len as u8,
            }
        }
        OP_READ => {
            let low = reader.take(6);
            let len = reader.take(LEN_BITS) + 1;
            if low % LINE_BYTES as u64 + len > LINE_BYTES as u64 {
                return Err(DecodeError::Length);
            }
            Request::Read {
                address: line | low,
                len: len as u8,
            }
        }
        _ => return Err(DecodeError::Operation),
    };
    finish(reader)?;
    Ok(RequestPacket {
        dest: head.dest,
        source,
        tid,
        request,
    })
}

/// Writes a response into `out`, which is cleared first: head to end of packet, with its check.
///
/// # Errors
/// A field is out of range; see [`EncodeError`]. `out` is then unchanged.
pub fn encode_response(
    dest: u16,
    response: &Response,
    out: &mut PacketBuf,
) -> Result<(), EncodeError> {
    let (op, tid, len, status) = match *response {
        Response::WriteDone { tid, status } => (OP_WRITE_DONE, tid, 1, status),
        Response::ReadData { tid, len, .. } => (OP_READ_DATA, tid, len, Status::Done),
        Response::Refused { tid, status } => (OP_REFUSED, tid, 1, status),
    };
    if u32::from(dest) > DEST_MASK {
        return Err(EncodeError::Dest);
    } else if !fits(u64::from(tid), TID_BITS) {
        return Err(EncodeError::Tid);
    } else if len == 0 || usize::from(len) > LINE_BYTES {
        return Err(EncodeError::Length);
    }
    let mut writer = PayloadWriter::new(out, response_head(dest, op).emit(), 0);
    writer.put(u64::from(tid), TID_BITS);
    writer.put(u64::from(len - 1), LEN_BITS);
    writer.put(status as u64, STATUS_BITS);
    if let Response::ReadData { data, .. } = response {
        put_data(&mut writer, &data[..usize::from(len)]);
    }
    writer.close();
    Ok(())
}

/// Reads the destination and a response from a whole packet. Does not verify the check.
///
/// # Errors
/// See [`DecodeError`].
pub fn decode_response(phits: &[super::phit::Phit]) -> Result<(u16, Response), DecodeError> {
    healthy(phits)?;
    let head = Head::parse(phits[0].content());
    if head != response_head(head.dest, head.payload) {
        return Err(DecodeError::Routing);
    }
    if hash_bits(phits[1].content()) != 0 {
        return Err(DecodeError::Hash);
    }
    let mut reader = PayloadReader::new(phits);
    let tid = reader.take(TID_BITS) as u32;
    let len = reader.take(LEN_BITS) as u8 + 1;
    let status = match reader.take(STATUS_BITS) {
        0 => Status::Done,
        1 => Status::OutOfRange,
        2 => Status::Unsupported,
        3 => Status::Busy,
        _ => return Err(DecodeError::Status),
    };
    let response = match head.payload {
        OP_WRITE_DONE => Response::WriteDone { tid, status },
        OP_READ_DATA => {
            if status != Status::Done {
                return Err(DecodeError::Status);
            }
            Response::ReadData {
                tid,
                len,
                data: take_data(&mut reader, usize::from(len)),
            }
        }
        OP_REFUSED => Response::Refused { tid, status },
        _ => return Err(DecodeError::Operation),
    };
    if head.payload != OP_READ_DATA && len != 1 {
        return Err(DecodeError::Length);
    }
    finish(reader)?;
    Ok((head.dest, response))
}
