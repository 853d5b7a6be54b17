//! Random Aries dragonflies over encoded links. The NICs run their own verified traffic (puts, gets
//! and additions, as single packets or block transfers), usually together with a run of collective
//! operations.

mod direct;

pub use direct::DragonflyCase;

use phitwire_framing::aries::packet::MAX_JOINED;

use crate::link::MIN_SET_FRAME_BYTES;
use crate::nic::Collective;
use crate::nic::CollectiveSpec;
use crate::topology::{
    Arrangement, Dragonfly, DragonflySettings, DragonflySpec, Shape, check as check_topology,
};
use phitwire::device::LinkFault;
use phitwire::net::Profile;
use phitwire::nic::{Operation, RoutingMode, TrafficPattern, TrafficSpec};
use phitwire::rng::Rng;
use phitwire::sim::LinkSpec;
use phitwire::sim::soak::random::{LateConditions, netem, pick, up_to};
use phitwire::sim::soak::{Case, Family, Harm, Hooks, Late, OwnHarm, RUNS, Soaked};
use phitwire::time::Duration;

pub(super) const FAMILIES: [Family; 2] = [
    Family::over_links::<AriesLinks>("aries-links", "aries"),
    Family {
        name: "aries-direct",
        machine: "aries",
        has_frames: false,
        case: |seed, _| Box::new(DragonflyCase::random(seed)),
    },
];

/// Random stream of a case. Its run uses other streams.
const STREAM: u64 = 0xa41e6;
/// Random stream of late copies.
const LATE_STREAM: u64 = 0x1a7e6;
/// Times scale with the round trip of links between processes.
const UNIT_US: u64 = 20;
/// Ends stop for less than two seconds, after which a link between processes is given up.
const LONGEST_STOP: Duration = Duration::from_ms(1_500);
const MOST_ROUTERS: usize = 9;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AriesLinks;

/// Harms specific to links that carry sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetHarm {
    /// One end sends its next data set with a bad CRC.
    BadCrc {
        link: u32,
    },
    Reinitialise {
        link: u32,
    },
    /// One end loses its receive clock, and receives nothing for a while.
    LoseClock {
        link: u32,
        span: Duration,
    },
}

impl OwnHarm for SetHarm {
    fn fault(&self) -> (u32, LinkFault) {
        match *self {
            Self::BadCrc { link } => (link, LinkFault::BadCrc),
            Self::Reinitialise { link } => (link, LinkFault::Reinit),
            Self::LoseClock { link, span } => (link, LinkFault::LoseClock(span)),
        }
    }
}

/// A random dragonfly within these limits: groups, chassis, blades and NICs; black and global
/// links; routers.
fn dragonfly(
    rng: &mut Rng,
    [groups, chassis, blades, nics]: [u64; 4],
    [black, global]: [u64; 2],
    routers: usize,
    settings: &DragonflySettings,
) -> (DragonflySpec, Dragonfly) {
    loop {
        let shape = Shape {
            groups: 1 + rng.below(groups) as u16,
            chassis: 1 + rng.below(chassis) as u8,
            blades: 1 + rng.below(blades) as u8,
            nics: 1 + rng.below(nics) as u8,
        };
        let spec = DragonflySpec {
            shape,
            black_links: (shape.chassis > 1).then(|| 1 + rng.below(black) as u8),
            global_links: (shape.groups > 1).then(|| 1 + rng.below(global) as u16),
            arrangement: pick(rng, &Arrangement::ALL).1,
            settings: settings.clone(),
            ..DragonflySpec::default()
        };
        // Draw again until the combination is a valid network.
        if shape.routers() <= routers
            && shape.all_nics() > 1
            && let Ok(topology) = spec.generate()
            && check_topology(&topology).is_empty()
        {
            return (spec, topology);
        }
    }
}

fn harm(rng: &mut Rng) -> Harm<SetHarm> {
    let link = rng.next_u64() as u32;
    let span = up_to(rng, 300 * UNIT_US);
    match rng.below(16) {
        0..3 => Harm::Cut { link, span },
        3..5 => Harm::ForceRetry { link },
        5 => Harm::Own(SetHarm::BadCrc { link }),
        6 => Harm::Own(SetHarm::Reinitialise { link }),
        7 => Harm::Own(SetHarm::LoseClock { link, span }),
        8..10 => Harm::LaneNoise {
            link,
            // Only one lane of each link, so that no link loses all of them.
            lane: 0,
            a_to_b: rng.chance(1, 2),
        },
        10..12 => Harm::Impair {
            link,
            words: netem(rng, UNIT_US),
        },
        12..14 => Harm::SoftError { link },
        14 => Harm::DownAndUp { link, span },
        _ => Harm::RestartRouter { router: link },
    }
}

/// Payload size for `op`, as a single packet or a block transfer.
fn size(rng: &mut Rng, op: Operation) -> u32 {
    let size = 1 + rng.below(200) as u32;
    match op {
        Operation::Put => size,
        Operation::Get if size <= 64 => size.next_multiple_of(4),
        Operation::Get => size,
        Operation::Amo => 8,
    }
}

fn ways(rng: &mut Rng, unnumbered: bool) -> Option<RoutingMode> {
    let ordered = [
        RoutingMode::Ordered,
        RoutingMode::OrderedNonMinimal,
        RoutingMode::MinHash,
        RoutingMode::NminHash,
    ];
    let picked = pick(
        rng,
        if unnumbered {
            &ordered
        } else {
            RoutingMode::ALL
        },
    );
    rng.chance(3, 4).then_some(picked)
}

fn traffic(rng: &mut Rng, nics: usize, destroyed: bool, seed: u64) -> TrafficSpec {
    let patterns = [
        TrafficPattern::Uniform,
        TrafficPattern::Uniform,
        TrafficPattern::Neighbour,
        TrafficPattern::BitComplement,
        TrafficPattern::Permutation,
        TrafficPattern::Hotspot {
            targets: vec![0],
            percent: 40,
        },
    ];
    let op = pick(
        rng,
        &[
            Operation::Put,
            Operation::Put,
            Operation::Get,
            Operation::Amo,
        ],
    );
    let mut size = size(rng, op);
    if destroyed {
        // Stamps below 8 bytes cannot distinguish a loss from other damage.
        size = size.max(8);
    }
    let ways = ways(rng, op == Operation::Put && size < 8);
    TrafficSpec {
        run: RUNS[0],
        pattern: pick(rng, &patterns),
        processors: (0..nics as u16).collect(),
        op,
        size,
        window: 1 + rng.below(200) as u32,
        count: 30 + rng.below(200),
        addresses: 1 + rng.below(64) as u16,
        seed,
        ways,
        ..TrafficSpec::default()
    }
}

fn collectives(rng: &mut Rng, nics: usize) -> Option<CollectiveSpec> {
    let ops: Vec<Collective> = Collective::all().collect();
    let spec = CollectiveSpec {
        run: RUNS[0] as u32,
        nics: (0..nics as u32).rev().collect(),
        branching: 1 + rng.below(4) as u32,
        root: rng.below(nics as u64) as u32,
        engine: rng.below(4) as u8,
        op: pick(rng, &ops),
        count: 5 + rng.below(40),
        duration_ns: 0,
        // Longer than the time for which a lost request is repeated.
        patience_ns: 300_000_000_000,
    };
    rng.chance(2, 3).then_some(spec)
}

impl Soaked for AriesLinks {
    type Spec = DragonflySpec;
    type Topology = Dragonfly;
    type Own = SetHarm;

    /// Requests time out after 20 s, in which a run is announced three times.
    const LIVENESS: Duration = Duration::from_ms(900_000);
    const REFUSALS: bool = true;

    fn generate(spec: &DragonflySpec) -> Result<Dragonfly, String> {
        spec.generate().map_err(|error| error.to_string())
    }

    /// A response may complete several puts.
    fn messages_of_packet(spec: &DragonflySpec) -> u64 {
        match spec.settings.profile {
            Profile::Live => 1 + MAX_JOINED as u64,
            Profile::Paper => 1,
        }
    }

    fn case(seed: u64, how: Late) -> Case<Self> {
        let mut rng = Rng::new(seed, STREAM);
        let mut late_rng = Rng::new(seed, LATE_STREAM);
        let conditions = LateConditions::random(how, &mut late_rng);
        let settings = DragonflySettings {
            lane_retry_threshold: conditions.lane_threshold(),
            ..DragonflySettings::default()
        };
        let (spec, _) = dragonfly(&mut rng, [3, 2, 4, 2], [2, 3], MOST_ROUTERS, &settings);
        let link = LinkSpec {
            latency: up_to(&mut rng, 20),
            mtu: pick(&mut rng, &[MIN_SET_FRAME_BYTES, 512, 1472, 9000]),
        };
        let harms: Vec<(Duration, Harm<SetHarm>)> = (0..rng.below(8))
            .map(|_| (up_to(&mut rng, 60 * UNIT_US), harm(&mut rng)))
            .collect();
        let impairment = if rng.chance(2, 3) {
            netem(&mut rng, UNIT_US)
        } else {
            String::new()
        };
        let nics = spec.shape.all_nics();
        let destroyed = how == Late::Always || harms.iter().any(|(_, harm)| harm.may_lose());
        let traffic = traffic(&mut rng, nics, destroyed, seed);
        let collectives = collectives(&mut rng, nics);
        let case = Case {
            seed,
            spec,
            link,
            impairment,
            traffic,
            collectives,
            barriers: Vec::new(),
            harms,
            hooks: Hooks::default(),
        };
        let unit = Duration::from_ms(10);
        case.with((how, conditions), &mut late_rng, unit, LONGEST_STOP)
    }
}

#[cfg(test)]
mod canary;
#[cfg(test)]
mod tests;
