//! The NIC of a BlackWidow processor.
//!
//! A [`BlackWidowNic`] connects a processor to its 1 to 4 links into the network, one per slice
//! (BlackWidow sec. 2.2). It is the [`TransferNic`] of all machines with packets of phits
//! ([`PhitTransfers`]): writes and reads of other processors' memories are puts and gets.
//!
//! - Requests use virtual channel 0 and deterministic routing with address bits 20:6 as hash bits,
//!   so that requests to one address stay in order. Responses use virtual channel 1 and adaptive
//!   routing (BlackWidow sec. 4.2, 5 and 7.8.2).
//! - The slice of a request is a hash of its address above the 64-byte block whose requests share
//!   their hash bits, so that the order per address holds across slices too ([`slice_of`]). A
//!   response takes the slice of its request.
//! - Responses are always consumed. Requests are consumed only while their responses can be sent or
//!   queued. If responses are held up, requests back up into the network; responses never wait for
//!   requests, so there is no deadlock (BlackWidow sec. 4.2).
//! - A packet that ends with `soft_error` is discarded here, at its destination (BlackWidow sec.
//!   4.3), and its requester times out.
//!
//! Nothing is allocated per message.

use phitwire_framing::yarc::maintenance::Maintenance;
use phitwire_framing::yarc::packet::{PacketBuf, Vc};

use crate::link::PhitLinkConfig;
use phitwire::nic::{Abilities, Incarnation};
use phitwire::node::PortId;
use phitwire::packets::{TransferNic, TransferNicConfig};
use phitwire::time::Duration;

mod counters;
mod transfers;

pub use counters::NicCounters;
pub use transfers::PhitTransfers;

/// Highest processor number: destinations have 15 bits, like the location and mask of root detect
/// (BlackWidow sec. 5.1).
pub const MAX_PROCESSOR: u16 = 0x7fff;
// Every addressable NIC can take part in runs.
const _: () = assert!(MAX_PROCESSOR == phitwire::nic::traffic_spec::MAX_PROCESSOR);

/// The message sizes and operations of runs.
pub const ABILITIES: Abilities = Abilities::puts_and_gets(32);

pub type BlackWidowNic = TransferNic<PhitTransfers>;
pub type NicConfig = TransferNicConfig<PhitLinkConfig>;

/// Maximum number of outstanding requests of a NIC, which leaves four bits of a transaction id for
/// the period.
pub const MAX_OUTSTANDING: u32 = BlackWidowNic::MOST_OUTSTANDING;

/// The standard configuration of the NIC of `processor`; port `i` is its link into network slice
/// `i`.
pub fn config(processor: u16, links: Vec<PhitLinkConfig>) -> NicConfig {
    NicConfig {
        number: processor,
        nics: MAX_PROCESSOR + 1,
        links,
        // Unwritten memory is not allocated.
        memory_bytes: 1 << 30,
        // At a round trip of 100 us, a million requests per second need 100 outstanding requests.
        // This is the largest value that leaves six period bits in a transaction id.
        outstanding: 1 << 14,
        answers: 64,
        // Longer than any link takes to recover from a lost frame, and short enough for interactive
        // use.
        timeout: Duration::from_ms(2_000),
        incarnation: Incarnation::default(),
        seed: Some(0),
    }
}

/// The slice for a request to `address`, if there are `slices` slices (1 to 4).
///
/// It depends only on the address bits above the 64-byte block, so requests to one address take one
/// slice and stay in order. It depends on all of those bits, so the hash bits that select the
/// uplink within a slice keep their diversity (compare BlackWidow sec. 7.8.2, on routers of
/// successive ranks).
#[inline]
pub const fn slice_of(address: u64, slices: usize) -> usize {
    let mixed = (address >> 6).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (mixed as usize * slices) >> 32
}

/// The event of a reply to a maintenance packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// The port on which the reply arrived.
    pub port: PortId,
    pub reply: Maintenance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MaintenanceError {
    #[error("port {0} does not exist")]
    Port(PortId),
    /// Packets are not queued here: repeat the call. A loaded link may have no room for a long
    /// time.
    #[error("the link has no room for the packet")]
    NoRoom,
    #[error("the packet is not a request, or its route has too many hops")]
    Route,
}

/// Sends a maintenance packet on a port of `nic`. Its reply arrives as [`Register`]. Tags and
/// timeouts are the task of the maintenance controller.
///
/// # Errors
/// See [`MaintenanceError`].
pub fn post_maintenance(
    nic: &mut BlackWidowNic,
    port: PortId,
    packet: &Maintenance,
) -> Result<(), MaintenanceError> {
    let link = nic.end_mut(port).ok_or(MaintenanceError::Port(port))?;
    let mut out = PacketBuf::new();
    if packet.operation.vc() != Vc::Request || !packet.encode(&mut out) {
        return Err(MaintenanceError::Route);
    }
    if !link.wire().can_begin(Vc::Request) {
        return Err(MaintenanceError::NoRoom);
    }
    link.push_packet(out.as_slice());
    Ok(())
}

#[cfg(test)]
mod nic_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod test_bench;
