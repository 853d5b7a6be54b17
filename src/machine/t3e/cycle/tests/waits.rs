//! How long flits at the front of a buffer, and requests at the head of a source, wait.

use super::*;
use crate::sim::direct::model::Terminal as _;

/// Cycles between two looks.
const LOOK: u64 = 12;

/// Watches a network in one partition, and keeps the longest waits.
#[derive(Debug, Default)]
struct Waits {
    /// By router, port and channel: the flit at the front, and the cycle of the look that found it.
    fronts: Vec<(u64, u64)>,
    /// By terminal: the number of the oldest request, the flits sent, and since when.
    heads: Vec<(u32, u64, u64)>,
    /// The longest wait in an input from another router, by its channel.
    network: [u64; VCS],
    /// The longest in the input from the processor.
    processor: u64,
    /// The longest at the head of a source.
    source: u64,
}

impl Waits {
    fn look(&mut self, simulation: &Simulation<T3e>) {
        let [partition] = simulation.partitions() else {
            panic!("a network in one partition");
        };
        let now = partition.cycle();
        self.fronts
            .resize(partition.routers.len() * PORTS * VCS, (0, now));
        let mut slots = self.fronts.iter_mut();
        for router in &partition.routers {
            for port in 0..PORTS {
                for vc in 0..VCS {
                    let slot = slots.next().expect("one of each");
                    let front = router.front(port, vc);
                    if front != Some(slot.0) {
                        *slot = (front.unwrap_or(0), now);
                    }
                    let longest = match port {
                        PROCESSOR => &mut self.processor,
                        _ => &mut self.network[vc],
                    };
                    *longest = (*longest).max(now - slot.1);
                }
            }
        }
        self.heads.resize(partition.terminals.len(), (0, 0, 0));
        for (terminal, (number, sent, since)) in partition.terminals.iter().zip(&mut self.heads) {
            let common = terminal.common();
            let head = common.source.head();
            if (head.sequence, common.sent_phits) != (*number, *sent) {
                (*number, *sent, *since) = (head.sequence, common.sent_phits, now);
            }
            let due = terminal.request_due(&partition.shared);
            if due < now {
                self.source = self.source.max(now - due.max(*since));
            }
        }
    }

    fn longest(&self) -> u64 {
        let network = self.network.iter().copied();
        network
            .chain([self.processor, self.source])
            .max()
            .unwrap_or(0)
    }
}

/// The longest waits in so many cycles; `between` windows something may be spoiled.
fn waits(
    simulation: &mut Simulation<T3e>,
    cycles: u64,
    mut between: impl FnMut(&mut Simulation<T3e>),
) -> Waits {
    let mut waits = Waits::default();
    while simulation.partitions()[0].cycle() < cycles {
        simulation.run_windows(1);
        between(simulation);
        if simulation.partitions()[0].cycle().is_multiple_of(LOOK) {
            waits.look(simulation);
        }
    }
    waits
}

/// "Guarantees forward progress to all packets" (section 7): far past saturation, too, whoever is at
/// the front gets on, after the rounds of the arbiters ahead. What sources get is not equal.
#[test]
fn whoever_is_at_the_front_gets_on_past_saturation() {
    for (size, pattern, cycles, most) in [
        ("8x1x1", "uniform", 20_000, 1_000),
        ("8x1x1", "grid-tornado", 20_000, 1_000),
        ("1x32x1", "uniform", 60_000, 10_000),
        ("1x32x1", "grid-tornado", 60_000, 10_000),
        ("4x4x4", "uniform", 10_000, 5_000),
        ("4x4x4", "grid-tornado", 10_000, 5_000),
    ] {
        for options in &ALL {
            let full = config(pattern, 1_000_000);
            let mut simulation = direct(&torus(size), &full, options, 1);
            let found = waits(&mut simulation, cycles, |_| {});
            assert!(
                found.longest() < most,
                "{size} {pattern} {options:?} {found:?}"
            );
        }
    }
}

/// The canary: an arbiter that always begins its round with the same input, and rings that stand
/// still, are seen.
#[test]
fn who_waits_without_end_is_seen() {
    let full = config("grid-tornado", 1_000_000);
    let longest = |spoil: fn(&mut Simulation<T3e>)| {
        let mut simulation = direct(&torus("8x1x1"), &full, &DETERMINISTIC, 1);
        waits(&mut simulation, 20_000, spoil).longest()
    };
    let unfair = longest(|simulation| {
        let routers = &mut simulation.partitions_mut()[0].routers;
        routers.iter_mut().for_each(|router| router.forget_turns());
    });
    assert!(unfair > 10_000, "{unfair}");
    let still = longest(|simulation| {
        for router in &mut simulation.partitions_mut()[0].routers {
            router.registers_mut().datelines = Default::default();
        }
    });
    assert!(still > 10_000, "{still}");
}

/// Figures for people: see `docs/guide/src/results.md`.
#[test]
#[ignore = "takes minutes"]
fn figures() {
    let get = |name: &str, or: &str| std::env::var(name).unwrap_or_else(|_| or.to_owned());
    let cycles: u64 = get("CYCLES", "20000").parse().unwrap();
    for size in get("SIZES", "8x1x1,32x1x1").split(',') {
        for pattern in get("PATTERNS", "uniform,grid-tornado").split(',') {
            for options in &ALL {
                let config = config(pattern, get("LOAD", "1000000").parse().unwrap());
                let mut simulation = direct(&torus(size), &config, options, 1);
                let mut last: Vec<u64> = Vec::new();
                let mut waits = Waits::default();
                for part in 1..=4 {
                    while simulation.partitions()[0].cycle() < part * cycles / 4 {
                        simulation.run_windows(4);
                        waits.look(&simulation);
                    }
                    let terminals = &simulation.partitions()[0].terminals;
                    let sent: Vec<u64> = terminals.iter().map(|t| t.common().sent_phits).collect();
                    last.resize(sent.len(), 0);
                    let served: Vec<u64> = sent.iter().zip(&last).map(|(a, b)| a - b).collect();
                    let rate = |flits: u64| flits as f64 / (cycles / 4) as f64;
                    let none = served.iter().filter(|&&flits| flits == 0).count();
                    let mean = rate(served.iter().sum()) / served.len() as f64;
                    println!(
                        "{size} {pattern} {:?} {:?} quarter {part}: mean {mean:.4} least {:.5} most {:.3} none {none} waits {:?} {} {}",
                        options.adaptive,
                        options.channels,
                        rate(*served.iter().min().unwrap()),
                        rate(*served.iter().max().unwrap()),
                        waits.network,
                        waits.processor,
                        waits.source,
                    );
                    if part == 4 && sent.len() <= 64 {
                        println!(
                            "  {:?}",
                            served
                                .iter()
                                .map(|&f| (rate(f) * 1e3) as u64)
                                .collect::<Vec<_>>()
                        );
                    }
                    last = sent;
                }
            }
        }
    }
}
