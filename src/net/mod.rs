//! Networks of any machine as passive data: nodes, ports and links, with their descriptions,
//! checks, drawings and process configurations.
//!
//! A machine has its own model of a network and implements [`Network`] for it. This module has the
//! common parts: [`Settings`], the TOML of descriptions with [mistakes](Mistake) and their
//! positions, the [index](PortIndex) of link ends, tables and drawings, and the configuration of
//! processes and scripts. It names no machine: callers pass a list of [families](Family).

mod channels;
mod excerpt;
mod fields;
mod files;
mod graph;
mod index;
mod journey;
mod limits;
mod mistake;
mod model;
mod network;
mod parsed;
mod plan;
mod ports;
mod reading;
mod reroute;
mod settings;
pub mod show;
mod shown;
mod side_networks;
mod writing;

pub use channels::{
    ChannelReport, ChannelSearch, FoundChannels, Imbalance, LinkImbalance, NO_CHANNEL_TABLES,
    RingReport, TunableChannels,
};
pub use excerpt::{Excerpt, excerpt};
pub use fields::{Fields, Section, Value};
pub use files::Files;
pub use graph::Graph;
#[allow(
    unused_imports,
    reason = "some builds have no machine that is only a graph"
)]
pub use graph::of_graph;
pub use index::{PortIndex, PortLink};
pub use journey::{Hop, PathEnd, Peers, Sightings, TracedPacket};
pub(crate) use limits::MAX_DILATION;
pub use limits::{Effort, MAX_CHIPS, MAX_DESCRIPTION_BYTES, MAX_MISTAKES};
pub use mistake::{Location, Mistake, MistakeKind, Mistakes, Problems};
pub use model::{Clock, End, Link, MAX_METRES, MAX_NAME_BYTES, NodeRef, Profile, ends_of};
pub(crate) use network::generate;
pub use network::{Family, Generated, Network, Read, Same, read};
pub use plan::{HostUse, LinkAddresses, PlanError, Runtime, link_config};
pub use ports::{PortSet, PortSetError};
#[cfg(any(test, feature = "testing"))]
pub use reading::read_unchecked;
pub use reading::{
    Describe, Described, Ends, Spans, end, link, metres, name, name_in_range, name_problem,
    read as describe, read_other, stem,
};
pub use reroute::{Faults, Reroutable, RoutedTables};
pub use settings::{OwnSettings, Settings};
pub use show::{DrawError, TooLarge};
#[cfg(any(test, feature = "testing"))]
pub use shown::is_unseen;
pub use shown::{Shown, harmless, message as short_message};
pub use side_networks::{BarrierPlan, RegisterValue, SideNetworks};
pub use writing::write_link;
