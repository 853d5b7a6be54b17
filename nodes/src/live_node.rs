//! What a process needs of a router or network interface beyond [`Node`].

use phitwire::link::{Lcb, LinkEvent};
use phitwire::nic::{BlackwidowNic, NicEvent, TrafficReport, TrafficSpec};
use phitwire::node::{Node, PortId};
use phitwire::router::yarc::{RouterEvent, Yarc};
use phitwire::time::Time;
use serde_json::{Map, Value, json};

use crate::control::{Register, RoutingReport, TableSet};
use crate::live_link::{LinkFault, LiveLink};

/// A node that can be looked at and meddled with from outside.
pub trait LiveNode: Node {
    /// `router` or `nic`.
    const KIND: &'static str;

    /// The link of a port that has one.
    fn link(&self, port: PortId) -> Option<&dyn LiveLink>;

    /// Breaks or mends something of the link of a port; `None` when it has no link.
    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Option<()>;

    /// Calls `visit` with every counter; those of links have `portN.` in front.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64));

    /// The event of a link, if `event` is one.
    fn link_event(event: &Self::Event) -> Option<(PortId, &LinkEvent)>;

    /// The port that an event is about, if it is about one.
    fn event_port(event: &Self::Event) -> Option<PortId>;

    /// Packets or requests inside, that would be lost if the process ended now.
    fn holds(&self) -> u64;

    /// Begins nothing new: the process is about to end.
    fn begin_drain(&mut self, now: Time) {
        let _ = now;
    }

    /// Adds what is particular to this kind of node to `info`.
    fn describe(&self, info: &mut Map<String, Value>);

    /// Reads a register.
    ///
    /// # Errors
    /// When there is no such register.
    fn register(&self, register: &Register) -> Result<u64, String> {
        Err(format!("a {} has no register {register}", Self::KIND))
    }

    /// Writes a register.
    ///
    /// # Errors
    /// When there is no such register, or it does not take the value.
    fn set_register(&mut self, register: &Register, value: u64) -> Result<(), String> {
        let _ = value;
        Err(format!("a {} has no register {register}", Self::KIND))
    }

    /// Takes no more packets from network interfaces.
    ///
    /// # Errors
    /// When this is no router whose tables can be replaced; the same holds for the next four.
    fn quiesce(&mut self) -> Result<(), String> {
        Err(no_tables(Self::KIND))
    }

    /// Takes packets from network interfaces again.
    ///
    /// # Errors
    /// See [`quiesce`](Self::quiesce).
    fn release(&mut self) -> Result<(), String> {
        Err(no_tables(Self::KIND))
    }

    /// Whether it is quiesced and drained, and the digest of its tables.
    ///
    /// # Errors
    /// See [`quiesce`](Self::quiesce).
    fn routing(&self) -> Result<RoutingReport, String> {
        Err(no_tables(Self::KIND))
    }

    /// The route tables.
    ///
    /// # Errors
    /// See [`quiesce`](Self::quiesce).
    fn tables(&self) -> Result<[TableSet; 4], String> {
        Err(no_tables(Self::KIND))
    }

    /// Replaces the route tables.
    ///
    /// # Errors
    /// When the tables are not of its machine; then it keeps its own. Also see [`quiesce`](Self::quiesce).
    fn install(&mut self, tables: [TableSet; 4]) -> Result<(), String> {
        let _ = tables;
        Err(no_tables(Self::KIND))
    }

    /// Starts a traffic run.
    ///
    /// # Errors
    /// When this is no network interface, or the run is refused.
    fn traffic_start(&mut self, now: Time, spec: Value) -> Result<(), String> {
        let _ = (now, spec);
        Err(format!("a {} makes no traffic", Self::KIND))
    }

    /// What is known here of a traffic run (the latest if none is given).
    ///
    /// # Errors
    /// When this is no network interface, or knows nothing.
    fn traffic_status(&self, run: Option<u64>) -> Result<Value, String> {
        let _ = run;
        Err(format!("a {} makes no traffic", Self::KIND))
    }

    /// Ends the issuing of messages.
    ///
    /// # Errors
    /// When this is no network interface.
    fn traffic_stop(&mut self) -> Result<(), String> {
        Err(format!("a {} makes no traffic", Self::KIND))
    }

    /// Starts a run of collective operations.
    ///
    /// # Errors
    /// When this is no Aries network interface, or the run cannot be; the first holds for the next two as well.
    fn collective_start(&mut self, now: Time, spec: Value) -> Result<(), String> {
        let _ = (now, spec);
        Err(no_collectives(Self::KIND))
    }

    /// What is known here of the latest run of collective operations.
    ///
    /// # Errors
    /// See [`collective_start`](Self::collective_start).
    fn collective_status(&self) -> Result<Value, String> {
        Err(no_collectives(Self::KIND))
    }

    /// Ends the run of collective operations; asked again, at once.
    ///
    /// # Errors
    /// See [`collective_start`](Self::collective_start).
    fn collective_stop(&mut self, now: Time) -> Result<(), String> {
        let _ = now;
        Err(no_collectives(Self::KIND))
    }
}

fn no_tables(kind: &str) -> String {
    format!(
        "a {kind} of this family has no route tables that could be replaced: Aries routers have"
    )
}

impl LiveNode for Yarc {
    const KIND: &'static str = "router";

    fn link(&self, port: PortId) -> Option<&dyn LiveLink> {
        self.lcb(port).map(|lcb| lcb as &dyn LiveLink)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Option<()> {
        self.with_lcb(now, port, |lcb, input| fault.act(now, lcb, input))
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        Yarc::for_each_counter(self, visit);
    }

    fn link_event(event: &RouterEvent) -> Option<(PortId, &LinkEvent)> {
        match event {
            RouterEvent::Link { port, event } => Some((*port, event)),
            _ => None,
        }
    }

    fn event_port(event: &RouterEvent) -> Option<PortId> {
        match event {
            RouterEvent::Link { port, .. }
            | RouterEvent::ForwardProgress { port, .. }
            | RouterEvent::ForwardProgressRestored { port, .. }
            | RouterEvent::UpDownViolation { port, .. }
            | RouterEvent::VirtualRouterViolation { port, .. }
            | RouterEvent::Unroutable { port, .. } => Some(*port),
            RouterEvent::RegisterWritten { .. } => None,
        }
    }

    fn holds(&self) -> u64 {
        let ports = 0..self.ports() as PortId;
        let in_links: u64 = ports
            .filter_map(|port| self.lcb(port))
            .map(Lcb::unacknowledged_packets)
            .sum();
        in_links + self.core().phits_inside()
    }

    fn describe(&self, info: &mut Map<String, Value>) {
        let tiles = self.core().registers().tiles.iter().flatten().count();
        info.insert("tiles_in_use".into(), json!(tiles));
    }

    fn register(&self, register: &Register) -> Result<u64, String> {
        let value = match register {
            Register::Address(address) => self.read_register(*address),
            Register::Name(name) => self.get(name),
        };
        value.ok_or_else(|| format!("there is no register {register}, or its tile is not in use"))
    }

    fn set_register(&mut self, register: &Register, value: u64) -> Result<(), String> {
        match register {
            Register::Address(address) => self.write_register(*address, value),
            Register::Name(name) => self.set(name, value),
        }
        .map_err(|error| format!("{register}: {error}"))
    }
}

impl LiveNode for BlackwidowNic {
    const KIND: &'static str = "nic";

    fn link(&self, port: PortId) -> Option<&dyn LiveLink> {
        self.lcb(port).map(|lcb| lcb as &dyn LiveLink)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Option<()> {
        let (lcb, input) = self.lcb_mut(port)?;
        fault.act(now, lcb, input);
        Some(())
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters().for_each(&mut *visit);
        for port in 0..self.ports() as PortId {
            let Some(lcb) = self.lcb(port) else {
                continue;
            };
            lcb.counters()
                .for_each(|name, value| visit(&format!("port{port}.{name}"), value));
        }
    }

    fn link_event(event: &NicEvent) -> Option<(PortId, &LinkEvent)> {
        match event {
            NicEvent::Link { port, event } => Some((*port, event)),
            _ => None,
        }
    }

    fn event_port(event: &NicEvent) -> Option<PortId> {
        match event {
            NicEvent::Link { port, .. } | NicEvent::Register { port, .. } => Some(*port),
            NicEvent::TrafficDone { .. } => None,
        }
    }

    fn holds(&self) -> u64 {
        let ports = 0..self.ports() as PortId;
        let in_links: u64 = ports
            .filter_map(|port| self.lcb(port))
            .map(Lcb::unacknowledged_packets)
            .sum();
        in_links + u64::from(self.outstanding())
    }

    fn begin_drain(&mut self, _now: Time) {
        self.stop_traffic();
    }

    fn describe(&self, info: &mut Map<String, Value>) {
        info.insert("processor".into(), json!(self.processor()));
        info.insert("memory_bytes".into(), json!(self.config().memory_bytes()));
        info.insert(
            "max_outstanding".into(),
            json!(self.config().max_outstanding()),
        );
    }

    fn traffic_start(&mut self, now: Time, spec: Value) -> Result<(), String> {
        let spec = traffic_spec(spec)?;
        self.start_traffic(now, spec)
            .map_err(|error| error.to_string())
    }

    fn traffic_status(&self, run: Option<u64>) -> Result<Value, String> {
        traffic_status(self.traffic_report(run))
    }

    fn traffic_stop(&mut self) -> Result<(), String> {
        self.stop_traffic();
        Ok(())
    }
}

fn no_collectives(kind: &str) -> String {
    format!("this {kind} has no collective engine: Aries network interfaces have")
}

/// A traffic run as whoever asks has written it.
pub(crate) fn traffic_spec(spec: Value) -> Result<TrafficSpec, String> {
    serde_json::from_value(spec).map_err(|error| format!("the spec: {error}"))
}

/// The answer to whoever asks for the counts of a run.
pub(crate) fn traffic_status(report: Option<TrafficReport>) -> Result<Value, String> {
    let report = report.ok_or("nothing is known of a traffic run")?;
    serde_json::to_value(report).map_err(|error| error.to_string())
}
