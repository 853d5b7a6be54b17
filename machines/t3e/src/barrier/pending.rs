//! Messages that wait for one port of a router, for all units, without a buffer.
//!
//! "The barrier virtual channel requires no buffering and cannot block" (T3E sec. 6) describes the
//! receiving side, where the registers accept every packet. On the sending side the completion of
//! one unit goes to several ports at once, and several units may need the same port. So each port
//! has three bits per unit for the messages that wait there and their order. That is enough:
//!
//! - At most three messages wait for a child: eureka done, barrier done, and eureka done of the
//!   next round. The next barrier cannot be done before the child has joined it, and the child
//!   joins only after it was notified of the last barrier.
//! - At most two messages wait for the parent: a eureka and an arrival. Later messages are sent
//!   only after the barrier is done, which requires that the root has received the arrival.

use phitwire_framing::t3e::barrier::{UNITS, UnitNumber};

/// Messages that wait at one port: a sequence of eureka and barrier messages per unit. The router
/// knows whether they go up or down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pending {
    /// Units whose first message is a eureka message.
    eureka: u32,
    barrier: u32,
    /// Units with a eureka message after the barrier message.
    next_eureka: u32,
    /// The unit at which the round-robin search starts.
    turn: u8,
}

/// The first unit of a mask at or after unit `turn`, modulo 32; `None` if the mask is empty.
#[inline]
pub(super) const fn next_unit(mask: u32, turn: u8) -> Option<UnitNumber> {
    if mask == 0 {
        return None;
    }
    let turn = turn as u32;
    let ahead = mask.rotate_right(turn).trailing_zeros();
    UnitNumber::new(((turn + ahead) % UNITS as u32) as u8)
}

/// A message of a unit, up or down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Eureka,
    Barrier,
}

impl Pending {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        // `next_eureka` need not be checked, since it waits only behind a barrier message.
        self.eureka | self.barrier == 0
    }

    #[inline]
    pub(super) const fn has_barrier(&self, unit: UnitNumber) -> bool {
        self.barrier & unit.bit() != 0
    }

    /// Number of waiting messages of the unit, at most three.
    pub(super) const fn len(&self, unit: UnitNumber) -> u32 {
        let bit = unit.bit();
        let barriers = (self.barrier & bit != 0) as u32;
        barriers + (self.eureka & bit != 0) as u32 + (self.next_eureka & bit != 0) as u32
    }

    #[inline]
    pub(super) const fn push_eureka(&mut self, unit: UnitNumber) {
        let bit = unit.bit();
        let behind = self.barrier & bit;
        debug_assert!(
            if behind != 0 {
                self.next_eureka & bit == 0
            } else {
                self.eureka & bit == 0
            },
            "a router passes one eureka per barrier"
        );
        self.next_eureka |= behind;
        self.eureka |= bit & !behind;
    }

    #[inline]
    pub(super) const fn push_barrier(&mut self, unit: UnitNumber) {
        debug_assert!(
            !self.has_barrier(unit),
            "the last barrier was sent before the next one completes"
        );
        self.barrier |= unit.bit();
    }

    /// Takes the next message: units take turns, and each unit's messages stay in order.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(UnitNumber, Signal)> {
        let unit = next_unit(self.eureka | self.barrier, self.turn)?;
        let bit = unit.bit();
        self.turn = (unit.index() + 1) as u8 % UNITS as u8;
        if self.eureka & bit != 0 {
            self.eureka &= !bit;
            return Some((unit, Signal::Eureka));
        }
        self.barrier &= !bit;
        self.eureka |= self.next_eureka & bit;
        self.next_eureka &= !bit;
        Some((unit, Signal::Barrier))
    }

    /// Drops the unit's waiting messages, and returns whether there were any.
    pub(super) const fn clear(&mut self, unit: UnitNumber) -> bool {
        let waited = self.len(unit) > 0;
        let others = !unit.bit();
        self.eureka &= others;
        self.barrier &= others;
        self.next_eureka &= others;
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_within_a_unit_and_units_take_turns() {
        let unit = |number| UnitNumber::new(number).expect("a unit");
        let (low, high) = (unit(3), unit(31));
        let mut pending = Pending::default();
        pending.push_eureka(high);
        pending.push_barrier(high);
        pending.push_eureka(high);
        pending.push_barrier(low);
        pending.push_eureka(low);
        assert_eq!((pending.len(high), pending.len(low)), (3, 2));
        let mut sent = Vec::new();
        while let Some((unit, signal)) = pending.next() {
            sent.push((unit.index(), signal));
        }
        let expected = [
            (3, Signal::Barrier),
            (31, Signal::Eureka),
            (3, Signal::Eureka),
            (31, Signal::Barrier),
            (31, Signal::Eureka),
        ];
        assert_eq!(sent, expected);
        assert!(pending.is_empty());
        pending.push_eureka(low);
        pending.push_barrier(high);
        assert!(pending.clear(high) && !pending.clear(high));
        assert_eq!(pending.next(), Some((low, Signal::Eureka)));
    }
}
