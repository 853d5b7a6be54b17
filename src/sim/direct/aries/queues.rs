//! The input buffers of a chip's ports: blocks of eight flits that virtual channels share.
//!
//! The blocks of all ports come from one store that grows with what is inside, so that a machine of twenty thousand idle
//! chips is small. How many a port may have is the sender's business, who counts credits.

use super::INPUT_FLITS;
use crate::router::aries::registers::{PORTS, VCS};

/// Flits of a block.
const BLOCK: usize = 8;
const NOTHING: u32 = u32::MAX;

/// A chain of blocks.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
    /// Flits taken out of the first block.
    out: u16,
    len: u16,
}

/// The input buffers of a chip.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    flits: Vec<[u64; BLOCK]>,
    /// Behind each block, in its chain or in that of free ones.
    next: Vec<u32>,
    free: u32,
    chains: Box<[Chain]>,
    /// Flits of each port.
    totals: [u16; PORTS],
    /// Flits that came for a port that was full.
    overflows: u64,
}

impl Queues {
    pub(super) fn new() -> Self {
        let empty = Chain {
            first: NOTHING,
            last: NOTHING,
            out: 0,
            len: 0,
        };
        Self {
            flits: Vec::new(),
            next: Vec::new(),
            free: NOTHING,
            chains: vec![empty; PORTS * VCS].into(),
            totals: [0; PORTS],
            overflows: 0,
        }
    }

    fn new_block(&mut self) -> u32 {
        let block = self.free;
        if block == NOTHING {
            self.flits.push([0; BLOCK]);
            self.next.push(NOTHING);
            return self.next.len() as u32 - 1;
        }
        self.free = self.next[block as usize];
        self.next[block as usize] = NOTHING;
        block
    }

    #[inline]
    pub(super) fn push(&mut self, port: usize, vc: usize, flit: u64) {
        if u32::from(self.totals[port]) >= INPUT_FLITS {
            self.overflows += 1;
            return;
        }
        self.totals[port] += 1;
        let mut chain = self.chains[port * VCS + vc];
        let at = usize::from(chain.out + chain.len) % BLOCK;
        if at == 0 || chain.len == 0 {
            let block = self.new_block();
            if chain.len == 0 {
                chain.first = block;
                chain.out = 0;
            } else {
                self.next[chain.last as usize] = block;
            }
            chain.last = block;
        }
        let at = usize::from(chain.out + chain.len) % BLOCK;
        self.flits[chain.last as usize][at] = flit;
        chain.len += 1;
        self.chains[port * VCS + vc] = chain;
    }

    #[inline]
    pub(super) fn front(&self, port: usize, vc: usize) -> Option<u64> {
        let chain = &self.chains[port * VCS + vc];
        (chain.len > 0).then(|| self.flits[chain.first as usize][usize::from(chain.out)])
    }

    #[inline]
    pub(super) fn pop(&mut self, port: usize, vc: usize) -> Option<u64> {
        let flit = self.front(port, vc)?;
        self.totals[port] -= 1;
        let chain = &mut self.chains[port * VCS + vc];
        chain.len -= 1;
        chain.out += 1;
        if usize::from(chain.out) == BLOCK || chain.len == 0 {
            let block = chain.first;
            chain.out = 0;
            chain.first = self.next[block as usize];
            self.next[block as usize] = self.free;
            self.free = block;
        }
        Some(flit)
    }

    /// Flits of a virtual channel.
    pub(super) fn len(&self, port: usize, vc: usize) -> u32 {
        self.chains[port * VCS + vc].len.into()
    }

    /// Flits of all ports.
    pub(super) fn all(&self) -> u64 {
        self.totals.iter().map(|&flits| u64::from(flits)).sum()
    }

    pub(super) fn overflows(&self) -> u64 {
        self.overflows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::VecDeque;

    #[test]
    fn chains_of_blocks_are_queues_and_blocks_come_back() {
        let mut queues = Queues::new();
        let mut model: [VecDeque<u64>; 6] = Default::default();
        let place = |i: usize| (i * 8 % PORTS, i % VCS);
        let mut rng = Rng::new(1, 1);
        for n in 0..100_000 {
            let i = rng.below(6) as usize;
            let (port, vc) = place(i);
            // In turns more comes or more goes.
            if rng.chance(if n / 500 % 2 == 0 { 6 } else { 4 }, 10) {
                queues.push(port, vc, n);
                model[i].push_back(n);
            } else {
                assert_eq!(queues.front(port, vc), model[i].front().copied());
                assert_eq!(queues.pop(port, vc), model[i].pop_front());
            }
            assert_eq!(queues.len(port, vc) as usize, model[i].len());
        }
        assert_eq!(
            queues.all() as usize,
            model.iter().map(VecDeque::len).sum::<usize>()
        );
        assert!(queues.flits.len() < 400, "{} blocks", queues.flits.len());
        assert_eq!(queues.overflows(), 0);
    }

    #[test]
    fn a_full_port_notices_more() {
        let mut queues = Queues::new();
        for n in 0..1_025 {
            queues.push(3, (n % 8) as usize, n);
        }
        assert_eq!((queues.overflows(), queues.all()), (1, 1_024));
    }
}
