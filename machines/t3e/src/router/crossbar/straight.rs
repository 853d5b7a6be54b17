//! The path straight through, past the stages of the input and the crossbar (T3E sec. 7).

use phitwire_framing::t3e::direction::Direction;

use super::{Crossbar, Cycle, FlitPorts, Front, STAGES, slot, vc};

impl Crossbar {
    /// Lets a flit, or all flits that arrived together, at an empty channel bypass the stages and
    /// the crossbar if possible. Returns whether it has left.
    #[inline]
    pub(super) fn try_straight_through(
        &mut self,
        port: usize,
        vc: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) -> bool {
        match self.inputs[port].fronts[vc] {
            Front::Unknown | Front::Waiting(_) => {
                self.look_at(port, vc, ports);
                cycle.straight |= 1 << port;
                cycle.straights[port] = vc as u8;
            }
            Front::Flowing { out, vc: to, .. } if out == straight(port) => {
                let (out, to) = (usize::from(out), usize::from(to));
                let has_wires = self.outputs[out].is_held_for(to);
                let is_free = cycle.used >> out & 1 == 0 && self.has_time(out);
                let goes = has_wires && is_free && ports.credits(out, to) > 0;
                if goes {
                    self.pass(port, vc, cycle, ports);
                }
                return goes;
            }
            _ => {}
        }
        false
    }

    /// Forwards a flit that has not entered the stages of its input, or the arrived part of a
    /// packet.
    #[inline]
    fn pass(&mut self, port: usize, vc: usize, cycle: &mut Cycle, ports: &mut impl FlitPorts) {
        if self.whole.is_some() {
            return self.pass_whole(port, vc, cycle, ports);
        }
        self.arrivals[port].take(self.cycle);
        self.in_stages -= 1;
        let input = &mut self.inputs[port];
        // Count the flit as ready, because `forward` takes it from there. It bypasses the queue.
        input.ready[vc] += 1;
        let channels = input.channels;
        self.forward(port, vc, cycle, ports);
        self.inputs[port].channels = channels;
    }

    /// Forwards a header that has just arrived straight through if nothing blocks it (T3E sec. 7).
    /// Returns whether it has left.
    pub(super) fn try_straight(
        &mut self,
        port: usize,
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) -> bool {
        let vc = usize::from(cycle.straights[port]);
        let Front::Waiting(wants) = self.inputs[port].fronts[vc] else {
            return false;
        };
        let out = straight(port);
        let room = |vc| ports.credits(out.into(), vc);
        let is_dead = self.dead >> out & 1 != 0;
        let to = if is_dead {
            return false;
        } else if wants.out() == out && room(wants.vc().into()) >= self.least_room(wants) {
            wants.vc().into()
        } else if wants.adaptive() == Some(out) && room(vc::ADAPTIVE) >= wants.flits().into() {
            vc::ADAPTIVE
        } else {
            return false;
        };
        let out = usize::from(out);
        let is_free = cycle.used >> out & 1 == 0 && self.has_time(out) && ports.takes(out);
        let goes = is_free && self.outputs[out].lets_through(to);
        if goes {
            self.ripening[slot(self.cycle + STAGES[port])] &= !(1 << port);
            self.counters.straight_packets += 1;
            self.go((port, vc), wants, (out, to));
            self.pass(port, vc, cycle, ports);
        }
        goes
    }
}

/// The output opposite to a network port.
#[inline]
const fn straight(port: usize) -> u8 {
    Direction::ALL[port].opposite() as u8
}
