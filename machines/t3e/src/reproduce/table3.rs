//! "Packet lengths (flits)" (T3E table 3), counted in the frames of a link between two processors
//! that put and get.

use phitwire_framing::carrier::frame::{CHECK_BYTES, LinkEnd, checksum, parse};
use phitwire_framing::t3e::burst::Burst;
use phitwire_framing::t3e::flit::{FlitKind, VCS};
use phitwire_framing::t3e::header::Header;

use crate::link::{CARRIER_LANES, CARRIER_LIVE, Depths, FlitLinkConfig, STANDARD};
use crate::pe::{E_REGISTERS, Pe, PeConfig};
use phitwire::link::{EndName, LinkConfig};
use phitwire::nic::Incarnation;
use phitwire::node::Node as _;
use phitwire::packets::PacketLinkConfig;
use phitwire::packets::transfer::{Kind, Transfer};
use phitwire::reproduce::{Kind as Evidence, Row, Source, Table, Tolerance};
use phitwire::time::{Duration, Time};

/// Number of transfers of each kind.
const TRANSFERS: usize = 100;
/// Maximum size of a frame: a UDP datagram at an MTU of 1,500.
const DATAGRAM: usize = 1_472;
const STEP: Duration = Duration::from_us(5);
const PATIENCE: usize = 200_000;

/// Rows: a kind of transfer, its bytes, and the flits of its request and of its response.
const PAPER: [(&str, Kind, u8, [f64; 2]); 4] = [
    ("single-word gets", Kind::Get, 8, [2.0, 2.0]),
    ("vector gets", Kind::Get, 64, [2.0, 10.0]),
    ("single-word puts", Kind::Put, 8, [4.0, 2.0]),
    ("vector puts", Kind::Put, 64, [10.0, 2.0]),
];

/// Two processors at the ends of a link, and the frames that they sent.
struct Pair {
    ends: [Pe; 2],
    frames: [Vec<Vec<u8>>; 2],
    now: Time,
}

fn processor(number: u16) -> Result<Pe, String> {
    let name = |number: u16| EndName {
        node: format!("n{number}"),
        port: 0,
    };
    let end = match number {
        0 => LinkEnd::A,
        _ => LinkEnd::B,
    };
    let carrier = LinkConfig::builder(STANDARD, 0, end, name(number), name(1 - number));
    let link = FlitLinkConfig {
        carrier: PacketLinkConfig {
            link: carrier.build().map_err(|error| error.to_string())?,
            depths: CARRIER_LIVE,
        },
        depths: Depths::LIVE,
        corrects: true,
    };
    let config = PeConfig {
        number,
        nics: 2,
        links: vec![link],
        memory_bytes: 1 << 16,
        outstanding: E_REGISTERS,
        answers: TRANSFERS,
        timeout: Duration::from_ms(10_000),
        incarnation: Incarnation {
            clock_ns: 0,
            first: true,
        },
        seed: None,
    };
    Ok(Pe::new(config, Time::ZERO))
}

impl Pair {
    fn new() -> Result<Self, String> {
        Ok(Self {
            ends: [processor(0)?, processor(1)?],
            frames: Default::default(),
            now: Time::ZERO,
        })
    }

    fn step(&mut self) {
        self.now += STEP;
        let mut buf = [0; DATAGRAM];
        for from in 0..2 {
            self.ends[from].advance(self.now);
            while let Some(length) = self.ends[from].poll_frame(self.now, 0, &mut buf) {
                self.frames[from].push(buf[..length].to_vec());
                self.ends[1 - from].handle_frame(self.now, 0, &buf[..length]);
            }
        }
    }

    /// Makes the first processor execute transfers of a kind, and returns whether all completed.
    fn transfer(&mut self, kind: Kind, bytes: u8) -> bool {
        let (mut posted, mut ended) = (0, 0);
        for _ in 0..PATIENCE {
            let address = 64 * posted as u64;
            let data = [posted as u8; 64];
            let asked = Transfer {
                len: bytes,
                ..Transfer::new(1, kind, address)
            };
            let asked = match kind {
                Kind::Put => asked.with(&data[..bytes.into()]),
                _ => asked,
            };
            if posted < TRANSFERS && self.ends[0].post(self.now, &asked).is_ok() {
                posted += 1;
            }
            self.step();
            while self.ends[0].poll_completion().is_some() {
                ended += 1;
            }
            if ended == TRANSFERS {
                return true;
            }
        }
        false
    }
}

/// The lengths in flits of the packets in frames; `None` if a check fails or a packet's length does
/// not match its header.
fn lengths(frames: &[Vec<u8>]) -> Option<Vec<usize>> {
    let burst_bytes = (Burst::BYTES + CHECK_BYTES).next_multiple_of(CARRIER_LANES.word_bytes());
    let mut lengths = Vec::new();
    // By channel: index of the latest packet in `lengths`, and its expected length.
    let mut open = [None; VCS];
    for frame in frames {
        let header = parse(frame).ok()?;
        let Ok(bursts) = header.units(Burst::KIND) else {
            continue;
        };
        let area = &frame[frame.len().checked_sub(bursts * burst_bytes)?..];
        for bytes in area.chunks_exact(burst_bytes) {
            let (burst, check) = bytes.split_first_chunk()?;
            check.strip_prefix(&checksum(burst).to_be_bytes())?;
            for flit in Burst::parse(burst).flits() {
                let FlitKind::Data(vc) = flit.control.kind() else {
                    continue;
                };
                let open = &mut open[usize::from(vc)];
                if flit.control.is_head() {
                    let (header, _) = Header::parse(flit.word).ok()?;
                    *open = Some((lengths.len(), header.command.flits()));
                    lengths.push(0);
                }
                let (packet, expected) = (*open)?;
                lengths[packet] += 1;
                if lengths[packet] > expected {
                    return None;
                }
            }
        }
    }
    Some(lengths)
}

/// The common length of all packets in frames; NaN if their number is wrong or lengths differ.
fn length(frames: &[Vec<u8>]) -> f64 {
    let lengths = lengths(frames).unwrap_or_default();
    let first = lengths.first().copied();
    let alike = lengths.len() == TRANSFERS && lengths.iter().all(|&flits| Some(flits) == first);
    first
        .filter(|_| alike)
        .map_or(f64::NAN, |flits| flits as f64)
}

/// Executes transfers, captures frames and counts flits.
///
/// # Errors
/// If a transfer does not complete.
pub fn table() -> Result<Table, String> {
    let mut pair = Pair::new()?;
    let mut rows = Vec::new();
    for (label, kind, bytes, paper) in PAPER {
        pair.frames = Default::default();
        if !pair.transfer(kind, bytes) {
            return Err(format!("{label} do not complete"));
        }
        let ours = [length(&pair.frames[0]), length(&pair.frames[1])];
        for (what, (paper, ours)) in ["request", "response"].iter().zip(paper.iter().zip(ours)) {
            let label = format!("{label}, {what}");
            let (kind, exact) = (Evidence::Running, Tolerance::Absolute(0.0));
            rows.push(Row::new(kind, Source::Paper, label, *paper, ours, exact));
        }
    }
    Ok(Table {
        title: "Packet lengths (T3E table 3)".into(),
        unit: "flits",
        decimals: 0,
        rows,
        also: Vec::new(),
        assumptions: vec![
            format!(
                "Run: two processors at the ends of an encoded link; the first one puts and gets \
                 one word and eight, {TRANSFERS} times each. All frames are captured and decoded, \
                 and every check is verified; flits of packets are counted in their bursts, and \
                 all packets of a kind must have the same length."
            ),
            "The second header flit holds the address in requests and the number of bytes in \
             responses; the paper describes neither."
                .into(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_on_the_wire_have_the_papers_lengths() {
        let table = table().unwrap();
        assert!(table.within(), "{table:#?}");
    }

    #[test]
    fn a_lost_or_changed_frame_is_outside() {
        let mut pair = Pair::new().unwrap();
        assert!(pair.transfer(Kind::Put, 64));
        let mut frames = pair.frames[0].clone();
        assert_eq!(length(&frames), 10.0);
        let carries = |frame: &Vec<u8>| {
            parse(frame)
                .unwrap()
                .units(Burst::KIND)
                .is_ok_and(|n| n > 0)
        };
        let at = frames.iter().rposition(carries).unwrap();
        *frames[at].last_mut().unwrap() ^= 1;
        assert!(length(&frames).is_nan());
        frames.remove(at);
        assert!(length(&frames).is_nan());
    }
}
