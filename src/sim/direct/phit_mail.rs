//! Phits and credits as [mail](super::mail).

use super::exchange::{Arrivals, Batch, Exchange, all_cycles};
use super::mail::{Address, Kind, MailError, Reader, Writer};
use super::model::Lanes;

impl<L: Lanes> Batch<L> {
    /// Writes all arrivals as a mail, and empties the batch.
    pub(super) fn write(&mut self, mail: &mut Vec<u8>, address: Address) {
        let mut writer = Writer::begin(mail, Kind::Phits, address);
        let mut phits = self.phits.drain(..);
        for (window, slot, arrivals) in self.slots.drain(..) {
            let entry = writer.entry();
            entry.extend(slot.to_le_bytes());
            entry.extend(window.to_le_bytes());
            entry.extend(arrivals.phits.to_le_bytes());
            L::write_credits(&arrivals.credits, entry);
            let count = arrivals.phits.count_ones() as usize;
            for phit in phits.by_ref().take(count) {
                L::write_phit(phit, entry);
            }
        }
        drop(phits);
        writer.finish();
    }
}

impl<L: Lanes> Exchange<L> {
    /// Reads the arrivals that another part sent in the windows that have just ended.
    ///
    /// # Errors
    /// See [`MailError`].
    pub(super) fn read(&self, mail: &[u8], address: Address) -> Result<Batch<L>, MailError> {
        let (count, mut reader) = Reader::open(mail, Kind::Phits, address)?;
        let mut batch = Batch::default();
        for _ in 0..count {
            let (slot, window, phits) = (reader.u32()?, reader.u64()?, reader.u64()?);
            if !self.owns(slot) {
                return Err(MailError::Slot(slot));
            }
            if !self.awaits(window) {
                return Err(MailError::Window(window));
            }
            if phits & !all_cycles(self.window) != 0 {
                return Err(MailError::Cycle);
            }
            let credits = L::read_credits(&mut reader, self.window)?;
            for _ in 0..phits.count_ones() {
                batch.phits.push(L::read_phit(&mut reader)?);
            }
            batch
                .slots
                .push((window, slot, Arrivals { phits, credits }));
        }
        reader.end()?;
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::link::MAX_VCS;
    use crate::sim::direct::mail::seal;

    const WINDOW: usize = 4;
    const ADDRESS: Address = Address {
        from: 1,
        to: 0,
        exchange: 3,
    };

    /// Links with phits of 15 bits and one virtual channel.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Plain;

    impl Lanes for Plain {
        type Phit = u16;
        type Credits = u8;

        const CHIP_LANES: usize = 2;

        fn lanes(port: usize) -> (usize, usize) {
            (port, 1)
        }
        fn delay_credits(credits: &u8, by: usize, window: usize) -> [u8; 2] {
            let all = u64::from(*credits) << by;
            [(all & 0xf) as u8, (all >> window) as u8]
        }
        fn add_credits(credits: &mut u8, more: &u8) {
            *credits |= more;
        }
        fn count_credits(credits: &u8) -> [u32; MAX_VCS] {
            [credits.count_ones(), 0, 0, 0, 0, 0, 0, 0]
        }
        fn write_phit(phit: u16, mail: &mut Vec<u8>) {
            mail.extend(phit.to_le_bytes());
        }
        fn read_phit(mail: &mut Reader<'_>) -> Result<u16, MailError> {
            let phit = mail.u16()?;
            if phit >> 15 != 0 {
                return Err(MailError::Phit);
            }
            Ok(phit)
        }
        fn write_credits(credits: &u8, mail: &mut Vec<u8>) {
            mail.push(*credits);
        }
        fn read_credits(mail: &mut Reader<'_>, window: usize) -> Result<u8, MailError> {
            let credits = mail.u8()?;
            if credits >> window != 0 {
                return Err(MailError::Credits);
            }
            Ok(credits)
        }
    }

    /// Two lanes of a chip and one of a terminal. Links take up to four windows, so mail may have
    /// arrivals for six.
    fn exchange() -> Exchange<Plain> {
        let mut exchange = Exchange::new(0, WINDOW, 1, 1);
        exchange.finish(16);
        exchange
    }

    fn batch(slots: &[(u64, u32, u64, u8)], phits: &[u16]) -> Batch<Plain> {
        let slot = |&(window, slot, phits, credits)| (window, slot, Arrivals { phits, credits });
        Batch {
            slots: slots.iter().map(slot).collect(),
            phits: phits.to_vec(),
        }
    }

    /// Self-made vector, computed without this code.
    const GOLDEN: [u8; 86] = [
        0x50, 0x57, 0x4d, 0x01, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x56, 0x00,
        0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0x22, 0x11, 0x44, 0x33, 0x00, 0x00, 0x00,
        0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x08, 0x37, 0x96, 0xdc, 0x08, 0x7c, 0x5b, 0xec, 0x40,
    ];

    fn meaning() -> Batch<Plain> {
        let slots = [(5, 2, 0b1010, 3), (1, 0, 0, 8)];
        batch(&slots, &[0x1122, 0x3344])
    }

    #[test]
    fn emit() {
        let (mut mail, mut batch) = (vec![0xa5; 200], meaning());
        batch.write(&mut mail, ADDRESS);
        assert_eq!(mail, GOLDEN);
        assert!(batch.slots.is_empty() && batch.phits.is_empty());
    }

    #[test]
    fn parse() {
        let batch = exchange().read(&GOLDEN, ADDRESS).expect("it is golden");
        assert_eq!(batch.slots, meaning().slots);
        assert_eq!(batch.phits, meaning().phits);
    }

    #[test]
    fn every_damage_is_noticed() {
        let exchange = exchange();
        for length in 0..GOLDEN.len() {
            assert!(
                exchange.read(&GOLDEN[..length], ADDRESS).is_err(),
                "{length} bytes"
            );
        }
        for bit in 0..8 * GOLDEN.len() {
            let mut mail = GOLDEN;
            mail[bit / 8] ^= 1 << (bit % 8);
            assert!(exchange.read(&mail, ADDRESS).is_err(), "bit {bit}");
        }
    }

    /// Each case changes one byte, corrects the hash, and expects this error.
    #[test]
    fn the_reason_names_the_field() {
        for (at, value, reason) in [
            (4, 2, MailError::Kind(2)),
            (24, 3, MailError::Entries),
            (24, 1, MailError::Entries),
            (32, 3, MailError::Slot(3)),
            (36, 6, MailError::Window(6)),
            (44, 0x1a, MailError::Cycle),
            (44, 0x0b, MailError::Entries),
            (52, 0x13, MailError::Credits),
            (54, 0x91, MailError::Phit),
        ] {
            let mut mail = GOLDEN;
            assert_ne!(mail[at], value);
            mail[at] = value;
            seal(&mut mail);
            let read = exchange().read(&mail, ADDRESS);
            assert_eq!(read.err(), Some(reason), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            slots in prop::collection::vec((0..6_u64, 0..3_u32, 0..16_u64, 0..16_u8), 0..9),
            phits in prop::collection::vec(0..0x8000_u16, 36),
        ) {
            let count: u32 = slots.iter().map(|slot| slot.2.count_ones()).sum();
            let sent = batch(&slots, &phits[..count as usize]);
            let mut mail = Vec::new();
            sent.clone().write(&mut mail, ADDRESS);
            let read = exchange().read(&mail, ADDRESS);
            let read = read.expect("it was written");
            prop_assert_eq!((read.slots, read.phits), (sent.slots, sent.phits));
        }

        /// Also receives the mail that is accepted.
        #[test]
        fn no_bytes_cause_a_panic(
            changes: Vec<(prop::sample::Index, u8)>,
            cut: prop::sample::Index,
        ) {
            let mut mail = GOLDEN.to_vec();
            for (at, value) in changes {
                let at = at.index(mail.len());
                mail[at] = value;
            }
            seal(&mut mail);
            let mut exchange = exchange();
            if let Ok(mut batch) = exchange.read(&mail, ADDRESS) {
                exchange.receive(&mut batch);
            }
            mail.truncate(cut.index(GOLDEN.len()));
            prop_assert!(exchange.read(&mail, ADDRESS).is_err());
        }
    }
}
