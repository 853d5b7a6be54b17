//! The data area of a packet: data, zero padding and the packet check.

use super::crc::packet_check;
use super::{EmitError, PacketError};
use crate::aries::flit::{FLIT_MASK, Flit, Head, MAX_PACKET_FLITS};
use crate::aries::set::FLIT_BYTES;

/// Maximum number of data bytes in a packet: a cache line (Cray XC white paper, "Aries NIC").
pub const MAX_DATA: usize = 64;
/// Bytes of the check.
pub(super) const CHECK_BYTES: usize = 2;
/// Mask of the check in the last flit.
const CHECK_MASK: u64 = (1 << (8 * CHECK_BYTES)) - 1;
/// Maximum number of bytes of an area, check included.
const MAX_AREA: usize = (MAX_PACKET_FLITS - super::REQUEST_HEADER_FLITS) * FLIT_BYTES;

const _: () = assert!(MAX_DATA + CHECK_BYTES == MAX_AREA, "64 bytes fill 11 flits");

/// Flits of the area of `bytes` bytes of data.
#[inline]
pub const fn area_flits(bytes: usize) -> usize {
    (bytes + CHECK_BYTES).div_ceil(FLIT_BYTES)
}

/// Bytes of data and padding in an area of `flits` flits; 0 for none.
#[inline]
pub(super) const fn capacity(flits: usize) -> usize {
    (flits * FLIT_BYTES).saturating_sub(CHECK_BYTES)
}

/// Zero bytes after `bytes` bytes of data: 0 to 5.
#[inline]
pub(super) const fn unused(bytes: usize) -> u8 {
    (capacity(area_flits(bytes)) - bytes) as u8
}

/// Writes the area of `data` after the `header` flits of `packet`, and the check of the whole
/// packet. `packet` must have exactly the length that the data need.
#[inline]
pub(super) fn write(packet: &mut [Flit], header: usize, data: &[u8]) {
    let area = &mut packet[header..];
    debug_assert!(area.len() == area_flits(data.len()));
    let (whole, rest) = data.as_chunks::<FLIT_BYTES>();
    for (flit, bytes) in area.iter_mut().zip(whole) {
        *flit = Flit::from_bytes(*bytes);
    }
    let last = match data.last_chunk() {
        Some(bytes) => Flit::from_bytes(*bytes).bits(),
        None => rest
            .iter()
            .fold(0, |bits, byte| bits << 8 | u64::from(*byte)),
    };
    // Shift out the bytes that are already in the whole flits.
    area[whole.len()] = Flit::new(last << (8 * (FLIT_BYTES - rest.len())));
    // If the data leave only one byte of their last flit, the check gets a flit of its own.
    if let Some(flit) = area.get_mut(whole.len() + 1) {
        *flit = Flit::IDLE;
    }
    let crc = packet_check(packet).computed;
    if let Some(last) = packet.last_mut() {
        *last = Flit::new(last.bits() | u64::from(crc));
    }
}

/// Reads `bytes` bytes of an area into `data`.
///
/// # Errors
/// [`PacketError::Padding`].
#[inline(always)]
pub(super) fn read(
    area: &[Flit],
    bytes: usize,
    data: &mut [u8; MAX_DATA],
) -> Result<(), PacketError> {
    debug_assert!(
        bytes <= capacity(area.len()),
        "the head allows no more data than fits"
    );
    if area.is_empty() {
        return Ok(());
    }
    let (whole, rest) = (bytes / FLIT_BYTES, bytes % FLIT_BYTES);
    let behind = &area[whole..];
    // Padding of less than a flit between the data and the check.
    let unused = FLIT_MASK >> (8 * rest);
    let padding = match behind {
        [] => return Err(PacketError::Padding),
        [last] => last.bits() & unused & !CHECK_MASK,
        [first, .., last] => first.bits() & unused | last.bits() & !CHECK_MASK,
    };
    if padding != 0 {
        return Err(PacketError::Padding);
    }
    // Four flits are three words. Store them as words, so that a later 8-byte load can be forwarded
    // from one store.
    let flit = |index: usize| area.get(index).map_or(0, |flit| flit.bits());
    let word = |at: usize| {
        let (first, turn) = (at * 4 / 3, at % 3 * 16);
        (flit(first) << (turn + 16) | flit(first + 1) >> (32 - turn)).to_be_bytes()
    };
    let (words, rest) = data[..bytes].as_chunks_mut::<8>();
    let count = words.len();
    for (at, slot) in words.iter_mut().enumerate() {
        *slot = word(at);
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&word(count)[..rest.len()]);
    }
    Ok(())
}

/// The head of a packet. Its length field must equal the number of flits.
///
/// # Errors
/// [`PacketError::NoHead`], [`PacketError::Length`].
#[inline]
pub(super) fn head_of(packet: &[Flit]) -> Result<Head, PacketError> {
    let head = packet
        .first()
        .and_then(|flit| Head::parse(*flit))
        .ok_or(PacketError::NoHead)?;
    if usize::from(head.length()) == packet.len() {
        Ok(head)
    } else {
        Err(PacketError::Length)
    }
}

/// Checks poison and CRC of a packet with `header` header flits.
///
/// # Errors
/// [`PacketError::Poisoned`], [`PacketError::Crc`].
#[inline]
pub(super) fn judge(packet: &[Flit], head: Head, header: usize) -> Result<(), PacketError> {
    if head.poisoned() {
        return Err(PacketError::Poisoned);
    }
    if packet.len() > header && !packet_check(packet).is_good() {
        return Err(PacketError::Crc);
    }
    Ok(())
}

/// The first `flits` flits of `out`.
///
/// # Errors
/// [`EmitError::BufferTooSmall`].
#[inline]
pub(super) fn room(out: &mut [Flit], flits: usize) -> Result<&mut [Flit], EmitError> {
    out.get_mut(..flits).ok_or(EmitError::BufferTooSmall)
}
