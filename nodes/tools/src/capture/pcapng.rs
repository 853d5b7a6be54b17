//! Blocks of pcapng files (draft-ietf-opsawg-pcapng): one section, interfaces, frames, statistics.
//!
//! Writes only the blocks needed for captures of links, and reads nothing. Hand-written because the
//! existing crates build an owned value for every frame, and on little-endian processors swap the
//! halves of the timestamps in statistics.

/// First word of every section, in the byte order of the writing machine.
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const OPT_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
const EPB_FLAGS: u16 = 2;
const ISB_START: u16 = 2;
const ISB_END: u16 = 3;
const ISB_RECEIVED: u16 = 4;
const ISB_OS_DROPPED: u16 = 7;

/// Resolution of timestamps: 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Link type of the interfaces (LINKTYPE_ETHERNET).
const ETHERNET: u16 = 1;

/// Bytes of a statistics block.
pub const STATISTICS_BYTES: u64 = 76;

/// Direction of a frame where it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameDirection {
    /// Into the node.
    In = 1,
    /// Out of the node.
    Out = 2,
}

/// Final statistics of one interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// When the capture began, in nanoseconds since 1970.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// Frames written.
    pub frames: u64,
    /// Messages that the kernel dropped for lack of room.
    pub dropped: u64,
}

/// A block being appended to a buffer.
struct Block<'a> {
    out: &'a mut Vec<u8>,
    begin: usize,
}

impl<'a> Block<'a> {
    fn new(out: &'a mut Vec<u8>, kind: u32) -> Self {
        let begin = out.len();
        out.extend(kind.to_ne_bytes());
        out.extend([0; 4]);
        Self { out, begin }
    }

    fn word(&mut self, word: u32) {
        self.out.extend(word.to_ne_bytes());
    }

    /// Writes a timestamp as two words, the high one first in either byte order.
    fn time(&mut self, ns: u64) {
        self.word((ns >> 32) as u32);
        self.word(ns as u32);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        let zeros = bytes.len().next_multiple_of(4) - bytes.len();
        self.out.extend(&[0; 4][..zeros]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Our names are shorter than the longest option; longer values are truncated.
        let value = &value[..value.len().min(u16::MAX.into())];
        self.out.extend(code.to_ne_bytes());
        self.out.extend((value.len() as u16).to_ne_bytes());
        self.padded(value);
    }

    fn time_option(&mut self, code: u16, ns: u64) {
        let mut value = [0; 8];
        value[..4].copy_from_slice(&((ns >> 32) as u32).to_ne_bytes());
        value[4..].copy_from_slice(&(ns as u32).to_ne_bytes());
        self.option(code, &value);
    }

    fn end_options(&mut self) {
        self.option(OPT_END, &[]);
    }

    fn finish(self) {
        let length = (self.out.len() - self.begin + 4) as u32;
        self.out.extend(length.to_ne_bytes());
        self.out[self.begin + 4..self.begin + 8].copy_from_slice(&length.to_ne_bytes());
    }
}

/// Begins a section of unspecified length.
pub fn section(out: &mut Vec<u8>) {
    let mut block = Block::new(out, SECTION_HEADER);
    block.word(BYTE_ORDER_MAGIC);
    block.out.extend(1_u16.to_ne_bytes());
    block.out.extend(0_u16.to_ne_bytes());
    block.out.extend(u64::MAX.to_ne_bytes());
    let writer = concat!("phitwire ", env!("CARGO_PKG_VERSION"));
    block.option(SHB_USERAPPL, writer.as_bytes());
    block.end_options();
    block.finish();
}

/// Describes the next interface, counted from 0.
pub fn interface(out: &mut Vec<u8>, name: &str, description: &str) {
    let mut block = Block::new(out, INTERFACE_DESCRIPTION);
    block.out.extend(ETHERNET.to_ne_bytes());
    block.out.extend([0; 2]);
    // Write snap length 0, for no limit: frames are never truncated.
    block.word(0);
    block.option(IF_NAME, name.as_bytes());
    block.option(IF_DESCRIPTION, description.as_bytes());
    block.option(IF_TSRESOL, &[NANOSECONDS]);
    block.end_options();
    block.finish();
}

/// A frame of interface `interface`, at `ns` since 1970, as the concatenation of `parts`.
pub fn frame(out: &mut Vec<u8>, interface: u32, ns: u64, way: FrameDirection, parts: &[&[u8]]) {
    let length = parts.iter().map(|part| part.len()).sum::<usize>() as u32;
    let mut block = Block::new(out, ENHANCED_PACKET);
    block.word(interface);
    block.time(ns);
    block.word(length);
    block.word(length);
    for part in parts {
        block.out.extend(*part);
    }
    let zeros = length.next_multiple_of(4) - length;
    block.out.extend(&[0; 4][..zeros as usize]);
    block.option(EPB_FLAGS, &(way as u32).to_ne_bytes());
    block.end_options();
    block.finish();
}

/// The final statistics of interface `interface`.
pub fn statistics(out: &mut Vec<u8>, interface: u32, of: &Statistics) {
    let mut block = Block::new(out, INTERFACE_STATISTICS);
    block.word(interface);
    block.time(of.to_ns);
    block.time_option(ISB_START, of.from_ns);
    block.time_option(ISB_END, of.to_ns);
    let received = of.frames + of.dropped;
    block.option(ISB_RECEIVED, &received.to_ne_bytes());
    block.option(ISB_OS_DROPPED, &of.dropped.to_ne_bytes());
    block.end_options();
    block.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_their_length_at_both_ends_and_are_whole_words() {
        let mut file = Vec::new();
        section(&mut file);
        interface(&mut file, "0:r0->nic0", "r0 port 3 to nic0 port 0, as sent");
        frame(
            &mut file,
            0,
            0x1_0000_0002,
            FrameDirection::Out,
            &[&[1, 2, 3], &[4, 5]],
        );
        let before = file.len();
        statistics(&mut file, 0, &Statistics::default());
        assert_eq!((file.len() - before) as u64, STATISTICS_BYTES);
        let (mut at, mut kinds) = (0, Vec::new());
        while at < file.len() {
            let word = |at: usize| u32::from_ne_bytes(file[at..at + 4].try_into().expect("four"));
            let length = word(at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(at + length - 4) as usize, length);
            kinds.push(word(at));
            if word(at) == ENHANCED_PACKET {
                assert_eq!([word(at + 12), word(at + 16)], [1, 2], "high word first");
                assert_eq!([word(at + 20), word(at + 24)], [5, 5]);
                assert_eq!(file[at + 28..at + 36], [1, 2, 3, 4, 5, 0, 0, 0]);
            }
            at += length;
        }
        assert_eq!(kinds, [SECTION_HEADER, 1, 6, 5]);
    }
}
