//! Links whose numbers are too short, for the canaries: late copies as such links would read them.

use phitwire_framing::frame::{Frame, SetFrame, SetFrameWriter, emit_data, parse};
use phitwire_framing::number::PacketNumber;
use phitwire_framing::phit24::Phit;
use phitwire_framing::set48::Set;

/// Bits that are left of the numbers: enough for the windows of both machines, and few enough to come round in a run.
const BITS: u32 = 14;

/// The number nearest to `last` that agrees with `number` in the bits that are left.
fn nearest(last: u64, number: u64) -> u64 {
    const UNUSED: u32 = u64::BITS - BITS;
    let ahead = (number.wrapping_sub(last) << UNUSED) as i64 >> UNUSED;
    last.wrapping_add_signed(ahead)
}

/// The late `copy` as if numbers had few bits, read at a link where `last` came last: of another session, it is what it was.
pub(super) fn with_short_numbers(last: &[u8], copy: Vec<u8>) -> Vec<u8> {
    let forged = match (parse(last), parse(&copy)) {
        (Ok(Frame::Data(last)), Ok(Frame::Data(old)))
            if last.header().tx_epoch == old.header().tx_epoch =>
        {
            let (Ok(now), Ok(mut word)) = (last.control_word(), old.control_word()) else {
                return copy;
            };
            word.seq = PacketNumber::new(nearest(now.seq.get(), word.seq.get()));
            word.ack = PacketNumber::new(nearest(now.ack.get(), word.ack.get()));
            word.pass = now.pass;
            let mut phits = vec![Phit::IDLE; old.phits()];
            old.decode(&mut phits);
            let mut bytes = vec![0; copy.len()];
            emit_data(old.header(), &word, &[&phits, &[]], &mut bytes)
                .is_ok()
                .then_some(bytes)
        }
        (Ok(Frame::Sets(last)), Ok(Frame::Sets(old)))
            if last.header().tx_epoch == old.header().tx_epoch =>
        {
            sets_with_short_numbers(&last, &old, copy.len())
        }
        _ => None,
    };
    forged.unwrap_or(copy)
}

fn sets_with_short_numbers(
    last: &SetFrame<'_>,
    old: &SetFrame<'_>,
    length: usize,
) -> Option<Vec<u8>> {
    let now = last.iter().find_map(|set| match Set::parse(&set) {
        Ok(Set::Control(set)) => Some(set),
        _ => None,
    })?;
    let mut bytes = vec![0; length];
    let mut writer = SetFrameWriter::new(old.header(), &mut bytes).ok()?;
    for set in old.iter() {
        let slot = writer.slot()?;
        match Set::parse(&set) {
            Ok(Set::Control(mut set)) => {
                set.next = nearest(now.next.into(), set.next.into()) as u32;
                set.ack = nearest(now.ack.into(), set.ack.into()) as u32;
                set.vc_acks = now.vc_acks;
                set.emit(slot);
            }
            _ => *slot = set,
        }
    }
    writer.finish().map(|_| bytes)
}
