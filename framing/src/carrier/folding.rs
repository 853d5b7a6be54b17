//! Remainders by carry-less multiplication, where the processor supports it.
//!
//! A check is the remainder of a long polynomial. Each of its words is multiplied by the power of x
//! for its distance from the end, modulo the divisor. The products are independent and can be added
//! in any order. The sum is divided by Barrett's method: it is multiplied by the divisor's inverse.

use core::arch::x86_64::{
    __m128i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_extract_epi64, _mm_set_epi64x,
    _mm_xor_si128,
};

/// A 128-bit word with these halves.
#[inline]
#[target_feature(enable = "sse4.1")]
pub(crate) fn word(high: u64, low: u64) -> __m128i {
    _mm_set_epi64x(high as i64, low as i64)
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn low(word: __m128i) -> u64 {
    _mm_cvtsi128_si64(word) as u64
}

#[inline]
#[target_feature(enable = "sse4.1")]
fn high(word: __m128i) -> u64 {
    _mm_extract_epi64::<1>(word) as u64
}

/// The sum of two words.
#[inline]
#[target_feature(enable = "sse4.1")]
pub(crate) fn add(a: __m128i, b: __m128i) -> __m128i {
    _mm_xor_si128(a, b)
}

/// The carry-less product of two halves.
#[inline]
#[target_feature(enable = "pclmulqdq,sse4.1")]
pub(crate) fn product(a: u64, b: u64) -> __m128i {
    _mm_clmulepi64_si128::<0x00>(word(0, a), word(0, b))
}

/// The divisor: a polynomial of degree `BITS`, without its highest term.
pub(crate) struct Divisor<const POLYNOMIAL: u32, const BITS: u32>;

impl<const POLYNOMIAL: u32, const BITS: u32> Divisor<POLYNOMIAL, BITS> {
    const WHOLE: u64 = POLYNOMIAL as u64 | 1 << BITS;

    /// x^(64 + `BITS`) divided by the divisor, without the quotient's highest term x^64.
    const INVERSE: u64 = {
        let (mut rest, mut quotient) = (1_u128 << (64 + BITS), 0_u128);
        let mut bit = 64 + BITS;
        while bit >= BITS {
            if rest >> bit & 1 != 0 {
                quotient |= 1 << (bit - BITS);
                rest ^= (Self::WHOLE as u128) << (bit - BITS);
            }
            bit -= 1;
        }
        quotient as u64
    };

    /// The remainder of x^`exponent`.
    pub(crate) const fn power(exponent: u32) -> u64 {
        let mut state = 1;
        let mut i = 0;
        while i < exponent {
            state <<= 1;
            if state >> BITS != 0 {
                state ^= Self::WHOLE;
            }
            i += 1;
        }
        state
    }

    /// A value of at most 64 + `BITS` bits with the same remainder as `of` followed by `BEHIND`
    /// zero bits.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(crate) fn moved<const BEHIND: u32>(of: __m128i) -> __m128i {
        let by = word(
            const { Self::power(BEHIND + 64) },
            const { Self::power(BEHIND) },
        );
        add(
            _mm_clmulepi64_si128::<0x11>(of, by),
            _mm_clmulepi64_si128::<0x00>(of, by),
        )
    }

    /// The remainder of 128 bits.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(crate) fn remainder(sum: __m128i) -> u32 {
        let carried = product(high(sum), const { Self::power(64) });
        Self::remainder_of_short(add(carried, word(0, low(sum))))
    }

    /// The remainder of at most 64 + `BITS` bits.
    #[inline]
    #[target_feature(enable = "pclmulqdq,sse4.1")]
    pub(crate) fn remainder_of_short(sum: __m128i) -> u32 {
        let (low_part, high_part) = (low(sum), high(sum));
        let top = high_part << (64 - BITS) | low_part >> BITS;
        let quotient = high(product(top, Self::INVERSE)) ^ top;
        let multiple = low(product(quotient, Self::WHOLE));
        ((low_part ^ multiple) & ((1 << BITS) - 1)) as u32
    }
}
