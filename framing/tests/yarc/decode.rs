//! Every decoder of wire bytes, for the fuzz target and the replay of its corpus. A decoder may
//! panic only if it contradicts itself or its encoder.

use phitwire_framing::carrier::frame::{FrameError, VERSION, parse, seal};
use phitwire_framing::carrier::lanes::Permutation;
use phitwire_framing::carrier::training::Training;
use phitwire_framing::yarc::frame::{DataFrame, MAP_AT, emit_data, frame_len};
use phitwire_framing::yarc::maintenance::Maintenance;
use phitwire_framing::yarc::memory::{
    RequestPacket, decode_request, decode_response, encode_request, encode_response,
};
use phitwire_framing::yarc::packet::{PacketBuf, check_packet};
use phitwire_framing::yarc::phit::{LANES, Phit};

/// Room for the phits of any frame in an Ethernet jumbo frame or a fuzzer's input.
const ROOM: usize = 2800;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Why the frame was rejected; `None` if it was accepted.
    pub rejected: Option<FrameError>,
    /// Whether the sideband contained a control word.
    pub word: bool,
    /// Number of packets, real or apparent, with a valid check.
    pub checked: usize,
    /// Number of memory requests, responses and maintenance packets among them.
    pub decoded: [usize; 3],
}

/// A frame that a link end accepts.
enum Read<'a> {
    Data(DataFrame<'a>),
    Training(Training),
}

fn read(bytes: &[u8]) -> Result<Read<'_>, FrameError> {
    let frame = parse(bytes)?.of_lanes(LANES)?;
    let (data, training) = (DataFrame::of(&frame), Training::of(&frame));
    match frame.kind() {
        DataFrame::KIND => assert_eq!(training, Err(FrameError::BadKind), "a frame of two kinds"),
        _ => assert_eq!(data, Err(FrameError::BadKind), "a frame of two kinds"),
    }
    if frame.kind() == DataFrame::KIND {
        data.map(Read::Data)
    } else {
        training?.of_lanes(LANES).map(Read::Training)
    }
}

/// Decodes `bytes` until an error.
pub fn decode(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    match read(bytes) {
        Ok(Read::Data(frame)) => {
            assert_eq!(
                DataFrame::LAYOUT.area(bytes).map(|area| area.end),
                Some(bytes.len())
            );
            let mut out = [Phit::IDLE; ROOM];
            let count = frame.decode(&mut out);
            assert_eq!(count, frame.phits().min(ROOM));
            let word = frame.control_word();
            outcome.word = word.is_ok();
            let cable = Permutation::new([1, 2, 0], [true, false, true]).expect("a permutation");
            let mut swapped = [Phit::IDLE; ROOM];
            assert_eq!(frame.behind(cable).decode(&mut swapped), count);
            if let (Ok(word), true) = (word, count == frame.phits()) {
                let mut buf = [0; ROOM * 4];
                let again = emit_data(frame.header(), &word, &[&out[..count], &[]], &mut buf);
                assert_eq!(again, Ok(bytes.len()));
                let start = DataFrame::LAYOUT
                    .area(bytes)
                    .expect("it has just been there")
                    .start;
                assert_eq!(
                    buf[..start],
                    bytes[..start],
                    "header, map and check have one form"
                );
            }
            for packet in out[..count].chunk_by(|a, b| !a.is_eop() && !b.is_head()) {
                decode_packet(packet, &mut outcome);
            }
        }
        Ok(Read::Training(frame)) => {
            let _ = LANES.find_cable(&frame.pattern);
            let mut buf = [0xa5; 200];
            let len = frame.emit(&mut buf).expect("200 bytes are enough");
            assert_eq!(&buf[..len], bytes, "a training frame has one form");
        }
        Err(error) => outcome.rejected = Some(error),
    }
    outcome
}

fn decode_packet(packet: &[Phit], outcome: &mut Outcome) {
    let mut again = PacketBuf::new();
    let checked = check_packet(packet).is_ok();
    outcome.checked += usize::from(checked);
    let body = packet.len().saturating_sub(1);
    if let Ok(RequestPacket {
        dest,
        source,
        tid,
        request,
    }) = decode_request(packet)
    {
        encode_request(dest, source, tid, &request, &mut again).expect("it was decoded");
        assert_eq!(again.as_slice()[..body], packet[..body]);
        outcome.decoded[0] += usize::from(checked);
    }
    if let Ok((dest, response)) = decode_response(packet) {
        encode_response(dest, &response, &mut again).expect("it was decoded");
        assert_eq!(again.as_slice()[..body], packet[..body]);
        outcome.decoded[1] += usize::from(checked);
    }
    if let Ok(maintenance) = Maintenance::decode(packet) {
        assert!(maintenance.encode(&mut again), "it was decoded");
        assert_eq!(again.as_slice()[..body], packet[..body]);
        outcome.decoded[2] += usize::from(checked);
    }
}

/// Decodes the bytes with corrected magic, version, length and check, so that a fuzzer need not
/// guess a CRC-32.
pub fn decode_with_checks_made_right(bytes: &[u8]) -> Outcome {
    let mut frame = [0; 4096];
    let Some(kind) = bytes.first() else {
        return decode(bytes);
    };
    let len = if kind & 1 == 1 {
        152
    } else {
        frame_len(0) + bytes.len().min(3000) / 13 * 13
    };
    for (to, from) in frame[..len].iter_mut().zip(bytes) {
        *to = *from;
    }
    let groups = (len - MAP_AT - 4) / 13;
    let checked = if kind & 1 == 1 { 100 } else { MAP_AT + groups };
    frame[0] = 0x59;
    frame[1] = VERSION << 4 | (kind & 1) << 1;
    frame[16] = 0;
    frame[17] &= 7;
    let phits = if kind & 1 == 1 { 0 } else { groups as u16 * 4 };
    frame[18..20].copy_from_slice(&phits.to_be_bytes());
    seal(&mut frame, checked);
    decode(&frame[..len])
}
