//! Reduction operations on the words of a collective's participants.
//!
//! Aries white paper, "Reductions and Barriers": "common logical, integer and floating point
//! reduction operations on 32-bit and 64-bit operands"; minimum and maximum "return a value and an
//! identifier provided by each endpoint". There is no product.
//!
//! - Integers are signed; sums wrap.
//! - Among equal minima (or maxima) the lowest location wins, so that the result does not depend on
//!   the order of combination.
//! - A sum with a NaN, or of opposite infinities, is a NaN. Minimum and maximum prefer a number to
//!   a NaN, like IEEE 754-2019's `minimumNumber`, and order -0 below +0. Every NaN is replaced by
//!   the one quiet NaN without payload or sign, because machines differ in the payload that an
//!   addition produces.

use core::cmp::Ordering;
use core::fmt;
use core::str::FromStr;

use phitwire_framing::listed;
use serde::{Deserialize, Serialize};
use thiserror::Error;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reduce {
    /// Bitwise and; integers only.
    And = 0,
    /// Bitwise or; integers only.
    Or = 1,
    /// Bitwise exclusive or; integers only.
    Xor = 2,
    /// Sum; integers wrap.
    Sum = 3,
    /// The smallest word, and its location.
    Min = 4,
    /// The largest word, and its location.
    Max = 5,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Number {
    Int32 = 0,
    Int64 = 1,
    Float32 = 2,
    Float64 = 3,
}

listed!(Number { Int32 = "i32", Int64 = "i64", Float32 = "f32", Float64 = "f64" });

impl Number {
    /// Size of a word in bytes: 4 or 8.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }

    pub const fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }
}

listed!(Reduce { And = "and", Or = "or", Xor = "xor", Sum = "sum", Min = "min", Max = "max" });

impl Reduce {
    /// Whether the result has a location.
    pub(crate) const fn is_located(self) -> bool {
        matches!(self, Self::Min | Self::Max)
    }

    /// Whether the operation applies to this type: bitwise operations need integers.
    pub(crate) const fn works_on(self, number: Number) -> bool {
        !(number.is_float() && matches!(self, Self::And | Self::Or | Self::Xor))
    }
}

/// A collective operation. As text: `barrier`, `sum-f64`, `min-i32` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Collective {
    /// No participant continues before all have arrived. Carries no words.
    Barrier,
    /// Every participant gets the reduction of all words.
    Reduce(Reduce, Number),
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "unknown collective operation {0:?}: expected barrier, sum, min, max with -i32, -i64, -f32, \
     -f64, or and, or, xor with -i32, -i64"
)]
pub struct UnknownCollective(pub String);

/// Code of the barrier; the codes of reductions follow it.
const BARRIER: u8 = 0;

impl Collective {
    pub fn all() -> impl Iterator<Item = Self> {
        (0..=u8::MAX).filter_map(Self::from_code)
    }

    pub const fn is_valid(self) -> bool {
        match self {
            Self::Barrier => true,
            Self::Reduce(reduce, number) => reduce.works_on(number),
        }
    }

    /// Size in memory of a participant's word and, if there is one, of its location, which follows
    /// it. Both are little endian.
    pub const fn memory_bytes(self) -> usize {
        match self {
            Self::Barrier => 0,
            Self::Reduce(reduce, number) if reduce.is_located() => 2 * number.bytes(),
            Self::Reduce(_, number) => number.bytes(),
        }
    }

    pub const fn code(self) -> u8 {
        match self {
            Self::Barrier => BARRIER,
            Self::Reduce(reduce, number) => 1 + (4 * reduce as u8 + number as u8),
        }
    }

    pub fn from_code(code: u8) -> Option<Self> {
        let Some(code) = code.checked_sub(1) else {
            return Some(Self::Barrier);
        };
        let reduce = *Reduce::ALL.get(usize::from(code / 4))?;
        let collective = Self::Reduce(reduce, Number::ALL[usize::from(code % 4)]);
        collective.is_valid().then_some(collective)
    }

    /// Clears the unused bits of an operand and makes NaNs canonical.
    ///
    /// The word of a barrier proves to a run that all participants have arrived: see
    /// [`combine`](Self::combine).
    pub fn normal(self, operand: Operand) -> Operand {
        let Self::Reduce(reduce, number) = self else {
            return Operand {
                location: 0,
                ..operand
            };
        };
        let bits = match number {
            Number::Int32 => operand.bits & 0xffff_ffff,
            Number::Int64 => operand.bits,
            Number::Float32 => from_f32(operand.as_f32()),
            Number::Float64 => from_f64(operand.as_f64()),
        };
        let location = match number.bytes() {
            _ if !reduce.is_located() => 0,
            4 => operand.location & 0xffff_ffff,
            _ => operand.location,
        };
        Operand { bits, location }
    }

    /// Combines two normal operands. For floating point sums their order matters. A barrier adds
    /// its words, so that the result is unknown before the last participant has arrived.
    pub fn combine(self, first: Operand, second: Operand) -> Operand {
        let Self::Reduce(reduce, number) = self else {
            let bits = first.bits.wrapping_add(second.bits);
            return Operand { bits, location: 0 };
        };
        let bits = match reduce {
            Reduce::And => first.bits & second.bits,
            Reduce::Or => first.bits | second.bits,
            Reduce::Xor => first.bits ^ second.bits,
            Reduce::Sum => sum(number, first, second),
            Reduce::Min | Reduce::Max => {
                let order = preference(reduce == Reduce::Min, number, first, second);
                let order = order.then(first.location.cmp(&second.location));
                return if order.is_le() { first } else { second };
            }
        };
        Operand { bits, location: 0 }
    }
}

fn sum(number: Number, first: Operand, second: Operand) -> u64 {
    match number {
        Number::Int32 => (first.bits as u32).wrapping_add(second.bits as u32).into(),
        Number::Int64 => first.bits.wrapping_add(second.bits),
        Number::Float32 => from_f32(first.as_f32() + second.as_f32()),
        Number::Float64 => from_f64(first.as_f64() + second.as_f64()),
    }
}

/// `Less` if `first` wins.
fn preference(least: bool, number: Number, first: Operand, second: Operand) -> Ordering {
    let towards = |order: Ordering| if least { order } else { order.reverse() };
    match number {
        Number::Int32 => towards(first.as_i32().cmp(&second.as_i32())),
        Number::Int64 => towards(first.as_i64().cmp(&second.as_i64())),
        Number::Float32 | Number::Float64 => {
            let (x, y) = match number {
                // Widening preserves value, sign and order.
                Number::Float32 => (first.as_f32().into(), second.as_f32().into()),
                _ => (first.as_f64(), second.as_f64()),
            };
            let order: Ordering = x.is_nan().cmp(&y.is_nan());
            order.then_with(|| {
                if x.is_nan() {
                    Ordering::Equal
                } else {
                    towards(x.total_cmp(&y))
                }
            })
        }
    }
}

fn from_f64(x: f64) -> u64 {
    if x.is_nan() {
        0x7ff8_0000_0000_0000
    } else {
        x.to_bits()
    }
}

fn from_f32(x: f32) -> u64 {
    if x.is_nan() {
        0x7fc0_0000
    } else {
        x.to_bits().into()
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Barrier => f.write_str("barrier"),
            Self::Reduce(reduce, number) => write!(f, "{}-{}", reduce.name(), number.name()),
        }
    }
}

impl FromStr for Collective {
    type Err = UnknownCollective;

    fn from_str(text: &str) -> Result<Self, UnknownCollective> {
        Self::all()
            .find(|collective| collective.to_string() == text)
            .ok_or_else(|| UnknownCollective(text.to_owned()))
    }
}

impl TryFrom<String> for Collective {
    type Error = UnknownCollective;

    fn try_from(text: String) -> Result<Self, UnknownCollective> {
        text.parse()
    }
}

impl From<Collective> for String {
    fn from(collective: Collective) -> Self {
        collective.to_string()
    }
}

/// A participant's word or the result: its bits, and a location for minimum and maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Operand {
    /// The word; 32-bit words use the low bits.
    pub bits: u64,
    /// Location of the word, in any sense that the participants agree on; 32 bits with 32-bit
    /// words. Zero for operations without a location.
    pub location: u64,
}

impl Operand {
    pub const fn i32(value: i32) -> Self {
        Self::new(value.cast_unsigned() as u64)
    }

    pub const fn i64(value: i64) -> Self {
        Self::new(value.cast_unsigned())
    }

    pub const fn f32(value: f32) -> Self {
        Self::new(value.to_bits() as u64)
    }

    pub const fn f64(value: f64) -> Self {
        Self::new(value.to_bits())
    }

    const fn new(bits: u64) -> Self {
        Self { bits, location: 0 }
    }

    /// The same word with a location.
    #[must_use]
    pub const fn at(self, location: u64) -> Self {
        Self { location, ..self }
    }

    pub(crate) const fn as_i32(self) -> i32 {
        (self.bits as u32).cast_signed()
    }

    pub(crate) const fn as_i64(self) -> i64 {
        self.bits.cast_signed()
    }

    pub const fn as_f32(self) -> f32 {
        f32::from_bits(self.bits as u32)
    }

    pub const fn as_f64(self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// Writes the operand to the first [`Collective::memory_bytes`] bytes of `out`.
    pub fn to_memory(self, collective: Collective, out: &mut [u8; 16]) -> usize {
        let Collective::Reduce(reduce, number) = collective else {
            return 0;
        };
        let bytes = number.bytes();
        out[..bytes].copy_from_slice(&self.bits.to_le_bytes()[..bytes]);
        if reduce.is_located() {
            out[bytes..2 * bytes].copy_from_slice(&self.location.to_le_bytes()[..bytes]);
        }
        collective.memory_bytes()
    }

    pub fn from_memory(collective: Collective, bytes: &[u8]) -> Self {
        let Collective::Reduce(_, number) = collective else {
            return Self::default();
        };
        let word = |bytes: &[u8]| {
            let low_first = bytes.iter().rev();
            low_first.fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        let (value, location) = bytes.split_at(number.bytes().min(bytes.len()));
        Self {
            bits: word(value),
            location: word(location),
        }
    }
}
