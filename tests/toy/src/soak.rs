//! Random rings under harm.

use core::convert::Infallible;

use super::network::Ring;
use phitwire::net::Settings;
use phitwire::sim::soak::{Case, Family, Late, Soaked};
use phitwire::time::Duration;

pub const FAMILIES: [Family; 1] = [Family::over_links::<Rings>("ring", "ring")];

/// Rings: number of routers, and lane charges at which a lane is decommissioned.
#[derive(Clone, Copy, Debug)]
pub struct Rings;

impl Soaked for Rings {
    type Spec = (u32, u32);
    type Topology = Ring;
    type Own = Infallible;

    const LIVENESS: Duration = Duration::from_ms(300_000);
    const REFUSALS: bool = false;

    fn generate(&(routers, lane_retry_threshold): &(u32, u32)) -> Result<Ring, String> {
        let settings = Settings {
            lane_retry_threshold,
            ..Settings::default()
        };
        Ok(Ring::new(format!("ring-{routers}"), routers, settings))
    }

    fn case(seed: u64, how: Late) -> Case<Self> {
        Case::of_links((seed, how), 0x7109, |rng, beside| {
            let routers = 3 + rng.below(5) as u32;
            let nics = 0..2 * routers as u16;
            ((routers, beside.lane_threshold()), nics.collect())
        })
    }
}
