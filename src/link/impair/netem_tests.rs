use super::*;

fn parse(text: &str) -> Netem {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_word_is_understood() {
    let netem = parse(
        "delay 2ms 1ms 25% loss 5% duplicate 1% corrupt 1% 10% reorder 25% 50% gap 5 \
         rate 1gbit 24 loss gemodel 1% 10% 70% 0.1% limit 2000 distribution normal seed 7",
    );
    let p = |n, d| Probability::from_ratio(n, d);
    assert_eq!(netem.delay.base, Duration::from_ms(2));
    assert_eq!(netem.delay.jitter, Duration::from_ms(1));
    assert_eq!(netem.delay.correlation, p(1, 4));
    assert_eq!(netem.delay.distribution, Distribution::Normal);
    let chance = |probability, correlation| Chance {
        probability,
        correlation,
    };
    let uncorrelated = Chance::default().correlation;
    assert_eq!(netem.duplicate, chance(p(1, 100), uncorrelated));
    assert_eq!(netem.corrupt, chance(p(1, 100), p(1, 10)));
    assert_eq!(netem.reorder, chance(p(1, 4), p(1, 2)));
    assert_eq!(netem.gap, 5);
    let rate = Rate {
        bits_per_second: 1_000_000_000,
        overhead_bytes: 24,
    };
    assert_eq!(netem.rate, Some(rate));
    assert_eq!(netem.limit, 2000);
    assert_eq!(netem.seed, Some(7));
    let gemodel = Loss::GilbertElliott {
        p: p(1, 100),
        r: p(1, 10),
        loss_in_bad: p(7, 10),
        loss_in_good: p(1, 1000),
    };
    assert_eq!(netem.loss, gemodel, "the later loss replaces the earlier");
}

#[test]
fn defaults_are_those_of_tc() {
    assert_eq!(parse(""), Netem::default());
    assert_eq!(parse("delay 1ms reorder 25%").gap, 1);
    assert_eq!(parse("delay 500").delay.base, Duration::from_us(500));
    assert_eq!(parse("loss random 30").loss, parse("drop 30%").loss);
    let (none, all) = (Probability::ZERO, Probability::ONE);
    let one_in_ten = Probability::from_ratio(1, 10);
    let gemodel = Loss::GilbertElliott {
        p: one_in_ten,
        r: all,
        loss_in_bad: all,
        loss_in_good: none,
    };
    assert_eq!(parse("loss gemodel 10%").loss, gemodel);
    let state = Loss::FourState {
        p13: one_in_ten,
        p31: one_in_ten.complement(),
        p32: none,
        p23: all,
        p14: none,
    };
    assert_eq!(parse("loss state 10%").loss, state);
}

#[test]
fn units_are_those_of_tc() {
    assert_eq!(time("0.5ms"), Some(Duration::from_us(500)));
    assert_eq!(time("1.5s"), Some(Duration::from_ms(1500)));
    assert_eq!(time("3parsec"), None);
    assert_eq!(rate("8bps"), Some(64));
    assert_eq!(rate("2.5Mbit"), Some(2_500_000));
    assert_eq!(rate("1kibit"), Some(1024));
    assert_eq!(percent("100%"), Some(Probability::ONE));
    assert_eq!(percent("0.1%"), Some(Probability::from_ratio(1, 1000)));
    assert_eq!(percent("100.1%"), None);
}

#[test]
fn errors_name_the_position_and_the_expectation() {
    let late = "a nonzero `delay` together with `reorder`";
    let refused = [
        ("loss", 4, PERCENT, "the end of the text"),
        ("loss lots", 5, PERCENT, "`lots`"),
        ("delay 1ms loss 101%", 15, PERCENT, "`101%`"),
        ("delay  soon", 7, "a time such as 2ms", "`soon`"),
        ("delay 1ms 2parsec", 10, "a time such as 2ms", "`2parsec`"),
        ("slot 1ms", 0, KEYWORDS, "`slot`"),
        ("loss 1% 5% 7%", 11, KEYWORDS, "`7%`"),
        ("gap 5", 0, "`reorder` together with `gap`", "`gap`"),
        ("loss 1% reorder 5%", 8, late, "`reorder`"),
        ("rate 0bit", 5, "a rate above zero, such as 1gbit", "`0bit`"),
        ("limit 0", 6, "a limit of at least 1 frame", "`0`"),
        ("distribution pareto", 13, "uniform or normal", "`pareto`"),
    ];
    for (text, position, expected, found) in refused {
        let error = text.parse::<Netem>().expect_err(text);
        assert_eq!(error.position, position, "{text}: {error}");
        assert_eq!(error.expected, expected, "{text}: {error}");
        assert_eq!(error.found, found, "{text}: {error}");
    }
    let shown = "loss lots".parse::<Netem>().expect_err("not a percentage");
    let expected = "netem: at byte 5: expected a percentage from 0% to 100%, found `lots`";
    assert_eq!(shown.to_string(), expected);
}
