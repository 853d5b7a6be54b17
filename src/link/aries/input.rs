//! The input buffer of an Aries port: blocks of eight flits that the virtual channels share.

use phitwire_framing::flit48::{Flit, Head, MAX_PACKET_FLITS, VCS};

use super::config::AriesLinkConfig;

/// Flits of a block (the chip's input buffer is 128 of them).
const BLOCK: usize = 8;
/// No block.
const NONE: u16 = u16::MAX;

/// The flits of one virtual channel: a chain of blocks.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u16,
    last: u16,
    /// Flits taken out of the first block.
    out: u8,
    /// Flits written to the last block.
    written: u8,
    len: u32,
    acks: u32,
}

impl Chain {
    const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
        out: 0,
        written: BLOCK as u8,
        len: 0,
        acks: 0,
    };
}

/// The packet being written.
#[derive(Clone, Copy, Debug)]
struct Open {
    vc: u8,
    left: u8,
    so_far: u8,
    /// Block and place of its head.
    at: (u16, u8),
    /// There was no room for it: nobody sends that who counts credits.
    refused: bool,
}

/// What became of a flit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// Idle, between packets.
    Idle,
    /// The head of a packet.
    Head,
    /// The rest of a packet.
    Body,
    /// A flit of a packet that found no room.
    Refused,
    /// Where a head should be, something is that can be none.
    NoHead,
}

/// One port's input buffer, dynamically shared among eight virtual channels (white paper, "Aries Router";
/// 128 blocks of 8 flits on the chip, with a private and a common part).
///
/// What is in it passed its CRC. A packet's flits become visible as their sets arrive, so that a head may
/// be seen before its tail is there; the number of flits that follow is in the head.
///
/// Private and common parts are the *sender's* business, who counts credits; here all channels draw on the
/// same blocks. Two blocks per channel more than the credits need make up for blocks that are only partly
/// filled.
///
/// The write side belongs to the [`AriesLcb`](super::AriesLcb), the read side to the router core or network
/// interface, which passes what [`take_acks`](Self::take_acks) gives to
/// [`AriesLcb::vc_freed`](super::AriesLcb::vc_freed).
#[derive(Clone, Debug)]
pub struct AriesInput {
    /// The blocks that were ever used: as many as the worst backlog so far has asked for.
    blocks: Vec<[Flit; BLOCK]>,
    /// The block behind each one, in a channel's chain or in the chain of free ones.
    next: Vec<u16>,
    /// The free block that was used last, which is the most likely to be in the cache.
    free: u16,
    free_blocks: u32,
    chains: [Chain; VCS],
    pending: u8,
    open: Option<Open>,
}

impl AriesInput {
    /// An empty buffer as deep as `config` offers.
    pub fn new(config: &AriesLinkConfig) -> Self {
        Self::with_depth(config.sets.input_flits())
    }

    /// An empty buffer for credits of `flits` in all.
    ///
    /// # Panics
    /// If a longest packet does not fit, or there are more than half a million flits.
    pub fn with_depth(flits: u32) -> Self {
        assert!(flits as usize >= MAX_PACKET_FLITS, "room for a packet");
        let blocks = (flits as usize).div_ceil(BLOCK) + 2 * VCS;
        assert!(blocks < usize::from(NONE), "block numbers have 16 bits");
        Self {
            blocks: Vec::new(),
            next: Vec::new(),
            free: NONE,
            free_blocks: blocks as u32,
            chains: [Chain::EMPTY; VCS],
            pending: 0,
            open: None,
        }
    }

    // Write side, for the link control block.

    /// Writes the next flit that arrived.
    #[inline]
    pub(super) fn write(&mut self, flit: Flit) -> Written {
        if let Some(open) = &mut self.open {
            let Open { vc, refused, .. } = *open;
            open.left -= 1;
            open.so_far += 1;
            if open.left == 0 {
                self.open = None;
            }
            if refused {
                return Written::Refused;
            }
            self.append(vc, flit);
            return Written::Body;
        }
        if flit == Flit::IDLE {
            return Written::Idle;
        }
        let Some(head) = Head::parse(flit) else {
            return Written::NoHead;
        };
        let (vc, flits) = (head.vc(), head.length());
        let refused = !self.has_room(vc, flits);
        if !refused {
            self.append(vc, flit);
        }
        if flits > 1 {
            let chain = &self.chains[usize::from(vc)];
            self.open = Some(Open {
                vc,
                left: flits - 1,
                so_far: 1,
                at: (chain.last, chain.written.wrapping_sub(1)),
                refused,
            });
        }
        if refused {
            return Written::Refused;
        }
        Written::Head
    }

    #[inline]
    fn has_room(&self, vc: u8, flits: u8) -> bool {
        let left_in_block = BLOCK as u8 - self.chains[usize::from(vc)].written;
        let more = usize::from(flits.saturating_sub(left_in_block)).div_ceil(BLOCK);
        self.free_blocks >= more as u32
    }

    /// Appends a flit for which [`Self::has_room`] said that there is room.
    #[inline]
    fn append(&mut self, vc: u8, flit: Flit) {
        let chain = &mut self.chains[usize::from(vc & 7)];
        if usize::from(chain.written) == BLOCK {
            assert!(self.free_blocks > 0, "room was looked for at the head");
            self.free_blocks -= 1;
            let mut block = self.free;
            if block == NONE {
                block = self.blocks.len() as u16;
                self.blocks.push([Flit::IDLE; BLOCK]);
                self.next.push(NONE);
            } else {
                self.free = self.next[usize::from(block)];
                self.next[usize::from(block)] = NONE;
            }
            if chain.first == NONE {
                chain.first = block;
                chain.out = 0;
            } else {
                self.next[usize::from(chain.last)] = block;
            }
            chain.last = block;
            chain.written = 0;
        }
        self.blocks[usize::from(chain.last)][usize::from(chain.written) % BLOCK] = flit;
        chain.written += 1;
        chain.len += 1;
        self.pending |= 1 << (vc & 7);
    }

    /// The session ended inside a packet: its rest is filled with ones, and when its head is still here it
    /// is marked as poisoned. True when there was such a packet.
    ///
    /// No source, memory domain or command consists of ones, so that a destination refuses even a request
    /// that has no data and hence no packet CRC.
    pub(super) fn cut(&mut self) -> bool {
        let Some(Open {
            vc,
            left,
            so_far,
            at,
            refused,
        }) = self.open.take()
        else {
            return false;
        };
        if refused {
            return true;
        }
        if self.chains[usize::from(vc)].len >= u32::from(so_far) {
            let flit = &mut self.blocks[usize::from(at.0)][usize::from(at.1)];
            *flit = Head::parse(*flit).map_or(*flit, |head| head.with_poison().flit());
        }
        for _ in 0..left {
            self.append(vc, Flit::new(u64::MAX));
        }
        true
    }

    /// Prepares for a new session with the peer: flits still queued count against the credits that it will
    /// be given. Returns their number per virtual channel.
    ///
    /// # Panics
    /// If a packet is open.
    pub(super) fn restart(&mut self) -> [u32; VCS] {
        assert!(
            self.open.is_none(),
            "the link control block ends its packet first"
        );
        self.chains.each_mut().map(|chain| {
            chain.acks = 0;
            chain.len
        })
    }

    // Read side, for the router core and the network interface.

    /// The virtual channels with a flit to take, one bit each.
    #[inline]
    pub fn pending_vcs(&self) -> u8 {
        self.pending
    }

    /// The next flit of `vc`, left in place.
    #[inline]
    pub fn front(&self, vc: usize) -> Option<Flit> {
        let chain = &self.chains[vc];
        (chain.len != 0)
            .then(|| self.blocks[usize::from(chain.first)][usize::from(chain.out) % BLOCK])
    }

    /// Takes the next flit of `vc`.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> Option<Flit> {
        let chain = &mut self.chains[vc];
        if chain.len == 0 {
            return None;
        }
        let block = chain.first;
        let flit = self.blocks[usize::from(block)][usize::from(chain.out) % BLOCK];
        chain.out += 1;
        chain.len -= 1;
        chain.acks += 1;
        if usize::from(chain.out) == BLOCK || chain.len == 0 {
            // An empty channel holds no block.
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
        Some(flit)
    }

    /// Takes the next flits of `vc`, as many as there are places in `into` if there are so many; their number.
    #[inline]
    pub fn pop_into(&mut self, vc: usize, into: &mut [Flit]) -> usize {
        let mut taken = 0;
        for place in into {
            let Some(flit) = self.pop(vc) else { break };
            *place = flit;
            taken += 1;
        }
        taken
    }

    /// Flits of `vc` in the buffer.
    #[inline]
    pub fn len(&self, vc: usize) -> u32 {
        self.chains[vc].len
    }

    /// Whether all virtual channels are empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pending == 0
    }

    /// Flits of `vc` that left and whose VC acknowledgements have not been taken before.
    #[inline]
    pub fn take_acks(&mut self, vc: usize) -> u32 {
        core::mem::take(&mut self.chains[vc].acks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use phitwire_framing::flit48::{NodeId, Routing};
    use std::collections::VecDeque;

    fn packet(vc: u8, flits: u8, tag: u64) -> Vec<Flit> {
        let to = NodeId::new(1, 2, 3);
        let head = Head::new(vc >= 4, flits, to, Routing::Adaptive0, tag as u16, 5).with_vc(vc);
        let rest = (1..flits).map(|i| Flit::new(tag << 8 | u64::from(i)));
        core::iter::once(head.flit()).chain(rest).collect()
    }

    #[test]
    fn every_channel_is_a_queue_of_its_own_whatever_the_order() {
        let mut rng = Rng::new(3, 0);
        let mut input = AriesInput::with_depth(300);
        let mut model: [VecDeque<Flit>; VCS] = Default::default();
        for tag in 0..20_000 {
            let (vc, flits) = (rng.below(8) as u8, 1 + rng.below(14) as u8);
            let used: usize = model.iter().map(VecDeque::len).sum();
            if used + usize::from(flits) <= 300 {
                for flit in packet(vc, flits, tag) {
                    assert!(!matches!(
                        input.write(flit),
                        Written::Refused | Written::NoHead
                    ));
                    model[usize::from(vc)].push_back(flit);
                }
            }
            for _ in 0..rng.below(16) {
                let vc = rng.below(8) as usize;
                assert_eq!(input.front(vc), model[vc].front().copied());
                assert_eq!(input.pop(vc), model[vc].pop_front());
                assert_eq!(input.len(vc) as usize, model[vc].len());
                assert_eq!(input.pending_vcs() >> vc & 1 != 0, !model[vc].is_empty());
            }
        }
        let mut popped = 0;
        for vc in 0..VCS {
            popped += input.take_acks(vc);
            while input.pop(vc).is_some() {}
        }
        assert!(popped > 10_000 && input.is_empty());
        assert!(input.blocks.len() <= input.free_blocks as usize);
        assert_eq!(
            input.free_blocks as usize,
            300_usize.div_ceil(BLOCK) + 2 * VCS,
            "no block is lost"
        );
    }

    #[test]
    fn one_channel_may_use_it_all_and_no_more() {
        let mut input = AriesInput::with_depth(1_024);
        let mut written = 0;
        while input.write(packet(2, 1, 0)[0]) != Written::Refused {
            written += 1;
        }
        assert_eq!(
            written,
            1_024 + 2 * VCS * BLOCK,
            "credits and the spare blocks"
        );
        assert_eq!(input.write(Flit::IDLE), Written::Idle);
        assert_eq!(input.write(Flit::new(15 << 40)), Written::NoHead);
    }

    #[test]
    fn a_packet_without_room_is_refused_whole() {
        let mut input = AriesInput::with_depth(14);
        while input.write(packet(2, 1, 0)[0]) != Written::Refused {}
        for flit in packet(3, 9, 1) {
            assert_eq!(input.write(flit), Written::Refused);
        }
        assert_eq!(input.len(3), 0);
        input.pop(2);
        assert_eq!(input.write(Flit::IDLE), Written::Idle, "the packet is over");
    }

    #[test]
    fn a_packet_cut_off_is_completed_and_poisoned() {
        for popped in [0, 1, 3] {
            let mut input = AriesInput::with_depth(64);
            for flit in packet(5, 6, 7).into_iter().take(4) {
                input.write(flit);
            }
            for _ in 0..popped {
                input.pop(5);
            }
            assert!(input.cut() && !input.cut());
            assert_eq!(input.len(5), 6 - popped);
            if popped == 0 {
                let head = Head::parse(input.front(5).unwrap()).unwrap();
                assert!(head.poisoned() && head.packet_id() == 7);
            }
            let mut last = None;
            while let Some(flit) = input.pop(5) {
                last = Some(flit);
            }
            assert_eq!(last, Some(Flit::new(u64::MAX)));
            assert_eq!(input.restart()[5], 0);
        }
    }
}
