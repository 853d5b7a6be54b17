//! Processors of the harness, which send and receive.

use std::collections::VecDeque;

use phitwire_framing::t3e::flit::{Flit, FlitKind, VCS, vc};
use phitwire_framing::t3e::header::{Command, Header, Name};
use phitwire_framing::t3e::packet::{PacketBuf, Request};

use super::{EndOfLink, Harness, Times, Transfer, WireItem};
use crate::link::{Credits, Depths};
use crate::router::{PROCESSOR, PROCESSOR_CYCLES};

/// An endless stream of requests, sent as fast as possible.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub to: u32,
    pub command: Command,
    /// Maximum number of requests without a response.
    pub outstanding: u32,
}

#[derive(Debug)]
struct Waiting {
    /// The first cycle in which the packet may be sent.
    due: u64,
    transfer: usize,
    packet: PacketBuf,
}

#[derive(Clone, Copy, Debug)]
struct PartialPacket {
    header: Header,
    first: u64,
    flits: usize,
    /// The name of the packet's transfer, once it is known.
    name: u32,
}

/// A processor with its end of the link.
#[derive(Debug)]
pub(super) struct Processor {
    credits: Credits,
    waiting: [VecDeque<Waiting>; 2],
    /// The packet being sent, and the number of its flits that have left.
    sending: Option<(PacketBuf, usize)>,
    /// The preferred class of the next packet: 1 for a response.
    turn: usize,
    /// The packets being received, by channel.
    coming: [Option<PartialPacket>; VCS],
    stream: Option<Stream>,
    outstanding: u32,
    is_active: bool,
}

const fn answer(command: Command) -> Command {
    match command {
        Command::Get1 => Command::Get1Data,
        Command::Get8 => Command::Get8Data,
        _ => Command::Done,
    }
}

impl Harness {
    /// Makes one processor send a request to another as soon as it can.
    ///
    /// # Panics
    /// If the processor does not exist.
    pub fn ask(&mut self, from: u32, to: u32, command: Command, ordered: bool) {
        let request = Request {
            address: 0,
            bytes: 8 * command.words().max(1) as u8,
            ordered,
            name: Name::new(self.transfers.len() as u32),
        };
        assert!(self.transfers.len() < 1 << Name::BITS, "names are unique");
        let ends = (from as u16, to as u16);
        let data = [0; 8];
        let waiting = Waiting {
            due: self.cycle,
            transfer: self.transfers.len(),
            packet: PacketBuf::request(command, ends, &request, &data[..command.words()]),
        };
        self.transfers.push(Transfer {
            from,
            to,
            command,
            request: Times::default(),
            response: Times::default(),
        });
        self.post(from, 0, waiting);
    }

    /// Makes a processor send an endless stream of requests.
    pub fn stream(&mut self, from: u32, stream: Stream) {
        self.processors[from as usize].stream = Some(stream);
        self.wake_processor(from);
    }

    fn post(&mut self, processor: u32, class: usize, waiting: Waiting) {
        self.processors[processor as usize].waiting[class].push_back(waiting);
        self.wake_processor(processor);
    }

    fn wake_processor(&mut self, processor: u32) {
        let is_active = &mut self.processors[processor as usize].is_active;
        if !core::mem::replace(is_active, true) {
            self.active[1].push(processor);
        }
    }

    pub(super) fn at_processor(&mut self, number: u32, what: WireItem) {
        let flit = match what {
            WireItem::Credit(vc) => {
                return self.processors[number as usize].credits.give(vc.into());
            }
            WireItem::Flit(flit) => flit,
        };
        let FlitKind::Data(vc) = flit.control.kind() else {
            return;
        };
        self.travel(
            EndOfLink::Router(number, PROCESSOR as u8),
            WireItem::Credit(vc),
            PROCESSOR_CYCLES,
        );
        if flit.control.is_head() {
            self.passes(number, None);
        }
        let coming = &mut self.processors[number as usize].coming[usize::from(vc)];
        if let Some(packet) = take(coming, flit, self.cycle) {
            self.arrived(number, packet);
        }
    }

    fn arrived(&mut self, processor: u32, packet: PartialPacket) {
        let cycle = self.cycle;
        let transfer = &mut self.transfers[packet.name as usize];
        let is_response = packet.header.command.is_response();
        let (to, times) = match is_response {
            false => (transfer.to, &mut transfer.request),
            true => (transfer.from, &mut transfer.response),
        };
        assert!(
            to == processor && times.flits == 0,
            "a packet arrives once, at its destination"
        );
        times.first = packet.first;
        times.last = cycle;
        times.flits = packet.flits as u64;
        if is_response {
            let asker = &mut self.processors[processor as usize];
            asker.outstanding = asker.outstanding.saturating_sub(1);
            if asker.stream.is_some() {
                self.wake_processor(processor);
            }
        } else {
            let command = answer(transfer.command);
            let data = [0; 8];
            let data = &data[..command.words()];
            let to = transfer.from;
            let name = Name::new(packet.name);
            let bytes = 8 * data.len() as u8;
            let waiting = Waiting {
                due: cycle + 1,
                transfer: packet.name as usize,
                packet: PacketBuf::response(command, to as u16, name, bytes, data),
            };
            self.post(processor, 1, waiting);
        }
    }

    /// Runs a cycle of a processor. Returns whether it has more work without further input.
    pub(super) fn run_processor(&mut self, number: u32) -> bool {
        let processor = &mut self.processors[number as usize];
        if let Some(stream) = processor.stream
            && processor.waiting[0].is_empty()
            && processor.outstanding < stream.outstanding
        {
            processor.outstanding += 1;
            self.ask(number, stream.to, stream.command, false);
        }
        let cycle = self.cycle;
        let processor = &mut self.processors[number as usize];
        if processor.sending.is_none()
            && let Some(class) = processor.next(cycle)
            && let Some(next) = processor.waiting[class].pop_front()
        {
            processor.turn = 1 - class;
            processor.sending = Some((next.packet, 0));
            let transfer = &mut self.transfers[next.transfer];
            let times = match class {
                0 => &mut transfer.request,
                _ => &mut transfer.response,
            };
            times.entered = cycle + PROCESSOR_CYCLES;
        }
        if let Some(flit) = processor.next_flit() {
            let to = EndOfLink::Router(number, PROCESSOR as u8);
            self.travel(to, WireItem::Flit(flit), PROCESSOR_CYCLES);
        }
        let processor = &mut self.processors[number as usize];
        let waits = processor.waiting.iter().any(|waiting| !waiting.is_empty());
        let may_ask = |stream: Stream| processor.outstanding < stream.outstanding;
        processor.is_active =
            waits || processor.sending.is_some() || processor.stream.is_some_and(may_ask);
        processor.is_active
    }
}

impl Processor {
    pub(super) fn new() -> Self {
        Self {
            credits: Credits::new(Depths::PROCESSOR.all()),
            waiting: [VecDeque::new(), VecDeque::new()],
            sending: None,
            turn: 0,
            coming: [None; VCS],
            stream: None,
            outstanding: 0,
            is_active: false,
        }
    }

    /// Whether to send a request (0) or a response (1) next.
    fn next(&self, cycle: u64) -> Option<usize> {
        let may = |class: usize| {
            let vc = vc::of(class == 1, 0);
            let front = self.waiting[class].front();
            self.credits.left(vc) > 0 && front.is_some_and(|waiting| waiting.due <= cycle)
        };
        [self.turn, 1 - self.turn]
            .into_iter()
            .find(|&class| may(class))
    }

    /// The flit to send in this cycle.
    fn next_flit(&mut self) -> Option<Flit> {
        let (packet, sent) = self.sending.as_mut()?;
        let vc = vc::of(packet.is_response(), 0);
        if self.credits.left(vc) == 0 {
            return None;
        }
        self.credits.take(vc);
        let flit = Flit::data(packet.flits()[*sent], vc, *sent == 0);
        *sent += 1;
        if *sent == packet.flits().len() {
            self.sending = None;
        }
        Some(flit)
    }
}

/// Takes a flit of a channel, and returns the packet that it completes, if any.
fn take(coming: &mut Option<PartialPacket>, flit: Flit, cycle: u64) -> Option<PartialPacket> {
    if flit.control.is_head() {
        let (header, _) = Header::parse(flit.word).ok()?;
        let begun = PartialPacket {
            header,
            first: cycle,
            flits: 0,
            name: u32::from(header.id) | u32::from(header.origin) << Name::ID_BITS,
        };
        assert!(coming.replace(begun).is_none(), "packets do not interleave");
    }
    let packet = coming.as_mut()?;
    packet.flits += 1;
    // The header of a request contains only the low bits of its name.
    if packet.flits == 2 && !packet.header.command.is_response() {
        packet.name = Request::parse(&packet.header, flit.word).name.bits();
    }
    let is_whole = packet.flits == packet.header.command.flits();
    if is_whole { coming.take() } else { None }
}
