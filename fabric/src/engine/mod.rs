//! The operations of a domain's endpoints.
//!
//! An endpoint ([`endpoint`]) is a client of the NIC, whose commands it queues ([`outbox`]). It
//! consists of parts, and passes requests from one part to another ([`action`]). Parts use the
//! [`core`] and plain data, never another part; `tests/modules.rs` of the workspace checks that
//! modules import each other without a cycle.
//!
//! | part | contents |
//! |---|---|
//! | [`session`] | messages: sequence numbers, acknowledgements, windows, resends |
//! | [`matching`] | receives, and messages without one |
//! | [`offers`] | long transfers announced here, their stages, and [`ranges`] opened for them |
//! | [`pulls`] | long transfers fetched here |
//! | [`one_sided`] | operations that NICs carry out on opened memory ([`reach`]) |
//! | [`renewal`] | new handles of local memory, so that late puts are rejected |
//! | [`registration`] | opening and closing of memory, for which the program waits |
//! | [`requests`] | requests to peers, for what NICs do not carry out |
//! | [`serving`] | requests of peers |
//! | [`liveness`] | silent peers that operations await: probes, and giving peers up |
//!
//! | data | contents |
//! |---|---|
//! | [`core`] | what all parts use: segment, commands, [`peers`], the time ([`clock`]) |
//! | [`shared`] | what a domain's endpoints share: queues, counters, vectors, registered memory |
//! | [`wire`], [`parcel`] | messages, and those that wait to be sent |
//! | [`receives`] | receives that [`session`] keeps posted at the NIC |
//! | [`landing`] | where a message or a reply lands |
//! | [`access`], [`piece`], [`amo`] | one-sided operations, their commands, atomic operations |
//! | [`service`], [`elements`] | a peer's atomic request, by the NIC or by the program |
//! | [`slots`] | layout of the segment: receives, messages in flight, stages, fetched parts |
//!
//! * Messages between endpoints carry sequence numbers, are processed in order and exactly once,
//!   and are resent when their fate is unknown. So every request, atomic ones included, is safe to
//!   resend as long as the peer lives.
//! * No endpoint has more messages in flight to another than its share of the posted receives;
//!   acknowledgements are piggybacked, or sent alone.
//! * A short transfer is one message. A long one is announced, matched, and fetched in parts by
//!   block gets of the receiver, from the sender's memory into its own.
//! * A put that may still be in flight is repeated only once the memory has a new handle, so that
//!   NICs reject a late copy of it.
//! * Operations that NICs lack, and operations on memory that they do not reach, become requests
//!   that the peer carries out when it makes progress. It carries out atomic ones through its own
//!   NIC, so that both kinds may be mixed.

pub mod access;
pub mod action;
pub mod amo;
pub mod clock;
pub mod core;
pub mod elements;
pub mod endpoint;
pub mod landing;
pub mod liveness;
pub mod matching;
pub mod offers;
pub mod one_sided;
pub mod outbox;
pub mod parcel;
pub mod peers;
pub mod piece;
pub mod pulls;
pub mod ranges;
pub mod reach;
pub mod receives;
pub mod registration;
pub mod renewal;
pub mod requests;
pub mod service;
pub mod serving;
pub mod session;
pub mod shared;
pub mod slots;
pub mod wire;

#[cfg(test)]
pub mod tests;
