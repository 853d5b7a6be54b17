//! Captures of simulated networks, in the same format. Timestamps are simulated time, counted from
//! 1970. A frame is written as it leaves its sender, before any loss or damage on the wire.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use phitwire::net::Network;
use phitwire::sim::tap::FrameTap;
use phitwire::time::Time;
use phitwire_framing::carrier::frame::ETHERTYPE;
use phitwire_nodes::io::ETHERNET_HEADER_BYTES;

use super::pcapng::{self, FrameDirection, Statistics};
use super::sink::{Limits, Room, Sink, SinkError, tail};

const PS_PER_NS: u64 = 1_000;

/// A capture of a running simulation.
pub struct SimulatedCapture {
    state: Mutex<State>,
}

struct State {
    sink: Sink,
    /// Number of directions. Each link has two, first A to B, then B to A.
    directions: usize,
    last_ns: u64,
    block: Vec<u8>,
    room: Room,
    failed: Option<SinkError>,
}

impl SimulatedCapture {
    /// Captures all links of `network` into a file of at most `bytes`.
    ///
    /// # Errors
    /// See [`SinkError`].
    pub fn new(file: &Path, network: &dyn Network, bytes: u64) -> Result<Self, SinkError> {
        let mut head = Vec::new();
        pcapng::section(&mut head);
        for link in 0..network.link_count() {
            let (a, b) = network.ends(link);
            for (from, to) in [(a, b), (b, a)] {
                let names = [from, to].map(|end| network.node_name(end.node));
                let name = format!("{link}:{}->{}", names[0], names[1]);
                let what = format!(
                    "link {link} from {} port {} to {} port {}, simulated, as sent",
                    names[0], from.port, names[1], to.port
                );
                pcapng::interface(&mut head, &name, &what);
            }
        }
        let directions = 2 * network.link_count();
        let sink = Sink::new(file, head, tail(directions), Limits { bytes, files: 1 })?;
        let state = State {
            sink,
            directions,
            last_ns: 0,
            block: Vec::new(),
            room: Room::Left,
            failed: None,
        };
        let state = Mutex::new(state);
        Ok(Self { state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }

    /// Ends the file. Returns the number of frames, and whether all of them fitted.
    ///
    /// # Errors
    /// See [`SinkError`].
    pub fn finish(&self) -> Result<(u64, bool), SinkError> {
        let mut state = self.state();
        if let Some(error) = state.failed.take() {
            return Err(error);
        }
        state.sink.flush()?;
        let mut blocks = Vec::new();
        let frames = (0..state.directions).map(|direction| state.sink.frames(direction));
        let frames: Vec<u64> = frames.collect();
        for (interface, &frames) in (0..).zip(&frames) {
            let statistics = Statistics {
                to_ns: state.last_ns,
                frames,
                ..Statistics::default()
            };
            pcapng::statistics(&mut blocks, interface, &statistics);
        }
        state.sink.finish(&blocks)?;
        Ok((frames.iter().sum(), state.room == Room::Left))
    }
}

impl FrameTap for SimulatedCapture {
    fn frame(&self, at: Time, link: u32, is_b: bool, bytes: &[u8]) {
        let mut state = self.state();
        if state.room != Room::Left || state.failed.is_some() {
            return;
        }
        let ns = at.as_ps() / PS_PER_NS;
        let interface = 2 * link + u32::from(is_b);
        let header = ethernet_header(link, is_b);
        let mut block = std::mem::take(&mut state.block);
        block.clear();
        pcapng::frame(
            &mut block,
            interface,
            ns,
            FrameDirection::Out,
            &[&header, bytes],
        );
        match state.sink.add(interface, &block) {
            Ok(Room::Left) => state.last_ns = ns,
            Ok(room) => state.room = room,
            Err(error) => state.failed = Some(error),
        }
        state.block = block;
    }
}

/// An Ethernet header for a simulated frame, whose addresses encode the link and the end.
fn ethernet_header(link: u32, is_b: bool) -> [u8; ETHERNET_HEADER_BYTES] {
    let [_, a, b, c] = link.to_be_bytes();
    let (from, to) = if is_b { (0x0b, 0x0a) } else { (0x0a, 0x0b) };
    let [high, low] = ETHERTYPE.to_be_bytes();
    [
        0x02, 0x70, a, b, c, to, 0x02, 0x70, a, b, c, from, high, low,
    ]
}
