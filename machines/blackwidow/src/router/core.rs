//! The tiles of a YARC without their links: three stages and the wires between them.
//!
//! Every effect of one stage on another takes at least three cycles on a wire
//! ([`Pipe`](phitwire::kit::Pipe)), so no stage sees another's write of the same cycle. Within a
//! cycle the stages run from output to input, the order that a pipe expects.
//!
//! Work is proportional to the phits that move: each stage has a bit mask of the inputs or outputs
//! that can move. A blocked one leaves the mask until a phit, a free slot or a link event unblocks
//! it; the calendar holds the arrival times of phits and free slots. When all masks are empty, the
//! core jumps to the calendar's next cycle.

use phitwire_framing::yarc::packet::Vc;
use phitwire_framing::yarc::phit::{CONTENT_MASK, Phit, PhitKind};

use super::columns::Columns;
use super::counters::RouterCounters;
use super::event::{EventQueue, RouterEvent};
use super::input::{ANNOUNCED_SLOTS, Inputs};
use super::maintenance::Maintenance;
use super::pipeline::{INPUT_CYCLES, Wake};
use super::rows::Rows;
use crate::link::VC_NAMES;
use crate::route::TileRoutes;
use crate::route::adaptive::{COLUMN_BUFFER_PHITS, ROW_BUFFER_PHITS};
use crate::route::decision::ChipPorts;
use crate::route::registers::{ChipRegisters, PORTS};
use phitwire::device::pipeline::Stage;
use phitwire::kit::{Calendar, ForwardProgress, below, tiles};
use phitwire::time::Time;
use phitwire::trace::Watch;

/// The links of a router core: input queues on one side, output ports on the other.
///
/// `port` is below 64 and `vc` 0 (request) or 1 (response).
pub trait Ports {
    /// The phit at the front of an input queue.
    fn front(&self, port: usize, vc: usize) -> Option<Phit>;
    /// The phit after the front, with the hash bits that routing may need.
    fn second(&self, port: usize, vc: usize) -> Option<Phit>;
    /// The phit `behind` positions after the front, only for inspection.
    fn nth(&self, port: usize, vc: usize, behind: usize) -> Option<Phit> {
        match behind {
            0 => self.front(port, vc),
            1 => self.second(port, vc),
            _ => None,
        }
    }
    /// Takes the phit at the front of an input queue, and frees its slot.
    fn pop(&mut self, port: usize, vc: usize) -> Option<Phit>;
    /// Whether a packet of maximum length can be sent now (virtual cut-through, BlackWidow sec.
    /// 4.2): the link is active, no packet is open, and credits and retry buffer suffice.
    fn can_begin(&self, port: usize, vc: usize) -> bool;
    /// Whether the link is up (`link_active`, BlackWidow sec. 7.7).
    fn is_active(&self, port: usize) -> bool;
    /// Sends the next phit of the packet that leaves by `port`. A started packet is accepted to its
    /// end, even if the link fails in between.
    fn push(&mut self, port: usize, phit: Phit);
    /// Sets the cycle of the following calls. Links with their own clock may ignore it.
    #[inline]
    fn begin_cycle(&mut self, _cycle: u64) {}
}

/// Maximum number of cycles by which arrivals can be announced ahead.
pub const MAX_ANNOUNCED_CYCLES: u64 = ANNOUNCED_SLOTS as u64 - 1 - INPUT_CYCLES;

/// A slot of a row or column buffer: content in bits 0..22, kind in 22..24, and row mask in 24..32
/// (only for heads in row buffers, BlackWidow sec. 5.1).
pub(super) type Slot = u32;
const SLOT_KIND_SHIFT: u32 = 22;
pub(super) const SLOT_MASK_SHIFT: u32 = 24;
pub(super) const SLOT_KIND_MASK: Slot = 3 << SLOT_KIND_SHIFT;
pub(super) const SLOT_HEAD: Slot = (PhitKind::Head as u32) << SLOT_KIND_SHIFT;
pub(super) const SLOT_BODY: Slot = (PhitKind::Body as u32) << SLOT_KIND_SHIFT;
pub(super) const SLOT_EOP: Slot = (PhitKind::Eop as u32) << SLOT_KIND_SHIFT;

#[inline]
pub(super) const fn to_slot(phit: Phit) -> Slot {
    let bits = phit.to_bits();
    (bits & CONTENT_MASK) | ((bits >> 2) & SLOT_KIND_MASK)
}

#[inline]
pub(super) const fn from_slot(slot: Slot) -> Phit {
    Phit::from_bits((slot & CONTENT_MASK) | ((slot & SLOT_KIND_MASK) << 2))
}

// In a `Phit` the kind is two bits higher, above the sideband.
const _: () = assert!(to_slot(Phit::new(PhitKind::Eop, 0)) == SLOT_EOP);

/// The 64 tiles of a YARC without their links.
///
/// Call order: [`arrived`](Self::arrived) and [`output_changed`](Self::output_changed) on link
/// events, then [`run`](Self::run) or [`run_until`](Self::run_until),
/// [`check_forward_progress`](Self::check_forward_progress), and [`poll_event`](Self::poll_event)
/// until it returns `None`.
#[derive(Debug)]
pub struct Core {
    pub(super) cycle: u64,
    pub(super) registers: ChipRegisters,
    pub(super) ports: ChipPorts,
    pub(super) routes: Vec<Option<Box<TileRoutes>>>,
    pub(super) inputs: Inputs,
    pub(super) rows: Rows,
    pub(super) columns: Columns,
    pub(super) calendar: Calendar<Wake>,
    pub(super) maintenance: Maintenance,
    pub(super) counters: RouterCounters,
    pub(super) events: EventQueue,
    pub(super) stalls: [u64; 3],
    progress: ForwardProgress<2>,
    /// Set while tracing; records passing packets.
    pub(super) watch: Option<Box<Watch>>,
}

impl Core {
    /// A core whose tiles have the given registers. Missing tiles (fewer than 64, or `None`) are
    /// not in use.
    pub fn new(registers: ChipRegisters) -> Self {
        let mut core = Self {
            cycle: 0,
            registers,
            ports: ChipPorts::default(),
            routes: Vec::new(),
            inputs: Inputs::new(),
            rows: Rows::new(),
            columns: Columns::new(),
            calendar: Calendar::new(),
            maintenance: Maintenance::default(),
            counters: RouterCounters::default(),
            events: EventQueue::default(),
            stalls: [0; 3],
            progress: ForwardProgress::new(),
            watch: None,
        };
        core.registers.tiles.resize(PORTS, None);
        core.compile_routes();
        core
    }

    /// Sets how many nanoseconds of the driver one emulated nanosecond takes, at least 1. The
    /// forward-progress register is in emulated time.
    pub fn set_dilation(&mut self, dilation: u32) {
        self.progress.set_dilation(dilation);
        self.compile_routes();
    }

    /// Derives the routing logic from the registers after a register changed.
    pub(super) fn compile_routes(&mut self) {
        self.ports = ChipPorts::new(&self.registers);
        let ports = self.ports;
        self.routes = (0u8..)
            .zip(&self.registers.tiles)
            .map(|(port, tile)| {
                tile.as_ref()
                    .map(|tile| Box::new(TileRoutes::new(port, tile, ports)))
            })
            .collect();
        self.progress
            .set_timeout_ns(self.registers.forward_progress_ns);
    }

    pub fn watch(&mut self) -> &mut Option<Box<Watch>> {
        &mut self.watch
    }

    pub fn registers(&self) -> &ChipRegisters {
        &self.registers
    }

    /// The compiled routing registers of a port's tile, if it is in use.
    pub fn routes(&self, port: usize) -> Option<&TileRoutes> {
        self.routes.get(port)?.as_deref()
    }

    /// Number of cycles executed or skipped.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    pub fn counters(&self) -> RouterCounters {
        RouterCounters {
            events_lost: self.events.lost,
            ..self.counters.clone()
        }
    }

    pub fn poll_event(&mut self) -> Option<RouterEvent> {
        self.events.pop()
    }

    /// Records `phits` more phits in the input queue of (`port`, `vc`). They can move after the
    /// stages of the input block.
    #[inline]
    pub fn arrived(&mut self, port: usize, vc: usize, phits: u32) {
        if self.watch.is_some() {
            self.watch_arrival(self.cycle, port, vc, phits);
        }
        let port_vc = (below::<PORTS>(port) * 2 + below::<2>(vc)) as u8;
        self.inputs
            .arrivals
            .enter(self.cycle, INPUT_CYCLES, (port_vc, phits));
    }

    /// Records that the link withdrew the packet at the front of the input queue of (`port`, `vc`),
    /// and that too few phits arrived with that event for a call of [`arrived`](Self::arrived).
    pub fn front_changed(&mut self, port: usize, vc: usize) {
        self.inputs
            .front_changed(below::<PORTS>(port), below::<2>(vc));
    }

    /// Announces one phit each that will arrive in the input queues of `ports` (a bit mask) and
    /// virtual channel `vc` in `cycle`. That cycle must not have run yet, and be at most
    /// [`MAX_ANNOUNCED_CYCLES`] after the next cycle to run. For drivers that know arrivals in
    /// advance; no further call is needed on arrival.
    #[inline]
    pub fn announce(&mut self, cycle: u64, vc: usize, ports: u64) {
        debug_assert!(cycle >= self.cycle && cycle - self.cycle <= MAX_ANNOUNCED_CYCLES);
        self.inputs.announce(cycle + INPUT_CYCLES, vc % 2, ports);
    }

    /// Records that a condition of [`Ports::can_begin`] or [`Ports::is_active`] changed at `port`.
    #[inline]
    pub fn output_changed(&mut self, port: usize) {
        self.columns.wake(below::<PORTS>(port));
    }

    /// The ports whose input queue was read, or to which phits were pushed, since the last call, as
    /// a bit mask.
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

    /// Runs all cycles before `limit`, skipping those without work.
    pub fn run_until<P: Ports>(&mut self, limit: u64, io: &mut P) {
        while let Some(next) = self.next_cycle()
            && next < limit
        {
            self.cycle = next;
            self.step(io);
        }
        self.cycle = self.cycle.max(limit);
    }

    /// The next cycle in which a phit can move without external input.
    #[inline]
    pub fn next_cycle(&self) -> Option<u64> {
        let active =
            self.inputs.ready[0] | self.inputs.ready[1] | self.rows.active | self.columns.active;
        if active != 0 {
            return Some(self.cycle);
        }
        let arrivals = self.inputs.arrivals.next_due(self.cycle);
        let announced = self.inputs.next_announced(self.cycle);
        let wakes = self.calendar.next_due(self.cycle);
        arrivals.into_iter().chain(announced).chain(wakes).min()
    }

    /// Executes the current cycle and advances to the next.
    fn step<P: Ports>(&mut self, io: &mut P) {
        let now = self.cycle;
        self.counters.executed_cycles += 1;
        io.begin_cycle(now);
        self.deliver(now);
        self.output_stage(io);
        self.subswitch_stage();
        self.input_stage(io);
        self.cycle = now + 1;
    }

    /// Wakes the tiles that have work from cycle `now` on.
    fn deliver(&mut self, now: u64) {
        self.inputs.take_announced(now);
        if self.inputs.arrivals.is_due(now) {
            let due = self.inputs.arrivals.take_due(now);
            for &(port_vc, phits) in &due {
                self.inputs.arrived(port_vc, phits);
            }
            self.inputs.arrivals.recycle(now, due);
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

    /// Starts, stops and expires the forward-progress timers of the output virtual channels
    /// (BlackWidow sec. 7.7).
    ///
    /// A timer runs while phits wait for the output, and restarts whenever a packet begins to
    /// leave. When it expires, an event is raised, and the packets of that port and virtual channel
    /// are discarded until the link accepts one again or software writes the discard register.
    pub fn check_forward_progress(&mut self, now: Time) {
        let columns = &mut self.columns;
        let waiting = [0, 1].map(|vc| columns.waiting[vc] & !columns.discarding[vc]);
        let moved = core::mem::take(&mut columns.moved);
        let Some(expired) = self.progress.check(now, waiting, moved) else {
            return;
        };
        for (vc, ports) in Vc::ALL.into_iter().zip(expired) {
            for port in (0..PORTS).filter(|port| ports >> port & 1 != 0) {
                self.columns.discarding[vc.index()] |= 1 << port;
                self.columns.wake(port);
                self.counters.forward_progress_timeouts += 1;
                let port = port as u8;
                self.events.push(RouterEvent::ForwardProgress { port, vc });
            }
        }
    }

    /// Latest time of the next [`check_forward_progress`](Self::check_forward_progress). May be
    /// earlier than the next expiry, but never later.
    pub fn next_progress_check(&self) -> Option<Time> {
        self.progress.next_check()
    }

    /// Output ports, per virtual channel, that discard packets because their forward-progress timer
    /// expired.
    pub fn discarding(&self) -> [u64; 2] {
        self.columns.discarding
    }

    /// Phits in row and in column buffers, including those on the wires to them.
    pub fn phits_by_stage(&self) -> [u64; 2] {
        [self.rows.phits(), self.columns.phits()]
    }

    /// Contents of the row buffers by subswitch, of the column buffers by output tile, and of the
    /// maintenance packets. Omits empty tiles that packets between `ports` (a bit mask) do not
    /// pass.
    pub fn stages(&self, ports: u64) -> [Stage; 3] {
        let buffers = tiles::COLUMNS as u64;
        let mut rows = Stage::inside("row buffer", "phits", "subswitch")
            .channels(&VC_NAMES)
            .capacity([buffers * u64::from(ROW_BUFFER_PHITS); 2]);
        let mut columns = Stage::inside("column buffer", "phits", "tile")
            .channels(&VC_NAMES)
            .capacity([buffers * u64::from(COLUMN_BUFFER_PHITS); 2]);
        let [of_row, of_column] = [self.rows.by_subswitch(), self.columns.by_output()];
        for tile in 0..PORTS {
            let crossed = tiles::is_crossed(ports, tile);
            if crossed || of_row[tile] != [0; 2] {
                rows.holds(tile, of_row[tile]);
            }
            if ports >> tile & 1 != 0 || of_column[tile] != [0; 2] {
                columns.holds(tile, of_column[tile]);
            }
        }
        let gathered = self.maintenance.phits();
        let maintenance = Stage::inside("maintenance", "phits", "router").single("held", gathered);
        [rows, columns, maintenance]
    }

    /// Number of waits: in an input queue for row buffer room, in a row buffer for column buffer
    /// room, and in a column buffer for the link.
    pub fn stalls(&self) -> [u64; 3] {
        self.stalls
    }

    /// Phits inside the core: in row and column buffers, on the wires to them, and in maintenance
    /// packets being gathered or sent.
    pub fn phits_inside(&self) -> u64 {
        self.rows.phits() + self.columns.phits() + self.maintenance.phits()
    }
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
