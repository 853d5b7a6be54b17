//! Parts that the NICs of all machines share: verified test traffic, collective operations, the
//! memory, request periods, and the slab of outstanding requests.

mod barrier;
pub mod block_lines;
pub mod checker;
pub mod collective;
mod datagrams;
pub(crate) mod destinations;
pub mod latency;
pub mod local;
pub mod memory;
pub mod periods;
mod probes;
pub mod programs;
mod puts;
pub mod runs;
pub(crate) mod sequence_tracker;
pub mod slab;
pub mod stamp;
pub mod traffic;
pub(crate) mod traffic_issuer;
pub(crate) mod traffic_layout;
pub(crate) mod traffic_pace;
pub mod traffic_pattern;
pub mod traffic_report;
pub mod traffic_spec;
pub(crate) mod traffic_target;

pub use barrier::{BarrierReport, BarrierSpec, BarrierSpecError};
pub use checker::ANNOUNCE_ADDRESS;
pub use collective::{
    Collective, CollectiveReport, CollectiveSpec, CollectiveSpecError, DEFAULT_PATIENCE, ENGINES,
    MAX_BRANCHING, Number, Operand, Reduce, UnknownCollective,
};
pub use datagrams::{DatagramCounters, DatagramError, Datagrams, MOST_DATAGRAM_BYTES, NoRoom};
pub use destinations::Destinations;
pub use latency::LatencyCounts;
pub(crate) use memory::MAX_MEMORY_BYTES;
pub use memory::{MAX_WINDOWS, Memory, OutOfRange, OwnMemory, Unreachable, Window};
pub use periods::Incarnation;
pub use probes::{
    Probe, ProbeEnd, ProbeError, ProbeLog, ProbeOutcome, ProbeSpec, Probes, is_probed,
    probed_address,
};
pub use puts::{PutEnd, PutError, RemotePuts};
pub use traffic_issuer::{Answered, Block, Issuer, Message, RunRequest};
pub use traffic_pattern::TrafficPattern;
pub(crate) use traffic_pattern::{Groups, Mapping};
pub use traffic_report::{RunPhase, TrafficReport};
pub(crate) use traffic_spec::MAX_SIZE;
pub use traffic_spec::{
    Abilities, Gaps, MAX_ADDRESSES, MAX_BLOCK_SIZE, MAX_RATE, MAX_RUN, MAX_WINDOW, NUMBERED_BYTES,
    Operation, RoutingMode, SpecError, TrafficSpec,
};
