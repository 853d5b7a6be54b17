//! Discards the rest of packets that a failed link has cut.

use super::{Crossbar, FlitPorts, Front, MEMORY, VCS};

impl Crossbar {
    pub(super) fn discard(&mut self, port: usize, vc: usize, ports: &mut impl FlitPorts) {
        let input = &mut self.inputs[port];
        let Front::Discarded { left } = &mut input.fronts[vc] else {
            return;
        };
        *left -= 1;
        let is_last = *left == 0;
        match port {
            MEMORY => self.memory.take_out(vc),
            _ => ports.pop(port, vc),
        };
        input.leave(vc, 1);
        self.moved |= 1 << port;
        self.counters.discarded_flits += 1;
        if is_last {
            self.next_packet(port, vc, ports);
        }
    }

    /// Discards the rest of packets in progress to `port`, whose link went down. Packets that have
    /// not started wait.
    pub fn cut(&mut self, port: usize) {
        let started: Vec<_> = self.outputs[port].started().collect();
        for (to, who) in started {
            let (input, vc) = (usize::from(who) / VCS, usize::from(who) % VCS);
            let front = &mut self.inputs[input].fronts[vc];
            if let Front::Flowing { left, .. } = *front {
                *front = Front::Discarded { left };
                self.inputs[input].take_header(vc);
                self.counters.cut_packets += 1;
            }
            self.outputs[port].end(to);
        }
        self.wake();
    }
}
