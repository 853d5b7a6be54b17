//! Frames as [mail](crate::sim::direct::mail).

use super::{LinkFrames, MTU};
use crate::sim::direct::mail::{Address, Kind, MailError, Reader, Writer};
use crate::time::Time;

/// Writes the frames, which are in the order of their links, as a mail, and empties `links`.
pub(super) fn write(links: &mut Vec<LinkFrames>, mail: &mut Vec<u8>, address: Address) {
    let mut writer = Writer::begin(mail, Kind::Frames, address);
    for (link, is_b, frames) in links.drain(..) {
        let entry = writer.entry();
        entry.extend(link.to_le_bytes());
        entry.push(is_b.into());
        entry.extend((frames.len() as u32).to_le_bytes());
        for (sent, frame) in frames {
            entry.extend(sent.as_ps().to_le_bytes());
            entry.extend((frame.len() as u16).to_le_bytes());
            entry.extend(frame);
        }
    }
    writer.finish();
}

/// Reads the frames of a mail, all sent between `since` and `until`, inclusive. `leads_here`
/// returns whether an end of a link receives from the sender.
///
/// # Errors
/// See [`MailError`].
pub(super) fn read(
    mail: &[u8],
    address: Address,
    (since, until): (Time, Time),
    leads_here: impl Fn(u32, bool) -> bool,
) -> Result<Vec<LinkFrames>, MailError> {
    let (count, mut reader) = Reader::open(mail, Kind::Frames, address)?;
    let mut links: Vec<LinkFrames> = Vec::new();
    for _ in 0..count {
        let link = reader.u32()?;
        let is_b = match reader.u8()? {
            0 => false,
            1 => true,
            other => return Err(MailError::End(other)),
        };
        let is_next = links.last().is_none_or(|&(last, ..)| last < link);
        if !is_next || !leads_here(link, is_b) {
            return Err(MailError::Link(link));
        }
        let mut frames = Vec::new();
        let mut last = since;
        for _ in 0..reader.u32()? {
            let sent = Time::from_ps(reader.u64()?);
            if !(last..=until).contains(&sent) {
                return Err(MailError::Time);
            }
            last = sent;
            let length = reader.u16()?;
            if usize::from(length) > MTU {
                return Err(MailError::FrameLength(length));
            }
            frames.push((sent, reader.bytes(length.into())?.to_vec()));
        }
        links.push((link, is_b, frames));
    }
    reader.end()?;
    Ok(links)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sim::direct::mail::seal;

    const ADDRESS: Address = Address {
        from: 1,
        to: 0,
        exchange: 3,
    };
    const SPAN: (Time, Time) = (Time::from_ps(1_000), Time::from_ps(2_000));

    /// Self-made vector, computed without this code.
    const GOLDEN: [u8; 93] = [
        0x50, 0x57, 0x4d, 0x01, 0x02, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x03, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x5d, 0x00,
        0x00, 0x00, 0x07, 0x00, 0x00, 0x00, 0x01, 0x02, 0x00, 0x00, 0x00, 0xe8, 0x03, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x61, 0x62, 0x63, 0xdc, 0x05, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x09, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0xd0, 0x07,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0xff, 0xff, 0x1e, 0xd9, 0x1f, 0x4f, 0x00,
        0x0d, 0x5e, 0xe3,
    ];

    fn meaning() -> Vec<LinkFrames> {
        let frame = |ps, bytes: &[u8]| (Time::from_ps(ps), bytes.to_vec());
        vec![
            (7, true, vec![frame(1_000, b"abc"), frame(1_500, b"")]),
            (9, false, vec![frame(2_000, &[0xff; 2])]),
        ]
    }

    fn parse(mail: &[u8]) -> Result<Vec<LinkFrames>, MailError> {
        read(mail, ADDRESS, SPAN, |link, is_b| (link == 7) == is_b)
    }

    #[test]
    fn emit() {
        let mut mail = vec![0xa5; 200];
        let mut links = meaning();
        write(&mut links, &mut mail, ADDRESS);
        assert_eq!(mail, GOLDEN);
        assert_eq!(links, []);
    }

    #[test]
    fn parse_golden() {
        assert_eq!(parse(&GOLDEN), Ok(meaning()));
    }

    #[test]
    fn every_damage_is_noticed() {
        for length in 0..GOLDEN.len() {
            assert!(parse(&GOLDEN[..length]).is_err(), "{length} bytes");
        }
        for bit in 0..8 * GOLDEN.len() {
            let mut mail = GOLDEN;
            mail[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&mail).is_err(), "bit {bit}");
        }
    }

    /// Each case changes one byte, corrects the hash, and expects this error.
    #[test]
    fn the_reason_names_the_field() {
        let exchange = MailError::Exchange {
            expected: 3,
            found: 4,
        };
        let length = MailError::Length {
            stated: 92,
            found: 93,
        };
        for (at, value, reason) in [
            (3, 2, MailError::Magic),
            (4, 1, MailError::Kind(1)),
            (5, 1, MailError::Reserved),
            (8, 2, MailError::Address(2, 0)),
            (12, 1, MailError::Address(1, 1)),
            (16, 4, exchange),
            (24, 3, MailError::Entries),
            (24, 1, MailError::Entries),
            (28, 92, length),
            (32, 9, MailError::Link(9)),
            (36, 2, MailError::End(2)),
            (37, 3, MailError::Time),
            (41, 0xe7, MailError::Time),
            (50, 0xff, MailError::FrameLength(0xff03)),
            (55, 2, MailError::Time),
            (64, 7, MailError::Link(7)),
        ] {
            let mut mail = GOLDEN;
            assert_ne!(mail[at], value);
            mail[at] = value;
            seal(&mut mail);
            assert_eq!(parse(&mail), Err(reason), "byte {at}");
        }
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(
            times in prop::collection::vec(prop::collection::vec(1_000..=2_000_u64, 1..5), 0..5),
            bytes: Vec<u8>,
        ) {
            let frames = |mut times: Vec<u64>| {
                times.sort_unstable();
                let lengths = times.iter().map(|ps| *ps as usize % (bytes.len() + 1));
                let frames = times.iter().zip(lengths);
                frames.map(|(&ps, length)| (Time::from_ps(ps), bytes[..length].to_vec())).collect()
            };
            let links = (3..).step_by(5).zip(times);
            let sent: Vec<LinkFrames> =
                links.map(|(link, times)| (link, link % 2 == 0, frames(times))).collect();
            let mut mail = Vec::new();
            write(&mut sent.clone(), &mut mail, ADDRESS);
            prop_assert_eq!(read(&mail, ADDRESS, SPAN, |_, _| true), Ok(sent));
        }

        #[test]
        fn no_bytes_cause_a_panic(changes: Vec<(prop::sample::Index, u8)>, cut: prop::sample::Index) {
            let mut mail = GOLDEN.to_vec();
            for (at, value) in changes {
                let at = at.index(mail.len());
                mail[at] = value;
            }
            seal(&mut mail);
            let _ = read(&mail, ADDRESS, SPAN, |_, _| true);
            mail.truncate(cut.index(GOLDEN.len()));
            prop_assert!(read(&mail, ADDRESS, SPAN, |_, _| true).is_err());
        }
    }
}
