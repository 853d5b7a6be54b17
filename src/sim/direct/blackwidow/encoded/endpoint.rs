//! A processor's ports behind link control blocks.

use phitwire_framing::packet24::{EopStatus, Vc, eop_status};
use phitwire_framing::phit24::Phit;

use super::{CYCLE, SharedTraffic, Traffic, locked};
use crate::link::{Lcb, LinkConfig, LinkPort};
use crate::node::{Node, PortId, WakeReason, Wakeup};
use crate::sim::direct::blackwidow::packet::Assembly;
use crate::sim::direct::source::NEVER;
use crate::time::Time;

/// One link of a processor: the link control block and the terminal behind it.
pub(in crate::sim::direct::blackwidow) struct Port {
    link: LinkPort<Lcb>,
    assemblies: [Assembly; 2],
    /// Number of the terminal in its partition.
    terminal: usize,
}

impl Port {
    pub(in crate::sim::direct::blackwidow) fn new(config: LinkConfig, terminal: usize) -> Self {
        Self {
            link: LinkPort::new(config, Time::ZERO),
            assemblies: [Assembly::new(), Assembly::new()],
            terminal,
        }
    }

    /// Takes what has arrived.
    fn receive(&mut self, cycle: u64, traffic: &mut Traffic) {
        let Traffic { shared, terminals } = traffic;
        for vc in Vc::ALL {
            let assembly = &mut self.assemblies[vc.index()];
            let input = self.link.input_mut();
            while input.ready(vc) {
                let phit = input.pop(vc);
                let delivery = assembly.take(phit, shared.format.seal);
                let Some(delivery) = delivery else { continue };
                if eop_status(phit.content()) == Some(EopStatus::Healthy) {
                    shared.tally.arrived_phits += u64::from(delivery.phits);
                    terminals[self.terminal].arrived(cycle, delivery, shared);
                }
                // What ended as `transmit_error` comes again.
            }
        }
        self.link.give_back();
    }

    /// Hands over the packets that are due and have room in the link.
    fn transmit(&mut self, cycle: u64, traffic: &mut Traffic) {
        let Traffic { shared, terminals } = traffic;
        let terminal = &mut terminals[self.terminal];
        let lcb = self.link.end_mut();
        loop {
            let [request, reply] = terminal.due().map(|due| due <= cycle);
            let open = |vc| lcb.is_active() && lcb.can_begin(vc);
            let may = [request && open(Vc::Request), reply && open(Vc::Response)];
            if may == [false, false] {
                return;
            }
            let Some(packet) = terminal.next_packet(may, shared) else {
                return;
            };
            let phits = packet.phits().len() as u64;
            terminal.count_sent(phits);
            shared.tally.sent_phits += phits;
            shared.tally.sent_packets += 1;
            for &bits in packet.phits() {
                lcb.push(Phit::from_bits(bits));
            }
        }
    }
}

/// A terminal as a node behind an encoded link, its only port.
pub struct Endpoint {
    port: Port,
    traffic: SharedTraffic,
    ready: bool,
}

impl Endpoint {
    pub(in crate::sim::direct::blackwidow) fn new(port: Port, traffic: SharedTraffic) -> Self {
        Self {
            port,
            traffic,
            ready: true,
        }
    }

    /// The link control block of a port.
    pub fn lcb(&self, port: PortId) -> Option<&Lcb> {
        (port == 0).then(|| self.port.link.end())
    }
}

fn cycle_of(now: Time) -> u64 {
    now.as_ps() / CYCLE.as_ps()
}

impl Node for Endpoint {
    type Event = core::convert::Infallible;

    fn ports(&self) -> usize {
        1
    }

    fn handle_frame(&mut self, now: Time, _: PortId, bytes: &[u8]) {
        self.port.link.handle_frame(now, bytes);
    }

    fn advance(&mut self, now: Time) {
        let cycle = cycle_of(now);
        let mut traffic = locked(&self.traffic);
        let port = &mut self.port;
        port.link.handle_timers(now);
        port.receive(cycle, &mut traffic);
        port.transmit(cycle, &mut traffic);
        while port.link.poll_event().is_some() {}
        self.ready = port.link.wants_to_send(now);
    }

    fn ready_ports(&self) -> u64 {
        self.ready.into()
    }

    fn poll_frame(&mut self, now: Time, _: PortId, buf: &mut [u8]) -> Option<usize> {
        self.port.link.poll_frame(now, buf)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let Port { link, terminal, .. } = &self.port;
        let lcb = link.end();
        let link = Wakeup::at(link.next_wakeup(), WakeReason::Link);
        // A packet that is due and has no room waits for credits, which come in a frame.
        let has_room = Vc::ALL.map(|vc| lcb.is_active() && lcb.can_begin(vc));
        let due = locked(&self.traffic).terminals[*terminal].due();
        let open = due.into_iter().zip(has_room).filter(|(_, room)| *room);
        let next = open.map(|(due, _)| due).min().filter(|due| *due != NEVER);
        let birth = next.map(|cycle| Wakeup {
            at: Time::ZERO + CYCLE.times(cycle),
            reason: WakeReason::Request,
        });
        Wakeup::earlier(link, birth)
    }

    fn poll_event(&mut self) -> Option<core::convert::Infallible> {
        None
    }
}
