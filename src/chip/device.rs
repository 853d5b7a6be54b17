//! A router chip as a device.

use core::fmt::Write as _;

use serde_json::{Map, Value};

use super::chip_core::ChipCore;
use super::node::Chip;
use crate::device::pipeline::Stage;
use crate::device::{
    Device, DeviceError, Kind, LinkFault, LinkView, NodeAccount, PipelineReport, Registers,
    RemoteRegisters, Rerouting, break_link,
};
use crate::node::PortId;
use crate::time::Time;
use crate::trace::{Outlooks, Tracing};

/// The stages that all chips share.
impl<C: ChipCore> Chip<C> {
    /// Adds the contents of the receive buffers to `stage`.
    pub fn input_stage(&self, stage: Stage) -> Stage {
        stage.of_inputs(self.links().iter())
    }

    /// The stage of the link control blocks.
    pub fn link_stage(&self) -> Stage {
        Stage::of_links((self as &dyn Device).links())
    }
}

impl<C: ChipCore> Device for Chip<C> {
    fn kind(&self) -> Kind {
        Kind::Router
    }

    fn link(&self, port: PortId) -> Option<&dyn LinkView> {
        self.lcb(port).map(|lcb| lcb as &dyn LinkView)
    }

    fn link_fault(&mut self, now: Time, port: PortId, fault: LinkFault) -> Result<(), DeviceError> {
        self.with_lcb(now, port, |lcb| break_link(lcb, now, (port, fault)))
            .unwrap_or(Err(DeviceError::NoLink(port)))
    }

    fn for_each_counter(&self, visit: &mut dyn FnMut(&str, u64)) {
        self.core()
            .for_each_counter(self.link_events_lost(), &mut *visit);
        let mut name = String::new();
        for (number, link) in self.links().iter() {
            link.for_each_counter(&mut |counter, value| {
                name.clear();
                // Ignore the result: writing to a String cannot fail.
                let _ = write!(name, "port{number}.{counter}");
                visit(&name, value);
            });
        }
    }

    fn account(&self) -> NodeAccount {
        C::account(self)
    }

    fn pipeline(&self) -> PipelineReport {
        C::pipeline(self)
    }

    fn describe(&self) -> Map<String, Value> {
        C::describe(self)
    }

    fn seed(&mut self, seed: u64) {
        self.core_mut().seed(seed);
    }

    fn registers(&mut self) -> Option<&mut dyn Registers> {
        C::registers(self)
    }

    fn remote_registers(&mut self) -> Option<&mut dyn RemoteRegisters> {
        C::remote_registers(self)
    }

    fn tracing(&mut self) -> Option<&mut dyn Tracing> {
        self.core_mut().watch().is_some().then_some(self as _)
    }

    fn outlook(&mut self) -> Option<&mut dyn Outlooks> {
        C::outlook(self)
    }

    fn rerouting(&mut self) -> Option<&mut dyn Rerouting> {
        C::rerouting(self)
    }
}
