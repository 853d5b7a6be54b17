//! What a process shows of a link, and does to it, whatever the link protocol.

use phitwire::link::{ErrorInjection, InputQueue, Lcb, LinkConfig, LinkCounters, LinkState};
use phitwire::node::PortId;
use phitwire::time::{Duration, Time};

use crate::control::LinkReport;

/// A link that can be looked at from outside.
pub trait LiveLink {
    /// What the link was told before it started.
    fn config(&self) -> &LinkConfig;
    /// How it stands.
    fn state(&self) -> LinkState;
    /// What it received, and what of that was not for it.
    fn misfits(&self) -> Misfits;
    /// Whether it is of Aries, whose links carry sets and have registers for errors made on purpose.
    fn has_sets(&self) -> bool {
        false
    }
    /// Data frames of the peer that were accepted.
    fn accepted(&self) -> u64;
    /// When a data frame of the peer was last accepted.
    fn last_accepted(&self) -> Option<Time>;
    /// Whether nothing is accepted although the peer was asked.
    fn is_silent(&self) -> bool;
    /// Whether the peer is heard and acknowledges nothing.
    fn is_stalled(&self) -> bool;
    /// Everything but why it is not up and since when.
    fn report(&self, port: PortId) -> LinkReport;
}

/// Frames of a link, and those that somebody else should have had.
#[derive(Clone, Copy, Debug)]
pub struct Misfits {
    /// Frames received.
    pub frames: u64,
    /// Frames that were not for this link, and what they were.
    pub foreign: [(u64, &'static str); 6],
}

impl From<&LinkCounters> for Misfits {
    fn from(counters: &LinkCounters) -> Self {
        Self {
            frames: counters.rx_frames,
            foreign: [
                (counters.drop_wrong_fabric, "frames of another lab"),
                (counters.drop_wrong_link, "frames of another link"),
                (counters.drop_wrong_end, "its own frames reflected"),
                (counters.drop_bad_version, "frames of another version"),
                (counters.drop_bad_magic, "frames that are not phitwire's"),
                (
                    counters.drop_wrong_peer,
                    "training frames of another node than the topology names",
                ),
            ],
        }
    }
}

/// What can be broken or mended at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkFault {
    /// Damages the next packet before its check.
    SoftError,
    /// Takes the link down until told otherwise.
    Down,
    /// Brings it back.
    Up,
    /// Sends everything unacknowledged again.
    ForceRetry,
    /// Sends the next set with a bad CRC.
    BadCrc,
    /// Initialises the lanes again.
    Reinit,
    /// Loses the receive clock for so long.
    LoseClock(Duration),
    /// Makes bit errors from now on.
    Inject(ErrorInjection),
}

impl LinkFault {
    /// Does it to a YARC link.
    pub fn act(self, now: Time, lcb: &mut Lcb, input: &mut InputQueue) {
        match self {
            Self::SoftError => lcb.soft_error_next(),
            Self::Down => lcb.link_down(now, input),
            Self::Up => lcb.link_up(now),
            Self::ForceRetry => lcb.force_retry(now),
            // Whoever asks has been told that there is no such thing.
            Self::BadCrc | Self::Reinit | Self::LoseClock(_) | Self::Inject(_) => {}
        }
    }
}

impl LiveLink for Lcb {
    fn config(&self) -> &LinkConfig {
        Lcb::config(self)
    }

    fn state(&self) -> LinkState {
        Lcb::state(self)
    }

    fn misfits(&self) -> Misfits {
        self.counters().into()
    }

    fn accepted(&self) -> u64 {
        self.counters().rx_data_frames
    }

    fn last_accepted(&self) -> Option<Time> {
        Lcb::last_accepted(self)
    }

    fn is_silent(&self) -> bool {
        Lcb::is_silent(self)
    }

    fn is_stalled(&self) -> bool {
        Lcb::is_stalled(self)
    }

    fn report(&self, port: PortId) -> LinkReport {
        let config = Lcb::config(self);
        LinkReport {
            port,
            link: config.link(),
            state: Lcb::state(self).name().to_owned(),
            lcb: Lcb::state(self).name().to_owned(),
            up: self.is_active(),
            why: None,
            peer: format!("{}:{}", config.peer().node, config.peer().port),
            rx_lanes: self.rx_lanes().count_ones(),
            tx_lanes: self.tx_lanes().count_ones(),
            resent: self.counters().tx_retransmitted_packets,
            lane_retries: self.counters().lane_retries,
            heard_ms: None,
            rtt_ns: self.round_trip().map(|span| span.as_ns()),
            credits: phitwire_framing::packet24::Vc::ALL
                .map(|vc| self.credits(vc))
                .to_vec(),
            unacknowledged_packets: self.unacknowledged_packets(),
        }
    }
}
