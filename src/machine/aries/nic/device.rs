//! An Aries network interface as processes and worlds see it.

use serde_json::{Map, Value, json};

use super::ABILITIES;
use super::{AriesNic, AriesNicEvent, CollectiveReport, CollectiveSpec};
use crate::device::{
    CollectiveRuns, Device, DeviceError, DeviceEvent, Kind, LinkEnd as _, LinkFault, LinkView,
    NodeAccount, TrafficRuns,
};
use crate::nic::Abilities;
use crate::nic::{TrafficReport, TrafficSpec};
use crate::node::PortId;
use crate::time::Time;

impl From<AriesNicEvent> for DeviceEvent {
    fn from(event: AriesNicEvent) -> Self {
        match event {
            AriesNicEvent::Link { event } => Self::Link { port: 0, event },
            AriesNicEvent::TrafficDone { run } => Self::TrafficDone { run },
        }
    }
}

impl Device for AriesNic {
    fn kind(&self) -> Kind {
        Kind::Nic
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        (port == 0).then(|| self.lcb() as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        if port != 0 {
            return Err(DeviceError::NoLink(port));
        }
        let (lcb, input) = self.lcb_mut();
        lcb.break_link(now, (port, fault), input)
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters().for_each(&mut *visit);
        let of_link = &mut |name: &'static str, value| visit(&format!("port0.{name}"), value);
        LinkView::for_each_counter(self.lcb(), of_link);
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            requests: self.outstanding(),
            transfers: self.open_transfers(),
            ..NodeAccount::default()
        }
    }

    fn describe(&self) -> Map<String, Value> {
        let (node, config) = (self.node(), self.config());
        let facts = [
            ("family", json!("aries")),
            ("node", json!(node.bits())),
            ("group", json!(node.group())),
            ("router", json!(node.router())),
            ("nic", json!(node.nic())),
            ("processor", json!(self.virtual_number())),
            ("memory_bytes", json!(config.memory_bytes())),
            ("max_outstanding", json!(config.max_outstanding())),
        ];
        facts
            .map(|(name, fact)| (name.to_owned(), fact))
            .into_iter()
            .collect()
    }

    fn begin_drain(&mut self, now: Time) {
        self.stop_traffic();
        self.stop_collectives(now);
    }

    fn traffic(&self) -> Option<&dyn TrafficRuns> {
        Some(self)
    }

    fn traffic_mut(&mut self) -> Option<&mut dyn TrafficRuns> {
        Some(self)
    }

    fn collectives(&self) -> Option<&dyn CollectiveRuns> {
        Some(self)
    }

    fn collectives_mut(&mut self) -> Option<&mut dyn CollectiveRuns> {
        Some(self)
    }
}

impl TrafficRuns for AriesNic {
    fn number(&self) -> Option<u16> {
        self.virtual_number()
    }

    fn abilities(&self) -> Abilities {
        ABILITIES
    }

    fn start(&mut self, now: Time, spec: TrafficSpec) -> Result<(), DeviceError> {
        Ok(self.start_traffic(now, spec)?)
    }

    fn report(&self, run: Option<u64>) -> Option<TrafficReport> {
        self.traffic_report(run)
    }

    fn stop(&mut self) {
        self.stop_traffic();
    }
}

impl CollectiveRuns for AriesNic {
    fn start(&mut self, now: Time, spec: CollectiveSpec) -> Result<(), DeviceError> {
        Ok(self.begin_collectives(spec, now)?)
    }

    fn report(&self) -> Option<CollectiveReport> {
        self.collective_report()
    }

    fn stop(&mut self, now: Time) {
        self.stop_collectives(now);
    }
}
