//! Frames of whole packets.
//!
//! ```text
//! header 20 | check 4 | control | packet, check 4 | packet, check 4 | ...
//! ```
//!
//! The first check covers header and control, each of the others its packet. Lanes carry control
//! and packets, each starting at a wire word, so that a damaged packet's bits identify the lanes to
//! blame.

use phitwire_framing::carrier::frame::{
    CHECK_BYTES, FrameError, FrameHeader, HEADER_BYTES, MIN_BYTES, PLAIN_AT, checksum, seal,
};
use phitwire_framing::carrier::lanes::Lanes;

use crate::link::MAX_VCS;
use crate::packets::packet::Packet;

/// Flag: the sender misses a packet.
const MISSING: u64 = 1;
/// Flag: the sender wants a reply.
const QUESTION: u64 = 2;

/// The control information sent along with the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Control {
    /// Number of the frame's first packet; without packets, of the first packet never sent.
    pub(crate) seq: u64,
    /// Number of the next expected packet.
    pub(crate) ack: u64,
    /// An expected packet is missing or arrived damaged.
    pub(crate) missing: bool,
    /// A probe: the sender wants a reply with the receiver's state.
    pub(crate) question: bool,
    /// Number of packets, per virtual channel, for which this end has had buffers since the session
    /// began.
    pub(crate) limits: [u64; MAX_VCS],
}

/// Length in bytes of the control, in whole wire words.
const fn control_bytes(vcs: usize, lanes: Lanes) -> usize {
    (8 * (3 + vcs)).next_multiple_of(lanes.word_bytes())
}

impl Control {
    fn emit(&self, vcs: usize, bytes: &mut [u8]) {
        let flags = u64::from(self.missing) * MISSING + u64::from(self.question) * QUESTION;
        let words = [self.seq, self.ack, flags].into_iter().chain(self.limits);
        bytes.fill(0);
        for (word, at) in words.zip(bytes.as_chunks_mut().0).take(3 + vcs) {
            *at = word.to_be_bytes();
        }
    }

    fn parse(bytes: &[u8], vcs: usize) -> Result<Self, FrameError> {
        let (words, padding) = bytes.split_at(8 * (3 + vcs));
        let word = |at: usize| words.as_chunks().0.get(at).copied();
        let word = |at: usize| word(at).map_or(0, u64::from_be_bytes);
        let flags = word(2);
        if flags & !(MISSING | QUESTION) != 0 || padding.iter().any(|byte| *byte != 0) {
            return Err(FrameError::ReservedControl);
        }
        Ok(Self {
            seq: word(0),
            ack: word(1),
            missing: flags & MISSING != 0,
            question: flags & QUESTION != 0,
            limits: core::array::from_fn(|vc| word(3 + vc)),
        })
    }
}

const _: () = assert!(PLAIN_AT + control_bytes(1, Lanes::new(1, 8)) >= MIN_BYTES);

/// Bytes of a packet with its check, in whole wire words.
const fn packet_bytes<P: Packet>() -> usize {
    (P::BYTES + CHECK_BYTES).next_multiple_of(P::LANES.word_bytes())
}

/// Length of a frame with `packets` packets.
pub(crate) const fn frame_len<P: Packet>(packets: usize) -> usize {
    PLAIN_AT + control_bytes(P::VCS, P::LANES) + packets * packet_bytes::<P>()
}

/// Packets that fit into a frame of `bytes` bytes.
pub(super) const fn max_packets<P: Packet>(bytes: usize) -> usize {
    bytes.saturating_sub(frame_len::<P>(0)) / packet_bytes::<P>()
}

/// The checksum of header and control.
fn check(frame: &[u8], control: &[u8]) -> [u8; CHECK_BYTES] {
    // The longest control has 88 bytes: a whole number of words, or padded to 90 for 24-bit words.
    const MOST: usize = HEADER_BYTES + control_bytes(MAX_VCS, Lanes::new(3, 24));
    let mut checked = [0; MOST];
    let checked = &mut checked[..HEADER_BYTES + control.len()];
    checked[..HEADER_BYTES].copy_from_slice(&frame[..HEADER_BYTES]);
    checked[HEADER_BYTES..].copy_from_slice(control);
    checksum(checked).to_be_bytes()
}

/// Writes a frame into a buffer of exactly its length, before the cable's permutation.
pub(crate) fn emit<'a, P: Packet>(
    header: &FrameHeader,
    control: &Control,
    packets: impl Iterator<Item = &'a P>,
    buf: &mut [u8],
) {
    header.emit(buf).expect("the buffer has room for a header");
    let (front, rest) = buf.split_at_mut(PLAIN_AT);
    let (words, rest) = rest.split_at_mut(control_bytes(P::VCS, P::LANES));
    control.emit(P::VCS, words);
    let sum = check(front, words);
    front[HEADER_BYTES..].copy_from_slice(&sum);
    for (packet, bytes) in packets.zip(rest.chunks_exact_mut(packet_bytes::<P>())) {
        bytes.fill(0);
        packet.emit(&mut bytes[..P::BYTES]);
        seal(bytes, P::BYTES);
    }
}

/// The control of a frame of valid length, with the cable's permutation undone.
///
/// # Errors
/// [`FrameError::BadHeaderCheck`], `ReservedControl`.
pub(super) fn control<P: Packet>(frame: &[u8]) -> Result<Control, FrameError> {
    let words = &frame[PLAIN_AT..][..control_bytes(P::VCS, P::LANES)];
    if check(frame, words) != frame[HEADER_BYTES..PLAIN_AT] {
        return Err(FrameError::BadHeaderCheck);
    }
    Control::parse(words, P::VCS)
}

/// The packets of a frame of valid length, as carried, with their checks.
pub(super) fn packets<P: Packet>(frame: &[u8]) -> impl Iterator<Item = Carried<'_>> {
    let packets = &frame[frame_len::<P>(0)..];
    packets.chunks_exact(packet_bytes::<P>()).map(Carried)
}

/// A packet as carried, with its check.
#[derive(Clone, Copy)]
pub(crate) struct Carried<'a>(&'a [u8]);

impl<'a> Carried<'a> {
    /// The packet; `None` if its check fails or the padding is not zero.
    pub(crate) fn read<P: Packet>(self) -> Option<P> {
        let (packet, rest) = self.0.split_at(P::BYTES);
        let padding = rest.strip_prefix(&checksum(packet).to_be_bytes())?;
        let good = padding.iter().all(|byte| *byte == 0);
        good.then(|| P::parse(packet))
    }

    pub(crate) fn words(self, lanes: Lanes) -> impl Iterator<Item = u32> + Clone + use<'a> {
        lanes.words(self.0)
    }
}
