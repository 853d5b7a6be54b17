//! An ideal link: flits, credits and loads arrive unchanged after the link's delay.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, VCS};

use super::config::SetProfile;
use super::credits::SharedCredits;
use super::input::AriesInput;
use super::unacknowledged::Unacknowledged;

/// One end of a link between routers in virtual time without bytes: the input buffer, the credits
/// and the load estimate of [`AriesLcb`](super::AriesLcb), without sets, CRC, replay, sessions and
/// lanes. Nothing is lost, so no acknowledgements are sent: each would arrive one round trip after
/// its flit. The owner transports the contents and times the arrivals.
#[derive(Clone, Debug)]
pub struct IdealEnd {
    input: AriesInput,
    credits: SharedCredits,
    unacknowledged: Unacknowledged,
    /// Virtual channel of the packet being pushed, and its missing flits.
    going: (u8, u8),
    flits: u32,
    /// Capacity of the buffer in flits.
    depth: u32,
    refused: u32,
}

impl IdealEnd {
    /// An end with the depths of `sets` at both ends, and an acknowledgement `round` cycles after
    /// each flit.
    ///
    /// # Panics
    /// If the buffer cannot hold a longest packet, or holds more than half a million flits.
    pub fn new(sets: &SetProfile, round: u16) -> Self {
        let mut credits = SharedCredits::new(sets.private_flits, sets.common_flits);
        credits.release_all(&[0; VCS]);
        Self {
            input: AriesInput::with_depth(sets.input_flits()),
            credits,
            unacknowledged: Unacknowledged::over(round),
            going: (0, 0),
            flits: 0,
            depth: sets.input_flits(),
            refused: 0,
        }
    }

    // Receiving.

    /// Handles an arrived flit. Returns its virtual channel; `None` if it had no room or is out of
    /// place, which is [counted](Self::refused).
    #[inline]
    pub fn receive(&mut self, flit: Flit) -> Option<usize> {
        let room = self.flits < self.depth;
        let vc = room.then(|| self.input.write_one(flit)).flatten();
        self.flits += u32::from(vc.is_some());
        self.refused += u32::from(vc.is_none());
        vc
    }

    /// See [`AriesInput::front`].
    #[inline]
    pub fn front(&self, vc: usize) -> Option<Flit> {
        self.input.front(vc)
    }

    /// Takes the next flit of `vc`; the caller must return a credit for it.
    #[inline]
    pub fn pop(&mut self, vc: usize) -> Option<Flit> {
        let flit = self.input.pop(vc)?;
        self.flits -= self.input.take_acks(vc);
        Some(flit)
    }

    /// Takes the next flits of `vc`, as many as there are and fit `into`. Returns their number.
    #[inline]
    pub fn pop_into(&mut self, vc: usize, into: &mut [Flit]) -> usize {
        let taken = self.input.pop_into(vc, into);
        self.flits -= self.input.take_acks(vc);
        taken
    }

    /// Flits of `vc` in the buffer.
    pub fn len(&self, vc: usize) -> u32 {
        self.input.len(vc)
    }

    #[inline]
    pub fn flits(&self) -> u32 {
        self.flits
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.flits == 0
    }

    /// Virtual channel of the arriving packet, and its missing flits.
    pub const fn coming(&self) -> (u8, u8) {
        self.input.open()
    }

    /// Flits that had no room or were out of place.
    pub const fn refused(&self) -> u32 {
        self.refused
    }

    // Sending.

    /// Whether there are credits for `flits` flits on `vc`.
    #[inline]
    pub fn has_credits(&self, vc: usize, flits: usize) -> bool {
        self.credits.available(vc) as usize >= flits
    }

    /// Whether the shared pool alone covers `flits` more flits, on any virtual channel.
    #[inline]
    pub fn is_ample(&self, flits: u32) -> bool {
        self.credits.is_ample(flits)
    }

    /// Takes the next flit of a packet, sent in cycle `now`. The head takes the credits for the
    /// whole packet.
    ///
    /// # Panics
    /// If there are too few credits.
    #[inline]
    pub fn push(&mut self, flit: Flit, now: u64) {
        if self.going.1 == 0 {
            let head = Head::parse(flit).expect("a packet begins with its head");
            self.begin(head.vc(), head.length());
        }
        self.going.1 -= 1;
        self.unacknowledged.sent(now);
    }

    /// Takes credits for a packet of `flits` flits on `vc`, whose flits are then pushed.
    ///
    /// # Panics
    /// If there are too few credits.
    #[inline]
    pub fn begin(&mut self, vc: u8, flits: u8) {
        debug_assert!(self.going.1 == 0 && usize::from(flits) <= MAX_PACKET_FLITS);
        self.credits.take(vc.into(), flits.into());
        self.going = (vc, flits);
    }

    #[inline]
    pub fn give(&mut self, vc: usize) {
        self.credits.give(vc);
    }

    /// Far-end load in cycle `now`; see [`SetWire::far_flits`](super::lcb::SetWire::far_flits).
    /// `early` credits were [given](Self::give) before they arrived.
    #[inline]
    pub fn far_flits(&self, now: u64, early: u32) -> u32 {
        let unacknowledged = self.unacknowledged.flits(now) + u32::from(self.going.1);
        self.credits.far_flits(early, unacknowledged)
    }

    /// Flits sent on each virtual channel whose credits have not returned.
    pub fn used(&self) -> [u32; VCS] {
        let (vc, left) = self.going;
        core::array::from_fn(|i| {
            let open = if i == usize::from(vc) { left.into() } else { 0 };
            self.credits.used(i).wrapping_sub(open)
        })
    }
}

#[cfg(test)]
impl IdealEnd {
    /// Sets the used flits of `vc` to `used`, whatever was sent.
    pub(crate) fn spoil(&mut self, vc: usize, used: u32) {
        self.credits.spoil(vc, used);
    }

    /// Takes all credits away.
    pub(crate) fn fill(&mut self) {
        for vc in 0..VCS {
            let all = self.credits.available(vc);
            self.credits.take(vc, all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::aries::flit::{NodeId, Routing};

    #[test]
    fn flits_at_the_far_end_are_load_and_flits_in_flight_are_not() {
        let mut near = IdealEnd::new(&SetProfile::paper(), 100);
        let mut far = near.clone();
        let head = Head::new(false, 14, NodeId::new(1, 2, 3), Routing::Adaptive0, 0, 5).with_vc(2);
        let flits = (0..14).map(|i| if i == 0 { head.flit() } else { Flit::new(i) });
        for (now, flit) in (0..).zip(flits.clone()) {
            assert!(now > 0 || near.has_credits(2, 14));
            near.push(flit, now);
            assert_eq!(
                near.far_flits(now, 0),
                0,
                "the flit is under way or not sent yet"
            );
            assert_eq!(near.used()[2], now as u32 + 1);
        }
        assert_eq!(
            near.far_flits(300, 0),
            14,
            "all flits have arrived, no credit has"
        );
        for flit in flits {
            assert_eq!(far.receive(flit), Some(2));
        }
        assert_eq!((far.flits(), far.coming().1), (14, 0));
        assert_eq!(far.pop(2), Some(head.flit()));
        near.give(2);
        assert_eq!(
            (near.far_flits(300, 0), far.len(2), far.flits()),
            (13, 13, 13)
        );
        for _ in 0..14 {
            near.give(2);
        }
        assert_eq!(near.used(), [0; VCS], "surplus credits are ignored");
    }

    #[test]
    fn refused_flits_are_counted() {
        let mut end = IdealEnd::new(&SetProfile::paper(), 0);
        let head = Head::new(false, 1, NodeId::new(1, 2, 3), Routing::Adaptive0, 0, 5);
        let accepted = (0..2_000).filter(|_| end.receive(head.flit()).is_some());
        assert_eq!(accepted.count(), 1_024);
        assert_eq!(end.refused(), 2_000 - 1_024);
    }
}
