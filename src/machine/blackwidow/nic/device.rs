//! A BlackWidow network interface as processes and worlds see it.

use serde_json::{Map, Value, json};

use super::ABILITIES;
use super::{BlackWidowNic, NicEvent};
use crate::device::{
    Device, DeviceError, DeviceEvent, Kind, LinkEnd as _, LinkFault, LinkView, NodeAccount,
    TrafficRuns,
};
use crate::nic::Abilities;
use crate::nic::{TrafficReport, TrafficSpec};
use crate::node::PortId;
use crate::time::Time;

impl From<NicEvent> for DeviceEvent {
    fn from(event: NicEvent) -> Self {
        match event {
            NicEvent::Link { port, event } => Self::Link { port, event },
            NicEvent::TrafficDone { run } => Self::TrafficDone { run },
            NicEvent::Register { port, .. } => Self::own(Some(port), event),
        }
    }
}

impl Device for BlackWidowNic {
    fn kind(&self) -> Kind {
        Kind::Nic
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        self.lcb(port).map(|lcb| lcb as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        let (lcb, input) = self.lcb_mut(port).ok_or(DeviceError::NoLink(port))?;
        lcb.break_link(now, (port, fault), input)
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters().for_each(&mut *visit);
        for (port, link) in (self as &dyn Device).links() {
            link.for_each_counter(&mut |name, value| visit(&format!("port{port}.{name}"), value));
        }
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            requests: self.outstanding(),
            ..NodeAccount::default()
        }
    }

    fn describe(&self) -> Map<String, Value> {
        let config = self.config();
        let facts = [
            ("processor", json!(self.processor())),
            ("memory_bytes", json!(config.memory_bytes())),
            ("max_outstanding", json!(config.max_outstanding())),
        ];
        facts
            .map(|(name, fact)| (name.to_owned(), fact))
            .into_iter()
            .collect()
    }

    fn begin_drain(&mut self, _now: Time) {
        self.stop_traffic();
    }

    fn traffic(&self) -> Option<&dyn TrafficRuns> {
        Some(self)
    }

    fn traffic_mut(&mut self) -> Option<&mut dyn TrafficRuns> {
        Some(self)
    }
}

impl TrafficRuns for BlackWidowNic {
    fn number(&self) -> Option<u16> {
        Some(self.processor())
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
