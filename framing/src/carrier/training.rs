//! Training frames: channel initialisation (BlackWidow sec. 4.4; format ours).
//!
//! Both ends send them until each knows the other's name, epoch, lanes and buffer sizes. The names
//! are followed by a pattern on the lanes, which shows the receiver how the sender's lanes map to
//! its own and with which polarity.
//!
//! ```text
//! byte  0 .. 19  frame header, kind 1, units 0
//!      20        state of the sender
//!      21        |heard|  0 (3)  |rx lanes (4)|
//!      22  23    port of the sender, port it expects to reach
//!      24        longest packet, in units of flow control
//!      25        code of the lane rate
//!      26 27     window in packets
//!      28 .. 35  credits offered, in units of flow control: requests, responses
//!      36 .. 67  name of the sender, UTF-8, padded with zeros
//!      68 .. 99  name of the node it expects to reach
//!     100 .. 103 check: CRC-32C over bytes 0 to 99
//!     104 .. 151 pattern: wire words on all lanes, outside the check
//! ```

use super::frame::{
    EmitError, Frame, FrameError, FrameHeader, FrameKind, HEADER_BYTES, checksum, field, parse,
};
use super::lanes::{Lanes, MAX_LANES, Permutation};
use core::ops::Range;

/// Byte of the sender's state.
pub const STATE_AT: Range<usize> = 20..21;
/// Byte of `heard` (7), reserved bits (6:4) and wanted lanes (3:0).
pub const RX_LANES_AT: Range<usize> = 21..22;
/// Byte of the sender's port.
pub const PORT_AT: Range<usize> = 22..23;
/// Byte of the port that the sender expects to reach.
pub const EXPECT_PORT_AT: Range<usize> = 23..24;
/// Byte of the longest packet.
pub const MAX_PACKET_AT: Range<usize> = 24..25;
/// Byte of the lane rate.
pub const RATE_AT: Range<usize> = 25..26;
/// Bytes of the window.
pub const WINDOW_AT: Range<usize> = 26..28;
/// Bytes of the credits, per virtual channel.
pub const CREDITS_AT: [Range<usize>; 2] = [28..32, 32..36];
/// Bytes of the sender's name.
pub const NODE_AT: Range<usize> = 36..68;
/// Bytes of the expected name.
pub const EXPECT_NODE_AT: Range<usize> = 68..100;
/// Bytes of the check.
pub const CHECK_AT: Range<usize> = 100..104;
/// Bytes of the pattern.
pub const PATTERN_AT: Range<usize> = 104..152;
/// Length of a training frame in bytes.
pub const TRAINING_BYTES: usize = PATTERN_AT.end;
/// Length of the pattern in bytes.
pub const PATTERN_BYTES: usize = 48;
/// Longest node name, in bytes.
pub const NAME_BYTES: usize = 32;

const HEARD: u8 = 0x80;
/// Bits of the wanted lanes.
const RX_LANES: u8 = (1 << MAX_LANES) - 1;

const _: () = assert!(PATTERN_AT.end - PATTERN_AT.start == PATTERN_BYTES);
const _: () = assert!(NODE_AT.end - NODE_AT.start == NAME_BYTES);
const _: () = assert!(STATE_AT.start == HEADER_BYTES);
const _: () = assert!(HEARD & RX_LANES == 0);

/// The bytes of a training pattern.
pub type TrainingPattern = [u8; PATTERN_BYTES];

impl Lanes {
    /// Bits of the training pattern on each lane.
    pub const fn pattern_bits(self) -> u32 {
        let words = PATTERN_BYTES / self.word_bytes();
        words as u32 * self.word_bits() / self.count() as u32
    }

    /// Maximum number of wrong bits, an eighth, with which a lane of the pattern is still
    /// recognised.
    pub const fn pattern_tolerance(self) -> u32 {
        self.pattern_bits() / 8
    }

    /// The training pattern as sent: a different row of pseudo-random bits on each lane. On three
    /// lanes with words of 24 bits, rows and their inverses differ from each other, and from
    /// silence, in at least 63 of 128 bits (tested).
    pub fn pattern(self) -> TrainingPattern {
        // A xorshift generator (Marsaglia, "Xorshift RNGs", 2003). The seed is chosen for a large
        // distance between rows.
        let mut state = 0x5900_2f50_u32;
        let mut pattern = [0; PATTERN_BYTES];
        self.map_area(&mut pattern, |_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state >> (u32::BITS - self.word_bits())
        });
        pattern
    }

    /// Whether no lane's row of the pattern, inverted or not, can be mistaken for another lane's
    /// row or for silence.
    pub fn rows_differ(self) -> bool {
        let (pattern, silence) = (self.pattern(), [0; PATTERN_BYTES]);
        let is_far = |wrong: u32| {
            let wrong = wrong.min(self.pattern_bits() - wrong);
            wrong > 2 * self.pattern_tolerance()
        };
        let lanes = 0..self.count() as u8;
        lanes.clone().all(|lane| {
            let mut others = lanes.clone().filter(|other| *other != lane);
            is_far(self.distance(&silence, 0, lane))
                && others.all(|other| is_far(self.distance(&pattern, other, lane)))
        })
    }

    /// For each physical lane, the sender's lane and whether its polarity is inverted; `None` if
    /// the lane carries no known pattern, or does not exist.
    pub fn read_pattern(self, received: &TrainingPattern) -> [Option<(u8, bool)>; MAX_LANES] {
        let mut found = [None; MAX_LANES];
        for (physical, found) in found.iter_mut().enumerate().take(self.count()) {
            for lane in 0..self.count() as u8 {
                let wrong = self.distance(received, physical as u8, lane);
                if wrong <= self.pattern_tolerance() {
                    *found = Some((lane, false));
                } else if wrong >= self.pattern_bits() - self.pattern_tolerance() {
                    *found = Some((lane, true));
                }
            }
        }
        found
    }

    /// Number of bits in which physical lane `physical` differs from the pattern of `lane`.
    pub fn distance(self, received: &TrainingPattern, physical: u8, lane: u8) -> u32 {
        let mask = self.bits_of(self.all(), 0);
        let sent = self.pattern();
        let pairs = self.words(received).zip(self.words(&sent));
        pairs
            .map(|(got, sent)| ((got >> physical ^ sent >> lane) & mask).count_ones())
            .sum()
    }

    /// The cable that explains a received pattern.
    ///
    /// # Errors
    /// A mask of physical lanes: those without a known pattern, or all if several carry the same
    /// one.
    pub fn find_cable(self, received: &TrainingPattern) -> Result<Permutation, u8> {
        let (mut order, mut invert, mut dead) = ([0; MAX_LANES], [false; MAX_LANES], 0);
        let lanes = self.read_pattern(received);
        for (k, lane) in lanes.iter().enumerate().take(self.count()) {
            match lane {
                Some((from, inverted)) => (order[k], invert[k]) = (*from, *inverted),
                None => dead |= 1 << k,
            }
        }
        if dead != 0 {
            return Err(dead);
        }
        let (order, invert) = (&order[..self.count()], &invert[..self.count()]);
        Permutation::new(order, invert).ok_or(self.all())
    }
}

/// A decoded training frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Training {
    /// The frame header; `kind` and `units` are overwritten when encoding.
    pub header: FrameHeader,
    /// State of the sender's link control block, for the other end's diagnostics.
    pub state: u8,
    /// Whether the sender of this frame receives and accepts the receiver's training frames.
    pub heard: bool,
    /// Lanes that the sender of this frame wants to receive on, one bit each.
    pub rx_lanes: u8,
    /// Port of the sender.
    pub port: u8,
    /// Port that the sender expects at the other end.
    pub expect_port: u8,
    /// Longest packet that the sender of this frame accepts, in units of flow control.
    pub max_packet: u8,
    /// Code of the lane rate.
    pub rate: u8,
    /// Maximum number of unacknowledged packets in flight.
    pub window_packets: u16,
    /// Buffer offered per virtual channel, in units of flow control.
    pub credits: [u32; 2],
    /// Name of the sender; see [`name_bytes`].
    pub node: [u8; NAME_BYTES],
    /// Name of the node that the sender expects at the other end.
    pub expect_node: [u8; NAME_BYTES],
    /// The pattern, as sent ([`Lanes::pattern`]) or received.
    pub pattern: TrainingPattern,
}

/// A node name as encoded in a training frame; `None` when it is empty, longer than 32 bytes, or
/// contains a zero byte.
pub fn name_bytes(name: &str) -> Option<[u8; NAME_BYTES]> {
    let mut bytes = [0; NAME_BYTES];
    bytes
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    name_str(&bytes).filter(|read| *read == name).map(|_| bytes)
}

/// The name encoded in 32 bytes; `None` when it is empty, not UTF-8 or not padded with zeros.
pub fn name_str(bytes: &[u8; NAME_BYTES]) -> Option<&str> {
    let len = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(NAME_BYTES);
    let (name, padding) = bytes.split_at(len);
    if name.is_empty() || padding.iter().any(|byte| *byte != 0) {
        return None;
    }
    core::str::from_utf8(name).ok()
}

/// The raw bytes of a training frame: getters and setters without validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainingView<T>(T);

impl<T: AsRef<[u8]>> TrainingView<T> {
    /// A view of bytes that hold exactly one training frame.
    ///
    /// # Errors
    /// [`FrameError::BadLength`].
    pub fn new_checked(bytes: T) -> Result<Self, FrameError> {
        if bytes.as_ref().len() == TRAINING_BYTES {
            Ok(Self(bytes))
        } else {
            Err(FrameError::BadLength)
        }
    }

    /// Consumes the view and returns the bytes.
    pub fn into_inner(self) -> T {
        self.0
    }

    fn array<const N: usize>(&self, range: Range<usize>) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&self.0.as_ref()[range]);
        bytes
    }

    field!(get state, STATE_AT, u8, "State of the sender");
    field!(get lane_byte, RX_LANES_AT, u8, "The byte of `heard`, reserved bits and wanted lanes");
    field!(get port, PORT_AT, u8, "Port of the sender");
    field!(get expect_port, EXPECT_PORT_AT, u8, "Port that the sender expects to reach");
    field!(get max_packet, MAX_PACKET_AT, u8, "Longest packet");
    field!(get rate, RATE_AT, u8, "Code of the lane rate");
    field!(get window_packets, WINDOW_AT, u16, "Window in packets");
    field!(get check, CHECK_AT, u32, "The check as received");

    /// Credits per virtual channel.
    pub fn credits(&self) -> [u32; 2] {
        CREDITS_AT.map(|range| u32::from_be_bytes(self.array(range)))
    }

    /// Name of the sender.
    pub fn node(&self) -> [u8; NAME_BYTES] {
        self.array(NODE_AT)
    }

    /// Name of the node that the sender expects to reach.
    pub fn expect_node(&self) -> [u8; NAME_BYTES] {
        self.array(EXPECT_NODE_AT)
    }

    /// Whether the frame's check is valid.
    pub fn check_is_right(&self) -> bool {
        self.check() == checksum(&self.0.as_ref()[..CHECK_AT.start])
    }

    /// The pattern as received.
    pub fn pattern(&self) -> TrainingPattern {
        self.array(PATTERN_AT)
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> TrainingView<T> {
    field!(set set_state, STATE_AT, u8, "the state of the sender");
    field!(set set_port, PORT_AT, u8, "the sender's port");
    field!(set set_expect_port, EXPECT_PORT_AT, u8, "the port that the sender expects to reach");
    field!(set set_max_packet, MAX_PACKET_AT, u8, "the longest packet");
    field!(set set_rate, RATE_AT, u8, "the code of the lane rate");
    field!(set set_window_packets, WINDOW_AT, u16, "the window in packets");

    /// Sets `heard` and the wanted lanes; the reserved bits become zero.
    pub fn set_lanes(&mut self, heard: bool, rx_lanes: u8) {
        let heard = if heard { HEARD } else { 0 };
        self.0.as_mut()[RX_LANES_AT.start] = heard | rx_lanes & RX_LANES;
    }

    /// Sets the credits per virtual channel.
    pub fn set_credits(&mut self, credits: [u32; 2]) {
        for (range, credits) in CREDITS_AT.into_iter().zip(credits) {
            self.0.as_mut()[range].copy_from_slice(&credits.to_be_bytes());
        }
    }

    /// Sets the names of the sender and of the expected node.
    pub fn set_nodes(&mut self, node: &[u8; NAME_BYTES], expect_node: &[u8; NAME_BYTES]) {
        self.0.as_mut()[NODE_AT].copy_from_slice(node);
        self.0.as_mut()[EXPECT_NODE_AT].copy_from_slice(expect_node);
    }

    /// Computes and sets the check.
    pub fn fill_check(&mut self) {
        let check = checksum(&self.0.as_ref()[..CHECK_AT.start]);
        self.0.as_mut()[CHECK_AT].copy_from_slice(&check.to_be_bytes());
    }

    /// Sets the pattern, which the check does not cover.
    pub fn set_pattern(&mut self, pattern: &TrainingPattern) {
        self.0.as_mut()[PATTERN_AT].copy_from_slice(pattern);
    }
}

impl Training {
    /// The kind of training frames.
    pub const KIND: FrameKind = FrameKind::new(1);

    /// Bytes of the encoded frame.
    pub const fn buffer_len(&self) -> usize {
        TRAINING_BYTES
    }

    /// Interprets a frame as a training frame.
    ///
    /// # Errors
    /// [`FrameError::BadKind`], `BadLength`, `BadPhitCount`, `BadHeaderCheck`, `ReservedTraining`,
    /// `BadName`, in this order.
    pub fn of(frame: &Frame<'_>) -> Result<Self, FrameError> {
        let units = frame.units(Self::KIND)?;
        let view = TrainingView::new_checked(frame.bytes())?;
        if units != 0 {
            return Err(FrameError::BadPhitCount);
        }
        if !view.check_is_right() {
            return Err(FrameError::BadHeaderCheck);
        }
        if view.lane_byte() & !(HEARD | RX_LANES) != 0 {
            return Err(FrameError::ReservedTraining);
        }
        let (node, expect_node) = (view.node(), view.expect_node());
        if name_str(&node).is_none() || name_str(&expect_node).is_none() {
            return Err(FrameError::BadName);
        }
        Ok(Self {
            header: *frame.header(),
            state: view.state(),
            heard: view.lane_byte() & HEARD != 0,
            rx_lanes: view.lane_byte() & RX_LANES,
            port: view.port(),
            expect_port: view.expect_port(),
            max_packet: view.max_packet(),
            rate: view.rate(),
            window_packets: view.window_packets(),
            credits: view.credits(),
            node,
            expect_node,
            pattern: view.pattern(),
        })
    }

    /// The same frame, unless its sender wants lanes that the link does not have.
    ///
    /// # Errors
    /// [`FrameError::ReservedTraining`].
    pub const fn of_lanes(self, lanes: Lanes) -> Result<Self, FrameError> {
        if self.rx_lanes & !lanes.all() == 0 {
            Ok(self)
        } else {
            Err(FrameError::ReservedTraining)
        }
    }

    /// Parses the bytes of a training frame.
    ///
    /// # Errors
    /// As for [`parse`] and [`Self::of`].
    pub fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        Self::of(&parse(bytes)?)
    }

    /// Writes the frame and returns its length, [`TRAINING_BYTES`]. Names are not checked: make
    /// them with [`name_bytes`].
    ///
    /// # Errors
    /// [`EmitError::BufferTooSmall`]; the buffer is then unchanged.
    pub fn emit(&self, buf: &mut [u8]) -> Result<usize, EmitError> {
        let buf = buf
            .get_mut(..TRAINING_BYTES)
            .ok_or(EmitError::BufferTooSmall)?;
        FrameHeader {
            kind: Self::KIND,
            units: 0,
            ..self.header
        }
        .emit(buf)?;
        // No length check: the slice was cut to the length of the view above.
        let mut view = TrainingView(buf);
        view.set_state(self.state);
        view.set_lanes(self.heard, self.rx_lanes);
        view.set_port(self.port);
        view.set_expect_port(self.expect_port);
        view.set_max_packet(self.max_packet);
        view.set_rate(self.rate);
        view.set_window_packets(self.window_packets);
        view.set_credits(self.credits);
        view.set_nodes(&self.node, &self.expect_node);
        view.fill_check();
        view.set_pattern(&self.pattern);
        Ok(TRAINING_BYTES)
    }
}
