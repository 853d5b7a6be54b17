//! Barrier and maintenance flits in a router, which are accepted at once and sent before other
//! flits. For barrier packets this follows T3E sec. 6. For maintenance packets T3E sec. 8 says only
//! that they have no flow control; their priority is phitwire's choice.

use phitwire_framing::t3e::barrier::Message;
use phitwire_framing::t3e::flit::{Control, Flit, FlitKind};
use phitwire_framing::t3e::maintenance::MaintenancePacket;

use super::maintenance::{Maintenance, Taken};
use super::ports::PORTS;
use crate::barrier::tree::Port;
use crate::barrier::{BarrierRouter, PortSet};
use crate::link::{FlitEnd, FlitInput};
use phitwire::chip::Links;
use phitwire::kit::bits;

/// How many flits a port accepts and sends per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// One each, as in a clock.
    Clock,
    /// All available flits.
    Free,
}

/// Barrier units and maintenance packets of a router, and the ports that they need.
#[derive(Debug, Default)]
pub(super) struct Urgent {
    pub barriers: BarrierRouter,
    pub maintenance: Maintenance,
    /// Words of barrier flits with a corrected bit error.
    pub corrected: u64,
    /// Ports with urgent flits to read, one bit each.
    arrived: u8,
    /// Ports whose link refused the last barrier flit, one bit each.
    blocked: u8,
    /// Ports that were read or written.
    moved: u64,
}

impl Urgent {
    /// Records that an urgent flit has arrived at `port`.
    #[inline]
    pub fn on_urgent_flit(&mut self, port: usize) {
        self.arrived |= 1 << port;
    }

    /// Records that the link of `port` may accept flits again.
    #[inline]
    pub fn unblock(&mut self, port: usize) {
        self.blocked &= !(1 << port);
    }

    /// Gives up packets on the link of `port`, which has a new session.
    pub fn cut(&mut self, port: usize) {
        self.maintenance.cut(port);
    }

    #[inline]
    fn leaving(&self) -> PortSet {
        PortSet::from_bits(self.barriers.pending_ports().bits() & !self.blocked)
    }

    /// Whether a flit can move now.
    #[inline]
    pub fn has_work(&self) -> bool {
        self.arrived != 0 || !self.leaving().is_empty() || self.maintenance.sending() != 0
    }

    /// Ports that were read or written since the last call.
    #[inline]
    pub fn take_moved(&mut self) -> u64 {
        core::mem::take(&mut self.moved)
    }

    /// Accepts arrived flits, one per port in a clock, and sends pending ones. Returns the ports by
    /// which flits left. Passes requests for this router to `execute`, which calls
    /// [`Maintenance::reply`].
    pub fn run(
        &mut self,
        pace: Pace,
        links: &mut Links<FlitEnd>,
        mut execute: impl FnMut(&mut Self, &MaintenancePacket, &Links<FlitEnd>),
    ) -> u8 {
        let mut used = 0;
        // Send packets that began here first, so that they keep their port.
        for out in bits(self.maintenance.sending().into()) {
            while let Some(flit) = self.maintenance.next_flit(out) {
                self.send(out, flit, links);
                used |= 1 << out;
                if pace == Pace::Clock {
                    break;
                }
            }
        }
        for port in bits(u64::from(self.arrived)) {
            while let Some(flit) = links.input_mut(port).and_then(FlitInput::pop_urgent) {
                self.moved |= 1 << port;
                let taken = if pace == Pace::Clock { used } else { 0 };
                if let Some(out) = self.take((port, flit), taken, links, &mut execute) {
                    debug_assert!(taken >> out & 1 == 0, "a port sends one flit per clock");
                    used |= 1 << out;
                }
                if pace == Pace::Clock {
                    break;
                }
            }
            let more = links.input(port).is_some_and(FlitInput::has_urgent);
            self.arrived &= !(u8::from(!more) << port);
        }
        for port in self.leaving().iter() {
            self.send_messages(port, pace, &mut used, links);
        }
        used
    }

    /// Handles an arrived flit. Returns the port by which it left, which is not in `used`.
    fn take(
        &mut self,
        (port, flit): (usize, Flit),
        used: u8,
        links: &mut Links<FlitEnd>,
        execute: &mut impl FnMut(&mut Self, &MaintenancePacket, &Links<FlitEnd>),
    ) -> Option<usize> {
        if flit.control.kind() == FlitKind::Barrier {
            self.take_message(Port::ALL[port], flit.word);
            return None;
        }
        match self.maintenance.take(port, flit, used) {
            Taken::Nothing => None,
            Taken::Forward(out, flit) => {
                self.send(out, flit, links);
                Some(out)
            }
            Taken::Request(packet) => {
                execute(self, &packet, links);
                None
            }
        }
    }

    /// Handles an arrived barrier message. Messages that do not fit are only counted.
    fn take_message(&mut self, from: Port, word: u64) {
        let corrected = match Message::decode(word) {
            Ok(_) => None,
            Err(_) => Message::correct(word),
        };
        let _ = match corrected {
            Some((message, _)) => {
                self.corrected += 1;
                self.barriers.receive(from, message)
            }
            None => self.barriers.receive_word(from, word),
        };
    }

    /// Sends a maintenance flit. If the link refuses it, its packet is lost.
    fn send(&mut self, out: usize, flit: Flit, links: &mut Links<FlitEnd>) {
        let taken = links.end_mut(out).is_some_and(|end| end.push_urgent(flit));
        match taken {
            true => self.moved |= 1 << out,
            false => self.maintenance.lose(out),
        }
    }

    /// Sends barrier messages by a port while its link accepts them.
    fn send_messages(&mut self, port: Port, pace: Pace, used: &mut u8, links: &mut Links<FlitEnd>) {
        let number = port.index();
        const { assert!(Port::COUNT == PORTS) };
        if pace == Pace::Clock && *used >> number & 1 != 0 {
            return;
        }
        let Some(end) = links.end_mut(number) else {
            self.blocked |= 1 << number;
            return;
        };
        while end.takes_urgent() {
            let Some(message) = self.barriers.next(port) else {
                return;
            };
            end.push_urgent(message_flit(message));
            self.moved |= 1 << number;
            *used |= 1 << number;
            if pace == Pace::Clock {
                return;
            }
        }
        self.blocked |= 1 << number;
    }
}

pub(crate) const fn message_flit(message: Message) -> Flit {
    let control = Control::barrier();
    let word = message.encode();
    Flit { word, control }
}
