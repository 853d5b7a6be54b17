//! Frames that no peer would send, made of those that pass.

use std::collections::BTreeMap;
use std::ops::Range;

use crc::{CRC_32_ISCSI, Crc};
use phitwire::rng::Rng;
use phitwire_framing::carrier::frame::{
    CHECK_BYTES, FrameHeader, HEADER_BYTES, HeaderView, LinkEnd,
};
use phitwire_framing::carrier::lanes::ALL_LANES;
use phitwire_framing::carrier::training::{PATTERN, TRAINING_BYTES, Training};
use phitwire_machines::MACHINES;

use crate::options::Form;
use crate::wire::Sender;

/// Frames of the node's own that are kept as a pattern.
const RECENT: usize = 64;
/// Bytes behind an Ethernet header on a wire of ours.
const ETHERNET_LIMIT: usize = 1_500;
/// Bytes of the largest datagram sent: more than any MTU of a lab.
const DATAGRAM_LIMIT: usize = 9_000;

/// States of a sender as training frames have them (`docs/guide/src/wire-format.md`, section 8).
const DISABLED: u8 = 0;
const TRAINING: u8 = 1;
const ACTIVE: u8 = 3;
const DEAD: u8 = 4;

/// CRC-32C, as `docs/guide/src/wire-format.md` says.
static CHECK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

/// Makes the frames of one form.
pub struct Forge {
    form: Form,
    rng: Rng,
    udp: bool,
    recent: Vec<Vec<u8>>,
    oldest: usize,
    /// The last header of the node's own frames: its session.
    session: Option<FrameHeader>,
    training: Option<Training>,
    out: Vec<u8>,
    /// Frames made, by what is wrong with them.
    pub made: BTreeMap<&'static str, u64>,
}

impl Forge {
    /// A forge of frames of `form`.
    pub fn new(form: Form, rng: Rng) -> Self {
        Self {
            form,
            rng,
            udp: false,
            recent: Vec::new(),
            oldest: 0,
            session: None,
            training: None,
            out: Vec::new(),
            made: BTreeMap::new(),
        }
    }

    /// Makes frames for datagrams, which may be longer than an MTU.
    pub fn set_udp(&mut self, udp: bool) {
        self.udp = udp;
    }

    /// Takes in a frame that passes.
    pub fn heard(&mut self, sender: Sender, frame: &[u8]) {
        let Ok(header) = FrameHeader::parse(frame) else {
            return;
        };
        match (sender, header.kind) {
            (_, Training::KIND) => {
                if let Ok(training) = Training::parse(frame) {
                    self.training = Some(match sender {
                        Sender::Own => training,
                        Sender::Peer => seen_from_here(training),
                    });
                }
            }
            (Sender::Own, _) => {
                self.session = Some(header);
                self.keep(frame);
            }
            (Sender::Peer, _) => {}
        }
    }

    fn keep(&mut self, frame: &[u8]) {
        if self.recent.len() < RECENT {
            self.recent.push(frame.to_vec());
            return;
        }
        let slot = &mut self.recent[self.oldest];
        slot.clear();
        slot.extend_from_slice(frame);
        self.oldest = (self.oldest + 1) % RECENT;
    }

    /// Whether frames of this form speak as a training frame of the node, which passes only when a
    /// session begins.
    pub fn needs_training(&self) -> bool {
        matches!(
            self.form,
            Form::Asks | Form::Disabled | Form::Dead | Form::Restarted
        )
    }

    /// What makes the other end send a training frame: a frame of an incarnation that it does not
    /// know. `None` when none is needed, or nothing is known yet.
    pub fn provocation(&mut self) -> Option<&[u8]> {
        if !self.needs_training() || self.training.is_some() || self.recent.is_empty() {
            return None;
        }
        self.copy_recent();
        self.change_header(|view, rng| view.set_tx_epoch(other(view.tx_epoch(), rng)));
        *self.made.entry("provocation").or_default() += 1;
        Some(&self.out)
    }

    /// Whether what frames are made of has passed.
    pub fn is_ready(&self) -> bool {
        !self.recent.is_empty() && (self.training.is_some() || !self.needs_training())
    }

    /// The next frame; `None` as long as what it is made of has not passed.
    pub fn make(&mut self) -> Option<&[u8]> {
        if !self.is_ready() {
            return None;
        }
        let what = match self.form {
            Form::Copies | Form::Replay => return None,
            Form::Foreign => self.foreign(),
            Form::Lanes => self.lanes(),
            Form::Asks | Form::Disabled | Form::Dead | Form::Restarted => self.train(),
            Form::Truncated => self.truncated(),
            Form::Oversize => self.oversize(),
            Form::Flipped => self.flipped(),
            Form::Random => self.random(),
        };
        *self.made.entry(what).or_default() += 1;
        Some(&self.out)
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.below(bound as u64) as usize
    }

    fn copy_recent(&mut self) {
        let index = self.below(self.recent.len());
        self.out.clear();
        self.out.extend_from_slice(&self.recent[index]);
    }

    /// Changes the header of the frame that is being made and makes its check right again.
    fn change_header(&mut self, change: impl FnOnce(&mut HeaderView<&mut [u8]>, &mut Rng)) {
        if let Ok(mut view) = HeaderView::new_checked(&mut self.out[..]) {
            change(&mut view, &mut self.rng);
        }
        // In every kind of frame the check lies in front of what the lanes carry, and covers all
        // before it.
        if let Some(area) = lane_area(&self.out) {
            let (checked, rest) = self.out.split_at_mut(area.start - CHECK_BYTES);
            rest[..CHECK_BYTES].copy_from_slice(&CHECK.checksum(checked).to_be_bytes());
        }
    }

    fn foreign(&mut self) -> &'static str {
        self.copy_recent();
        let which = self.below(5);
        self.change_header(|view, rng| match which {
            0 => view.set_tx_epoch(other(view.tx_epoch(), rng)),
            1 => view.set_rx_epoch(other(view.rx_epoch(), rng)),
            2 => view.set_link(view.link() ^ (1 + rng.below(0xffff) as u16)),
            3 => view.set_fabric(other(view.fabric(), rng)),
            _ => set_end(view, |end| end.other()),
        });
        ["epoch", "epoch", "link", "fabric", "end"][which]
    }

    fn lanes(&mut self) -> &'static str {
        self.copy_recent();
        self.change_header(|view, rng| {
            view.set_lane_word(1 + rng.below(u64::from(ALL_LANES) - 1) as u16)
        });
        "lanes"
    }

    fn train(&mut self) -> &'static str {
        let (Some(training), Some(session)) = (&self.training, &self.session) else {
            return "nothing";
        };
        let mut training = Training {
            header: FrameHeader {
                kind: Training::KIND,
                lanes: ALL_LANES,
                units: 0,
                ..*session
            },
            heard: true,
            rx_lanes: ALL_LANES,
            pattern: PATTERN,
            ..*training
        };
        let (state, what) = match self.form {
            Form::Asks => {
                training.rx_lanes = 1 + self.rng.below(u64::from(ALL_LANES) - 1) as u8;
                (ACTIVE, "asks")
            }
            Form::Disabled => (DISABLED, "disabled"),
            Form::Dead => (DEAD, "dead"),
            _ => {
                training.header.tx_epoch = other(session.tx_epoch, &mut self.rng);
                if self.rng.chance(1, 2) {
                    training.header.rx_epoch = 0;
                    training.heard = false;
                }
                (TRAINING, "restarted")
            }
        };
        training.state = state;
        self.out.clear();
        self.out.resize(TRAINING_BYTES, 0);
        // The buffer has just been made as long as a training frame.
        let _ = training.emit(&mut self.out);
        what
    }

    fn truncated(&mut self) -> &'static str {
        self.copy_recent();
        let length = 1 + self.below(self.out.len() - 1);
        self.out.truncate(length);
        "truncated"
    }

    fn oversize(&mut self) -> &'static str {
        let limit = if self.udp && self.rng.chance(1, 10) {
            DATAGRAM_LIMIT
        } else if self.udp {
            ETHERNET_LIMIT - 28
        } else {
            ETHERNET_LIMIT
        };
        self.copy_recent();
        let room = limit - self.out.len().min(limit);
        if room > 0 {
            let more = 1 + self.below(room);
            self.noise(more);
        } else {
            // Full to the brim: longer than it says it is.
            self.change_header(|view, _| view.set_units(view.units() / 2));
        }
        "oversize"
    }

    fn flipped(&mut self) -> &'static str {
        self.copy_recent();
        for _ in 0..=self.below(16) {
            let bit = self.below(self.out.len() * 8);
            self.out[bit / 8] ^= 1 << (bit % 8);
        }
        "flipped"
    }

    fn random(&mut self) -> &'static str {
        if self.rng.chance(1, 2) {
            self.copy_recent();
            let length = self.out.len();
            self.out.truncate(HEADER_BYTES);
            self.noise(length - HEADER_BYTES);
            "header"
        } else {
            self.out.clear();
            let length = 1 + self.below(ETHERNET_LIMIT - 28);
            self.noise(length);
            "noise"
        }
    }

    fn noise(&mut self, bytes: usize) {
        let end = self.out.len() + bytes;
        while self.out.len() < end {
            let word = self.rng.next_u64().to_be_bytes();
            let take = word.len().min(end - self.out.len());
            self.out.extend_from_slice(&word[..take]);
        }
    }
}

/// Range of the bytes that the lanes carry in a frame of any machine.
fn lane_area(bytes: &[u8]) -> Option<Range<usize>> {
    let kind = FrameHeader::parse(bytes).ok()?.kind;
    let mut layouts = MACHINES.iter().flat_map(|machine| machine.frames);
    let known = layouts.clone().find(|layout| layout.kind() == kind);
    // Every layout covers training frames.
    known.or(layouts.next())?.area(bytes)
}

/// Another number than `this`, and not 0.
fn other(this: u32, rng: &mut Rng) -> u32 {
    loop {
        let drawn = rng.next_u64() as u32;
        if drawn != this && drawn != 0 {
            return drawn;
        }
    }
}

fn set_end(view: &mut HeaderView<&mut [u8]>, end: impl FnOnce(LinkEnd) -> LinkEnd) {
    view.set_kind(view.kind(), end(view.end()));
}

/// A training frame of the peer, turned round: what this end would say.
fn seen_from_here(training: Training) -> Training {
    let header = FrameHeader {
        end: training.header.end.other(),
        tx_epoch: training.header.rx_epoch,
        rx_epoch: training.header.tx_epoch,
        ..training.header
    };
    Training {
        header,
        port: training.expect_port,
        expect_port: training.port,
        node: training.expect_node,
        expect_node: training.node,
        ..training
    }
}
