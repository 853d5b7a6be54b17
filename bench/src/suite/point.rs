//! The benchmarks made of messages.

use phitwire_nodes::control::{NodeInfo, Request};
use phitwire_nodes::stop::Stop;
use schemars::JsonSchema;
use serde::Serialize;

use super::Ending;
use super::options::{Benchmark, Common, PairOptions, SetOptions, SizeRange};
use crate::msgrate::{
    GapsName, Lab, Member, Options as RateOptions, PairOp, PatternName, Plan, RateResult,
    RealClock, Role, RunError, ask, measure, measure_shared, sizes_between_programs,
};

/// Largest default size in bytes between two NICs, where messages can be that large.
const LARGEST_OF_PAIRS: u32 = 64 << 10;
/// Largest default size in bytes among all NICs.
const LARGEST_OF_SETS: u32 = 4 << 10;
/// Number of addresses per target for random updates: the maximum of a run.
const UPDATE_ADDRESSES: u16 = phitwire::nic::MAX_ADDRESSES;

/// A row of the table; the names are those of the JSON output.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PointRow {
    /// Name of the benchmark.
    pub benchmark: &'static str,
    /// Count of sending NICs.
    pub sources: usize,
    /// Messages that each keeps outstanding.
    pub window: u32,
    /// Microseconds per message and source: the latency if one message is outstanding; alltoall:
    /// for a message from every NIC to every other.
    pub mean_us: f64,
    /// Random updates per second, in billions (GUPS).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64")]
    pub gups: Option<f64>,
    /// The message rate result.
    #[serde(flatten)]
    pub outcome: RateResult,
}

/// The measurement, one size per row.
#[derive(Clone, Debug)]
pub struct PointSuite {
    benchmark: Benchmark,
    plan: Plan,
    /// Messages sent before each row.
    warmup: Option<Plan>,
    sizes: Vec<u32>,
}

/// The options of pairs and of sets of NICs, in a common form.
struct Wish {
    from: Vec<String>,
    to: Vec<String>,
    op: PairOp,
    client: bool,
    sizes: Vec<u32>,
    largest: u32,
    window: u32,
    routing: Option<crate::msgrate::RoutingName>,
}

/// The NICs of a lab, by number.
///
/// # Errors
/// If the lab does not reply.
fn nics_of(lab: &mut dyn Lab) -> Result<Vec<String>, RunError> {
    let number = |member: &Member| match member.role {
        Role::Nic { processor, .. } => Some(processor),
        Role::Router | Role::Spare | Role::Silent => None,
    };
    let mut members = lab.members()?;
    members.retain(|member| number(member).is_some());
    members.sort_by_key(number);
    Ok(members.into_iter().map(|member| member.name).collect())
}

/// The sizes given as a list or a range.
fn sizes_of(sizes: &[u32], range: Option<SizeRange>) -> Vec<u32> {
    range.map_or_else(|| sizes.to_vec(), SizeRange::sizes)
}

/// The first and the last `pairs` NICs.
fn pairs_of(nics: &[String], pairs: usize) -> Result<(Vec<String>, Vec<String>), RunError> {
    match nics.len() / 2 {
        most if pairs > most => Err(RunError::Pairs { pairs, most }),
        _ => Ok((nics[..pairs].to_vec(), nics[nics.len() - pairs..].to_vec())),
    }
}

/// Measures messages of one size.
fn measure_row(
    plan: &Plan,
    size: u32,
    run: u64,
    lab: &mut dyn Lab,
    clock: &RealClock,
) -> Result<RateResult, RunError> {
    match plan.is_by_programs() {
        true => measure_shared(plan, size, clock),
        false => measure(plan, size, run, lab, clock, |_| {}),
    }
}

impl PointSuite {
    /// Finds the participants in `lab`.
    ///
    /// # Errors
    /// See [`RunError`].
    ///
    /// # Panics
    /// If `benchmark` is a collective operation, or one over losses.
    pub fn new(benchmark: &Benchmark, lab: &mut dyn Lab) -> Result<Self, RunError> {
        let nics = nics_of(lab)?;
        let common = benchmark.common();
        let [Some(first), Some(last)] = [nics.first(), nics.last()] else {
            return Err(RunError::Alone(common.lab.clone()));
        };
        if nics.len() < 2 {
            return Err(RunError::Alone(common.lab.clone()));
        }
        let ends = |options: &PairOptions| match options.pairs {
            Some(pairs) => pairs_of(&nics, pairs.into()),
            None => Ok((
                vec![options.from.as_ref().unwrap_or(first).clone()],
                vec![options.to.as_ref().unwrap_or(last).clone()],
            )),
        };
        let all = |options: &SetOptions| match options.nics.is_empty() {
            true => nics.clone(),
            false => options.nics.clone(),
        };
        let wish = match benchmark {
            Benchmark::Latency(options) | Benchmark::Bandwidth(options) => {
                let (from, to) = ends(options)?;
                Wish::of_pair(options, from, to, benchmark)?
            }
            Benchmark::Bibw(options) => {
                let (from, to) = ends(options)?;
                let both = [from.clone(), to.clone()].concat();
                let back = [to, from].concat();
                Wish::of_pair(options, both, back, benchmark)?
            }
            Benchmark::Gups(options) => {
                Wish::of_set(options, Vec::new(), all(options), PairOp::Amo)
            }
            Benchmark::Alltoall(options) => {
                let sizes = sizes_of(&options.size, options.message_size);
                Wish::of_set(&options.set, sizes, all(&options.set), PairOp::Put)
            }
            Benchmark::Allreduce(_)
            | Benchmark::Barrier(_)
            | Benchmark::Eureka(_)
            | Benchmark::Goodput(_) => {
                unreachable!("the others send no messages themselves")
            }
        };
        let mut plan = Plan::new(&wish.options(common), lab)?;
        match benchmark {
            Benchmark::Gups(_) => plan.update_at_random(UPDATE_ADDRESSES),
            Benchmark::Alltoall(_) => {}
            _ if plan.source_count() > 1 => plan.pair_up(),
            _ => {}
        }
        let sizes = match wish.client {
            true => {
                plan.between_programs(wish.op);
                let possible = sizes_between_programs(&plan, wish.largest)?;
                match wish.sizes.is_empty() || wish.op == PairOp::Amo {
                    true => possible,
                    false => wish.sizes,
                }
            }
            false => wish.sizes(&ask(lab, first, &Request::Info)?),
        };
        let warmup = (common.warmup > 0).then(|| plan.of_count(common.warmup));
        let benchmark = benchmark.clone();
        Ok(Self {
            benchmark,
            plan,
            warmup,
            sizes,
        })
    }

    pub fn rows(&self) -> usize {
        self.sizes.len()
    }

    /// The plan of all rows, for the head of the table.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Measures all sizes and passes each row to `show`, until a stop is requested.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(
        &self,
        lab: &mut dyn Lab,
        stop: &Stop,
        mut run_number: impl FnMut() -> u64,
        mut show: impl FnMut(&PointRow),
    ) -> Result<Ending, RunError> {
        let mut ending = Ending::Clean;
        for &size in &self.sizes {
            let clock = RealClock::new(stop.clone());
            if let Some(plan) = &self.warmup {
                let outcome = measure_row(plan, size, run_number(), lab, &clock)?;
                if !outcome.is_clean() {
                    // Show the faulty warm-up itself, which the row would hide.
                    show(&self.row(outcome));
                    return Ok(Ending::Damaged);
                }
            }
            let outcome = measure_row(&self.plan, size, run_number(), lab, &clock)?;
            if !outcome.is_clean() {
                ending = Ending::Damaged;
            }
            show(&self.row(outcome));
            if stop.requests() > 0 {
                return Ok(match ending {
                    Ending::Damaged => ending,
                    _ => Ending::Interrupted,
                });
            }
        }
        Ok(ending)
    }

    fn row(&self, outcome: RateResult) -> PointRow {
        let sources = self.plan.source_count();
        let per_source = outcome.messages_per_second / sources as f64;
        let others = match self.benchmark {
            Benchmark::Alltoall(_) => sources.saturating_sub(1),
            _ => 1,
        };
        let mean_us = if per_source > 0.0 {
            1e6 * others as f64 / per_source
        } else {
            0.0
        };
        let is_gups = matches!(self.benchmark, Benchmark::Gups(_));
        PointRow {
            benchmark: self.benchmark.name(),
            sources,
            window: self.plan.window,
            mean_us,
            gups: is_gups.then_some(outcome.messages_per_second / 1e9),
            outcome,
        }
    }
}

impl Wish {
    fn of_pair(
        options: &PairOptions,
        from: Vec<String>,
        to: Vec<String>,
        benchmark: &Benchmark,
    ) -> Result<Self, RunError> {
        let client = options.client;
        match (client, options.op) {
            (true, _) if matches!(benchmark, Benchmark::Bibw(_)) => return Err(RunError::OneWay),
            (false, PairOp::Send) => return Err(RunError::Receives),
            _ => {}
        }
        let usual = match benchmark {
            Benchmark::Latency(_) => 1,
            _ => 64,
        };
        Ok(Self {
            from,
            to,
            op: options.op,
            client,
            sizes: sizes_of(&options.size, options.message_size),
            largest: LARGEST_OF_PAIRS,
            window: options.window.unwrap_or(usual),
            routing: options.routing,
        })
    }

    fn of_set(options: &SetOptions, sizes: Vec<u32>, nics: Vec<String>, op: PairOp) -> Self {
        Self {
            from: nics.clone(),
            to: nics,
            op,
            client: false,
            sizes,
            largest: LARGEST_OF_SETS,
            window: options.window,
            routing: options.routing,
        }
    }

    /// The equivalent options of message rate.
    fn options(&self, common: &Common) -> RateOptions {
        RateOptions {
            lab: common.lab.clone(),
            from: self.from.clone(),
            to: self.to.clone(),
            pattern: PatternName::Uniform,
            hot: Vec::new(),
            hot_percent: 20,
            op: self.op.plain().unwrap_or_default(),
            size: Vec::new(),
            routing: self.routing,
            window: Some(self.window),
            client: self.client,
            rate: None,
            gaps: GapsName::Even,
            seconds: common.iterations.is_none().then_some(common.seconds),
            count: common.iterations,
            seed: 1,
            json: common.json,
            plot: None,
            hgrm: None,
        }
    }

    /// The given sizes, or the powers of two that the operation supports on NICs with `info`.
    fn sizes(&self, info: &NodeInfo) -> Vec<u32> {
        if !self.sizes.is_empty() {
            return self.sizes.clone();
        }
        if self.op == PairOp::Amo {
            return vec![8];
        }
        let smallest = match self.op {
            PairOp::Get => info.get_unit.filter(|&unit| unit > 0).unwrap_or(1),
            _ => 1,
        };
        let largest = info.max_size.unwrap_or(self.largest).min(self.largest);
        let powers = std::iter::successors(Some(smallest), |size| Some(size * 2));
        powers.take_while(|&size| size <= largest).collect()
    }
}
