//! The input buffer of an Aries port: blocks of eight flits that the virtual channels share.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, VCS};

use super::config::AriesLinkConfig;
use phitwire::kit::below;
use phitwire::kit::copy::copy_few;
use phitwire::link::{Change, ReceiveBuffer};

/// Flits of a block (the chip's input buffer has 128 blocks).
const BLOCK: usize = 8;
/// Maximum number of blocks in a packet.
const MOST_BLOCKS: u32 = MAX_PACKET_FLITS.div_ceil(BLOCK) as u32;
/// Sentinel for no block.
const NONE: u16 = u16::MAX;

/// Flits that fill one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Block([Flit; BLOCK]);

/// The flits of one virtual channel: a chain of blocks.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u16,
    last: u16,
    /// Flits read from the first block.
    out: u8,
    /// Flits written to the last block.
    written: u8,
    len: u32,
    acks: u32,
    /// Flits written since last reported to the reader.
    new: u32,
}

impl Chain {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
        out: 0,
        written: BLOCK as u8,
        len: 0,
        acks: 0,
        new: 0,
    };

    /// Whether the first block is used up.
    #[inline]
    fn is_block_out(&self) -> bool {
        usize::from(self.out) == BLOCK || self.len == 0
    }
}

/// The packet being written, or the last one written.
#[derive(Clone, Copy, Debug)]
struct Open {
    vc: u8,
    /// Missing flits; 0: no packet is open.
    left: u8,
    so_far: u8,
    /// Whether there is no room for the packet, because the peer ignored its credits.
    refused: bool,
}

impl Open {
    const NONE: Self = Self {
        vc: 0,
        left: 0,
        so_far: 0,
        refused: false,
    };
}

/// Outcome of arriving flits; idle ones are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Flits of packets written to the buffer.
    pub written: u32,
    /// Packets that they complete.
    pub packets: u32,
    /// Flits of packets without room.
    pub refused: u32,
    /// Flits in a head's position that are not a valid head.
    pub malformed: u32,
}

/// One port's input buffer, dynamically shared among eight virtual channels (XC white paper, "Aries
/// Router"; 128 blocks of 8 flits on the chip, with a private and a common part).
///
/// All flits have passed the CRC. They become visible as their sets arrive, so that a packet's head
/// may be visible before its tail arrives; the head holds the number of flits that follow.
///
/// The *sender*, which counts credits, manages private and common parts; here all channels draw on
/// the same blocks. Two blocks per channel more than the credits need make up for partly filled
/// blocks.
///
/// The write side belongs to the [`AriesLcb`](super::AriesLcb), the read side to the router core or
/// NIC. [`give_back`](phitwire::link::NodeLink::give_back) sends the credits that
/// [`take_acks`](Self::take_acks) returns.
#[derive(Clone, Debug)]
pub struct AriesInput {
    /// Blocks allocated so far: as many as the worst backlog needed.
    blocks: Vec<Block>,
    /// Successor of each block, in a channel's chain or the free list.
    next: Vec<u16>,
    /// The most recently used free block, the most likely to be in the cache.
    free: u16,
    free_blocks: u32,
    chains: [Chain; VCS],
    pending: u8,
    /// Virtual channels with unreported writes, one bit each.
    changed: u8,
    /// Virtual channels that may have acknowledgements to take, one bit each.
    freed: u8,
    open: Open,
}

impl AriesInput {
    /// An empty buffer as deep as `config` offers.
    pub fn new(config: &AriesLinkConfig) -> Self {
        Self::with_depth(config.sets.input_flits())
    }

    /// An empty buffer for `flits` flits of credit.
    ///
    /// # Panics
    /// If a longest packet does not fit, or there are more than half a million flits.
    pub fn with_depth(flits: u32) -> Self {
        assert!(
            flits as usize >= MAX_PACKET_FLITS,
            "the buffer is smaller than a packet"
        );
        let blocks = (flits as usize).div_ceil(BLOCK) + 2 * VCS;
        assert!(blocks < usize::from(NONE), "block numbers have 16 bits");
        Self {
            blocks: Vec::new(),
            next: Vec::new(),
            free: NONE,
            free_blocks: blocks as u32,
            chains: [Chain::EMPTY; VCS],
            pending: 0,
            changed: 0,
            freed: 0,
            open: Open::NONE,
        }
    }

    // Write side, for the link control block.

    /// Writes the next arrived flits, which may belong to several packets.
    pub(super) fn write(&mut self, flits: &[Flit]) -> Arrived {
        self.write_each(flits.len(), |index| flits[index])
    }

    /// Like [`Self::write`], for the `count` flits that `flit` returns by index.
    #[inline]
    pub(super) fn write_each(&mut self, count: usize, flit: impl Fn(usize) -> Flit) -> Arrived {
        let mut arrived = Arrived::default();
        let mut at = 0;
        while at < count {
            if self.open.left == 0 && !self.begin(flit(at)) {
                arrived.malformed += u32::from(flit(at) != Flit::IDLE);
                at += 1;
                continue;
            }
            let open = &mut self.open;
            let now = (count - at).min(open.left.into());
            open.left -= now as u8;
            open.so_far += now as u8;
            if open.refused {
                arrived.refused += now as u32;
            } else {
                arrived.written += now as u32;
                arrived.packets += u32::from(open.left == 0);
                let vc = open.vc;
                self.append(vc, now, |index| flit(at + index));
            }
            at += now;
        }
        arrived
    }

    /// Writes the next arrived flit, like [`Self::write`]. Returns its virtual channel, or `None`
    /// if there was no room or it should have been a head.
    // Virtual time writes flit by flit; going through `write` took 7 % of its instructions.
    #[inline]
    pub(super) fn write_one(&mut self, flit: Flit) -> Option<usize> {
        if self.open.left == 0 && !self.begin(flit) {
            return None;
        }
        let open = &mut self.open;
        open.left -= 1;
        open.so_far += 1;
        if open.refused {
            return None;
        }
        let vc = below::<VCS>(open.vc.into());
        let chain = self.appended(vc, 1);
        if usize::from(chain.written) == BLOCK {
            self.extend(vc);
        }
        let chain = &mut self.chains[vc];
        self.blocks[usize::from(chain.last)].0[usize::from(chain.written)] = flit;
        chain.written += 1;
        Some(vc)
    }

    /// Virtual channel of the open packet, and its missing flits; 0: none is open.
    #[inline]
    pub(super) const fn open(&self) -> (u8, u8) {
        (self.open.vc, self.open.left)
    }

    /// Opens the packet that begins with `first`. Returns false if that is not a valid head.
    #[inline]
    fn begin(&mut self, first: Flit) -> bool {
        let Some(head) = Head::parse(first) else {
            return false;
        };
        self.open = Open {
            vc: head.vc(),
            left: head.length(),
            so_far: 0,
            refused: !self.has_room(head.vc(), head.length()),
        };
        true
    }

    #[inline]
    fn has_room(&self, vc: u8, flits: u8) -> bool {
        if self.free_blocks >= MOST_BLOCKS {
            return true;
        }
        let left_in_block = BLOCK as u8 - self.chains[usize::from(vc)].written;
        let more = usize::from(flits.saturating_sub(left_in_block)).div_ceil(BLOCK);
        self.free_blocks >= more as u32
    }

    /// Appends flits that fit ([`Self::has_room`]).
    // Measured: without inlining, this and two other functions cost one to four percent of the
    // message rate.
    #[inline(always)]
    fn append(&mut self, vc: u8, count: usize, flit: impl Fn(usize) -> Flit) {
        let vc = below::<VCS>(usize::from(vc));
        self.appended(vc, count as u32);
        let mut at = 0;
        while at < count {
            if usize::from(self.chains[vc].written) == BLOCK {
                self.extend(vc);
            }
            let chain = &mut self.chains[vc];
            let slots = &mut self.blocks[usize::from(chain.last)].0[usize::from(chain.written)..];
            let now = (count - at).min(slots.len());
            for slot in &mut slots[..now] {
                *slot = flit(at);
                at += 1;
            }
            chain.written += now as u8;
        }
    }

    /// Counts flits that are about to be written.
    #[inline]
    fn appended(&mut self, vc: usize, flits: u32) -> &mut Chain {
        let chain = &mut self.chains[vc];
        chain.len += flits;
        chain.new = chain.new.saturating_add(flits);
        self.pending |= 1 << vc;
        self.changed |= 1 << vc;
        chain
    }

    /// Appends a free block to a channel's chain.
    #[inline(never)]
    fn extend(&mut self, vc: usize) {
        assert!(
            self.free_blocks > 0,
            "the head was accepted without enough blocks"
        );
        self.free_blocks -= 1;
        let mut block = self.free;
        if block == NONE {
            block = self.blocks.len() as u16;
            self.blocks.push(Block([Flit::IDLE; BLOCK]));
            self.next.push(NONE);
        } else {
            self.free = self.next[usize::from(block)];
            self.next[usize::from(block)] = NONE;
        }
        let chain = &mut self.chains[vc];
        if chain.first == NONE {
            chain.first = block;
            chain.out = 0;
        } else {
            self.next[usize::from(chain.last)] = block;
        }
        chain.last = block;
        chain.written = 0;
    }

    /// Ends a packet that the session left incomplete: fills the rest with ones and poisons the
    /// head if it is still in the buffer. Returns whether there was such a packet.
    ///
    /// No source, memory domain or command consists of ones, so a destination rejects even a
    /// request without data and hence without packet CRC.
    pub(super) fn cut(&mut self) -> bool {
        let Open {
            vc,
            left,
            so_far,
            refused,
        } = core::mem::replace(&mut self.open, Open::NONE);
        if left == 0 || refused {
            return left != 0;
        }
        if let Some(flit) = self.nth_last(vc.into(), so_far.into()) {
            *flit = Head::parse(*flit).map_or(*flit, |head| head.with_poison().flit());
        }
        self.append(vc, left.into(), |_| Flit::new(u64::MAX));
        true
    }

    /// The flit that is `nth` from the end of those written to `vc`, if still in the buffer.
    fn nth_last(&mut self, vc: usize, nth: u32) -> Option<&mut Flit> {
        let chain = &self.chains[vc];
        let position = usize::from(chain.out) + chain.len.checked_sub(nth)? as usize;
        let block =
            (0..position / BLOCK).fold(chain.first, |block, _| self.next[usize::from(block)]);
        Some(&mut self.blocks[usize::from(block)].0[position % BLOCK])
    }

    /// Prepares for a new session: flits still queued count against the credits that the peer will
    /// get. Returns their number per virtual channel.
    ///
    /// # Panics
    /// If a packet is open.
    pub(super) fn restart(&mut self) -> [u32; VCS] {
        assert!(
            self.open.left == 0,
            "the link control block ends an open packet first"
        );
        self.chains.each_mut().map(|chain| {
            chain.acks = 0;
            chain.len
        })
    }

    // Read side, for the router core and the NIC.

    /// Virtual channels with flits, one bit each.
    #[inline]
    pub fn pending_vcs(&self) -> u8 {
        self.pending
    }

    /// The next flit of `vc`, without taking it.
    #[inline]
    pub fn front(&self, vc: usize) -> Option<Flit> {
        let chain = &self.chains[vc];
        (chain.len != 0)
            .then(|| self.blocks[usize::from(chain.first)].0[usize::from(chain.out) % BLOCK])
    }

    #[inline]
    pub fn pop(&mut self, vc: usize) -> Option<Flit> {
        let chain = &mut self.chains[vc];
        if chain.len == 0 {
            return None;
        }
        let flit = self.blocks[usize::from(chain.first)].0[usize::from(chain.out) % BLOCK];
        chain.out += 1;
        chain.len -= 1;
        chain.acks += 1;
        self.freed |= 1 << vc;
        if chain.is_block_out() {
            self.free_first(vc);
        }
        Some(flit)
    }

    /// Takes the next flits of `vc`, as many as there are and fit `into`. Returns their number.
    #[inline]
    pub fn pop_into(&mut self, vc: usize, into: &mut [Flit]) -> usize {
        let taken = into.len().min(self.chains[vc].len as usize);
        self.chains[vc].acks += taken as u32;
        self.freed |= u8::from(taken != 0) << vc;
        let mut left = &mut into[..taken];
        while !left.is_empty() {
            let chain = &mut self.chains[vc];
            let flits = &self.blocks[usize::from(chain.first)].0[usize::from(chain.out)..];
            let (now, later) = left.split_at_mut(left.len().min(flits.len()));
            copy_few(&flits[..now.len()], now);
            chain.out += now.len() as u8;
            chain.len -= now.len() as u32;
            left = later;
            if chain.is_block_out() {
                self.free_first(vc);
            }
        }
        taken
    }

    /// Frees the first block of a channel once read. An empty channel holds no block.
    #[inline(never)]
    fn free_first(&mut self, vc: usize) {
        let chain = &mut self.chains[vc];
        let block = chain.first;
        chain.first = self.next[usize::from(block)];
        chain.out = 0;
        if chain.len == 0 {
            chain.first = NONE;
            chain.written = BLOCK as u8;
            self.pending &= !(1 << vc);
        }
        self.next[usize::from(block)] = self.free;
        self.free = block;
        self.free_blocks += 1;
    }

    /// Flits of `vc` in the buffer.
    #[inline]
    pub fn len(&self, vc: usize) -> u32 {
        self.chains[vc].len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Flits that left `vc` since the last call, to acknowledge.
    #[inline]
    pub fn take_acks(&mut self, vc: usize) -> u32 {
        core::mem::take(&mut self.chains[vc].acks)
    }
}

/// Calls `act` with the number of each set bit.
#[inline]
fn each_bit(mut bits: u8, mut act: impl FnMut(usize)) {
    while bits != 0 {
        act(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

impl ReceiveBuffer for AriesInput {
    #[inline]
    fn take_changes(&mut self, mut report: impl FnMut(usize, Change)) {
        each_bit(core::mem::take(&mut self.changed), |vc| {
            let new = core::mem::take(&mut self.chains[vc].new);
            report(vc, Change::Arrived(new));
        });
    }

    #[inline]
    fn take_freed(&mut self, mut report: impl FnMut(usize, u32)) {
        each_bit(core::mem::take(&mut self.freed), |vc| {
            let acks = self.take_acks(vc);
            if acks > 0 {
                report(vc, acks);
            }
        });
    }

    fn queued(&self) -> u64 {
        self.chains.iter().map(|chain| u64::from(chain.len)).sum()
    }

    fn queued_of(&self, vc: usize) -> u64 {
        self.chains[vc].len.into()
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
