//! What is inside a device, stage by stage, for those who look at it.
//!
//! A report is put together when somebody asks for one, from what the stages keep anyway: nothing
//! is counted for it while packets pass.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{LinkEnd, LinkView};
use crate::link::{LinkPort, ReceiveBuffer};
use crate::node::PortId;

/// A name that a machine gives, or that came from elsewhere.
pub type Name = Cow<'static, str>;

/// The stages of a device in the order in which a packet meets them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PipelineReport {
    /// They.
    pub stages: Vec<Stage>,
}

/// One stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stage {
    /// What the machine's papers call it.
    pub name: Name,
    /// What is counted: `phits`, `flits`, `packets`.
    pub unit: Name,
    /// What each of its places is: `port`, `tile`.
    pub place: Name,
    /// The names of its virtual channels, or of what else its places are divided into.
    pub channels: Vec<Name>,
    /// How much each place holds of each channel at most; empty where there is no such limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<u64>,
    /// How often something has had to wait here, where that is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalls: Option<u64>,
    /// Whether what is held here is part of the device's own [account](super::NodeAccount); else it
    /// is of its links, or is counted in another stage as well.
    #[serde(default)]
    pub inside: bool,
    /// Places in use, by number.
    pub places: Vec<Place>,
}

/// A place of a stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its number.
    pub number: u16,
    /// What is held, by channel.
    pub held: Vec<u64>,
}

impl Stage {
    /// A stage without places whose content is part of the device's account.
    pub fn inside(name: &'static str, unit: &'static str, place: &'static str) -> Self {
        Self {
            inside: true,
            ..Self::outside(name, unit, place)
        }
    }

    /// A stage without places whose content is accounted for elsewhere.
    pub fn outside(name: &'static str, unit: &'static str, place: &'static str) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            place: place.into(),
            ..Self::default()
        }
    }

    /// With channels of these names.
    #[must_use]
    pub fn channels(mut self, names: &[&'static str]) -> Self {
        self.channels = names.iter().map(|&name| name.into()).collect();
        self
    }

    /// With room for so much of each channel at each place.
    #[must_use]
    pub fn capacity(mut self, capacity: impl IntoIterator<Item = u64>) -> Self {
        self.capacity = capacity.into_iter().collect();
        self
    }

    /// With so many waits so far.
    #[must_use]
    pub fn stalls(mut self, stalls: u64) -> Self {
        self.stalls = Some(stalls);
        self
    }

    /// Adds a place that holds so much of each channel.
    pub fn holds(&mut self, number: usize, held: impl IntoIterator<Item = u64>) {
        self.places.push(Place {
            number: number as u16,
            held: held.into_iter().collect(),
        });
    }

    /// With one place and one channel, that holds so much.
    #[must_use]
    pub fn single(mut self, channel: &'static str, held: u64) -> Self {
        self.channels = vec![channel.into()];
        self.holds(0, [held]);
        self
    }

    /// All that is held.
    pub fn total(&self) -> u64 {
        self.places.iter().flat_map(|place| &place.held).sum()
    }

    /// How much it can hold, in the places in use; `None` where there is no limit.
    pub fn room(&self) -> Option<u64> {
        let each: u64 = self.capacity.iter().sum();
        (!self.capacity.is_empty()).then(|| each * self.places.len() as u64)
    }
}

impl Stage {
    /// With what the receive buffers of links hold, by port, and the room of the largest: longer
    /// links may have larger ones.
    pub(crate) fn of_inputs<'a, E: LinkEnd>(
        mut self,
        ports: impl IntoIterator<Item = (usize, &'a LinkPort<E>)>,
    ) -> Self {
        self = self.channels(E::VC_NAMES);
        for (number, port) in ports {
            let offers = port.end().account().offers;
            self.capacity.resize(self.channels.len(), 0);
            for (room, &offered) in self.capacity.iter_mut().zip(&offers) {
                *room = (*room).max(offered.into());
            }
            let held = (0..self.channels.len()).map(|vc| port.input().queued_of(vc));
            let held: Vec<_> = held.collect();
            self.holds(number, held);
        }
        self
    }

    /// The link control blocks: what they have sent and their peers have not acknowledged.
    pub(crate) fn of_links<'a>(links: impl Iterator<Item = (PortId, &'a dyn LinkView)>) -> Self {
        let mut stage = Self::outside("link control block", "packets", "port");
        stage.channels = vec!["unacknowledged".into()];
        for (port, link) in links {
            let account = link.account();
            stage.unit = account.units.unacknowledged.into();
            stage.holds(port.into(), [account.unacknowledged]);
        }
        stage
    }
}

impl PipelineReport {
    /// What it says of the device's own content: what [`NodeAccount::total`](super::NodeAccount::total)
    /// says at the same time.
    pub fn inside(&self) -> u64 {
        let own = self.stages.iter().filter(|stage| stage.inside);
        own.map(Stage::total).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_room_are_those_of_the_places() {
        let mut stage = Stage::inside("row buffer", "phits", "tile")
            .channels(&["request", "response"])
            .capacity([16, 8]);
        stage.holds(3, [5, 0]);
        stage.holds(7, [1, 2]);
        assert_eq!((stage.total(), stage.room()), (8, Some(48)));
        let links = Stage::outside("link", "packets", "port").single("unacknowledged", 9);
        assert_eq!(links.room(), None);
        let report = PipelineReport {
            stages: vec![stage, links],
        };
        assert_eq!(report.inside(), 8, "what is in links is not its own");
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(
            serde_json::from_str::<PipelineReport>(&text).unwrap(),
            report
        );
    }
}
