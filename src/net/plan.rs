//! Configuration of a network's processes and of the scripts that start them.

use core::fmt::Write as _;
use std::net::Ipv4Addr;

use phitwire_framing::carrier::frame::LinkEnd;
use thiserror::Error;

use super::model::{Clock, End, Link, NodeRef, Profile};
use super::network::Network;
use super::settings::Settings;
use crate::chip::Grain;
use crate::kit::digest_of_name;
use crate::link::{
    CutThrough, EndName, LaneRate, LinkConfig, LinkConfigBuilder, LinkConfigError, LinkProfile,
    LinkStandard,
};
use crate::nic::Incarnation;

/// Number of links: limited by 16-bit ids and by the addresses of 198.18.0.0/15.
const MAX_LIVE_LINKS: usize = 1 << 16;
/// The benchmark network of RFC 2544, which no real interface should use.
const FIRST_ADDRESS: u32 = u32::from_be_bytes([198, 18, 0, 0]);

/// Properties of one run that are not part of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Runtime {
    /// Identifies the lab in every frame.
    pub fabric: u32,
    /// Incarnation of the process; differs from any earlier one of the node.
    pub epoch: u32,
    /// The information on its predecessors that the node's NIC needs.
    pub incarnation: Incarnation,
    /// Replaces the network's clock.
    pub clock: Option<Clock>,
    /// Unit that moves through the stages of a router, where the machine offers a choice. `None`:
    /// packets under a free-running clock, flits under any other.
    pub grain: Option<Grain>,
    /// When links pass on the phits of a frame, where the machine offers a choice. `None`: whole
    /// frames under a free-running clock, phits under any other.
    pub cut_through: Option<CutThrough>,
    /// Replaces the network's profile.
    pub profile: Option<Profile>,
    /// Whether frames travel over wires between processes. Such wires have a round trip of their
    /// own under any clock, so the times of a profile are raised to at least [those that they
    /// need](LinkProfile::over_real_wires).
    pub real_wires: bool,
    /// Whether frames may overtake each other: then links number them at full width.
    pub frames_overtake: bool,
    /// Makes NICs account for the times of their hosts, where the network describes them.
    pub host: Option<HostUse>,
    /// Seed of everything random in the node.
    pub seed: u64,
    /// Number of the first packet of each session, on links that number packets; the same in all
    /// processes of a lab.
    pub first_packet: u64,
}

/// How NICs account for the times of their hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostUse {
    /// Replaces the number of processes that issue messages.
    pub processes: Option<u32>,
}

impl Runtime {
    /// Rejects a [`cut_through`](Self::cut_through) setting for `router`, whose machine has none.
    ///
    /// # Errors
    /// If it is set.
    pub fn refuse_cut_through(&self, router: &str) -> Result<(), PlanError> {
        match self.cut_through {
            None => Ok(()),
            Some(_) => Err(PlanError::Refused(format!(
                "`{router}` accepts whole packets or sets, checked before they move on, and \
                 cannot cut through; omit --cut-through"
            ))),
        }
    }

    /// A run of lab `lab` in virtual time, with the network's own clock and profile.
    pub fn new(lab: &str, epoch: u32) -> Self {
        let fabric = digest_of_name(lab);
        Self {
            fabric,
            epoch,
            incarnation: Incarnation::default(),
            grain: None,
            cut_through: None,
            clock: None,
            profile: None,
            real_wires: false,
            frames_overtake: false,
            host: None,
            seed: u64::from(fabric),
            first_packet: 0,
        }
    }
}

/// Why a node cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    #[error("the topology has no node `{0}`")]
    NoSuchNode(String),
    /// The id of a link does not fit into a frame.
    #[error("link {0} cannot run between processes: link ids end at 65535")]
    TooManyLinks(usize),
    #[error("link {link}: {error}")]
    Link { link: usize, error: LinkConfigError },
    /// The machine cannot make such a node. The text is a sentence that names the node.
    #[error("{0}")]
    Refused(String),
}

/// Addresses of the two ends of a link over UDP: a /31 per link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkAddresses {
    /// Address of end A: the even one.
    pub a: Ipv4Addr,
    pub b: Ipv4Addr,
}

impl LinkAddresses {
    /// The addresses of link `link`; `None` beyond 65,535.
    pub fn of(link: usize) -> Option<Self> {
        let link = u32::from(u16::try_from(link).ok()?);
        let a = FIRST_ADDRESS + 2 * link;
        Some(Self {
            a: Ipv4Addr::from(a),
            b: Ipv4Addr::from(a + 1),
        })
    }
}

/// Nodes and links for scripts: see [`Network::plan_lines`].
pub(super) fn lines<N: Network + ?Sized>(network: &N) -> Result<String, PlanError> {
    let count = network.link_count();
    if count > MAX_LIVE_LINKS {
        return Err(PlanError::TooManyLinks(count - 1));
    }
    let mut lines = String::new();
    // Writing into a String never fails.
    for node in network.nodes() {
        let kind = match node {
            NodeRef::Chip(_) => "router",
            NodeRef::Processor(_) => "nic",
        };
        let _ = writeln!(lines, "node\t{}\t{kind}", network.node_name(node));
    }
    for id in 0..count {
        let (Some(LinkAddresses { a, b }), (one, other)) =
            (LinkAddresses::of(id), network.ends(id))
        else {
            continue;
        };
        let (node_a, node_b) = (network.node_name(one.node), network.node_name(other.node));
        let (port_a, port_b) = (one.port, other.port);
        let _ = writeln!(
            lines,
            "link\t{id}\t{node_a}\t{port_a}\t{node_b}\t{port_b}\tp{port_a}\tp{port_b}\t{a}\t{b}"
        );
    }
    Ok(lines)
}

/// The part of a link end's configuration that machines share; the machine completes it. `standard`
/// is common to all links of the machine, `rate` belongs to this link.
///
/// # Errors
/// [`PlanError::TooManyLinks`] if the link's id does not fit into a frame.
pub fn link_config<Own, Rate>(
    network: &impl Network,
    settings: &Settings<Own>,
    (id, link, end): (usize, &Link<Rate>, End),
    (standard, rate): (LinkStandard, LaneRate),
    runtime: &Runtime,
) -> Result<LinkConfigBuilder, PlanError> {
    let number = u16::try_from(id).map_err(|_| PlanError::TooManyLinks(id))?;
    let (side, other) = match end == link.a {
        true => (LinkEnd::A, link.b),
        false => (LinkEnd::B, link.a),
    };
    let name = |end: End| EndName {
        node: network.node_name(end.node).into_owned(),
        port: end.port,
    };
    let clock = runtime.clock.unwrap_or(settings.clock);
    let mut profile = match runtime.profile.unwrap_or(settings.profile) {
        Profile::Paper => LinkProfile::paper(),
        Profile::Live => LinkProfile::live(),
    };
    if runtime.real_wires {
        profile = profile.over_real_wires(clock);
    }
    profile = profile.patient(runtime.real_wires, settings.give_up_ms, settings.silence_ms);
    Ok(
        LinkConfig::builder(standard, number, side, name(end), name(other))
            .fabric(runtime.fabric)
            .profile(profile)
            .clock(clock)
            .rate(rate)
            .cable(link.cable)
            .lane_retry_threshold(settings.lane_retry_threshold)
            .epoch(runtime.epoch),
    )
}
