//! Two link ends of any machine, a wire between them that does what it is told to, and a checker
//! behind each end.
//!
//! A machine joins by [`Link`]: how an end is made, what it sends and takes, and what its packets
//! look like. It gets the wire and the clock from here, and from the files beside this one the
//! cases that hold for every link.

use std::fmt::Debug;
use std::ops::Range;

use phitwire_framing::carrier::frame::LinkEnd;
use proptest::strategy::BoxedStrategy;

pub use super::end::{Drain, End};
pub(crate) use super::pair::Pair;
use crate::link::common::Common;
use crate::link::{
    EndName, EndStatus, LaneRate, LinkConfig, LinkConfigBuilder, LinkControlBlock, LinkProfile,
    LinkStandard, ReceiveBuffer,
};
use crate::time::{Duration, Time};

pub const A: usize = 0;
pub const B: usize = 1;
pub const SECOND: Duration = Duration::from_ms(1_000);
/// Bytes of a frame that fills an Ethernet frame.
pub const FRAME_BYTES: usize = 1_472;

/// The links of one machine. A word is what its packets consist of: a phit, a flit.
pub trait Link: Sized + 'static {
    type Lcb: EndStatus + Debug + LinkControlBlock<Config = Self::Config, Input = Self::Input>;
    type Input: ReceiveBuffer;
    type Config;
    type Word: Copy + Debug + PartialEq;
    /// What can be done to an end of this machine only.
    type Command: Clone + Debug;

    const VCS: usize;
    /// Words that packets may have.
    const PACKET_WORDS: Range<usize>;
    /// Length of a frame that says something but carries nothing.
    const IDLE_FRAME_BYTES: usize;
    /// Length of a frame that carries little.
    const SMALL_FRAME_BYTES: usize;
    /// Bits of the ids that one process gives its packets, and most processes that ids have room
    /// for.
    const ID_BITS: u32;
    const PROCESSES: u32;
    /// What all links of the machine have in common.
    const STANDARD: LinkStandard;
    /// Another lane rate than the first of the standard.
    const OTHER_RATE: LaneRate;
    /// Whether the last packets of a channel may be missing after a session, or be cut in two by
    /// its end.
    const LOSES_TAILS: bool;
    /// Whether a packet with a soft error can be told from others by its number.
    const NUMBERS_SOFT_ERRORS: bool;
    /// Whether the counters of packets count these packets: of links above a carrier they count
    /// what that carries.
    const COUNTS_PACKETS: bool = true;
    /// Retries charged to a lane that is given up at a threshold of 20.
    const CHARGES_OF_20: Range<u64>;

    /// The state of the link, to be changed.
    fn common(lcb: &mut Self::Lcb) -> &mut Common;
    /// The end loses its last lane.
    fn die(lcb: &mut Self::Lcb, now: Time, input: &mut Self::Input);

    /// A configuration with the depths of a live link.
    fn built(builder: LinkConfigBuilder) -> Self::Config;
    /// A configuration with buffers so small that everything is full all the time.
    fn cramped(builder: LinkConfigBuilder) -> Self::Config;
    /// A pair at the chip's own depths, some fifty times as slow as the chip.
    fn paper(seed: u64) -> Pair<Self>;

    /// A healthy packet that carries `id`.
    fn packet(vc: usize, id: u32, words: usize) -> Vec<Self::Word>;
    fn can_begin(lcb: &Self::Lcb, vc: usize, words: usize) -> bool;
    fn push(lcb: &mut Self::Lcb, word: Self::Word);
    fn push_packet(lcb: &mut Self::Lcb, packet: &[Self::Word]) {
        packet.iter().for_each(|word| Self::push(lcb, *word));
    }
    fn credits(lcb: &Self::Lcb, vc: usize) -> u32;
    /// The credits for each channel that the end gives its peer.
    fn offered(lcb: &Self::Lcb) -> u32;
    /// Whether the peer has acknowledged everything, packets apart.
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
    /// Whether a packet ends with the last of `words`, of which all others were not its end.
    fn is_whole(words: &[Self::Word]) -> bool;
    /// Checks a packet that came, and counts it.
    fn check(end: &mut End<Self>, vc: usize, got: &[Self::Word]);
    /// What a packet counts for where an end counts what it gives up.
    fn weight(_: &[Self::Word]) -> u64 {
        1
    }
    /// What `end` gave up because sessions ended.
    fn given_up(end: &End<Self>) -> u64 {
        end.lcb.counters().tx_discarded_packets
    }
    /// Checks that what was sent from `end` is what was received, by the machine's own counters.
    fn assert_conserved(pair: &Pair<Self>, end: usize);
    /// Checks that failed at an end.
    fn check_failures(lcb: &Self::Lcb) -> u64;
    /// Times that an end asked its peer to send again.
    fn requests(lcb: &Self::Lcb) -> u64;
    /// What is to be seen of an end beside what all links have.
    fn described(end: &End<Self>) -> String;
    fn for_each_own(_: &Self::Lcb, _: &mut dyn FnMut(&'static str, u64)) {}

    /// A frame on `lanes` that claims to be from the other end of `to` and carries `words`, and
    /// says nothing new but that it acknowledges `more` than the other end has.
    fn forge(pair: &Pair<Self>, to: usize, lanes: u8, more: u64, words: &[Self::Word]) -> Vec<u8>;

    fn commands() -> Vec<BoxedStrategy<Self::Command>> {
        Vec::new()
    }
    fn command(lcb: &mut Self::Lcb, command: Self::Command, now: Time);
    /// Sends everything unacknowledged again.
    fn force_retry(lcb: &mut Self::Lcb, now: Time);
    /// Damages the next packet before it is checked, where it is.
    fn soft_error_next(_: &mut Self::Lcb) {}
    /// Lengths of frames from small to large.
    fn frame_bytes() -> BoxedStrategy<usize>;
}

pub fn name(node: &str, port: u8) -> EndName {
    EndName {
        node: node.to_owned(),
        port,
    }
}

/// The configuration of end `end`, to be changed.
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

/// End `end` named `epoch`, with the times of `profile`.
pub fn made<L: Link>(end: usize, epoch: u32, profile: LinkProfile) -> L::Config {
    L::built(config::<L>(end).epoch(epoch).profile(profile))
}
