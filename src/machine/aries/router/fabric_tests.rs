//! Many routers, joined: nothing is lost, and nothing stands still for ever.

use phitwire_framing::aries::flit::Routing;

use super::tests::BLUE;
use super::*;
use crate::chip::Grain;
use crate::chip::RouterClock;
use crate::machine::aries::route::harness::Machine;
use crate::machine::aries::router::harness::{Fabric, GRAINS, request};

/// Everything that is sent arrives, whatever the mode, and every credit comes back.
#[test]
fn all_to_all_with_tiny_buffers_does_not_deadlock() {
    let cases = [14, 20]
        .into_iter()
        .flat_map(|depth| GRAINS.map(|grain| (depth, grain)));
    for (seed, (depth, grain)) in (1..).zip(cases) {
        let machine = Machine::SMALL;
        let mut rng = Rng::new(seed, 0);
        let mut fabric = Fabric::new(machine, depth, 4, |_| {})
            .with_responses()
            .with_grain(grain);
        let nics = fabric.nics.len();
        let sent = fabric.fill(24, &Routing::ALL, &mut rng, |from, turn, _| {
            (from + turn * 7 + 1) % nics
        });
        assert!(fabric.drain(20_000), "seed {seed}: stuck");
        let got: usize = fabric.nics.iter().map(|nic| nic.got.len()).sum();
        assert_eq!(got, 2 * sent);
        fabric.check_credits();
        let forwarded: u64 = fabric
            .cores
            .iter()
            .map(|c| c.counters().flits_forwarded)
            .sum();
        let injected: u64 = fabric.flit_hops() - forwarded;
        let received: u64 = fabric
            .nics
            .iter()
            .flat_map(|nic| &nic.got)
            .map(|head| u64::from(head.length()))
            .sum();
        assert_eq!(injected, received, "what the NICs sent they got");
    }
}

/// The hardest pattern: everybody sends to the next group, with buffers for one packet.
fn adversary(change: impl Fn(&mut AriesRegisters), seed: u64) -> bool {
    let machine = Machine {
        blues: 1,
        ..Machine::SMALL
    };
    let mut fabric = Fabric::new(machine, 14, 4, change);
    let per_group = fabric.nics.len() / machine.groups;
    let mut rng = Rng::new(seed, 0);
    let modes = [Routing::Adaptive0, Routing::Valiant, Routing::Minimal];
    fabric.fill(30, &modes, &mut rng, |from, turn, rng| {
        let group = (from / per_group + 1 + turn % 3) % 4;
        group * per_group + rng.below(per_group as u64) as usize
    });
    fabric.drain(5_000)
}

#[test]
fn an_adversary_does_not_deadlock_the_class_tables() {
    for seed in 0..3 {
        assert!(adversary(|_| {}, seed), "seed {seed}");
    }
}

/// Canary: with one class for everything the same traffic comes to a stand.
#[test]
fn broken_class_tables_deadlock() {
    let stuck = (0..10).any(|seed| {
        !adversary(
            |registers| {
                registers.blue_classes = [[0; 4], [1; 4]];
                registers.root_classes = [0; 4];
                registers.local_up_class = 0;
            },
            seed,
        )
    });
    assert!(stuck, "a machine that cannot deadlock proves nothing");
}

/// Ordered packets of one pair and mode arrive in the order in which they were sent, under load.
#[test]
fn ordered_packets_stay_in_order_under_load() {
    GRAINS.into_iter().for_each(ordered_under_load);
}

fn ordered_under_load(grain: (Grain, RouterClock)) {
    let machine = Machine::SMALL;
    let mut fabric = Fabric::new(machine, 32, 4, |_| {}).with_grain(grain);
    let nics = fabric.nics.len();
    let mut rng = Rng::new(5, 0);
    for id in 0..40u16 {
        for from in 0..nics {
            // Noise in between, and ordered packets to a few others.
            let noise = rng.below(nics as u64) as usize;
            for (to, routing) in [
                ((from + 13) % nics, Routing::Ordered),
                ((from + 29) % nics, Routing::OrderedNonMinimal),
                (noise, Routing::Adaptive0),
            ] {
                let at = (to / 4 / machine.routers(), to / 4 % machine.routers());
                let length = 1 + rng.below(14) as u8;
                fabric.send(from, request(at, (to % 4) as u8, routing, length, id));
            }
        }
    }
    assert!(fabric.drain(20_000));
    for nic in &fabric.nics {
        for mode in [Routing::Ordered, Routing::OrderedNonMinimal] {
            let ids: Vec<u16> = nic
                .got
                .iter()
                .filter(|h| h.routing() == mode)
                .map(|h| h.packet_id())
                .collect();
            assert_eq!(ids, (0..40).collect::<Vec<_>>(), "{mode:?}");
        }
        let noise: Vec<u16> = nic
            .got
            .iter()
            .filter(|h| h.routing() == Routing::Adaptive0)
            .map(|h| h.packet_id())
            .collect();
        assert!(
            noise.len() < 5 || !noise.is_sorted(),
            "canary: adaptive packets do overtake"
        );
    }
}

/// A blue link dies in the middle of the traffic: what is lost is counted, the rest finds other
/// ways.
#[test]
fn a_dying_link_loses_only_what_is_counted() {
    GRAINS.into_iter().for_each(a_link_dies);
}

fn a_link_dies(grain: (Grain, RouterClock)) {
    let machine = Machine::SMALL;
    let mut rng = Rng::new(9, 0);
    let mut fabric = Fabric::new(machine, 32, 4, |_| {}).with_grain(grain);
    let nics = fabric.nics.len();
    let sent = fabric.fill(30, &[Routing::Adaptive0], &mut rng, |_, _, rng| {
        rng.below(nics as u64) as usize
    });
    for _ in 0..200 {
        fabric.step();
    }
    fabric.set_link((0, 0), BLUE, false);
    assert!(fabric.drain(20_000));
    let got: usize = fabric.nics.iter().map(|nic| nic.got.len()).sum();
    let lost: u64 = fabric
        .cores
        .iter()
        .map(|core| {
            let counters = core.counters();
            counters.dead_port_packets + counters.no_live_port_packets
        })
        .sum();
    assert_eq!(got as u64 + lost, sent as u64);
    assert!(lost < 40, "{lost} lost of {sent}");
    fabric.check_credits();
}

/// What is to be decided does not depend on the grain: packets that meet nobody take the same ways.
#[test]
fn every_grain_takes_the_same_ways() {
    let ways = |grain| {
        let machine = Machine::SMALL;
        let mut fabric = Fabric::new(machine, 32, 4, |_| {}).with_grain(grain);
        let (nics, mut rng) = (fabric.nics.len(), Rng::new(11, 0));
        for turn in 0..400 {
            let (from, to) = (
                rng.below(nics as u64) as usize,
                rng.below(nics as u64) as usize,
            );
            let at = (to / 4 / machine.routers(), to / 4 % machine.routers());
            let (routing, length) = (Routing::ALL[turn % 8], 1 + rng.below(14) as u8);
            fabric.send(from, request(at, (to % 4) as u8, routing, length, 0));
            assert!(fabric.drain(2_000), "turn {turn}");
        }
        let decisions = fabric.cores.iter().map(|core| {
            let counters = core.counters();
            let minimal = [counters.minimal_decisions, counters.non_minimal_decisions];
            (minimal, counters.root_decisions, counters.flits_forwarded)
        });
        let got: Vec<_> = fabric.nics.iter().map(|nic| nic.got.clone()).collect();
        (decisions.collect::<Vec<_>>(), got, fabric.flits_by_end())
    };
    let flits = ways(GRAINS[0]);
    let non_minimal: u64 = flits.0.iter().map(|router| router.0[1]).sum();
    assert!(
        non_minimal > 50,
        "there are all kinds of ways: {non_minimal}"
    );
    for grain in &GRAINS[1..] {
        assert!(ways(*grain) == flits, "{grain:?}");
    }
}
