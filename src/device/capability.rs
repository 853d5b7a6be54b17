//! Names of the capabilities that a device may lack, to request them with `need`.

use super::{BarrierRuns, CollectiveRuns, Device, RemoteRegisters, Rerouting, TrafficRuns};
use crate::nic::local::LocalPort;
use crate::nic::{Probes, RemotePuts};
use crate::trace::{Outlooks, Tracing};

/// A capability that only some devices have.
pub trait Capability {
    /// The interface of the devices that have the capability.
    type Interface<'a>;
    /// The error message of a device that lacks it; `KIND` stands for the kind of device.
    const LACK: &'static str;
    fn of(device: &mut dyn Device) -> Option<Self::Interface<'_>>;
}

macro_rules! capabilities {
    ($($name:ident: $interface:ident = $method:ident, $lack:literal;)*) => {$(
        #[doc = concat!("[`Device::", stringify!($method), "`].")]
        #[derive(Clone, Copy, Debug)]
        pub struct $name;

        impl Capability for $name {
            type Interface<'a> = &'a mut dyn $interface;
            const LACK: &'static str = $lack;

            fn of(device: &mut dyn Device) -> Option<Self::Interface<'_>> {
                device.$method()
            }
        }
    )*};
}

capabilities! {
    Maintenance: RemoteRegisters = remote_registers, "this KIND cannot send maintenance packets";
    Watch: Tracing = tracing, "this KIND cannot watch packets; only routers can";
    Outlook: Outlooks = outlook, "this KIND cannot report routes";
    Probing: Probes = probes, "this KIND cannot send probes; only NICs can";
    Tables: Rerouting = rerouting, "this KIND has no replaceable route tables";
    Traffic: TrafficRuns = traffic_mut, "a KIND cannot generate traffic";
    Collectives: CollectiveRuns = collectives_mut, "this KIND has no collective engine";
    Barriers: BarrierRuns = barriers_mut, "this KIND has no barrier units";
    Puts: RemotePuts = remote_puts, "this KIND cannot send puts for local programs";
    Door: LocalPort = local_port, "this KIND does not serve local programs";
}
