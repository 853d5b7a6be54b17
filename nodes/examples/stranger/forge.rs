//! Forges frames that no peer would send, from the frames seen on the wire.

use std::collections::BTreeMap;
use std::ops::Range;

use crc::{CRC_32_ISCSI, Crc};
use phitwire::rng::Rng;
use phitwire_framing::carrier::frame::{
    CHECK_BYTES, FrameHeader, FrameKind, HEADER_BYTES, HeaderView, LinkEnd,
};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_framing::carrier::training::{TRAINING_BYTES, Training};
use phitwire_machines::MACHINES;

use crate::options::Form;
use crate::wire::Sender;

/// Number of recent frames of the node kept as patterns.
const RECENT: usize = 64;
/// Longest link frame on Ethernet, in bytes.
const ETHERNET_LIMIT: usize = 1_500;
/// Length of the largest datagram sent, in bytes: more than any MTU of a lab.
const DATAGRAM_LIMIT: usize = 9_000;

/// States of a sender as encoded in training frames (`docs/guide/src/wire-format.md`, section 8).
const DISABLED: u8 = 0;
const TRAINING: u8 = 1;
const ACTIVE: u8 = 3;
const DEAD: u8 = 4;

/// CRC-32C, as defined in `docs/guide/src/wire-format.md`.
static CHECK: Crc<u32> = Crc::<u32>::new(&CRC_32_ISCSI);

pub struct Forge {
    form: Form,
    rng: Rng,
    udp: bool,
    recent: Vec<Vec<u8>>,
    oldest: usize,
    /// The last header sent by the node, which identifies its session.
    session: Option<FrameHeader>,
    training: Option<Training>,
    out: Vec<u8>,
    /// Number of forged frames, by kind of defect.
    pub made: BTreeMap<&'static str, u64>,
}

impl Forge {
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

    /// Sets whether frames travel in UDP datagrams, which may be longer than an MTU.
    pub fn set_udp(&mut self, udp: bool) {
        self.udp = udp;
    }

    /// Records a frame seen on the wire.
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

    /// Whether frames of this form imitate the node's training frames, which it sends only when a
    /// session begins.
    pub fn needs_training(&self) -> bool {
        matches!(
            self.form,
            Form::Asks | Form::Disabled | Form::Dead | Form::Restarted
        )
    }

    /// Returns a frame of an unknown incarnation, which makes the other end send a training frame.
    /// `None` when no training frame is needed, or when no frame has been seen yet.
    pub fn provocation(&mut self) -> Option<&[u8]> {
        if !self.needs_training() || self.training.is_some() || self.recent.is_empty() {
            return None;
        }
        self.copy_recent();
        self.change_header(|view, rng| view.set_tx_epoch(other(view.tx_epoch(), rng)));
        *self.made.entry("provocation").or_default() += 1;
        Some(&self.out)
    }

    /// Whether the frames to forge from have been seen.
    pub fn is_ready(&self) -> bool {
        !self.recent.is_empty() && (self.training.is_some() || !self.needs_training())
    }

    /// Returns the next forged frame; `None` until the frames to forge from have been seen.
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

    /// Changes the header of the frame under construction and corrects its check.
    fn change_header(&mut self, change: impl FnOnce(&mut HeaderView<&mut [u8]>, &mut Rng)) {
        if let Ok(mut view) = HeaderView::new_checked(&mut self.out[..]) {
            change(&mut view, &mut self.rng);
        }
        // In every kind of frame, the check precedes the bytes on the lanes and covers everything
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
            let all = layout_of(view.kind()).lanes().all();
            view.set_lane_word(1 + rng.below(u64::from(all) - 1) as u16)
        });
        "lanes"
    }

    fn train(&mut self) -> &'static str {
        let (Some(training), Some(session)) = (&self.training, &self.session) else {
            return "nothing";
        };
        let lanes = layout_of(session.kind).lanes();
        let mut training = Training {
            header: FrameHeader {
                kind: Training::KIND,
                lanes: lanes.all(),
                units: 0,
                ..*session
            },
            heard: true,
            rx_lanes: lanes.all(),
            pattern: lanes.pattern(),
            ..*training
        };
        let (state, what) = match self.form {
            Form::Asks => {
                training.rx_lanes = 1 + self.rng.below(u64::from(lanes.all()) - 1) as u8;
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
        // Cannot fail: the buffer has the length of a training frame.
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
            // The frame is full, so it is now longer than its header says.
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

/// The range of the bytes that the lanes carry, in a frame of any machine.
fn lane_area(bytes: &[u8]) -> Option<Range<usize>> {
    let kind = FrameHeader::parse(bytes).ok()?.kind;
    layout_of(kind).area(bytes)
}

/// The layout of frames of `kind`. Every layout covers training frames, so any will do for them.
fn layout_of(kind: FrameKind) -> &'static LaneLayout {
    let mut layouts = MACHINES.iter().flat_map(|machine| machine.frames);
    let known = layouts.clone().find(|layout| layout.kind() == kind);
    known
        .or(layouts.next())
        .expect("the machines of the catalogue have frames")
}

/// A number other than `this` and 0.
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

/// Turns a training frame of the peer into the reply that this end would send.
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
