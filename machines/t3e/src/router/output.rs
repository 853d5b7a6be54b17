//! An output of the crossbar: who has its virtual channels, and which of these has the wires.

use super::input::NONE;
use crate::format::{VCS, vc};

/// Number of an input's virtual channel among all of a router.
#[inline]
pub(super) const fn number(port: usize, vc: usize) -> u8 {
    (port * VCS + vc) as u8
}

/// The lowest of `asking` from `turn` on, round and round.
#[inline]
fn next(asking: u64, turn: u8) -> u8 {
    let after = asking & (u64::MAX << turn);
    let from = if after != 0 { after } else { asking };
    from.trailing_zeros() as u8
}

/// An output. Inputs' channels go by their [`number`].
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// The input's channel that has each virtual channel until its packet has gone.
    owners: [u8; VCS],
    /// Who asked for each deterministic channel and has not gone another way: "that output VC
    /// remembers that the request was made" (paper, section 7).
    asking: [u64; vc::DETERMINISTIC.end],
    /// Whose turn it is at each.
    turns: [u8; VCS],
    /// The channel that has the wires, as long as it has flits to send.
    holder: u8,
    /// The channel whose turn it is to have them.
    turn: u8,
    /// Channels in the middle of a packet, one bit each.
    started: u8,
    /// Packets that wait in inputs and might want this output.
    pub wanted: u8,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            owners: [NONE; VCS],
            asking: [0; vc::DETERMINISTIC.end],
            turns: [0; VCS],
            holder: NONE,
            turn: 0,
            started: 0,
            wanted: 0,
        }
    }
}

impl Output {
    /// Who has a channel; [`NONE`] if nobody.
    #[inline]
    pub fn owner(&self, vc: usize) -> u8 {
        self.owners[vc]
    }

    /// Asks for a deterministic channel, once for all.
    #[inline]
    pub fn ask(&mut self, vc: usize, who: u8) {
        self.asking[vc] |= 1 << who;
        if self.owners[vc] == NONE {
            self.award(vc);
        }
    }

    /// Gives a free deterministic channel to the next who asked.
    #[inline]
    fn award(&mut self, vc: usize) {
        if self.asking[vc] != 0 {
            let winner = next(self.asking[vc], self.turns[vc]);
            self.owners[vc] = winner;
            self.turns[vc] = winner + 1;
        }
    }

    /// Gives the adaptive channel, if it is free, to the next of those who ask now.
    #[inline]
    pub fn award_adaptive(&mut self, asking: u64) {
        if self.owners[vc::ADAPTIVE] == NONE && asking != 0 {
            let winner = next(asking, self.turns[vc::ADAPTIVE]);
            self.owners[vc::ADAPTIVE] = winner;
            self.turns[vc::ADAPTIVE] = winner + 1;
        }
    }

    /// Whether nothing stands against the packet that comes straight through to `vc`, which is the
    /// only one then that wants this output.
    #[inline]
    pub fn lets_through(&self, vc: usize) -> bool {
        self.wanted == 1 && self.holder == NONE && self.owners[vc] == NONE
    }

    /// Whether a packet under way on `vc` may have the wires without being arbitrated for.
    #[inline]
    pub fn is_held_for(&self, vc: usize) -> bool {
        self.holder == NONE || usize::from(self.holder) == vc
    }

    /// Whether a packet on `vc` has the wires as long as it can send.
    #[inline]
    pub fn has_wires(&self, vc: usize) -> bool {
        usize::from(self.holder) == vc
    }

    /// The channel, of those that can send now, of which there are some, that has the wires in this
    /// cycle.
    #[inline]
    pub fn arbitrate(&mut self, can: u8) -> usize {
        if self.holder != NONE && can >> self.holder & 1 != 0 {
            return self.holder.into();
        }
        // The adaptive channel comes last, unless it is in the middle of a packet.
        let adaptive = 1 << vc::ADAPTIVE;
        let first = can & (!adaptive | self.started);
        let among = if first != 0 { first } else { can };
        self.holder = next(among.into(), self.turn);
        self.holder.into()
    }

    /// Whoever has the wires has nothing to send.
    #[inline]
    pub fn bubble(&mut self) {
        self.holder = NONE;
    }

    /// A header of `who` leaves on `vc`.
    #[inline]
    pub fn begin(&mut self, vc: usize, who: u8) {
        self.owners[vc] = who;
        self.holder = vc as u8;
        self.started |= 1 << vc;
        if vc < self.asking.len() {
            self.asking[vc] &= !(1 << who);
        }
    }

    /// `who` goes another way than by `vc`.
    #[inline]
    pub fn forget(&mut self, vc: usize, who: u8) {
        if vc < self.asking.len() {
            self.asking[vc] &= !(1 << who);
        }
        if self.owners[vc] == who {
            self.owners[vc] = NONE;
            if vc < self.asking.len() {
                self.award(vc);
            }
        }
    }

    /// The packet on `vc` has gone.
    #[inline]
    pub fn end(&mut self, vc: usize) {
        self.started &= !(1 << vc);
        self.owners[vc] = NONE;
        if usize::from(self.holder) == vc {
            self.holder = NONE;
        }
        self.turn = (vc + 1) as u8;
        if vc < self.asking.len() {
            self.award(vc);
        }
    }

    /// The packet on `vc` goes on.
    #[inline]
    pub fn hold(&mut self, vc: usize) {
        self.holder = vc as u8;
    }

    /// Channels with packets under way, and whose they are.
    pub fn started(&self) -> impl Iterator<Item = (usize, u8)> {
        (0..VCS)
            .filter(|vc| self.started >> vc & 1 != 0)
            .map(|vc| (vc, self.owners[vc]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_deterministic_channels_are_remembered() {
        let mut output = Output::default();
        output.ask(0, 7);
        output.ask(0, 3);
        assert_eq!(output.owner(0), 7);
        output.begin(0, 7);
        output.end(0);
        assert_eq!(output.owner(0), 3, "it asked once, and waits");
        output.ask(0, 9);
        output.forget(0, 3);
        assert_eq!(output.owner(0), 9, "who goes another way frees the channel");
    }

    #[test]
    fn the_adaptive_channel_comes_last_unless_it_has_begun() {
        let mut output = Output::default();
        output.award_adaptive(1 << 5);
        output.ask(1, 6);
        assert_eq!(output.arbitrate(1 << 4 | 1 << 1), 1);
        output.begin(1, 6);
        assert_eq!(output.arbitrate(1 << 4), 4, "the other has nothing");
        output.begin(4, 5);
        assert_eq!(output.arbitrate(1 << 4 | 1 << 1), 4, "it has the wires");
        output.bubble();
        assert_eq!(output.arbitrate(1 << 4 | 1 << 1), 1, "from the first on");
        output.end(1);
        assert_eq!(output.arbitrate(1 << 4 | 1 << 0), 4, "in turn");
    }
}
