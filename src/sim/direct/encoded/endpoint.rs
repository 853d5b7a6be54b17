//! A terminal behind a link control block.

use super::{SharedEndpoints, locked};
use crate::link::NodeLink;
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::sim::direct::endpoints::Endpoints;
use crate::sim::direct::model::{CycleModel, Terminal};
use crate::sim::direct::shared::Shared;
use crate::sim::direct::source::NEVER;
use crate::time::Time;

/// A terminal as a node behind an encoded link, its only port.
pub(crate) struct TerminalNode<M: CycleModel> {
    link: M::End,
    assemblies: M::Assemblies,
    /// Number of the terminal in its part.
    terminal: usize,
    endpoints: SharedEndpoints<M>,
    ready: bool,
}

impl<M: CycleModel> TerminalNode<M> {
    pub(super) fn new(
        config: <M::End as NodeLink>::Config,
        terminal: usize,
        endpoints: SharedEndpoints<M>,
    ) -> Self {
        Self {
            link: M::End::new(config, Time::ZERO),
            assemblies: M::Assemblies::default(),
            terminal,
            endpoints,
            ready: true,
        }
    }

    pub(super) fn end(&self, port: PortId) -> Option<&M::End> {
        (port == 0).then_some(&self.link)
    }
}

impl<M: CycleModel> Node for TerminalNode<M> {
    type Event = core::convert::Infallible;

    fn ports(&self) -> usize {
        1
    }

    fn handle_frame(&mut self, now: Time, _: PortId, bytes: &[u8]) {
        self.link.handle_frame(now, bytes);
    }

    fn advance(&mut self, now: Time) {
        let cycle = now.as_ps() / M::CYCLE.as_ps();
        let mut endpoints = locked(&self.endpoints);
        let Endpoints {
            shared, terminals, ..
        } = &mut *endpoints;
        let terminal = &mut terminals[self.terminal];
        self.link.handle_timers(now);
        let input = self.link.input_mut();
        M::receive(input, &mut self.assemblies, cycle, terminal, shared);
        self.link.give_back();
        transmit(&mut self.link, cycle, terminal, shared);
        while self.link.poll_event().is_some() {}
        self.ready = self.link.wants_to_send(now);
    }

    fn ready_ports(&self) -> u64 {
        self.ready.into()
    }

    fn poll_frame(&mut self, now: Time, _: PortId, buf: &mut [u8]) -> Option<usize> {
        self.link.poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let link = Wakeup::at(self.link.next_wakeup(), WakeReason::Link);
        let endpoints = locked(&self.endpoints);
        let terminal = &endpoints.terminals[self.terminal];
        // A due packet without room waits for credits, which arrive in a frame.
        let next = next_due(&self.link, terminal, &endpoints.shared);
        let birth = (next != NEVER).then(|| Wakeup {
            at: Time::ZERO + M::CYCLE.times(next),
            reason: WakeReason::Request,
        });
        Wakeup::earlier(link, birth)
    }

    fn poll_event(&mut self) -> Option<core::convert::Infallible> {
        None
    }
}

/// First cycles in which the next request and the next reply are due; [`NEVER`] for those that the
/// link has no room for.
fn due<M: CycleModel>(end: &M::End, terminal: &M::Terminal, shared: &Shared<M>) -> [u64; 2] {
    let [request, reply] = terminal.due(shared);
    [(request, false), (reply, true)].map(|(due, is_reply)| {
        match M::has_room(end, is_reply, shared) {
            true => due,
            false => NEVER,
        }
    })
}

/// First cycle in which a packet of the terminal is due that the link has room for; [`NEVER`] if
/// there is none.
fn next_due<M: CycleModel>(end: &M::End, terminal: &M::Terminal, shared: &Shared<M>) -> u64 {
    let [request, reply] = due(end, terminal, shared);
    request.min(reply)
}

/// Hands over the terminal's packets that are due by `cycle` and fit into the link.
fn transmit<M: CycleModel>(
    end: &mut M::End,
    cycle: u64,
    terminal: &mut M::Terminal,
    shared: &mut Shared<M>,
) {
    loop {
        let may = due(end, terminal, shared).map(|due| due <= cycle);
        if may == [false, false] {
            return;
        }
        let Some(packet) = terminal.next_packet(may, shared) else {
            return;
        };
        let phits = M::push(end, &packet);
        terminal.common_mut().sent_phits += phits;
        shared.tally.sent_phits += phits;
        shared.tally.sent_packets += 1;
    }
}
