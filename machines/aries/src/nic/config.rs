use phitwire_framing::aries::flit::NodeId;
use thiserror::Error;

use super::amo_cache::AmoUpdate;
use super::domain::{Domain, Domains, RegisterError};
use super::host::HostTimes;
use super::outstanding::MAX_OUTSTANDING;
use super::virtual_node::VirtualNodes;
use crate::link::AriesLinkConfig;
use phitwire::kit::config::{getters, setters};
use phitwire::nic::memory::{MAX_MEMORY_BYTES, Memory};
use phitwire::nic::periods::Incarnation;
use phitwire::time::Duration;

/// Memory sizes are multiples of a cache line.
const MEMORY_UNIT: u64 = 64;
/// Default memory size; unwritten memory is not allocated.
const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
/// Longer than any link takes to recover from a lost frame, and short enough for interactive use.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_ms(2_000);
/// Capacity of a completion queue: four times the maximum of outstanding packets.
const DEFAULT_COMPLETION_QUEUE: usize = 4 * MAX_OUTSTANDING as usize;
/// First wait of a send that found no receive. The wait doubles up to the limit in [`super::bte`].
const DEFAULT_SEND_RETRY: Duration = Duration::from_us(50);
/// Together with their waits, these attempts take about as long as a request's timeout.
const DEFAULT_SEND_ATTEMPTS: u32 = 200;

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AriesNicConfigError {
    /// The memory size is zero, above [`MAX_MEMORY_BYTES`] or not a multiple of a cache line.
    #[error("{0} bytes of memory: expected a multiple of 64 up to {MAX_MEMORY_BYTES}")]
    Memory(u64),
    /// The limit on outstanding packets is zero or above [`MAX_OUTSTANDING`].
    #[error("{0} outstanding packets: expected 1 to {MAX_OUTSTANDING}")]
    Outstanding(u32),
    #[error("{0} must not be zero")]
    ZeroTime(&'static str),
    #[error("the capacity of a completion queue must not be zero")]
    CompletionQueue,
    #[error("memory domain {0}: {1}")]
    Domain(u16, RegisterError),
}

/// The validated configuration of an Aries NIC, built by [`AriesNicConfig::builder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AriesNicConfig {
    pub(super) name: String,
    pub(super) node: NodeId,
    pub(super) link: AriesLinkConfig,
    pub(super) virtual_nodes: VirtualNodes,
    pub(super) domains: Vec<(u16, Domain)>,
    pub(super) memory_bytes: u64,
    pub(super) max_outstanding: u32,
    pub(super) request_timeout: Duration,
    pub(super) completion_queue: usize,
    pub(super) target_queue: usize,
    pub(super) amo_update: AmoUpdate,
    pub(super) send_retry: Duration,
    pub(super) send_attempts: u32,
    pub(super) joined_answers: bool,
    pub(super) host: Option<HostTimes>,
    pub(super) seed: u64,
    pub(super) incarnation: Incarnation,
}

impl AriesNicConfig {
    /// Starts the configuration of the NIC `name` at `node`, connected to its router by `link`.
    pub fn builder(name: &str, node: NodeId, link: AriesLinkConfig) -> AriesNicConfigBuilder {
        AriesNicConfigBuilder(Self {
            name: name.to_owned(),
            node,
            link,
            virtual_nodes: VirtualNodes::default(),
            domains: Vec::new(),
            memory_bytes: DEFAULT_MEMORY_BYTES,
            max_outstanding: MAX_OUTSTANDING,
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            completion_queue: DEFAULT_COMPLETION_QUEUE,
            target_queue: DEFAULT_COMPLETION_QUEUE,
            amo_update: AmoUpdate::EachTime,
            send_retry: DEFAULT_SEND_RETRY,
            send_attempts: DEFAULT_SEND_ATTEMPTS,
            joined_answers: false,
            host: None,
            seed: 0,
            incarnation: Incarnation::default(),
        })
    }

    getters! {
        /// Name of the process.
        name: &str;
        /// The link to the router.
        link: &AriesLinkConfig;
        /// Maps the virtual node numbers of the job to nodes.
        virtual_nodes: &VirtualNodes;
    }

    getters! {
        /// Address of the NIC's node.
        node: NodeId;
        /// Size of the memory in bytes.
        memory_bytes: u64;
        /// Maximum number of packets that await their response.
        max_outstanding: u32;
        /// Time after which an unanswered request is reported to its requester.
        request_timeout: Duration;
        /// Seed of the NIC's own random choices.
        seed: u64;
    }
}

#[derive(Clone, Debug)]
pub struct AriesNicConfigBuilder(AriesNicConfig);

impl AriesNicConfigBuilder {
    setters! {
        /// Maps the virtual node numbers of the job to nodes. Default: empty.
        virtual_nodes: VirtualNodes;
    }

    /// Adds a memory domain that is registered from the start. Default: none.
    #[must_use]
    pub fn domain(mut self, handle: u16, domain: Domain) -> Self {
        self.0.domains.push((handle, domain));
        self
    }

    setters! {
        /// Size of the memory in bytes, a multiple of 64. Default 1 GiB, allocated when written.
        memory_bytes: u64;
        /// Maximum number of packets that await their response. Default and upper limit: 1,024 (XC
        /// white paper, "Aries Performance").
        max_outstanding: u32;
        /// Time after which an unanswered request is reported to its requester. Default 2 s.
        request_timeout: Duration;
        /// Maximum number of source completions that are expected or not yet fetched. Default
        /// 4,096.
        completion_queue: usize;
        /// Maximum number of target events that are not yet fetched; further events are lost and
        /// counted. Default 4,096.
        target_queue: usize;
        /// When atomic operations update memory. Default: each time.
        amo_update: AmoUpdate;
        /// Whether one response may answer several requests that arrived together. Default: no, as
        /// in the machine.
        joined_answers: bool;
        /// Times of the host, for a clock in the machine's time. Default: none.
        host: Option<HostTimes>;
    }

    /// First wait and maximum attempts of a send that finds no posted receive; the wait doubles.
    /// Default 50 us and 200 attempts.
    #[must_use]
    pub fn send_retry(mut self, wait: Duration, attempts: u32) -> Self {
        (self.0.send_retry, self.0.send_attempts) = (wait, attempts);
        self
    }

    setters! {
        /// Seed of the NIC's own random choices. Default 0.
        seed: u64;
        /// Describes earlier incarnations. Default: see [`Incarnation`].
        incarnation: Incarnation;
    }

    /// Validates the values.
    ///
    /// # Errors
    /// See [`AriesNicConfigError`].
    pub fn build(self) -> Result<AriesNicConfig, AriesNicConfigError> {
        let config = self.0;
        let memory = config.memory_bytes;
        if !(1..=MAX_MEMORY_BYTES).contains(&memory) || !memory.is_multiple_of(MEMORY_UNIT) {
            return Err(AriesNicConfigError::Memory(memory));
        }
        if !(1..=MAX_OUTSTANDING).contains(&config.max_outstanding) {
            return Err(AriesNicConfigError::Outstanding(config.max_outstanding));
        }
        if config.request_timeout == Duration::ZERO {
            return Err(AriesNicConfigError::ZeroTime("the request timeout"));
        }
        if config.send_retry == Duration::ZERO {
            return Err(AriesNicConfigError::ZeroTime("the send retry interval"));
        }
        if config.completion_queue == 0 || config.target_queue == 0 {
            return Err(AriesNicConfigError::CompletionQueue);
        }
        let (mut domains, empty) = (Domains::default(), Memory::new(memory));
        for &(handle, domain) in &config.domains {
            domains
                .register(handle, domain, &empty)
                .map_err(|error| AriesNicConfigError::Domain(handle, error))?;
        }
        Ok(config)
    }
}
