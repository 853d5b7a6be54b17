//! An Aries NIC as a device for processes and simulated worlds.

use serde_json::{Map, Value, json};

use super::ABILITIES;
use super::{AriesNic, AriesNicEvent, CollectiveReport, CollectiveSpec};
use super::{Completion, Failure, MAX_DATA, RUN_DOMAIN, Routing, Status, Target};
use super::{Operation, Post, PostError, RemoteAddress};
use phitwire::device::pipeline::Stage;
use phitwire::device::{
    CollectiveRuns, Device, DeviceError, DeviceEvent, Kind, LinkFault, LinkView, NodeAccount,
    PipelineReport, TrafficRuns, break_link,
};
use phitwire::nic::local::LocalPort;
use phitwire::nic::{Abilities, Probe, ProbeEnd, ProbeError, ProbeSpec, Probes};
use phitwire::nic::{Memory, PutEnd, PutError, RemotePuts, TrafficReport, TrafficSpec};
use phitwire::node::PortId;
use phitwire::time::Time;

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
        break_link(self.lcb_mut(), now, (port, fault))
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

    fn pipeline(&self) -> PipelineReport {
        let requester = &self.interface.requester;
        let most = self.config().max_outstanding().into();
        let [queued, answers] = [requester.queued(), self.waiting_responses()];
        let link_queue = Stage::outside("waiting for the link", "packets", "NIC");
        let mut link_queue = link_queue.channels(&["requests", "responses"]);
        link_queue.holds(0, [queued as u64, answers as u64]);
        PipelineReport {
            stages: vec![
                Stage::inside("block transfer engine", "transfers", "NIC")
                    .single("open", self.open_transfers() as u64),
                Stage::inside("outstanding requests", "requests", "NIC")
                    .single("without response", self.outstanding().into())
                    .capacity([most]),
                link_queue,
                Stage::of_links([(0, self.lcb() as &dyn LinkView)].into_iter()),
                Stage::outside("input buffer", "flits", "port").of_inputs([(0, self.lcb())]),
            ],
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

    fn remote_puts(&mut self) -> Option<&mut dyn RemotePuts> {
        Some(self)
    }

    fn probes(&mut self) -> Option<&mut dyn Probes> {
        Some(self)
    }

    fn local_port(&mut self) -> Option<&mut dyn LocalPort> {
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

impl RemotePuts for AriesNic {
    fn number(&self) -> Option<u16> {
        self.virtual_number()
    }

    fn most_outstanding(&self) -> usize {
        self.config().max_outstanding() as usize
    }

    fn longest_put(&self) -> usize {
        MAX_DATA
    }

    /// Puts to the memory domain of traffic runs, which covers the whole memory.
    fn put(
        &mut self,
        now: Time,
        to: u16,
        address: u64,
        data: &[u8],
        ordered: bool,
    ) -> Result<u64, PutError> {
        let key = self.domain(RUN_DOMAIN).map_or(0, |domain| domain.key);
        let at = RemoteAddress {
            target: Target::Virtual(to.into()),
            handle: RUN_DOMAIN,
            key,
            offset: address,
        };
        let operation = Operation::Put { data, event: false };
        let routing = match ordered {
            true => Routing::Ordered,
            false => Routing::default(),
        };
        let name = self.next_name();
        let post = Post {
            at,
            operation,
            routing,
        };
        match self.post(now, name, &post) {
            Ok(()) => Ok(name),
            Err(PostError::TooMany | PostError::CompletionQueueFull) => Err(PutError::Full),
            Err(_) => Err(PutError::Impossible),
        }
    }

    fn put_ended(&mut self) -> Option<(u64, PutEnd)> {
        let Completion { user, outcome, .. } = self.poll_completion()?;
        let end = match outcome.failure() {
            None => PutEnd::Done,
            Some(Failure::Refused(Status::BadCrc | Status::Poisoned)) => PutEnd::Damaged,
            // The put may have been carried out, and a repetition may carry it out again.
            Some(Failure::DamagedResponse) => PutEnd::Damaged,
            Some(_) => PutEnd::Lost,
        };
        Some((user, end))
    }

    fn puts_served(&self) -> u64 {
        self.interface.responder.counters.puts_served
    }

    fn own_memory(&self) -> &Memory {
        self.memory()
    }

    fn reserve(&mut self, bytes: u64) {
        self.interface.runs.reserve(bytes);
    }
}

impl Probes for AriesNic {
    fn routed_number(&self) -> u32 {
        self.node().bits()
    }

    fn probe(&mut self, now: Time, spec: &ProbeSpec) -> Result<Probe, ProbeError> {
        let probe = self.interface.probe(now, spec)?;
        self.flush();
        Ok(probe)
    }

    fn probe_ended(&mut self, number: u64) -> Option<ProbeEnd> {
        self.interface.probes.take(number)
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
