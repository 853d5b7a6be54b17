//! Entry of flits into a crossbar.

use super::{Crossbar, Cycle, FlitPorts, Front, PROCESSOR, STAGES, slot};
use phitwire::kit::bits;

impl Crossbar {
    /// Announces a flit of `vc` that arrives at `port` in `cycle`, which has not run and is at most
    /// eight cycles ahead. The flit is already in the input.
    #[inline]
    pub fn announce(&mut self, cycle: u64, port: usize, vc: usize) {
        self.arrivals[port].announce(cycle, vc);
        self.coming[slot(cycle)] |= 1 << port;
        self.in_stages += 1;
        self.awake = true;
    }

    /// Traces an [announced](Self::announce) flit.
    pub fn watch_announced(&mut self, cycle: u64, port: usize, vc: usize) {
        self.watch_arrival(cycle, port, vc, 1);
    }

    /// Accepts flits of `vc` that have arrived at `port`. From now on they enter one by one, or all
    /// at once with the packet grain.
    pub fn enqueue(&mut self, port: usize, vc: usize, flits: u32) {
        if self.watch.is_some() {
            self.watch_arrival(self.cycle, port, vc, flits);
        }
        self.frames[port].enqueue(vc, flits);
        self.framed |= 1 << port;
        self.wake();
    }

    /// Moves flits out of and into the stages of inputs, or past both.
    #[inline]
    pub(super) fn take_arrivals(&mut self, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        if self.whole.is_some() {
            return self.take_packets(cycle, ports);
        }
        let now = self.cycle;
        for port in bits(u64::from(self.framed)) {
            self.next_of_frame(port);
        }
        for port in bits(core::mem::take(&mut self.ripening[slot(now)]).into()) {
            let vc = self.arrivals[port].take(now.wrapping_sub(STAGES[port]));
            self.in_stages -= 1;
            self.inputs[port].ripened(vc, 1);
            self.ready |= 1 << port;
            if self.inputs[port].fronts[vc] == Front::Unknown {
                self.look_at(port, vc, ports);
            }
        }
        for port in bits(core::mem::take(&mut self.coming[slot(now)]).into()) {
            let vc = self.arrivals[port].at(now);
            let input = &mut self.inputs[port];
            input.held[vc] += 1;
            if input.held[vc] == 1
                && port != PROCESSOR
                && self.try_straight_through(port, vc, cycle, ports)
            {
                continue;
            }
            self.ripening[slot(now + STAGES[port])] |= 1 << port;
        }
    }

    /// Accepts the next flit of a frame, unless another flit enters.
    fn next_of_frame(&mut self, port: usize) {
        let cycle = self.cycle;
        if self.coming[slot(cycle)] >> port & 1 == 0
            && let Some(vc) = self.frames[port].next()
        {
            self.announce(cycle, port, vc);
        }
        self.framed &= !(u8::from(!self.frames[port].any()) << port);
    }
}
