//! Responses: one header flit and, for reads, a data area.
//!
//! A response that also completes other requests carries their numbers as data.

use super::area::{self, CHECK_BYTES, MAX_DATA};
use super::{ECHO_BITS, EmitError, PacketError, RESPONSE_HEADER_FLITS};
use crate::aries::flit::{Flit, Head, NodeId, Routing};

/// Code of the first error.
const FIRST_ERROR: u8 = 8;
/// Flag in the code of a response: the last word of the data area is not data. The lower bits are
/// the echo.
const SHORT: u8 = 1 << ECHO_BITS;
const ECHO_MASK: u8 = SHORT - 1;
/// Length of a word in bytes; responses carry whole words.
const WORD_BYTES: usize = 4;
/// Length in bytes of the number of another completed request.
const NUMBER_BYTES: usize = 2;
/// Maximum number of flits of an area with request numbers. Such an area has an even number of
/// flits; data with [`SHORT`] never have.
const JOINED_FLITS: usize = 10;
/// Maximum number of other requests that a response completes.
pub const MAX_JOINED: usize = area::capacity(JOINED_FLITS) / NUMBER_BYTES;

const _: () = assert!(area::capacity(JOINED_FLITS) <= MAX_DATA);

const _: () = assert!(ECHO_BITS + 1 == 6, "the code of a head has 6 bits");

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Status {
    /// Done; the response carries the read data, if any.
    Done = 0,
    /// The memory domain does not exist.
    BadMdh = FIRST_ERROR,
    /// The protection key does not match the domain's.
    BadKey = 9,
    /// Part of the range is outside of the domain.
    OutOfBounds = 10,
    /// The address is not aligned as the command requires.
    Misaligned = 11,
    /// The command is not supported, or the domain does not allow it.
    Unsupported = 12,
    /// The request arrived with an invalid packet check.
    BadCrc = 13,
    /// The request arrived marked as damaged.
    Poisoned = 14,
    /// No receive is posted for the message.
    NotReady = 15,
    /// A queue or table of the target is full: try again.
    Busy = 16,
}

crate::listed!(Status {
    Done = "done",
    BadMdh = "bad_mdh",
    BadKey = "bad_key",
    OutOfBounds = "out_of_bounds",
    Misaligned = "misaligned",
    Unsupported = "unsupported",
    BadCrc = "bad_crc",
    Poisoned = "poisoned",
    NotReady = "not_ready",
    Busy = "busy",
});

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

/// The header of a response. Its data are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Response {
    /// The NIC that sent the request.
    pub destination: NodeId,
    /// Routing mode of the packet.
    pub routing: Routing,
    /// Packet id of the request.
    pub packet_id: u16,
    /// The request's echo, 5 bits.
    pub echo: u8,
    /// Result of the request. Only [`Status::Done`] may carry data.
    pub status: Status,
    /// Whether the response also completes other requests with the same source, routing and echo;
    /// then its data are [their numbers](others).
    pub joined: bool,
}

/// Writes the `numbers` of other requests, at most [`MAX_JOINED`], as data of a response to request
/// `own`. Returns the number of bytes.
pub fn write_others(own: u16, numbers: &[u16], data: &mut [u8; MAX_DATA]) -> usize {
    let numbers = &numbers[..numbers.len().min(MAX_JOINED)];
    let least = area::area_flits(numbers.len().max(1) * NUMBER_BYTES);
    let bytes = area::capacity(least.next_multiple_of(2));
    // Pad with the number of the answered request.
    let all = numbers.iter().copied().chain(core::iter::repeat(own));
    let slots = data[..bytes].as_chunks_mut::<NUMBER_BYTES>().0;
    for (slot, number) in slots.iter_mut().zip(all) {
        *slot = (number & Head::PACKET_ID_MASK).to_be_bytes();
    }
    bytes
}

/// The numbers of the other requests that a response to request `own` with these `data` completes.
#[inline]
pub fn others(own: u16, data: &[u8]) -> impl Iterator<Item = u16> {
    let numbers = data.as_chunks::<NUMBER_BYTES>().0.iter();
    numbers
        .map(|bytes| u16::from_be_bytes(*bytes) & Head::PACKET_ID_MASK)
        .filter(move |number| *number != own)
}

impl Response {
    /// A placeholder for [`read`](Self::read).
    pub const BLANK: Self = Self {
        destination: NodeId::from_bits(0),
        routing: Routing::Adaptive0,
        packet_id: 0,
        echo: 0,
        status: Status::Done,
        joined: false,
    };

    /// Flits of the response with `bytes` bytes of data. A refusal has an area of one flit for its
    /// status.
    #[inline]
    pub const fn buffer_len(&self, bytes: usize) -> usize {
        RESPONSE_HEADER_FLITS
            + match (bytes, self.status) {
                (0, Status::Done) => 0,
                (0, _) => area::area_flits(WORD_BYTES),
                (bytes, _) => area::area_flits(bytes),
            }
    }

    /// Writes the response with `data`, whole words of 4 bytes, to the start of `out`. Returns its
    /// length in flits. Fields are truncated to their widths.
    ///
    /// # Errors
    /// [`EmitError::BadDataLength`], [`EmitError::BufferTooSmall`]; `out` is then unchanged.
    #[inline(always)] // Inlined for the same reason as `read`.
    pub fn emit(&self, data: &[u8], out: &mut [Flit]) -> Result<usize, EmitError> {
        let refused = self.status != Status::Done;
        let possible = match self.joined {
            false => data.len().is_multiple_of(WORD_BYTES),
            true => is_list(data.len()) && !refused,
        };
        if data.len() > MAX_DATA || !possible || refused && !data.is_empty() {
            return Err(EmitError::BadDataLength);
        }
        let flits = self.buffer_len(data.len());
        let packet = area::room(out, flits)?;
        let is_short =
            self.joined || !data.is_empty() && usize::from(area::unused(data.len())) >= WORD_BYTES;
        let code = self.echo & ECHO_MASK | if is_short || refused { SHORT } else { 0 };
        let head = Head::new(
            true,
            flits as u8,
            self.destination,
            self.routing,
            self.packet_id,
            code,
        );
        packet[0] = head.flit();
        if refused {
            let status = u32::from(self.status as u8).to_be_bytes();
            area::write(packet, RESPONSE_HEADER_FLITS, &status);
        } else if !data.is_empty() {
            area::write(packet, RESPONSE_HEADER_FLITS, data);
        }
        Ok(flits)
    }

    /// Reads the header of a whole packet without verifying its check. Returns the number of data
    /// bytes too.
    ///
    /// # Errors
    /// [`PacketError::NoHead`], `Length`, `Direction`, `Shape`, `ReservedStatus`.
    #[inline]
    pub fn parse_header(packet: &[Flit]) -> Result<(Self, usize), PacketError> {
        let mut response = Self::BLANK;
        let bytes = response.read_header(area::head_of(packet)?, packet)?;
        Ok((response, bytes))
    }

    /// Reads the header of a packet with `head`. Returns the number of data bytes.
    #[inline(always)] // Inlined for the same reason as `read`.
    fn read_header(&mut self, head: Head, packet: &[Flit]) -> Result<usize, PacketError> {
        if !head.is_response() {
            return Err(PacketError::Direction);
        }
        let area = &packet[RESPONSE_HEADER_FLITS..];
        // Count whole words only: the remainder of an area is never data.
        let room = area::capacity(area.len()) / WORD_BYTES * WORD_BYTES;
        let is_short = head.code() & SHORT != 0;
        let joined = is_short && is_list(area::capacity(area.len()));
        let (status, bytes) = match (is_short, room) {
            _ if joined => (Status::Done, area::capacity(area.len())),
            (false, 0..=MAX_DATA) => (Status::Done, room),
            (true, 0) => return Err(PacketError::ReservedStatus),
            (true, WORD_BYTES) => (refusal(area[0])?, 0),
            (true, _) if room - WORD_BYTES <= MAX_DATA => (Status::Done, room - WORD_BYTES),
            _ => return Err(PacketError::Shape),
        };
        // Each number of words has only one valid encoding.
        if bytes > 0 && area::area_flits(bytes) != area.len() {
            return Err(PacketError::Shape);
        }
        *self = Self {
            destination: head.destination(),
            routing: head.routing(),
            packet_id: head.packet_id(),
            echo: head.code() & ECHO_MASK,
            status,
            joined,
        };
        Ok(bytes)
    }

    /// Reads a whole packet: its header, and its data into the start of `data`. Returns the header
    /// and the number of data bytes.
    ///
    /// # Errors
    /// See [`PacketError`]; all but the command can occur.
    #[inline]
    pub fn parse(packet: &[Flit], data: &mut [u8; MAX_DATA]) -> Result<(Self, usize), PacketError> {
        let mut response = Self::BLANK;
        let bytes = response.read(packet, data)?;
        Ok((response, bytes))
    }

    /// Like [`parse`](Self::parse), but writes to the caller's response: the fields of a returned
    /// tuple would go through memory and stall the following load.
    ///
    /// # Errors
    /// See [`parse`](Self::parse); the fields are then unspecified.
    #[inline(always)]
    pub fn read(
        &mut self,
        packet: &[Flit],
        data: &mut [u8; MAX_DATA],
    ) -> Result<usize, PacketError> {
        let head = area::head_of(packet)?;
        let bytes = self.read_header(head, packet)?;
        area::judge(packet, head, RESPONSE_HEADER_FLITS)?;
        if self.status == Status::Done {
            area::read(&packet[RESPONSE_HEADER_FLITS..], bytes, data)?;
        }
        Ok(bytes)
    }
}

/// Whether this many bytes can be a list of request numbers, which fills an even number of flits.
#[inline]
const fn is_list(bytes: usize) -> bool {
    let flits = area::area_flits(bytes);
    bytes > 0 && flits.is_multiple_of(2) && flits <= JOINED_FLITS && area::capacity(flits) == bytes
}

/// The status in the area of a refusal: a word, big-endian.
#[inline]
fn refusal(area: Flit) -> Result<Status, PacketError> {
    let word = area.bits() >> (8 * CHECK_BYTES);
    let error = word.checked_sub(FIRST_ERROR.into());
    error
        .and_then(|error| Status::ALL.get(1 + usize::try_from(error).ok()?))
        .copied()
        .ok_or(PacketError::ReservedStatus)
}
