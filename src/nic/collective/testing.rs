//! A second implementation of reductions, for comparison.

use super::operation::*;

/// Reduces all words in one step, with native types.
pub fn directly(collective: Collective, words: &[Operand]) -> Operand {
    let Collective::Reduce(reduce, number) = collective else {
        return Operand::default();
    };
    let ints = || {
        words.iter().map(|w| match number {
            Number::Int32 => i64::from(w.as_i32()),
            _ => w.as_i64(),
        })
    };
    let floats = || {
        words.iter().map(|w| match number {
            Number::Float32 => f64::from(w.as_f32()),
            _ => w.as_f64(),
        })
    };
    let int = |value: i64| match number {
        Number::Int32 => Operand::i32(value as i32),
        _ => Operand::i64(value),
    };
    match (reduce, number) {
        (Reduce::And, _) => int(ints().fold(-1, |a, b| a & b)),
        (Reduce::Or, _) => int(ints().fold(0, |a, b| a | b)),
        (Reduce::Xor, _) => int(ints().fold(0, |a, b| a ^ b)),
        (Reduce::Sum, Number::Int32 | Number::Int64) => {
            int(ints().map(i128::from).sum::<i128>() as i64)
        }
        (Reduce::Sum, Number::Float32) => {
            let sum = words.iter().map(|w| w.as_f32()).reduce(|a, b| a + b);
            canonical(number, Operand::f32(sum.unwrap()))
        }
        (Reduce::Sum, Number::Float64) => {
            canonical(number, Operand::f64(floats().reduce(|a, b| a + b).unwrap()))
        }
        (_, Number::Int32 | Number::Int64) => {
            let best = if reduce == Reduce::Min {
                ints().min()
            } else {
                ints().max()
            };
            let best = best.unwrap();
            int(best).at(lowest(words, |i| ints().nth(i) == Some(best)))
        }
        (_, Number::Float32 | Number::Float64) => {
            let numbers = floats().filter(|x| !x.is_nan());
            let best = if reduce == Reduce::Min {
                numbers.min_by(f64::total_cmp)
            } else {
                numbers.max_by(f64::total_cmp)
            };
            let Some(best) = best else {
                let nan = canonical(number, Operand::f64(f64::NAN));
                return nan.at(lowest(words, |_| true));
            };
            let lowest_at = lowest(words, |i| {
                floats().nth(i).unwrap().to_bits() == best.to_bits()
            });
            let word = match number {
                Number::Float32 => Operand::f32(best as f32),
                _ => Operand::f64(best),
            };
            word.at(lowest_at)
        }
    }
}

fn lowest(words: &[Operand], is_best: impl Fn(usize) -> bool) -> u64 {
    let best = (0..words.len()).filter(|&i| is_best(i));
    best.map(|i| words[i].location).min().unwrap()
}

pub fn canonical(number: Number, operand: Operand) -> Operand {
    match number {
        Number::Float32 if operand.bits > u64::from(u32::MAX) || operand.as_f32().is_nan() => {
            Operand::f32(f32::from_bits(0x7fc0_0000))
        }
        Number::Float64 if operand.as_f64().is_nan() => {
            Operand::f64(f64::from_bits(0x7ff8_0000_0000_0000))
        }
        _ => operand,
    }
}
