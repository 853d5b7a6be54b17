//! Golden vectors, self-made, of flits and credits in mail.

use super::T3e;
use super::credits::Returned;
use phitwire::sim::direct::mail::{MailError, Reader};
use phitwire::sim::direct::model::Lanes as _;
use phitwire_framing::t3e::flit::{Flit, vc};

#[test]
fn flits_are_golden() {
    let golden = [0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0x45];
    let flit = Flit::data(0x0123_4567_89ab_cdef, vc::ADAPTIVE, true);
    let mut mail = Vec::new();
    T3e::write_phit(flit, &mut mail);
    assert_eq!(mail, golden);
    let read = |bytes: &[u8]| T3e::read_phit(&mut Reader::new(bytes));
    assert_eq!(read(&golden), Ok(flit));
    assert_eq!(read(&golden[..8]), Err(MailError::Entries));
    // An unused bit, an idle flit with the mark of a first one, and an unknown channel.
    for control in [0xc5, 0x40, 0x35] {
        let mut wrong = golden;
        wrong[8] = control;
        assert_eq!(read(&wrong), Err(MailError::Phit), "{control:x}");
    }
}

#[test]
fn credits_are_golden() {
    let mut credits = Returned::default();
    credits.set(0, 4);
    credits.set(2, 1);
    let mut mail = Vec::new();
    T3e::write_credits(&credits, &mut mail);
    assert_eq!(mail, [5, 0, 2, 0]);
    let read = |mail: &[u8], window| T3e::read_credits(&mut Reader::new(mail), window);
    assert_eq!(read(&mail, 3), Ok(credits));
    assert_eq!(read(&mail, 2), Err(MailError::Credits));
    assert_eq!(read(&[6, 0, 0, 0], 3), Err(MailError::Credits));
    assert_eq!(read(&mail[..3], 3), Err(MailError::Entries));
}
