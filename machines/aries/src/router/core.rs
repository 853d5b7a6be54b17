//! The tiles of an Aries in the configured grain.

use super::counters::AriesCounters;
use super::event::AriesEvent;
#[cfg(test)]
use super::grain::BufferedPackets;
use super::grain::{Flits, FreePackets, Packets};
use super::load::LoadSteps;
use super::tiles::{Ports, Tiles};
use crate::route::decision::Routes;
use crate::route::registers::{AriesRegisters, PortKind, PortMask, VCS};
use phitwire::chip::{Grain, RegisterError, RouterClock};
use phitwire::device::pipeline::Stage;
use phitwire::time::Time;
use phitwire::trace::Watch;

/// The 48 tiles of an Aries and its Netlink, without the links: [`Tiles`] of a
/// [grain](super::grain), dispatched once per call.
#[derive(Debug)]
pub enum Core {
    Flits(Box<Tiles<Flits>>),
    /// Packets with cycle times.
    Packets(Box<Tiles<Packets>>),
    /// Packets without cycle times.
    FreePackets(Box<Tiles<FreePackets>>),
    /// Packets without cycle times, always through the buffers.
    #[cfg(test)]
    Buffered(Box<Tiles<BufferedPackets>>),
}

macro_rules! tiles {
    ($core:expr, $tiles:ident => $call:expr) => {
        match $core {
            Core::Flits($tiles) => $call,
            Core::Packets($tiles) => $call,
            Core::FreePackets($tiles) => $call,
            #[cfg(test)]
            Core::Buffered($tiles) => $call,
        }
    };
}

/// Forwards calls to the tiles, which document them.
macro_rules! as_tiles {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        $($(#[$doc])*
        #[inline]
        pub fn $name(&self, $($argument: $type),*) $(-> $answer)? {
            tiles!(self, tiles => tiles.$name($($argument),*))
        })*
    };
}

/// Like `as_tiles`, for calls that change something.
macro_rules! as_tiles_mut {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)*) => {
        $($(#[$doc])*
        #[inline]
        pub fn $name(&mut self, $($argument: $type),*) $(-> $answer)? {
            tiles!(self, tiles => tiles.$name($($argument),*))
        })*
    };
}

impl Core {
    /// Tiles with these registers, for a clock. Random choices depend only on the router's position
    /// in the machine.
    pub fn new(registers: AriesRegisters, grain: Grain, clock: RouterClock) -> Self {
        let mut core = match (grain, clock) {
            (Grain::Flit, _) => Self::Flits(Box::new(Tiles::new(registers))),
            (Grain::Packet, RouterClock::Paced { .. }) => {
                Self::Packets(Box::new(Tiles::new(registers)))
            }
            (Grain::Packet, RouterClock::FreeRunning) => {
                Self::FreePackets(Box::new(Tiles::new(registers)))
            }
        };
        if let RouterClock::Paced { dilation } = clock {
            core.set_dilation(dilation);
        }
        core
    }

    pub const fn grain(&self) -> Grain {
        match self {
            Self::Flits(_) => Grain::Flit,
            Self::Packets(_) | Self::FreePackets(_) => Grain::Packet,
            #[cfg(test)]
            Self::Buffered(_) => Grain::Packet,
        }
    }

    /// A free-running core of packets in which none bypasses the buffers.
    #[cfg(test)]
    pub(super) fn buffered(registers: AriesRegisters) -> Self {
        Self::Buffered(Box::new(Tiles::new(registers)))
    }

    /// All state of a free-running core that packets leave behind, and how many of them met no
    /// other.
    #[cfg(test)]
    pub(super) fn left_behind(&self) -> (String, u64) {
        tiles!(self, tiles => (
            format!(
                "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                tiles.inputs.left_behind(),
                tiles.rng,
                tiles.events,
                (tiles.columns.discarding, tiles.columns.moved),
                tiles.rows.subswitches(),
                tiles.columns.outputs(),
                tiles.loads,
                tiles.netlink.apart_from_places(),
                (tiles.cycle(), tiles.counters(), tiles.stalls(), tiles.flits_by_stage()),
            ),
            tiles.alone
        ))
    }

    as_tiles! {
        /// See [`Tiles::registers`].
        fn registers() -> &AriesRegisters;
        /// See [`Tiles::routes`].
        fn routes() -> &Routes;
        /// See [`Tiles::live_ports`].
        fn live_ports() -> PortMask;
        /// See [`Tiles::cycle`].
        fn cycle() -> u64;
        /// See [`Tiles::counters`].
        fn counters() -> AriesCounters;
        /// See [`Tiles::is_quiesced`].
        fn is_quiesced() -> bool;
        /// See [`Tiles::next_cycle`].
        fn next_cycle() -> Option<u64>;
        /// See [`Tiles::next_progress_check`].
        fn next_progress_check() -> Option<Time>;
        /// See [`Tiles::discarding`].
        fn discarding() -> [u64; VCS];
        /// See [`Tiles::flits_by_stage`].
        fn flits_by_stage() -> [u64; 3];
        /// See [`Tiles::stalls`].
        fn stalls() -> [u64; 3];
        /// See [`Tiles::stages`].
        fn stages(ports: u64) -> [Stage; 4];
        /// See [`Tiles::flits_inside`].
        fn flits_inside() -> u64;
        /// See [`Tiles::told_load`].
        fn told_load(kind: PortKind) -> u8;
        /// See [`Tiles::committed_flits`].
        fn committed_flits(port: usize) -> u32;
        /// See [`Tiles::get`].
        fn get(name: &str) -> Option<u64>;
    }

    as_tiles_mut! {
        /// See [`Tiles::watch`].
        fn watch() -> &mut Option<Box<Watch>>;
        /// See [`Tiles::seed`].
        fn seed(seed: u64);
        /// See [`Tiles::set_dilation`].
        fn set_dilation(dilation: u32);
        /// See [`Tiles::set_load_steps`].
        fn set_load_steps(steps: LoadSteps);
        /// See [`Tiles::install`].
        fn install(registers: AriesRegisters);
        /// See [`Tiles::poll_event`].
        fn poll_event() -> Option<AriesEvent>;
        /// See [`Tiles::quiesce`].
        fn quiesce();
        /// See [`Tiles::release`].
        fn release();
        /// See [`Tiles::arrived`].
        fn arrived(port: usize, vc: usize, flits: u32);
        /// See [`Tiles::output_changed`].
        fn output_changed(port: usize);
        /// See [`Tiles::link_changed`].
        fn link_changed(port: usize);
        /// See [`Tiles::take_moved`].
        fn take_moved() -> u64;
        /// See [`Tiles::check_forward_progress`].
        fn check_forward_progress(now: Time);
        /// See [`Tiles::set`].
        fn set(name: &str, value: u64) -> Result<(), RegisterError>;
    }

    /// See [`Tiles::run`].
    #[inline]
    pub fn run<P: Ports>(&mut self, io: &mut P) {
        tiles!(self, tiles => tiles.run(io));
    }

    /// See [`Tiles::run_until`].
    #[inline]
    pub fn run_until<P: Ports>(&mut self, limit: u64, io: &mut P) {
        tiles!(self, tiles => tiles.run_until(limit, io));
    }
}
