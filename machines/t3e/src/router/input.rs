//! An input of the crossbar: one path for all its virtual channels.

use crate::format::VCS;

/// No port, no channel.
pub(super) const NONE: u8 = u8::MAX;

/// Where a packet may go that waits at the front of a virtual channel: in one register, since all
/// packets are asked at every router.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Wants(u32);

impl Wants {
    /// A packet of so many flits that may go to its deterministic output, on channel `vc` there, or
    /// by the adaptive channel of another one.
    #[inline]
    pub const fn new(flits: u8, (out, vc): (u8, u8), adaptive: Option<u8>) -> Self {
        let adaptive = match adaptive {
            Some(out) => out,
            None => NONE,
        };
        Self(u32::from_le_bytes([flits, out, vc, adaptive]))
    }

    /// Flits of the packet.
    #[inline]
    pub const fn flits(self) -> u8 {
        self.0 as u8
    }

    /// Its deterministic output.
    #[inline]
    pub const fn out(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// The channel there.
    #[inline]
    pub const fn vc(self) -> u8 {
        (self.0 >> 16) as u8
    }

    /// The output whose adaptive channel it may take instead.
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

/// What is at the front of a virtual channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Front {
    /// No packet that is known of.
    #[default]
    Unknown,
    /// A header, whose packet has no way yet.
    Waiting(Wants),
    /// The rest of a packet that flows.
    Flowing { out: u8, vc: u8, left: u8 },
    /// The rest of a packet that is thrown away.
    Discarded { left: u8 },
    /// The rest of a packet that goes into the memory.
    Kept { left: u8 },
}

/// An input, with what every cycle needs in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Input {
    /// Channels with flits that the crossbar may have, one bit each.
    pub channels: u8,
    /// Channels whose packet has begun to flow and whose header has not left, one bit each.
    begins: u8,
    /// The channel that makes requests; [`NONE`] if none does. The one that is asked first when it
    /// gives up.
    chosen: u8,
    turn: u8,
    /// Flits that the crossbar may have, and all that came and are still there.
    pub ready: [u16; VCS],
    pub held: [u16; VCS],
    pub fronts: [Front; VCS],
    /// The header flits, as they leave, of the packets at the front that are known of.
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
    /// The channel that makes requests: the same until it [gives up](Self::give_up), unless it has
    /// run dry. `None` if there is nothing to ask for.
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

    /// The channel that made requests lets the next one do so.
    #[inline]
    pub fn give_up(&mut self) {
        if self.chosen != NONE {
            self.turn = self.chosen + 1;
            self.chosen = NONE;
        }
    }

    /// The packet at the front of `vc` flows from now on.
    #[inline]
    pub fn begin(&mut self, vc: usize) {
        self.begins |= 1 << vc;
    }

    /// The header, if the packet at the front of `vc` begins with the next flit.
    #[inline]
    pub fn take_header(&mut self, vc: usize) -> Option<u64> {
        let begins = self.begins >> vc & 1 != 0;
        self.begins &= !(1 << vc);
        begins.then_some(self.headers[vc])
    }

    /// The packet at the front of `vc` has gone: another channel may ask.
    #[inline]
    pub fn packet_ended(&mut self, vc: usize) {
        if usize::from(self.chosen) == vc {
            self.give_up();
        }
    }

    /// Flits of `vc` have passed the stages.
    #[inline]
    pub fn ripened(&mut self, vc: usize, flits: u16) {
        self.ready[vc] += flits;
        self.channels |= 1 << vc;
    }

    /// Flits of `vc` leave that were ready.
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
        assert_eq!(input.choose(), Some(0), "after the last comes the first");
    }
}
