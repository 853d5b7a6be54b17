//! The frames of one turn, arranged so that consecutive frames of one port fit into one
//! segmentation-offload send.

use phitwire::node::PortId;

use super::UDP_MAX_PAYLOAD_BYTES;

/// Maximum number of segments of one send (`UDP_MAX_SEGMENTS` before Linux 6.10).
const MAX_SEGMENTS: usize = 64;

/// Maximum number of messages in one batch.
pub(super) const MAX_MESSAGES: usize = 128;

/// One send: one frame, or several frames of equal length of which only the last may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub port: PortId,
    /// Offset of the message in the arena.
    pub start: usize,
    /// Bytes of the message, with its Ethernet header if it has one.
    pub bytes: usize,
    /// Length of each frame but the last, in bytes.
    pub segment: usize,
    pub frames: usize,
    /// Whether another frame may still be added.
    open: bool,
}

/// A byte arena and the messages in it.
#[derive(Debug)]
pub(super) struct SendBatch {
    arena: Box<[u8]>,
    used: usize,
    messages: Vec<Message>,
}

impl SendBatch {
    /// A batch of at most `arena_bytes` bytes, which must fit the longest frame with its header.
    pub fn new(arena_bytes: usize) -> Self {
        Self {
            arena: vec![0; arena_bytes].into_boxed_slice(),
            used: 0,
            messages: Vec::with_capacity(MAX_MESSAGES),
        }
    }

    /// Whether a frame of up to `bytes` bytes still fits.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.arena.len() - self.used >= bytes && self.messages.len() < MAX_MESSAGES
    }

    /// A slot of `header + limit` bytes; the frame may use those after the header.
    pub fn room(&mut self, header: usize, limit: usize) -> &mut [u8] {
        &mut self.arena[self.used + header..self.used + header + limit]
    }

    /// Writes `header` at the start of the slot and adds the `bytes` bytes after it as a frame.
    pub fn push(&mut self, port: PortId, header: &[u8], bytes: usize, may_segment: bool) {
        let start = self.used;
        let bytes = header.len() + bytes;
        self.arena[start..start + header.len()].copy_from_slice(header);
        self.used += bytes;
        assert!(
            self.used <= self.arena.len(),
            "the frame is longer than its slot"
        );
        if let Some(last) = self.messages.last_mut()
            && last.open
            && last.port == port
            && may_segment
            && bytes <= last.segment
            && last.frames < MAX_SEGMENTS
            && last.bytes + bytes <= UDP_MAX_PAYLOAD_BYTES
        {
            last.open = bytes == last.segment;
            last.bytes += bytes;
            last.frames += 1;
            return;
        }
        let open = may_segment;
        self.messages.push(Message {
            port,
            start,
            bytes,
            segment: bytes,
            frames: 1,
            open,
        });
    }

    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub fn bytes(&self, message: &Message) -> &[u8] {
        &self.arena[message.start..message.start + message.bytes]
    }

    /// Empties the batch after the sender has sent it.
    pub fn clear(&mut self) {
        self.used = 0;
        self.messages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(batch: &mut SendBatch, port: PortId, fill: u8, bytes: usize) {
        batch.room(0, 2000)[..bytes].fill(fill);
        batch.push(port, &[], bytes, true);
    }

    #[test]
    fn equal_frames_of_a_port_share_a_message_that_a_shorter_one_closes() {
        let mut batch = SendBatch::new(1 << 16);
        for (fill, bytes) in [(1, 1000), (2, 1000), (3, 400), (4, 400), (5, 1000)] {
            push(&mut batch, 3, fill, bytes);
        }
        push(&mut batch, 4, 6, 1000);
        let shape: Vec<_> = batch
            .messages()
            .iter()
            .map(|m| (m.port, m.bytes, m.segment, m.frames))
            .collect();
        assert_eq!(
            shape,
            [
                (3, 2400, 1000, 3),
                (3, 400, 400, 1),
                (3, 1000, 1000, 1),
                (4, 1000, 1000, 1)
            ]
        );
        let first = batch.bytes(&batch.messages()[0]);
        assert!(first[..1000].iter().all(|&b| b == 1) && first[2000..].iter().all(|&b| b == 3));
    }

    #[test]
    fn no_message_exceeds_a_datagram_or_the_segment_limit() {
        let mut batch = SendBatch::new(1 << 18);
        for _ in 0..100 {
            push(&mut batch, 0, 1, 300);
        }
        for _ in 0..60 {
            push(&mut batch, 0, 1, 1400);
        }
        assert_eq!(
            batch.messages().iter().map(|m| m.frames).sum::<usize>(),
            160
        );
        for message in batch.messages() {
            assert!(message.frames <= MAX_SEGMENTS && message.bytes <= UDP_MAX_PAYLOAD_BYTES);
        }
    }

    #[test]
    fn headers_stand_in_front_of_every_frame_and_forbid_segments() {
        let mut batch = SendBatch::new(1 << 12);
        for fill in [7, 8] {
            batch.room(2, 100)[..10].fill(fill);
            batch.push(0, &[0xaa, 0xbb], 10, false);
        }
        let second = batch.messages()[1];
        assert_eq!(batch.bytes(&second)[..4], [0xaa, 0xbb, 8, 8]);
        assert!(!batch.has_room(1 << 12) && batch.has_room(100));
        batch.clear();
        assert!(batch.has_room(1 << 12) && batch.messages().is_empty());
    }
}
