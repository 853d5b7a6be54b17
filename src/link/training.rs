//! Channel initialisation: identifies the peer, finds the lanes, agrees on terms.

use phitwire_framing::carrier::frame::{FrameHeader, LinkEnd};
use phitwire_framing::carrier::lanes::{Lanes, MAX_LANES, Permutation};
use phitwire_framing::carrier::training::{Training, TrainingPattern, name_bytes, name_str};

use super::config::{EndName, LinkConfig, LinkProfile, MAX_CREDITS};
use super::event::LinkState;
use super::lane_rate::LaneRate;
use crate::time::{Duration, Time};

/// Number of replies sent at once before the rate is limited.
const ANSWER_BURST: u8 = 8;
/// Number of training frames in which a lane may be missing before initialisation continues without
/// it.
const PATIENCE_FOR_LANES: u8 = 8;

/// Parameters that the peer offered in a training frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub window: u16,
    pub credits: [u32; 2],
    pub max_packet: u8,
    /// Lanes that the peer receives on.
    pub lanes: u8,
    /// The peer has heard this incarnation of this end: its lanes are settled.
    pub(crate) heard: bool,
}

/// Parameters that this end offers in its training frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Maximum number of unacknowledged units: packets, or sets of flits.
    pub window: u16,
    /// Input buffer: phits per virtual channel; for flits, the total and each channel's private
    /// part.
    pub credits: [u32; 2],
    /// Longest packet, in phits or flits.
    pub max_packet: u8,
    /// Smallest `max_packet` that a peer may offer, in phits or flits.
    pub least_packet: u8,
}

/// Why a training frame is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    End(String),
    Fabric(String),
    Link(String),
    Peer(String),
}

impl Refusal {
    pub(crate) fn message(&self) -> &str {
        let (Self::End(text) | Self::Fabric(text) | Self::Link(text) | Self::Peer(text)) = self;
        text
    }
}

const _: () = assert!(
    1 << MAX_LANES <= u16::BITS,
    "`announced` has a bit for every set of lanes"
);

/// A training frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Answer {
    tx_epoch: u32,
    rx_epoch: u32,
    heard: bool,
    /// Sent under the next epoch, in which this end is still training.
    challenge: bool,
}

/// One end's side of channel initialisation. BlackWidow sec. 4.4 states its results; the method is
/// ours.
///
/// Each end sends training frames with its epoch and, once known, the peer's. An end that accepted
/// the peer's frames says so (`heard`); an end that sees its current epoch in such a frame knows
/// that the peer is live and agrees, and becomes active. While data flows, a frame of another
/// incarnation proves nothing, since it may be an old one that was delayed: the reply uses the
/// *next* epoch, and only a live peer replies to that. Then this end restarts too.
#[derive(Debug)]
pub struct Handshake {
    pub(crate) epoch: u32,
    terms: Terms,
    /// The lanes of this kind of link.
    all_lanes: Lanes,
    /// Epoch of the peer, 0 while unknown.
    pub(crate) peer_epoch: u32,
    pub(crate) offer: Option<Offer>,
    /// Permutation and inversion of the receive lanes by the cable.
    pub cable: Permutation,
    /// Lanes found, by the sender's numbers.
    pub lanes: u8,
    /// Lane sets announced to the peer since this end began to train: bit n for set n.
    pub announced: u16,
    frames_heard: u8,
    /// The last refusal, so that it is reported once.
    pub(crate) complaint: Option<String>,
    interval: Duration,
    shortest: Duration,
    longest: Duration,
    due: Time,
    /// Earliest time of the next unsolicited training frame, however often `ask` and `rest`
    /// alternate.
    not_before: Time,
    answer: Option<Answer>,
    answers_left: u8,
    refilled: Time,
}

impl Handshake {
    pub(crate) fn new(config: &LinkConfig, terms: Terms, profile: &LinkProfile, now: Time) -> Self {
        Self {
            epoch: config.epoch,
            terms,
            all_lanes: config.standard.lanes,
            peer_epoch: 0,
            offer: None,
            cable: Permutation::IDENTITY,
            lanes: 0,
            announced: 0,
            frames_heard: 0,
            complaint: None,
            interval: profile.min_training_interval,
            shortest: profile.min_training_interval,
            longest: profile.max_training_interval,
            due: now,
            not_before: now,
            answer: None,
            answers_left: ANSWER_BURST,
            refilled: now,
        }
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The epoch after the next restart.
    pub(crate) fn next_epoch(&self) -> u32 {
        self.epoch.wrapping_add(1).max(1)
    }

    /// Restarts under the next epoch.
    pub(crate) fn restart(&mut self, now: Time) {
        self.epoch = self.next_epoch();
        debug_assert!(self.epoch != 0, "0 means unknown");
        self.peer_epoch = 0;
        self.offer = None;
        self.lanes = 0;
        self.announced = 0;
        self.frames_heard = 0;
        self.complaint = None;
        self.interval = self.shortest;
        self.due = now;
        self.answer = None;
    }

    /// The link is up or down: sends only replies from now on.
    pub(crate) fn rest(&mut self) {
        self.due = Time::NEVER;
        self.interval = self.shortest;
    }

    /// Sends training frames at growing intervals until [`Self::rest`].
    pub(crate) fn ask(&mut self, now: Time) {
        if self.due == Time::NEVER {
            self.interval = self.shortest;
            self.due = now.max(self.not_before);
        }
    }

    /// Sends a training frame to the peer of this session; `heard` false requests one in return.
    pub(crate) fn answer(&mut self, heard: bool) {
        self.answer_to(self.peer_epoch, heard);
    }

    /// Sends a training frame to the peer's incarnation `rx_epoch`, even if that is unknown.
    pub(crate) fn answer_to(&mut self, rx_epoch: u32, heard: bool) {
        self.answer = Some(Answer {
            tx_epoch: self.epoch,
            rx_epoch,
            heard,
            challenge: false,
        });
    }

    /// Checks whether the end with epoch `candidate` is live.
    pub(crate) fn challenge(&mut self, candidate: u32) {
        let (tx_epoch, rx_epoch) = (self.next_epoch(), candidate);
        self.answer = Some(Answer {
            tx_epoch,
            rx_epoch,
            heard: true,
            challenge: true,
        });
    }

    /// Accepts a frame of the peer while training.
    pub(crate) fn accept(&mut self, training: &Training) {
        debug_assert!(
            training.header.tx_epoch != 0,
            "the session checked the epochs"
        );
        if training.header.tx_epoch != self.peer_epoch {
            self.frames_heard = 0;
            self.lanes = 0;
        }
        self.peer_epoch = training.header.tx_epoch;
        self.complaint = None;
        // Lanes stay once this end may have announced them.
        if !self.lanes_settled() {
            let (cable, lanes) = read_cable(self.all_lanes, &training.pattern);
            if lanes.count_ones() >= self.lanes.count_ones() {
                (self.cable, self.lanes) = (cable, lanes);
            }
        }
        self.frames_heard = self.frames_heard.saturating_add(1);
        self.offer = Some(Offer {
            window: training.window_packets,
            credits: training.credits,
            max_packet: training.max_packet,
            lanes: training.rx_lanes,
            heard: training.heard && training.header.rx_epoch == self.epoch,
        });
    }

    fn lanes_settled(&self) -> bool {
        let patience_is_over = self.lanes != 0 && self.frames_heard >= PATIENCE_FOR_LANES;
        self.lanes == self.all_lanes.all() || patience_is_over
    }

    /// Whether the peer's frames are accepted and the lanes settled.
    pub(crate) fn heard(&self) -> bool {
        self.offer.is_some() && self.lanes_settled()
    }

    /// Whether both ends have accepted each other's frames, as far as this end knows.
    pub(crate) fn agreed(&self) -> bool {
        self.heard() && self.offer.as_ref().is_some_and(|offer| offer.heard)
    }

    #[inline]
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.due <= now || (self.answer.is_some() && self.may_answer(now))
    }

    /// When the next training frame is due.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        match self.answer {
            Some(_) if self.answers_left == 0 => self.due.min(self.refilled + self.shortest),
            Some(_) => self.refilled,
            None => self.due,
        }
    }

    fn may_answer(&self, now: Time) -> bool {
        self.answers_left > 0 || self.refilled + self.shortest <= now
    }

    /// The epochs and `heard` of the frame to send now.
    fn next(&mut self, state: LinkState, now: Time) -> Option<Answer> {
        if self.answer.is_some() && self.may_answer(now) {
            if self.refilled + self.shortest <= now {
                self.answers_left = ANSWER_BURST;
                self.refilled = now;
            }
            debug_assert!(0 < self.answers_left && self.answers_left <= ANSWER_BURST);
            self.answers_left -= 1;
            return self.answer.take();
        }
        if self.due > now {
            return None;
        }
        self.due = now + self.interval;
        self.not_before = now + self.shortest;
        self.interval = self.interval.times(2).min(self.longest);
        debug_assert!(self.shortest <= self.interval && self.interval <= self.longest);
        // While training, an unsolicited frame does not name the epoch that was heard: an old frame
        // may have misled us, and the peer drops frames that name an unknown epoch.
        let sure = state == LinkState::Active;
        let rx_epoch = if sure { self.peer_epoch } else { 0 };
        Some(Answer {
            tx_epoch: self.epoch,
            rx_epoch,
            heard: sure,
            challenge: false,
        })
    }

    /// The training frame that is due now, if any.
    pub(crate) fn frame(
        &mut self,
        config: &LinkConfig,
        state: LinkState,
        rx_lanes: u8,
        now: Time,
    ) -> Option<Training> {
        let Answer {
            tx_epoch,
            rx_epoch,
            heard,
            challenge,
        } = self.next(state, now)?;
        // Offer all lanes in a challenge: it is for the next session, which trains all of them.
        let (state, rx_lanes) = if challenge {
            (LinkState::Training, self.all_lanes.all())
        } else {
            (state, rx_lanes)
        };
        if !challenge {
            self.announced |= 1 << (rx_lanes & self.all_lanes.all());
        }
        let name = |end: &EndName| name_bytes(&end.node).expect("the builder checked the names");
        Some(Training {
            header: FrameHeader {
                kind: Training::KIND,
                end: config.end,
                link: config.link,
                fabric: config.fabric,
                tx_epoch,
                rx_epoch,
                lanes: self.all_lanes.all(),
                units: 0,
            },
            state: state.code(),
            heard,
            rx_lanes,
            port: config.local.port,
            expect_port: config.peer.port,
            max_packet: self.terms.max_packet,
            rate: config.rate.code(),
            window_packets: self.terms.window,
            credits: self.terms.credits,
            node: name(&config.local),
            expect_node: name(&config.peer),
            pattern: self.all_lanes.pattern(),
        })
    }
}

/// Derives the cable from a received pattern; also returns the sender's lanes that were recognised.
/// The others are assigned in any order, since nothing will travel on them.
fn read_cable(all: Lanes, pattern: &TrainingPattern) -> (Permutation, u8) {
    let found = all.read_pattern(pattern);
    let mut lanes = 0;
    for (lane, _) in found.iter().flatten() {
        lanes |= 1 << lane;
    }
    let (mut order, mut invert) = ([0; MAX_LANES], [false; MAX_LANES]);
    let mut used = 0;
    for (physical, found) in found.iter().enumerate().take(all.count()) {
        let free = |lane: &u8| (lanes | used) & (1 << lane) == 0;
        let (lane, inverted) = match found {
            Some((lane, inverted)) if used & (1 << lane) == 0 => (*lane, *inverted),
            _ => ((0..all.count() as u8).find(free).unwrap_or(0), false),
        };
        used |= 1 << lane;
        (order[physical], invert[physical]) = (lane, inverted);
    }
    match Permutation::new(&order[..all.count()], &invert[..all.count()]) {
        Some(cable) => (cable, lanes),
        // The same lane on two pairs: such a cable does not exist.
        None => (Permutation::IDENTITY, 0),
    }
}

fn peer_name(training: &Training) -> EndName {
    let node = name_str(&training.node).unwrap_or("?").to_owned();
    EndName {
        node,
        port: training.port,
    }
}

/// Checks that a training frame comes from the expected peer and offers usable terms.
pub(crate) fn judge(
    config: &LinkConfig,
    terms: &Terms,
    training: &Training,
) -> Result<(), Refusal> {
    let header = &training.header;
    let (link, peer, found) = (config.link, &config.peer, peer_name(training));
    if header.fabric != config.fabric {
        return Err(Refusal::Fabric(format!(
            "link {link}: {found} belongs to another lab (fabric {:#010x}, this lab has {:#010x})",
            header.fabric, config.fabric
        )));
    }
    if header.end == config.end {
        let end = if config.end == LinkEnd::A { 'A' } else { 'B' };
        return Err(Refusal::End(format!(
            "link {link}: {found} claims end {end}, which is {}: the cable loops back, or two \
             processes run the same node",
            config.local
        )));
    }
    if header.link != link {
        return Err(Refusal::Link(format!(
            "link {link}: expected {peer}, found {found} on link {}",
            header.link
        )));
    }
    if found != *peer {
        return Err(Refusal::Peer(format!(
            "link {link}: expected {peer}, found {found}"
        )));
    }
    let wanted = EndName {
        node: name_str(&training.expect_node).unwrap_or("?").to_owned(),
        port: training.expect_port,
    };
    if wanted != config.local {
        return Err(Refusal::Peer(format!(
            "link {link}: {found} expects {wanted} at this end, but this is {}",
            config.local
        )));
    }
    judge_offer(config, terms, training).map_err(|what| {
        Refusal::Peer(format!(
            "link {link}: {found} is incompatible with this end: {what}"
        ))
    })
}

fn judge_offer(config: &LinkConfig, terms: &Terms, training: &Training) -> Result<(), String> {
    let rate = LaneRate::from_code(config.standard.rates, training.rate);
    if rate != Some(config.rate) {
        return Err(format!(
            "its lane rate is {rate:?}, this end has {:?}",
            config.rate
        ));
    }
    let max_packet = training.max_packet.min(terms.max_packet);
    if training.max_packet < terms.least_packet {
        return Err(format!(
            "its longest packet of {} phits is too short",
            training.max_packet
        ));
    }
    for credits in training.credits {
        if credits < max_packet.into() || credits > MAX_CREDITS {
            return Err(format!("its input buffer of {credits} phits is invalid"));
        }
    }
    if training.window_packets == 0 {
        return Err("its window is 0 packets".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::carrier::training::PATTERN_BYTES;

    const LANES: Lanes = Lanes::new(3, 24);

    #[test]
    fn every_cable_is_found_with_all_lanes_or_with_one_cut() {
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            for bits in 0..8_u8 {
                let invert = [0, 1, 2].map(|lane| bits >> lane & 1 != 0);
                let cable = Permutation::new(order, invert).unwrap();
                let mut whole = LANES.pattern();
                LANES.swizzle_area(&mut whole, LANES.all(), &cable);
                assert_eq!(read_cable(LANES, &whole), (cable, LANES.all()));
                for cut in 0..3 {
                    // A cut pair is silent, whatever its polarity.
                    let physical = order.iter().position(|lane| *lane == cut).unwrap() as u8;
                    let mut silent = whole;
                    let cut_bits = LANES.bits_of(LANES.all(), physical);
                    LANES.map_area(&mut silent, |wire| wire & !cut_bits);
                    let (found, lanes) = read_cable(LANES, &silent);
                    assert_eq!(lanes, LANES.all() & !(1 << cut));
                    assert_eq!(
                        found.order(),
                        cable.order(),
                        "two known lanes determine the third"
                    );
                }
            }
        }
        assert_eq!(read_cable(LANES, &[0; PATTERN_BYTES]).1, 0);
    }
}
