//! The interface of a link end to its NIC, for any kind of packet.

use super::link::{PacketEnd, PacketInput};
use super::packet::Packet;
use super::transfer::{Kind, Transfer};
use crate::link::NodeLink;
use crate::nic::Abilities;

/// Why an arrived unit is unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// NICs send nothing like it.
    NoTransfer,
    /// A transfer of which only the data was damaged.
    Damaged(Transfer),
}

/// A link end that carries transfers, each in as many packets, flits or phits as its machine needs.
/// It keeps the order of each channel, and neither loses nor repeats transfers while its link is
/// up.
pub trait TransferEnd: NodeLink {
    /// Channels of the input buffer for transfers, numbered from 0.
    const CHANNELS: usize;
    /// Supported transfers. `max_size` is the most data that one carries: at least 32 bytes, for a
    /// traffic run's announcement, and at most [`MAX_DATA`](super::transfer::MAX_DATA).
    const ABILITIES: Abilities;
    /// Bits of a transfer's name, 5 to 64; those above the slots identify the period in which the
    /// request was posted: see `most_outstanding`.
    const NAME_BITS: u32 = u64::BITS;
    /// Whether [`Kind::Message`] is supported.
    const MESSAGES: bool = false;

    /// The oldest transfer of `channel`, once complete; the same until [`pop`](Self::pop). A
    /// transfer carries the bytes sent, or as many as requested.
    fn front(input: &Self::Input, channel: usize) -> Option<Result<Transfer, Malformed>>;

    /// Removes what [`front`](Self::front) last returned for `channel`.
    fn pop(input: &mut Self::Input, channel: usize);

    /// Whether a transfer of this kind that carries, or requests, `len` bytes can be sent whole
    /// now: never while the link is down.
    fn has_room(&self, kind: Kind, len: u8) -> bool;

    /// Sends a transfer, whose name must fit into [`NAME_BITS`](Self::NAME_BITS).
    ///
    /// # Panics
    /// Without room: see [`has_room`](Self::has_room).
    fn send(&mut self, transfer: &Transfer);
}

/// A packet that holds a transfer, which makes a [`PacketEnd`] a [`TransferEnd`].
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

impl<P: TransferPacket> TransferEnd for PacketEnd<P> {
    const CHANNELS: usize = P::VCS;
    const ABILITIES: Abilities = P::ABILITIES;
    const NAME_BITS: u32 = P::NAME_BITS;
    const MESSAGES: bool = P::MESSAGES;

    #[inline]
    fn front(input: &PacketInput<P>, channel: usize) -> Option<Result<Transfer, Malformed>> {
        let packet = input.front(channel)?;
        Some(packet.unpack().ok_or(Malformed::NoTransfer))
    }

    #[inline]
    fn pop(input: &mut PacketInput<P>, channel: usize) {
        input.pop(channel);
    }

    #[inline]
    fn has_room(&self, kind: Kind, _: u8) -> bool {
        self.room(P::channel(kind)) > 0
    }

    #[inline]
    fn send(&mut self, transfer: &Transfer) {
        self.push(P::pack(transfer));
    }
}
