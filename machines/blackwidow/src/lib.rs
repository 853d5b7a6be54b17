//! Cray's BlackWidow: a folded Clos of YARC routers with sidelinks, and vector processors whose
//! network interfaces (NICs) access each other's memories.
//!
//! The paper is "The BlackWidow High-Radix Clos Network" (Scott, Abts, Kim, Dally; ISCA 2006).
//!
//! # The path of a packet
//!
//! ```text
//!   frame ──► Lcb::handle_frame ──► InputQueue ──► row bus ──► row buffer ──► 8x8 subswitch
//!             parse, place, CRC     per VC, with   route to     16 phits       two-stage
//!             hand up before CRC    excision       a column     per VC         arbitration
//!
//!   frame ◄── Lcb::poll_frame ◄──── retry buffer ◄── output multiplexer ◄── column buffer
//!             cut anywhere          soft-error       whole packets,          10 phits per VC,
//!             sideband laid over    check at EOP     two-stage arbitration   one per input row
//! ```
//!
//! 1. A link frame arrives at a [`link::Lcb`]. Its header carries what the line code of the real
//!    link would: which phits are heads, bodies, ends or idle, which lanes carry them, and the link
//!    and incarnations to which they belong. The sideband of its phits carries the control word:
//!    sequence number, acknowledgement, VC acks.
//! 2. Phits that continue the link's stream enter the [`link::InputQueue`] *at once*, before the
//!    packet's CRC is known (BlackWidow sec. 4.3). If the check fails, or half the packet is lost
//!    with a frame, the packet gets a `transmit_error` end. The queue removes the packet if it has
//!    not begun to flow, and otherwise forwards it as damaged.
//! 3. The routing stage of the tile ([`route`]) chooses an output column and, in the subswitch, an
//!    output row: by root detect and down route, by the deterministic hash, or adaptively.
//! 4. The packet moves phit by phit (wormhole) through row bus, row buffer, subswitch, column
//!    channel and column buffer ([`router`]). A buffer slot records the cycle from which its phit
//!    may be read, or from which its credit is back, so that wire delays cost no work.
//! 5. The output multiplexer starts a packet only when the peer has room for all of it (virtual
//!    cut-through), and pushes it into the link's retry buffer. Frames are cut from there whenever
//!    the pipeline runs empty or the frame is full.

pub mod cycle;
#[cfg(test)]
mod latency_tests;
pub mod link;
pub mod nic;
pub mod reproduce;
pub mod route;
pub mod router;
pub mod soak;
pub mod topology;

use phitwire::catalogue::{Machine, Simulation};
use phitwire::net::Family;
use phitwire_framing::yarc::frame::DataFrame;

/// This machine's entry in the list of machines.
pub static MACHINE: Machine = Machine {
    generators: &[topology::GENERATOR],
    tables: reproduce::TABLES,
    ready: topology::READY,
    frame_contents: link::frame_contents,
    soak: &soak::FAMILIES,
    simulation: Some(Simulation::of::<cycle::BlackWidow>()),
    ..Machine::new(Family::of::<topology::FoldedClos>(), &[DataFrame::LAYOUT])
};
