//! Contents of a device by pipeline stage, for display.
//!
//! A report is built on request from the existing state of the stages, so packets pay nothing for
//! it.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::link::{LinkView, NodeLink, ReceiveBuffer};
use crate::node::PortId;

/// A name: static from a machine, owned from a deserialised report.
pub(crate) type Name = Cow<'static, str>;

/// Contents of a device by pipeline stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PipelineReport {
    /// The stages, in the order a packet meets them.
    pub stages: Vec<Stage>,
}

/// One pipeline stage of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stage {
    /// Name in the machine's papers.
    pub name: Name,
    /// Unit of the contents: `phits`, `flits`, `packets`.
    pub unit: Name,
    /// Kind of the stage's positions: `port`, `tile`.
    pub place: Name,
    /// Names of the virtual channels, or of other parts, that each position has.
    pub channels: Vec<Name>,
    /// Capacity per channel, the same at each position; empty if unlimited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity: Vec<u64>,
    /// Number of waits in this stage, where they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub stalls: Option<u64>,
    /// Whether the contents count in the device's own account. Otherwise they belong to its links
    /// or are counted in another stage.
    #[serde(default)]
    pub inside: bool,
    /// Positions in use, by number.
    pub places: Vec<Place>,
}

/// A port, tile or other part of a stage that holds data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Number of the position.
    pub number: u16,
    /// Contents, by channel.
    pub held: Vec<u64>,
}

impl Stage {
    /// A stage, without positions yet, whose contents are part of the device's account.
    pub fn inside(name: &'static str, unit: &'static str, place: &'static str) -> Self {
        Self {
            inside: true,
            ..Self::outside(name, unit, place)
        }
    }

    /// A stage, without positions yet, whose contents are accounted for elsewhere.
    pub fn outside(name: &'static str, unit: &'static str, place: &'static str) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
            place: place.into(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn channels(mut self, names: &[&'static str]) -> Self {
        self.channels = names.iter().map(|&name| name.into()).collect();
        self
    }

    /// Sets the capacity per channel of each position.
    #[must_use]
    pub fn capacity(mut self, capacity: impl IntoIterator<Item = u64>) -> Self {
        self.capacity = capacity.into_iter().collect();
        self
    }

    /// Sets the number of waits so far.
    #[must_use]
    pub fn stalls(mut self, stalls: u64) -> Self {
        self.stalls = Some(stalls);
        self
    }

    /// Adds a position with its contents, by channel.
    pub fn holds(&mut self, number: usize, held: impl IntoIterator<Item = u64>) {
        self.places.push(Place {
            number: number as u16,
            held: held.into_iter().collect(),
        });
    }

    /// Sets a single position with a single channel that holds `held`.
    #[must_use]
    pub fn single(mut self, channel: &'static str, held: u64) -> Self {
        self.channels = vec![channel.into()];
        self.holds(0, [held]);
        self
    }

    pub fn total(&self) -> u64 {
        self.places.iter().flat_map(|position| &position.held).sum()
    }

    /// Total capacity of the positions in use; `None` if unlimited.
    pub fn room(&self) -> Option<u64> {
        let each: u64 = self.capacity.iter().sum();
        (!self.capacity.is_empty()).then(|| each * self.places.len() as u64)
    }
}

impl Stage {
    /// Adds the contents of the links' receive buffers, by port. The capacity is that of the
    /// largest: longer links may have larger buffers.
    pub fn of_inputs<'a, E: NodeLink>(
        mut self,
        ports: impl IntoIterator<Item = (usize, &'a E)>,
    ) -> Self {
        self = self.channels(E::VC_NAMES);
        for (number, port) in ports {
            let offers = port.account().offers;
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

    /// The stage of the link control blocks: units sent that their peers have not acknowledged.
    pub fn of_links<'a>(links: impl Iterator<Item = (PortId, &'a dyn LinkView)>) -> Self {
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
    /// Contents of the device itself: equals [`NodeAccount::total`](super::NodeAccount::total) at
    /// the same time.
    pub fn inside(&self) -> u64 {
        let own = self.stages.iter().filter(|stage| stage.inside);
        own.map(Stage::total).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_capacity_match_the_places() {
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
        assert_eq!(report.inside(), 8, "packets in links do not count");
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(
            serde_json::from_str::<PipelineReport>(&text).unwrap(),
            report
        );
    }
}
