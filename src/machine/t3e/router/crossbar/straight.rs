//! The way straight through, past the stages of the input and the crossbar (paper, section 7).

use super::{Crossbar, Cycle, FlitPorts, Front, STAGES, slot, vc};
use crate::machine::t3e::route::Direction;

impl Crossbar {
    /// A flit came to a channel without any: it may go past the stages and the crossbar. Whether it
    /// has gone.
    #[inline]
    pub(super) fn came_first(
        &mut self,
        port: usize,
        vc: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) -> bool {
        match self.inputs[port].fronts[vc] {
            Front::Unknown => {
                self.look_at(port, vc, ports);
                cycle.straight |= 1 << port;
                cycle.straights[port] = vc as u8;
            }
            Front::Flowing { out, vc: to, .. } if out == straight(port) => {
                let (out, to) = (usize::from(out), usize::from(to));
                let has_wires = self.outputs[out].is_held_for(to);
                let goes = has_wires && cycle.used >> out & 1 == 0 && ports.credits(out, to) > 0;
                if goes {
                    self.pass(port, vc, cycle, ports);
                }
                return goes;
            }
            _ => {}
        }
        false
    }

    /// A flit goes on that is not in the stages of its input.
    #[inline]
    fn pass(&mut self, port: usize, vc: usize, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        self.arrivals[port].take(self.cycle);
        self.in_stages -= 1;
        let input = &mut self.inputs[port];
        // The crossbar never had it.
        input.ready[vc] += 1;
        let channels = input.channels;
        self.forward(port, vc, cycle, ports);
        self.inputs[port].channels = channels;
    }

    /// A header that has just come goes straight through if nothing stands against it (section 7).
    pub(super) fn try_straight(
        &mut self,
        port: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) {
        let vc = usize::from(cycle.straights[port]);
        let Front::Waiting(wants) = self.inputs[port].fronts[vc] else {
            return;
        };
        let out = straight(port);
        let room = |vc| ports.credits(out.into(), vc);
        let is_dead = self.dead >> out & 1 != 0;
        let to = if is_dead {
            return;
        } else if wants.out() == out && room(wants.vc().into()) > 0 {
            wants.vc().into()
        } else if wants.adaptive() == Some(out) && room(vc::ADAPTIVE) >= wants.flits().into() {
            vc::ADAPTIVE
        } else {
            return;
        };
        let out = usize::from(out);
        let is_free = cycle.used >> out & 1 == 0 && ports.takes(out);
        if is_free && self.outputs[out].lets_through(to) {
            self.ripening[slot(self.cycle + STAGES[port])] &= !(1 << port);
            self.counters.straight_packets += 1;
            self.go((port, vc), wants, (out, to));
            self.pass(port, vc, cycle, ports);
        }
    }
}

/// The output straight on from an input port of the network.
#[inline]
const fn straight(port: usize) -> u8 {
    Direction::ALL[port].opposite() as u8
}
