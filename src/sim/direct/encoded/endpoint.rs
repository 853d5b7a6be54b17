//! A terminal behind a link control block.

use super::{SharedTraffic, Traffic, locked};
use crate::link::{LinkControlBlock, LinkPort};
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::sim::direct::family::Parts;
use crate::sim::direct::source::NEVER;
use crate::time::Time;

/// A terminal as a node behind an encoded link, its only port.
pub struct Endpoint<F: Parts> {
    link: LinkPort<F::End>,
    assemblies: F::Assemblies,
    /// Number of the terminal in its partition.
    terminal: usize,
    traffic: SharedTraffic<F>,
    ready: bool,
}

impl<F: Parts> Endpoint<F> {
    pub(super) fn new(
        config: <F::End as LinkControlBlock>::Config,
        terminal: usize,
        traffic: SharedTraffic<F>,
    ) -> Self {
        Self {
            link: LinkPort::new(config, Time::ZERO),
            assemblies: F::Assemblies::default(),
            terminal,
            traffic,
            ready: true,
        }
    }

    /// The link end of a port.
    pub(super) fn end(&self, port: PortId) -> Option<&F::End> {
        (port == 0).then(|| self.link.end())
    }
}

impl<F: Parts> Node for Endpoint<F> {
    type Event = core::convert::Infallible;

    fn ports(&self) -> usize {
        1
    }

    fn handle_frame(&mut self, now: Time, _: PortId, bytes: &[u8]) {
        self.link.handle_frame(now, bytes);
    }

    fn advance(&mut self, now: Time) {
        let cycle = now.as_ps() / F::CYCLE.as_ps();
        let mut traffic = locked(&self.traffic);
        let Traffic { shared, terminals } = &mut *traffic;
        let terminal = &mut terminals[self.terminal];
        self.link.handle_timers(now);
        let input = self.link.input_mut();
        F::receive(input, &mut self.assemblies, cycle, terminal, shared);
        self.link.give_back();
        F::transmit(self.link.end_mut(), cycle, terminal, shared);
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
        let traffic = locked(&self.traffic);
        let terminal = &traffic.terminals[self.terminal];
        // A packet that is due and has no room waits for credits, which come in a frame.
        let next = F::next_due(self.link.end(), terminal, &traffic.shared);
        let birth = (next != NEVER).then(|| Wakeup {
            at: Time::ZERO + F::CYCLE.times(next),
            reason: WakeReason::Request,
        });
        Wakeup::earlier(link, birth)
    }

    fn poll_event(&mut self) -> Option<core::convert::Infallible> {
        None
    }
}
