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
/// [grain](super::grain), with dynamic dispatch once per call.
#[derive(Debug)]
pub enum Core {
    Flits(Box<Tiles<Flits>>),
    /// Packets with cycle times.
    Packets(Box<Tiles<Packets>>),
    /// Packets without cycle times.
    FreePackets(Box<Tiles<FreePackets>>),
    /// Packets without cycle times, which never bypass the buffers.
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

/// Like `as_tiles`, for methods that need `&mut self`.
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
    /// Tiles with the given registers, for a clock. Random choices depend only on the router's
    /// position in the machine.
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

    /// A free-running core in which no packet bypasses the buffers.
    #[cfg(test)]
    pub(super) fn buffered(registers: AriesRegisters) -> Self {
        Self::Buffered(Box::new(Tiles::new(registers)))
    }

    /// All state of a free-running core that packets leave behind, and the number of packets that
    /// bypassed the buffers.
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
        fn registers() -> &AriesRegisters;
        fn routes() -> &Routes;
        fn live_ports() -> PortMask;
        fn cycle() -> u64;
        fn counters() -> AriesCounters;
        fn is_quiesced() -> bool;
        fn next_cycle() -> Option<u64>;
        fn next_progress_check() -> Option<Time>;
        fn discarding() -> [u64; VCS];
        fn flits_by_stage() -> [u64; 3];
        fn stalls() -> [u64; 3];
        fn stages(ports: u64) -> [Stage; 4];
        fn flits_inside() -> u64;
        fn reported_load(kind: PortKind) -> u8;
        fn committed_flits(port: usize) -> u32;
        fn get(name: &str) -> Option<u64>;
    }

    as_tiles_mut! {
        fn watch() -> &mut Option<Box<Watch>>;
        fn seed(seed: u64);
        fn set_dilation(dilation: u32);
        fn set_load_steps(steps: LoadSteps);
        fn install(registers: AriesRegisters);
        fn poll_event() -> Option<AriesEvent>;
        fn quiesce();
        fn release();
        fn arrived(port: usize, vc: usize, flits: u32);
        fn output_changed(port: usize);
        fn link_changed(port: usize);
        fn take_moved() -> u64;
        fn check_forward_progress(now: Time);
        fn set(name: &str, value: u64) -> Result<(), RegisterError>;
    }

    #[inline]
    pub fn run<P: Ports>(&mut self, io: &mut P) {
        tiles!(self, tiles => tiles.run(io));
    }

    #[inline]
    pub fn run_until<P: Ports>(&mut self, limit: u64, io: &mut P) {
        tiles!(self, tiles => tiles.run_until(limit, io));
    }
}
