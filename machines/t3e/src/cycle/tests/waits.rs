//! Waiting times of flits at the front of a buffer, and of requests at the head of a source.

use super::*;
use phitwire::sim::direct::model::Terminal as _;

/// Number of windows between two samples.
const LOOK_WINDOWS: u64 = 4;

/// The longest waits seen in a network of one partition.
#[derive(Debug, Default)]
struct Waits {
    /// By router, port and channel: the flit at the front, and the cycle of the first sample with
    /// it.
    fronts: Vec<(u64, u64)>,
    /// By terminal: the number of the oldest request, the flits sent, and the cycle since which
    /// neither changed.
    heads: Vec<(u32, u64, u64)>,
    /// The longest wait in an input from another router, by channel.
    network: [u64; VCS],
    /// The longest wait in an input from the processor.
    processor: u64,
    /// The longest wait at the head of each source.
    sources: Vec<u64>,
}

impl Waits {
    fn look(&mut self, simulation: &Simulation<T3e>) {
        let [partition] = simulation.direct_parts() else {
            panic!("a network in one partition");
        };
        let now = partition.cycle();
        self.fronts
            .resize(partition.routers.len() * PORTS * VCS, (0, now));
        let mut slots = self.fronts.iter_mut();
        for router in &partition.routers {
            for port in 0..PORTS {
                for vc in 0..VCS {
                    let slot = slots.next().expect("one slot of each kind");
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
        self.heads
            .resize(partition.endpoints.terminals.len(), (0, 0, 0));
        self.sources.resize(partition.endpoints.terminals.len(), 0);
        let heads = self.heads.iter_mut().zip(&mut self.sources);
        for (terminal, ((number, sent, since), longest)) in
            partition.endpoints.terminals.iter().zip(heads)
        {
            let common = terminal.common();
            let head = common.source.head();
            if (head.sequence, common.sent_phits) != (*number, *sent) {
                (*number, *sent, *since) = (head.sequence, common.sent_phits, now);
            }
            let due = terminal.request_due(&partition.endpoints.shared);
            if due < now {
                *longest = (*longest).max(now - due.max(*since));
            }
        }
    }

    fn longest(&self) -> u64 {
        let all = self.network.iter().chain(&self.sources);
        all.fold(self.processor, |most, &wait| most.max(wait))
    }
}

/// Runs until `cycles`, and returns the longest waits.
fn waits(simulation: &mut Simulation<T3e>, cycles: u64) -> Waits {
    let mut waits = Waits::default();
    while simulation.direct_parts()[0].cycle() < cycles {
        simulation.run_windows(LOOK_WINDOWS);
        waits.look(simulation);
    }
    waits
}

/// "Guarantees forward progress to all packets" (T3E sec. 7): even far past saturation, the flit at
/// the front of a buffer moves within a bounded time, although the sources get unequal shares.
#[test]
fn waits_are_bounded_past_saturation() {
    for (size, pattern, cycles, most) in [
        ("8x1x1", "uniform", 20_000, 500),
        ("8x1x1", "grid-tornado", 20_000, 500),
        ("4x4x4", "uniform", 6_000, 1_000),
    ] {
        are_bounded((size, pattern), cycles, most);
    }
}

#[test]
#[ignore = "repeats an ordinary test on larger tori; run by --long"]
fn waits_in_a_plane_are_bounded_past_saturation() {
    are_bounded(("8x8x1", "uniform"), 12_000, 2_000);
    are_bounded(("8x8x1", "grid-tornado"), 20_000, 8_000);
}

fn are_bounded((size, pattern): (&str, &str), cycles: u64, most: u64) {
    for options in &ALL {
        let full = config(pattern, 1_000_000);
        let mut simulation = direct(&torus(size), &full, options, 1);
        let longest = waits(&mut simulation, cycles).longest();
        assert!(longest < most, "{size} {pattern} {options:?} {longest}");
    }
}

/// On the largest published torus, the waits multiply over more merges: 10,428 clocks with channels
/// assigned to balance their load, and 32,916 with those assigned by time of crossing. A source may
/// therefore send nothing in a window of 8,000 clocks, and sends again later.
#[test]
#[ignore = "takes minutes; run by --long"]
fn waits_on_8x16x16_are_bounded_past_saturation() {
    for (options, most) in [(&ALL[0], 12_000), (&ALL[2], 40_000)] {
        let full = config("uniform", 1_000_000);
        let mut simulation = direct(&torus("8x16x16"), &full, options, 1);
        let longest = waits(&mut simulation, 80_000).longest();
        assert!((8_000..most).contains(&longest), "{options:?} {longest}");
    }
}

/// In a ring whose packets all change channels at one dateline, VC0 is a chain of full buffers, and
/// each router gives half of the remaining rate to its own processor. A source n nodes from the end
/// of the chain gets 2^-n of the rate and waits 2^n times as long. This is unfair, but not
/// starvation.
#[test]
fn shares_along_a_chain_of_full_buffers_halve() {
    let full = config("grid-tornado", 1_000_000);
    let mut simulation = direct(&torus("1x32x1"), &full, &ALL[2], 1);
    let sent = |simulation: &Simulation<T3e>| -> Vec<u64> {
        let terminals = &simulation.direct_parts()[0].endpoints.terminals;
        let sent = terminals.iter().map(|one| one.common().sent_phits);
        sent.rev().collect()
    };
    waits(&mut simulation, 12_000);
    let before = sent(&simulation);
    let found = waits(&mut simulation, 42_000);
    let shares: Vec<u64> = sent(&simulation)
        .iter()
        .zip(before)
        .map(|(all, before)| all - before)
        .collect();
    for (nodes, longest) in found.sources.iter().rev().enumerate().take(8) {
        assert!(*longest <= 60 << nodes, "{nodes} {longest}");
        let next = shares[nodes + 1] as f64 / shares[nodes] as f64;
        assert!((next - 0.5).abs() < 0.1, "{nodes} {shares:?}");
    }
}

/// Canary: a ring in deadlock and a channel without credits exceed the bound.
#[test]
fn waits_without_end_are_noticed() {
    let full = config("grid-tornado", 1_000_000);
    let longest = |spoil: fn(&mut Simulation<T3e>)| {
        let mut simulation = direct(&torus("8x1x1"), &full, &ALL[2], 1);
        spoil(&mut simulation);
        waits(&mut simulation, 12_000).longest()
    };
    assert!(longest(|_| {}) < 500);
    let jammed = longest(|simulation| {
        for router in &mut simulation.direct_parts_mut()[0].routers {
            router.registers_mut().datelines = Default::default();
            router.registers_mut().vc_tables = Default::default();
        }
    });
    assert!(jammed > 10_000, "{jammed}");
    let blocked = longest(|simulation| {
        let router = &mut simulation.direct_parts_mut()[0].routers[0];
        (0..Depths::PAPER.deterministic).for_each(|_| router.lose_credit(0, 0));
    });
    assert!(blocked > 10_000, "{blocked}");
}
