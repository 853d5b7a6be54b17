//! The interface by which a machine describes its packets to its links.

use core::fmt::Debug;

use phitwire_framing::carrier::frame::FrameKind;
use phitwire_framing::carrier::lanes::Lanes;

/// UDP payload of an Ethernet frame in bytes.
pub(super) const MAX_FRAME_BYTES: usize = 1_472;

/// A machine's packet. All its packets take equal room in frames and buffers. Packets whose
/// constants exceed their limits do not compile:
///
/// ```compile_fail
/// use phitwire::link::NodeLink;
/// use phitwire::packets::{Packet, PacketEnd};
/// use phitwire_framing::carrier::frame::FrameKind;
/// use phitwire_framing::carrier::lanes::Lanes;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// struct Word;
///
/// impl Packet for Word {
///     const KIND: FrameKind = FrameKind::new(7);
///     const LANES: Lanes = Lanes::new(3, 24);
///     const LINK: &'static str = "words";
///     const BYTES: usize = 8;
///     const VCS: usize = 9;
///
///     fn emit(&self, _: &mut [u8]) {}
///
///     fn parse(_: &[u8]) -> Self {
///         Self
///     }
/// }
///
/// let _ = PacketEnd::<Word>::new as fn(_, _) -> _;
/// ```
pub trait Packet: Copy + Debug + Eq + Send + Sync + 'static {
    /// The kind of frames that carry it.
    const KIND: FrameKind;
    /// Lanes of its links. Each packet starts at a wire word.
    const LANES: Lanes;
    /// Name of its links.
    const LINK: &'static str;
    /// Bytes of a packet in a frame; a frame with one must fit into an Ethernet frame.
    const BYTES: usize;
    /// Virtual channels of a link, 1 to [`MAX_VCS`](crate::link::MAX_VCS).
    const VCS: usize = 1;

    /// Virtual channel of the packet, below [`VCS`](Self::VCS).
    #[inline]
    fn vc(&self) -> usize {
        0
    }

    /// Writes the packet into [`BYTES`](Self::BYTES) bytes.
    fn emit(&self, bytes: &mut [u8]);

    /// The packet in [`BYTES`](Self::BYTES) bytes, whose check holds.
    fn parse(bytes: &[u8]) -> Self;
}
