//! The payload bits of a packet as one stream, most significant bit first.

use super::crc16::PacketCrc;
use super::packet::{EopStatus, PacketBuf, SECOND_PAYLOAD_BITS, second_payload, second_phit};
use super::phit::{CONTENT_BITS, CONTENT_MASK, Phit, PhitKind};

/// Writes a packet: first head and second phit, then payload bits, then the end of packet.
///
/// The caller must not exceed [`super::packet::MAX_PACKET_PHITS`]; [`Self::close`] asserts that.
pub(crate) struct PayloadWriter<'a> {
    out: &'a mut PacketBuf,
    /// Bits not yet written, in the low `count` bits. `count` < 22 between calls.
    pending: u64,
    count: u32,
    hash: Option<u16>,
    fits: bool,
}

impl<'a> PayloadWriter<'a> {
    /// Starts a packet in `out`, which is cleared first.
    pub(crate) fn new(out: &'a mut PacketBuf, head: u32, hash: u16) -> Self {
        out.clear();
        let fits = out.push(Phit::new(PhitKind::Head, head));
        Self {
            out,
            pending: 0,
            count: 0,
            hash: Some(hash),
            fits,
        }
    }

    fn body(&mut self, content: u32) {
        self.fits &= self.out.push(Phit::new(PhitKind::Body, content));
    }

    /// Appends the low `bits` bits of `value`. `bits` is at most 41, so that with 21 pending bits
    /// everything fits the 64-bit store.
    pub(crate) fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits <= 41 && value >> bits == 0);
        self.pending = self.pending << bits | value;
        self.count += bits;
        if let Some(hash) = self.hash
            && self.count >= SECOND_PAYLOAD_BITS
        {
            self.count -= SECOND_PAYLOAD_BITS;
            let seven = (self.pending >> self.count) as u8 & 0x7f;
            self.hash = None;
            self.body(second_phit(hash, seven));
        }
        while self.hash.is_none() && self.count >= CONTENT_BITS {
            self.count -= CONTENT_BITS;
            let content = (self.pending >> self.count) as u32 & CONTENT_MASK;
            self.body(content);
        }
    }

    /// Fills the last phit with zero bits.
    pub(crate) fn pad(&mut self) {
        let room = if self.hash.is_some() {
            SECOND_PAYLOAD_BITS
        } else {
            CONTENT_BITS
        };
        if self.count > 0 || self.hash.is_some() {
            self.put(0, room - self.count);
        }
    }

    /// Pads and appends the end of packet.
    pub(crate) fn close(mut self) {
        self.pad();
        let mut crc = PacketCrc::new();
        crc.update_all(self.out.as_slice());
        let eop = crc.eop(EopStatus::Healthy);
        self.fits &= self.out.push(Phit::new(PhitKind::Eop, eop));
        debug_assert!(
            self.fits,
            "the layouts of this crate end within the longest packet"
        );
    }
}

/// Reads the payload bits of a packet after the head's three.
///
/// Reads past the end return zero bits and are reported by [`Self::finish`].
pub(crate) struct PayloadReader<'a> {
    rest: core::slice::Iter<'a, Phit>,
    pending: u64,
    count: u32,
    overrun: bool,
}

impl<'a> PayloadReader<'a> {
    /// `packet` must be a whole packet of the right shape ([`super::packet::check_shape`]).
    pub(crate) fn new(packet: &'a [Phit]) -> Self {
        let body = packet.get(1..packet.len().saturating_sub(1)).unwrap_or(&[]);
        let mut rest = body.iter();
        let (pending, count) = match rest.next() {
            Some(second) => (
                u64::from(second_payload(second.content())),
                SECOND_PAYLOAD_BITS,
            ),
            None => (0, 0),
        };
        Self {
            rest,
            pending,
            count,
            overrun: false,
        }
    }

    /// The next `bits` bits, at most 41.
    pub(crate) fn take(&mut self, bits: u32) -> u64 {
        debug_assert!(bits <= 41);
        while self.count < bits {
            let content = match self.rest.next() {
                Some(phit) => phit.content(),
                None => {
                    self.overrun = true;
                    0
                }
            };
            self.pending = self.pending << CONTENT_BITS | u64::from(content);
            self.count += CONTENT_BITS;
        }
        self.count -= bits;
        let value = self.pending >> self.count & ((1 << bits) - 1);
        self.pending &= (1 << self.count) - 1;
        value
    }

    /// Checks the rest: `Some(true)` when every unread bit is zero and less than one phit is left,
    /// `Some(false)` when padding is not zero, `None` when the packet has too many or too few
    /// phits.
    pub(crate) fn finish(self) -> Option<bool> {
        if self.overrun || self.rest.len() != 0 || self.count >= CONTENT_BITS {
            return None;
        }
        Some(self.pending == 0)
    }
}
