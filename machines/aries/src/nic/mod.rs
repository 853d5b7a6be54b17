//! The NIC (network interface) of an Aries node (Cray XC white paper, "Aries NIC").
//!
//! An [`AriesNic`] connects a node to the router of its blade. It turns puts, gets and atomic
//! operations on other nodes' memory into request packets of up to 64 bytes of data and matches the
//! responses. It serves the requests of others from local memory. Its block transfer engine moves
//! long messages without a processor.
//!
//! ```text
//!   post ──► requester ──────────────────────────────► request VC 0 ──► link
//!   transfer ──► block transfer engine ──► requester   response VC 4 ─► link
//!
//!   link ──► response VCs 4-7 ──► requester ──► transaction, transfer, completion queue
//!        ──► request VCs 0-3 ──► responder ──► domains, memory, AMO cache, receives ──► response
//! ```
//!
//! - A request identifies its target by node or by the job's own numbering ([`VirtualNodes`]), and
//!   memory by a handle, an offset and a key ([`Domain`], [`VirtualHandles`]). The target rejects
//!   forbidden requests and counts them by reason; the completion at the source has that reason.
//! - Up to 1,024 packets are outstanding, each with a timeout. A response is accepted only for a
//!   packet that waits for it, so that nothing completes twice; ids are quarantined after a
//!   timeout.
//! - Requests are single or part of a transaction, which has one completion for all ([`Ssid`]).
//! - Responses are always consumed. Requests are consumed only while their responses can be sent or
//!   queued. If responses are held up, requests back up into the network; responses never wait for
//!   requests, so there is no deadlock.
//! - Packets take any path by default, so they may overtake each other. [`Routing`]'s ordered modes
//!   keep the requests to one node in order.
//!
//! Nothing is allocated per message.

use phitwire::nic::{Abilities, MAX_BLOCK_SIZE, RoutingMode};

mod amo;
mod amo_cache;
mod answers;
mod block_transfer;
mod bte;
mod client_collectives;
mod client_events;
mod client_words;
mod clients;
mod collective;
mod collective_api;
mod completion;
mod config;
mod counters;
mod device;
mod domain;
mod host;
mod interface;
mod node;
mod outstanding;
mod packet_buf;
mod receive;
mod request;
mod requester;
mod responder;
mod traffic;
mod transaction;
mod transfer_slots;
mod transfer_targets;
mod virtual_handle;
mod virtual_node;

pub use amo_cache::{AMO_CACHE_ENTRIES, AmoUpdate};
pub use block_transfer::{BlockError, BlockOperation, BlockTransfer, MAX_TRANSFER_BYTES};
pub use bte::{CHANNELS, MAX_QUEUED_TRANSFERS};
pub use collective::{
    CollectiveCompletion, CollectiveFailure, CollectiveTree, Contribution, Join, JoinError,
    TreeError, TreePosition,
};
pub use completion::{Completion, Ended, Failure, Outcome, TargetEvent};
pub use config::{AriesNicConfig, AriesNicConfigBuilder, AriesNicConfigError};
pub use counters::AriesNicCounters;
pub use domain::{DOMAIN_ALIGNMENT, Domain, HANDLES, MAX_DOMAIN_BYTES, Permissions, RegisterError};
pub use host::HostTimes;
pub use node::{AriesNic, AriesNicEvent};
pub use outstanding::MAX_OUTSTANDING;
pub use phitwire::nic::{
    Collective, CollectiveReport, CollectiveSpec, CollectiveSpecError, Number, Operand, Reduce,
};
pub use phitwire_framing::aries::flit::{NodeId, Routing};
pub use phitwire_framing::aries::packet::{AmoOp, MAX_DATA, Operands, Status, Width};
pub use receive::{MAX_ARRIVING, MAX_RECEIVES, Receive};
pub use request::{Operation, Post, PostError, RemoteAddress};
pub use traffic::RUN_DOMAIN;
pub use transaction::{RemoteEvent, Ssid};
pub use virtual_handle::{VIRTUAL_HANDLE_ENTRIES, VirtualHandleError, VirtualHandles};
pub use virtual_node::{Target, VirtualNodes};

/// The message sizes, operations and path selections of runs.
pub const ABILITIES: Abilities = Abilities {
    max_size: MAX_BLOCK_SIZE,
    get_unit: 4,
    atomics: true,
    ways: RoutingMode::ALL,
};

#[cfg(test)]
mod back_to_back_tests;
#[cfg(test)]
mod collective_link_tests;
#[cfg(test)]
mod interface_tests;
#[cfg(test)]
mod restart_tests;
#[cfg(test)]
mod robustness_tests;
#[cfg(test)]
mod test_bench;
#[cfg(test)]
mod traffic_tests;
#[cfg(test)]
mod transaction_tests;
#[cfg(test)]
mod transfer_tests;
