//! Requests from one part of an endpoint to another. The endpoint takes these actions in order and
//! passes each to the part that carries it out, so that no part depends on another.

use super::access::Target;
use super::landing::{Destination, Source};
use super::parcel::{End, Parcel};
use super::service::Service;
use super::shared::Failure;
use super::wire::Head;
use crate::memory::Pieces;

/// A request from one part to another. The first number of a variant is that of a peer.
#[derive(Debug)]
pub enum Action {
    // Messages.
    /// Send a message.
    Post(usize, Parcel),
    /// Send a message without data; nothing is to be done when it has been delivered.
    Send(usize, Head),
    /// The announcement of a transfer is complete: send the message that waits for it.
    Announce(usize, Head),
    /// Notify a lost peer that this endpoint has given it up.
    Notify(usize),
    /// A message arrived, in order.
    Arrived(usize, Head, Vec<u8>),
    /// The peer's program has received a message: end its operation.
    Delivered(End),
    /// The request with this number never arrived.
    RequestFailed(u64, Failure),
    /// The announcement of the transfer with this number never arrived.
    OfferFailed(u64, Failure),

    // Transfers.
    /// Announce a long transfer, and complete its operation when the peer has fetched it.
    Offer(usize, Head, Pieces, Source),
    /// Fetch an announced transfer.
    Pull(usize, Head, Destination),
    /// Tell the peer that no part of an announced transfer will be fetched, and whether that is a
    /// failure.
    Discard(usize, Head, bool),
    /// A transfer was fetched, or will not be.
    Pulled(usize, Head, Destination, Option<Failure>),

    // One-sided operations.
    /// Register local memory under a new handle, as the peer's message requests.
    Renew(usize, Head),
    /// A peer's memory has a new handle, which its message contains.
    Renewed(usize, Head),
    /// Carry out a peer's atomic request.
    Serve(Target, Service),
    /// A peer's atomic request was carried out or, if true, failed.
    Served(Service, bool),

    // Peers.
    /// A message of a lost peer arrived, so it is alive.
    LostLives(usize),
    /// A peer has given up this endpoint.
    LostBy(usize),
    /// A lost peer no longer waits for this endpoint.
    Notified(usize),
    /// The peer is lost: messages to it fail, and then, through [`Self::Forget`], everything else.
    Lose(usize, Failure),
    /// The peer is lost: all other operations that await it fail with the first reason, or with the
    /// second if they may have been carried out.
    Forget(usize, Failure, Failure),
}

// Every message passes through the queue of actions, so actions hold payloads by pointer and stay
// small.
const _: () = assert!(size_of::<Action>() <= 256);
