//! Memory layout of a run's messages.

use super::checker::{STRIDE, stride_of};
use super::traffic_spec::{Operation, SpecError, TrafficSpec};

/// Total size of a run's blocks to one target, unless [`FEWEST_BLOCKS`] need more. Short blocks
/// then fill a round trip without exceeding the processor's caches.
const BLOCKS_BYTES: u64 = 512 << 10;
const FEWEST_BLOCKS: u64 = 8;

/// Memory layout of a run.
///
/// Gets use the upper half of the target's memory, other operations the lower half. With too many
/// sources their regions overlap: the checker keeps sources apart, and gets read the same pattern
/// for all sources. Blocks are checked in memory, so their regions must not overlap. At their
/// source they use the uppermost quarter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) addresses: u16,
    pub(crate) stride: u64,
    /// First address at a target.
    pub(crate) base: u64,
    /// First address of the blocks at the source.
    pub(crate) local: u64,
}

impl Layout {
    pub(crate) fn new(
        spec: &TrafficSpec,
        own: u16,
        targets: usize,
        memory: u64,
    ) -> Result<Self, SpecError> {
        let stride = stride_of(spec.size);
        let unit = memory / 4 / STRIDE * STRIDE;
        let (start, room) = match (spec.op, spec.is_block()) {
            (Operation::Get, true) => (2 * unit, unit),
            (Operation::Get, false) => (2 * unit, 2 * unit),
            (Operation::Put | Operation::Amo, _) => (0, 2 * unit),
        };
        let mut addresses = u64::from(spec.addresses);
        if spec.is_block() {
            let sources = u64::from(spec.highest_processor().max(own)) + 1;
            let local = unit / stride / (targets as u64).max(1);
            let many = (BLOCKS_BYTES / stride).max(FEWEST_BLOCKS);
            addresses = addresses.min(many).min(room / stride / sources).min(local);
        }
        let region = addresses * stride;
        if region == 0 || region > room {
            return Err(SpecError::Memory(memory));
        }
        let base = start + u64::from(own) % (room / region) * region;
        assert!(
            base + region <= memory && base.is_multiple_of(STRIDE),
            "the region of {own} lies in memory"
        );
        Ok(Self {
            addresses: addresses as u16,
            stride,
            base,
            local: 3 * unit,
        })
    }
}
