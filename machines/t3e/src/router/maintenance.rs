//! Maintenance packets in a router (paper, section 8): a network without flow control, which works
//! when nothing else does.
//!
//! A flit goes on in the clock in which it comes: the first names the port, the others follow it.
//! There are no buffers. Where two packets want one output, the one that flows there survives; "one
//! packet eats the other and then continues". A packet whose hops are gone is at its target, which
//! replies; a reply is for who asked here.

use std::collections::VecDeque;

use super::ports::PORTS;
use crate::format::maintenance::{Hop, MaintenanceHeader, MaintenanceTrail};
use crate::format::{Control, Flit, MAINTENANCE_FLITS, MaintenanceCommand, MaintenancePacket, Way};

phitwire::counters! {
    /// What a router counts of maintenance packets.
    pub struct MaintenanceCounters {
        /// Packets passed on.
        forwarded,
        /// Requests that began here.
        requested,
        /// Replies that came for who asked here.
        answered,
        /// Registers read for others.
        reads,
        /// Registers written for others.
        writes,
        /// Requests for what there is not.
        refused,
        /// Packets eaten by one that was flowing.
        eaten,
        /// Packets for a port whose link took no flit.
        lost,
        /// Packets that more was wrong with than can be corrected, here or on their way.
        damaged,
        /// Flits with a bit that was wrong and was corrected.
        corrected,
        /// Replies that nobody here waits for any more.
        unexpected,
    }
}

/// Replies that are kept for whoever asked.
const MAX_ANSWERS: usize = 64;
/// Tags are of seven bits.
const TAGS: u8 = 128;
/// The sender of what begins here, among the ports of an output's holders.
const HERE: u8 = PORTS as u8;

/// What comes in at a port.
#[derive(Clone, Copy, Debug, Default)]
enum Incoming {
    /// No packet.
    #[default]
    Nothing,
    Through(Through),
    /// One for this router, of which the header has come, or both flits before the value.
    Header(MaintenanceHeader),
    Trail(MaintenanceHeader, MaintenanceTrail),
    /// One of which nothing more is wanted.
    Eaten,
}

/// A packet that goes on by a port: its hop, how many of its flits have gone, and the check of the
/// last one.
#[derive(Clone, Copy, Debug)]
struct Through {
    out: u8,
    hop: Hop,
    flits: u8,
    check: u16,
}

/// What begins here, or is ended here: its flits, and how many have gone.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    words: [u64; MAINTENANCE_FLITS],
    sent: u8,
}

/// What a flit comes to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    Nothing,
    /// It leaves by this port.
    Forward(usize, Flit),
    /// It was the last one of a request to this router.
    Request(MaintenancePacket),
}

/// The maintenance packets of a router.
#[derive(Debug, Default)]
pub(super) struct Maintenance {
    incoming: [Incoming; PORTS],
    /// Who flows by each port: an input's number, or [`HERE`].
    holders: [Option<u8>; PORTS],
    /// By output, and outputs with any, one bit each.
    outgoing: [Option<Outgoing>; PORTS],
    sending: u8,
    next_tag: u8,
    answers: VecDeque<(u8, MaintenanceCommand, u64)>,
    pub counters: MaintenanceCounters,
}

impl Maintenance {
    /// Outputs by which something of its own leaves in the next clock, one bit each.
    #[inline]
    pub fn sending(&self) -> u8 {
        self.sending
    }

    /// Takes a flit that has come at `port` in a clock in which other flits leave by the outputs
    /// `used`, one bit each.
    pub fn take(&mut self, port: usize, flit: Flit, used: u8) -> Taken {
        if flit.control.is_head() {
            self.give_up(port);
            return self.begin(port, flit.word, used);
        }
        match self.incoming[port] {
            Incoming::Nothing | Incoming::Eaten => Taken::Nothing,
            Incoming::Through(through) => self.follow(port, through, flit),
            Incoming::Header(header) => {
                self.incoming[port] = match self.trail(flit.word) {
                    Some(trail) => Incoming::Trail(header, trail),
                    None => Incoming::Eaten,
                };
                Taken::Nothing
            }
            Incoming::Trail(header, trail) => {
                self.incoming[port] = Incoming::Nothing;
                let packet = MaintenancePacket::assemble(header, trail, flit.word);
                let Some((packet, corrected)) = packet else {
                    self.counters.damaged += 1;
                    return Taken::Nothing;
                };
                self.counters.corrected += u64::from(corrected);
                self.arrive(packet)
            }
        }
    }

    /// What came before at `port` is not finished and never will be.
    fn give_up(&mut self, port: usize) {
        match core::mem::take(&mut self.incoming[port]) {
            Incoming::Nothing | Incoming::Eaten => {}
            Incoming::Through(through) => {
                self.end(through);
                self.counters.damaged += 1;
            }
            Incoming::Header(_) | Incoming::Trail(..) => self.counters.damaged += 1,
        }
    }

    /// The rest of a packet is made up, as one that nobody carries out: the routers ahead have its
    /// header, and keep a port for it until its last flit.
    fn end(&mut self, through: Through) {
        let value = MaintenancePacket::spoiled_value(through.check);
        let ended = Outgoing {
            words: [0, MaintenanceTrail::spoiled(), value],
            sent: through.flits,
        };
        self.send_by(through.out.into(), ended);
    }

    /// What begins or ends here flows by `out` from the next clock on.
    fn send_by(&mut self, out: usize, outgoing: Outgoing) {
        self.holders[out] = Some(HERE);
        self.outgoing[out] = Some(outgoing);
        self.sending |= 1 << out;
    }

    /// Nothing that begins or ends here leaves by `out` any more.
    fn stop(&mut self, out: usize) {
        self.outgoing[out] = None;
        self.sending &= !(1 << out);
    }

    /// A link went down: no more comes of what was under way by it, and nothing leaves.
    pub fn cut(&mut self, port: usize) {
        self.give_up(port);
        let holder = self.holders[port].take();
        self.counters.lost += u64::from(holder.is_some());
        self.let_go(port, holder);
    }

    /// Whoever had the output `out` has not, and nothing more of its packet leaves.
    fn let_go(&mut self, out: usize, holder: Option<u8>) {
        match holder {
            Some(HERE) => self.stop(out),
            Some(port) => self.incoming[usize::from(port)] = Incoming::Eaten,
            None => {}
        }
    }

    fn begin(&mut self, port: usize, word: u64, used: u8) -> Taken {
        let Some((mut header, corrected)) = MaintenanceHeader::parse(word) else {
            self.counters.damaged += 1;
            self.incoming[port] = Incoming::Eaten;
            return Taken::Nothing;
        };
        self.counters.corrected += u64::from(corrected);
        let Some(hop) = header.step() else {
            self.incoming[port] = Incoming::Header(header);
            return Taken::Nothing;
        };
        let out = hop.direction().index();
        // The last flit of another packet has the wires in this clock, too.
        if self.holders[out].is_some() || used >> out & 1 != 0 {
            self.counters.eaten += 1;
            self.incoming[port] = Incoming::Eaten;
            return Taken::Nothing;
        }
        self.holders[out] = Some(port as u8);
        self.incoming[port] = Incoming::Through(Through {
            out: out as u8,
            hop,
            flits: 1,
            check: header.check,
        });
        Taken::Forward(out, flit(header.emit(), 0))
    }

    fn follow(&mut self, port: usize, through: Through, came: Flit) -> Taken {
        let Through {
            out, hop, flits, ..
        } = through;
        let mut word = came.word;
        if flits == 1 {
            word = match self.trail(word) {
                Some(mut trail) => {
                    trail.step(hop);
                    trail.emit()
                }
                // The routers ahead have its header, and keep a port for it until its last flit.
                None => MaintenanceTrail::spoiled(),
            };
        }
        let next = flits + 1;
        if usize::from(next) == MAINTENANCE_FLITS {
            self.incoming[port] = Incoming::Nothing;
            self.holders[usize::from(out)] = None;
            self.counters.forwarded += 1;
        } else {
            self.incoming[port] = Incoming::Through(Through {
                flits: next,
                ..through
            });
        }
        Taken::Forward(out.into(), flit(word, flits.into()))
    }

    fn trail(&mut self, word: u64) -> Option<MaintenanceTrail> {
        let trail = MaintenanceTrail::parse(word);
        match trail {
            Some((_, corrected)) => self.counters.corrected += u64::from(corrected),
            None => self.counters.damaged += 1,
        }
        trail.map(|(trail, _)| trail)
    }

    /// A packet has no hops left.
    fn arrive(&mut self, packet: MaintenancePacket) -> Taken {
        if !packet.command.is_reply() {
            return Taken::Request(packet);
        }
        self.counters.answered += 1;
        self.keep(packet.tag, packet.command, packet.value);
        Taken::Nothing
    }

    fn keep(&mut self, tag: u8, command: MaintenanceCommand, value: u64) {
        if self.answers.len() == MAX_ANSWERS {
            self.answers.pop_front();
            self.counters.unexpected += 1;
        }
        self.answers.push_back((tag, command, value));
    }

    /// The link of the port took no flit: the packet is lost.
    pub fn lose(&mut self, out: usize) {
        // If nobody has it, it was the last flit.
        let holder = self.holders[out].take();
        self.counters.lost += 1;
        self.let_go(out, holder);
    }

    /// A request has been carried out; its reply sets out.
    pub fn reply(&mut self, request: &MaintenancePacket, command: MaintenanceCommand, value: u64) {
        match (command, request.command) {
            (MaintenanceCommand::Done, MaintenanceCommand::Write) => self.counters.writes += 1,
            (MaintenanceCommand::Done, _) => self.counters.reads += 1,
            _ => self.counters.refused += 1,
        }
        let reply = request.reply(command, value);
        self.set_out(reply);
    }

    /// A packet begins here.
    fn set_out(&mut self, packet: MaintenancePacket) {
        let mut words = packet.words();
        // No packet of our own is damaged.
        let Some((mut header, _)) = MaintenanceHeader::parse(words[0]) else {
            return;
        };
        let Some(hop) = header.step() else {
            // To ourselves.
            self.counters.answered += 1;
            self.keep(packet.tag, packet.command, packet.value);
            return;
        };
        let out = hop.direction().index();
        if self.holders[out].is_some() {
            self.counters.eaten += 1;
            return;
        }
        let mut trail = MaintenanceTrail {
            gone: packet.gone,
            register: packet.register,
        };
        trail.step(hop);
        words[0] = header.emit();
        words[1] = trail.emit();
        self.send_by(out, Outgoing { words, sent: 0 });
    }

    /// The next flit of what begins or ends here and leaves by `out`.
    pub fn next_flit(&mut self, out: usize) -> Option<Flit> {
        let own = self.outgoing[out].as_mut()?;
        let at = usize::from(own.sent);
        let next = flit(own.words[at], at);
        own.sent += 1;
        if usize::from(own.sent) == MAINTENANCE_FLITS {
            self.stop(out);
            self.holders[out] = None;
        }
        Some(next)
    }

    /// A request for the router at the end of `way` sets out, or is this router's own. Answers its
    /// tag.
    pub fn request(
        &mut self,
        way: Way,
        register: u16,
        write: Option<u64>,
    ) -> (u8, Option<MaintenancePacket>) {
        let tag = self.next_tag;
        self.next_tag = (tag + 1) % TAGS;
        // What an earlier one with the tag was told, nobody has asked for.
        self.answers.retain(|(old, ..)| *old != tag);
        self.counters.requested += 1;
        let packet = MaintenancePacket::request(way, tag, register, write);
        if way == Way::default() {
            return (tag, Some(packet));
        }
        self.set_out(packet);
        (tag, None)
    }

    /// The reply to a request, if it has come.
    pub fn answer(&mut self, tag: u8) -> Option<(MaintenanceCommand, u64)> {
        let at = self.answers.iter().position(|(of, ..)| *of == tag)?;
        let (_, command, value) = self.answers.remove(at)?;
        Some((command, value))
    }
}

/// Flit number `at` of a packet.
const fn flit(word: u64, at: usize) -> Flit {
    let control = Control::maintenance(at == 0);
    Flit { word, control }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Direction;

    /// Whoever comes after it by another port would be eaten by what never ends.
    #[test]
    fn a_packet_that_is_damaged_on_its_way_keeps_no_port_ahead() {
        let way = Way([2, 0, 0, 0, 0, 0]);
        let mut words = MaintenancePacket::request(way, 0, 1, Some(5)).words();
        words[1] ^= 3;
        let (out, from) = (Direction::PlusX.index(), Direction::MinusX.index());
        let mut routers = [Maintenance::default(), Maintenance::default()];
        let mut target = Maintenance::default();
        for (at, word) in words.into_iter().enumerate() {
            let mut next = flit(word, at);
            for router in &mut routers {
                let Taken::Forward(port, passed) = router.take(from, next, 0) else {
                    panic!("flit {at} goes on");
                };
                assert_eq!(port, out);
                next = passed;
            }
            assert!(matches!(target.take(from, next, 0), Taken::Nothing));
        }
        for router in routers.iter().chain([&target]) {
            assert_eq!(router.holders, [None; PORTS]);
            assert_eq!(router.counters.damaged, 1);
        }
        let other = MaintenancePacket::request(way, 1, 1, None).words();
        let passed = routers[1].take(Direction::MinusY.index(), flit(other[0], 0), 0);
        assert!(matches!(passed, Taken::Forward(port, _) if port == out));
        assert_eq!(routers[1].counters.eaten, 0);
    }

    /// The rest of a packet whose link ended its session never comes. The routers ahead keep a port
    /// for it until they have all of it, and nobody carries out what they get instead.
    #[test]
    fn what_a_session_cuts_off_is_ended_for_the_routers_ahead() {
        let way = Way([2, 0, 0, 0, 0, 0]);
        let (out, from) = (Direction::PlusX.index(), Direction::MinusX.index());
        for write in [0, 1, 5, 0x4000_0000_0000_0003, u64::MAX] {
            let words = MaintenancePacket::request(way, 0, 1, Some(write)).words();
            for came in 1..MAINTENANCE_FLITS {
                let (mut router, mut next) = (Maintenance::default(), Maintenance::default());
                let mut target = Maintenance::default();
                let mut pass = |passed: Flit| {
                    let Taken::Forward(_, passed) = next.take(from, passed, 0) else {
                        panic!("it goes on");
                    };
                    assert!(matches!(target.take(from, passed, 0), Taken::Nothing));
                };
                for (at, word) in words.into_iter().enumerate().take(came) {
                    let Taken::Forward(_, passed) = router.take(from, flit(word, at), 0) else {
                        panic!("flit {at} goes on");
                    };
                    pass(passed);
                }
                router.cut(from);
                assert_eq!(router.sending(), 1 << out);
                while let Some(made_up) = router.next_flit(out) {
                    pass(made_up);
                }
                for ended in [&router, &next, &target] {
                    assert_eq!(ended.holders, [None; PORTS], "{came} flits of {write:#x}");
                    assert!(matches!(
                        ended.incoming[from],
                        Incoming::Nothing | Incoming::Eaten
                    ));
                }
                assert_eq!(target.counters.damaged, 1);
            }
        }
    }
}
