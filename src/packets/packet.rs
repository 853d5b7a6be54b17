//! What a machine says of its packets to its links.

use core::fmt::Debug;

use phitwire_framing::carrier::frame::FrameKind;

/// Virtual channels of a link at most.
pub(crate) const MAX_VCS: usize = 8;
/// Bytes of a frame of Ethernet, without the headers of UDP.
pub(super) const MAX_FRAME_BYTES: usize = 1_472;

/// A packet, of which all of a machine take as much room in frames and buffers. Nothing moves
/// packets whose constants are beyond their limits:
///
/// ```compile_fail
/// use phitwire::link::LinkControlBlock;
/// use phitwire::packets::{Packet, PacketEnd};
/// use phitwire_framing::carrier::frame::FrameKind;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// struct Word;
///
/// impl Packet for Word {
///     const KIND: FrameKind = FrameKind::new(7);
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
    /// The kind of the frames that carry it.
    const KIND: FrameKind;
    /// What its links are called.
    const LINK: &'static str;
    /// Bytes of a packet in a frame, with which a frame fits into one of Ethernet.
    const BYTES: usize;
    /// Virtual channels of a link, 1 to [`MAX_VCS`].
    const VCS: usize = 1;

    /// The virtual channel that it travels on, below [`VCS`](Self::VCS).
    #[inline]
    fn vc(&self) -> usize {
        0
    }

    /// Writes it into [`BYTES`](Self::BYTES) bytes.
    fn emit(&self, bytes: &mut [u8]);

    /// The packet of as many bytes, whose check is good.
    fn parse(bytes: &[u8]) -> Self;
}
