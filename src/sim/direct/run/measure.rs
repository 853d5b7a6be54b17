//! Builds the report from the counts.

use super::super::config::Load;
use super::super::model::{CycleModel, Lanes as _, PortUse};
use super::super::report::{Fairness, LinkUse, Report, StageUse, State, Unsettled};
use super::super::tally::{Latencies, Tally};
use super::account::Account;
use super::{Mark, Simulation, StageSamples};
use crate::sim::TraceHash;

/// Source queues may grow by this fraction of the packets born without counting as saturated.
const GROWTH: f64 = 0.02;

impl<M: CycleModel> Simulation<M> {
    /// The results of the measurement.
    pub(super) fn measured(
        &self,
        (before, after): (&Mark, &Mark),
        samples: StageSamples,
        account: &Account,
    ) -> Report {
        let cycles = self.cycle - self.began;
        let tally = after.tally.since(&before.tally);
        let growth = after.backlog() as f64 - before.backlog() as f64;
        let per_terminal = full::<M>(cycles) * self.senders as f64;
        let message = self.census.message_phits as f64;
        let born = tally.requests_sent as f64 + growth + tally.replies_sent as f64
            - tally.replies_made as f64;
        let latency = tally.latency_cycles as f64 / tally.latency_packets.max(1) as f64;
        let least = Latencies::from(&self.results().arrived_latencies).min();
        let state = match growth > GROWTH * born + self.senders as f64 {
            true => State::Saturated,
            false => match account.series.state(latency, least.unwrap_or(0)) {
                State::Steady if self.config.traffic.load == Load::FULL => {
                    State::Unsettled(Unsettled::Full)
                }
                state => state,
            },
        };
        let hops = after.chips.phit_hops - before.chips.phit_hops;
        let chips = self.kinds.len() / M::PORTS;
        let stage = |i: usize| StageUse {
            mean_phits: samples.phits[i] as f64
                / (samples.samples.max(1) * chips.max(1) as u64) as f64,
            stalls_per_1000: (after.chips.stalls[i] - before.chips.stalls[i]) as f64 * 1e3
                / hops.max(1) as f64,
        };
        let mut report = Report {
            seed: self.config.seed,
            measure_cycles: cycles,
            bytes_per_cycle: f64::from(self.config.traffic.message_bytes) * full::<M>(1) / message,
            offered_load: born * message / per_terminal,
            accepted_load: tally.arrived_phits as f64 / per_terminal,
            saturated: state == State::Saturated,
            state,
            stages: M::STAGES.iter().copied().zip((0..3).map(stage)).collect(),
            other_ways: other_ways(before.chips.choices, after.chips.choices)
                .map(|share| (M::OTHER_WAYS, share)),
            source_backlog: after.backlog() as f64 / self.senders as f64,
            ..Report::default()
        };
        self.use_of_links(before, after, cycles, &mut report);
        report
    }

    /// The sender that sent least, and the load that it offered. `births` are those of each
    /// terminal.
    pub(super) fn least_served(
        &self,
        before: &Mark,
        after: &Mark,
        births: &[u64],
    ) -> Option<(u64, f64)> {
        let sent = before.loads.terminals.iter().zip(&after.loads.terminals);
        let terminals = self.census.terminals.iter().zip(sent.zip(births));
        let sending = terminals.filter(|(terminal, _)| !terminal.silent);
        let all = sending.map(|(t, ((before, after), &born))| (after - before, t.number, born));
        let (_, number, born) = all.min()?;
        let most = full::<M>((self.cycle - self.began).max(1));
        let offered = (born * self.census.message_phits) as f64 / most;
        Some((number, offered))
    }

    fn use_of_links(&self, before: &Mark, after: &Mark, cycles: u64, report: &mut Report) {
        let mut ejection = Uses::default();
        let mut uses = vec![Uses::default(); M::LINK_KINDS.len()];
        let before_of = before.loads.ports.chunks(M::PORTS);
        let sent = before_of.zip(after.loads.ports.chunks(M::PORTS));
        for (&chip, (before, after)) in self.census.chips.iter().zip(sent) {
            let first = chip as usize * M::PORTS;
            let kinds = &self.kinds[first..first + M::PORTS];
            for ((kind, before), after) in kinds.iter().zip(before).zip(after) {
                match kind {
                    Some(PortUse::Ejection) => ejection.add(after - before),
                    Some(PortUse::Link(kind)) => uses[usize::from(*kind)].add(after - before),
                    None => {}
                }
            }
        }
        let mut injection = Uses::default();
        let mut sending = Uses::default();
        let mut served = Vec::new();
        let sent = before.loads.terminals.iter().zip(&after.loads.terminals);
        for (terminal, (before, after)) in self.census.terminals.iter().zip(sent) {
            injection.add(after - before);
            served.push((terminal.number, after - before));
            if !terminal.silent {
                sending.add(after - before);
            }
        }
        let width = full::<M>(cycles);
        report.injection_links = injection.summary(width);
        report.fairness = sending.fairness(width);
        served.sort_unstable();
        let served = served.into_iter().map(|(_, phits)| phits as f64 / width);
        report.served = served.collect();
        report.ejection_links = ejection.summary(width);
        report.hops_by_kind = Self::hops_by_kind(before, after, &uses);
        let links = M::LINK_KINDS.iter().zip(uses);
        report.links = links
            .map(|(&kind, uses)| (kind, uses.summary(cycles as f64)))
            .collect();
    }

    /// Mean links of each kind that a phit passed in the measurement. Phits pass links before they
    /// arrive, so the list is empty until as many have arrived as are in flight.
    fn hops_by_kind(before: &Mark, after: &Mark, uses: &[Uses]) -> Vec<(&'static str, f64)> {
        let arrived = after.tally.since(&before.tally).arrived_phits;
        let inside = after
            .tally
            .sent_phits
            .saturating_sub(after.tally.arrived_phits);
        if arrived == 0 || arrived < inside {
            return Vec::new();
        }
        let kinds = M::LINK_KINDS.iter().zip(uses);
        kinds
            .map(|(&kind, uses)| (kind, uses.sum as f64 / arrived as f64))
            .collect()
    }

    /// Adds the results of the whole run.
    pub(super) fn finish(&self, report: &mut Report) {
        let tally = self.tally();
        report.discarded_packets = self.discarded()[0];
        let mut results = self.results();
        // Above saturation use arrivals: the packets born last are still queued at sources.
        let latencies = Latencies::from(if report.saturated {
            &results.arrived_latencies
        } else {
            &results.latencies
        });
        report.phit_hops = self.chips().phit_hops;
        report.retransmitted_packets = results.resent;
        report.frames_sent = results.frames_sent;
        report.frames_lost = results.frames_lost;
        let traces = &mut results.traces;
        traces.sort_unstable_by_key(|&(number, _)| number);
        let mut hash = TraceHash::default();
        for &mut (number, trace) in traces {
            hash.add(number);
            hash.add(trace);
        }
        report.trace_hash = hash.value();
        report.cycles = self.cycle;
        report.late_faults = self.late_faults();
        report.latency_cycles = latencies.summary();
        report.latency_counts = latencies.counts();
        report.packets = tally.arrived_packets;
        report.hops_mean = self.hops_per_message(report.phit_hops, results.packets_taken, &tally);
    }

    /// Routers that a message passed; with replies, those of both packets. Encoded links resend the
    /// phits of damaged packets, so packets are counted there.
    fn hops_per_message(&self, phit_hops: u64, packets_taken: u64, tally: &Tally) -> f64 {
        let (passed, arrived) = if self.encoded {
            (packets_taken, tally.arrived_packets)
        } else {
            (phit_hops, tally.arrived_phits)
        };
        let per_packet = passed as f64 / arrived.max(1) as f64;
        if self.config.traffic.request_reply {
            2.0 * per_packet
        } else {
            per_packet
        }
    }
}

/// Phits that a terminal can send in `cycles` cycles.
fn full<M: CycleModel>(cycles: u64) -> f64 {
    let [phits, of_cycles] = M::Direct::TERMINAL_RATE;
    (cycles * phits) as f64 / of_cycles as f64
}

/// Share of decisions for paths other than the preferred one, if there is a choice.
fn other_ways(before: [u64; 2], after: [u64; 2]) -> Option<f64> {
    // Clamp to zero: a packet in flight at the start may have changed its path since.
    let [first, other] = [0, 1].map(|i| (after[i].wrapping_sub(before[i]) as i64).max(0));
    let all = first + other;
    (all > 0).then(|| other as f64 / all as f64)
}

/// Sums over links or terminals.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    count: u64,
    sum: u64,
    squares: u128,
    min: Option<u64>,
    max: u64,
}

impl Uses {
    fn add(&mut self, phits: u64) {
        self.count += 1;
        self.sum += phits;
        self.squares += u128::from(phits) * u128::from(phits);
        self.min = Some(self.min.map_or(phits, |min| min.min(phits)));
        self.max = self.max.max(phits);
    }

    /// The sums as fractions of `full`, the capacity of one link or terminal in phits.
    fn summary(&self, full: f64) -> LinkUse {
        let full = full.max(1.0);
        LinkUse {
            links: self.count,
            min: self.min.unwrap_or(0) as f64 / full,
            mean: self.sum as f64 / (self.count.max(1) as f64 * full),
            max: self.max as f64 / full,
        }
    }

    fn fairness(&self, full: f64) -> Fairness {
        let LinkUse { min, max, .. } = self.summary(full);
        let sum = self.sum as f64;
        let jain = if self.squares == 0 {
            1.0
        } else {
            sum * sum / (self.count as f64 * self.squares as f64)
        };
        Fairness {
            min,
            max,
            least: None,
            jain,
        }
    }
}
