//! The packet grain: packets pass the same inputs, arbiters and outputs as flits, but each passes
//! in one cycle with as many of its flits as have arrived.
//!
//! Behind a paced clock, a packet holds wires and paths for one cycle per flit and, unless it goes
//! straight through, stays in the stages of its input as long as a flit does. Behind a free-running
//! clock neither takes time.

use std::collections::VecDeque;

use super::{
    Crossbar, Cycle, Flit, FlitPorts, Front, INPUTS, MEMORY, PORTS, PROCESSOR, STAGES, Wants,
};
use phitwire::kit::bits;

/// State of a crossbar of the packet grain.
#[derive(Debug, Default)]
pub(super) struct Whole {
    is_timed: bool,
    /// By port: the channel, and the flits that arrived there while it was empty. They may bypass
    /// the input stage; no other flits enter until that is decided.
    fresh: [(u8, u16); PORTS],
    fresh_ports: u8,
    /// Contents of the input stages: the cycle in which they are ready, the channel, and the number
    /// of flits.
    stages: [VecDeque<(u64, u8, u16)>; PORTS],
    /// Cycle until which a packet holds the wires of each output.
    wires: [u64; PORTS],
    /// Cycle until which a packet holds the path of each input.
    paths: [u64; INPUTS],
}

impl Crossbar {
    /// Lets packets move as a whole. A packet keeps the wires anyway until it has no flit to send,
    /// ends or is blocked (T3E sec. 7). If `is_timed`, each packet takes a cycle per flit.
    #[must_use]
    pub fn with_whole_packets(mut self, is_timed: bool) -> Self {
        self.whole = Some(Box::new(Whole {
            is_timed,
            ..Whole::default()
        }));
        self
    }

    pub(super) fn is_timed(&self) -> bool {
        self.whole.as_ref().is_none_or(|whole| whole.is_timed)
    }

    /// Whether no packet of an earlier cycle still holds the wires of an output.
    #[inline]
    pub(super) fn has_time(&self, out: usize) -> bool {
        let whole = self.whole.as_ref();
        whole.is_none_or(|whole| whole.wires[out] <= self.cycle)
    }

    /// Whether no packet of an earlier cycle still holds the path of an input.
    #[inline]
    pub(super) fn has_path(&self, port: usize) -> bool {
        let whole = self.whole.as_ref();
        whole.is_none_or(|whole| whole.paths[port] <= self.cycle)
    }

    /// Credits that a packet needs to begin on a deterministic channel. Whole packets never stop
    /// halfway for lack of credits, so new tables apply to all packets that wait in a jam.
    #[inline]
    pub(super) fn least_room(&self, wants: Wants) -> u32 {
        match self.whole {
            None => 1,
            Some(_) => wants.flits().into(),
        }
    }

    /// Moves packets out of and into the input stages, or past both.
    pub(super) fn take_packets(&mut self, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        if self.in_stages != 0 && self.is_timed() {
            self.ripen(ports);
        }
        let fresh = self.whole.as_ref().map_or(0, |whole| whole.fresh_ports);
        for port in bits(u64::from(self.framed | fresh)) {
            if !self.has_path(port) {
                continue;
            }
            let is_alone = match fresh >> port & 1 != 0 {
                // These flits follow packets that went straight through.
                true => true,
                false => self.next_of_channel(port) && port != PROCESSOR,
            };
            let vc = self.fresh_channel(port);
            let goes = is_alone && self.try_straight_through(port, vc, cycle, ports);
            if !goes && cycle.straight >> port & 1 == 0 {
                self.enter_stages(port, ports);
            }
        }
    }

    /// Accepts the next flits of one channel in a frame. Returns whether the channel was empty.
    fn next_of_channel(&mut self, port: usize) -> bool {
        let next = self.frames[port].take();
        self.framed &= !(u8::from(!self.frames[port].any()) << port);
        let Some((vc, flits)) = next else {
            return false;
        };
        let was_empty = self.inputs[port].held[vc] == 0;
        self.inputs[port].held[vc] += flits;
        self.put_fresh(port, vc, flits);
        was_empty
    }

    fn fresh_channel(&self, port: usize) -> usize {
        let whole = self.whole.as_ref();
        whole.map_or(0, |whole| whole.fresh[port].0.into())
    }

    fn put_fresh(&mut self, port: usize, vc: usize, flits: u16) {
        if let Some(whole) = self.whole.as_mut().filter(|_| flits != 0) {
            whole.fresh[port] = (vc as u8, flits);
            whole.fresh_ports |= 1 << port;
            self.in_stages += 1;
        }
    }

    fn take_fresh(&mut self, port: usize) -> Option<(usize, u16)> {
        let whole = self.whole.as_mut()?;
        let is_there = whole.fresh_ports >> port & 1 != 0;
        whole.fresh_ports &= !(1 << port);
        self.in_stages -= u32::from(is_there);
        let (vc, flits) = whole.fresh[port];
        is_there.then_some((vc.into(), flits))
    }

    /// Moves newly arrived flits of a port into its stages.
    pub(super) fn enter_stages(&mut self, port: usize, ports: &mut impl FlitPorts) {
        let Some((vc, flits)) = self.take_fresh(port) else {
            return;
        };
        match self.whole.as_mut().filter(|whole| whole.is_timed) {
            Some(whole) => {
                let ripe = self.cycle + STAGES[port];
                whole.stages[port].push_back((ripe, vc as u8, flits));
                self.in_stages += 1;
            }
            None => self.is_ripe(port, vc, flits, ports),
        }
    }

    fn ripen(&mut self, ports: &mut impl FlitPorts) {
        for port in 0..PORTS {
            while let Some(whole) = &mut self.whole
                && let Some(&(ripe, vc, flits)) = whole.stages[port].front()
                && ripe <= self.cycle
            {
                whole.stages[port].pop_front();
                self.in_stages -= 1;
                self.is_ripe(port, vc.into(), flits, ports);
            }
        }
    }

    fn is_ripe(&mut self, port: usize, vc: usize, flits: u16, ports: &mut impl FlitPorts) {
        self.inputs[port].ripened(vc, flits);
        self.ready |= 1 << port;
        if self.inputs[port].fronts[vc] == Front::Unknown {
            self.look_at(port, vc, ports);
        }
    }

    /// Forwards the arrived part of a packet that is not in the stages of its input.
    pub(super) fn pass_whole(
        &mut self,
        port: usize,
        vc: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) {
        let flits = self.take_fresh(port).map_or(0, |(_, flits)| flits);
        let input = &mut self.inputs[port];
        // Count the flits as ready, because `forward` takes them from there. They bypass the queue.
        input.ready[vc] += flits;
        let channels = input.channels;
        self.forward(port, vc, cycle, ports);
        let input = &mut self.inputs[port];
        input.channels = channels;
        let rest = core::mem::take(&mut input.ready[vc]);
        self.put_fresh(port, vc, rest);
    }

    /// Forwards as many flits of the flowing packet at the front of `vc` as are ready and have
    /// credits.
    #[inline]
    pub(super) fn forward_many(
        &mut self,
        port: usize,
        vc: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) {
        let input = &mut self.inputs[port];
        let Front::Flowing { out, vc: to, left } = &mut input.fronts[vc] else {
            return;
        };
        let (out, to) = (usize::from(*out), usize::from(*to));
        let flits = input.ready[vc].min((*left).into());
        let flits = ports.credits(out, to).min(flits.into()) as u8;
        *left -= flits;
        let header = input.take_header(vc);
        input.leave(vc, flits.into());
        if port == MEMORY {
            let mut header = header;
            for _ in 0..flits {
                let (word, is_head) = (self.memory.take_out(vc), header.is_some());
                let word = header.take().unwrap_or(word);
                ports.push(out, to, Flit::data(word, to, is_head));
            }
        } else {
            ports.transfer((port, vc), (out, to), header, flits.into());
        }
        if let Some(whole) = self.whole.as_mut().filter(|whole| whole.is_timed) {
            let until = self.cycle + u64::from(flits);
            (whole.wires[out], whole.paths[port]) = (until, until);
        }
        cycle.used |= 1 << out;
        self.held |= 1 << out;
        self.moved |= 1 << port | 1 << out;
        self.counters.flits += u64::from(flits);
    }
}
