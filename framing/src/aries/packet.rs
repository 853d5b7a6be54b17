//! Packets of the Aries network: requests and responses of its NICs (Cray XC white paper, "Aries
//! Performance": a 64-byte put is 14 request flits and 1 response flit, a get of 64 bytes 3 and
//! 12).
//!
//! The flit counts and the widths of most fields are public; their layout is ours
//! (`docs/guide/src/wire-format.md`):
//!
//! ```text
//! flit 0  the head, see `flit`                                             request and response
//!         47       46        29 28     17 16            8 7             0
//! flit 1 |command 6|  source   |   MDH   | echo and SSID | address 39:32 |  request
//!         47                          16 15                   0
//! flit 2 |      address 31:0            |   protection key    |            request
//! data   | bytes in order ... zero bytes ...   |   CRC-16     |            if there are data
//! ```
//!
//! A data area of n bytes and the 16-bit packet CRC fill ceil((8 n + 16) / 48) flits. The CRC is
//! the last 16 bits of the packet and covers everything before it except the fields that routers
//! change (virtual channel, non-minimal, poison). So the flits can be verified without knowing the
//! command. Packets without a data area have no packet CRC: the white paper's flit counts leave no
//! room for one.
//!
//! A response repeats the request's packet id and echo, which together identify the request for
//! longer than the twelve bits of the id alone: across restarts of the requester.

mod area;
mod command;
mod crc;
mod error;
mod request;
mod response;

pub use area::{MAX_DATA, area_flits};
pub use command::{AmoOp, Command, Operands, Width};
pub use crc::{INITIAL, POLYNOMIAL, PacketCheck, packet_check};
pub use error::{EmitError, PacketError};
pub use request::{ADDRESS_BITS, ECHO_BITS, MDH_BITS, Request, RequestView, SSID_BITS};
pub use response::{MAX_JOINED, Response, Status, others, write_others};

/// Header flits of a request.
pub const REQUEST_HEADER_FLITS: usize = 3;
/// Header flits of a response.
pub const RESPONSE_HEADER_FLITS: usize = 1;
