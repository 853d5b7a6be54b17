//! Random choices for the cases of all machines.

use super::{Case, Harm, Hooks, OwnHarm, RUNS, Soaked};
use crate::link::impair::Lateness;
use crate::nic::{Operation, TrafficPattern, TrafficSpec};
use crate::rng::Rng;
use crate::sim::LinkSpec;
use crate::time::Duration;

/// One case in this many has late copies.
const LATE_CASES: u64 = 12;
/// Messages per source in such a case. With responses, a link carries three times as many packets
/// each way as 16-bit numbers can tell apart, while copies of the first ones arrive.
const LATE_MESSAGES: u64 = 100_000;
/// One in this many of the cases that always have late copies is that long. The others are shorter
/// by this factor, with copies that much earlier: they test the accompanying conditions rather than
/// the copies.
const LATE_LONG: u64 = 20;
/// Delay of the latest copy.
pub(crate) const LATEST: Duration = Duration::from_ms(10_000);

pub fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

pub fn up_to(rng: &mut Rng, bound_us: u64) -> Duration {
    Duration::from_us(rng.below(bound_us) + 1)
}

/// A random impairment in netem's syntax; delays are proportional to `unit_us`.
pub fn netem(rng: &mut Rng, unit_us: u64) -> String {
    let mut words = String::new();
    if rng.chance(1, 2) {
        let delay = rng.below(20 * unit_us) + 1;
        words += &format!("delay {delay}us {}us ", rng.below(delay + 1));
        if rng.chance(1, 3) {
            words += &format!("reorder {}% gap {} ", rng.below(50) + 1, rng.below(5) + 1);
        }
    }
    match rng.below(4) {
        0 => words += &format!("loss {}% ", rng.below(25)),
        1 => words += &format!("loss {}% 25% ", rng.below(10)),
        2 => words += "loss gemodel 1% 20% 80% 0.1% ",
        _ => {}
    }
    if rng.chance(1, 3) {
        words += &format!("duplicate {}% ", rng.below(10) + 1);
    }
    if rng.chance(1, 3) {
        words += &format!("corrupt {}% ", rng.below(5) + 1);
    }
    words + "limit 100000"
}

/// When a case has late copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// At random, in one case of twelve. That case is longer than all others, and its lanes
    /// tolerate any number of retries.
    Seldom,
    /// Always, together with decommissioned lanes, suspended ends and router restarts.
    Always,
}

/// Conditions that accompany late copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateConditions {
    /// Whether the case has late copies.
    pub(crate) late: bool,
    /// Factor by which the case is shorter than the longest.
    pub(crate) shorter: u64,
    /// Whether noise decommissions lanes. Such a case has no corruption, which would charge all
    /// lanes.
    pub lanes: bool,
}

impl LateConditions {
    /// Draws the conditions from `rng`, which must not be used for anything else.
    pub fn random(how: Late, rng: &mut Rng) -> Self {
        let by_chance = rng.chance(1, LATE_CASES);
        match how {
            Late::Seldom => Self {
                late: by_chance,
                shorter: 1,
                lanes: false,
            },
            Late::Always => Self {
                late: true,
                shorter: if rng.chance(1, LATE_LONG) {
                    1
                } else {
                    LATE_LONG
                },
                lanes: rng.chance(1, 2),
            },
        }
    }

    /// Charges at which a lane is decommissioned; 0: never. In a long run corruption would charge
    /// all lanes of a link in proportion, and finally take the link down.
    pub const fn lane_threshold(self) -> u32 {
        if self.late && !self.lanes { 0 } else { 20 }
    }

    /// Removes corruption from netem words if noise decommissions lanes.
    pub(crate) fn words(self, words: String) -> String {
        match words.split_once("corrupt ") {
            Some((before, after)) if self.lanes => {
                let (_, after) = after.split_once(' ').unwrap_or_default();
                format!("{before}{after}")
            }
            _ => words,
        }
    }

    /// Adjusts a harm so that no link loses all of its lanes.
    fn spare_lanes<Own: OwnHarm>(self, harm: &mut Harm<Own>) {
        match harm {
            Harm::Impair { words, .. } => *words = self.words(core::mem::take(words)),
            // Noise hits the same lane of every link.
            Harm::LaneNoise { lane, .. } => *lane = 0,
            _ => {}
        }
    }

    /// Limits traffic to two sources that keep a link busy for long.
    pub(crate) fn run_long(self, traffic: &mut TrafficSpec) {
        traffic.processors.truncate(2);
        traffic.pattern = TrafficPattern::Neighbour;
        traffic.window = traffic.window.max(100);
        traffic.count = LATE_MESSAGES / self.shorter;
    }

    /// Draws late copies: a link, a share of its frames in percent, and their lateness. `unit` is
    /// the time in which a busy link numbers some ten thousand packets.
    pub(crate) fn copies(self, rng: &mut Rng, unit: Duration) -> (u32, u32, Lateness) {
        let unit = Duration::from_ps(unit.as_ps() / self.shorter);
        let least = unit.times(1 << rng.below(3));
        // Half of the copies are delayed by about the length of the run; the delays of the others
        // span all orders of magnitude.
        let most = if rng.chance(1, 2) {
            least.times(8)
        } else {
            LATEST
        };
        let percent = 1 + rng.below(20) as u32;
        (rng.next_u64() as u32, percent, Lateness { least, most })
    }
}

/// A fixed sequence of harm to busy links while copies of their frames are in flight: lane 0 is
/// noisy, an end is suspended for at most `longest`, a router restarts. Each comes with its delay
/// after the previous one.
fn late_copy_harm<Own>(
    conditions: LateConditions,
    rng: &mut Rng,
    unit: Duration,
    longest: Duration,
) -> Vec<(Duration, Harm<Own>)> {
    let part = |rng: &mut Rng, of: Duration| {
        Duration::from_ps(of.as_ps() / 1_000 * (1 + rng.below(1_000)))
    };
    let unit = Duration::from_ps(unit.as_ps() / conditions.shorter);
    let mut harms = Vec::new();
    if conditions.lanes {
        let (after, busy) = (part(rng, unit), rng.next_u64() as u32);
        let a_to_b = rng.chance(1, 2);
        harms.push((after, Harm::LoseLane { busy, a_to_b }));
    }
    if rng.chance(1, 2) {
        let (after, busy) = (part(rng, unit.times(2)), rng.next_u64() as u32);
        let (first, span) = (rng.chance(1, 2), part(rng, longest));
        harms.push((after, Harm::Stop { busy, first, span }));
    }
    if rng.chance(1, 4) {
        let (after, busy) = (part(rng, unit), rng.next_u64() as u32);
        harms.push((after, Harm::RestartEnd { busy }));
    }
    harms
}

/// Harm that every machine's links can suffer, for at most `longest_us` each.
fn harm<Own>(rng: &mut Rng, longest_us: u64) -> Harm<Own> {
    let (link, span) = (rng.next_u64() as u32, up_to(rng, longest_us));
    match rng.below(8) {
        0 => Harm::Cut { link, span },
        1 => Harm::ForceRetry { link },
        2 => Harm::DownAndUp { link, span },
        3 => Harm::RestartRouter { router: link },
        4 => Harm::RestartNic { nic: link },
        5 => Harm::LaneNoise {
            link,
            lane: rng.below(3) as u8,
            a_to_b: rng.chance(1, 2),
        },
        _ => Harm::Impair {
            link,
            words: netem(rng, 20),
        },
    }
}

impl<M: Soaked> Case<M> {
    /// A case with links between processes, for a machine without link harm of its own. `spec`
    /// generates a network and returns the numbers of its NICs. `stream` and `stream + 1` are the
    /// machine's random streams.
    pub fn of_links(
        (seed, how): (u64, Late),
        stream: u64,
        spec: impl FnOnce(&mut Rng, LateConditions) -> (M::Spec, Vec<u16>),
    ) -> Self {
        let (mut rng, mut late) = (Rng::new(seed, stream), Rng::new(seed, stream + 1));
        let conditions = LateConditions::random(how, &mut late);
        let (spec, processors) = spec(&mut rng, conditions);
        let harms = (0..rng.below(8)).map(|_| {
            let harm = harm(&mut rng, 6_000);
            (up_to(&mut rng, 1_200), harm)
        });
        let harms = harms.collect();
        let case = Self {
            seed,
            spec,
            link: LinkSpec {
                latency: up_to(&mut rng, 20),
                mtu: pick(&mut rng, &[512, 1472, 9000]),
            },
            impairment: netem(&mut rng, 20),
            traffic: TrafficSpec {
                run: RUNS[0],
                pattern: pick(
                    &mut rng,
                    &[TrafficPattern::Uniform, TrafficPattern::Tornado],
                ),
                processors,
                op: pick(&mut rng, &[Operation::Put, Operation::Get]),
                size: 4 + rng.below(29) as u32,
                window: 1 + rng.below(60) as u32,
                count: 1 + rng.below(100),
                ..TrafficSpec::default()
            },
            collectives: None,
            barriers: Vec::new(),
            harms,
            hooks: Hooks::default(),
        };
        let (unit, longest) = (Duration::from_ms(10), Duration::from_ms(3_000));
        case.with((how, conditions), &mut late, unit, longest)
    }

    /// Adds the late copies, if any, and their accompanying harm to the case. `unit` is the time in
    /// which a busy link numbers some ten thousand packets; suspensions last at most `longest`.
    #[must_use]
    pub fn with(
        mut self,
        (how, conditions): (Late, LateConditions),
        rng: &mut Rng,
        unit: Duration,
        longest: Duration,
    ) -> Self {
        if !conditions.late {
            return self;
        }
        let (link, percent, lateness) = conditions.copies(rng, unit);
        let copies = match how {
            Late::Seldom => Harm::LateCopies {
                link,
                percent,
                lateness,
            },
            // Copy on all links: the two sources may not use a random one.
            Late::Always => Harm::LateCopiesEverywhere { percent, lateness },
        };
        self.harms.insert(0, (Duration::from_us(1), copies));
        conditions.run_long(&mut self.traffic);
        if how == Late::Always {
            for (_, harm) in self.harms.iter_mut().filter(|_| conditions.lanes) {
                conditions.spare_lanes(harm);
            }
            self.harms
                .extend(late_copy_harm(conditions, rng, unit, longest));
            self.traffic.size = self.traffic.size.max(4);
        }
        self.impairment = conditions.words(self.impairment);
        self
    }
}
