use phitwire_framing::aries::flit::Routing;
use schemars::JsonSchema;
use serde::Serialize;

use super::Aries;
use crate::route::registers::PortKind;
use crate::router::pipeline::{LOAD_CYCLES, SHORT_LINK_CYCLES};
use phitwire::catalogue::{ChoiceError, Kind, OptionError, OptionSpec, OptionValues, Simulated};
use phitwire::chip::Grain;
use phitwire::sim::direct::Chosen;
use phitwire::sim::direct::config::{ConfigError, MAX_LINK_CYCLES};

pub(super) const MODES: [(&str, Routing); 11] = [
    ("adaptive0", Routing::Adaptive0),
    ("adaptive1", Routing::Adaptive1),
    ("adaptive2", Routing::Adaptive2),
    ("adaptive3", Routing::Adaptive3),
    ("minimal", Routing::Minimal),
    ("valiant", Routing::Valiant),
    ("ordered", Routing::Ordered),
    ("ordered-non-minimal", Routing::OrderedNonMinimal),
    ("min-hash", Routing::MinHash),
    ("nmin-hash", Routing::NminHash),
    // The name in the application interfaces.
    ("in-order", Routing::Ordered),
];
const MODE_NAMES: [&str; MODES.len()] = {
    let mut names = [""; MODES.len()];
    let mut next = 0;
    while next < names.len() {
        names[next] = MODES[next].0;
        next += 1;
    }
    names
};
/// Cycles per set of ten flits; latencies are multiples of it.
const SET_CYCLES: u32 = LOAD_CYCLES as u32;
/// Upper limit on a link's latency, enough for 200 m.
const MAX_CYCLES: u32 = 1_000;
/// Length of a green link that is included in [`SHORT_LINK_CYCLES`].
const SHORT_METRES: u32 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AriesOptions {
    pub routing: Routing,
    pub grain: Grain,
    /// Latency in cycles from an output port over a link of each kind (see [`PortKind`]) into the
    /// next input queue: multiples of ten.
    pub link_cycles: [u32; 4],
}

/// The options in a form for results.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct About {
    /// Routing mode.
    routing: &'static str,
    /// The unit that moves through the routers.
    grain: Grain,
    /// Latency of a flit over a link of each kind, in cycles.
    link_cycles: LinkCycles,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
struct LinkCycles {
    /// Links of network interfaces.
    nic: u32,
    /// Links within a chassis.
    green: u32,
    /// Links within a group.
    black: u32,
    /// Links between groups.
    blue: u32,
}

impl AriesOptions {
    /// Default lengths in metres of green, black and blue links. A chassis' backplane is a metre
    /// long, copper between the chassis of a group "approximately 3m", and optical cables up to 35
    /// m (XC white paper, "Dragonfly Implementation", "Aries Router"). 20 m represents the cables
    /// of a machine room.
    pub const METRES: [u32; 3] = [1, 3, 20];

    /// Latency in cycles of a link with `metres` of cable at 5 ns per metre, rounded to the nearest
    /// set. [`SHORT_LINK_CYCLES`] covers gathering a set, checking its CRC, two SerDes and the
    /// first metre. At 875 MHz a metre is 4.375 cycles.
    pub const fn cycles_of(metres: u32) -> u32 {
        let cable = metres.saturating_sub(SHORT_METRES) as u64 * 4_375 / 1_000;
        let cycles = SHORT_LINK_CYCLES + cable + SET_CYCLES as u64 / 2;
        (cycles / SET_CYCLES as u64 * SET_CYCLES as u64) as u32
    }

    /// Options for cables of these lengths in metres: green, black and blue. A NIC's link has the
    /// NIC's pipeline instead of a cable, and counts like a green link of one metre.
    pub const fn with_metres(routing: Routing, [green, black, blue]: [u32; 3]) -> Self {
        Self {
            routing,
            grain: Grain::Flit,
            link_cycles: [
                Self::cycles_of(SHORT_METRES),
                Self::cycles_of(green),
                Self::cycles_of(black),
                Self::cycles_of(blue),
            ],
        }
    }

    pub(super) const fn cycles(&self, kind: PortKind) -> u32 {
        self.link_cycles[kind as usize]
    }

    /// Length of a window in cycles, at most the latency of the shortest link.
    pub(super) fn window(&self) -> u32 {
        let shortest = self.link_cycles.into_iter().min().unwrap_or(SET_CYCLES);
        shortest.min(MAX_LINK_CYCLES / SET_CYCLES * SET_CYCLES)
    }

    pub(super) fn longest(&self) -> u32 {
        self.link_cycles.into_iter().max().unwrap_or(SET_CYCLES)
    }

    pub(super) fn about(&self) -> About {
        let [nic, green, black, blue] = self.link_cycles;
        let mode = MODES.iter().find(|(_, routing)| *routing == self.routing);
        About {
            routing: mode.map_or("", |(name, _)| name),
            grain: self.grain,
            link_cycles: LinkCycles {
                nic,
                green,
                black,
                blue,
            },
        }
    }

    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        for cycles in self.link_cycles {
            if !(SET_CYCLES..=MAX_CYCLES).contains(&cycles) || cycles % SET_CYCLES != 0 {
                return Err(refused(cycles));
            }
        }
        Ok(())
    }
}

/// The error for an invalid link latency.
pub(super) fn refused(cycles: u32) -> ConfigError {
    ConfigError::Refused(format!(
        "an Aries link of {cycles} cycles: expected a multiple of 10 up to 1,000"
    ))
}

impl Default for AriesOptions {
    fn default() -> Self {
        Self::with_metres(Routing::default(), Self::METRES)
    }
}

impl Simulated for Aries {
    const MACHINE: &'static str = "Aries";
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::new(
            "routing",
            "MODE,...",
            Kind::Words(&MODE_NAMES),
            "Routing modes; list several to compare them [default: adaptive0]",
        )
        .up_to(usize::MAX),
        OptionSpec::new(
            "grain",
            "GRAIN",
            Kind::Words(&["flit", "packet"]),
            "Unit that moves through the routers: flits, as on the chip, or whole packets, the \
             default of processes [default: flit]",
        ),
        OptionSpec::new(
            "metres",
            "G,B,O",
            Kind::Number(1, 200),
            "Metres of green, black and blue links, at 5 ns each [default: 1,3,20]",
        )
        .up_to(3),
    ];

    const NIC_OPTIONS: &'static [&'static str] = &["metres"];

    fn choose(given: &OptionValues) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        let metres: Vec<u32> = given.read("metres")?;
        let metres = match metres[..] {
            [] => AriesOptions::METRES,
            [green, black, blue] => [green, black, blue],
            _ => {
                let why = "--metres takes three lengths: green, black and blue";
                return Err(ChoiceError::Refused(why.to_owned()));
            }
        };
        let grain = match given.all("grain") {
            [grain] if grain == "packet" => Grain::Packet,
            _ => Grain::Flit,
        };
        let chosen = |&(name, routing): &(&'static str, Routing)| Chosen {
            name: Some(name),
            options: AriesOptions {
                grain,
                ..AriesOptions::with_metres(routing, metres)
            },
        };
        let modes = given.all("routing");
        if modes.is_empty() {
            return Ok(vec![chosen(&MODES[0])]);
        }
        let wanted = |word: &String| {
            let found = MODES.iter().find(|(name, _)| name == word);
            let unknown = || OptionError {
                name: "routing",
                value: word.clone(),
                reason: format!("expected one of {}", MODE_NAMES.join(", ")),
            };
            Ok(chosen(found.ok_or_else(unknown)?))
        };
        modes.iter().map(wanted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cables_cost_five_nanoseconds_per_metre() {
        assert_eq!(
            [1, 3, 20, 35].map(AriesOptions::cycles_of),
            [40, 50, 120, 190]
        );
        let options = AriesOptions::default();
        assert_eq!(options.link_cycles, [40, 40, 50, 120]);
        assert_eq!((options.window(), options.longest()), (40, 120));
        assert_eq!(options.validate(), Ok(()));
        let odd = AriesOptions {
            link_cycles: [40, 45, 50, 120],
            ..options
        };
        assert_eq!(odd.validate(), Err(refused(45)));
    }
}
