//! Properties of the T3E formats for all values: correction and detection by the checks, round
//! trips.

use phitwire_framing::t3e::burst::{BURST_FLITS, Burst};
use phitwire_framing::t3e::check::{
    DATA_CHECK_BITS, DataCheck, HEADER_BITS, Repair, open_header, seal_header,
};
use phitwire_framing::t3e::flit::{Control, Flit, VCS};
use proptest::prelude::*;

fn flit() -> impl Strategy<Value = Flit> {
    (0..4, 0..VCS, any::<u64>(), any::<bool>()).prop_map(|(kind, vc, word, is_head)| match kind {
        0 => Flit {
            word: 0,
            control: Control::IDLE.with_credit(vc),
        },
        1 => Flit {
            word,
            control: Control::barrier(),
        },
        2 => Flit {
            word,
            control: Control::maintenance(true).with_credit(vc),
        },
        _ => Flit::data(word, vc, is_head),
    })
}

proptest! {
    #[test]
    fn one_wrong_bit_of_a_header_is_corrected_and_two_are_noticed(
        information in 0..1_u64 << HEADER_BITS,
    ) {
        let word = seal_header(information);
        prop_assert_eq!(open_header(word), (information, Repair::Good));
        for a in 0..64 {
            let one = word ^ 1 << a;
            prop_assert_eq!(open_header(one), (information, Repair::Corrected), "{}", a);
            for b in 0..a {
                prop_assert_eq!(open_header(one ^ 1 << b).1, Repair::Hopeless, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn one_wrong_bit_of_the_data_is_corrected_and_two_are_noticed(
        words in prop::collection::vec(any::<u64>(), 1..=9),
        distance: prop::sample::Index,
    ) {
        let check = DataCheck::of(&words);
        prop_assert!(check < 1 << DATA_CHECK_BITS);
        let bits = 64 * words.len();
        for a in 0..bits {
            let mut one = words.clone();
            one[a / 64] ^= 1 << (a % 64);
            let mut two = one.clone();
            prop_assert_eq!(DataCheck::repair(&mut one, check), Repair::Corrected);
            prop_assert_eq!(&one, &words);
            let b = (a + 1 + distance.index(bits - 1)) % bits;
            two[b / 64] ^= 1 << (b % 64);
            prop_assert_eq!(DataCheck::repair(&mut two, check), Repair::Hopeless);
        }
    }

    #[test]
    fn written_values_are_read_back(flits in prop::collection::vec(flit(), BURST_FLITS)) {
        let mut flits = flits.into_iter();
        let burst = Burst::of(|| flits.next().unwrap_or_default());
        let mut bytes = [0xa5; Burst::BYTES];
        burst.emit(&mut bytes);
        prop_assert_eq!(Burst::parse(&bytes), burst);
    }
}

#[test]
fn no_words_have_a_check() {
    assert_eq!(DataCheck::repair(&mut [], 0), Repair::Good);
}
