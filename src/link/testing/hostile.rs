//! Bytes that no correct peer sends.

use super::rig::{FRAME_BYTES, Link};
use crate::link::NodeLink;
use crate::link::testing::pair::Pair;
use crate::time::Duration;

/// Injects `frames` frames, some random and the others from `mutated`, into both ends; neither may
/// panic.
pub fn never_panics<L: Link>(
    pair: &mut Pair<L>,
    frames: u64,
    mut mutated: impl FnMut(&mut Pair<L>) -> Vec<u8>,
) {
    let mut buf = vec![0; FRAME_BYTES];
    for round in 0..frames {
        let bytes = if round % 4 == 0 {
            let length = pair.rng.below(400) as usize;
            (0..length).map(|_| pair.rng.next_u64() as u8).collect()
        } else {
            mutated(pair)
        };
        let to = pair.rng.below(2) as usize;
        pair.now += Duration::from_ns(pair.rng.below(300_000));
        let now = pair.now;
        pair.inject(to, &bytes);
        let end = &mut pair.ends[to];
        end.lcb.handle_timers(now);
        end.drain_unchecked();
        while end.lcb.poll_frame(now, &mut buf).is_some() {}
        let wake = end.lcb.next_wakeup();
        assert!(wake >= now || end.lcb.wants_to_send(now));
    }
}
