//! Links whose numbers are too short, for the canaries: late copies as such links would read them.

use phitwire_framing::frame::{DataFrame, SetFrame, SetFrameWriter, emit_data};
use phitwire_framing::number::PacketNumber;
use phitwire_framing::phit24::Phit;
use phitwire_framing::set48::{Set, SetBytes};

use crate::machine::aries::link::{LcbRegisters, Scrambler};

/// The number nearest to `last` that agrees with `number` in its last `BITS` bits.
fn nearest<const BITS: u32>(last: u64, number: u64) -> u64 {
    let unused = u64::BITS - BITS;
    let ahead = (number.wrapping_sub(last) << unused) as i64 >> unused;
    last.wrapping_add_signed(ahead)
}

/// The late `copy` as if numbers had `BITS` bits (enough for the window, and few enough to come
/// round in a run), read at a link where `last` came last: of another session, it is what it was.
pub(crate) fn with_short_numbers<const BITS: u32>(last: &[u8], copy: Vec<u8>) -> Vec<u8> {
    let forged = match (DataFrame::parse(last), DataFrame::parse(&copy)) {
        (Ok(last), Ok(old)) if last.header().tx_epoch == old.header().tx_epoch => {
            let (Ok(now), Ok(mut word)) = (last.control_word(), old.control_word()) else {
                return copy;
            };
            word.seq = PacketNumber::new(nearest::<BITS>(now.seq.get(), word.seq.get()));
            word.ack = PacketNumber::new(nearest::<BITS>(now.ack.get(), word.ack.get()));
            word.pass = now.pass;
            let mut phits = vec![Phit::IDLE; old.phits()];
            old.decode(&mut phits);
            let mut bytes = vec![0; copy.len()];
            emit_data(old.header(), &word, &[&phits, &[]], &mut bytes)
                .is_ok()
                .then_some(bytes)
        }
        _ => match (SetFrame::parse(last), SetFrame::parse(&copy)) {
            (Ok(last), Ok(old)) if last.header().tx_epoch == old.header().tx_epoch => {
                sets_with_short_numbers::<BITS>(&last, &old, copy.len())
            }
            _ => None,
        },
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

/// The sets of a frame as they were before they were scrambled.
fn plain_sets<'a>(frame: &SetFrame<'a>) -> impl Iterator<Item = SetBytes> + use<'a> {
    let scrambler = scrambler(frame);
    frame.iter().map(move |mut set| {
        scrambler.apply(&mut set);
        set
    })
}
