//! Draws ports, either at random and by load, or by the hash of an ordered packet.

use super::registers::PortMask;
use phitwire::rng::{Rng, spread};

pub trait Loads {
    fn of(&self, port: u8) -> u32;

    /// Reports that a port was drawn as a candidate for a minimal path or, if `up`, for a part of a
    /// non-minimal one.
    #[inline]
    fn drawn(&self, port: u8, up: bool) {
        let _ = (port, up);
    }
}

impl<F: Fn(u8) -> u32> Loads for F {
    #[inline]
    fn of(&self, port: u8) -> u32 {
        self(port)
    }
}

/// For packets that are routed by their hash, regardless of load.
pub(super) struct NoLoads;

impl Loads for NoLoads {
    #[inline]
    fn of(&self, _: u8) -> u32 {
        0
    }
}

/// Source of draws: the random generator, or the hash of an ordered packet.
pub(super) trait Draws {
    /// A number below `bound`, which must not be 0.
    fn below(&mut self, bound: u64) -> u64;
    /// Whether a second candidate may be drawn and compared.
    const BY_LOAD: bool;
}

impl Draws for Rng {
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        Rng::below(self, bound)
    }
    const BY_LOAD: bool = true;
}

/// Draws that depend only on the packet's flow.
pub(super) struct HashDraws(pub(super) u64);

impl Draws for HashDraws {
    #[inline]
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = spread(self.0);
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
    const BY_LOAD: bool = false;
}

/// Draws two different ports of a non-empty set, and returns the less loaded one.
#[inline]
pub(super) fn pick_port<L: Draws>(
    ports: PortMask,
    draws: &mut L,
    load: &impl Loads,
    up: bool,
) -> u8 {
    let choices = count(ports);
    let first = nth(ports, draws.below(choices));
    load.drawn(first, up);
    if choices == 1 || !L::BY_LOAD {
        return first;
    }
    let second = nth(ports & !(1 << first), draws.below(choices - 1));
    load.drawn(second, up);
    if load.of(second) < load.of(first) {
        second
    } else {
        first
    }
}

#[inline]
pub(super) fn count(ports: PortMask) -> u64 {
    ports.count_ones().into()
}

/// The set bit with index `n` in a mask with more than `n` set bits.
#[inline]
pub(super) fn nth(mut ports: PortMask, n: u64) -> u8 {
    debug_assert!(n < count(ports), "fewer ports in the mask");
    for _ in 0..n {
        ports &= ports - 1;
    }
    (ports.trailing_zeros() & 63) as u8
}
