//! Detection properties of the two checks of Aries, proved by counting.
//!
//! The syndromes come from the codecs, one flipped bit at a time, so the results hold for the bits
//! on the wire.

use crate::common::distance::{powers, undetected};
use phitwire_framing::aries::crc20;
use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, NodeId, Routing};
use phitwire_framing::aries::packet::{self, packet_check};
use phitwire_framing::aries::set::SET_BYTES;

/// The change of the check for each of the 480 bits of a set.
fn set_syndromes() -> Vec<u32> {
    let zero = crc20::check(&[0; SET_BYTES]);
    (0..SET_BYTES * 8)
        .map(|bit| match (SET_BYTES * 8 - 1 - bit) as u32 {
            own if own < crc20::BITS => 1 << own,
            _ => {
                let mut set = [0; SET_BYTES];
                set[bit / 8] = 0x80 >> (bit % 8);
                crc20::check(&set) ^ zero
            }
        })
        .collect()
}

/// Counts undetected patterns of six flipped bits, assuming that there are none of fewer bits: each
/// is ten pairs of triples with equal syndromes, and such triples have no bit in common.
fn undetected_six(syndromes: &[u32]) -> u64 {
    let mut triples = vec![0_u32; 1 << crc20::BITS];
    for (i, a) in syndromes.iter().enumerate() {
        for (j, b) in syndromes[..i].iter().enumerate() {
            for c in &syndromes[..j] {
                triples[(a ^ b ^ c) as usize] += 1;
            }
        }
    }
    let count = |n: &u32| u64::from(*n) * u64::from(n.saturating_sub(1)) / 2;
    triples.iter().map(count).sum::<u64>() / 10
}

#[test]
fn set_check_has_distance_six() {
    let syndromes = set_syndromes();
    assert_eq!(syndromes.len(), 480);
    assert_eq!(undetected(&syndromes, crc20::BITS), [0, 0, 0]);
    // Each flipped bit changes the parity of the syndrome, because x + 1 divides the polynomial. So
    // an odd number of them, such as five, cannot cancel.
    assert!(
        syndromes
            .iter()
            .all(|syndrome| syndrome.count_ones() % 2 == 1)
    );
}

#[test]
fn set_check_misses_few_patterns_of_six() {
    assert_eq!(undetected_six(&set_syndromes()), 31_588_564);
}

#[test]
fn set_check_is_the_documented_polynomial() {
    let mut from_first = powers(crc20::POLYNOMIAL, crc20::BITS, SET_BYTES * 8);
    from_first.reverse();
    assert_eq!(set_syndromes(), from_first);
}

#[test]
fn set_check_detects_bursts_up_to_twenty_bits() {
    // A burst is b(x) x^k with deg b < 20, which is never a multiple of a polynomial of degree 20
    // with a constant term. So twenty neighbouring syndromes are linearly independent; verified by
    // elimination.
    for window in set_syndromes().windows(crc20::BITS as usize) {
        let mut basis: Vec<u32> = Vec::new();
        for syndrome in window {
            let rest = basis
                .iter()
                .fold(*syndrome, |rest, row| rest.min(rest ^ row));
            assert_ne!(rest, 0);
            basis.push(rest);
        }
    }
}

#[test]
fn the_counting_can_fail() {
    // x^20 + x^3 + 1 is primitive: distance 3, and is itself an undetected pattern of three bits.
    let [two, three, _] = undetected(&powers(0x9, crc20::BITS, 480), crc20::BITS);
    assert_eq!(two, 0);
    assert!(three >= 460);
    // A divisor of x^480 + x^240 + ... has a short period: two flipped bits one period apart.
    assert!(undetected(&powers(0x1, crc20::BITS, 480), crc20::BITS)[0] > 0);
    // The published polynomial with distance 6 for up to 494 bits of data has undetected patterns
    // beyond that.
    assert_eq!(
        undetected(&powers(crc20::POLYNOMIAL, crc20::BITS, 514), crc20::BITS),
        [0, 0, 0]
    );
    assert!(undetected(&powers(crc20::POLYNOMIAL, crc20::BITS, 515), crc20::BITS)[2] > 0);
}

/// The change of the check for each bit of a packet of `flits` flits, except the bits that routers
/// write.
fn packet_syndromes(flits: usize) -> Vec<u32> {
    let (from, to) = (NodeId::new(0, 0, 0), Routing::Adaptive0);
    let mut packet = vec![Flit::IDLE; flits];
    packet[0] = Head::new(false, flits as u8, from, to, 0, 0).flit();
    let difference = |packet: &[Flit]| {
        let check = packet_check(packet);
        u32::from(check.computed ^ check.found)
    };
    let zero = difference(&packet);
    let mut syndromes = Vec::new();
    for at in 0..flits {
        for bit in 0..48 {
            let free = at == 0 && (bit >= 44 || bit == 6);
            let before = packet[at];
            packet[at] = Flit::new(before.bits() ^ 1 << bit);
            let syndrome = difference(&packet) ^ zero;
            packet[at] = before;
            assert_eq!(syndrome == 0, free, "flit {at} bit {bit}");
            if !free {
                syndromes.push(syndrome);
            }
        }
    }
    syndromes
}

#[test]
fn packet_check_has_distance_four_at_every_length() {
    for flits in 2..=MAX_PACKET_FLITS {
        let syndromes = packet_syndromes(flits);
        assert_eq!(syndromes.len(), 48 * flits - 5);
        let [two, three, _] = undetected(&syndromes, 16);
        assert_eq!((two, three), (0, 0), "{flits} flits");
    }
}

#[test]
fn packet_check_misses_the_fewest_patterns_of_four() {
    // Over all 672 bits of 14 flits, as counted in the search over all polynomials.
    let whole = |polynomial| undetected(&powers(polynomial, 16, 672), 16);
    assert_eq!(whole(packet::POLYNOMIAL.into()), [0, 0, 118_383]);
    assert_eq!(whole(0x1021), [0, 0, 254_844]);
    assert!(undetected(&packet_syndromes(14), 16)[2] < 118_383);
    // The shortest packet with an area, and a put of eight bytes.
    assert_eq!(undetected(&packet_syndromes(2), 16)[2], 27);
    assert_eq!(undetected(&packet_syndromes(5), 16)[2], 1_402);
}
