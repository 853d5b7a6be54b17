//! Canaries with links whose numbers are too short: late copies are misread as they would be on
//! such links.

use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter};
use phitwire_framing::aries::set::{Set, SetBytes};

use crate::link::{LcbRegisters, Scrambler};
use phitwire::sim::soak::testing::nearest;

/// The late `copy` as if numbers had `BITS` bits (enough for the window, few enough to wrap in a
/// run), at a link that received `last` most recently. Copies of another session are returned
/// unchanged.
pub(super) fn with_short_numbers<const BITS: u32>(last: &[u8], copy: Vec<u8>) -> Vec<u8> {
    let forged = match (SetFrame::parse(last), SetFrame::parse(&copy)) {
        (Ok(last), Ok(old)) if last.header().tx_epoch == old.header().tx_epoch => {
            sets_with_short_numbers::<BITS>(&last, &old, copy.len())
        }
        _ => None,
    };
    forged.unwrap_or(copy)
}

fn sets_with_short_numbers<const BITS: u32>(
    last: &SetFrame<'_>,
    old: &SetFrame<'_>,
    length: usize,
) -> Option<Vec<u8>> {
    let now = plain_sets(last).find_map(|set| match Set::parse(&set) {
        Ok(Set::Control(set)) => Some(set),
        _ => None,
    })?;
    let scrambler = scrambler(old);
    let mut bytes = vec![0; length];
    let mut writer = SetFrameWriter::new(old.header(), &mut bytes).ok()?;
    for set in plain_sets(old) {
        let slot = writer.slot()?;
        match Set::parse(&set) {
            Ok(Set::Control(mut set)) => {
                set.next = nearest::<BITS>(now.next.into(), set.next.into()) as u32;
                set.ack = nearest::<BITS>(now.ack.into(), set.ack.into()) as u32;
                set.vc_acks = now.vc_acks;
                set.emit(slot);
            }
            _ => *slot = set,
        }
        scrambler.apply(slot);
    }
    writer.finish().map(|_| bytes)
}

fn scrambler(frame: &SetFrame<'_>) -> Scrambler {
    let seeds = LcbRegisters::default().scrambler_seeds;
    Scrambler::new(seeds, frame.header().lanes)
}

/// The descrambled sets of a frame.
fn plain_sets<'a>(frame: &SetFrame<'a>) -> impl Iterator<Item = SetBytes> + use<'a> {
    let scrambler = scrambler(frame);
    frame.iter().map(move |mut set| {
        scrambler.apply(&mut set);
        set
    })
}
