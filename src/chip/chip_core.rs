//! What a family of routers is to its shell.

use core::fmt::Debug;

use serde_json::{Map, Value};

use super::links::Links;
use super::node::{Chip, ChipConfig};
use crate::device::pipeline::Stage;
use crate::device::{
    DeviceEvent, LinkEnd, NodeAccount, PipelineReport, RegisterError, Registers, RemoteRegisters,
    Rerouting,
};
use crate::link::{Change, LinkControlBlock, LinkEvent};
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
    /// The control block at the chip's end of every link.
    type End: LinkEnd;
    /// What the core is configured by.
    type Registers;
    /// What the chip reports.
    type Event: Into<DeviceEvent>;

    /// Ports of the chip, at most 64.
    const PORTS: usize;
    /// Emulated picoseconds of a cycle.
    const CYCLE_PS: u64;

    /// A core as `config` says, without the links. One that knows one grain only need not look at
    /// what is wanted.
    fn new(config: &ChipConfig<Self::Registers, <Self::End as LinkControlBlock>::Config>) -> Self;

    // The links.

    /// The link of `port` did something to its receive buffer.
    #[inline]
    fn changed(&mut self, _port: usize, _vc: usize, _change: Change) {}
    /// Whether and how much the link of `port` takes may have changed, or anything else about it.
    fn output_changed(&mut self, port: usize);
    /// The link of `port` may have gone up or down.
    #[inline]
    fn link_changed(&mut self, _port: usize) {}
    /// The link of `port` has sent all that it could.
    #[inline]
    fn sent(&mut self, _port: usize) {}
    /// Ports whose receive buffers were read from or that something was handed to since the last
    /// call, one bit each.
    fn take_moved(&mut self) -> u64;

    // The pipeline.

    /// Runs until nothing can move without new input.
    fn run(&mut self, links: &mut Links<Self::End>);
    /// Runs all cycles before cycle `limit`, jumping over those without work.
    fn run_until(&mut self, limit: u64, links: &mut Links<Self::End>);
    /// The next cycle in which something can move, if nothing arrives.
    fn next_cycle(&self) -> Option<u64>;
    /// Starts, stops and expires the countdowns of outputs by which nothing leaves.
    #[inline]
    fn check_forward_progress(&mut self, _now: Time) {}
    /// When [`check_forward_progress`](Self::check_forward_progress) must be called at the latest.
    #[inline]
    fn next_progress_check(&self) -> Option<Time> {
        None
    }

    // What others see.

    /// Where the core keeps the watch that somebody has set, if packets can be watched in it.
    #[inline]
    fn watch(&mut self) -> Option<&mut Option<Box<Watch>>> {
        None
    }

    /// The oldest event not fetched yet.
    fn poll_event(&mut self) -> Option<Self::Event> {
        None
    }
    /// The event that tells of a link event.
    fn link_event(port: PortId, event: LinkEvent) -> Self::Event;
    /// Calls `visit` with every counter; `events_lost` more events were lost outside.
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

    // The whole chip as a device; see the methods of the same names there.

    /// What is inside: unless a core knows better, what waits in receive buffers, in packets.
    fn account(chip: &Chip<Self>) -> NodeAccount {
        NodeAccount {
            inside: chip.queued_everywhere(),
            unit: "packets",
            ..NodeAccount::default()
        }
    }
    /// What is inside stage by stage, as its [account](Self::account) counts it: unless a core knows
    /// better, what waits in receive buffers.
    fn pipeline(chip: &Chip<Self>) -> PipelineReport {
        let input = Stage::inside("input buffer", "packets", "port");
        PipelineReport {
            stages: vec![chip.input_stage(input), chip.link_stage()],
        }
    }
    /// What is particular to it.
    fn describe(_: &Chip<Self>) -> Map<String, Value> {
        Map::new()
    }
    /// Makes its random choices from `seed`, if it makes any.
    fn seed(&mut self, _seed: u64) {}
    /// Its registers, if they can be read and written from outside.
    fn registers(_: &mut Chip<Self>) -> Option<&mut dyn Registers> {
        None
    }
    /// Its way to the registers of other routers, if it has one of its own.
    fn remote_registers(_: &mut Chip<Self>) -> Option<&mut dyn RemoteRegisters> {
        None
    }
    /// Which way packets would go from it, if it can tell.
    fn outlook(_: &Chip<Self>) -> Option<&dyn Outlooks> {
        None
    }
    /// Its route tables, if they can be replaced while it runs.
    fn rerouting(_: &mut Chip<Self>) -> Option<&mut dyn Rerouting> {
        None
    }
}

/// The calls of [`ChipCore`] that a core has under the same name, in its `impl`.
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
pub(crate) use calls_of_the_core;
