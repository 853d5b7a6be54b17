//! What a network interface needs of its link end, whatever the link carries.

use super::link::{PacketEnd, PacketInput};
use super::packet::Packet;
use super::transfer::{Kind, Transfer};
use crate::device::LinkEnd;
use crate::nic::Abilities;

/// What came, and cannot be taken for what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing that network interfaces send.
    NoTransfer,
    /// A transfer of which what it carries was damaged on its way, and nothing else.
    Damaged(Transfer),
}

/// A link end over which transfers go, each in as many packets, flits or phits as its machine
/// needs. It keeps the order of each channel, and neither loses nor repeats what it carries while
/// its link lives.
pub trait TransferEnd: LinkEnd {
    /// Channels of the input buffer that transfers come on, with numbers from 0 on.
    const CHANNELS: usize;
    /// What transfers can be. `max_size` is what one carries at most: 32 bytes for the announcement
    /// of a traffic run, and no more than [`MAX_DATA`](super::transfer::MAX_DATA).
    const ABILITIES: Abilities;
    /// Bits of the name of a transfer, 5 to 64, of which those above the slots of requests say when
    /// the request was posted: see [`most_outstanding`](super::most_outstanding).
    const NAME_BITS: u32 = u64::BITS;
    /// Whether there is [`Kind::Message`].
    const MESSAGES: bool = false;

    /// The oldest transfer of `channel`, once all of it has come; what it goes on saying until
    /// [`pop`](Self::pop). A transfer has the bytes that were sent, or as many as were asked for.
    fn front(input: &Self::Input, channel: usize) -> Option<Result<Transfer, Malformed>>;

    /// Takes out of the input buffer what [`front`](Self::front) has said last of `channel`.
    fn pop(input: &mut Self::Input, channel: usize);

    /// Whether a transfer of this kind can be sent whole now that carries, or asks for, `len` bytes:
    /// never while the link is down.
    fn has_room(&self, kind: Kind, len: u8) -> bool;

    /// Sends a transfer, whose name fits into [`NAME_BITS`](Self::NAME_BITS).
    ///
    /// # Panics
    /// Without [`has_room`](Self::has_room) for it.
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

    /// The packet of a transfer.
    fn pack(transfer: &Transfer) -> Self;

    /// The transfer of a packet; `None` if network interfaces send no such packet.
    fn unpack(&self) -> Option<Transfer>;

    /// The virtual channel that transfers of this kind begin on.
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
