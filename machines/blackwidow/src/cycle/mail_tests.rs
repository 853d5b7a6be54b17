//! Self-made golden vectors of the phits and credits in mail.

use super::BlackWidow;
use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire::sim::direct::model::Lanes as _;
use phitwire_framing::yarc::phit::{Phit, PhitKind};

const PHIT: [u8; 4] = [0xde, 0xbc, 0x2a, 0x03];

#[test]
fn phits_are_golden() {
    let phit = Phit::new(PhitKind::Eop, 0x2a_bcde).to_bits();
    let mut mail = Vec::new();
    BlackWidow::write_phit(phit, &mut mail);
    assert_eq!(mail, PHIT);
    let read = |bytes: &[u8]| BlackWidow::read_phit(&mut Reader::new(bytes));
    assert_eq!(read(&PHIT), Ok(phit));
    assert_eq!(read(&PHIT[..3]), Err(MailError::Entries));
    for (byte, bit) in [(2, 0x40), (2, 0x80), (3, 0x04), (3, 0x80)] {
        let mut wrong = PHIT;
        wrong[byte] |= bit;
        assert_eq!(read(&wrong), Err(MailError::Phit), "{byte} {bit:x}");
    }
}

#[test]
fn credits_are_golden() {
    let credits = [5, 0x0008_0001];
    let mut mail = Vec::new();
    BlackWidow::write_credits(&credits, &mut mail);
    assert_eq!(mail, [5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 8, 0, 0, 0, 0, 0]);
    let read = |window| BlackWidow::read_credits(&mut Reader::new(&mail), window);
    assert_eq!((read(20), read(64)), (Ok(credits), Ok(credits)));
    assert_eq!(read(19), Err(MailError::Credits));
    let short = BlackWidow::read_credits(&mut Reader::new(&mail[..15]), 20);
    assert_eq!(short, Err(MailError::Entries));
}
