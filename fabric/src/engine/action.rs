//! What one part of an endpoint wants of another. The endpoint takes the actions in order and
//! hands each to the part that carries it out, so that no part knows another.

use super::landing::Destination;
use super::service::Service;
use super::shared::Failure;
use super::wire::Head;

/// What one part wants of another, mostly about the peer with a number.
#[derive(Debug)]
pub enum Action {
    /// Fetch an announced transfer.
    Pull(usize, Head, Destination),
    /// Tell the peer that nothing of an announced transfer is wanted.
    Discard(usize, Head),
    /// The peer is lost: fail what awaits it.
    Lose(usize, Failure),
    /// Tell the lost peer that it is lost.
    Notify(usize),
    /// Send a message without data whose end needs no action.
    Tell(usize, Head),
    /// Give own memory a new handle, as the message asks.
    Renew(usize, Head),
    /// Own memory has a new handle, as the message says.
    Renewed(usize, Head),
    /// A peer's atomic request was carried out or, if true, failed.
    Served(Service, bool),
}
