//! Requests: three header flits and a data area.

use super::area::{self, MAX_DATA};
use super::{Command, EmitError, PacketError, REQUEST_HEADER_FLITS};
use crate::aries::flit::{FLIT_BITS, Flit, Head, NodeId, Routing};
use crate::carrier::names::bit_field;

const COMMAND_HIGH_SHIFT: u32 = 47;
const SOURCE_SHIFT: u32 = 29;
const MDH_SHIFT: u32 = 17;
const ECHO_SHIFT: u32 = 12;
const SSID_SHIFT: u32 = 8;
const ADDRESS_SHIFT: u32 = 16;
/// Bits of the command in the head.
const CODE_BITS: u32 = 6;

/// Bits of a memory domain handle.
pub const MDH_BITS: u32 = 12;
/// Bits of the echo, which the response repeats in addition to the packet id.
pub const ECHO_BITS: u32 = 5;
/// Bits of a synchronisation sequence id in a packet.
pub const SSID_BITS: u32 = 4;
/// Bits of an address.
pub const ADDRESS_BITS: u32 = 40;

const _: () = assert!(COMMAND_HIGH_SHIFT + 1 == FLIT_BITS);
const _: () = assert!(SOURCE_SHIFT + NodeId::BITS == COMMAND_HIGH_SHIFT);
const _: () = assert!(MDH_SHIFT + MDH_BITS == SOURCE_SHIFT && ECHO_SHIFT + ECHO_BITS == MDH_SHIFT);
const _: () = assert!(SSID_SHIFT + SSID_BITS == ECHO_SHIFT);
const _: () = assert!(SSID_SHIFT + 32 == ADDRESS_BITS && ADDRESS_SHIFT + 32 == FLIT_BITS);

/// Flit, shift and width of a field.
const MDH: (usize, u32, u32) = (1, MDH_SHIFT, MDH_BITS);
const ECHO: (usize, u32, u32) = (1, ECHO_SHIFT, ECHO_BITS);
const SSID: (usize, u32, u32) = (1, SSID_SHIFT, SSID_BITS);
const KEY: (usize, u32, u32) = (2, 0, ADDRESS_SHIFT);

/// The three raw header flits of a request: getters and setters without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestView([Flit; REQUEST_HEADER_FLITS]);

impl RequestView {
    /// A view of header flits.
    #[inline]
    pub const fn new(flits: [Flit; REQUEST_HEADER_FLITS]) -> Self {
        Self(flits)
    }

    /// Consumes the view and returns the flits.
    #[inline]
    pub const fn into_inner(self) -> [Flit; REQUEST_HEADER_FLITS] {
        self.0
    }

    /// The field at (flit, shift, width).
    #[inline]
    const fn get(&self, (flit, shift, bits): (usize, u32, u32)) -> u64 {
        self.0[flit].bits() >> shift & ((1 << bits) - 1)
    }

    /// Sets the field to the low bits of `value`.
    #[inline]
    const fn set(&mut self, (flit, shift, bits): (usize, u32, u32), value: u64) {
        let mask = ((1 << bits) - 1) << shift;
        self.0[flit] = Flit::new(self.0[flit].bits() & !mask | value << shift & mask);
    }

    bit_field!(get mdh, MDH, u16, "The memory domain handle, 12 bits");
    bit_field!(get echo, ECHO, u8, "The echo, returned in the response, 5 bits");
    bit_field!(get ssid, SSID, u16, "The synchronisation sequence id, 4 bits");
    bit_field!(get key, KEY, u16, "The protection key, 16 bits");
    bit_field!(set set_mdh, MDH, u16, "the memory domain handle, cut to 12 bits");
    bit_field!(set set_echo, ECHO, u8, "the echo, returned in the response, cut to 5 bits");
    bit_field!(set set_ssid, SSID, u16, "the synchronisation sequence id, cut to 4 bits");
    bit_field!(set set_key, KEY, u16, "the protection key");

    /// The command, 7 bits: three of class, four of argument.
    #[inline]
    pub const fn command(&self) -> u8 {
        (self.get((1, COMMAND_HIGH_SHIFT, 1)) << CODE_BITS | self.get((0, 0, CODE_BITS))) as u8
    }

    /// Id of the sending NIC.
    #[inline]
    pub const fn source(&self) -> NodeId {
        NodeId::from_bits(self.get((1, SOURCE_SHIFT, NodeId::BITS)) as u32)
    }

    /// The address, 40 bits.
    #[inline]
    pub const fn address(&self) -> u64 {
        self.get((1, 0, SSID_SHIFT)) << 32 | self.get((2, ADDRESS_SHIFT, 32))
    }

    /// Sets the head, including the low six bits of the command.
    #[inline]
    pub const fn set_head(&mut self, head: Head) {
        self.0[0] = head.flit();
    }

    /// Sets the high bit of the command.
    #[inline]
    pub const fn set_command_high(&mut self, high: bool) {
        self.set((1, COMMAND_HIGH_SHIFT, 1), high as u64);
    }

    /// Sets the id of the sending NIC.
    #[inline]
    pub const fn set_source(&mut self, source: NodeId) {
        self.set((1, SOURCE_SHIFT, NodeId::BITS), source.bits() as u64);
    }

    /// Sets the address, truncated to 40 bits.
    #[inline]
    pub const fn set_address(&mut self, address: u64) {
        self.set((1, 0, SSID_SHIFT), address >> 32);
        self.set((2, ADDRESS_SHIFT, 32), address & 0xffff_ffff);
    }
}

/// The header of a request. Its data are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Destination NIC.
    pub destination: NodeId,
    /// Source NIC, and destination of the response.
    pub source: NodeId,
    /// Routing mode of the packet.
    pub routing: Routing,
    /// The request's number at its source, 12 bits.
    pub packet_id: u16,
    /// Operation to execute at the destination.
    pub command: Command,
    /// Memory domain handle, 12 bits.
    pub mdh: u16,
    /// Echo, 5 bits: the response repeats it in addition to the packet id. The source defines it.
    pub echo: u8,
    /// Synchronisation sequence id: the low 4 bits of the number of the source's transaction.
    pub ssid: u16,
    /// Byte address within the memory domain, 40 bits.
    pub address: u64,
    /// Protection key, which must match that of the memory domain.
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

    /// Writes the request with `data` to the start of `out`. Returns its length in flits. Fields
    /// are truncated to their widths.
    ///
    /// # Errors
    /// See [`EmitError`]; `out` is then unchanged.
    #[inline(always)] // Otherwise the returned fields go through memory and stall.
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
        let mut view = RequestView::new([Flit::IDLE; REQUEST_HEADER_FLITS]);
        view.set_head(head);
        view.set_command_high(code >> CODE_BITS != 0);
        view.set_source(self.source);
        view.set_mdh(self.mdh);
        view.set_echo(self.echo);
        view.set_ssid(self.ssid);
        view.set_address(self.address);
        view.set_key(self.key);
        packet[..REQUEST_HEADER_FLITS].copy_from_slice(&view.into_inner());
        if flits > REQUEST_HEADER_FLITS {
            area::write(packet, REQUEST_HEADER_FLITS, data);
        }
        Ok(flits)
    }

    /// Reads the header of a whole packet and the number of data bytes, without verifying the
    /// check. That is enough to answer the sender of a damaged packet.
    ///
    /// # Errors
    /// [`PacketError::NoHead`], `Length`, `Direction`, `Shape`, `ReservedCommand`.
    #[inline]
    pub fn parse_header(packet: &[Flit]) -> Result<(Self, usize), PacketError> {
        Self::behind_head(area::head_of(packet)?, packet)
    }

    /// The header and the number of data bytes of a packet with `head`.
    #[inline(always)]
    fn behind_head(head: Head, packet: &[Flit]) -> Result<(Self, usize), PacketError> {
        if head.is_response() {
            return Err(PacketError::Direction);
        }
        let (header, area) = packet
            .split_first_chunk::<REQUEST_HEADER_FLITS>()
            .ok_or(PacketError::Shape)?;
        let view = RequestView::new(*header);
        let (command, bytes) = Command::parse(view.command(), area.len())?;
        let request = Self {
            destination: head.destination(),
            source: view.source(),
            routing: head.routing(),
            packet_id: head.packet_id(),
            command,
            mdh: view.mdh(),
            echo: view.echo(),
            ssid: view.ssid(),
            address: view.address(),
            key: view.key(),
        };
        Ok((request, bytes))
    }

    /// Reads a whole packet: its header, and its data into the start of `data`. Returns the header
    /// and the number of data bytes.
    ///
    /// # Errors
    /// See [`PacketError`]; all but the status can occur.
    #[inline]
    pub fn parse(packet: &[Flit], data: &mut [u8; MAX_DATA]) -> Result<(Self, usize), PacketError> {
        let head = area::head_of(packet)?;
        let (request, bytes) = Self::behind_head(head, packet)?;
        area::judge(packet, head, REQUEST_HEADER_FLITS)?;
        area::read(&packet[REQUEST_HEADER_FLITS..], bytes, data)?;
        Ok((request, bytes))
    }
}
