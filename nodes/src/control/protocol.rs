//! Requests, and what of their answers programs act upon.

use std::fmt;
use std::str::FromStr;

use clap::Subcommand;
use phitwire::device::LinkView;
pub use phitwire::device::{Kind as NodeKind, PipelineReport, Routing as RoutingReport};
use phitwire::nic::{Probe, ProbeSpec, TrafficSpec};
use phitwire::node::PortId;
use phitwire::trace::{Flow, Question, Watched};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The longest line, request or reply, in bytes.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The longest time that a port can be told to lose its receive clock, in milliseconds.
pub const MAX_CLOCKLESS_MS: u64 = 60_000;

/// What can be asked of a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Every counter by name.
    Stats,
    /// A [`LinkReport`] per port.
    Links,
    /// What runs here: name, kind, process id, engine, ports.
    Info,
    /// The value of a register: `{"register": ..., "value": N, "hex": "0xN"}`. Readers whose
    /// numbers are floating-point ones take `hex`.
    Get {
        /// Which.
        register: Register,
    },
    /// Writes a register. Answered like [`Get`](Self::Get), with the value written.
    Set {
        /// Which.
        register: Register,
        /// The new value.
        value: u64,
    },
    /// Breaks something on purpose.
    Fault(Fault),
    /// Keeps a network interface for runs of the client, until this connection is closed, however
    /// it comes to be: nobody else can start a run there meanwhile, and what has been started ends
    /// with the connection. Asking again changes nothing. The answer is [`Claimed`].
    Claim(Holder),
    /// Starts a traffic run at a network interface.
    TrafficStart {
        /// The run, as `phitwire::nic::TrafficSpec` reads it.
        spec: Value,
    },
    /// What is known here of a traffic run, as `phitwire::nic::TrafficReport` writes it.
    TrafficStatus {
        /// Which run; the latest if not given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<u64>,
    },
    /// Ends the issuing of messages; outstanding ones are waited for.
    TrafficStop,
    /// Starts a run of collective operations at a network interface that has an engine for them;
    /// all its participants have to be told.
    CollectiveStart {
        /// The run, as `phitwire::nic::CollectiveSpec` reads it.
        spec: Value,
    },
    /// What is known here of the latest run of collective operations, as
    /// `phitwire::nic::CollectiveReport` writes it.
    CollectiveStatus,
    /// Ends the run of collective operations: all participants stop after the same iteration. Asked
    /// again, what waits for others ends as well.
    CollectiveStop,
    /// Keeps a barrier unit of a network interface for runs of the client, as [`Claim`](Self::Claim)
    /// does all else; other clients may use other units, and the network interface itself.
    ClaimUnit {
        /// The unit.
        unit: u8,
        /// Who.
        holder: Holder,
    },
    /// Makes a barrier unit of a network interface ready for a run. Routers have to be configured
    /// before, and all participants made ready before one of them starts.
    BarrierPrepare {
        /// The unit.
        unit: u8,
    },
    /// Starts a run of barriers at a unit of a network interface.
    BarrierStart {
        /// The run, as `phitwire::nic::BarrierSpec` reads it.
        spec: Value,
    },
    /// What is known here of the latest run of a unit, as `phitwire::nic::BarrierReport` writes it.
    BarrierStatus {
        /// The unit.
        unit: u8,
    },
    /// Ends the run of a unit: all participants stop after the same barrier. Asked again, at once.
    BarrierStop {
        /// The unit.
        unit: u8,
    },
    /// Lets a router ask another one for a register, or write it, by a maintenance packet. The
    /// answer is `{"question": N}`.
    RemoteAsk {
        /// The way there, as the machine's network gives it.
        way: Vec<i8>,
        /// Which register.
        register: Register,
        /// The new value, if it is to be written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<u64>,
    },
    /// What came of that: as [`Get`](Self::Get) says it, once, or `{"pending": true}`.
    RemoteAnswer {
        /// Which question.
        question: u32,
    },
    /// What is inside the node stage by stage: a [`PipelineReport`].
    Pipeline,
    /// Allows or forbids several frames in one segmentation-offload send, on all ports. Has to be
    /// forbidden where a queueing discipline or filter is to lose single frames.
    Offload {
        /// Whether they are allowed.
        enabled: bool,
    },
    /// Lets a router take no more packets from its network interfaces, for so long at most: whoever
    /// asks for it may die before the release. Asking again begins the time anew.
    Quiesce {
        /// After how many milliseconds the router goes on by itself.
        hold_ms: u64,
    },
    /// Lets a router go on.
    Release,
    /// Whether a router is quiesced and drained, and the digest of its tables: a [`RoutingReport`].
    Routing,
    /// The route tables of a router, as its machine writes them.
    Tables,
    /// Replaces the route tables of a router.
    Install {
        /// As [`Tables`](Self::Tables) gives them.
        tables: Value,
    },
    /// Gives a network interface another number to take part by.
    Renumber {
        /// Which.
        number: u16,
    },
    /// Lets a router write down what becomes of the packets of a flow, for so long at most. What was
    /// asked before is forgotten.
    Watch {
        /// Between whom.
        flow: Flow,
        /// After how many milliseconds the router stops by itself.
        hold_ms: u64,
    },
    /// Lets a router that watches keep packets of one identity alone: others would push them out.
    Want {
        /// Which.
        identity: u64,
    },
    /// What a router has written down: a [`WatchedReport`].
    Watched {
        /// Of packets of that identity only, and of those that nothing is known of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<u64>,
    },
    /// Lets a router watch no more.
    Unwatch,
    /// Lets a network interface ask another one for something of no consequence: a
    /// [`ProbeReport`].
    Probe(ProbeSpec),
    /// How that ended, once: a `phitwire::nic::ProbeEnd`, or `{"pending": true}`.
    ProbeEnded {
        /// Which.
        number: u64,
    },
    /// All registers by name: an array of `phitwire::device::RegisterInfo`.
    Registers,
    /// Where a router would send a packet: a `phitwire::trace::Outlook`.
    Outlook(Question),
    /// Ends the process as SIGTERM does.
    Shutdown,
}

/// The answer to [`Request::Watched`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedReport {
    /// What was written down. Times are the process's own.
    pub watched: Watched,
    /// What to add to these for nanoseconds since the machine was started.
    pub clock_offset_ns: i64,
}

/// The answer to [`Request::Probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// What was sent.
    pub probe: Probe,
    /// When, in the process's own time.
    pub sent_ps: u64,
    /// What to add to that for nanoseconds since the machine was started.
    pub clock_offset_ns: i64,
}

impl Request {
    /// Starts `spec` at a network interface.
    ///
    /// # Panics
    /// Never: a specification is plain data.
    pub fn traffic_start(spec: &TrafficSpec) -> Self {
        let spec = serde_json::to_value(spec).expect("a specification is plain data");
        Self::TrafficStart { spec }
    }
}

/// What the answer to [`Request::Info`] says of a node's place in its lab; it says more, for
/// people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// What it is.
    pub kind: NodeKind,
    /// Its process.
    pub pid: u32,
    /// The number of a network interface's processor, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<u16>,
    /// The group that it is in, on machines that have groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// Whether a network interface is a spare one, which nobody reaches before it takes the number
    /// of another.
    #[serde(default)]
    pub spare: bool,
    /// Bytes of the largest message that a network interface can make.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u32>,
    /// The length in bytes of a get of one packet is a multiple of this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get_unit: Option<u32>,
    /// Whether a network interface has an engine for collective operations.
    #[serde(default)]
    pub collectives: bool,
    /// Barrier units of a network interface, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier_units: Option<u8>,
    /// Its family, if that is not the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
}

/// The answer to [`Request::Claim`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// The number of the latest traffic run known there, 0 if none.
    pub latest_run: u64,
}

/// Who keeps a network interface for its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// The command's name.
    pub tool: String,
    /// Its process.
    pub pid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (process {})", self.tool, self.pid)
    }
}

/// A register, by address or by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Register {
    /// By its address in the chip.
    Address(u16),
    /// By its name.
    Name(String),
}

impl FromStr for Register {
    type Err = std::convert::Infallible;

    /// A decimal or `0x` number is an address, anything else a name.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = match text.strip_prefix("0x") {
            Some(digits) => u16::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        Ok(number.map_or_else(|| Self::Name(text.to_owned()), Self::Address))
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "0x{address:04x}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// Something to break, at the link of a port; on the command line, the words and what is said of
/// them.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Flip bits of what a lane of a port sends
    LaneNoise {
        /// The port of the link
        port: PortId,
        /// 0 to 2
        lane: u8,
        /// Share of the lane's bits that are flipped, such as 1/1000; 0 ends it
        rate: String,
    },
    /// Flip a bit of the next packet in a port's send buffer
    SoftError {
        /// The port of the link
        port: PortId,
    },
    /// Take the link of a port down
    LinkDown {
        /// The port of the link
        port: PortId,
    },
    /// Bring the link of a port back
    LinkUp {
        /// The port of the link
        port: PortId,
    },
    /// Make a port send everything unacknowledged again
    ForceRetry {
        /// The port of the link
        port: PortId,
    },
    /// On links of sets: send the next set of a port with a bad CRC
    BadCrc {
        /// The port of the link
        port: PortId,
    },
    /// On links of sets: initialise the lanes of a port again
    Reinit {
        /// The port of the link
        port: PortId,
    },
    /// On links of sets: let a port lose its receive clock
    LoseClock {
        /// The port of the link
        port: PortId,
        /// For how many milliseconds
        #[arg(value_parser = clap::value_parser!(u64).range(0..=MAX_CLOCKLESS_MS))]
        ms: u64,
    },
    /// On links of sets: set the error-injection registers of a port
    Inject {
        /// The port of the link
        port: PortId,
        /// Sets hit out of 65,536 per lane; 0 turns injection off
        probability: u16,
        /// Lanes that may be hit, one bit per lane
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
        lane_mask: u8,
        /// Bits inverted in the word that is hit
        #[arg(long, default_value_t = 1)]
        bit_mask: u16,
        /// Most sets hit among 64 in a row
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u8).range(0..=64))]
        max_per_64_sets: u8,
        /// Seed of the generator
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

impl Fault {
    /// Its word, as commands have it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::LaneNoise { .. } => "lane-noise",
            Self::SoftError { .. } => "soft-error",
            Self::LinkDown { .. } => "link-down",
            Self::LinkUp { .. } => "link-up",
            Self::ForceRetry { .. } => "force-retry",
            Self::BadCrc { .. } => "bad-crc",
            Self::Reinit { .. } => "reinit",
            Self::LoseClock { .. } => "lose-clock",
            Self::Inject { .. } => "inject",
        }
    }

    /// The port that it is about.
    pub const fn port(&self) -> PortId {
        match *self {
            Self::LaneNoise { port, .. }
            | Self::SoftError { port }
            | Self::LinkDown { port }
            | Self::LinkUp { port }
            | Self::ForceRetry { port }
            | Self::BadCrc { port }
            | Self::Reinit { port }
            | Self::LoseClock { port, .. }
            | Self::Inject { port, .. } => port,
        }
    }
}

/// How one link of a node stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The port it is on.
    pub port: PortId,
    /// Its number in the topology.
    pub link: u16,
    /// Who is to be at the other end: `NODE:PORT`.
    pub peer: String,
    /// As `lcb`, or what matters more: `silent` (nothing is accepted from the peer although it was
    /// asked), `stalled` (it is heard, but acknowledges nothing), or of the wire `interface-down`,
    /// `no-carrier`, `no-interface`, `no-address`, `short-mtu`, `not-bound`.
    pub state: String,
    /// The state of the link control block: `active`, `training`, `refused`, `disabled`, `dead`. It
    /// keeps an active link over a dead wire until it gives it up.
    #[serde(default)]
    pub lcb: String,
    /// Whether packets flow, as far as is known.
    pub up: bool,
    /// Why not, if not.
    pub why: Option<String>,
    /// Lanes received on.
    pub rx_lanes: u32,
    /// Lanes sent on.
    pub tx_lanes: u32,
    /// Milliseconds since a data frame of the peer was last accepted. An idle link has nothing to
    /// send: then it grows, and nothing is wrong.
    #[serde(default)]
    pub heard_ms: Option<u64>,
    /// Packets, or sets of flits, sent again.
    #[serde(default)]
    pub resent: u64,
    /// Frames sent, of any kind.
    #[serde(default)]
    pub frames_sent: u64,
    /// Frames received, of any kind and however bad.
    #[serde(default)]
    pub frames_received: u64,
    /// Packets, or sets of flits, that came with a wrong check.
    #[serde(default)]
    pub bad_checks: u64,
    /// Whether a queueing discipline that delays or loses frames, such as netem, stands behind this
    /// port.
    #[serde(default)]
    pub impaired: bool,
    /// Packets or sets of which bad copies came, charged to each lane received on that had wrong
    /// bits in them.
    pub lane_retries: [u64; 3],
    /// Smoothed round-trip time, in nanoseconds, once measured.
    pub rtt_ns: Option<u64>,
    /// Credits left towards the peer on each virtual channel, in phits.
    pub credits: Vec<u32>,
    /// Packets sent or waiting that the peer has not acknowledged.
    pub unacknowledged_packets: u64,
    /// What `resent` and the two below count: packets, sets of flits.
    #[serde(default)]
    pub unit: String,
    /// Those sent for the first time.
    #[serde(default)]
    pub sent: u64,
    /// Those sent that the peer has not acknowledged.
    #[serde(default)]
    pub window: u64,
    /// Credits towards this end when it has nothing, on each virtual channel, as `credits`.
    #[serde(default)]
    pub offers: Vec<u32>,
}

impl LinkReport {
    /// What the link of a port says of itself.
    pub fn of(port: PortId, link: &dyn LinkView) -> Self {
        let (config, state) = (link.config(), link.state().name());
        let (account, counters) = (link.account(), link.counters());
        Self {
            port,
            link: config.link(),
            state: state.to_owned(),
            lcb: state.to_owned(),
            up: link.is_active(),
            why: None,
            peer: format!("{}:{}", config.peer().node, config.peer().port),
            rx_lanes: link.rx_lanes().count_ones(),
            tx_lanes: link.tx_lanes().count_ones(),
            resent: link.resent(),
            frames_sent: counters.tx_frames,
            frames_received: counters.rx_frames,
            bad_checks: link.bad_checks(),
            impaired: false,
            lane_retries: counters.lane_retries,
            heard_ms: None,
            rtt_ns: link.round_trip().map(|span| span.as_ns()),
            credits: account.credits,
            unacknowledged_packets: link.unacknowledged_packets(),
            unit: account.units.unacknowledged.to_owned(),
            sent: link.sent(),
            window: account.unacknowledged,
            offers: account.offers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_as_the_contract_writes_them() {
        let read = |text: &str| serde_json::from_str::<Request>(text).unwrap();
        assert_eq!(read(r#"{"cmd":"stats"}"#), Request::Stats);
        assert_eq!(
            read(r#"{"cmd":"get","register":16}"#),
            Request::Get {
                register: Register::Address(16)
            }
        );
        assert_eq!(
            read(r#"{"cmd":"set","register":"hash_modulo","value":7}"#),
            Request::Set {
                register: Register::Name("hash_modulo".into()),
                value: 7
            }
        );
        assert_eq!(
            read(r#"{"cmd":"fault","kind":"lane-noise","port":3,"lane":1,"rate":"1/1000"}"#),
            Request::Fault(Fault::LaneNoise {
                port: 3,
                lane: 1,
                rate: "1/1000".into()
            })
        );
        assert_eq!(read(r#"{"cmd":"traffic-stop"}"#), Request::TrafficStop);
        assert_eq!(
            read(r#"{"cmd":"traffic-status"}"#),
            Request::TrafficStatus { run: None }
        );
        assert_eq!(
            read(r#"{"cmd":"traffic-status","run":3}"#),
            Request::TrafficStatus { run: Some(3) }
        );
        assert_eq!(
            read(r#"{"cmd":"offload","enabled":false}"#),
            Request::Offload { enabled: false }
        );
    }

    #[test]
    fn what_is_not_understood_is_refused_by_name() {
        for (text, word) in [
            (r#"{"cmd":"boil"}"#, "boil"),
            (
                r#"{"cmd":"fault","kind":"earthquake","port":1}"#,
                "earthquake",
            ),
            (r#"{"cmd":"fault","kind":"soft-error","port":1,"x":2}"#, "x"),
            (r#"{"cmd":"get"}"#, "register"),
            (r#"{"cmd":"get","register":1,"extra":2}"#, "extra"),
            (r#"{}"#, "cmd"),
        ] {
            let error = serde_json::from_str::<Request>(text)
                .unwrap_err()
                .to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn registers_are_addresses_or_names() {
        let read = |text: &str| text.parse::<Register>().unwrap();
        assert_eq!(read("0x10"), Register::Address(16));
        assert_eq!(read("16"), Register::Address(16));
        assert_eq!(read("0x12345"), Register::Name("0x12345".into()));
        assert_eq!(read("hash"), Register::Name("hash".into()));
    }
}
