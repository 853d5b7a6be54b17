//! A YARC as processes and worlds see it, and its links.

use phitwire_framing::yarc::packet::Vc;
use serde_json::{Map, Value, json};

use super::{RouterEvent, Yarc};
use crate::device::{
    Device, DeviceError, DeviceEvent, EndAccount, Kind, LinkFault, LinkView, NodeAccount,
    RegisterName, Registers, Units, link_view_by_own_methods,
};
use crate::machine::blackwidow::link::{InputQueue, Lcb};
use crate::node::PortId;
use crate::time::Time;

impl LinkView for Lcb {
    link_view_by_own_methods!();

    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counters().for_each(visit);
    }

    fn account(&self) -> EndAccount {
        let counters = self.counters();
        EndAccount {
            units: Units {
                credits: "phits",
                unacknowledged: "packets",
                conserved: "packets",
            },
            active: self.is_active(),
            credits: Vc::ALL.map(|vc| self.credits(vc)).to_vec(),
            offers: self.config().profile().input_phits_per_vc,
            unacknowledged: self.unacknowledged_packets(),
            unsent: 0,
            taken: counters.tx_packets,
            given_up: Some(counters.tx_discarded_packets),
            accepted: counters.rx_packets,
        }
    }

    fn resent(&self) -> u64 {
        self.counters().tx_retransmitted_packets
    }
}

/// Does `fault` to the link of `port`.
///
/// # Errors
/// [`DeviceError::NoSuchFault`].
pub(crate) fn break_link(
    (now, port, fault): (Time, PortId, LinkFault),
    lcb: &mut Lcb,
    input: &mut InputQueue,
) -> Result<(), DeviceError> {
    match fault {
        LinkFault::SoftError => lcb.soft_error_next(),
        LinkFault::Down => lcb.link_down(now, input),
        LinkFault::Up => lcb.link_up(now),
        LinkFault::ForceRetry => lcb.force_retry(now),
        LinkFault::BadCrc | LinkFault::Reinit | LinkFault::LoseClock(_) | LinkFault::Inject(_) => {
            let link = "YARC";
            return Err(DeviceError::NoSuchFault { port, link });
        }
    }
    Ok(())
}

impl From<RouterEvent> for DeviceEvent {
    fn from(event: RouterEvent) -> Self {
        let port = match event {
            RouterEvent::Link { port, event } => return Self::Link { port, event },
            RouterEvent::ForwardProgress { port, .. }
            | RouterEvent::ForwardProgressRestored { port, .. }
            | RouterEvent::UpDownViolation { port, .. }
            | RouterEvent::VirtualRouterViolation { port, .. }
            | RouterEvent::Unroutable { port, .. } => Some(port),
            RouterEvent::RegisterWritten { .. } => None,
        };
        Self::own(port, event)
    }
}

impl Device for Yarc {
    fn kind(&self) -> Kind {
        Kind::Router
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        self.lcb(port).map(|lcb| lcb as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        self.with_lcb(now, port, |lcb, input| {
            break_link((now, port, fault), lcb, input)
        })
        .unwrap_or(Err(DeviceError::NoLink(port)))
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        Self::for_each_counter(self, visit);
    }

    fn account(&self) -> NodeAccount {
        NodeAccount {
            inside: self.core().phits_inside(),
            unit: "phits",
            ..NodeAccount::default()
        }
    }

    fn describe(&self) -> Map<String, Value> {
        let tiles = self.core().registers().tiles.iter().flatten().count();
        [("tiles_in_use".to_owned(), json!(tiles))]
            .into_iter()
            .collect()
    }

    fn registers(&mut self) -> Option<&mut dyn Registers> {
        Some(self)
    }
}

impl Registers for Yarc {
    fn read(&self, register: RegisterName<'_>) -> Result<u64, DeviceError> {
        let value = match register {
            RegisterName::Address(address) => self.read_register(address),
            RegisterName::Name(name) => self.get(name),
        };
        value.ok_or_else(|| DeviceError::UnknownRegister {
            register: register.to_string(),
            hint: ", or its tile is not in use",
        })
    }

    fn write(&mut self, register: RegisterName<'_>, value: u64) -> Result<(), DeviceError> {
        match register {
            RegisterName::Address(address) => self.write_register(address, value),
            RegisterName::Name(name) => self.set(name, value),
        }
        .map_err(|why| DeviceError::RegisterRefused {
            register: register.to_string(),
            why: why.into(),
        })
    }
}
