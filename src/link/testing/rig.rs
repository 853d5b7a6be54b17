//! The interface between the shared link tests and a machine.
//!
//! A machine implements [`Link`]: how to make an end, what it sends and receives, and what its
//! packets look like. The sibling modules provide the wire, the clock, the checkers, and the cases
//! that hold for every link.

use std::fmt::Debug;
use std::ops::Range;

use phitwire_framing::carrier::frame::LinkEnd;
use phitwire_framing::carrier::lane_layout::LaneLayout;
use proptest::strategy::BoxedStrategy;

pub use super::end::{Drain, End};
pub use super::pair::Pair;
use crate::link::common::Common;
use crate::link::{
    EndName, LaneRate, LinkConfig, LinkConfigBuilder, LinkProfile, LinkStandard, LinkView,
    NodeLink, ReceiveBuffer,
};
use crate::time::{Duration, Time};

pub const A: usize = 0;
pub const B: usize = 1;
pub const SECOND: Duration = Duration::from_ms(1_000);
/// Length of a link frame that fills an Ethernet frame.
pub const FRAME_BYTES: usize = 1_472;

/// The links of one machine. A word is the unit of its packets: a phit or a flit.
pub trait Link: Sized + 'static {
    type Lcb: NodeLink<Config = Self::Config, Input = Self::Input>;
    type Input: ReceiveBuffer;
    type Config;
    type Word: Copy + Debug + PartialEq;
    /// Commands that only this machine's ends have.
    type Command: Clone + Debug;

    const VCS: usize;
    const LAYOUT: LaneLayout;
    /// Lengths of packets, in words.
    const PACKET_WORDS: Range<usize>;
    /// Length of a frame without data.
    const IDLE_FRAME_BYTES: usize;
    /// Length of a frame with little data.
    const SMALL_FRAME_BYTES: usize;
    /// Bits of a packet id within one process, and the number of processes that ids can
    /// distinguish.
    const ID_BITS: u32;
    const PROCESSES: u32;
    const STANDARD: LinkStandard;
    /// A lane rate other than the first of the standard.
    const OTHER_RATE: LaneRate;
    /// Whether the end of a session may lose or cut a channel's last packets.
    const LOSES_TAILS: bool;
    /// Whether a packet with a soft error can be identified by its number.
    const NUMBERS_SOFT_ERRORS: bool;
    /// Whether the packet counters count these packets. On links above a carrier they count the
    /// carrier's units.
    const COUNTS_PACKETS: bool = true;
    /// Retries charged to a lane that is given up at a threshold of 20.
    const CHARGES_OF_20: Range<u64>;

    /// The common state of the link, mutable.
    fn common(lcb: &mut Self::Lcb) -> &mut Common;
    /// Makes the end lose its last lane.
    fn die(lcb: &mut Self::Lcb, now: Time);

    /// A configuration with the depths of a live link.
    fn built(builder: LinkConfigBuilder) -> Self::Config;
    /// A configuration with the depths of an end that is to be replaced.
    fn again(_: &Self::Lcb, builder: LinkConfigBuilder) -> Self::Config {
        Self::built(builder)
    }
    /// A configuration with buffers so small that they are always full.
    fn cramped(builder: LinkConfigBuilder) -> Self::Config;
    /// A pair with the chip's buffer depths, about fifty times as slow as the chip.
    fn paper(seed: u64) -> Pair<Self>;

    /// A healthy packet that carries `id`.
    fn packet(vc: usize, id: u32, words: usize) -> Vec<Self::Word>;
    fn can_begin(lcb: &Self::Lcb, vc: usize, words: usize) -> bool;
    fn push(lcb: &mut Self::Lcb, word: Self::Word);
    fn push_packet(lcb: &mut Self::Lcb, packet: &[Self::Word]) {
        packet.iter().for_each(|word| Self::push(lcb, *word));
    }
    fn credits(lcb: &Self::Lcb, vc: usize) -> u32;
    /// Credits per channel that the end offers its peer.
    fn offered(lcb: &Self::Lcb) -> u32;
    /// Whether the peer has acknowledged everything but packets.
    fn is_settled(_: &Self::Lcb) -> bool {
        true
    }
    /// Words that the end believes to be in the peer's buffer.
    fn far_words(_: &Self::Lcb) -> u32 {
        0
    }

    fn is_empty(input: &Self::Input) -> bool {
        (0..Self::VCS).all(|vc| Self::len(input, vc) == 0)
    }
    fn len(input: &Self::Input, vc: usize) -> u32;
    fn pop(input: &mut Self::Input, vc: usize) -> Self::Word;
    /// Whether the last of `words` ends the packet.
    fn is_whole(words: &[Self::Word]) -> bool;
    /// Checks a received packet and counts it.
    fn check(end: &mut End<Self>, vc: usize, got: &[Self::Word]);
    /// Weight of a packet in [`Self::given_up`].
    fn weight(_: &[Self::Word]) -> u64 {
        1
    }
    /// Packets, or the carrier's units, that `end` gave up because sessions ended.
    fn given_up(end: &End<Self>) -> u64 {
        end.lcb.counters().tx_discarded_packets
    }
    /// Checks with the machine's own counters that everything `end` sent was received.
    fn assert_conserved(pair: &Pair<Self>, end: usize);
    /// Failed checks counted at an end.
    fn check_failures(lcb: &Self::Lcb) -> u64;
    /// Resends that an end requested.
    fn requests(lcb: &Self::Lcb) -> u64;
    /// The machine-specific state of an end, for failure messages.
    fn described(end: &End<Self>) -> String;
    fn for_each_own(_: &Self::Lcb, _: &mut dyn FnMut(&'static str, u64)) {}

    /// Forges a frame on `lanes` in the name of `to`'s peer: it carries `words`, acknowledges
    /// `more` units than the peer has, and reports nothing else new.
    fn forge(pair: &Pair<Self>, to: usize, lanes: u8, more: u64, words: &[Self::Word]) -> Vec<u8>;

    fn commands() -> Vec<BoxedStrategy<Self::Command>> {
        Vec::new()
    }
    fn command(lcb: &mut Self::Lcb, command: Self::Command, now: Time);
    /// Resends everything unacknowledged.
    fn force_retry(lcb: &mut Self::Lcb, now: Time);
    /// Damages the next packet before its check, where there is one.
    fn soft_error_next(_: &mut Self::Lcb) {}
    /// Frame lengths, from small to large.
    fn frame_bytes() -> BoxedStrategy<usize>;
}

pub fn name(node: &str, port: u8) -> EndName {
    EndName {
        node: node.to_owned(),
        port,
    }
}

/// A builder for the configuration of end `end`.
pub fn config<L: Link>(end: usize) -> LinkConfigBuilder {
    let (local, peer) = (name("left", 3), name("right", 5));
    let builder = if end == A {
        LinkConfig::builder(L::STANDARD, 7, LinkEnd::A, local, peer)
    } else {
        LinkConfig::builder(L::STANDARD, 7, LinkEnd::B, peer, local)
    };
    let epoch = 1_000 + 1_000 * end as u32;
    builder.fabric(0xfab).epoch(epoch)
}

pub fn live<L: Link>(end: usize) -> L::Config {
    L::built(config::<L>(end))
}

/// Configuration of end `end` in `epoch`, with the times of `profile`.
pub fn made<L: Link>(end: usize, epoch: u32, profile: LinkProfile) -> L::Config {
    L::built(config::<L>(end).epoch(epoch).profile(profile))
}
