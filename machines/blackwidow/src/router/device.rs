//! The YARC-specific device interface of a chip and its links.

use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::yarc::frame::DataFrame;
use phitwire_framing::yarc::packet::Vc;

use super::register_map::register_list;
use super::{Core, RouterEvent, Yarc};
use crate::link::{InputQueue, Lcb, VC_NAMES};
use phitwire::chip::CoreRegisters;
use phitwire::device::{
    DeviceError, DeviceEvent, EndAccount, LinkEnd, LinkFault, LinkView, RegisterInfo, RegisterName,
    Units,
};
use phitwire::link::{EndStatus, LinkControlBlock};
use phitwire::time::Time;

impl LinkView for Lcb {
    fn lane_layout(&self) -> LaneLayout {
        DataFrame::LAYOUT
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
            offers: vec![self.config().profile().input_phits_per_vc; 2],
            unacknowledged: self.unacknowledged_packets(),
            unsent: 0,
            taken: counters.tx_packets,
            given_up: Some(counters.tx_discarded_packets),
            accepted: counters.rx_packets,
        }
    }
}

impl LinkEnd for Lcb {
    const LINK: &'static str = "YARC";
    const VC_NAMES: &'static [&'static str] = &VC_NAMES;

    fn suffer(&mut self, now: Time, fault: LinkFault, input: &mut InputQueue) -> bool {
        match fault {
            LinkFault::SoftError => self.soft_error_next(),
            LinkFault::Down => self.link_down(now, input),
            LinkFault::Up => self.link_up(now),
            LinkFault::ForceRetry => self.force_retry(now),
            LinkFault::BadCrc
            | LinkFault::Reinit
            | LinkFault::LoseClock(_)
            | LinkFault::Inject(_)
            | LinkFault::LaneNoise { .. } => return false,
        }
        true
    }
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

impl CoreRegisters for Core {
    fn read(chip: &Yarc, register: RegisterName<'_>) -> Result<u64, DeviceError> {
        let value = match register {
            RegisterName::Address(address) => chip.core().read_register(address),
            RegisterName::Name(name) => chip.get(name),
        };
        value.ok_or_else(|| DeviceError::UnknownRegister {
            register: register.to_string(),
            hint: " (or its tile is not in use)",
        })
    }

    fn write(chip: &mut Yarc, register: RegisterName<'_>, value: u64) -> Result<(), DeviceError> {
        match register {
            RegisterName::Address(address) => chip.core_mut().write_register(address, value),
            RegisterName::Name(name) => chip.set(name, value),
        }
        .map_err(|why| DeviceError::RegisterRefused {
            register: register.to_string(),
            why: why.into(),
        })
    }

    fn list(chip: &Yarc) -> Vec<RegisterInfo> {
        register_list(&chip.core().registers().tiles)
    }
}
