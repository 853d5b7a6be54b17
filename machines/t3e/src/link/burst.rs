//! Bursts as packets of the core's link end.

use phitwire_framing::carrier::frame::FrameKind;
use phitwire_framing::carrier::lanes::Lanes;
use phitwire_framing::t3e::burst::Burst;

use super::config::CARRIER_LANES;
use phitwire::packets::Packet;

/// A burst as a [`Packet`]. It wraps the type of `framing`, since a crate can implement a foreign
/// trait only for a type of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstPacket(pub Burst);

impl Packet for BurstPacket {
    const KIND: FrameKind = Burst::KIND;
    const LANES: Lanes = CARRIER_LANES;
    const LINK: &'static str = "T3E";
    const BYTES: usize = Burst::BYTES;

    #[inline]
    fn emit(&self, bytes: &mut [u8]) {
        let bytes = bytes.first_chunk_mut();
        self.0
            .emit(bytes.expect("a link end hands over BYTES bytes"));
    }

    #[inline]
    fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.first_chunk();
        Self(Burst::parse(
            bytes.expect("a link end hands over BYTES bytes"),
        ))
    }
}
