//! Conversion of transfers to and from packets.

use phitwire_framing::t3e::check::DataCheck;
use phitwire_framing::t3e::flit::{VCS, vc};
use phitwire_framing::t3e::header::{Command, Header, Name};
use phitwire_framing::t3e::packet::{MAX_PACKET_FLITS, PacketBuf, Request};

use crate::link::FlitEnd;
#[cfg(test)]
use crate::link::sabotage;
use phitwire::link::NodeLink as _;
use phitwire::nic::{Abilities, RoutingMode};
use phitwire::packets::transfer::{Kind, MAX_DATA, Transfer};
use phitwire::packets::{Arrival, TransferEnd, TransferNicCounters};

/// The command of a transfer that carries or requests `len` bytes.
const fn command(kind: Kind, len: u8) -> Command {
    match kind {
        Kind::Put if len <= 8 => Command::Put1,
        Kind::Put => Command::Put8,
        Kind::Get if len <= 8 => Command::Get1,
        Kind::Get => Command::Get8,
        Kind::Increment => Command::FetchIncrement,
        Kind::Add => Command::FetchAdd,
        Kind::CompareSwap => Command::CompareSwap,
        Kind::MaskedSwap => Command::MaskedSwap,
        Kind::Message => Command::Message,
        Kind::Done if len == 0 => Command::Done,
        Kind::Done if len <= 8 => Command::Get1Data,
        Kind::Done => Command::Get8Data,
        Kind::Refused => Command::Refused,
        Kind::Damaged => Command::Damaged,
    }
}

const fn kind(command: Command) -> Kind {
    match command {
        Command::Put1 | Command::Put8 => Kind::Put,
        Command::Get1 | Command::Get8 => Kind::Get,
        Command::Message => Kind::Message,
        Command::FetchIncrement => Kind::Increment,
        Command::FetchAdd => Kind::Add,
        Command::CompareSwap => Kind::CompareSwap,
        Command::MaskedSwap => Kind::MaskedSwap,
        Command::Get1Data | Command::Get8Data | Command::Fetched | Command::Done => Kind::Done,
        Command::Refused => Kind::Refused,
        Command::Damaged => Kind::Damaged,
    }
}

const fn channel(command: Command) -> usize {
    match command.is_response() {
        true => vc::RESPONSE,
        false => vc::REQUEST,
    }
}

fn packet(transfer: &Transfer) -> PacketBuf {
    let command = command(transfer.kind, transfer.len);
    let words: [u64; MAX_DATA / 8] = core::array::from_fn(|word| transfer.word(word));
    let data = &words[..command.words()];
    let name = Name::new(transfer.name as u32);
    if command.is_response() {
        return PacketBuf::response(command, transfer.to, name, transfer.len, data);
    }
    let request = Request {
        address: transfer.address,
        bytes: transfer.len.max(1),
        ordered: transfer.ordered,
        name,
    };
    PacketBuf::request(command, (transfer.from, transfer.to), &request, data)
}

/// The transfer in a packet with a readable header; its data may still be wrong.
fn transfer(header: &Header, flits: &[u64]) -> Arrival {
    let command = header.command;
    let (before, data) = flits.split_at(command.header_flits());
    let mut transfer = Transfer::new(0, kind(command), 0);
    transfer = transfer.with_words(data);
    if command.is_response() {
        transfer.name = u64::from(header.id) | u64::from(header.origin) << Name::ID_BITS;
        let bytes = PacketBuf::response_bytes(header, flits[1]);
        transfer.len = transfer.len.min(bytes);
    } else {
        let request = Request::parse(header, before[1]);
        transfer.from = header.origin;
        transfer.address = request.address;
        transfer.name = request.name.bits().into();
        transfer.ordered = request.ordered;
        match transfer.kind {
            Kind::Get => transfer.len = request.bytes,
            Kind::Put => transfer.len = request.bytes.min(transfer.len),
            _ => {}
        }
    }
    let is_whole = DataCheck::of(&flits[1..]) == header.data_check;
    #[cfg(test)]
    let is_whole = is_whole || sabotage::is(sabotage::Sabotage::WrongWordsPass);
    match is_whole {
        true => Arrival::Whole(transfer),
        false => Arrival::Damaged(transfer),
    }
}

/// Transfers as packets of flits.
#[derive(Debug, Default)]
pub struct FlitTransfers;

impl TransferEnd for FlitTransfers {
    type Link = FlitEnd;
    type Counters = TransferNicCounters;

    const CHANNELS: usize = VCS;
    const ABILITIES: Abilities = Abilities {
        max_size: MAX_DATA as u32,
        get_unit: 8,
        atomics: true,
        ways: &[RoutingMode::Adaptive0, RoutingMode::Ordered],
    };
    const NAME_BITS: u32 = Name::BITS;
    const MESSAGES: bool = true;

    fn front(
        &mut self,
        link: &mut FlitEnd,
        channel: usize,
        _: &mut TransferNicCounters,
    ) -> Option<Arrival> {
        let buffer = link.input().buffer();
        let held = buffer.len(channel);
        if held == 0 {
            return None;
        }
        let Ok((header, _)) = Header::parse(buffer.front(channel)) else {
            return Some(Arrival::NoTransfer);
        };
        let count = header.command.flits();
        if (held as usize) < count {
            return None;
        }
        let mut flits = [0; MAX_PACKET_FLITS];
        for (at, flit) in (0..).zip(&mut flits[..count]) {
            *flit = buffer.get(channel, at);
        }
        Some(transfer(&header, &flits[..count]))
    }

    fn pop(&mut self, link: &mut FlitEnd, channel: usize) {
        let input = link.input_mut();
        let header = Header::parse(input.buffer().front(channel));
        let count = header.map_or(1, |(header, _)| header.command.flits());
        input.pop_many(channel, &mut [0; MAX_PACKET_FLITS][..count]);
    }

    #[inline]
    fn has_room(link: &FlitEnd, kind: Kind, len: u8) -> bool {
        let command = command(kind, len);
        link.is_up() && link.credits(channel(command)) as usize >= command.flits()
    }

    fn send(link: &mut FlitEnd, transfer: &Transfer) {
        let vc = channel(command(transfer.kind, transfer.len));
        link.push_many(vc, packet(transfer).flits(), true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_travel_as_packets_of_their_lengths() {
        let cases = [
            (Kind::Put, 8, 4),
            (Kind::Put, 64, 10),
            (Kind::Put, 3, 4),
            (Kind::Get, 8, 2),
            (Kind::Get, 16, 2),
            (Kind::Increment, 0, 2),
            (Kind::Add, 8, 4),
            (Kind::CompareSwap, 16, 5),
            (Kind::MaskedSwap, 16, 5),
            (Kind::Message, 64, 10),
            (Kind::Done, 0, 2),
            (Kind::Done, 8, 2),
            (Kind::Done, 64, 10),
            (Kind::Done, 16, 10),
            (Kind::Refused, 0, 2),
            (Kind::Damaged, 0, 2),
        ];
        for (kind, len, flits) in cases {
            let mut sent = Transfer::new(9, kind, 1 << 47);
            let data: Vec<u8> = (1..=len).collect();
            sent = sent.with(&data);
            (sent.from, sent.name, sent.ordered) = (7, 0xf_0f0f, true);
            let packet = packet(&sent);
            assert_eq!(packet.flits().len(), flits, "{kind:?} {len}");
            let (header, _) = Header::parse(packet.flits()[0]).unwrap();
            assert_eq!(header.destination(), 9);
            let Arrival::Whole(got) = transfer(&header, packet.flits()) else {
                panic!("the packet is whole");
            };
            assert_eq!((got.kind, got.name), (kind, sent.name));
            assert_eq!(got.len, len);
            if kind.is_request() {
                let same = (got.from, got.address, got.ordered, got.len);
                assert_eq!(same, (7, 1 << 47, true, len));
            }
            if kind != Kind::Get {
                assert_eq!(got.data[..usize::from(len)], sent.data[..usize::from(len)]);
            }
            let mut damaged = packet.flits().to_vec();
            damaged[1] ^= 3;
            let damaged = transfer(&header, &damaged);
            assert!(matches!(damaged, Arrival::Damaged(found) if found.kind == kind));
        }
    }
}
