//! Carries out the actions of a plan.

use super::plan::*;
use super::*;
use crate::flags::{FI_ATOMIC, FI_READ, FI_RMA, FI_WRITE};

impl Plan {
    /// Carries out the action; false if it must be tried again.
    pub fn act(&self, net: &mut Network, judge: &mut Judge, action: &Action) -> bool {
        match *action {
            Action::Compute(at, time) => {
                let end = net.now + time;
                self.endpoints(at)
                    .for_each(|at| net.nodes[at].computes_until = end);
                net.wake_at(net.now + time);
                true
            }
            Action::Cut(a, b, time) => {
                net.cuts
                    .insert((a.min(b) as u16, a.max(b) as u16), net.now + time);
                true
            }
            Action::End(at) => {
                self.endpoints(at).for_each(|at| net.leave(at));
                true
            }
            Action::Silence(at) => {
                for other in (0..self.nodes).filter(|&other| other != at) {
                    let pair = (at.min(other) as u16, at.max(other) as u16);
                    net.cuts.insert(pair, Duration::MAX);
                }
                true
            }
            Action::Send(number) => self.send(net, judge, number),
            Action::Receive(number) => self.receive(net, judge, number),
            Action::Access(number) => self.access(net, judge, number),
            Action::CloseCompanion(number) => self.close_companion(net, number),
            Action::Close(number) => self.close(net, judge, number),
            Action::Cancel(number) => self.cancel(net, judge, number),
            Action::Peek(number) => self.peek(net, judge, number),
            Action::Noise(at, ref bytes) => {
                net.noise(at, bytes);
                true
            }
        }
    }

    fn send(&self, net: &mut Network, judge: &mut Judge, number: usize) -> bool {
        let message = &self.messages[number];
        let Some(node) = net.running(message.from) else {
            return net.nodes[message.from].is_ended;
        };
        let op = Op {
            is_delivery: number.is_multiple_of(3),
            ..op(SEND | number, FI_SEND | FI_TAGGED)
        };
        let with = (Some(message.tag), Some(number as u64));
        let to = message.to as u64;
        let sent = node
            .endpoint
            .send(&mut node.shared, to, message.bytes.clone(), with, op);
        judge.begun(SEND | number, sent)
    }

    pub fn receive(&self, net: &mut Network, judge: &mut Judge, number: usize) -> bool {
        let receive = &self.receives[number];
        let from = receive.from.map(|from| net.nodes[from].endpoint.address());
        let Some(node) = net.running(receive.at) else {
            return net.nodes[receive.at].is_ended;
        };
        let posted = Posted {
            op: op(RECEIVE | number, FI_RECV | FI_TAGGED),
            into: receive.into.clone(),
            tag: receive.tag.unwrap_or(0),
            ignore: if receive.tag.is_some() { 0 } else { u64::MAX },
            from,
            multi: None,
        };
        judge.posted(number);
        node.endpoint.receive(&mut node.shared, true, posted, false);
        judge.begun(RECEIVE | number, Ok(()))
    }

    fn access(&self, net: &mut Network, judge: &mut Judge, number: usize) -> bool {
        let access = &self.accesses[number];
        if !judge.may_begin(self, number) {
            return net.nodes[access.from].is_ended;
        }
        let (base, key) = match access.kind {
            Kind::BriefRead { brief, .. } | Kind::BriefWrite { brief, .. } => {
                let brief = &self.extras.briefs[brief];
                (brief.bytes.address(), brief.key)
            }
            _ => (self.regions[access.to].address(), self.keys[access.to]),
        };
        let Some(node) = net.running(access.from) else {
            return net.nodes[access.from].is_ended;
        };
        let far = |at: usize| Far {
            number: access.to as u64,
            address: base + at as u64,
            key,
        };
        let op = |flags| op(ACCESS | number, flags);
        let memory = access.memory.clone();
        let (endpoint, shared) = (&mut node.endpoint, &mut node.shared);
        let begun = match access.kind {
            Kind::Write {
                slot, with_data, ..
            } => {
                let data = with_data.then_some(number as u64);
                let far = far(slot_at(access.from, slot));
                endpoint.write(shared, far, memory, data, op(FI_RMA | FI_WRITE))
            }
            Kind::Read { at, .. } => {
                endpoint.read(shared, far(READ_AT + at), memory, op(FI_RMA | FI_READ))
            }
            Kind::BriefWrite { .. } => {
                let far = far(Self::brief_at(access.kind));
                endpoint.write(shared, far, memory, None, op(FI_RMA | FI_WRITE))
            }
            Kind::BriefRead { .. } => {
                let far = far(Self::brief_at(access.kind));
                endpoint.read(shared, far, memory, op(FI_RMA | FI_READ))
            }
            Kind::Add | Kind::Triple => {
                let (at, number) = match access.kind {
                    Kind::Add => (ADDS, 2),
                    _ => (TRIPLES, 3),
                };
                let change = Change {
                    datatype: 7,
                    op: number,
                    form: Form::Write,
                    count: 1,
                };
                let parts = [Some(memory), None, None];
                endpoint.atomic(shared, far(at), change, parts, op(FI_ATOMIC | FI_WRITE))
            }
        };
        judge.begun(ACCESS | number, begun)
    }
}

impl Network {
    /// The program, if it can act now.
    pub fn running(&mut self, at: usize) -> Option<&mut Node> {
        let now = self.now;
        let node = &mut self.nodes[at];
        (!node.is_ended && node.computes_until <= now).then_some(node)
    }
}
