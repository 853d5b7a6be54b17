//! Requests, and the parts of their replies that programs act upon.

use std::fmt;
use std::str::FromStr;

use clap::Subcommand;
use phitwire::device::LinkView;
pub use phitwire::device::{Kind as NodeKind, PipelineReport, Routing as RoutingReport};
use phitwire::nic::{BarrierSpec, CollectiveSpec, Probe, ProbeSpec, TrafficSpec};
use phitwire::node::PortId;
use phitwire::trace::{Flow, Question, Watched};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Longest line, request or reply, in bytes.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Longest time for which a fault may take away a port's receive clock, in milliseconds.
pub const MAX_CLOCKLESS_MS: u64 = 60_000;

/// A request to a process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "cmd", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Every counter by name.
    Stats,
    /// A [`LinkReport`] for each port.
    Links,
    /// The node and its process: name, kind, process id, engine, ports.
    Info,
    /// The value of a register: `{"register": ..., "value": N, "hex": "0xN"}`. `hex` is for readers
    /// that parse numbers as floating-point.
    Get { register: Register },
    /// Writes a register. The reply is that of [`Get`](Self::Get), with the value written.
    Set { register: Register, value: u64 },
    /// Injects a fault.
    Fault(Fault),
    /// Holds a NIC for the client's runs until this connection closes, for whatever reason. Until
    /// then no other client can start a run there, and all its runs end with the connection.
    /// Repeating the claim changes nothing. The reply is [`Claimed`].
    Claim(Holder),
    /// Starts a traffic run at a NIC.
    TrafficStart { spec: Box<TrafficSpec> },
    /// The state of a traffic run, as `phitwire::nic::TrafficReport` serialises it.
    TrafficStatus {
        /// The number of the run; the latest if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<u64>,
    },
    /// Stops issuing messages; outstanding ones complete.
    TrafficStop,
    /// Starts a run of collective operations at a NIC that has an engine for them. Every
    /// participant needs this request.
    CollectiveStart { spec: Box<CollectiveSpec> },
    /// The state of the latest run of collective operations, as `phitwire::nic::CollectiveReport`
    /// serialises it.
    CollectiveStatus,
    /// Ends the run of collective operations: all participants stop after the same iteration. A
    /// second request also ends those that wait for others.
    CollectiveStop,
    /// Holds a barrier unit of a NIC for the client's runs, as [`Claim`](Self::Claim) holds the
    /// rest. Other clients may use the other units and the NIC itself.
    ClaimUnit {
        /// Below [`NodeInfo::barrier_units`].
        unit: u8,
        holder: Holder,
    },
    /// Prepares a barrier unit of a NIC for a run. Configure the routers first, and prepare all
    /// participants before one of them starts.
    BarrierPrepare {
        /// Below [`NodeInfo::barrier_units`].
        unit: u8,
    },
    /// Starts a run of barriers at a unit of a NIC.
    BarrierStart { spec: Box<BarrierSpec> },
    /// The state of a unit's latest run, as `phitwire::nic::BarrierReport` serialises it.
    BarrierStatus {
        /// Below [`NodeInfo::barrier_units`].
        unit: u8,
    },
    /// Ends the run of a unit: all participants stop after the same barrier. A second request stops
    /// at once.
    BarrierStop {
        /// Below [`NodeInfo::barrier_units`].
        unit: u8,
    },
    /// Makes a router read or write a register of another one by a maintenance packet. The reply is
    /// `{"question": N}`.
    RemoteAsk {
        /// The path to that router, as the machine's network computes it.
        way: Vec<i8>,
        register: Register,
        /// The new value for a write; absent for a read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<u64>,
    },
    /// The result of [`RemoteAsk`](Self::RemoteAsk): `{"pending": true}` until it arrives, then
    /// once as for [`Get`](Self::Get).
    RemoteAnswer {
        /// The number from [`RemoteAsk`](Self::RemoteAsk).
        question: u32,
    },
    /// The contents of the node, stage by stage: a [`PipelineReport`].
    Pipeline,
    /// Allows or forbids several frames in one segmentation-offload send, on all ports. Forbid it
    /// where a queueing discipline or filter should drop single frames.
    Offload { enabled: bool },
    /// Stops a router from taking packets from its NICs, for a limited time because the client may
    /// die before the release. Repeating it restarts the time.
    Quiesce {
        /// Milliseconds after which the router resumes.
        hold_ms: u64,
    },
    /// Lets a router resume.
    Release,
    /// Whether a router is quiesced and drained, and the digest of its tables: a [`RoutingReport`].
    Routing,
    /// The route tables of a router, as its machine serialises them.
    Tables,
    /// Replaces the route tables of a router.
    Install {
        /// As in the reply to [`Tables`](Self::Tables).
        tables: Value,
    },
    /// Gives a NIC another number in the network.
    Renumber { number: u16 },
    /// Makes a router record the passages of a flow's packets, for a limited time. Replaces an
    /// earlier watch.
    Watch {
        flow: Flow,
        /// Milliseconds after which the router stops recording.
        hold_ms: u64,
    },
    /// Makes a watching router keep only packets of one identity, so that others do not displace
    /// them.
    Want { identity: u64 },
    /// The recorded passages: a [`WatchedReport`].
    Watched {
        /// Only packets with this identity, and those of unknown identity.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        identity: Option<u64>,
    },
    /// Ends a router's watch.
    Unwatch,
    /// Makes a NIC send another one a request without side effects: a [`ProbeReport`].
    Probe(ProbeSpec),
    /// The outcome of a probe: `{"pending": true}` until it ends, then once a
    /// `phitwire::nic::ProbeEnd`.
    ProbeEnded { number: u64 },
    /// All registers by name: an array of `phitwire::device::RegisterInfo`.
    Registers,
    /// The predicted route of a packet in a router: a `phitwire::trace::Outlook`.
    Outlook(Question),
    /// Ends the process as SIGTERM does.
    Shutdown,
}

/// The reply to [`Request::Watched`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedReport {
    /// The recorded passages, in process time.
    pub watched: Watched,
    /// Nanoseconds to add to these times to get the time since the machine was started.
    pub clock_offset_ns: i64,
}

/// The reply to [`Request::Probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeReport {
    pub probe: Probe,
    /// Process time at which the probe was sent.
    pub sent_ps: u64,
    /// Nanoseconds to add to a process time to get the time since the machine was started.
    pub clock_offset_ns: i64,
}

/// The part of the reply to [`Request::Info`] that programs use; the rest is for display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    pub kind: NodeKind,
    pub pid: u32,
    /// The number of a NIC's processor, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<u16>,
    /// The group, on machines that have groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u16>,
    /// Whether this NIC is a spare, unreachable until it takes over the number of another.
    #[serde(default)]
    pub spare: bool,
    /// Largest message that the NIC can send, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<u32>,
    /// The length of a one-packet get is a multiple of this, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub get_unit: Option<u32>,
    /// Whether the NIC has an engine for collective operations.
    #[serde(default)]
    pub collectives: bool,
    /// Number of barrier units, if the NIC has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barrier_units: Option<u8>,
    /// The machine's family, if the node reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
}

/// The reply to [`Request::Claim`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claimed {
    /// Number of the latest traffic run known at the NIC, 0 if none.
    pub latest_run: u64,
}

/// The client that holds a NIC for its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holder {
    /// Name of the command.
    pub tool: String,
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
    /// Address in the chip.
    Address(u16),
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

/// A port on the command line: a number, with or without the `p` of the interface's name.
fn parse_port(text: &str) -> Result<PortId, &'static str> {
    let number = text.strip_prefix('p').unwrap_or(text);
    number
        .parse()
        .map_err(|_| "expected the number of a port, such as 33 or p33")
}

/// A fault at the link of a port. The command line takes its words and help texts from here.
#[allow(missing_docs)]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Subcommand)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Fault {
    /// Flip bits in the data that a lane of a port sends
    LaneNoise {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
        /// The lane, 0 to 2
        lane: u8,
        /// Share of bits to flip, such as 1/1000; 0 stops the noise
        rate: String,
    },
    /// Flip a bit of the next packet in a port's send buffer
    SoftError {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
    },
    /// Take down the link of a port
    LinkDown {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
    },
    /// Bring the link of a port back up
    LinkUp {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
    },
    /// Make a port resend everything unacknowledged
    ForceRetry {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
    },
    /// Send the next set of a port with a bad CRC (only links that carry sets)
    BadCrc {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
    },
    /// Initialise the lanes of a port again (only links that carry sets)
    Reinit {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
    },
    /// Take away the receive clock of a port (only links that carry sets)
    LoseClock {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
        /// Duration in milliseconds
        #[arg(value_parser = clap::value_parser!(u64).range(0..=MAX_CLOCKLESS_MS))]
        ms: u64,
    },
    /// Set the error-injection registers of a port (only links that carry sets)
    Inject {
        /// The port of the link, such as 33 or p33
        #[arg(value_parser = parse_port)]
        port: PortId,
        /// Sets to corrupt per lane, out of 65,536; 0 turns injection off
        probability: u16,
        /// Lanes to corrupt, one bit per lane
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u8).range(0..8))]
        lane_mask: u8,
        /// Bits to invert in a corrupted word
        #[arg(long, default_value_t = 1)]
        bit_mask: u16,
        /// Maximum number of corrupted sets among 64 consecutive ones
        #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u8).range(0..=64))]
        max_per_64_sets: u8,
        /// Seed of the random generator
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
}

impl Fault {
    /// The command-line word for this fault.
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

/// [`LinkReport::why`] of a link that went down because nothing was heard of the peer.
pub(crate) const PEER_SILENT: &str = "the other end is silent";

/// The state of one link of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkReport {
    /// Port of the node.
    pub port: PortId,
    /// Link number in the topology.
    pub link: u16,
    /// The expected peer: `NODE:PORT`.
    pub peer: String,
    /// `lcb`, or a more important condition: `silent` (the peer does not answer probes), `stalled`
    /// (the peer is heard but acknowledges nothing), or the wire's `interface-down`, `no-carrier`,
    /// `no-interface`, `no-address`, `short-mtu`, `not-bound`.
    pub state: String,
    /// The state of the link control block: `active`, `training`, `refused`, `disabled`, `dead`.
    /// Over a dead wire the link stays active until it gives up.
    #[serde(default)]
    pub lcb: String,
    /// Whether packets flow, as far as is known.
    pub up: bool,
    /// Why packets do not flow; null if they do.
    pub why: Option<String>,
    /// Lanes in use for receiving.
    pub rx_lanes: u32,
    /// Lanes in use for sending.
    pub tx_lanes: u32,
    /// Milliseconds since the last accepted data frame. On an idle link, which sends no data
    /// frames, the value says nothing.
    #[serde(default)]
    pub heard_ms: Option<u64>,
    /// Packets, or sets of flits, resent.
    #[serde(default)]
    pub resent: u64,
    /// Frames sent, of any kind.
    #[serde(default)]
    pub frames_sent: u64,
    /// Frames received, of any kind, damaged ones included.
    #[serde(default)]
    pub frames_received: u64,
    /// Packets, or sets of flits, received with a wrong CRC.
    #[serde(default)]
    pub bad_checks: u64,
    /// Whether the kernel may drop, delay or change frames below this port: by a queueing
    /// discipline such as netem, or by a filter of nftables.
    #[serde(default)]
    pub impaired: bool,
    /// Packets or sets received damaged, charged to each receive lane that had wrong bits in them.
    pub lane_retries: Vec<u64>,
    /// Smoothed round-trip time in nanoseconds, once measured.
    pub rtt_ns: Option<u64>,
    /// Credits left towards the peer on each virtual channel, in phits.
    pub credits: Vec<u32>,
    /// Packets sent or queued that the peer has not acknowledged.
    pub unacknowledged_packets: u64,
    /// The unit of `resent`, `sent` and `window`: packets, or sets of flits.
    #[serde(default)]
    pub unit: String,
    /// Units sent for the first time.
    #[serde(default)]
    pub sent: u64,
    /// Units sent that the peer has not acknowledged.
    #[serde(default)]
    pub window: u64,
    /// Credits that this end offers when empty, per virtual channel; compare `credits`.
    #[serde(default)]
    pub offers: Vec<u32>,
}

impl LinkReport {
    /// Whether this end knows no more about a link that is not up than that it hears nothing. The
    /// live view has the same (view/page/data.js).
    pub fn hears_nothing(&self) -> bool {
        self.state == "silent" || self.why.as_deref() == Some(PEER_SILENT)
    }

    /// The report of a link, without the state of its wire.
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
            lane_retries: link.lane_retries().to_vec(),
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

    /// The retries of all lanes, for tables.
    pub fn retries_by_lane(&self) -> String {
        let retries: Vec<String> = self.lane_retries.iter().map(u64::to_string).collect();
        retries.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_named_with_or_without_its_p() {
        #[derive(clap::Parser)]
        struct Line {
            #[command(subcommand)]
            fault: Fault,
        }
        let read = |port: &str| {
            let line = ["", "force-retry", port];
            let line = <Line as clap::Parser>::try_parse_from(line);
            line.map(|line| line.fault)
                .map_err(|error| error.to_string())
        };
        for port in ["33", "p33"] {
            assert_eq!(read(port), Ok(Fault::ForceRetry { port: 33 }));
        }
        for bad in ["p", "33p", "256", "r1-0:33"] {
            let error = read(bad).unwrap_err();
            assert!(error.contains("such as 33 or p33"), "{error}");
        }
    }

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
    fn unknown_words_of_requests_are_named_in_the_refusal() {
        for (text, word) in [
            (r#"{"cmd":"boil"}"#, "boil"),
            (
                r#"{"cmd":"fault","kind":"earthquake","port":1}"#,
                "earthquake",
            ),
            (r#"{"cmd":"fault","kind":"soft-error","port":1,"x":2}"#, "x"),
            (r#"{"cmd":"get"}"#, "register"),
            (r#"{"cmd":"get","register":1,"extra":2}"#, "extra"),
            (
                r#"{"cmd":"traffic-start","spec":{"run":1,"pace":2}}"#,
                "pace",
            ),
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
