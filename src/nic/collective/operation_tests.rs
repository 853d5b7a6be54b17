use super::*;
use crate::nic::collective::testing::directly;
use crate::rng::Rng;

/// Words of a few values, so that ties are frequent, and words of arbitrary bits.
fn word(rng: &mut Rng, number: Number) -> Operand {
    let wild = rng.next_u64();
    let few = rng.below(5) as i64 - 2;
    let operand = match (number, rng.below(4)) {
        (Number::Int32, 0) => Operand::i32(i32::MAX - few.unsigned_abs() as i32),
        (Number::Int32, 1) => Operand::i32(wild as i32),
        (Number::Int32, _) => Operand::i32(few as i32),
        (Number::Int64, 0) => Operand::i64(i64::MIN + few.abs()),
        (Number::Int64, 1) => Operand::i64(wild as i64),
        (Number::Int64, _) => Operand::i64(few),
        (Number::Float32, 0) => Operand::f32(f32::from_bits(wild as u32)),
        (Number::Float32, 1) => {
            Operand::f32([f32::NAN, 0.0, -0.0, f32::INFINITY][few as usize % 4])
        }
        (Number::Float32, _) => Operand::f32(few as f32 / 3.0),
        (Number::Float64, 0) => Operand::f64(f64::from_bits(wild)),
        (Number::Float64, 1) => {
            Operand::f64([f64::NAN, 0.0, -0.0, f64::INFINITY][few as usize % 4])
        }
        (Number::Float64, _) => Operand::f64(few as f64 / 3.0),
    };
    operand.at(rng.below(6))
}

#[test]
fn every_operation_does_what_the_language_does() {
    let mut rng = Rng::new(1, 0);
    for round in 0..20_000 {
        for collective in Collective::all() {
            let Collective::Reduce(_, number) = collective else {
                continue;
            };
            let words: Vec<Operand> = (0..1 + rng.below(6))
                .map(|_| word(&mut rng, number))
                .collect();
            let normal = words.iter().map(|&w| collective.normal(w));
            let result = normal.reduce(|a, b| collective.combine(a, b)).unwrap();
            assert_eq!(
                result,
                directly(collective, &words),
                "{round} {collective} {words:?}"
            );
        }
    }
}

#[test]
fn the_order_matters_only_to_sums_of_floating_point_numbers() {
    let mut rng = Rng::new(2, 0);
    for collective in Collective::all() {
        let Collective::Reduce(reduce, number) = collective else {
            continue;
        };
        if reduce == Reduce::Sum && number.is_float() {
            continue;
        }
        for _ in 0..5_000 {
            let [a, b, c] = [(); 3].map(|()| collective.normal(word(&mut rng, number)));
            let of = |x, y| collective.combine(x, y);
            assert_eq!(of(of(a, b), c), of(a, of(b, c)), "{collective}");
            assert_eq!(of(a, b), of(b, a), "{collective}");
        }
    }
    let sum = Collective::Reduce(Reduce::Sum, Number::Float64);
    let [a, b, c] = [1.0, 1e300, -1e300].map(Operand::f64);
    assert_ne!(
        sum.combine(sum.combine(a, b), c),
        sum.combine(a, sum.combine(b, c))
    );
}

#[test]
fn edges() {
    let on = |text: &str, a, b| text.parse::<Collective>().unwrap().combine(a, b);
    let (i32s, i64s) = (Operand::i32, Operand::i64);
    assert_eq!(on("sum-i32", i32s(i32::MAX), i32s(1)), i32s(i32::MIN));
    assert_eq!(on("sum-i64", i64s(i64::MIN), i64s(-1)), i64s(i64::MAX));
    assert_eq!(on("min-i32", i32s(-1), i32s(1)), i32s(-1));
    assert_eq!(on("max-i64", i64s(7).at(9), i64s(7).at(3)), i64s(7).at(3));
    assert_eq!(on("min-i64", i64s(7).at(3), i64s(7).at(9)), i64s(7).at(3));
    let (f, nan) = (Operand::f64, Operand::f64(f64::from_bits(0x7ff8 << 48)));
    assert_eq!(on("min-f64", nan.at(0), f(2.0).at(5)), f(2.0).at(5));
    assert_eq!(
        on("max-f64", f(f64::NEG_INFINITY).at(5), nan.at(0)),
        f(f64::NEG_INFINITY).at(5)
    );
    assert_eq!(on("max-f64", nan.at(4), nan.at(2)), nan.at(2));
    assert_eq!(on("min-f64", f(0.0).at(1), f(-0.0).at(2)), f(-0.0).at(2));
    assert_eq!(on("sum-f64", f(f64::INFINITY), f(f64::NEG_INFINITY)), nan);
}

#[test]
fn operations_have_names_and_codes() {
    let all: Vec<Collective> = Collective::all().collect();
    assert_eq!(all.len(), 1 + 3 * 2 + 3 * 4);
    for &collective in &all {
        assert_eq!(collective.to_string().parse(), Ok(collective));
        assert_eq!(Collective::from_code(collective.code()), Some(collective));
        assert!(collective.is_valid());
    }
    for text in ["", "sum", "prod-i64", "and-f32", "sum-u64", "barrier-i64"] {
        assert!(text.parse::<Collective>().is_err(), "{text}");
    }
    assert!(!Collective::Reduce(Reduce::Or, Number::Float64).is_valid());
}

#[test]
fn words_in_memory_are_little_endian_and_locations_follow() {
    let mut bytes = [0; 16];
    let min: Collective = "min-i32".parse().unwrap();
    let word = Operand::i32(0x0403_0201).at(0x0807_0605);
    assert_eq!(word.to_memory(min, &mut bytes), 8);
    assert_eq!(bytes[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
    let mut rng = Rng::new(3, 0);
    for collective in Collective::all() {
        let number = match collective {
            Collective::Reduce(_, number) => number,
            Collective::Barrier => continue,
        };
        let word = collective.normal(super::operation_tests::word(&mut rng, number));
        let len = word.to_memory(collective, &mut bytes);
        assert_eq!(len, collective.memory_bytes());
        assert_eq!(Operand::from_memory(collective, &bytes[..len]), word);
    }
}
