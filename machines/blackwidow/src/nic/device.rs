//! A BlackWidow NIC as a device for processes and simulated worlds.

use phitwire_framing::door::Status;
use phitwire_framing::yarc::memory::{EncodeError, LINE_BYTES, Request};
use serde_json::{Map, Value, json};

use super::ABILITIES;
use super::port::{REQUEST_QUEUE, RESPONSE_QUEUE};
use super::{BlackWidowNic, Completion, NicEvent, Outcome, PostError};
use phitwire::device::pipeline::Stage;
use phitwire::device::{
    Device, DeviceError, DeviceEvent, Kind, LinkFault, LinkView, NodeAccount, PipelineReport,
    TrafficRuns, break_link,
};
use phitwire::nic::Abilities;
use phitwire::nic::local::LocalPort;
use phitwire::nic::programs::{Asked, LoadsAndStores, Programs, Refused};
use phitwire::nic::{Memory, PutEnd, PutError, RemotePuts, TrafficReport, TrafficSpec};
use phitwire::nic::{Probe, ProbeEnd, ProbeError, ProbeSpec, Probes};
use phitwire::node::PortId;
use phitwire::time::Time;

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
        let lcb = self.lcb_mut(port).ok_or(DeviceError::NoLink(port))?;
        break_link(lcb, now, (port, fault))
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

    fn pipeline(&self) -> PipelineReport {
        let links = || (self as &dyn Device).links();
        let mut waiting = Stage::outside("waiting for the link", "packets", "port")
            .channels(&["requests", "responses"])
            .capacity([REQUEST_QUEUE as u64, RESPONSE_QUEUE as u64]);
        let waits = self.waiting_for_links();
        waits.for_each(|(port, held)| waiting.holds(port, held));
        PipelineReport {
            stages: vec![
                Stage::inside("outstanding requests", "requests", "NIC")
                    .single("without response", self.outstanding().into())
                    .capacity([self.config().max_outstanding().into()]),
                waiting,
                Stage::of_links(links()),
                Stage::outside("input buffer", "phits", "port").of_inputs(self.link_ports()),
            ],
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

    fn remote_puts(&mut self) -> Option<&mut dyn RemotePuts> {
        Some(self)
    }

    fn probes(&mut self) -> Option<&mut dyn Probes> {
        Some(self)
    }

    fn local_port(&mut self) -> Option<&mut dyn LocalPort> {
        Some(self)
    }
}

impl RemotePuts for BlackWidowNic {
    fn number(&self) -> Option<u16> {
        Some(self.processor())
    }

    fn most_outstanding(&self) -> usize {
        self.config().max_outstanding() as usize
    }

    fn longest_put(&self) -> usize {
        ABILITIES.max_size as usize
    }

    /// Writes to one 64-byte block always stay in order.
    fn put(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        data: &[u8],
        _ordered: bool,
    ) -> Result<u64, PutError> {
        let posted = self.write(now, to, address, data);
        posted
            .map(|tid| tid.bits().into())
            .map_err(|error| match error {
                PostError::TooMany | PostError::QueueFull => PutError::Full,
                _ => PutError::Impossible,
            })
    }

    fn put_ended(&mut self) -> Option<(u64, PutEnd)> {
        let Completion { tid, outcome, .. } = self.poll_completion()?;
        let end = match outcome {
            Outcome::Written | Outcome::Read { .. } => PutEnd::Done,
            Outcome::Refused { .. } | Outcome::TimedOut => PutEnd::Lost,
        };
        Some((tid.bits().into(), end))
    }

    fn puts_served(&self) -> u64 {
        self.writes_served()
    }

    fn own_memory(&self) -> &Memory {
        self.memory()
    }

    fn reserve(&mut self, bytes: u64) {
        self.reserve_memory(bytes);
    }
}

impl Probes for BlackWidowNic {
    fn routed_number(&self) -> u32 {
        self.processor().into()
    }

    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError> {
        let tid = u64::from(self.post_probe(now, spec)?.bits());
        Ok(Probe {
            number: tid,
            identity: tid,
        })
    }

    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd> {
        self.probes.take(number)
    }
}

impl LoadsAndStores for BlackWidowNic {
    fn known_as(&self) -> Option<u16> {
        Some(self.processor())
    }

    fn most_bytes(&self) -> u16 {
        ABILITIES.max_size as u16
    }

    fn has_atomics(&self) -> bool {
        ABILITIES.atomics
    }

    fn most_requests(&self) -> u32 {
        self.config().max_outstanding()
    }

    fn programs(&mut self) -> &mut Programs {
        self.programs_mut()
    }

    /// Loads and stores within a 32-byte line. Requests to one 64-byte block stay in order; others
    /// may take different slices and overtake each other.
    fn ask(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        asked: Asked<'_>,
        ordered: bool,
    ) -> Result<u64, Refused> {
        if ordered {
            return Err(Refused::For(Status::Unsupported));
        }
        let request = match asked {
            Asked::Put(bytes) => {
                let mut data = [0; LINE_BYTES];
                data[..bytes.len()].copy_from_slice(bytes);
                let len = bytes.len() as u8;
                Request::Write { address, data, len }
            }
            Asked::Get(len) => Request::Read { address, len },
            Asked::Atomic(..) => return Err(Refused::For(Status::Unsupported)),
        };
        let posted = self.post_for_program(now, to, &request);
        posted
            .map(|tid| tid.bits().into())
            .map_err(|error| match error {
                PostError::TooMany | PostError::QueueFull => Refused::Later,
                PostError::Encode(EncodeError::Dest) => Refused::For(Status::NoProcessor),
                _ => Refused::For(Status::Length),
            })
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
