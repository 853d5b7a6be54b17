//! The interface between a router family's core and its shell.

use core::fmt::Debug;

use serde_json::{Map, Value};

use super::links::Links;
use super::node::{Chip, ChipConfig};
use crate::device::pipeline::Stage;
use crate::device::{
    DeviceEvent, NodeAccount, PipelineReport, RegisterError, Registers, RemoteRegisters, Rerouting,
};
use crate::link::{Change, LinkEvent, NodeLink};
use crate::node::PortId;
use crate::time::Time;
use crate::trace::{Outlooks, Watch};

/// The core of a router chip: its pipeline without the links.
///
/// Call order: [`changed`](Self::changed), [`output_changed`](Self::output_changed) and
/// [`link_changed`](Self::link_changed) as things happen on the links, then [`run`](Self::run) or
/// [`run_until`](Self::run_until), [`take_moved`](Self::take_moved),
/// [`check_forward_progress`](Self::check_forward_progress), and [`poll_event`](Self::poll_event)
/// until `None`. Ports and virtual channels are numbered from 0.
pub trait ChipCore: Debug + Send + Sized + 'static {
    /// The link control block at the chip's end of every link.
    type End: NodeLink;
    /// Configuration registers of the core.
    type Registers;
    type Event: Into<DeviceEvent>;

    /// Ports of the chip, at most [`MAX_PORTS`](crate::node::MAX_PORTS).
    const PORTS: usize;
    /// Cycle time, in emulated picoseconds.
    const CYCLE_PS: u64;

    /// A core for `config`, without the links. A core that supports a single grain may ignore the
    /// requested one.
    fn new(config: &ChipConfig<Self::Registers, <Self::End as NodeLink>::Config>) -> Self;

    /// The receive buffer of `port` changed.
    #[inline]
    fn changed(&mut self, _port: usize, _vc: usize, _change: Change) {}
    /// The buffer space behind the link of `port`, or other state of the link, may have changed.
    fn output_changed(&mut self, port: usize);
    /// The link of `port` may have changed between up and down.
    #[inline]
    fn link_changed(&mut self, _port: usize) {}
    /// The link of `port` has nothing left to send.
    #[inline]
    fn sent(&mut self, _port: usize) {}
    /// Ports, one bit each, whose receive buffer was read or whose link was given data since the
    /// last call.
    fn take_moved(&mut self) -> u64;

    /// Runs until nothing can move without new input.
    fn run(&mut self, links: &mut Links<Self::End>);
    /// Runs all cycles before cycle `limit`, skipping those without work.
    fn run_until(&mut self, limit: u64, links: &mut Links<Self::End>);
    /// The next cycle in which something can move, if nothing arrives.
    fn next_cycle(&self) -> Option<u64>;
    /// Starts, stops and expires the countdowns of stuck outputs.
    #[inline]
    fn check_forward_progress(&mut self, _now: Time) {}
    /// When to call [`check_forward_progress`](Self::check_forward_progress) at the latest.
    #[inline]
    fn next_progress_check(&self) -> Option<Time> {
        None
    }

    /// The slot for a packet watch, if the core supports one.
    #[inline]
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        None
    }

    /// The oldest unfetched event.
    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
    fn link_event(port: PortId, event: LinkEvent) -> Self::Event;
    /// Calls `visit` with every counter. `events_lost` is the number of link events that the shell
    /// lost, in addition to the events that the core lost.
    fn for_each_counter(&self, events_lost: u64, visit: &mut dyn FnMut(&str, u64));
    /// The register called `name`.
    fn get(&self, _links: &Links<Self::End>, _name: &str) -> Option<u64> {
        None
    }
    /// Writes the register called `name`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    fn set(&mut self, _name: &str, _value: u64) -> Result<(), RegisterError> {
        Err(RegisterError::Unknown)
    }

    // Methods of the whole chip, like the methods of the same name in `Device`.

    /// Contents; by default those of the receive buffers, in packets.
    fn account(chip: &Chip<Self>) -> NodeAccount {
        NodeAccount {
            inside: chip.queued_everywhere(),
            unit: "packets",
            ..NodeAccount::default()
        }
    }
    /// Contents by stage, counted as in its [account](Self::account); by default those of the
    /// receive buffers.
    fn pipeline(chip: &Chip<Self>) -> PipelineReport {
        let input = Stage::inside("input buffer", "packets", "port");
        PipelineReport {
            stages: vec![chip.input_stage(input), chip.link_stage()],
        }
    }
    /// Properties of this kind of chip, by name.
    fn describe(_: &Chip<Self>) -> Map<String, Value> {
        Map::new()
    }
    /// Seeds the core's random choices, if it makes any.
    fn seed(&mut self, _seed: u64) {}
    /// The chip's registers, if they are accessible from outside.
    fn registers(_: &mut Chip<Self>) -> Option<&mut dyn Registers> {
        None
    }
    /// Access to the registers of other routers, if the chip can send maintenance packets.
    fn remote_registers(_: &mut Chip<Self>) -> Option<&mut dyn RemoteRegisters> {
        None
    }
    /// The chip's route predictions, if it can make them.
    fn outlook(_: &mut Chip<Self>) -> Option<&mut dyn Outlooks> {
        None
    }
    /// The chip's route tables, if they can be replaced while it runs.
    fn rerouting(_: &mut Chip<Self>) -> Option<&mut dyn Rerouting> {
        None
    }
}

/// [`ChipCore`] methods that forward to inherent methods of the same name, for the `impl` of a
/// core.
#[doc(hidden)]
#[macro_export]
macro_rules! calls_of_the_core {
    () => {
        #[inline]
        fn output_changed(&mut self, port: usize) {
            self.output_changed(port);
        }
        #[inline]
        fn take_moved(&mut self) -> u64 {
            self.take_moved()
        }
        #[inline]
        fn run(&mut self, links: &mut Links<Self::End>) {
            self.run(links);
        }
        #[inline]
        fn run_until(&mut self, limit: u64, links: &mut Links<Self::End>) {
            self.run_until(limit, links);
        }
        #[inline]
        fn next_cycle(&self) -> Option<u64> {
            self.next_cycle()
        }
        #[inline]
        fn check_forward_progress(&mut self, now: Time) {
            self.check_forward_progress(now);
        }
        #[inline]
        fn next_progress_check(&self) -> Option<Time> {
            self.next_progress_check()
        }
        #[inline]
        fn poll_event(&mut self) -> Option<Self::Event> {
            self.poll_event()
        }
    };
}
pub use calls_of_the_core;
