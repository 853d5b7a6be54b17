//! The YARC-specific interface of a chip to processes and simulations.

use super::register_map::register_list;
use super::{Core, RouterEvent, Yarc};
use phitwire::chip::CoreRegisters;
use phitwire::device::{DeviceError, DeviceEvent, RegisterInfo, RegisterName};

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
