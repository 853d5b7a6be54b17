//! The tiles of an Aries without their links: three stages, the wires between them, and Netlink.
//!
//! Every effect of one stage on another takes several cycles on a wire
//! ([`Pipe`](phitwire::kit::Pipe)), so no stage sees another's write of the same cycle. Within a
//! cycle the stages run from output to input, the order that a pipe expects. Where wires take no
//! time ([`grain`](super::grain)) they run from input to output: a packet that wins every
//! arbitration passes the router in one cycle, and a freed slot is filled in the next.
//!
//! Work is proportional to the flits that move: each stage has a bit mask of the units that can
//! move an item. A blocked unit leaves the mask until a flit, a free slot or a link event unblocks
//! it; the calendar holds the arrival times of flits and free slots. When all masks are empty, the
//! core jumps to the calendar's next cycle.

use core::marker::PhantomData;

use phitwire_framing::aries::flit::Flit;

use super::columns::Columns;
use super::counters::AriesCounters;
use super::delay::{DelayLine, SLOTS};
use super::event::{AriesEvent, EventQueue};
use super::grain::{Flits, Items};
use super::input::Inputs;
use super::load::Loads;
use super::netlink::Netlink;
use super::pace::Pace;
use super::pipeline::{BUFFERS, INPUT_CYCLES, NETLINK_CYCLES, ROWS, TILE_VCS, TILES, Wake};
use super::pool::Pool;
use super::rows::Rows;
use crate::route::decision::Routes;
use crate::route::registers::{AriesRegisters, FIRST_NIC_PORT, NICS, PORTS, PortMask, VCS};
use phitwire::kit::{Calendar, ForwardProgress, below};
use phitwire::rng::Rng;
use phitwire::time::Time;
use phitwire::trace::Watch;

/// The links of a router core: input queues on one side, output port logic on the other.
///
/// `port` is below [`PORTS`] and `vc` below [`VCS`]. Network ports (0 to 39) are read and written
/// at most once per cycle, NIC ports (40 to 43) once per slot of `Pace::NIC`. Where wires take no
/// time, a port may receive several packets in a cycle, each after [`can_begin`](Self::can_begin).
pub trait Ports {
    /// The flit at the front of an input queue.
    fn front(&self, port: usize, vc: usize) -> Option<Flit>;
    /// Takes the flit at the front of an input queue, and frees its slot.
    fn pop(&mut self, port: usize, vc: usize) -> Option<Flit>;
    /// Whether a packet of `flits` flits can start now (virtual cut-through): the link is active,
    /// no packet is open, and credits and replay buffer suffice for all of it.
    fn can_begin(&self, port: usize, vc: usize, flits: usize) -> bool;
    /// Whether there are credits for `flits` flits of packets that will start later, one after
    /// another; only called for NIC ports. All other requirements of such a packet must become
    /// available independently of other virtual channels.
    #[inline]
    fn can_promise(&self, port: usize, vc: usize, flits: usize) -> bool {
        self.can_begin(port, vc, flits)
    }
    fn is_active(&self, port: usize) -> bool;
    /// Sends the next flit of the packet that leaves by `port`; its virtual channel is in its head.
    /// The link accepts a packet until its end, even if it fails in between.
    fn push(&mut self, port: usize, flit: Flit);
    /// Takes flits from a queue until it is empty or `into` is full, and returns their number.
    #[inline]
    fn pop_into(&mut self, port: usize, vc: usize, into: &mut [Flit]) -> usize {
        let mut taken = 0;
        for slot in into {
            let Some(flit) = self.pop(port, vc) else {
                break;
            };
            *slot = flit;
            taken += 1;
        }
        taken
    }
    /// Passes a whole packet to the link, equivalent to one [`push`](Self::push) per flit.
    #[inline]
    fn push_packet(&mut self, port: usize, packet: &[Flit]) {
        for &flit in packet {
            self.push(port, flit);
        }
    }
    /// Near-end load beyond the core's own queues: flits pushed but not sent yet.
    #[inline]
    fn backlog_flits(&self, _port: usize) -> u32 {
        0
    }
    /// Far-end estimate: flits that should have left the other end's input queue by now, but whose
    /// credits have not returned.
    #[inline]
    fn far_flits(&self, _port: usize) -> u32 {
        0
    }
    /// Downstream load: the 4 bits last reported by the other end.
    #[inline]
    fn peer_load(&self, _port: usize) -> u8 {
        0
    }
    /// [`backlog_flits`](Self::backlog_flits), [`far_flits`](Self::far_flits) and
    /// [`peer_load`](Self::peer_load) with a single access to the link.
    #[inline]
    fn loads(&self, port: usize) -> (u32, u32, u8) {
        let (backlog, far) = (self.backlog_flits(port), self.far_flits(port));
        (backlog, far, self.peer_load(port))
    }
    /// Sets the 4 bits of load to report to the other end of `port`.
    #[inline]
    fn set_load(&mut self, _port: usize, _load: u8) {}
    /// Sets the cycle of the following calls. Links with their own clock may ignore it.
    #[inline]
    fn begin_cycle(&mut self, _cycle: u64) {}
}

/// Maximum number of cycles by which arrivals can be announced ahead.
pub const MAX_ANNOUNCED_CYCLES: u64 = SLOTS - 1 - INPUT_CYCLES;

/// Delay line indices of NICs' virtual channels, after those of the tiles.
pub(super) const NIC_ARRIVALS: usize = TILE_VCS;
/// Delay line indices of processor tiles' queues towards the NICs.
pub(super) const OUTPUT_ARRIVALS: usize = NIC_ARRIVALS + 4 * VCS;
/// Delay line indices, by tile, for the end of a packet on a row bus. This index and the next four
/// are used only for packets.
pub(super) const ROW_BUS_FREE: usize = OUTPUT_ARRIVALS + 8;
/// Delay line indices, by tile, for the end of a packet at an output multiplexer.
pub(super) const OUTPUT_FREE: usize = ROW_BUS_FREE + TILES;
/// Delay line indices for the end of a packet between a NIC and Netlink: four paths in, four out.
pub(super) const NIC_FREE: usize = OUTPUT_FREE + TILES;
/// Delay line indices for the end of a packet at a subswitch output, six per subswitch.
pub(super) const SWITCH_FREE: usize = NIC_FREE + 8;
/// Delay line indices for the end of a packet read from a row buffer.
pub(super) const ROW_FREE: usize = SWITCH_FREE + TILES * ROWS;
const _: () = assert!(ROW_FREE + BUFFERS <= u16::MAX as usize);

/// The 48 tiles of an Aries and its Netlink, without the links.
///
/// Call order: [`arrived`](Self::arrived) and [`output_changed`](Self::output_changed) on link
/// events, then [`run`](Self::run) or [`run_until`](Self::run_until),
/// [`check_forward_progress`](Self::check_forward_progress), and [`poll_event`](Self::poll_event)
/// until it returns `None`.
#[derive(Debug)]
pub struct Tiles<I = Flits> {
    pub(super) cycle: u64,
    pub(super) routes: Routes,
    pub(super) rng: Rng,
    pub(super) pool: Pool,
    pub(super) delay: DelayLine,
    pub(super) inputs: Inputs,
    pub(super) rows: Rows,
    pub(super) columns: Columns,
    pub(super) netlink: Netlink,
    pub(super) loads: Loads,
    pub(super) calendar: Calendar<Wake>,
    pub(super) counters: AriesCounters,
    pub(super) events: EventQueue,
    pub(super) stalls: [u64; 3],
    /// Ports whose link was up at the last check.
    pub(super) live: PortMask,
    /// Ports whose link state must be checked.
    recheck: PortMask,
    progress: ForwardProgress<VCS>,
    /// Set while tracing; records passing packets.
    pub(super) watch: Option<Box<Watch>>,
    grain: PhantomData<I>,
    /// Number of isolated packets, which bypassed the buffers.
    #[cfg(test)]
    pub(super) alone: u64,
}

impl<I: Items> Tiles<I> {
    /// Tiles with the given registers. Random choices depend only on the router's position in the
    /// machine.
    pub fn new(registers: AriesRegisters) -> Self {
        let position = u64::from(registers.group) << 8 | u64::from(registers.router);
        let mut tiles = Self {
            cycle: 0,
            routes: Routes::new(registers),
            rng: Rng::new(0, position),
            pool: Pool::new(),
            delay: DelayLine::new(),
            inputs: Inputs::new(),
            rows: Rows::new(),
            columns: Columns::new(),
            netlink: Netlink::new(),
            loads: Loads::new(),
            calendar: Calendar::new(),
            counters: AriesCounters::default(),
            events: EventQueue::default(),
            stalls: [0; 3],
            live: 0,
            recheck: 0,
            progress: ForwardProgress::new(),
            watch: None,
            grain: PhantomData,
            #[cfg(test)]
            alone: 0,
        };
        tiles.configure();
        tiles
    }

    /// Seeds the random choices. Two routers with the same seed still choose differently.
    pub fn seed(&mut self, seed: u64) {
        let registers = self.routes.registers();
        let position = u64::from(registers.group) << 8 | u64::from(registers.router);
        self.rng = Rng::new(seed, position);
    }

    /// Sets how many nanoseconds of the driver one emulated nanosecond takes, at least 1. The
    /// forward-progress register is in emulated time.
    pub fn set_dilation(&mut self, dilation: u32) {
        self.progress.set_dilation(dilation);
        self.configure();
    }

    /// Replaces the registers. Packets that are already routed keep their route; call
    /// [`quiesce`](Self::quiesce) first if that matters.
    pub fn install(&mut self, registers: AriesRegisters) {
        self.counters.installs += 1;
        self.apply(registers);
    }

    pub(super) fn apply(&mut self, registers: AriesRegisters) {
        self.routes = Routes::new(registers);
        self.configure();
    }

    /// Sets a slower pace for the network ports in a mask, because links without lanes cannot delay
    /// flits themselves.
    pub fn set_slow_ports(&mut self, ports: PortMask, pace: Pace) {
        self.columns.set_slow(ports, pace);
    }

    /// Applies the registers to the stages.
    fn configure(&mut self) {
        let timeout_ns = self.routes.registers().forward_progress_ns;
        self.progress.set_timeout_ns(timeout_ns);
        self.inputs.set_kinds(self.routes.registers());
        self.loads.ways_changed();
        self.recheck = (1 << PORTS) - 1;
    }

    pub fn registers(&self) -> &AriesRegisters {
        self.routes.registers()
    }

    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Ports whose link was up at the last check.
    pub fn live_ports(&self) -> PortMask {
        self.live
    }

    /// Number of cycles executed or skipped.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The trace; `None` while not tracing.
    pub fn watch(&mut self) -> &mut Option<Box<Watch>> {
        &mut self.watch
    }

    pub fn counters(&self) -> AriesCounters {
        self.counters.clone()
    }

    pub fn poll_event(&mut self) -> Option<AriesEvent> {
        self.events.pop()
    }

    /// Stops accepting packets from the NICs until [`release`](Self::release). Packets in progress
    /// continue.
    pub fn quiesce(&mut self) {
        self.netlink.quiesced = true;
    }

    /// Accepts packets from the NICs again.
    pub fn release(&mut self) {
        self.netlink.release();
    }

    pub fn is_quiesced(&self) -> bool {
        self.netlink.quiesced
    }

    /// Records `flits` more flits in the input queue of (`port`, `vc`). They can move after the
    /// stages of the input block.
    #[inline]
    pub fn arrived(&mut self, port: usize, vc: usize, flits: u32) {
        if self.watch.is_some() {
            self.watch_arrival(self.cycle, port, vc, flits);
        }
        self.enter(self.cycle, port, below::<VCS>(vc), flits);
    }

    /// Announces a flit that will arrive in the input queue of (`port`, `vc`) in `cycle`. That
    /// cycle must not have run yet, and be at most [`MAX_ANNOUNCED_CYCLES`] after the next cycle to
    /// run. For drivers that know arrivals in advance; no further call is needed when they happen.
    /// Not for a free-running grain, where everything arrives without delay.
    #[inline]
    pub fn announce(&mut self, cycle: u64, port: usize, vc: usize) {
        debug_assert!(I::TIMED, "only timed grains announce flits");
        debug_assert!(cycle >= self.cycle && cycle - self.cycle <= MAX_ANNOUNCED_CYCLES);
        self.enter(cycle, port, below::<VCS>(vc), 1);
    }

    #[inline]
    fn enter(&mut self, cycle: u64, port: usize, vc: usize, flits: u32) {
        if !I::TIMED {
            return match port.checked_sub(FIRST_NIC_PORT) {
                None => self.inputs.arrived(port * VCS + vc, flits),
                Some(nic) => self.netlink.arrived(below::<NICS>(nic) * VCS + vc, flits),
            };
        }
        let (due, what) = if port < FIRST_NIC_PORT {
            (cycle + INPUT_CYCLES, port * VCS + vc)
        } else {
            let nic = port - FIRST_NIC_PORT;
            (
                cycle + NETLINK_CYCLES,
                NIC_ARRIVALS + below::<NICS>(nic) * VCS + vc,
            )
        };
        self.delay.enter(due, what as u16, flits);
    }

    /// Records that a condition of [`Ports::can_begin`] or [`Ports::is_active`] changed at `port`,
    /// or that its link sent something.
    #[inline]
    pub fn output_changed(&mut self, port: usize) {
        let port = below::<PORTS>(port);
        self.recheck |= 1 << port;
        self.loads.output_changed();
        if port < FIRST_NIC_PORT {
            self.columns.wake(1 << port);
        } else {
            let nic = port - FIRST_NIC_PORT;
            self.netlink.wake_output(nic);
            self.columns.wake(0xf << (FIRST_NIC_PORT + nic / 2 * 4));
        }
    }

    /// Records that the link of `port` went up or down, which may change the load reported to
    /// neighbours.
    pub fn link_changed(&mut self, port: usize) {
        self.output_changed(port);
        self.loads.ways_changed();
    }

    /// The ports whose input queues were read or that were handed flits since the last call, as a
    /// bit mask.
    pub fn take_moved(&mut self) -> u64 {
        core::mem::take(&mut self.inputs.popped) | core::mem::take(&mut self.columns.pushed)
    }

    /// Runs until nothing can move without new input.
    pub fn run<P: Ports>(&mut self, io: &mut P) {
        while let Some(next) = self.next_cycle() {
            self.cycle = next;
            self.step(io);
        }
    }

    /// Runs all cycles before cycle `limit`, skipping those without work.
    pub fn run_until<P: Ports>(&mut self, limit: u64, io: &mut P) {
        while let Some(next) = self.next_cycle()
            && next < limit
        {
            self.cycle = next;
            self.step(io);
        }
        self.cycle = self.cycle.max(limit);
    }

    /// The next cycle in which an item can move if nothing arrives.
    #[inline]
    pub fn next_cycle(&self) -> Option<u64> {
        let active = self.inputs.pending() | self.rows.active | self.columns.pending();
        if active != 0 || self.netlink.is_active() {
            return Some(self.cycle);
        }
        let arrivals = self.delay.next_due(self.cycle);
        let wakes = self.calendar.next_due(self.cycle);
        let loads = self.loads.next_update(self.cycle);
        arrivals.into_iter().chain(wakes).chain(loads).min()
    }

    /// Executes the current cycle and advances to the next.
    fn step<P: Ports>(&mut self, io: &mut P) {
        let now = self.cycle;
        self.counters.executed_cycles += 1;
        io.begin_cycle(now);
        self.netlink.begin_cycle(now);
        self.look_at_links(io);
        if I::TIMED {
            self.deliver(now);
            self.netlink_output_stage(io);
            self.output_stage(io);
            self.subswitch_stage();
            self.input_stage(io);
            self.netlink_input_stage(io);
        } else {
            self.netlink_input_stage(io);
            self.input_stage(io);
            self.subswitch_stage();
            self.output_stage(io);
            self.netlink_output_stage(io);
        }
        if self.loads.next_update(now) == Some(now) {
            self.update_loads(io);
        }
        self.cycle = now + 1;
    }

    /// Updates the state of the links marked for a check.
    #[inline]
    fn look_at_links<P: Ports>(&mut self, io: &P) {
        while self.recheck != 0 {
            let port = self.recheck.trailing_zeros() as usize;
            self.recheck &= self.recheck - 1;
            let live = u64::from(port < PORTS && io.is_active(port)) << port;
            if self.live & 1 << port != live {
                self.live ^= 1 << port;
                self.loads.ways_changed();
            }
        }
    }

    /// Delivers the arrivals that are due in cycle `now`.
    fn deliver(&mut self, now: u64) {
        if let Some(due) = self.delay.take_due(now) {
            for &(what, flits) in &due {
                let what = usize::from(what);
                if what < NIC_ARRIVALS {
                    self.inputs.arrived(what, flits.into());
                } else if what < OUTPUT_ARRIVALS {
                    self.netlink.arrived(what - NIC_ARRIVALS, flits.into());
                } else if what < ROW_BUS_FREE {
                    self.netlink
                        .output_arrived(what - OUTPUT_ARRIVALS, flits.into());
                } else {
                    self.packet_passed(what);
                }
            }
            self.delay.recycle(due);
        }
        if self.calendar.is_due(now) {
            let due = self.calendar.take_due(now);
            for &wake in &due {
                match wake {
                    Wake::RowReader(id) => self.request_output(id),
                    Wake::RowWriter(id) => self.row_slot_freed(id),
                    Wake::ColumnReader(id) => self.columns.arrived(id),
                    Wake::ColumnWriter(id) => self.column_slot_freed(id),
                }
            }
            self.calendar.recycle(now, due);
        }
    }

    /// Starts, stops and expires the forward-progress timers of the output virtual channels.
    ///
    /// A timer runs while flits wait for the output, and restarts whenever one leaves. When it
    /// expires, an event is raised, and the packets for that tile and virtual channel are discarded
    /// until the link can accept a packet again.
    pub fn check_forward_progress(&mut self, now: Time) {
        let waiting = self.columns.waiting_to_progress();
        let moved = core::mem::take(&mut self.columns.moved);
        let Some(expired) = self.progress.check(now, waiting, moved) else {
            return;
        };
        for (vc, &tiles) in expired.iter().enumerate() {
            for tile in (0..TILES).filter(|tile| tiles >> tile & 1 != 0) {
                self.columns.discarding[vc] |= 1 << tile;
                self.columns.wake(1 << tile);
                self.counters.forward_progress_timeouts += 1;
                self.events.push(AriesEvent::ForwardProgress {
                    tile: tile as u8,
                    vc: vc as u8,
                });
            }
        }
    }

    /// Latest time of the next [`check_forward_progress`](Self::check_forward_progress). May be
    /// earlier than the next expiry, but never later.
    pub fn next_progress_check(&self) -> Option<Time> {
        self.progress.next_check()
    }

    /// Output tiles, per virtual channel, whose packets are discarded because their
    /// forward-progress timer expired.
    pub fn discarding(&self) -> [u64; VCS] {
        self.columns.discarding
    }

    /// Ends the discarding of a virtual channel except at the output tiles of `keep`.
    pub(super) fn stop_discarding(&mut self, vc: usize, keep: u64) {
        self.columns.discarding[below::<VCS>(vc)] &= keep;
    }

    /// Flits in Netlink, in row buffers and in column buffers, including the wires to them.
    pub fn flits_by_stage(&self) -> [u64; 3] {
        let rows = self.rows.flits::<I>();
        [self.netlink.flits(), rows, self.columns.flits::<I>()]
    }

    /// Number of waits: in an input queue for row buffer room, in a row buffer for column buffer
    /// room, and in a column buffer for the link.
    pub fn stalls(&self) -> [u64; 3] {
        self.stalls
    }

    /// Flits inside the core: in row and column buffers, on the wires to them, and in Netlink.
    pub fn flits_inside(&self) -> u64 {
        self.flits_by_stage().iter().sum()
    }
}

#[cfg(test)]
#[path = "fabric_tests.rs"]
mod fabric_tests;
#[cfg(test)]
#[path = "tiles_tests.rs"]
mod tests;
