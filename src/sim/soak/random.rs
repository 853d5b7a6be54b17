//! How a case follows from its seed.

use super::{Case, Harm};
use crate::link::MIN_FRAME_BYTES;
use crate::link::impair::Lateness;
use crate::nic::{Operation, Pattern, TrafficSpec};
use crate::rng::Rng;
use crate::sim::fabric::LinkSpec;
use crate::time::Duration;
use crate::topology::{
    BlackwidowSpec, Clock, Profile, Rank, Settings, Taper, Topology, check as check_topology,
};

/// Stream of the random numbers that a case is made from; those of its run are others.
const STREAM: u64 = 0x50a4;
/// Stream of the random numbers that late copies are made from.
const LATE_STREAM: u64 = 0x1a7e;
/// One case in so many has late copies.
const LATE_CASES: u64 = 12;
/// Messages of each source of such a case: with their responses three times as many packets pass a link in
/// either direction as 16 bits can number, while copies of the first ones come.
const LATE_MESSAGES: u64 = 100_000;
/// Of the cases that all have late copies, one in so many is as long as that; the others are so many times shorter, and
/// their copies as much earlier. What they meet beside the copies matters more.
const LATE_LONG: u64 = 20;
/// No copy is later.
pub(super) const LATEST: Duration = Duration::from_ms(10_000);

pub(super) fn pick<T: Clone>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize].clone()
}

pub(super) fn up_to(rng: &mut Rng, bound_us: u64) -> Duration {
    Duration::from_us(rng.below(bound_us) + 1)
}

/// Words of netem; delays in proportion to the round trip.
pub(super) fn netem(rng: &mut Rng, unit_us: u64) -> String {
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

/// The chip's own depths and its 1.25 ns cycle, or those of processes on real wires.
fn settings(paced: bool, lane_retry_threshold: u32) -> Settings {
    let mut settings = Settings {
        lane_retry_threshold,
        ..Settings::default()
    };
    if paced {
        settings.profile = Profile::Paper;
        settings.clock = Clock::Paced { dilation: 1 };
    }
    settings
}

fn spec(rng: &mut Rng, lane_retry_threshold: u32) -> (BlackwidowSpec, Topology) {
    loop {
        let subtree = 1 + rng.below(6) as u32;
        let processors = 2 + rng.below(15) as u32;
        let paced = rng.chance(1, 3);
        let fraction = Taper::new(1 + rng.below(3) as u32, 3);
        let spec = BlackwidowSpec {
            processors,
            subtree,
            rank: rng.chance(3, 4).then(|| pick(rng, &Rank::ALL)),
            slices: 1 + rng.below(3) as u8,
            uplinks: rng.chance(1, 2).then(|| 1 + rng.below(4) as u32),
            taper: [fraction.unwrap_or(Taper::FULL); 3],
            virtual_radix: pick(rng, &[8, 16, 32]),
            group: rng.chance(1, 2).then_some(2),
            settings: settings(paced, lane_retry_threshold),
            ..BlackwidowSpec::default()
        };
        // Not every combination is a network.
        if let Ok(topology) = spec.generate()
            && check_topology(&topology).is_empty()
        {
            return (spec, topology);
        }
    }
}

/// Number of the first packet on every link: often so that 16, 32 or all 48 bits come round in the run.
pub(super) fn first_packet(seed: u64) -> u64 {
    // A stream of its own: what else a seed means stays.
    let mut rng = Rng::new(seed, STREAM + 1);
    match rng.below(4) {
        0 => 0,
        width => (1 << (16 * width)) - 1 - rng.below(200),
    }
}

fn harm(rng: &mut Rng, unit_us: u64) -> Harm {
    let link = rng.next_u64() as u32;
    let span = up_to(rng, 300 * unit_us);
    match rng.below(12) {
        0..3 => Harm::Cut { link, span },
        3..5 => Harm::ForceRetry { link },
        5..7 => Harm::LaneNoise {
            link,
            lane: rng.below(3) as u8,
            a_to_b: rng.chance(1, 2),
        },
        7..9 => Harm::Impair {
            link,
            words: netem(rng, unit_us),
        },
        9 => Harm::SoftError { link },
        10 => Harm::DownAndUp { link, span },
        _ if rng.chance(1, 2) => Harm::RestartRouter { router: link },
        _ => Harm::RestartNic { nic: link },
    }
}

/// How a case comes to late copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// By chance, one in [`LATE_CASES`]. Nothing else in it is so long, and lanes put up with any number of retries.
    Seldom,
    /// In any case, beside lanes that are given up, ends that stand still and routers that start again.
    Always,
}

/// What late copies come together with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    /// There are late copies.
    pub late: bool,
    /// So many times shorter than the longest such case.
    pub shorter: u64,
    /// Lanes are given up, for noise: the case has no corruption, which charges them all.
    pub lanes: bool,
}

impl Beside {
    /// Of these random numbers, which are its own.
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

    /// Lane charges at which the case gives a lane up. A long run charges all lanes of a link with as many as there is
    /// corruption; that would be the end of the link.
    pub const fn lane_threshold(self) -> u32 {
        if self.late && !self.lanes { 0 } else { 20 }
    }

    /// The words of netem that the case may have.
    pub fn words(self, words: String) -> String {
        match words.split_once("corrupt ") {
            Some((before, after)) if self.lanes => {
                let (_, after) = after.split_once(' ').unwrap_or_default();
                format!("{before}{after}")
            }
            _ => words,
        }
    }

    /// Two sources that keep a link busy for long, and no other.
    pub fn run_long(self, traffic: &mut TrafficSpec) {
        traffic.processors.truncate(2);
        traffic.pattern = Pattern::Neighbour;
        traffic.window = traffic.window.max(100);
        traffic.count = LATE_MESSAGES / self.shorter;
    }

    /// Late copies: a link, a share of its frames in percent, and how late they come. `unit` is the time in which a busy
    /// link numbers some ten thousand packets.
    pub fn copies(self, rng: &mut Rng, unit: Duration) -> (u32, u32, Lateness) {
        let unit = Duration::from_ps(unit.as_ps() / self.shorter);
        let least = unit.times(1 << rng.below(3));
        // Half of the cases near the length of the run, half over all orders of magnitude.
        let most = if rng.chance(1, 2) {
            least.times(8)
        } else {
            LATEST
        };
        let percent = 1 + rng.below(20) as u32;
        (rng.next_u64() as u32, percent, Lateness { least, most })
    }
}

/// What is done to busy links while copies of their frames are under way: in this order, each after a time from the one
/// before, and each to one of the busy links.
pub(super) struct Hardship {
    /// Noise on lane 0, and whether in the direction named first.
    pub noise: Option<(Duration, u32, bool)>,
    /// One of the ends stands still, which, and for how long.
    pub stop: Option<(Duration, u32, bool, Duration)>,
    /// The router starts again.
    pub restart: Option<(Duration, u32)>,
}

impl Hardship {
    /// Stops of the ends last up to `longest`.
    pub fn random(beside: Beside, rng: &mut Rng, unit: Duration, longest: Duration) -> Self {
        let part = |rng: &mut Rng, of: Duration| {
            Duration::from_ps(of.as_ps() / 1_000 * (1 + rng.below(1_000)))
        };
        let unit = Duration::from_ps(unit.as_ps() / beside.shorter);
        let busy = |rng: &mut Rng| rng.next_u64() as u32;
        Self {
            noise: beside
                .lanes
                .then(|| (part(rng, unit), busy(rng), rng.chance(1, 2))),
            stop: rng.chance(1, 2).then(|| {
                let after = part(rng, unit.times(2));
                (after, busy(rng), rng.chance(1, 2), part(rng, longest))
            }),
            restart: rng.chance(1, 4).then(|| (part(rng, unit), busy(rng))),
        }
    }
}

fn traffic(rng: &mut Rng, topology: &Topology, seed: u64) -> TrafficSpec {
    let patterns = [
        Pattern::Uniform,
        Pattern::Neighbour,
        Pattern::BitComplement,
        Pattern::Tornado,
        Pattern::Permutation,
        Pattern::Hotspot {
            targets: vec![topology.processors[0].number],
            percent: 40,
        },
    ];
    TrafficSpec {
        run: super::RUNS[0],
        pattern: pick(rng, &patterns),
        processors: topology.processors.iter().map(|p| p.number).collect(),
        op: pick(rng, &[Operation::Put, Operation::Put, Operation::Get]),
        size: 1 + rng.below(32) as u32,
        window: 1 + rng.below(200) as u32,
        count: 30 + rng.below(200),
        addresses: 1 + rng.below(64) as u16,
        seed,
        ..TrafficSpec::default()
    }
}

impl Case {
    /// The case of `seed`.
    pub fn random(seed: u64) -> Self {
        Self::made(seed, Late::Seldom)
    }

    /// The case of `seed` with late copies, beside lanes that are given up, ends that stand still and routers that start
    /// again.
    pub fn with_late_copies(seed: u64) -> Self {
        Self::made(seed, Late::Always)
    }

    fn made(seed: u64, how: Late) -> Self {
        let mut rng = Rng::new(seed, STREAM);
        let mut late_rng = Rng::new(seed, LATE_STREAM);
        let beside = Beside::random(how, &mut late_rng);
        let (spec, topology) = spec(&mut rng, beside.lane_threshold());
        // Times scale with the round trip: 25 ns of cable, or microseconds between processes.
        let is_paced = spec.settings.profile == Profile::Paper;
        let (unit_us, latency) = if is_paced {
            (1, Duration::from_ns(1 + rng.below(200)))
        } else {
            (20, up_to(&mut rng, 20))
        };
        let link = LinkSpec {
            latency,
            mtu: pick(&mut rng, &[MIN_FRAME_BYTES, 512, 1472, 9000]),
        };
        let mut traffic = traffic(&mut rng, &topology, seed);
        let mut harms: Vec<(Duration, Harm)> = (0..rng.below(8))
            .map(|_| (up_to(&mut rng, 60 * unit_us), harm(&mut rng, unit_us)))
            .collect();
        if harms.iter().any(|(_, harm)| harm.destroys()) {
            // Stamps of fewer bytes cannot tell a loss from other damage.
            traffic.size = traffic.size.max(4);
        }
        let mut impairment = if rng.chance(2, 3) {
            netem(&mut rng, unit_us)
        } else {
            String::new()
        };
        if beside.late {
            // Frames that cannot be used end a session after a millisecond in the one profile, and a second in the other.
            let (unit, longest) = if is_paced {
                (Duration::from_us(500), Duration::from_ms(3))
            } else {
                (Duration::from_ms(10), Duration::from_ms(3_000))
            };
            let (link, percent, lateness) = beside.copies(&mut late_rng, unit);
            let copies = match how {
                Late::Seldom => Harm::LateCopies {
                    link,
                    percent,
                    lateness,
                },
                // A link chosen at random may be one that two sources do not use.
                Late::Always => Harm::LateCopiesEverywhere { percent, lateness },
            };
            harms.insert(0, (Duration::from_us(1), copies));
            beside.run_long(&mut traffic);
            if how == Late::Always {
                let hardship = Hardship::random(beside, &mut late_rng, unit, longest);
                suffer_late(&mut harms, beside, &hardship);
                traffic.size = traffic.size.max(4);
            }
            impairment = beside.words(impairment);
        }
        Self {
            seed,
            spec,
            link,
            impairment,
            traffic,
            harms,
            topology,
            #[cfg(test)]
            forgery: None,
        }
    }
}

/// What is done to links whose frames come again, and what the rest must not do then.
fn suffer_late(harms: &mut Vec<(Duration, Harm)>, beside: Beside, hardship: &Hardship) {
    for (_, harm) in harms.iter_mut().filter(|_| beside.lanes) {
        match harm {
            Harm::Impair { words, .. } => *words = beside.words(core::mem::take(words)),
            // One lane of each link, so that no link loses all.
            Harm::LaneNoise { lane, .. } => *lane = 0,
            _ => {}
        }
    }
    if let Some((after, busy, a_to_b)) = hardship.noise {
        harms.push((after, Harm::LoseLane { busy, a_to_b }));
    }
    if let Some((after, busy, first, span)) = hardship.stop {
        harms.push((after, Harm::Stop { busy, first, span }));
    }
    if let Some((after, busy)) = hardship.restart {
        harms.push((after, Harm::RestartEnd { busy }));
    }
}
