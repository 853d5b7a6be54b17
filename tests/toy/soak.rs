//! Random rings under harm.

use core::convert::Infallible;

use super::network::Ring;
use crate::net::Describe;
use crate::nic::{Operation, Pattern, TrafficSpec};
use crate::rng::Rng;
use crate::sim::LinkSpec;
use crate::sim::soak::random::{Beside, netem, pick, up_to};
use crate::sim::soak::{Case, Family, Harm, Late, RUNS, Soaked};
use crate::time::Duration;

/// What is soaked.
pub const FAMILIES: [Family; 1] = [Family::over_links::<Rings>("ring", "ring")];

/// Rings.
#[derive(Clone, Copy, Debug)]
pub struct Rings;

impl Soaked for Rings {
    type Spec = u32;
    type Topology = Ring;
    type Own = Infallible;

    const LIVENESS: Duration = Duration::from_ms(300_000);
    const REFUSALS: bool = false;

    fn generate(routers: &u32) -> Result<Ring, String> {
        Ring::generate(&format!("ring-{routers}")).unwrap_or(Err(String::new()))
    }

    fn case(seed: u64, how: Late) -> Case<Self> {
        let (mut rng, mut late) = (Rng::new(seed, 0x7109), Rng::new(seed, 0x710a));
        // A link of the ring never gives up a lane.
        let beside = Beside {
            lanes: false,
            ..Beside::random(how, &mut late)
        };
        let routers = 3 + rng.below(5) as u32;
        let harms = (0..rng.below(8)).map(|_| {
            let (link, span) = (rng.next_u64() as u32, up_to(&mut rng, 6_000));
            let harm = match rng.below(8) {
                0 => Harm::Cut { link, span },
                1 => Harm::ForceRetry { link },
                2 => Harm::DownAndUp { link, span },
                3 => Harm::RestartRouter { router: link },
                4 => Harm::RestartNic { nic: link },
                _ => Harm::Impair {
                    link,
                    words: netem(&mut rng, 20),
                },
            };
            (up_to(&mut rng, 1_200), harm)
        });
        let harms = harms.collect();
        let case = Case {
            seed,
            spec: routers,
            link: LinkSpec {
                latency: up_to(&mut rng, 20),
                mtu: pick(&mut rng, &[512, 1472, 9000]),
            },
            impairment: netem(&mut rng, 20),
            traffic: TrafficSpec {
                run: RUNS[0],
                pattern: pick(&mut rng, &[Pattern::Uniform, Pattern::Tornado]),
                processors: (0..2 * routers as u16).collect(),
                op: pick(&mut rng, &[Operation::Put, Operation::Get]),
                size: 4 + rng.below(29) as u32,
                window: 1 + rng.below(60) as u32,
                count: 1 + rng.below(100),
                ..TrafficSpec::default()
            },
            collectives: None,
            harms,
            #[cfg(test)]
            forgery: None,
        };
        let (unit, longest) = (Duration::from_ms(10), Duration::from_ms(3_000));
        case.with((how, beside), &mut late, unit, longest)
    }
}
