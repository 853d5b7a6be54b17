//! Every Aries decoder of wire bytes, for the fuzz targets and the replay of their corpora. A
//! decoder may panic only if it contradicts itself or its encoder.

use phitwire_framing::aries::crc20;
use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS};
use phitwire_framing::aries::frame::{SETS_AT, SetFrame, SetFrameWriter, set_frame_len};
use phitwire_framing::aries::packet::{MAX_DATA, PacketError, Request, Response, packet_check};
use phitwire_framing::aries::set::{
    DATA_FLITS, DataSet, SET_BYTES, Set, SetBytes, SetError, SetView,
};
use phitwire_framing::carrier::frame::{FrameError, FrameHeader, LinkEnd};
use phitwire_framing::carrier::lanes::Permutation;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why the frame was rejected; `None` if it was accepted.
    pub rejected: Option<FrameError>,
    /// Why its sets were rejected.
    pub sets: Vec<SetError>,
    /// Why packets were rejected.
    pub packets: Vec<PacketError>,
    /// Number of valid control sets, data sets, requests and responses.
    pub good: [usize; 4],
}

/// Decodes `bytes` as a frame of sets, down to the packets of its good sets.
pub fn decode(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    match SetFrame::parse(bytes) {
        Ok(frame) => decode_sets(&frame, bytes, &mut outcome),
        Err(error) => outcome.rejected = Some(error),
    }
    outcome
}

fn decode_sets(frame: &SetFrame<'_>, bytes: &[u8], outcome: &mut Outcome) {
    assert_eq!(SetFrame::LAYOUT.area(bytes), Some(SETS_AT..bytes.len()));
    assert_eq!(set_frame_len(frame.sets()), bytes.len());
    let mut buf = vec![0xa5; bytes.len()];
    let mut writer = SetFrameWriter::new(frame.header(), &mut buf).expect("it holds a frame");
    let mut flits = Vec::new();
    for (index, set) in frame.iter().enumerate() {
        assert_eq!(frame.get(index), Some(set));
        *writer.slot().expect("as many sets as were there") = set;
        decode_set(&set, &mut flits, outcome);
    }
    assert_eq!(writer.finish(), Some(bytes.len()));
    assert_eq!(buf, bytes, "a frame of sets has one form");
    let cable = Permutation::new([1, 2, 0], [true, false, true]).expect("a permutation");
    assert_eq!(frame.behind(cable).iter().len(), frame.sets());
    decode_flits(&flits, outcome);
}

/// Decodes one set, and appends the flits of a good data set to `flits`.
pub fn decode_set(set: &SetBytes, flits: &mut Vec<Flit>, outcome: &mut Outcome) {
    let parsed = Set::parse(set);
    match parsed {
        Ok(good) => {
            let mut again = [0xa5; SET_BYTES];
            good.emit(&mut again);
            assert_eq!(again, *set, "a set has one form");
        }
        Err(error) => outcome.sets.push(error),
    }
    match parsed {
        Ok(Set::Control(control)) => {
            assert_eq!(control.tail().number, SetView::new(set).number());
            outcome.good[0] += 1;
        }
        Ok(Set::Data(data)) => {
            outcome.good[1] += 1;
            flits.extend(data.flits);
        }
        Err(_) => {}
    }
}

/// Cuts flits into packets by the lengths in their heads, and decodes them.
pub fn decode_flits(mut flits: &[Flit], outcome: &mut Outcome) {
    while let Some((first, rest)) = flits.split_first() {
        let length = Head::parse(*first).map_or(0, |head| usize::from(head.length()));
        match flits.split_at_checked(length) {
            Some((packet, behind)) if length > 0 => {
                decode_packet(packet, outcome);
                flits = behind;
            }
            _ => flits = rest,
        }
    }
}

/// Decodes one packet as request and as response.
pub fn decode_packet(packet: &[Flit], outcome: &mut Outcome) {
    let mut data = [0; MAX_DATA];
    let mut again = [Flit::IDLE; MAX_PACKET_FLITS];
    let request = Request::parse(packet, &mut data);
    if let Ok((request, bytes)) = request {
        let flits = request.emit(&data[..bytes], &mut again);
        assert_eq!(flits, Ok(packet.len()), "it was decoded");
        same(&again[..packet.len()], packet);
        assert_eq!(Request::parse_header(packet), Ok((request, bytes)));
        assert!(request.command.response_bytes() <= MAX_DATA);
        outcome.good[2] += 1;
    }
    let response = Response::parse(packet, &mut data);
    if let Ok((response, bytes)) = response {
        let flits = response.emit(&data[..bytes], &mut again);
        assert_eq!(flits, Ok(packet.len()), "it was decoded");
        same(&again[..packet.len()], packet);
        outcome.good[3] += 1;
    }
    assert!(
        request.is_err() || response.is_err(),
        "a packet of two kinds"
    );
    let directed = match Head::parse(packet[0]) {
        Some(head) if head.is_response() => response.err(),
        _ => request.err(),
    };
    outcome.packets.extend(directed);
}

/// Asserts that packets are equal, except in the fields that routers write.
fn same(emitted: &[Flit], packet: &[Flit]) {
    let on_the_way = |flit: Flit| {
        let head = Head::parse(flit).expect("a packet begins with a head");
        head.with_vc(0).with_non_minimal(false)
    };
    assert_eq!(on_the_way(emitted[0]), on_the_way(packet[0]));
    assert_eq!(emitted[1..], packet[1..]);
}

/// Decodes the bytes as sets with corrected checks, in a valid frame, so that a fuzzer need not
/// guess a CRC.
pub fn decode_with_checks_made_right(bytes: &[u8]) -> Outcome {
    let mut sets: Vec<SetBytes> = bytes
        .chunks(SET_BYTES)
        .map(|part| {
            let mut set = [0; SET_BYTES];
            set[..part.len()].copy_from_slice(part);
            make_right(&mut set);
            set
        })
        .collect();
    sets.truncate(64);
    if sets.is_empty() {
        return Outcome::default();
    }
    decode(&frame_of(&sets))
}

/// A frame of these sets, at least one.
pub fn frame_of(sets: &[SetBytes]) -> Vec<u8> {
    let header = FrameHeader {
        kind: SetFrame::KIND,
        end: LinkEnd::A,
        link: 3,
        fabric: 0x1234_5678,
        tx_epoch: 1,
        rx_epoch: 2,
        lanes: 7,
        units: 0,
    };
    let mut buf = vec![0; set_frame_len(sets.len())];
    let mut writer = SetFrameWriter::new(&header, &mut buf).expect("there is a set");
    for set in sets {
        *writer.slot().expect("the buffer has its length") = *set;
    }
    writer.finish().expect("there is a set");
    buf
}

/// A set with one change and a corrected check.
pub fn changed_set(set: &SetBytes, change: impl Fn(&mut SetBytes)) -> SetBytes {
    let mut set = *set;
    change(&mut set);
    make_right(&mut set);
    set
}

/// Corrects the check of a set.
fn make_right(set: &mut SetBytes) {
    let check = crc20::check(set).to_be_bytes();
    set[57] = set[57] & 0xf0 | check[1];
    set[58..].copy_from_slice(&check[2..]);
}

/// Decodes the bytes as flits of one packet with corrected length and check.
pub fn decode_as_packet(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let (chunks, _) = bytes.as_chunks::<6>();
    let mut packet: Vec<Flit> = chunks
        .iter()
        .map(|bytes| Flit::from_bytes(*bytes))
        .collect();
    packet.truncate(MAX_PACKET_FLITS);
    decode_flits(&packet, &mut outcome);
    let Some(head) = packet.first().copied() else {
        return outcome;
    };
    let length = (packet.len() as u64) << 40;
    packet[0] = Flit::new(head.bits() & !(0xf << 40) | length);
    decode_packet(&packet, &mut outcome);
    let check = packet_check(&packet).computed;
    if let Some(last) = packet.last_mut() {
        *last = Flit::new(last.bits() & !0xffff | u64::from(check));
    }
    decode_packet(&packet, &mut outcome);
    outcome
}

/// The flits of packets as data sets, padded with idle flits.
pub fn sets_of(flits: &[Flit], first: u8) -> Vec<SetBytes> {
    let chunks = flits.chunks(DATA_FLITS).zip(u32::from(first)..);
    chunks
        .map(|(flits, number)| {
            let mut set = DataSet {
                flits: [Flit::IDLE; DATA_FLITS],
                tail: Default::default(),
            };
            set.tail.number = (number & 0x7f) as u8;
            set.flits[..flits.len()].copy_from_slice(flits);
            let mut bytes = [0; SET_BYTES];
            set.emit(&mut bytes);
            bytes
        })
        .collect()
}
