//! What the network interfaces of every machine share: the verified traffic that tests them, the
//! vocabulary of collective operations, the memory, the periods between restarts, and the slab of
//! outstanding requests.

mod barrier;
pub(crate) mod checker;
pub(crate) mod collective;
pub(crate) mod latency;
pub(crate) mod memory;
pub(crate) mod periods;
pub(crate) mod runs;
pub(crate) mod slab;
pub(crate) mod stamp;
pub(crate) mod traffic;
pub(crate) mod traffic_issuer;
pub(crate) mod traffic_layout;
pub(crate) mod traffic_pace;
pub(crate) mod traffic_pattern;
pub(crate) mod traffic_report;
pub(crate) mod traffic_spec;
pub(crate) mod traffic_target;
pub(crate) mod turns;

pub use barrier::{BarrierReport, BarrierSpec, BarrierSpecError};
pub use checker::ANNOUNCE_ADDRESS;
pub use collective::{
    Collective, CollectiveReport, CollectiveSpec, CollectiveSpecError, DEFAULT_PATIENCE, ENGINES,
    MAX_BRANCHING, MAX_PARTICIPANTS, Number, Operand, Reduce, UnknownCollective,
};
pub use latency::LatencyCounts;
pub use memory::{MAX_MEMORY_BYTES, Memory, OutOfRange};
pub use periods::Incarnation;
pub(crate) use traffic_issuer::{Answered, Block, Issuer, Message, RunRequest};
pub use traffic_pattern::TrafficPattern;
pub(crate) use traffic_pattern::{Groups, Mapping};
pub use traffic_report::{MAX_NAMED, RunPhase, TrafficReport};
pub use traffic_spec::{
    Abilities, MAX_ADDRESSES, MAX_BLOCK_SIZE, MAX_RATE, MAX_RUN, MAX_SIZE, MAX_WINDOW, Operation,
    SpecError, TrafficSpec, Ways,
};
