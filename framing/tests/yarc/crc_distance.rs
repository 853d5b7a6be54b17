//! Detection properties of the two 16-bit checks, proved by counting.

use crate::common::distance::{powers, undetected};
use phitwire_framing::carrier::number::PacketNumber;
use phitwire_framing::yarc::control;
use phitwire_framing::yarc::crc16::{self, PacketCrc};
use phitwire_framing::yarc::packet::{Eop, EopStatus, MAX_PACKET_PHITS};
use phitwire_framing::yarc::phit::{Phit, PhitKind};

/// Syndromes of all bits of a packet of `phits` phits on the wire: 22 of each phit but the last,
/// two of `ok`, sixteen of the check.
fn packet_syndromes(polynomial: u16, phits: usize) -> Vec<u32> {
    let powers = powers(polynomial.into(), 16, 24 * phits + 24);
    let check_and_ok = 0..18;
    let content = (0..phits - 1).flat_map(|later| (0..22).map(move |bit| 24 + 24 * later + bit));
    check_and_ok
        .chain(content)
        .map(|exponent| powers[exponent])
        .collect()
}

/// A CRC of the `crc` crate with our documented parameters.
fn documented(poly: u16, init: u16) -> crc::Crc<u16> {
    let algorithm: &'static _ = Box::leak(Box::new(crc::Algorithm {
        width: 16,
        poly,
        init,
        refin: false,
        refout: false,
        xorout: 0,
        check: 0,
        residue: 0,
    }));
    crc::Crc::<u16>::new(algorithm)
}

#[test]
fn packet_check_has_distance_four_at_every_length() {
    for phits in 4..=MAX_PACKET_PHITS {
        let syndromes = packet_syndromes(crc16::POLYNOMIAL, phits);
        assert_eq!(syndromes.len(), (phits - 1) * 22 + 18);
        let [two, three, four] = undetected(&syndromes, 16);
        assert_eq!((two, three), (0, 0), "{phits} phits");
        match phits {
            4 => assert_eq!(four, 0, "distance 5 for the shortest packet"),
            10 => assert_eq!(four, 682),
            19 => assert_eq!(four, 15_195),
            _ => {}
        }
    }
}

#[test]
fn the_counting_can_fail() {
    // CRC-16/M17 has distance 5 up to ten phits but misses double errors from eleven on.
    assert_eq!(undetected(&packet_syndromes(0x5935, 10), 16), [0, 0, 0]);
    assert!(undetected(&packet_syndromes(0x5935, 11), 16)[0] > 0);
}

/// The codec's check has the counted syndromes, which tests more than its polynomial.
#[test]
fn syndromes_are_those_of_the_codec() {
    let contents = [0x12345_u32, 0x3fffff, 0, 0x2aaaaa, 0x15555];
    let check = |contents: &[u32], status| {
        let mut crc = PacketCrc::new();
        contents.iter().for_each(|content| crc.update(*content));
        u32::from(crc.finish_with(status))
    };
    let good = check(&contents, EopStatus::Healthy);
    let powers = powers(crc16::POLYNOMIAL.into(), 16, 200);
    for phit in 0..contents.len() {
        for bit in 0..22 {
            let mut bad = contents;
            bad[phit] ^= 1 << bit;
            let exponent = 24 + 24 * (contents.len() - 1 - phit) + bit;
            assert_eq!(good ^ check(&bad, EopStatus::Healthy), powers[exponent]);
        }
    }
    let statuses = [EopStatus::TransmitError, EopStatus::SoftError];
    let syndromes = statuses.map(|status| good ^ check(&contents, status));
    assert_eq!(syndromes, [powers[16], powers[17]]);
}

#[test]
fn packet_check_is_the_documented_crc() {
    let reference = documented(crc16::POLYNOMIAL, crc16::INITIAL);
    let mut contents = Vec::new();
    let mut content = 0x2c0ffe_u32;
    for _ in 1..MAX_PACKET_PHITS {
        contents.push(content);
        content = content.wrapping_mul(0x9e37).wrapping_add(0x1234567) & 0x3f_ffff;
        let (mut crc, mut at_once) = (PacketCrc::new(), PacketCrc::new());
        let mut digest = reference.digest();
        for content in &contents {
            crc.update(*content);
            digest.update(&content.to_be_bytes()[1..]);
        }
        let phits = contents.iter().map(|c| Phit::new(PhitKind::Body, *c));
        at_once.update_all(&phits.collect::<Vec<_>>());
        assert_eq!(crc, at_once);
        use EopStatus::{Healthy, SoftError, TransmitError};
        for status in [Healthy, TransmitError, SoftError] {
            let mut digest = digest.clone();
            digest.update(&[status as u8]);
            let expected = digest.finalize();
            assert_eq!(crc.finish_with(status), expected);
            let eop = Eop {
                crc: expected,
                status,
            };
            assert_eq!(crc.eop(status), eop.emit());
            assert_eq!(crc.verify(eop.emit()), Ok(status));
        }
    }
}

#[test]
fn control_word_check_has_distance_six() {
    let syndromes = powers(control::POLYNOMIAL.into(), 16, 96);
    assert_eq!(undetected(&syndromes, 16), [0, 0, 0]);
    // x + 1 divides the polynomial, which has an even number of terms including x^16. So every odd
    // number of flipped bits is detected, such as five.
    assert_eq!((control::POLYNOMIAL.count_ones() + 1) % 2, 0);
}

#[test]
fn control_word_check_is_the_documented_crc() {
    let reference = documented(control::POLYNOMIAL, control::INITIAL);
    for seq in [0, 1, 0x8000, 0xffff] {
        let word = control::ControlWord {
            seq: PacketNumber::new(seq),
            ack: PacketNumber::new(!seq),
            ..Default::default()
        };
        let word = word.emit();
        let check = u16::from_be_bytes([word[10], word[11]]);
        assert_eq!(check, reference.checksum(&word[..10]));
    }
}

#[test]
fn bursts_up_to_sixteen_bits_are_detected() {
    // In the bit stream of the check, a burst of up to 16 bits is b(x) * x^k with deg b < 16, which
    // is never a multiple of a polynomial of degree 16 with a constant term. Tested nevertheless,
    // for adjacent bits of one phit. The bits of one lane are not adjacent.
    let mut crc = PacketCrc::new();
    for content in [1, 2, 3] {
        crc.update(content);
    }
    let good = crc.finish_with(EopStatus::Healthy);
    for burst in 1..0x1_0000_u32 {
        let mut crc = PacketCrc::new();
        for content in [1, 2 ^ burst, 3] {
            crc.update(content);
        }
        let bad = crc.finish_with(EopStatus::Healthy);
        assert_ne!(bad, good, "burst {burst:#x}");
    }
}
