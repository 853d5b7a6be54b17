//! An output of the crossbar: owners of its virtual channels, and the channel that has the wires.

use phitwire_framing::t3e::flit::{VCS, vc};

use super::input::NONE;

/// Number of an input's virtual channel among all those of the router.
#[inline]
pub(super) const fn number(port: usize, vc: usize) -> u8 {
    (port * VCS + vc) as u8
}

/// The lowest bit of `asking` from `turn` on, round robin.
#[inline]
fn next(asking: u64, turn: u8) -> u8 {
    let after = asking & (u64::MAX << turn);
    let from = if after != 0 { after } else { asking };
    from.trailing_zeros() as u8
}

/// An output. Channels of inputs are identified by their [`number`].
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// The input channel that owns each virtual channel until its packet has left.
    owners: [u8; VCS],
    /// Requests for each deterministic channel that have not taken another output: "that output VC
    /// remembers that the request was made" (T3E sec. 7).
    asking: [u64; vc::DETERMINISTIC.end],
    turns: [u8; VCS],
    /// The channel that has the wires while it has flits to send.
    holder: u8,
    /// The channel whose turn for the wires is next.
    turn: u8,
    /// Channels in the middle of a packet, one bit each.
    started: u8,
    /// Number of packets in inputs that may request this output.
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
    /// Owner of a channel, or [`NONE`] if it is free.
    #[inline]
    pub fn owner(&self, vc: usize) -> u8 {
        self.owners[vc]
    }

    /// Requests a deterministic channel. The request is remembered.
    #[inline]
    pub fn ask(&mut self, vc: usize, who: u8) {
        self.asking[vc] |= 1 << who;
        if self.owners[vc] == NONE {
            self.award(vc);
        }
    }

    /// Gives a free deterministic channel to the next requester.
    #[inline]
    fn award(&mut self, vc: usize) {
        if self.asking[vc] != 0 {
            let winner = next(self.asking[vc], self.turns[vc]);
            self.owners[vc] = winner;
            self.turns[vc] = winner + 1;
        }
    }

    /// Gives the adaptive channel, if it is free, to the next of the current requesters.
    #[inline]
    pub fn award_adaptive(&mut self, asking: u64) {
        if self.owners[vc::ADAPTIVE] == NONE && asking != 0 {
            let winner = next(asking, self.turns[vc::ADAPTIVE]);
            self.owners[vc::ADAPTIVE] = winner;
            self.turns[vc::ADAPTIVE] = winner + 1;
        }
    }

    /// Whether a packet that goes straight through to `vc` is the only one that needs this output,
    /// and finds it free.
    #[inline]
    pub fn lets_through(&self, vc: usize) -> bool {
        self.wanted == 1 && self.holder == NONE && self.owners[vc] == NONE
    }

    /// Whether a packet in progress on `vc` may use the wires without arbitration.
    #[inline]
    pub fn is_held_for(&self, vc: usize) -> bool {
        self.holder == NONE || usize::from(self.holder) == vc
    }

    /// Whether a packet on `vc` keeps the wires while it can send.
    #[inline]
    pub fn has_wires(&self, vc: usize) -> bool {
        usize::from(self.holder) == vc
    }

    /// The channel that has the wires in this cycle. `can` contains the channels that can send; it
    /// is not empty.
    #[inline]
    pub fn arbitrate(&mut self, can: u8) -> usize {
        if self.holder != NONE && can >> self.holder & 1 != 0 {
            return self.holder.into();
        }
        // The adaptive channel has the lowest priority, unless it is in the middle of a packet.
        let adaptive = 1 << vc::ADAPTIVE;
        let first = can & (!adaptive | self.started);
        let among = if first != 0 { first } else { can };
        self.holder = next(among.into(), self.turn);
        self.holder.into()
    }

    /// Frees the wires when their owner has no flit to send.
    #[inline]
    pub fn bubble(&mut self) {
        self.holder = NONE;
    }

    /// Starts a packet of `who`, whose header leaves on `vc`.
    #[inline]
    pub fn begin(&mut self, vc: usize, who: u8) {
        self.owners[vc] = who;
        self.holder = vc as u8;
        self.started |= 1 << vc;
        if vc < self.asking.len() {
            self.asking[vc] &= !(1 << who);
        }
    }

    /// Withdraws the request of `who` for `vc`, or its ownership.
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

    /// Frees `vc` after the last flit of its packet, for the next requester.
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

    /// Keeps the wires for the packet on `vc`.
    #[inline]
    pub fn hold(&mut self, vc: usize) {
        self.holder = vc as u8;
    }

    /// Channels in the middle of a packet, and their owners.
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
        assert_eq!(output.owner(0), 3, "the request waits");
        output.ask(0, 9);
        output.forget(0, 3);
        assert_eq!(
            output.owner(0),
            9,
            "a packet on another path frees the channel"
        );
    }

    #[test]
    fn the_adaptive_channel_comes_last_unless_it_has_begun() {
        let mut output = Output::default();
        output.award_adaptive(1 << 5);
        output.ask(1, 6);
        assert_eq!(output.arbitrate(1 << 4 | 1 << 1), 1);
        output.begin(1, 6);
        assert_eq!(output.arbitrate(1 << 4), 4, "only channel 4 has a flit");
        output.begin(4, 5);
        assert_eq!(
            output.arbitrate(1 << 4 | 1 << 1),
            4,
            "the owner has the wires"
        );
        output.bubble();
        assert_eq!(
            output.arbitrate(1 << 4 | 1 << 1),
            1,
            "starting again at the first"
        );
        output.end(1);
        assert_eq!(output.arbitrate(1 << 4 | 1 << 0), 4, "in turn");
    }
}
