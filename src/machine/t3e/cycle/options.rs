//! What can be chosen for a simulation of these networks only.

use serde_json::{Map, Value, json};

use super::T3e;
use super::packet::Operation;
use crate::catalogue::{ChoiceError, Given, Kind, OptionSpec, Simulated};
use crate::chip::Grain;
use crate::machine::t3e::topology::Channels;
use crate::sim::direct::Chosen;

/// What can be chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct T3eOptions {
    /// What messages do.
    pub operation: Operation,
    /// Whether packets may adapt; as the network says, if nothing is chosen.
    pub adaptive: Option<bool>,
    /// How channels are assigned; as the network says, if nothing is chosen.
    pub channels: Option<Channels>,
    /// What moves through a router at once. Packets only over encoded links.
    pub grain: Grain,
}

/// What a choice is called among others.
const fn name(adaptive: Option<bool>, channels: Option<Channels>) -> &'static str {
    match (adaptive, channels) {
        (Some(false), None) => "deterministic",
        (Some(true), None) => "adaptive",
        (Some(false), Some(Channels::Optimised)) => "deterministic, optimised",
        (Some(true), Some(Channels::Optimised)) => "adaptive, optimised",
        (Some(false), Some(Channels::TimeOfCrossing)) => "deterministic, time of crossing",
        (Some(true), Some(Channels::TimeOfCrossing)) => "adaptive, time of crossing",
        (None, Some(Channels::Optimised)) => "optimised",
        (None, Some(Channels::TimeOfCrossing)) => "time of crossing",
        (None, None) => "as the network says",
    }
}

const ROUTINGS: &[&str] = &["deterministic", "adaptive"];
const GRAINS: &[&str] = &["flit", "packet"];
const OPERATIONS: &[&str] = &["put", "get"];

impl T3eOptions {
    pub(super) fn about(&self) -> Map<String, Value> {
        let mut about = Map::new();
        let operation = OPERATIONS[self.operation as usize];
        about.insert("operation".to_owned(), json!(operation));
        let grain = GRAINS[usize::from(self.grain == Grain::Packet)];
        about.insert("grain".to_owned(), json!(grain));
        if let Some(adaptive) = self.adaptive {
            about.insert("routing".to_owned(), json!(ROUTINGS[usize::from(adaptive)]));
        }
        if let Some(channels) = self.channels {
            about.insert("channels".to_owned(), json!(channels.name()));
        }
        about
    }
}

impl Simulated for T3e {
    const OPTIONS: &'static [OptionSpec] = &[
        OptionSpec::new(
            "routing",
            "ROUTING",
            Kind::Words(ROUTINGS),
            "Whether packets may adapt, or both, to be compared [default: as the network says]",
        )
        .up_to(2),
        OptionSpec::new(
            "channels",
            "CHANNELS",
            Kind::Words(Channels::NAMES),
            "How virtual channels are assigned, or both [default: as the network says]",
        )
        .up_to(2),
        OptionSpec::new(
            "operation",
            "OPERATION",
            Kind::Words(OPERATIONS),
            "What messages do [default: put]",
        ),
        OptionSpec::new(
            "grain",
            "GRAIN",
            Kind::Words(GRAINS),
            "What moves through a router at once: flits, as on the chip, or over encoded links whole \
             packets, as processes have it by default [default: flit]",
        ),
    ];

    fn choose(given: &Given) -> Result<Vec<Chosen<Self>>, ChoiceError> {
        let operation = match given.get::<String>("operation")?.as_deref() {
            Some("get") => Operation::Get,
            _ => Operation::Put,
        };
        let grain = match given.all("grain") {
            [grain] if grain == GRAINS[1] => Grain::Packet,
            _ => Grain::Flit,
        };
        let or_one = |words: Vec<String>| match words.is_empty() {
            true => vec![None],
            false => words.into_iter().map(Some).collect(),
        };
        let routings = or_one(given.read("routing")?);
        let channels = or_one(given.read("channels")?);
        let compares = routings.len() * channels.len() > 1;
        let mut all = Vec::new();
        for routing in &routings {
            for channels in &channels {
                let options = T3eOptions {
                    operation,
                    adaptive: routing.as_ref().map(|word| word == ROUTINGS[1]),
                    channels: channels.as_deref().and_then(Channels::from_name),
                    grain,
                };
                let name = compares.then(|| name(options.adaptive, options.channels));
                all.push(Chosen { name, options });
            }
        }
        Ok(all)
    }
}
