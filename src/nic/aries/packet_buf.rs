//! A packet on its way through the network interface.

use phitwire_framing::flit48::{Flit, Head, MAX_PACKET_FLITS};

use crate::link::AriesInput;

/// The flits of one packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketBuf {
    flits: [Flit; MAX_PACKET_FLITS],
    len: u8,
}

/// What the front of a virtual channel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Nothing, or the beginning of a packet whose end is still to come.
    Nothing,
    /// A whole packet; it has been taken.
    Packet,
    /// A flit that begins no packet; it has been taken and thrown away.
    Stray,
}

impl PacketBuf {
    /// Nothing.
    pub(crate) const fn new() -> Self {
        Self {
            flits: [Flit::IDLE; MAX_PACKET_FLITS],
            len: 0,
        }
    }

    /// The flits.
    #[inline]
    pub(crate) fn as_slice(&self) -> &[Flit] {
        &self.flits[..usize::from(self.len)]
    }

    /// Room for any packet, for an encoder that answers how many flits it wrote.
    #[inline]
    pub(crate) fn fill<E>(
        &mut self,
        encode: impl FnOnce(&mut [Flit]) -> Result<usize, E>,
    ) -> Result<(), E> {
        self.len = encode(&mut self.flits)?.min(MAX_PACKET_FLITS) as u8;
        Ok(())
    }

    /// Takes the packet at the front of `vc`, when all of it is there.
    #[inline]
    pub(crate) fn take(&mut self, input: &mut AriesInput, vc: usize) -> Arrival {
        let Some(flit) = input.front(vc) else {
            return Arrival::Nothing;
        };
        let Some(head) = Head::parse(flit) else {
            input.pop(vc);
            return Arrival::Stray;
        };
        let flits = usize::from(head.length());
        if (input.len(vc) as usize) < flits {
            return Arrival::Nothing;
        }
        input.pop_into(vc, &mut self.flits[..flits]);
        self.len = head.length();
        Arrival::Packet
    }
}
