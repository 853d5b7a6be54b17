use schemars::JsonSchema;
use serde::Serialize;

use super::BlackWidow;
use phitwire::catalogue::{ChoiceError, Kind, OptionSpec, OptionValues, Simulated};
use phitwire::sim::direct::Chosen;
use phitwire::sim::direct::config::{ConfigError, MAX_LINK_CYCLES};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlackWidowOptions {
    /// Latency in cycles of a phit or credit on a link whose description has no length, 1 to
    /// [`MAX_LINK_CYCLES`].
    pub link_cycles: u32,
}

/// The options in a form for results.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct About {
    /// Latency in cycles of a link whose description has no length.
    link_cycles: u32,
}

impl Default for BlackWidowOptions {
    fn default() -> Self {
        // 5 m of cable at 5 ns per metre.
        Self { link_cycles: 20 }
    }
}

impl BlackWidowOptions {
    pub(super) fn about(&self) -> About {
        About {
            link_cycles: self.link_cycles,
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let cycles = self.link_cycles;
        if (1..=MAX_LINK_CYCLES).contains(&cycles) {
            return Ok(());
        }
        let why = format!("a link of {cycles} cycles: expected 1 to {MAX_LINK_CYCLES}");
        Err(ConfigError::Refused(why))
    }
}

impl Simulated for BlackWidow {
    const MACHINE: &'static str = "BlackWidow";
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::new(
            "link-cycles",
            "N",
            Kind::Number(1, MAX_LINK_CYCLES as u64),
            "Latency in cycles of links without a length in the description [default: 20]",
        ),
        OptionSpec::new(
            "grain",
            "GRAIN",
            Kind::Words(&["flit", "packet"]),
            "Always flit: routers forward phits before the packet is complete",
        ),
    ];

    const NIC_OPTIONS: &'static [&'static str] = &["link-cycles"];
    const ABSENT: &'static [(&'static str, &'static str)] = &[(
        "routing",
        "route requests deterministically and replies adaptively",
    )];

    fn choose(given: &OptionValues) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        if given.all("grain").iter().any(|grain| grain == "packet") {
            let why = "--grain packet: a YARC forwards phits before the packet is complete; use \
                       --grain flit";
            return Err(ChoiceError::Refused(why.to_owned()));
        }
        let link_cycles = given.get("link-cycles")?;
        let options = BlackWidowOptions {
            link_cycles: link_cycles.unwrap_or(BlackWidowOptions::default().link_cycles),
        };
        let name = None;
        Ok(vec![Chosen { name, options }])
    }
}
