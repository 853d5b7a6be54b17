//! The interface of a link to its NIC, for any kind of packet.

use core::fmt::Debug;
use core::marker::PhantomData;

use super::counters::{NicCounting, TransferNicCounters};
use super::link::PacketEnd;
use super::packet::Packet;
use super::transfer::{Kind, Transfer};
use crate::device::DeviceEvent;
use crate::link::NodeLink;
use crate::nic::Abilities;

/// An item that arrived on a link.
#[derive(Clone, Debug)]
pub enum Arrival {
    Whole(Transfer),
    /// A transfer of which only the data was damaged.
    Damaged(Transfer),
    /// A packet that no NIC sends.
    NoTransfer,
    /// An event for the maintenance controller.
    Event(DeviceEvent),
}

/// How a kind of link carries transfers, each in as many packets, flits or phits as its machine
/// needs. A value holds a port's state of transfers that have arrived in part, besides the link's
/// input buffer.
///
/// The link keeps the order of each channel, and neither loses nor repeats transfers while it is
/// up.
pub trait TransferEnd: Debug + Default + Send + Sync + 'static {
    type Link: NodeLink;
    type Counters: NicCounting;

    /// Number of input buffer channels for transfers. The NIC receives from them in order, starting
    /// with channel 0.
    const CHANNELS: usize;
    /// Supported transfers. `max_size` is the most data that one carries: at least 32 bytes, for a
    /// traffic run's announcement, and at most [`MAX_DATA`](super::transfer::MAX_DATA).
    const ABILITIES: Abilities;
    /// Bits of a transfer's name, 5 to 64; the bits above the slot identify the period in which the
    /// request was posted: see `most_outstanding`.
    const NAME_BITS: u32 = u64::BITS;
    /// Whether [`Kind::Message`] is supported.
    const MESSAGES: bool = false;
    /// Whether all transfers to one NIC can be kept in order, not only those to one address.
    const KEEPS_ORDER: bool = true;
    /// Whether the number of a NIC never changes. Arriving transfers then name their destination,
    /// which the NIC checks.
    const FIXED_NUMBER: bool = false;
    /// Maximum number of requests that wait for a link, beyond its own buffer.
    const REQUEST_QUEUE: usize = 0;
    /// The channel of requests, if requests and replies have channels that never wait for each
    /// other. The NIC then reads no request for whose reply it has no room.
    const REQUESTS: Option<usize> = None;

    /// Selects one of `ports` ports for requests to `address`.
    #[inline]
    fn port_of(address: u64, ports: usize) -> usize {
        let _ = (address, ports);
        0
    }

    /// Whether a packet has room for a request's address and length. The caller checks that its
    /// kind and data are supported.
    #[inline]
    fn can_carry(asked: &Transfer) -> bool {
        let _ = asked;
        true
    }

    /// Returns the oldest arrival on `channel` once it is complete, and the same one until
    /// [`pop`](Self::pop). A transfer carries exactly the bytes that were sent or requested.
    fn front(
        &mut self,
        link: &mut Self::Link,
        channel: usize,
        counters: &mut Self::Counters,
    ) -> Option<Arrival>;

    /// Removes what [`front`](Self::front) last returned for `channel`.
    fn pop(&mut self, link: &mut Self::Link, channel: usize);

    /// Counts that requests, if any have arrived, must stay in the input buffer because there is no
    /// room for their replies.
    fn stalled(link: &Self::Link, counters: &mut Self::Counters) {
        let _ = (link, counters);
    }

    /// Whether a transfer of this kind that carries, or requests, `len` bytes can be sent whole
    /// now: never while the link is down.
    fn has_room(link: &Self::Link, kind: Kind, len: u8) -> bool;

    /// Sends a transfer, whose name must fit into [`NAME_BITS`](Self::NAME_BITS).
    ///
    /// # Panics
    /// If there is no room: see [`has_room`](Self::has_room).
    fn send(link: &mut Self::Link, transfer: &Transfer);
}

/// Configuration of the links that carry transfers as `E` describes.
pub(super) type ConfigOf<E> = <<E as TransferEnd>::Link as NodeLink>::Config;

/// A packet that holds a transfer, for NICs with a [`PacketEnd`].
pub trait TransferPacket: Packet {
    /// See [`TransferEnd::ABILITIES`].
    const ABILITIES: Abilities;
    /// See [`TransferEnd::NAME_BITS`].
    const NAME_BITS: u32 = u64::BITS;
    /// See [`TransferEnd::MESSAGES`].
    const MESSAGES: bool = false;

    /// Packs a transfer into a packet.
    fn pack(transfer: &Transfer) -> Self;

    /// The transfer in a packet; `None` if NICs send no such packet.
    fn unpack(&self) -> Option<Transfer>;

    /// Virtual channel on which transfers of this kind start.
    #[inline]
    fn channel(kind: Kind) -> usize {
        match Self::VCS {
            1 => 0,
            _ => Self::pack(&Transfer::new(0, kind, 0)).vc(),
        }
    }
}

/// Transfers as whole packets.
#[derive(Debug)]
pub struct PacketTransfers<P>(PhantomData<P>);

impl<P> Default for PacketTransfers<P> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<P: TransferPacket> TransferEnd for PacketTransfers<P> {
    type Link = PacketEnd<P>;
    type Counters = TransferNicCounters;

    const CHANNELS: usize = P::VCS;
    const ABILITIES: Abilities = P::ABILITIES;
    const NAME_BITS: u32 = P::NAME_BITS;
    const MESSAGES: bool = P::MESSAGES;

    #[inline]
    fn front(
        &mut self,
        link: &mut PacketEnd<P>,
        channel: usize,
        _: &mut TransferNicCounters,
    ) -> Option<Arrival> {
        let packet = link.input().front(channel)?;
        Some(packet.unpack().map_or(Arrival::NoTransfer, Arrival::Whole))
    }

    #[inline]
    fn pop(&mut self, link: &mut PacketEnd<P>, channel: usize) {
        link.input_mut().pop(channel);
    }

    #[inline]
    fn has_room(link: &PacketEnd<P>, kind: Kind, _: u8) -> bool {
        link.room(P::channel(kind)) > 0
    }

    #[inline]
    fn send(link: &mut PacketEnd<P>, transfer: &Transfer) {
        link.push(P::pack(transfer));
    }
}
