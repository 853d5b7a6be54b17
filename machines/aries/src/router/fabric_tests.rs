//! Connected routers: no packet is lost, and none is stuck forever.

use core::array;

use phitwire_framing::aries::flit::{Lines, Routing};

use super::tests::BLUE;
use super::*;
use crate::route::harness::Machine;
use crate::router::core::Core;
use crate::router::harness::{Fabric, GRAINS};
use crate::topology::Classes;
use phitwire::chip::{Grain, RouterClock};
use phitwire::trace::Flow;

/// All traffic arrives in every mode, and every credit returns.
#[test]
fn all_to_all_with_tiny_buffers_does_not_deadlock() {
    let cases = [14, 20]
        .into_iter()
        .flat_map(|depth| GRAINS.map(|grain| (depth, grain)));
    for (seed, (depth, grain)) in (1..).zip(cases) {
        let mut rng = Rng::new(seed, 0);
        let mut fabric = Fabric::new(Machine::small(), depth, grain);
        fabric.responds = true;
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
        let hops: u64 = fabric.flits_by_end().iter().sum();
        let injected = hops - forwarded;
        let received: u64 = fabric
            .nics
            .iter()
            .flat_map(|nic| &nic.got)
            .map(|head| u64::from(head.length()))
            .sum();
        assert_eq!(injected, received, "the NICs received what they sent");
    }
}

/// The hardest pattern: all NICs send to the next group, with buffers for one packet.
fn adversary(change: impl FnOnce(&mut Classes), seed: u64) -> bool {
    let machine = Machine::with((4, 2, 3), 2, 2, change);
    let mut fabric = Fabric::new(machine, 14, GRAINS[0]);
    let per_group = fabric.nics.len() / 4;
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

/// Canary: with a single class the same traffic deadlocks.
#[test]
fn broken_class_tables_deadlock() {
    let stuck = (0..10).any(|seed| {
        !adversary(
            |classes| {
                classes.blue = [[0; 4], [1; 4]];
                classes.root = [0; 4];
                classes.local_up = 0;
            },
            seed,
        )
    });
    assert!(stuck, "the network must be able to deadlock");
}

/// Ordered packets of one pair and mode arrive in sending order, under load.
#[test]
fn ordered_packets_stay_in_order_under_load() {
    for grain in GRAINS {
        let mut fabric = Fabric::new(Machine::small(), 32, grain);
        let nics = fabric.nics.len();
        let mut rng = Rng::new(5, 0);
        for id in 0..40u16 {
            for from in 0..nics {
                // Background traffic, and ordered packets to a few others.
                let noise = rng.below(nics as u64) as usize;
                for (to, routing) in [
                    ((from + 13) % nics, Routing::Ordered),
                    ((from + 29) % nics, Routing::OrderedNonMinimal),
                    ((from + 7) % nics, Routing::MinHash),
                    ((from + 17) % nics, Routing::NminHash),
                    (noise, Routing::Adaptive0),
                ] {
                    let id = match routing.is_hashed() {
                        true => Lines::first_id(id as u8 % Lines::HASHES) + id,
                        false => id,
                    };
                    fabric.send(from, to, routing, 1 + rng.below(14) as u8, id);
                }
            }
        }
        assert!(fabric.drain(20_000));
        let mut reordered = 0;
        for nic in &fabric.nics {
            let ids = |mode| -> Vec<u16> {
                let of_mode = nic.got.iter().filter(|head| head.routing() == mode);
                of_mode.map(|head| head.packet_id()).collect()
            };
            for mode in [Routing::Ordered, Routing::OrderedNonMinimal] {
                assert_eq!(ids(mode), (0..40).collect::<Vec<_>>(), "{mode:?}");
            }
            for mode in [Routing::MinHash, Routing::NminHash] {
                let all = ids(mode);
                assert_eq!(all.len(), 40);
                for hash in 0..Lines::HASHES {
                    let of_line: Vec<u16> = all
                        .iter()
                        .copied()
                        .filter(|&id| Lines::of(id) == Some(hash))
                        .collect();
                    assert!(of_line.is_sorted(), "{mode:?}: {of_line:?}");
                }
                let sent = |id: &u16| id % Lines::IDS;
                let is_sorted = all.iter().map(sent).is_sorted();
                reordered += u32::from(!is_sorted);
            }
            let noise = ids(Routing::Adaptive0);
            assert!(
                noise.len() < 5 || !noise.is_sorted(),
                "canary: adaptive packets must overtake"
            );
        }
        assert!(
            reordered > 0,
            "canary: packets to different lines must overtake"
        );
    }
}

/// A blue link fails during the traffic: losses are counted, and other packets find other paths.
#[test]
fn a_dying_link_loses_only_what_is_counted() {
    for grain in GRAINS {
        let mut rng = Rng::new(9, 0);
        // Each router has two links to one of the other groups.
        let mut fabric = Fabric::new(Machine::new((4, 2, 3), 2, 8), 32, grain);
        let nics = fabric.nics.len();
        let sent = fabric.fill(30, &[Routing::Adaptive0], &mut rng, |_, _, rng| {
            rng.below(nics as u64) as usize
        });
        for _ in 0..200 {
            fabric.step();
        }
        fabric.cut(0, BLUE);
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
}

/// Decisions do not depend on the grain: isolated packets take the same paths.
#[test]
fn every_grain_takes_the_same_paths() {
    let ways = |grain| {
        let mut fabric = Fabric::new(Machine::small(), 32, grain);
        let (nics, mut rng) = (fabric.nics.len(), Rng::new(11, 0));
        for turn in 0..200 {
            let [from, to] = [0; 2].map(|_| rng.below(nics as u64) as usize);
            let length = 1 + rng.below(14) as u8;
            fabric.send(from, to, Routing::ALL[turn % 8], length, 0);
            assert!(fabric.drain(2_000), "turn {turn}");
        }
        let decisions = fabric.cores.iter().map(|core| {
            let counters = core.counters();
            let minimal = [counters.minimal_decisions, counters.non_minimal_decisions];
            (minimal, counters.root_decisions, counters.flits_forwarded)
        });
        let got: Vec<_> = fabric.nics.iter().map(|nic| nic.got.clone()).collect();
        let sent = fabric.flits_by_end().to_vec();
        (decisions.collect::<Vec<_>>(), got, sent)
    };
    let flits = ways(GRAINS[0]);
    let non_minimal: u64 = flits.0.iter().map(|router| router.0[1]).sum();
    assert!(non_minimal > 25, "too few non-minimal paths: {non_minimal}");
    for grain in &GRAINS[1..] {
        assert!(ways(*grain) == flits, "{grain:?}");
    }
}

/// Recording a trace does not change the routers' behaviour, not even their cycles.
#[test]
fn watched_routers_do_what_they_do_unwatched() {
    for grain in GRAINS {
        let run = |is_watched| {
            let mut fabric = Fabric::new(Machine::small(), 32, grain);
            if is_watched {
                for core in &mut fabric.cores {
                    let flow = Flow { from: 0, to: 0 };
                    let watch = Watch::new(flow, Time::ZERO, Time::NEVER, None);
                    *core.watch() = Some(Box::new(watch));
                }
            }
            let (nics, mut rng) = (fabric.nics.len(), Rng::new(13, 0));
            fabric.fill(8, &Routing::ALL, &mut rng, |_, _, rng| {
                rng.below(nics as u64) as usize
            });
            assert!(fabric.drain(20_000));
            let counters: Vec<_> = fabric.cores.iter().map(Core::counters).collect();
            let got: Vec<_> = fabric.nics.iter().map(|nic| nic.got.clone()).collect();
            (counters, got)
        };
        let (watched, alone) = (run(true), run(false));
        assert!(watched == alone, "{grain:?}");
    }
}

/// Fills and drains a machine of free-running cores, with failing links. Returns the state of the
/// cores and NICs after each step, and the number of packets that bypassed the buffers.
fn steps_of(buffered: bool, depth: u32, seed: u64) -> (Vec<String>, u64, [u64; 4]) {
    let free = (Grain::Packet, RouterClock::FreeRunning);
    let mut fabric = Fabric::new(Machine::small(), depth, free);
    fabric.responds = true;
    if buffered {
        for core in &mut fabric.cores {
            *core = Core::buffered(core.registers().clone());
        }
    }
    let (nics, mut rng) = (fabric.nics.len(), Rng::new(seed, 0));
    let (mut seen, mut now_ns) = (Vec::new(), 0);
    for load in [1, 24] {
        fabric.fill(load, &Routing::ALL, &mut rng, |from, turn, rng| {
            // In every second round packets have few destinations.
            if turn % 2 == 1 {
                from & 3
            } else {
                rng.below(nics as u64) as usize
            }
        });
        for step in 0..400 {
            if step == 60 && load == 24 {
                fabric.cut(0, 0);
                fabric.cut(2, FIRST_NIC_PORT + 1);
            }
            fabric.step();
            // The timeout of a stalled tile is 1 ms.
            now_ns += 50_000;
            for core in &mut fabric.cores {
                core.check_forward_progress(Time::from_ns(now_ns));
            }
            if step % 8 == 0 {
                let cores = fabric.cores.iter().map(|core| core.left_behind().0);
                let got: Vec<_> = fabric.nics.iter().map(|nic| nic.got.clone()).collect();
                seen.push(format!("{:?} {got:?}", cores.collect::<Vec<_>>()));
            }
        }
    }
    let alone = fabric.cores.iter().map(|core| core.left_behind().1).sum();
    let counted = fabric.cores.iter().map(Core::counters).map(|of| {
        let lost = [of.dead_port_packets, of.stalled_port_packets];
        [of.packets_forwarded, lost[0], lost[1], of.netlink_stalls]
    });
    let counts = counted.fold([0; 4], |sum, of| array::from_fn(|i| sum[i] + of[i]));
    (seen, alone, counts)
}

/// Packets that bypass the buffers leave the same state as packets that use them: arbiters, loads,
/// counters, random choices, events, cycles and deliveries are compared every eighth step, with
/// links that run out of credits, stall and fail.
#[test]
fn to_pass_without_buffers_is_to_pass_through_them() {
    let mut all = [0; 4];
    for (depth, seed) in [(14, 2), (300, 4)] {
        let (direct, alone, counts) = steps_of(false, depth, seed);
        all = array::from_fn(|i| all[i] + counts[i]);
        let (buffered, of_buffered, _) = steps_of(true, depth, seed);
        for (step, (direct, buffered)) in direct.iter().zip(&buffered).enumerate() {
            assert!(
                direct == buffered,
                "depth {depth}, seed {seed}, step {step}"
            );
        }
        assert_eq!(alone, of_buffered);
        let waited = counts[0].saturating_sub(alone);
        assert!(
            alone > 200 && waited > 200,
            "both cases occur: {alone}, {waited}"
        );
        assert!(
            direct != steps_of(true, depth, seed + 9).0,
            "the comparison is not vacuous"
        );
    }
    let [_, dead, stalled, held_up] = all;
    assert!(
        dead > 0 && stalled > 0 && held_up > 0,
        "all kinds of waits and ends occur: {all:?}"
    );
}
