//! Requests: three header flits and a data area.

use super::area::{self, MAX_DATA};
use super::{Command, EmitError, PacketError, REQUEST_HEADER_FLITS};
use crate::flit48::{FLIT_BITS, Flit, Head, NodeId, Routing};

const COMMAND_HIGH_SHIFT: u32 = 47;
const SOURCE_SHIFT: u32 = 29;
const MDH_SHIFT: u32 = 17;
const SSID_SHIFT: u32 = 8;
const ADDRESS_SHIFT: u32 = 16;
/// Bits of the command in the head.
const CODE_BITS: u32 = 6;

/// Bits of a memory domain handle.
pub const MDH_BITS: u32 = 12;
/// Bits of a synchronisation sequence id.
pub const SSID_BITS: u32 = 9;
/// Bits of an address.
pub const ADDRESS_BITS: u32 = 40;

const _: () = assert!(COMMAND_HIGH_SHIFT + 1 == FLIT_BITS);
const _: () = assert!(SOURCE_SHIFT + NodeId::BITS == COMMAND_HIGH_SHIFT);
const _: () = assert!(MDH_SHIFT + MDH_BITS == SOURCE_SHIFT && SSID_SHIFT + SSID_BITS == MDH_SHIFT);
const _: () = assert!(SSID_SHIFT + 32 == ADDRESS_BITS && ADDRESS_SHIFT + 32 == FLIT_BITS);

/// The header of a request. Its data stand beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The network interface that the request is for.
    pub destination: NodeId,
    /// The one that sends it, and that the response goes to.
    pub source: NodeId,
    /// How its way is chosen.
    pub routing: Routing,
    /// The request's number at its source, 12 bits.
    pub packet_id: u16,
    /// What is asked for.
    pub command: Command,
    /// Memory domain handle, 12 bits.
    pub mdh: u16,
    /// Synchronisation sequence id: which transaction of the source the packet belongs to, 9 bits.
    pub ssid: u16,
    /// Byte address within the memory domain, 40 bits.
    pub address: u64,
    /// Protection key.
    pub key: u16,
}

impl Request {
    /// Flits of the request with `bytes` bytes of data.
    #[inline]
    pub const fn buffer_len(&self, bytes: usize) -> usize {
        REQUEST_HEADER_FLITS
            + if self.command.has_area(bytes) {
                area::area_flits(bytes)
            } else {
                0
            }
    }

    /// Writes the request with `data` to the start of `out` and returns its flits. Fields are cut to
    /// their widths.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is then unchanged.
    #[inline]
    pub fn emit(&self, data: &[u8], out: &mut [Flit]) -> Result<usize, EmitError> {
        let code = self.command.code(data.len())?;
        let flits = self.buffer_len(data.len());
        let packet = area::room(out, flits)?;
        let head = Head::new(
            false,
            flits as u8,
            self.destination,
            self.routing,
            self.packet_id,
            code,
        );
        let address = self.address & ((1 << ADDRESS_BITS) - 1);
        packet[0] = head.flit();
        packet[1] = Flit::new(
            u64::from(code >> CODE_BITS) << COMMAND_HIGH_SHIFT
                | u64::from(self.source.bits()) << SOURCE_SHIFT
                | u64::from(self.mdh & 0xfff) << MDH_SHIFT
                | u64::from(self.ssid & 0x1ff) << SSID_SHIFT
                | address >> 32,
        );
        packet[2] = Flit::new(address << ADDRESS_SHIFT | u64::from(self.key));
        if flits > REQUEST_HEADER_FLITS {
            area::write(packet, REQUEST_HEADER_FLITS, data);
        }
        Ok(flits)
    }

    /// The header and the number of data bytes of a whole packet, whose check is not judged: enough to
    /// answer the sender of a damaged one.
    ///
    /// # Errors
    /// [`PacketError::NoHead`], `Length`, `Direction`, `Shape`, `ReservedCommand`.
    #[inline]
    pub fn parse_header(packet: &[Flit]) -> Result<(Self, usize), PacketError> {
        let head = area::head_of(packet)?;
        if head.is_response() {
            return Err(PacketError::Direction);
        }
        let [_, second, third, area @ ..] = packet else {
            return Err(PacketError::Shape);
        };
        let (second, third) = (second.bits(), third.bits());
        let code = head.code() | ((second >> COMMAND_HIGH_SHIFT) as u8) << CODE_BITS;
        let (command, bytes) = Command::parse(code, area.len())?;
        let request = Self {
            destination: head.destination(),
            source: NodeId::from_bits((second >> SOURCE_SHIFT) as u32),
            routing: head.routing(),
            packet_id: head.packet_id(),
            command,
            mdh: (second >> MDH_SHIFT & 0xfff) as u16,
            ssid: (second >> SSID_SHIFT & 0x1ff) as u16,
            address: (second & 0xff) << 32 | third >> ADDRESS_SHIFT,
            key: third as u16,
        };
        Ok((request, bytes))
    }

    /// Reads a whole packet: its header, and its data into the front of `data`, whose number is returned.
    ///
    /// # Errors
    /// See [`PacketError`]; all but the status can occur.
    #[inline]
    pub fn parse(packet: &[Flit], data: &mut [u8; MAX_DATA]) -> Result<(Self, usize), PacketError> {
        let head = area::head_of(packet)?;
        let (request, bytes) = Self::parse_header(packet)?;
        area::judge(packet, head, REQUEST_HEADER_FLITS)?;
        area::read(&packet[REQUEST_HEADER_FLITS..], bytes, data)?;
        Ok((request, bytes))
    }
}
