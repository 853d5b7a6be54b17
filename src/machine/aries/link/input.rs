//! The input buffer of an Aries port: blocks of eight flits that the virtual channels share.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, VCS};

use super::config::AriesLinkConfig;
use super::copy::copy_few;
use crate::link::{Change, ReceiveBuffer};

/// Flits of a block (the chip's input buffer is 128 of them).
const BLOCK: usize = 8;
/// Blocks that a packet may need.
const MOST_BLOCKS: u32 = MAX_PACKET_FLITS.div_ceil(BLOCK) as u32;
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
    /// Flits written since the reader was last told.
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

    /// Whether nothing is left in the first block.
    #[inline]
    fn is_block_out(&self) -> bool {
        usize::from(self.out) == BLOCK || self.len == 0
    }
}

/// The packet being written, or the last one that was.
#[derive(Clone, Copy, Debug)]
struct Open {
    vc: u8,
    /// Flits that it lacks; 0: no packet is open.
    left: u8,
    so_far: u8,
    /// There was no room for it: nobody sends that who counts credits.
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

/// What became of flits that arrived. Idle ones are in none of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Flits of packets that are in the buffer now.
    pub written: u32,
    /// Flits of packets that found no room.
    pub refused: u32,
    /// Flits where a head should be and that can be none.
    pub malformed: u32,
}

/// One port's input buffer, dynamically shared among eight virtual channels (white paper, "Aries
/// Router"; 128 blocks of 8 flits on the chip, with a private and a common part).
///
/// What is in it passed its CRC. A packet's flits become visible as their sets arrive, so that a
/// head may be seen before its tail is there; the number of flits that follow is in the head.
///
/// Private and common parts are the *sender's* business, who counts credits; here all channels draw
/// on the same blocks. Two blocks per channel more than the credits need make up for blocks that
/// are only partly filled.
///
/// The write side belongs to the [`AriesLcb`](super::AriesLcb), the read side to the router core or
/// network interface. A [`LinkPort`](crate::link::LinkPort) passes what
/// [`take_acks`](Self::take_acks) gives to [`AriesLcb::vc_freed`](super::AriesLcb::vc_freed).
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
    /// Virtual channels that were written to since the reader was last told, one bit each.
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
            changed: 0,
            freed: 0,
            open: Open::NONE,
        }
    }

    // Write side, for the link control block.

    /// Writes the next flits that arrived, of whichever packets.
    #[inline]
    pub(super) fn write(&mut self, mut flits: &[Flit]) -> Arrived {
        let mut arrived = Arrived::default();
        while let Some(&first) = flits.first() {
            if self.open.left == 0 && !self.begin(first) {
                arrived.malformed += u32::from(first != Flit::IDLE);
                flits = &flits[1..];
                continue;
            }
            let open = &mut self.open;
            let (now, later) = flits.split_at(flits.len().min(open.left.into()));
            open.left -= now.len() as u8;
            open.so_far += now.len() as u8;
            if open.refused {
                arrived.refused += now.len() as u32;
            } else {
                arrived.written += now.len() as u32;
                let vc = open.vc;
                self.append(vc, now);
            }
            flits = later;
        }
        arrived
    }

    /// Writes the next flit that arrived. Its virtual channel, or `None` where no room was left for it or it should have
    /// been a head.
    #[inline]
    pub(super) fn write_one(&mut self, flit: Flit) -> Option<usize> {
        (self.write(&[flit]).written == 1).then_some(self.open.vc.into())
    }

    /// Virtual channel of the packet being written, and the flits that it lacks; 0: none is.
    #[inline]
    pub(super) const fn open(&self) -> (u8, u8) {
        (self.open.vc, self.open.left)
    }

    /// Opens the packet that begins with `first`. False when none can.
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

    /// Appends flits for which [`Self::has_room`] said that there is room.
    #[inline]
    fn append(&mut self, vc: u8, mut flits: &[Flit]) {
        let vc = usize::from(vc) % VCS;
        let chain = &mut self.chains[vc];
        chain.len += flits.len() as u32;
        chain.new = chain.new.saturating_add(flits.len() as u32);
        self.pending |= 1 << vc;
        self.changed |= 1 << vc;
        while !flits.is_empty() {
            if usize::from(self.chains[vc].written) == BLOCK {
                self.extend(vc);
            }
            let chain = &mut self.chains[vc];
            let places = &mut self.blocks[usize::from(chain.last)][usize::from(chain.written)..];
            let (now, later) = flits.split_at(flits.len().min(places.len()));
            copy_few(now, &mut places[..now.len()]);
            chain.written += now.len() as u8;
            flits = later;
        }
    }

    /// Puts a free block behind the last one of a channel.
    #[inline(never)]
    fn extend(&mut self, vc: usize) {
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

    /// The session ended inside a packet: its rest is filled with ones, and when its head is still
    /// here it is marked as poisoned. True when there was such a packet.
    ///
    /// No source, memory domain or command consists of ones, so that a destination refuses even a
    /// request that has no data and hence no packet CRC.
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
        let rest = [Flit::new(u64::MAX); MAX_PACKET_FLITS];
        self.append(vc, &rest[..left.into()]);
        true
    }

    /// The flit of `vc` that was written as the `nth` last, if it is still here.
    fn nth_last(&mut self, vc: usize, nth: u32) -> Option<&mut Flit> {
        let chain = &self.chains[vc];
        let place = usize::from(chain.out) + chain.len.checked_sub(nth)? as usize;
        let block = (0..place / BLOCK).fold(chain.first, |block, _| self.next[usize::from(block)]);
        Some(&mut self.blocks[usize::from(block)][place % BLOCK])
    }

    /// Prepares for a new session with the peer: flits still queued count against the credits that
    /// it will be given. Returns their number per virtual channel.
    ///
    /// # Panics
    /// If a packet is open.
    pub(super) fn restart(&mut self) -> [u32; VCS] {
        assert!(
            self.open.left == 0,
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
        let flit = self.blocks[usize::from(chain.first)][usize::from(chain.out) % BLOCK];
        chain.out += 1;
        chain.len -= 1;
        chain.acks += 1;
        self.freed |= 1 << vc;
        if chain.is_block_out() {
            self.free_first(vc);
        }
        Some(flit)
    }

    /// Takes the next flits of `vc`, as many as are there and have a place in `into`. Returns their
    /// number.
    #[inline]
    pub fn pop_into(&mut self, vc: usize, into: &mut [Flit]) -> usize {
        let taken = into.len().min(self.chains[vc].len as usize);
        self.chains[vc].acks += taken as u32;
        self.freed |= u8::from(taken != 0) << vc;
        let mut left = &mut into[..taken];
        while !left.is_empty() {
            let chain = &mut self.chains[vc];
            let flits = &self.blocks[usize::from(chain.first)][usize::from(chain.out)..];
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

    /// Frees the first block of a channel, of which all is out. An empty channel holds no block.
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

/// Calls `act` with the number of every bit that is set.
#[inline]
fn each_bit(mut bits: u8, mut act: impl FnMut(usize)) {
    while bits != 0 {
        act(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}

impl ReceiveBuffer for AriesInput {
    #[inline]
    fn take_changes(&mut self, mut tell: impl FnMut(usize, Change)) {
        each_bit(core::mem::take(&mut self.changed), |vc| {
            let new = core::mem::take(&mut self.chains[vc].new);
            tell(vc, Change::Arrived(new));
        });
    }

    #[inline]
    fn take_freed(&mut self, mut tell: impl FnMut(usize, u32)) {
        each_bit(core::mem::take(&mut self.freed), |vc| {
            let acks = self.take_acks(vc);
            if acks > 0 {
                tell(vc, acks);
            }
        });
    }

    fn queued(&self) -> u64 {
        self.chains.iter().map(|chain| u64::from(chain.len)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use phitwire_framing::aries::flit::{NodeId, Routing};
    use std::collections::VecDeque;

    const WRITTEN: Arrived = Arrived {
        written: 1,
        refused: 0,
        malformed: 0,
    };
    const REFUSED: Arrived = Arrived {
        written: 0,
        refused: 1,
        malformed: 0,
    };
    const MALFORMED: Arrived = Arrived {
        written: 0,
        refused: 0,
        malformed: 1,
    };

    impl Arrived {
        fn plus(self, other: Self) -> Self {
            Self {
                written: self.written + other.written,
                refused: self.refused + other.refused,
                malformed: self.malformed + other.malformed,
            }
        }

        fn times(self, times: u32) -> Self {
            (0..times).fold(Self::default(), |sum, _| sum.plus(self))
        }
    }

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
                let packet = packet(vc, flits, tag);
                assert_eq!(input.write(&packet), WRITTEN.times(flits.into()));
                model[usize::from(vc)].extend(packet);
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

    /// Packets, idle flits between them, and now and then a flit that can be no head.
    fn traffic(rng: &mut Rng, packets: u64) -> Vec<Flit> {
        let mut flits = Vec::new();
        for tag in 0..packets {
            match rng.below(20) {
                0 => flits.push(Flit::new(15 << 40)),
                1..5 => flits.extend([Flit::IDLE; 3]),
                _ => {}
            }
            let (vc, length) = (rng.below(8) as u8, 1 + rng.below(14) as u8);
            flits.extend(packet(vc, length, tag));
        }
        flits
    }

    #[test]
    fn many_flits_at_once_do_what_they_do_one_by_one() {
        let mut rng = Rng::new(11, 0);
        let (mut whole, mut single) = (AriesInput::with_depth(64), AriesInput::with_depth(64));
        let (mut refused, mut cut, mut taken) = (0, 0, 0);
        for _ in 0..400 {
            let most = 1 + rng.below(17);
            let flits = traffic(&mut rng, 30);
            let mut flits = flits.as_slice();
            while !flits.is_empty() {
                let (now, later) = flits.split_at(flits.len().min(1 + rng.below(20) as usize));
                flits = later;
                let one_by_one = now.iter().map(|flit| single.write(&[*flit]));
                let one_by_one = one_by_one.fold(Arrived::default(), Arrived::plus);
                let arrived = whole.write(now);
                assert_eq!(arrived, one_by_one);
                refused += arrived.refused;
                if rng.chance(1, 50) {
                    let was_open = whole.cut();
                    assert_eq!(was_open, single.cut());
                    cut += u32::from(was_open);
                    flits = &[];
                }
                for vc in 0..VCS {
                    let mut into = vec![Flit::IDLE; rng.below(most) as usize];
                    let got = whole.pop_into(vc, &mut into);
                    into.truncate(got);
                    let model: Vec<Flit> = (0..into.len()).map_while(|_| single.pop(vc)).collect();
                    assert_eq!(into, model);
                    taken += got;
                }
                assert_eq!(format!("{whole:?}"), format!("{single:?}"));
            }
            whole.cut();
            single.cut();
        }
        let enough = refused > 100 && cut > 10 && taken > 10_000;
        assert!(enough, "{refused} refused, {cut} cut, {taken} taken");
    }

    #[test]
    fn it_tells_what_was_written_and_read_since_it_was_asked() {
        let mut rng = Rng::new(6, 0);
        let mut input = AriesInput::with_depth(200);
        let (mut freed, mut popped) = ([0; VCS], [0; VCS]);
        for tag in 0..20_000 {
            let before: [u32; VCS] = core::array::from_fn(|vc| input.len(vc));
            for _ in 0..rng.below(3) {
                input.write(&packet(rng.below(8) as u8, 1 + rng.below(14) as u8, tag));
            }
            let mut told = [0; VCS];
            input.take_changes(|vc, change| match change {
                Change::Arrived(flits) => told[vc] = flits,
                Change::Front => panic!("nothing is ever taken back"),
            });
            for vc in 0..VCS {
                assert_eq!(input.len(vc), before[vc] + told[vc]);
                let mut into = vec![Flit::IDLE; rng.below(12) as usize];
                popped[vc] += input.pop_into(vc, &mut into) as u32;
                popped[vc] += u32::from(input.pop(vc).is_some());
            }
            if rng.chance(1, 3) {
                input.take_freed(|vc, flits| freed[vc] += flits);
                assert_eq!(freed, popped);
            }
        }
        assert!(popped.iter().all(|flits| *flits > 1_000), "{popped:?}");
    }

    #[test]
    fn one_channel_may_use_it_all_and_no_more() {
        let mut input = AriesInput::with_depth(1_024);
        let mut written = 0;
        while input.write(&packet(2, 1, 0)) != REFUSED {
            written += 1;
        }
        assert_eq!(
            written,
            1_024 + 2 * VCS * BLOCK,
            "credits and the spare blocks"
        );
        assert_eq!(input.write(&[Flit::IDLE]), Arrived::default());
        assert_eq!(input.write(&[Flit::new(15 << 40)]), MALFORMED);
    }

    #[test]
    fn a_packet_without_room_is_refused_whole() {
        let mut input = AriesInput::with_depth(14);
        while input.write(&packet(2, 1, 0)) != REFUSED {}
        for flit in packet(3, 9, 1) {
            assert_eq!(input.write(&[flit]), REFUSED);
        }
        assert_eq!(input.write(&packet(3, 9, 1)), REFUSED.times(9));
        assert_eq!(input.len(3), 0);
        input.pop(2);
        let next = input.write(&[Flit::IDLE]);
        assert_eq!(next, Arrived::default(), "the packet is over");
    }

    #[test]
    fn a_packet_cut_off_is_completed_and_poisoned() {
        for popped in [0, 1, 3] {
            let mut input = AriesInput::with_depth(64);
            input.write(&packet(5, 6, 7)[..4]);
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
