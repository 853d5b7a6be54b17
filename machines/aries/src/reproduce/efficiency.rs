//! The payload share of a link's bytes (Cray XC white paper, "Aries Performance"): "Each 64-byte
//! write (put) requires 14 request flits and 1 response flit. A 64-byte read (get) requires three
//! request flits and 12 response flits. LCB overheads are 1 flit in 10. Taking packet and LCB
//! overheads into account, overall payload efficiency is (64 bytes/15 flits) x (9 flits/60 bytes) =
//! 64 percent."
//!
//! Puts and gets of 64 bytes and their responses are encoded and packed into sets and frames. Then
//! the frames are parsed, every byte is compared, and flits and bytes are counted.

use phitwire_framing::aries::flit::{Flit, Head, MAX_PACKET_FLITS, NodeId, Routing};
use phitwire_framing::aries::frame::{SetFrame, SetFrameWriter, max_sets, set_frame_len};
use phitwire_framing::aries::packet::{Command, MAX_DATA, Request, Response, Status};
use phitwire_framing::aries::set::{ControlSet, DATA_FLITS, DataSet, SET_BYTES, Set, Tail};
use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};

use phitwire::reproduce::{Kind as Evidence, Observation, Row, Source, Table, Tolerance};

/// Number of transactions, which fill 9 x 100 whole sets.
const TRANSACTIONS: usize = 900;
/// Size of a UDP datagram at an MTU of 1,500.
const DATAGRAM: usize = 1_472;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Get,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    request_flits: usize,
    response_flits: usize,
    payload_bytes: usize,
    data_sets: usize,
    frame_bytes: usize,
}

impl Counted {
    /// Payload as a fraction of the bytes of all data sets.
    fn efficiency(&self) -> f64 {
        self.payload_bytes as f64 / (self.data_sets * SET_BYTES) as f64
    }

    /// Payload as a fraction of the bytes of all frames, including control sets and frame headers.
    fn of_frames(&self) -> f64 {
        self.payload_bytes as f64 / self.frame_bytes as f64
    }
}

fn data(i: usize) -> [u8; MAX_DATA] {
    core::array::from_fn(|k| (i * 31 + k * 7) as u8)
}

/// Request and response of transaction `i`, concatenated.
fn transaction(kind: Kind, i: usize) -> Vec<Flit> {
    let (near, far) = (NodeId::new(0, 0, 0), NodeId::new(1, 5, 2));
    let routing = Routing::Adaptive0;
    let packet_id = i as u16 & 0x3ff;
    let (command, sent, returned) = match kind {
        Kind::Put => (Command::Put { event: false }, MAX_DATA, 0),
        Kind::Get => (Command::Get { words: 16 }, 0, MAX_DATA),
    };
    let request = Request {
        destination: far,
        source: near,
        routing,
        packet_id,
        command,
        mdh: 1,
        echo: 0,
        ssid: 2,
        address: (i * MAX_DATA) as u64,
        key: 3,
    };
    let response = Response {
        destination: near,
        routing,
        packet_id,
        echo: 0,
        status: Status::Done,
        joined: false,
    };
    let data = data(i);
    let mut flits = [Flit::IDLE; 2 * MAX_PACKET_FLITS];
    let first = request
        .emit(&data[..sent], &mut flits)
        .expect("the buffer holds any packet of 64 bytes or 16 words");
    let second = response
        .emit(&data[..returned], &mut flits[first..])
        .expect("the buffer holds two packets");
    flits[..first + second].to_vec()
}

/// Packs flits into sets, and the sets into frames of a datagram each, which begin with a control
/// set.
fn frames(flits: &[Flit]) -> Vec<Vec<u8>> {
    let header = FrameHeader {
        kind: SetFrame::KIND,
        end: LinkEnd::A,
        link: 0,
        fabric: 0,
        tx_epoch: 1,
        rx_epoch: 1,
        lanes: 7,
        units: 0,
    };
    let sets: Vec<_> = flits.chunks(DATA_FLITS).enumerate().collect();
    let per_frame = max_sets(DATAGRAM) - 1;
    let frame = |sets: &[(usize, &[Flit])]| {
        let mut buf = vec![0; set_frame_len(sets.len() + 1)];
        let mut writer = SetFrameWriter::new(&header, &mut buf).expect("the buffer holds all sets");
        let control = ControlSet {
            next: sets[0].0 as u32,
            ..ControlSet::default()
        };
        control.emit(writer.slot().expect("the buffer holds all sets"));
        for (number, chunk) in sets {
            let mut flits = [Flit::IDLE; DATA_FLITS];
            flits[..chunk.len()].copy_from_slice(chunk);
            let tail = Tail {
                number: (number & 0x7f) as u8,
                ..Tail::default()
            };
            let slot = writer.slot().expect("the buffer holds all sets");
            DataSet::emit_flits(&flits, tail, slot);
        }
        writer.finish().expect("the frame has a control set");
        buf
    };
    sets.chunks(per_frame).map(frame).collect()
}

/// Parses frames and counts their contents. Returns `None` if a byte differs from the original.
fn counted(kind: Kind, frames: &[Vec<u8>]) -> Option<Counted> {
    let mut seen = Counted::default();
    let mut flits = Vec::new();
    for bytes in frames {
        seen.frame_bytes += bytes.len();
        let Ok(frame) = SetFrame::parse(bytes) else {
            return None;
        };
        for set in frame.iter() {
            match Set::parse(&set).ok()? {
                Set::Control(_) => {}
                Set::Data(set) => {
                    seen.data_sets += 1;
                    flits.extend(set.flits);
                }
            }
        }
    }
    let mut rest = &flits[..];
    let (mut requests, mut responses) = (0, 0);
    let mut found = [0; MAX_DATA];
    while let Some(head) = rest.first().and_then(|flit| Head::parse(*flit)) {
        let (packet, behind) = rest.split_at_checked(head.length().into())?;
        rest = behind;
        let (bytes, i) = if head.is_response() {
            seen.response_flits += packet.len();
            responses += 1;
            (Response::parse(packet, &mut found).ok()?.1, responses - 1)
        } else {
            seen.request_flits += packet.len();
            requests += 1;
            (Request::parse(packet, &mut found).ok()?.1, requests - 1)
        };
        if found[..bytes] != data(i)[..bytes] {
            return None;
        }
        seen.payload_bytes += bytes;
    }
    let whole = requests == TRANSACTIONS && responses == TRANSACTIONS;
    let expected = if kind == Kind::Put {
        requests
    } else {
        responses
    } * MAX_DATA;
    (whole && seen.payload_bytes == expected).then_some(seen)
}

fn run(kind: Kind) -> Option<Counted> {
    let flits: Vec<Flit> = (0..TRANSACTIONS)
        .flat_map(|i| transaction(kind, i))
        .collect();
    counted(kind, &frames(&flits))
}

/// Encodes, parses and counts all transactions.
pub fn table() -> Table {
    // A mismatch yields zero counts, which are outside every tolerance.
    let puts = run(Kind::Put).unwrap_or_default();
    let gets = run(Kind::Get).unwrap_or_default();
    let row = |label, paper, ours| {
        let (kind, exact) = (Evidence::Codec, Tolerance::Absolute(0.0));
        Row::new(kind, Source::Paper, label, paper, ours, exact)
    };
    let per = |flits: usize| flits as f64 / TRANSACTIONS as f64;
    let also = |label, ours| Observation::new(Evidence::Codec, label, None, ours);
    Table {
        title: "Efficiency of 64-byte transfers (Cray XC white paper, Aries Performance)".into(),
        unit: "",
        decimals: 2,
        rows: vec![
            row(
                "put of 64 bytes, request flits",
                14.0,
                per(puts.request_flits),
            ),
            row(
                "put of 64 bytes, response flits",
                1.0,
                per(puts.response_flits),
            ),
            row(
                "get of 64 bytes, request flits",
                3.0,
                per(gets.request_flits),
            ),
            row(
                "get of 64 bytes, response flits",
                12.0,
                per(gets.response_flits),
            ),
            row(
                "payload efficiency of puts, %",
                64.0,
                100.0 * puts.efficiency(),
            ),
            row(
                "payload efficiency of gets, %",
                64.0,
                100.0 * gets.efficiency(),
            ),
        ],
        also: vec![
            also(
                "payload of puts in phitwire frames at MTU 1500, %",
                100.0 * puts.of_frames(),
            ),
            also(
                "payload of gets in phitwire frames at MTU 1500, %",
                100.0 * gets.of_frames(),
            ),
        ],
        assumptions: vec![
            format!(
                "Run: {TRANSACTIONS} puts and as many gets of 64 bytes with their responses are \
                 encoded as packets and packed into sets of nine flits plus a tenth, and these \
                 into frames. All frames are decoded again, every check is verified and every \
                 byte compared. Flits and bytes are counted in the decoded frames."
            ),
            "Like the paper's, the efficiency counts both directions together, and data sets \
             only. phitwire frames add 24 bytes of header and one control set each; the extra \
             rows include them."
                .into(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_counts_are_met() {
        let table = table();
        assert!(table.within(), "{table:?}");
    }

    #[test]
    fn a_lost_or_changed_byte_is_outside() {
        let flits: Vec<Flit> = (0..TRANSACTIONS)
            .flat_map(|i| transaction(Kind::Put, i))
            .collect();
        let mut wire = frames(&flits);
        assert!(counted(Kind::Put, &wire).is_some());
        wire[3][700] ^= 1;
        assert_eq!(counted(Kind::Put, &wire), None);
        wire[3][700] ^= 1;
        wire.pop();
        assert_eq!(counted(Kind::Put, &wire), None);
    }
}
