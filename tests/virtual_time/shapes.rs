//! Networks of other shapes, and determinism.

use phitwire::nic::{TrafficPattern, TrafficSpec};
use phitwire::time::Duration;
use phitwire_blackwidow::router::{Yarc, counted};
use phitwire_blackwidow::topology::{BlackWidowSpec, Rank, Taper};

use crate::harness::{impair_all, live, paced, run, uniform, up};

fn rank(text: &str) -> Option<Rank> {
    Some(text.parse().unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn virtual_routers_of_an_r2() {
    for base in [live(32, 4), paced(32, 4)] {
        let spec = BlackWidowSpec {
            rank: rank("2"),
            virtual_radix: 16,
            ..base
        };
        let mut network = up(&spec, 1);
        // Find a chip that virtual routers share.
        let mut chips = network.topology().chips.iter();
        assert!(chips.any(|chip| chip.routers.len() > 1));
        let patterns = [
            TrafficPattern::Uniform,
            TrafficPattern::BitComplement,
            TrafficPattern::Tornado,
        ];
        for (run_id, pattern) in (1..).zip(patterns) {
            let traffic = TrafficSpec {
                pattern,
                ..uniform(&network, run_id, 60)
            };
            let report = run(&mut network, &traffic, Duration::from_ms(2_000));
            assert_eq!(report.delivered, 32 * 60);
        }
        for router in network.routers() {
            let counters = counted(network.node::<Yarc>(router));
            assert_eq!(counters.up_down_violations, 0);
            assert_eq!(counters.virtual_router_violations, 0);
        }
    }
}

#[test]
fn ranks_and_slices_and_tapers() {
    let half = Taper::new(1, 2).expect("a fraction");
    let shape = |base, slices, text: &str, virtual_radix, group| BlackWidowSpec {
        slices,
        rank: (!text.is_empty()).then(|| rank(text)).flatten(),
        virtual_radix,
        group,
        ..base
    };
    let radix = BlackWidowSpec::default().virtual_radix;
    let tapered = BlackWidowSpec {
        taper: [half; 3],
        ..shape(live(16, 4), 1, "2", 8, None)
    };
    let shapes = [
        shape(live(4, 4), 4, "", radix, None),
        shape(live(9, 3), 2, "1.5", radix, None),
        tapered,
        shape(live(16, 4), 1, "2.5", 16, Some(2)),
        shape(live(16, 2), 1, "3", 8, Some(2)),
    ];
    for spec in shapes {
        let mut network = up(&spec, 2);
        impair_all(&mut network, "loss 2%");
        let traffic = uniform(&network, 1, 100);
        let report = run(&mut network, &traffic, Duration::from_ms(10_000));
        let all = u64::from(spec.processors) * 100;
        assert_eq!(report.delivered, all, "{spec:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run() {
    let hash = |seed, words: &str| {
        let mut network = up(&live(8, 4), seed);
        impair_all(&mut network, words);
        let traffic = uniform(&network, 1, 100);
        run(&mut network, &traffic, Duration::from_ms(60_000));
        (network.fabric.trace_hash(), network.fabric.now())
    };
    const ALL: &str = "delay 1ms 0.5ms loss 5% duplicate 5% corrupt 1% reorder 25%";
    assert_eq!(hash(1, ALL), hash(1, ALL));
    assert_ne!(hash(1, ALL).0, hash(2, ALL).0);
    assert_ne!(hash(1, ALL).0, hash(1, "loss 5%").0);
}
