//! The interface of a router or NIC (network interface) of any machine to processes and simulated
//! worlds.
//!
//! A [`Device`] is a [`Node`] that can be inspected and controlled from outside: its links
//! ([`LinkView`]), their faults ([`LinkFault`]), counters, contents, and optional capabilities:
//! [`Registers`], [`RemoteRegisters`], [`Rerouting`], [`TrafficRuns`], [`CollectiveRuns`],
//! [`BarrierRuns`], [`RemotePuts`], [`LocalPort`]. Processes and worlds keep a `Box<dyn Device>`,
//! so [`Node`] methods are called dynamically, once per frame or advance; all calls below that are
//! static.

mod abilities;
mod account;
mod break_link;
pub mod capability;
mod error;
mod event;
pub mod pipeline;
mod register_error;

use core::any::Any;
use core::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use abilities::{
    BarrierRuns, CollectiveRuns, RegisterInfo, RegisterName, Registers, RemoteRegisters, Rerouting,
    Routing, TrafficRuns,
};
pub use account::NodeAccount;
pub use break_link::break_link;
pub use capability::Capability;
pub use error::DeviceError;
pub use event::{DeviceEvent, EventKind, OwnEvent};
pub use pipeline::PipelineReport;
pub use register_error::RegisterError;

pub use crate::link::{EndAccount, LinkFault, LinkView, Units};

use crate::nic::local::LocalPort;
use crate::nic::{Probes, RemotePuts};
use crate::node::{Node, PortId, Wakeup};
use crate::time::{Duration, Time};
use crate::trace::{Outlooks, Tracing};

/// Role of a device, in any machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Forwards packets.
    Router,
    /// Sends and receives packets.
    Nic,
}

impl Kind {
    /// `router` or `nic`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Nic => "nic",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The methods of [`Node`] in object-safe form, with events common to all machines. Implemented for
/// every node whose events convert to [`DeviceEvent`].
pub trait DeviceNode: Any + Send {
    fn ports(&self) -> usize;
    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]);
    fn handle_suspension(&mut self, now: Time, span: Duration);
    fn advance(&mut self, now: Time);
    fn ready_ports(&self) -> u64;
    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize>;
    fn next_wakeup(&self) -> Option<Wakeup>;
    fn poll_event(&mut self) -> Option<DeviceEvent>;
}

impl<N: Node<Event: Into<DeviceEvent>> + Any + Send> DeviceNode for N {
    fn ports(&self) -> usize {
        Node::ports(self)
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        Node::handle_frame(self, now, port, bytes);
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        Node::handle_suspension(self, now, span);
    }

    fn advance(&mut self, now: Time) {
        Node::advance(self, now);
    }

    fn ready_ports(&self) -> u64 {
        Node::ready_ports(self)
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        Node::poll_frame(self, now, port, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        Node::next_wakeup(self)
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        Node::poll_event(self).map(Into::into)
    }
}

/// A router or NIC of any machine: see the [module](self).
pub trait Device: DeviceNode {
    fn kind(&self) -> Kind;

    /// The link of `port`, if it has one.
    fn link(&self, port: PortId) -> Option<&dyn LinkView>;

    /// Applies a fault or repair to the link of `port`.
    ///
    /// # Errors
    /// [`DeviceError::NoLink`]; [`DeviceError::NoSuchFault`] if links of this machine do not have
    /// it.
    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError>;

    /// Calls `visit` with every counter; names of link counters begin with `portN.`.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        for port in 0..self.ports() as PortId {
            if let Some(link) = self.link(port) {
                let mut report = |name: &str, value| visit(&format!("port{port}.{name}"), value);
                link.for_each_counter(&mut report);
            }
        }
    }

    /// Contents of the device, without its links; empty at rest.
    fn account(&self) -> NodeAccount;

    /// Contents of the device by stage, link buffers included, for display.
    fn pipeline(&self) -> PipelineReport {
        PipelineReport::default()
    }

    /// Properties of this kind of device, by name, for display and scripts.
    fn describe(&self) -> Map<String, Value> {
        Map::new()
    }

    /// Stops starting new work: the process is about to exit.
    fn begin_drain(&mut self, now: Time) {
        let _ = now;
    }

    /// Seeds the device's random choices, if it makes any.
    fn seed(&mut self, seed: u64) {
        let _ = seed;
    }

    /// The device's registers, if they are accessible from outside.
    fn registers(&mut self) -> Option<&mut dyn Registers> {
        None
    }

    /// Access to the registers of other routers, if the device can send maintenance packets.
    fn remote_registers(&mut self) -> Option<&mut dyn RemoteRegisters> {
        None
    }

    /// The packet watch of a router that supports one.
    fn tracing(&mut self) -> Option<&mut dyn Tracing> {
        None
    }

    /// The route predictions of a router that can make them.
    fn outlook(&mut self) -> Option<&mut dyn Outlooks> {
        None
    }

    /// The probes of a NIC that can query others without side effects.
    fn probes(&mut self) -> Option<&mut dyn Probes> {
        None
    }

    /// The route tables of a router, if they can be replaced while it runs.
    fn rerouting(&mut self) -> Option<&mut dyn Rerouting> {
        None
    }

    /// The traffic runs of a NIC that can generate traffic.
    fn traffic(&self) -> Option<&dyn TrafficRuns> {
        None
    }

    fn traffic_mut(&mut self) -> Option<&mut dyn TrafficRuns> {
        None
    }

    /// The collective runs of a NIC with an engine for them.
    fn collectives(&self) -> Option<&dyn CollectiveRuns> {
        None
    }

    fn collectives_mut(&mut self) -> Option<&mut dyn CollectiveRuns> {
        None
    }

    /// The barrier runs of a NIC with units for them.
    fn barriers(&self) -> Option<&dyn BarrierRuns> {
        None
    }

    fn barriers_mut(&mut self) -> Option<&mut dyn BarrierRuns> {
        None
    }

    /// Puts for local programs, if other NICs can write to the NIC's memory.
    fn remote_puts(&mut self) -> Option<&mut dyn RemotePuts> {
        None
    }

    /// The port for programs on the NIC's node, if it has one.
    fn local_port(&mut self) -> Option<&mut dyn LocalPort> {
        None
    }
}

impl dyn Device {
    pub fn links(&self) -> impl Iterator<Item = (PortId, &dyn LinkView)> {
        (0..self.ports() as PortId).filter_map(|port| Some((port, self.link(port)?)))
    }

    /// Packets or requests in the device and its links that would be lost if it stopped now.
    pub fn holds(&self) -> u64 {
        let in_links: u64 = self
            .links()
            .map(|(_, link)| link.unacknowledged_packets())
            .sum();
        in_links + self.account().total()
    }

    /// The machine's concrete type, to inspect machine-specific state.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    pub(crate) fn downcast_mut<T: Any>(&mut self) -> Option<&mut T> {
        (self as &mut dyn Any).downcast_mut()
    }

    /// [`Device::registers`], for access to `register`.
    ///
    /// # Errors
    /// [`DeviceError::NoRegisters`].
    pub fn need_registers(
        &mut self,
        register: RegisterName<'_>,
    ) -> Result<&mut dyn Registers, DeviceError> {
        let error = DeviceError::NoRegisters {
            kind: self.kind(),
            register: register.to_string(),
        };
        self.registers().ok_or(error)
    }

    /// The interface of capability `C`.
    ///
    /// # Errors
    /// [`DeviceError::Lacks`].
    pub fn need<C: Capability>(&mut self) -> Result<C::Interface<'_>, DeviceError> {
        let kind = self.kind();
        C::of(self).ok_or(DeviceError::Lacks(kind, C::LACK))
    }
}

impl fmt::Debug for dyn Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.kind()).finish()
    }
}

impl Node for Box<dyn Device> {
    type Event = DeviceEvent;

    fn ports(&self) -> usize {
        (**self).ports()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        (**self).handle_frame(now, port, bytes);
    }

    fn handle_suspension(&mut self, now: Time, span: Duration) {
        (**self).handle_suspension(now, span);
    }

    fn advance(&mut self, now: Time) {
        (**self).advance(now);
    }

    fn ready_ports(&self) -> u64 {
        (**self).ready_ports()
    }

    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        (**self).poll_frame(now, port, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        (**self).next_wakeup()
    }

    fn poll_event(&mut self) -> Option<DeviceEvent> {
        (**self).poll_event()
    }
}
