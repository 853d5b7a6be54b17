//! An input of the crossbar, with one path for all its virtual channels.

use phitwire_framing::t3e::flit::VCS;

/// Stands for no port or channel.
pub(super) const NONE: u8 = u8::MAX;

/// The outputs that a packet at the front of a virtual channel may take. Fits a register, since
/// every router reads it for every packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants(u32);

impl Wants {
    /// A packet of `flits` flits that may take its deterministic output, on channel `vc` there, or
    /// the adaptive channel of another output.
    #[inline]
    pub const fn new(flits: u8, (out, vc): (u8, u8), adaptive: Option<u8>) -> Self {
        let adaptive = match adaptive {
            Some(out) => out,
            None => NONE,
        };
        Self(u32::from_le_bytes([flits, out, vc, adaptive]))
    }

    #[inline]
    pub const fn flits(self) -> u8 {
        self.0 as u8
    }

    #[inline]
    pub const fn out(self) -> u8 {
        (self.0 >> 8) as u8
    }

    #[inline]
    pub const fn vc(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The output whose adaptive channel the packet may take instead.
    #[inline]
    pub const fn adaptive(self) -> Option<u8> {
        match (self.0 >> 24) as u8 {
            NONE => None,
            out => Some(out),
        }
    }
}

impl core::fmt::Debug for Wants {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Wants")
            .field("flits", &self.flits())
            .field("out", &self.out())
            .field("vc", &self.vc())
            .field("adaptive", &self.adaptive())
            .finish()
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Front {
    /// No packet, or a packet that is not routed yet.
    #[default]
    Unknown,
    /// A header that has won no output yet.
    Waiting(Wants),
    /// The rest of a packet in progress.
    Flowing { out: u8, vc: u8, left: u8 },
    /// The rest of a discarded packet.
    Discarded { left: u8 },
    /// The rest of a packet that enters the memory.
    Kept { left: u8 },
}

/// An input. The fields that are needed in every cycle share a cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Input {
    /// Channels with flits ready for the crossbar, one bit each.
    pub channels: u8,
    /// Channels whose packet has won an output but whose header has not left, one bit each.
    begins: u8,
    /// The channel that makes requests, or [`NONE`].
    chosen: u8,
    /// The channel to try first after the chosen one gives up.
    turn: u8,
    /// Number of flits that are ready for the crossbar.
    pub ready: [u16; VCS],
    /// Number of flits that have arrived but not left.
    pub held: [u16; VCS],
    pub fronts: [Front; VCS],
    /// Outgoing header flits of the routed packets at the front.
    pub headers: [u64; VCS],
}

const _: () = assert!(core::mem::offset_of!(Input, headers) == 64);

impl Default for Input {
    fn default() -> Self {
        Self {
            channels: 0,
            begins: 0,
            chosen: NONE,
            turn: 0,
            ready: [0; VCS],
            held: [0; VCS],
            fronts: [Front::default(); VCS],
            headers: [0; VCS],
        }
    }
}

impl Input {
    /// The channel that makes requests, which stays the same until it [gives up](Self::give_up) or
    /// has no flits. `None` if no channel has flits.
    #[inline]
    pub fn choose(&mut self) -> Option<usize> {
        if self.chosen != NONE {
            if self.channels >> self.chosen & 1 != 0 {
                return Some(self.chosen.into());
            }
            self.give_up();
        }
        if self.channels == 0 {
            return None;
        }
        let after = self.channels & (u8::MAX << self.turn);
        let from = if after != 0 { after } else { self.channels };
        self.chosen = from.trailing_zeros() as u8;
        Some(self.chosen.into())
    }

    /// Makes the requesting channel yield to the next one.
    #[inline]
    pub fn give_up(&mut self) {
        if self.chosen != NONE {
            self.turn = self.chosen + 1;
            self.chosen = NONE;
        }
    }

    /// Marks the packet at the front of `vc` as started.
    #[inline]
    pub fn begin(&mut self, vc: usize) {
        self.begins |= 1 << vc;
    }

    /// The header, if the next flit of `vc` is the first of its packet.
    #[inline]
    pub fn take_header(&mut self, vc: usize) -> Option<u64> {
        let begins = self.begins >> vc & 1 != 0;
        self.begins &= !(1 << vc);
        begins.then_some(self.headers[vc])
    }

    /// Lets another channel request after the last flit of a packet of `vc` has left.
    #[inline]
    pub fn packet_ended(&mut self, vc: usize) {
        if usize::from(self.chosen) == vc {
            self.give_up();
        }
    }

    /// Adds flits of `vc` that have passed the stages.
    #[inline]
    pub fn ripened(&mut self, vc: usize, flits: u16) {
        self.ready[vc] += flits;
        self.channels |= 1 << vc;
    }

    /// Removes ready flits of `vc`.
    #[inline]
    pub fn leave(&mut self, vc: usize, flits: u16) {
        self.held[vc] -= flits;
        self.ready[vc] -= flits;
        self.channels &= !(u8::from(self.ready[vc] == 0) << vc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_asks_until_it_gives_up_or_runs_dry() {
        let mut input = Input::default();
        assert_eq!(input.choose(), None);
        input.held = [2; VCS];
        for vc in [0, 0, 1, 1, 4, 4] {
            input.ripened(vc, 1);
        }
        assert_eq!((input.choose(), input.choose()), (Some(0), Some(0)));
        input.give_up();
        assert_eq!(input.choose(), Some(1));
        input.leave(1, 1);
        assert_eq!(input.choose(), Some(1));
        input.leave(1, 1);
        assert_eq!(input.choose(), Some(4));
        input.give_up();
        assert_eq!(input.choose(), Some(0), "the turn returns to the first");
    }
}
