//! Patterns over the processors of a network.

use super::destinations;
use crate::topology::{BlackWidowSpec, ClosWiring, FoldedClos};
use phitwire::rng::Rng;
use phitwire::sim::direct::config::Traffic;
use phitwire::sim::direct::pattern::NAMES;

fn network(processors: u32) -> (FoldedClos, ClosWiring) {
    let spec = BlackWidowSpec {
        processors,
        subtree: 32,
        ..BlackWidowSpec::default()
    };
    let topology = spec.generate().unwrap();
    let wiring = ClosWiring::new(&topology);
    (topology, wiring)
}

fn traffic(pattern: &str) -> Traffic {
    Traffic {
        pattern: pattern.parse().unwrap(),
        ..Traffic::default()
    }
}

#[test]
fn every_draw_is_a_processor_of_the_network() {
    let (topology, wiring) = network(64);
    let elsewhere = |name: &str| name == "group-adversarial" || name.starts_with("grid-");
    for name in NAMES.into_iter().filter(|name| !elsewhere(name)) {
        let all = destinations(&traffic(name), &topology, &wiring, 5).unwrap();
        let mut rng = Rng::new(1, 1);
        let senders: Vec<u64> = (0..64).filter(|&t| !all.is_silent(t)).collect();
        assert!(senders.len() >= 32, "{name}");
        for &sender in &senders {
            for _ in 0..50 {
                let to = all.draw(sender, &mut rng);
                assert!(to < 64, "{name}");
                assert!(u64::from(to) != sender || matches!(name, "diagonal" | "asymmetric"));
            }
        }
    }
}

#[test]
fn the_row_adversary_stays_in_its_column() {
    let (topology, wiring) = network(32);
    let all = destinations(&traffic("row-adversary"), &topology, &wiring, 5).unwrap();
    let mut rng = Rng::new(1, 1);
    for sender in (0..32).filter(|&t| !all.is_silent(t)) {
        let (_, from) = wiring.injection(&topology, sender as u32, 0).unwrap();
        let to = all.draw(sender, &mut rng);
        let (_, to) = wiring.injection(&topology, to, 0).unwrap();
        assert_eq!(from / 8, to % 8);
    }
}

#[test]
fn unsuitable_patterns_are_refused() {
    let (topology, wiring) = network(40);
    let refuse = |text: &str| destinations(&traffic(text), &topology, &wiring, 5).unwrap_err();
    assert!(refuse("transpose").to_string().contains("power of four"));
    for elsewhere in ["group-adversarial", "grid-rotation"] {
        let said = refuse(elsewhere).to_string();
        let accepted = "network accepts uniform, bit-complement, permutation, ";
        assert!(
            said.contains("pattern `") && said.contains("` needs "),
            "{said}"
        );
        assert!(said.contains(accepted), "{said}");
        assert!(said.ends_with("hotspot, row-adversary"), "{said}");
    }
    assert!(
        refuse("hotspot:41")
            .to_string()
            .contains("processor 41 does not participate")
    );
    let few = |participants| Traffic {
        participants: Some(participants),
        ..traffic("transpose")
    };
    let all = destinations(&few(16), &topology, &wiring, 5).unwrap();
    assert!((16..40).all(|terminal| all.is_silent(terminal)));
    assert_eq!(all.draw(1, &mut Rng::new(1, 1)), 4);
    assert!(destinations(&few(0), &topology, &wiring, 5).is_err());
    assert!(destinations(&few(41), &topology, &wiring, 5).is_err());
}
