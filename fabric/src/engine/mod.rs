//! The operations of a domain's endpoints.
//!
//! An endpoint ([`endpoint`]) is a client of the NIC, whose commands it queues ([`outbox`]). Its
//! segment holds pools of slots ([`slots`]): posted receives, messages in flight, staged parts of
//! long transfers, and buffers into which such parts are fetched.
//!
//! * Messages between endpoints ([`wire`]) carry sequence numbers, are processed in order and
//!   exactly once, and are resent when their fate is unknown ([`transmit`]). So every request,
//!   atomic ones included, is safe to resend as long as the peer lives.
//! * No endpoint has more messages in flight to another than its share of the posted receives;
//!   acknowledgements are piggybacked, or sent alone.
//! * A short transfer is one message. A long one is announced, matched, and fetched in parts by
//!   block gets of the receiver, from the sender's memory into its own ([`transfers`]).
//! * Tags are matched here ([`matching`]).
//! * Silent peers that an operation depends on are probed, and given up if they do not reply
//!   ([`liveness`]).
//! * Registered memory is opened to other NICs in place ([`reach`]), so that they carry out
//!   one-sided and atomic operations ([`one_sided`]).
//! * A put that may still be in flight is repeated only once the memory has a new handle, so that
//!   what is late is rejected ([`renewal`]).
//! * Operations that NICs lack, and memory that they do not reach, become requests that the peer
//!   carries out when it makes progress ([`requests`]); atomic ones through its own NIC, so that
//!   both kinds may be mixed ([`serving`]).

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
mod tests;
