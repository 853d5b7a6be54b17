//! Canaries with links whose numbers are too short: late copies are misread as they would be on
//! such links.

use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::frame::{DataFrame, emit_data};
use phitwire_framing::yarc::phit::Phit;

use phitwire::sim::soak::testing::nearest;

/// The late `copy` as if numbers had `BITS` bits (enough for the window, few enough to wrap in a
/// run), at a link whose latest frame was `last`. Copies of another session are returned unchanged.
pub(super) fn with_short_numbers<const BITS: u32>(last: &[u8], copy: Vec<u8>) -> Vec<u8> {
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
        _ => None,
    };
    forged.unwrap_or(copy)
}
