//! Maintenance packets in a router (T3E sec. 8): a network without flow control, which works even
//! if nothing else does.
//!
//! A flit leaves in the clock in which it arrives: the first flit selects the port, and the others
//! follow it. There are no buffers. If two packets need one output, the one already flowing
//! survives: "one packet eats the other and then continues". A request without remaining hops is at
//! its target, which replies; a reply without remaining hops is at its requester.

use std::collections::VecDeque;

use phitwire_framing::t3e::flit::{Control, Flit};
use phitwire_framing::t3e::maintenance::{Hop, MaintenanceHeader, MaintenanceTrail};
use phitwire_framing::t3e::maintenance::{
    MAINTENANCE_FLITS, MaintenanceCommand, MaintenancePacket, SourceRoute,
};

use super::ports::PORTS;

phitwire::counters! {
    /// Counters of a router's maintenance packets.
    pub struct MaintenanceCounters {
        /// Packets forwarded.
        forwarded,
        /// Requests sent by this router.
        requested,
        /// Replies to requests of this router.
        answered,
        /// Registers read for other routers.
        reads,
        /// Registers written for other routers.
        writes,
        /// Requests rejected: unknown or read-only register, or invalid value.
        refused,
        /// Packets eaten by another packet.
        eaten,
        /// Packets for a port whose link refused a flit.
        lost,
        /// Packets damaged beyond correction, here or earlier on their path.
        damaged,
        /// Flits with a corrected bit error.
        corrected,
        /// Replies dropped because they were not fetched.
        unexpected,
    }
}

const MAX_ANSWERS: usize = 64;
/// Number of tags, which have seven bits.
const TAGS: u8 = 128;
/// Holder number of packets that begin in this router.
const HERE: u8 = PORTS as u8;

/// State of a packet that arrives at a port.
#[derive(Clone, Copy, Debug, Default)]
enum Incoming {
    #[default]
    Nothing,
    Through(Through),
    /// A packet for this router, whose header has arrived.
    Header(MaintenanceHeader),
    /// A packet for this router, of which only the value is missing.
    Trail(MaintenanceHeader, MaintenanceTrail),
    /// Discard the rest of the packet.
    Eaten,
}

/// A packet that passes through to a port: its hop, how many of its flits have left, and the check
/// of the last one.
#[derive(Clone, Copy, Debug)]
struct Through {
    out: u8,
    hop: Hop,
    flits: u8,
    check: u16,
}

/// A packet that begins or is completed in this router: its flits, and how many have left.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    words: [u64; MAINTENANCE_FLITS],
    sent: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    Nothing,
    Forward(usize, Flit),
    /// The flit completes a request to this router.
    Request(MaintenancePacket),
}

#[derive(Debug, Default)]
pub(super) struct Maintenance {
    incoming: [Incoming; PORTS],
    /// Senders by port: an input's number, or [`HERE`].
    holders: [Option<u8>; PORTS],
    /// Packets that begin or are completed in this router, by output.
    outgoing: [Option<Outgoing>; PORTS],
    /// Outputs used by those packets, one bit each.
    sending: u8,
    next_tag: u8,
    answers: VecDeque<(u8, MaintenanceCommand, u64)>,
    pub counters: MaintenanceCounters,
}

impl Maintenance {
    /// Outputs by which packets that begin or are completed in this router send in the next clock,
    /// one bit each.
    #[inline]
    pub fn sending(&self) -> u8 {
        self.sending
    }

    /// Takes a flit that arrived at `port` in a clock in which other flits leave by the outputs
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

    /// Abandons the incomplete packet at `port`.
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

    /// Completes a packet with invalid flits that no router executes. The routers ahead have its
    /// header and reserve a port for it until its last flit.
    fn end(&mut self, through: Through) {
        let value = MaintenancePacket::spoiled_value(through.check);
        let ended = Outgoing {
            words: [0, MaintenanceTrail::spoiled(), value],
            sent: through.flits,
        };
        self.send_by(through.out.into(), ended);
    }

    /// Sends `outgoing` by `out` from the next clock on.
    fn send_by(&mut self, out: usize, outgoing: Outgoing) {
        self.holders[out] = Some(HERE);
        self.outgoing[out] = Some(outgoing);
        self.sending |= 1 << out;
    }

    /// Stops sending a packet that begins or is completed in this router by `out`.
    fn stop(&mut self, out: usize) {
        self.outgoing[out] = None;
        self.sending &= !(1 << out);
    }

    /// Gives up packets on a link that went down, in both directions.
    pub fn cut(&mut self, port: usize) {
        self.give_up(port);
        let holder = self.holders[port].take();
        self.counters.lost += u64::from(holder.is_some());
        self.release_output(port, holder);
    }

    /// Takes the output `out` from `holder`. The rest of the holder's packet is discarded.
    fn release_output(&mut self, out: usize, holder: Option<u8>) {
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
        // Do not take the port if the last flit of another packet has the wires in this clock.
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
                // Complete the packet: the routers ahead reserve a port until its last flit.
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

    /// Handles a packet whose path ends at this router.
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

    /// Gives up a packet because the link of `out` refused a flit of it.
    pub fn lose(&mut self, out: usize) {
        // No holder means that it was the last flit.
        let holder = self.holders[out].take();
        self.counters.lost += 1;
        self.release_output(out, holder);
    }

    /// Sends the reply to an executed request.
    pub fn reply(&mut self, request: &MaintenancePacket, command: MaintenanceCommand, value: u64) {
        match (command, request.command) {
            (MaintenanceCommand::Done, MaintenanceCommand::Write) => self.counters.writes += 1,
            (MaintenanceCommand::Done, _) => self.counters.reads += 1,
            _ => self.counters.refused += 1,
        }
        let reply = request.reply(command, value);
        self.set_out(reply);
    }

    /// Sends a packet that begins in this router.
    fn set_out(&mut self, packet: MaintenancePacket) {
        let mut words = packet.words();
        // Parsing cannot fail here, because a packet that begins here is undamaged.
        let Some((mut header, _)) = MaintenanceHeader::parse(words[0]) else {
            return;
        };
        let Some(hop) = header.step() else {
            // A reply to this router's request to itself.
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

    /// The next flit of a packet that begins or is completed in this router and leaves by `out`.
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

    /// Sends a request to the router at the end of `way`, or returns the request if that is this
    /// router. Also returns its tag.
    pub fn request(
        &mut self,
        way: SourceRoute,
        register: u16,
        write: Option<u64>,
    ) -> (u8, Option<MaintenancePacket>) {
        let tag = self.next_tag;
        self.next_tag = (tag + 1) % TAGS;
        // The reply to an earlier request with this tag was never fetched.
        self.answers.retain(|(old, ..)| *old != tag);
        self.counters.requested += 1;
        let packet = MaintenancePacket::request(way, tag, register, write);
        if way == SourceRoute::default() {
            return (tag, Some(packet));
        }
        self.set_out(packet);
        (tag, None)
    }

    /// The reply to a request, once it has arrived.
    pub fn answer(&mut self, tag: u8) -> Option<(MaintenanceCommand, u64)> {
        let at = self.answers.iter().position(|(of, ..)| *of == tag)?;
        let (_, command, value) = self.answers.remove(at)?;
        Some((command, value))
    }
}

const fn flit(word: u64, at: usize) -> Flit {
    let control = Control::maintenance(at == 0);
    Flit { word, control }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::direction::Direction;

    /// A packet that never ends would eat every packet from another port.
    #[test]
    fn a_packet_that_is_damaged_on_its_way_keeps_no_port_ahead() {
        let way = SourceRoute([2, 0, 0, 0, 0, 0]);
        let mut words = MaintenancePacket::request(way, 0, 1, Some(5)).words();
        words[1] ^= 3;
        let (out, from) = (Direction::PlusX.index(), Direction::MinusX.index());
        let mut routers = [Maintenance::default(), Maintenance::default()];
        let mut target = Maintenance::default();
        for (at, word) in words.into_iter().enumerate() {
            let mut next = flit(word, at);
            for router in &mut routers {
                let Taken::Forward(port, passed) = router.take(from, next, 0) else {
                    panic!("flit {at} is not forwarded");
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

    /// The rest of a packet never arrives if the session of its link has ended. The routers ahead
    /// reserve a port until they have all of it, and no router executes the added flits.
    #[test]
    fn packets_cut_by_a_session_end_are_ended_for_the_next_routers() {
        let way = SourceRoute([2, 0, 0, 0, 0, 0]);
        let (out, from) = (Direction::PlusX.index(), Direction::MinusX.index());
        for write in [0, 1, 5, 0x4000_0000_0000_0003, u64::MAX] {
            let words = MaintenancePacket::request(way, 0, 1, Some(write)).words();
            for came in 1..MAINTENANCE_FLITS {
                let (mut router, mut next) = (Maintenance::default(), Maintenance::default());
                let mut target = Maintenance::default();
                let mut pass = |passed: Flit| {
                    let Taken::Forward(_, passed) = next.take(from, passed, 0) else {
                        panic!("the flit is not forwarded");
                    };
                    assert!(matches!(target.take(from, passed, 0), Taken::Nothing));
                };
                for (at, word) in words.into_iter().enumerate().take(came) {
                    let Taken::Forward(_, passed) = router.take(from, flit(word, at), 0) else {
                        panic!("flit {at} is not forwarded");
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
