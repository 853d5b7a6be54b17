use super::*;

const PLAIN: Abilities = Abilities::puts_and_gets(32);
pub(crate) const FULL: Abilities = Abilities {
    max_size: MAX_BLOCK_SIZE,
    get_unit: 4,
    atomics: true,
    ways: RoutingMode::ALL,
};

fn spec(pattern: TrafficPattern, n: u16) -> TrafficSpec {
    TrafficSpec {
        pattern,
        processors: (100..100 + n).collect(),
        ..TrafficSpec::default()
    }
}

fn one(pattern: TrafficPattern, n: u16, i: u16) -> Option<u16> {
    let (list, _) = spec(pattern, n).destinations(100 + i).unwrap();
    assert!(list.len() <= 1);
    list.first().map(|p| p - 100)
}

fn to(destinations: &[u16]) -> TrafficPattern {
    let destinations = destinations.to_vec();
    TrafficPattern::List { destinations }
}

fn hotspot(targets: &[u16], percent: u8) -> TrafficPattern {
    let targets = targets.to_vec();
    TrafficPattern::Hotspot { targets, percent }
}

#[test]
fn permutations_follow_their_definitions() {
    assert_eq!(one(TrafficPattern::Neighbour, 5, 4), Some(0));
    assert_eq!(one(TrafficPattern::BitComplement, 16, 0b0110), Some(0b1001));
    assert_eq!(one(TrafficPattern::BitComplement, 5, 2), None);
    assert_eq!(one(TrafficPattern::BitReverse, 16, 0b0011), Some(0b1100));
    assert_eq!(one(TrafficPattern::Shuffle, 8, 0b101), Some(0b011));
    assert_eq!(one(TrafficPattern::Transpose, 16, 0b0111), Some(0b1101));
    assert_eq!(one(TrafficPattern::Tornado, 8, 6), Some(1));
    assert_eq!(one(TrafficPattern::Tornado, 7, 0), Some(3));
    assert_eq!(one(TrafficPattern::Shuffle, 1, 0), None);
}

#[test]
fn each_permutation_gives_every_processor_one_sender() {
    for pattern in [
        TrafficPattern::Neighbour,
        TrafficPattern::BitComplement,
        TrafficPattern::BitReverse,
        TrafficPattern::Shuffle,
        TrafficPattern::Transpose,
        TrafficPattern::Tornado,
        TrafficPattern::Permutation,
    ] {
        let mut seen: Vec<u16> = (0..16)
            .map(|i| one(pattern.clone(), 16, i).unwrap_or(i))
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..16).collect::<Vec<_>>(), "{pattern:?}");
    }
}

#[test]
fn a_seed_names_one_permutation() {
    let by_seed = |seed| {
        let spec = TrafficSpec {
            seed,
            ..spec(TrafficPattern::Permutation, 64)
        };
        (100..164)
            .map(|p| spec.destinations(p).unwrap().0)
            .collect::<Vec<_>>()
    };
    assert_eq!(by_seed(7), by_seed(7));
    assert_ne!(by_seed(7), by_seed(8));
}

#[test]
fn hot_spots_come_first_and_never_include_the_sender() {
    let (list, choice) = spec(hotspot(&[103, 100], 20), 5).destinations(100).unwrap();
    assert_eq!(list, [103, 101, 102, 104]);
    assert!(matches!(choice, Choice::Hot { hot, percent } if (hot, percent) == (1, 20)));
}

#[test]
fn the_adversary_of_groups_sends_to_all_of_the_next_group() {
    let spec = TrafficSpec {
        groups: vec![4, 4, 9, 9, 4],
        ..spec(TrafficPattern::GroupAdversarial, 5)
    };
    assert_eq!(spec.validate(PLAIN), Ok(()));
    let of = |i: u16| spec.destinations(100 + i).unwrap();
    assert_eq!(of(0).0, [102, 103]);
    assert_eq!(of(3).0, [100, 101, 104]);
    assert!(matches!(of(3).1, Choice::Uniform));
    for groups in [vec![], vec![4, 4, 9], vec![4; 5]] {
        let refused = TrafficSpec {
            groups,
            ..spec.clone()
        };
        let refused = refused.validate(FULL);
        assert!(
            matches!(refused, Err(SpecError::Groups { .. })),
            "{refused:?}"
        );
    }
}

/// Processes of other versions do not know the new options, so unused ones must be omitted.
#[test]
fn rates_and_groups_are_written_only_where_they_are() {
    let short = toml::to_string(&spec(TrafficPattern::Uniform, 2)).unwrap();
    assert!(
        !short.contains("rate") && !short.contains("groups"),
        "{short}"
    );
    let long = TrafficSpec {
        rate: 5,
        groups: vec![0, 1],
        ..spec(TrafficPattern::GroupAdversarial, 2)
    };
    let text = toml::to_string(&long).unwrap();
    assert!(text.contains("pattern = \"group-adversarial\""), "{text}");
    assert_eq!(toml::from_str::<TrafficSpec>(&text).unwrap(), long);
}

#[test]
fn missing_keys_have_defaults_and_unknown_ones_are_refused() {
    let short: TrafficSpec = toml::from_str("run = 4\nprocessors = [1, 2]").unwrap();
    let meant = TrafficSpec {
        run: 4,
        processors: vec![1, 2],
        ..TrafficSpec::default()
    };
    assert_eq!(short, meant);
    let text = "run = 4\nop = \"get\"\n[pattern.hotspot]\ntargets = [7]\npercent = 5";
    let long: TrafficSpec = toml::from_str(text).unwrap();
    assert_eq!(long.pattern, hotspot(&[7], 5));
    assert_eq!(long.op, Operation::Get);
    let again: TrafficSpec = toml::from_str(&toml::to_string(&long).unwrap()).unwrap();
    assert_eq!(again, long);
    assert!(toml::from_str::<TrafficSpec>("run = 4\nsise = 8").is_err());
    assert!(toml::from_str::<TrafficSpec>("size = 8").is_err());
}

#[test]
fn invalid_runs_are_refused() {
    let ok = spec(TrafficPattern::Uniform, 4);
    assert_eq!(ok.validate(PLAIN), Ok(()));
    let changed = |change: fn(&mut TrafficSpec)| {
        let mut spec = ok.clone();
        change(&mut spec);
        spec
    };
    let size = |size| SpecError::Size { size, most: 32 };
    let cases = [
        (changed(|spec| spec.run = 0), SpecError::ZeroRun),
        (changed(|spec| spec.size = 33), size(33)),
        (changed(|spec| spec.size = 0), size(0)),
        (changed(|spec| spec.window = 0), SpecError::Window(0)),
        (
            changed(|spec| spec.rate = MAX_RATE + 1),
            SpecError::Rate(MAX_RATE + 1),
        ),
        (
            changed(|spec| spec.processors.push(100)),
            SpecError::Twice(100),
        ),
        (spec(to(&[0x8000]), 0), SpecError::Processor(0x8000)),
        (spec(to(&[7, 8, 7]), 0), SpecError::Twice(7)),
        (spec(hotspot(&[103, 103], 5), 5), SpecError::Twice(103)),
        (spec(hotspot(&[], 5), 4), SpecError::Hotspot),
    ];
    for (spec, error) in cases {
        assert_eq!(spec.validate(PLAIN), Err(error), "{spec:?}");
    }
    assert_eq!(
        ok.destinations(99).unwrap_err(),
        SpecError::NotParticipant(99)
    );
    for pattern in [
        TrafficPattern::Shuffle,
        TrafficPattern::BitReverse,
        TrafficPattern::Transpose,
    ] {
        let refused = spec(pattern, 6).destinations(100);
        assert!(matches!(
            refused,
            Err(SpecError::Participants { have: 6, .. })
        ));
    }
    assert!(
        spec(TrafficPattern::Transpose, 8)
            .destinations(100)
            .is_err()
    );
}

#[test]
fn unsupported_abilities_are_named_in_the_refusal() {
    let ok = spec(TrafficPattern::Uniform, 4);
    let asked = |op, ways| TrafficSpec {
        op,
        ways,
        ..ok.clone()
    };
    const TWO: &[RoutingMode] = &[RoutingMode::Adaptive0, RoutingMode::Ordered];
    let words = Abilities {
        atomics: true,
        ..PLAIN
    };
    let ways = Abilities { ways: TWO, ..PLAIN };
    let (added, ordered) = (
        asked(Operation::Amo, None),
        asked(Operation::Put, Some(RoutingMode::Ordered)),
    );
    let valiant = asked(Operation::Put, Some(RoutingMode::Valiant));
    assert_eq!(added.validate(words), Ok(()));
    assert_eq!(added.validate(ways), Err(SpecError::NoAtomics));
    assert_eq!(ordered.validate(ways), Ok(()));
    assert_eq!(ordered.validate(words), Err(SpecError::NoRoutingModes));
    assert_eq!(
        valiant.validate(ways),
        Err(SpecError::NoSuchRoutingMode(TWO))
    );
    assert_eq!(valiant.validate(FULL), Ok(()));
}
