//! Detection properties of a check, found by counting.
//!
//! An error pattern is undetected exactly when the syndromes of its bits cancel. Patterns of weight
//! 2, 3 and 4 are counted over all pairs of bit positions, so the counts hold for every content and
//! not only for samples.

/// x^exponent modulo a polynomial of degree `bits`, for all exponents below `count`.
pub fn powers(polynomial: u32, bits: u32, count: usize) -> Vec<u32> {
    let step = |power: &u32| {
        let carry = power >> (bits - 1);
        Some((power << 1 & ((1 << bits) - 1)) ^ (polynomial * carry))
    };
    std::iter::successors(Some(1), step).take(count).collect()
}

/// Numbers of undetected patterns of two, three and four flipped bits; the syndromes have `bits`
/// bits.
pub fn undetected(syndromes: &[u32], bits: u32) -> [u64; 3] {
    let mut pairs = vec![0_u64; 1 << bits];
    for (i, a) in syndromes.iter().enumerate() {
        for b in &syndromes[..i] {
            pairs[(a ^ b) as usize] += 1;
        }
    }
    // A triple appears as three (bit, pair of the others), a quadruple as three pairs of pairs.
    let three: u64 = syndromes.iter().map(|s| pairs[*s as usize]).sum();
    let four: u64 = pairs[1..].iter().map(|n| n * n.saturating_sub(1) / 2).sum();
    [pairs[0], three / 3, four / 3]
}
