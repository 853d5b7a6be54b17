//! Aries routers and network interfaces as processes show them.

use std::sync::Arc;

use phitwire::link::{AriesInput, AriesLcb};
use phitwire::link::{LinkConfig, LinkEvent, LinkState};
use phitwire::nic::aries::{AriesNic, AriesNicEvent};
use phitwire::node::{Node, PortId};
use phitwire::router::aries::registers::{PORTS, RouteTables};
use phitwire::router::aries::{Aries, AriesEvent};
use phitwire::time::Time;
use serde_json::{Map, Value, json};

use crate::control::{LinkReport, Register, RoutingReport, TableSet};
use crate::live_link::{LinkFault, LiveLink, Misfits};
use crate::live_node::{LiveNode, traffic_spec, traffic_status};

impl LiveLink for AriesLcb {
    fn config(&self) -> &LinkConfig {
        AriesLcb::config(self)
    }

    fn state(&self) -> LinkState {
        AriesLcb::state(self)
    }

    fn misfits(&self) -> Misfits {
        self.counters().into()
    }

    fn has_sets(&self) -> bool {
        true
    }

    fn accepted(&self) -> u64 {
        self.counters().rx_data_frames
    }

    fn last_accepted(&self) -> Option<Time> {
        AriesLcb::last_accepted(self)
    }

    fn is_silent(&self) -> bool {
        AriesLcb::is_silent(self)
    }

    fn is_stalled(&self) -> bool {
        AriesLcb::is_stalled(self)
    }

    fn report(&self, port: PortId) -> LinkReport {
        let config = AriesLcb::config(self);
        LinkReport {
            port,
            link: config.link(),
            state: AriesLcb::state(self).name().to_owned(),
            lcb: AriesLcb::state(self).name().to_owned(),
            up: self.is_active(),
            why: None,
            peer: format!("{}:{}", config.peer().node, config.peer().port),
            rx_lanes: self.rx_lanes().count_ones(),
            tx_lanes: self.tx_lanes().count_ones(),
            resent: self.set_counters().tx_replayed_sets,
            lane_retries: self.counters().lane_retries,
            heard_ms: None,
            rtt_ns: self.round_trip().map(|span| span.as_ns()),
            credits: self.credits().to_vec(),
            unacknowledged_packets: self.unacknowledged_packets(),
        }
    }
}

fn break_link(fault: LinkFault, now: Time, lcb: &mut AriesLcb, input: &mut AriesInput) {
    match fault {
        LinkFault::SoftError => lcb.soft_error_next(),
        LinkFault::Down => lcb.link_down(now, input),
        LinkFault::Up => lcb.link_up(now),
        LinkFault::ForceRetry => lcb.force_retry(now),
        LinkFault::BadCrc => lcb.force_bad_crc(),
        LinkFault::Reinit => lcb.force_reinit(now),
        LinkFault::LoseClock(span) => lcb.lose_clock(now, span),
        LinkFault::Inject(injection) => lcb.inject(injection),
    }
}

impl LiveNode for Aries {
    const KIND: &'static str = "router";

    fn link(&self, port: PortId) -> Option<&dyn LiveLink> {
        self.lcb(port).map(|lcb| lcb as &dyn LiveLink)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Option<()> {
        self.with_lcb(now, port, |lcb, input| break_link(fault, now, lcb, input))
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        Aries::for_each_counter(self, visit);
    }

    fn link_event(event: &AriesEvent) -> Option<(PortId, &LinkEvent)> {
        match event {
            AriesEvent::Link { port, event } => Some((*port, event)),
            _ => None,
        }
    }

    fn event_port(event: &AriesEvent) -> Option<PortId> {
        match event {
            AriesEvent::Link { port, .. } => Some(*port),
            AriesEvent::ForwardProgress { tile, .. }
            | AriesEvent::ForwardProgressRestored { tile, .. }
            | AriesEvent::Unroutable { tile, .. }
            | AriesEvent::NoLivePort { tile, .. } => Some(*tile),
        }
    }

    fn holds(&self) -> u64 {
        let ports = 0..self.ports() as PortId;
        let in_links: u64 = ports
            .filter_map(|port| self.lcb(port))
            .map(AriesLcb::unacknowledged_packets)
            .sum();
        in_links + self.core().flits_inside()
    }

    fn describe(&self, info: &mut Map<String, Value>) {
        let registers = self.core().registers();
        info.insert("family".into(), json!("aries"));
        info.insert("group".into(), json!(registers.group));
        info.insert("router".into(), json!(registers.router));
    }

    fn register(&self, register: &Register) -> Result<u64, String> {
        match register {
            Register::Address(_) => None,
            Register::Name(name) => self.get(name),
        }
        .ok_or_else(|| format!("an Aries router has no register {register}: they go by name"))
    }

    fn set_register(&mut self, register: &Register, value: u64) -> Result<(), String> {
        match register {
            Register::Address(_) => Err("registers of an Aries router go by name".to_owned()),
            Register::Name(name) => self.set(name, value).map_err(|error| error.to_string()),
        }
        .map_err(|error| format!("{register}: {error}"))
    }

    fn quiesce(&mut self) -> Result<(), String> {
        Aries::quiesce(self);
        Ok(())
    }

    fn release(&mut self) -> Result<(), String> {
        Aries::release(self);
        Ok(())
    }

    fn routing(&self) -> Result<RoutingReport, String> {
        Ok(RoutingReport {
            quiesced: self.core().is_quiesced(),
            drained: self.is_drained(),
            digest: digest(&self.core().registers().tables),
        })
    }

    fn tables(&self) -> Result<[TableSet; 4], String> {
        Ok(table_sets(&self.core().registers().tables))
    }

    fn install(&mut self, tables: [TableSet; 4]) -> Result<(), String> {
        let mut registers = self.core().registers().clone();
        for (own, new) in registers.tables.iter().zip(&tables) {
            check_tables(own, new)?;
        }
        registers.tables = shared_tables(tables);
        Aries::install(self, registers);
        Ok(())
    }
}

/// What the control socket says of route tables.
pub fn table_sets(tables: &[Arc<RouteTables>; 4]) -> [TableSet; 4] {
    tables.each_ref().map(|of| TableSet {
        local_minimal: of.local_minimal.clone(),
        local_non_minimal: of.local_non_minimal.clone(),
        global_minimal: of.global_minimal.clone(),
        global_non_minimal: of.global_non_minimal.clone(),
    })
}

/// The route tables that the control socket means.
pub fn shared_tables(tables: [TableSet; 4]) -> [Arc<RouteTables>; 4] {
    tables.map(|of| {
        Arc::new(RouteTables {
            local_minimal: of.local_minimal,
            local_non_minimal: of.local_non_minimal,
            global_minimal: of.global_minimal,
            global_non_minimal: of.global_non_minimal,
        })
    })
}

/// A digest of route tables, in hexadecimal.
pub fn digest(tables: &[Arc<RouteTables>; 4]) -> String {
    // FNV-1a over whole entries, with the lengths between: any hash will do that is the same in every process.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |word: u64| hash = (hash ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(29);
    for of in tables {
        let four = [
            &of.local_minimal,
            &of.local_non_minimal,
            &of.global_minimal,
            &of.global_non_minimal,
        ];
        for table in four {
            add(table.len() as u64);
            table.iter().for_each(|&entry| add(entry));
        }
    }
    format!("{hash:016x}")
}

/// Tables of another machine are refused whole.
fn check_tables(own: &RouteTables, new: &TableSet) -> Result<(), String> {
    let all = [
        ("local_minimal", &own.local_minimal, &new.local_minimal),
        (
            "local_non_minimal",
            &own.local_non_minimal,
            &new.local_non_minimal,
        ),
        ("global_minimal", &own.global_minimal, &new.global_minimal),
        (
            "global_non_minimal",
            &own.global_non_minimal,
            &new.global_non_minimal,
        ),
    ];
    for (name, own, new) in all {
        if own.len() != new.len() {
            return Err(format!(
                "{name} has {} entries, this router's has {}: are the tables of another topology?",
                new.len(),
                own.len()
            ));
        }
        if let Some(index) = new.iter().position(|ports| ports >> PORTS != 0) {
            return Err(format!(
                "{name}, entry {index}: there are {PORTS} ports only"
            ));
        }
    }
    Ok(())
}

impl LiveNode for AriesNic {
    const KIND: &'static str = "nic";

    fn link(&self, port: PortId) -> Option<&dyn LiveLink> {
        (port == 0).then(|| self.lcb() as &dyn LiveLink)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Option<()> {
        (port == 0).then(|| {
            let (lcb, input) = self.lcb_mut();
            break_link(fault, now, lcb, input);
        })
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.counters().for_each(&mut *visit);
        let lcb = self.lcb();
        let mut of_link = |name: &'static str, value| visit(&format!("port0.{name}"), value);
        lcb.counters().for_each(&mut of_link);
        lcb.set_counters().for_each(&mut of_link);
    }

    fn link_event(event: &AriesNicEvent) -> Option<(PortId, &LinkEvent)> {
        match event {
            AriesNicEvent::Link { event } => Some((0, event)),
            AriesNicEvent::TrafficDone { .. } => None,
        }
    }

    fn event_port(event: &AriesNicEvent) -> Option<PortId> {
        match event {
            AriesNicEvent::Link { .. } => Some(0),
            AriesNicEvent::TrafficDone { .. } => None,
        }
    }

    fn begin_drain(&mut self, now: Time) {
        self.stop_traffic();
        self.stop_collectives(now);
    }

    fn holds(&self) -> u64 {
        self.lcb().unacknowledged_packets() + u64::from(self.outstanding())
    }

    fn describe(&self, info: &mut Map<String, Value>) {
        let node = self.node();
        info.insert("family".into(), json!("aries"));
        info.insert("node".into(), json!(node.bits()));
        info.insert("group".into(), json!(node.group()));
        info.insert("router".into(), json!(node.router()));
        info.insert("nic".into(), json!(node.nic()));
        info.insert("processor".into(), json!(self.virtual_number()));
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

    fn collective_start(&mut self, now: Time, spec: Value) -> Result<(), String> {
        let spec = serde_json::from_value(spec).map_err(|error| format!("the spec: {error}"))?;
        self.begin_collectives(spec, now)
            .map_err(|error| error.to_string())
    }

    fn collective_status(&self) -> Result<Value, String> {
        let report = self
            .collective_report()
            .ok_or("no run of collective operations has been started here")?;
        serde_json::to_value(report).map_err(|error| error.to_string())
    }

    fn collective_stop(&mut self, now: Time) -> Result<(), String> {
        self.stop_collectives(now);
        Ok(())
    }
}
