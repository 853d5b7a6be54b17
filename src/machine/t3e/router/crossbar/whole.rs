//! Packets as a whole, where cycles have no length.

use super::{Crossbar, Cycle, Flit, FlitPorts, Front, MEMORY};

impl Crossbar {
    /// As many flits of the packet at the front of `vc`, which flows, as there are and as there is
    /// room for.
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
        cycle.used |= 1 << out;
        self.held |= 1 << out;
        self.moved |= 1 << port | 1 << out;
        self.counters.flits += u64::from(flits);
    }

    /// Packets that stand behind the one that has gone and want the same channel go as well, as long
    /// as nobody else asks for anything of that output, nor for the input: the arbiters of the next
    /// cycles would let them.
    #[inline]
    pub(super) fn follow_on(
        &mut self,
        (port, vc): (usize, usize),
        (out, to): (usize, usize),
        cycle: &mut Cycle,
        ports: &mut impl FlitPorts,
    ) {
        let is_alone = self.at_once > 1 && port != MEMORY && self.dead >> out & 1 == 0;
        while is_alone
            && self.inputs[port].channels == 1 << vc
            && let Front::Waiting(wants) = self.inputs[port].fronts[vc]
            && (usize::from(wants.out()), usize::from(wants.vc())) == (out, to)
            && wants.adaptive().is_none()
            && self.outputs[out].lets_through(to)
            && self.outputs[out].is_between_packets()
            && ports.credits(out, to) >= wants.flits().into()
            && ports.takes(out)
        {
            self.go((port, vc), wants, (out, to));
            self.forward(port, vc, cycle, ports);
        }
    }
}
