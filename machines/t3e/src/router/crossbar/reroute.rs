//! Failed links and new tables in a crossbar.

use super::Crossbar;
use super::{
    Arc, FlitPorts, Front, Header, INPUTS, LookUpTable, MEMORY, Memory, Names, PORTS, PROCESSOR,
    VCS, Wants, number,
};
use crate::route::{Decision, RouteRegisters, decide};
use crate::router::MEMORY_FLITS;
use crate::router::memory::NO_WAY;

/// Maximum number of flits kept for absent processors, which leaves room for other packets.
const ABSENT_FLITS: u32 = MEMORY_FLITS / 2;

impl Crossbar {
    /// Records that the link of `port` went down or up. Packets that wait for a failed link leave
    /// the network for the memory.
    pub fn set_down(&mut self, port: usize, down: bool) {
        let others = self.down & !(1 << port);
        self.down = others | u8::from(down) << port;
        self.find_dead();
    }

    /// Whether the link of `port` was last reported down.
    #[inline]
    pub const fn is_down(&self, port: usize) -> bool {
        self.down >> port & 1 != 0
    }

    /// Isolates exactly these ports, one bit each.
    pub fn set_cut_off(&mut self, ports: u8) {
        self.cut_off = ports;
        self.find_dead();
    }

    pub const fn cut_off(&self) -> u8 {
        self.cut_off
    }

    fn find_dead(&mut self) {
        let dead = self.down | self.cut_off;
        if core::mem::replace(&mut self.dead, dead) != dead {
            self.invalidate_decisions();
        }
    }

    /// Replaces the processor numbers by the positions where paths end.
    pub fn rename(&mut self, names: Arc<Names>) {
        self.names.replace(names);
    }

    pub fn names(&self) -> &Arc<Names> {
        self.names.current()
    }

    /// Holds back, or releases, requests of the processor and packets of the memory. Packets in
    /// progress continue.
    pub fn quiesce(&mut self, quiesced: bool) {
        self.quiesced = quiesced;
        self.invalidate_decisions();
    }

    /// Whether requests of the processor and packets of the memory are held back.
    pub const fn is_quiesced(&self) -> bool {
        self.quiesced
    }

    /// Number of flits in the memory.
    pub const fn kept_flits(&self) -> u64 {
        self.memory.flits() as u64
    }

    /// Whether no packet is between input and output, except those in the memory and those that
    /// have not begun to leave the processor.
    pub fn is_empty(&self) -> bool {
        let rests = |input: usize| {
            let of = &self.inputs[input];
            match input >= PROCESSOR {
                false => {
                    let is_coming = self.arrivals[input].any() || self.frames[input].any();
                    of.held == [0; VCS] && !is_coming
                }
                true => of
                    .fronts
                    .iter()
                    .all(|front| matches!(front, Front::Unknown | Front::Waiting(_))),
            }
        };
        (0..INPUTS).all(rests) && !self.memory.is_busy()
    }

    /// Requests new decisions about waiting packets after tables, registers or links have changed.
    pub fn invalidate_decisions(&mut self) {
        self.stale = true;
        self.wake();
    }

    /// Routes all waiting packets again.
    #[cold]
    pub(super) fn decide_again(&mut self, ports: &mut impl FlitPorts) {
        self.stale = false;
        for port in 0..INPUTS {
            for vc in 0..VCS {
                if !matches!(self.inputs[port].fronts[vc], Front::Waiting(_)) {
                    continue;
                }
                self.withdraw(port, vc);
                let input = &mut self.inputs[port];
                input.fronts[vc] = Front::Unknown;
                if port == MEMORY {
                    self.memory.put_back(vc);
                    input.held[vc] = 0;
                    input.ready[vc] = 0;
                    input.channels &= !(1 << vc);
                }
            }
        }
        let Self {
            table,
            registers,
            memory,
            ..
        } = self;
        memory.sort(|to| queue_of(table, registers, to));
        for port in 0..PORTS {
            for vc in 0..VCS {
                if self.inputs[port].ready[vc] > 0 {
                    self.look_at(port, vc, ports);
                }
            }
        }
        for vc in Memory::CHANNELS {
            self.next_of_memory(vc, ports);
        }
    }

    /// Withdraws all requests of the header at the front of `vc`.
    fn withdraw(&mut self, port: usize, vc: usize) {
        let Front::Waiting(wants) = self.inputs[port].fronts[vc] else {
            return;
        };
        let who = number(port, vc);
        let deterministic = Some((wants.out(), wants.vc()));
        let adaptive = wants.adaptive().map(|out| (out, super::vc::ADAPTIVE as u8));
        for (out, channel) in [deterministic, adaptive].into_iter().flatten() {
            let output = &mut self.outputs[usize::from(out)];
            output.wanted -= 1;
            output.forget(channel.into(), who);
        }
    }

    #[inline]
    pub(super) fn word(&self, port: usize, vc: usize, ports: &impl FlitPorts) -> u64 {
        match port {
            MEMORY => self.memory.going(vc).map_or(0, |packet| packet.header()),
            _ => ports.front(port, vc),
        }
    }

    /// The number of the destination processor, for the look-up table.
    pub(super) fn destination(&self, port: usize, vc: usize, header: &Header) -> u16 {
        let kept = self.memory.going(vc).filter(|_| port == MEMORY);
        kept.map_or_else(|| header.destination(), |packet| packet.number)
    }

    /// Whether a packet has to follow an earlier one to the memory, because requests that do not
    /// adapt must stay in order.
    #[inline]
    pub(super) fn follows_kept(&self, port: usize, header: &Header) -> bool {
        let may = self.memory.flits() > 0 && port < PROCESSOR;
        let keeps_order = !header.tag.adaptive && !header.command.is_response();
        may && keeps_order
            && self
                .names
                .of(&header.tag, false)
                .is_some_and(|number| self.memory.has_request(number))
    }

    /// Decides about a packet whose path has failed, or which must not overtake kept packets: it is
    /// kept, or discarded if its processor is unknown or absent. Returns `None` if there is no
    /// room.
    pub(super) fn keep(&mut self, who: u8, wants: Wants, header: &Header) -> Option<Front> {
        let left = wants.flits();
        let is_response = header.command.is_response();
        let Some(number) = self.names.of(&header.tag, is_response) else {
            self.counters.unroutable_packets += 1;
            return Some(Front::Discarded { left });
        };
        let is_absent = usize::from(wants.out()) == PROCESSOR && self.dead >> PROCESSOR & 1 != 0;
        let most = match is_absent {
            true => ABSENT_FLITS,
            false => MEMORY_FLITS,
        };
        if self.memory.begin(who, (number, is_response), left, most) {
            self.counters.kept_packets += 1;
            return Some(Front::Kept { left });
        }
        if is_absent {
            self.counters.abandoned_packets += 1;
            return Some(Front::Discarded { left });
        }
        None
    }

    /// Takes the packet at the front of `vc`, whose path has failed, out of the network.
    #[cold]
    pub(super) fn leave_network(&mut self, port: usize, vc: usize, wants: Wants) {
        let Ok((header, _)) = Header::parse(self.inputs[port].headers[vc]) else {
            return;
        };
        if let Some(front) = self.keep(number(port, vc), wants, &header) {
            self.withdraw(port, vc);
            self.inputs[port].fronts[vc] = front;
            self.quiet = 0;
        }
    }

    /// Moves a flit to the memory.
    pub(super) fn take_in(&mut self, port: usize, vc: usize, ports: &mut impl FlitPorts) {
        let input = &mut self.inputs[port];
        let Front::Kept { left } = &mut input.fronts[vc] else {
            return;
        };
        *left -= 1;
        let is_last = *left == 0;
        let word = ports.pop(port, vc);
        input.leave(vc, 1);
        self.moved |= 1 << port;
        self.counters.kept_flits += 1;
        let Self {
            table,
            registers,
            memory,
            ..
        } = self;
        memory.take_in(number(port, vc), word, |to| queue_of(table, registers, to));
        if is_last {
            self.next_packet(port, vc, ports);
            for vc in Memory::CHANNELS {
                self.next_of_memory(vc, ports);
            }
        }
    }

    /// Lets the next packet of the memory that has a path request an output.
    pub(super) fn next_of_memory(&mut self, vc: usize, ports: &mut impl FlitPorts) {
        if self.quiesced || self.inputs[MEMORY].fronts[vc] != Front::Unknown {
            return;
        }
        let (packets, flits) = self.memory.throw_away(vc);
        self.counters.unroutable_packets += packets;
        self.counters.discarded_flits += u64::from(flits);
        let Some(packet) = self.memory.choose(vc, self.dead) else {
            return;
        };
        let input = &mut self.inputs[MEMORY];
        input.held[vc] = packet.count().into();
        input.ready[vc] = packet.count().into();
        input.channels |= 1 << vc;
        self.ready |= 1 << MEMORY;
        self.look_at(MEMORY, vc, ports);
        self.wake();
    }
}

/// The memory queue for packets to processor `number`, which is the deterministic output of packets
/// that begin here.
fn queue_of(table: &LookUpTable, registers: &RouteRegisters, number: u16) -> usize {
    let Some(entry) = table.look_up(number) else {
        return NO_WAY;
    };
    match decide(registers, &entry.tag, Err(entry.initial)) {
        // Use the processor's queue, so that packets without a destination are discarded at once.
        Decision::Deliver | Decision::Nowhere => PROCESSOR,
        Decision::Go { deterministic, .. } => deterministic.0.index(),
    }
}
