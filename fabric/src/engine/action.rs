//! Requests from one part of an endpoint to another. The endpoint takes these actions in order and
//! hands each to the part that carries it out, so that no part depends on another.

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
    // For messages.
    /// Send a message.
    Post(usize, Parcel),
    /// Send a message without data whose end needs no action.
    Tell(usize, Head),
    /// The announcement of a transfer is complete: send the message that waits for it.
    Announce(usize, Head),
    /// Notify a lost peer that it has been given up.
    Notify(usize),
    /// A message arrived, in order.
    Arrived(usize, Head, Vec<u8>),
    /// The peer's program has taken in a message: end its operation.
    Delivered(End),
    /// The request with this number never arrived.
    RequestFailed(u64, Failure),
    /// The announcement of the transfer with this number never arrived.
    OfferFailed(u64, Failure),

    // For transfers.
    /// Announce a long transfer, and complete its operation when it was taken.
    Offer(usize, Head, Pieces, Source),
    /// Fetch an announced transfer.
    Pull(usize, Head, Destination),
    /// Tell the peer that nothing of an announced transfer is wanted, and whether that is a
    /// failure.
    Discard(usize, Head, bool),
    /// A transfer was fetched, or will not be.
    Pulled(usize, Head, Destination, Option<Failure>),

    // For one-sided operations.
    /// Give own memory a new handle, as the peer's message requests.
    Renew(usize, Head),
    /// A peer's memory has a new handle, which its message contains.
    Renewed(usize, Head),
    /// Carry out a peer's atomic request.
    Serve(Target, Service),
    /// A peer's atomic request was carried out or, if true, failed.
    Served(Service, bool),

    // For the peers.
    /// A message of a lost peer arrived, so it is alive.
    LostLives(usize),
    /// A peer has given this endpoint up.
    LostBy(usize),
    /// A lost peer no longer waits for this endpoint.
    Notified(usize),
    /// The peer is lost: messages to it fail, and then, by [`Self::Forget`], the rest.
    Lose(usize, Failure),
    /// The peer is lost, for the first reason: all other operations that await it fail. Those that
    /// may have been carried out have the second reason.
    Forget(usize, Failure, Failure),
}

// Every message passes through the queue of actions, so actions hold payloads by pointer and stay
// small.
const _: () = assert!(size_of::<Action>() <= 256);
