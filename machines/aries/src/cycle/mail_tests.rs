//! Self-made golden vectors of the flits, credits and loads in mail.

use super::Aries;
use super::credits::Returned;
use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire::sim::direct::model::Lanes as _;

#[test]
fn flits_are_golden() {
    let golden = [0xab, 0x89, 0x67, 0x45, 0x23, 0x01];
    let mut mail = Vec::new();
    Aries::write_phit(0x0123_4567_89ab, &mut mail);
    assert_eq!(mail, golden);
    let read = |bytes: &[u8]| Aries::read_phit(&mut Reader::new(bytes));
    assert_eq!(read(&golden), Ok(0x0123_4567_89ab));
    assert_eq!(read(&golden[..5]), Err(MailError::Entries));
}

/// Cycles, the three bits of the channels, and loads.
const CREDITS: [u8; 40] = [
    9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    0x1f, 0, 0x0a, 0, 0, 0, 0, 0,
];

#[test]
fn credits_and_loads_are_golden() {
    let mut credits = Returned::default();
    credits.credit(0, 7);
    credits.credit(3, 2);
    credits.record_load(0, 15);
    credits.record_load(30, 4);
    let mut mail = Vec::new();
    Aries::write_credits(&credits, &mut mail);
    assert_eq!(mail, CREDITS);
    let read = |mail: &[u8], window| Aries::read_credits(&mut Reader::new(mail), window);
    assert_eq!(read(&CREDITS, 40), Ok(credits));
    assert_eq!(read(&CREDITS[..39], 40), Err(MailError::Entries));
    // Credits and loads after the window.
    assert_eq!(read(&CREDITS, 3), Err(MailError::Credits));
    assert_eq!(read(&CREDITS, 30), Err(MailError::Credits));
    // Channel bits without a credit.
    for word in 1..4 {
        let mut wrong = CREDITS;
        wrong[8 * word] |= 2;
        assert_eq!(read(&wrong, 40), Err(MailError::Credits));
    }
}
