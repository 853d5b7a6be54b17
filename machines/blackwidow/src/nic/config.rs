use thiserror::Error;

use super::outstanding::MAX_OUTSTANDING;
use crate::link::PhitLinkConfig;
use phitwire::kit::config::{getters, setters};
use phitwire::nic::memory::MAX_MEMORY_BYTES;
use phitwire::nic::periods::Incarnation;
use phitwire::time::Duration;

/// Maximum number of ports of a NIC: one per network slice (BlackWidow sec. 2.2: four slices).
pub const MAX_SLICES: usize = 4;
/// Highest processor number: destinations have 15 bits, like the location and mask of root detect
/// (BlackWidow sec. 5.1).
pub const MAX_PROCESSOR: u16 = 0x7fff;
// Every addressable NIC can take part in runs.
const _: () = assert!(MAX_PROCESSOR == phitwire::nic::traffic_spec::MAX_PROCESSOR);

/// Default memory size; unwritten memory is not allocated.
const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
/// At a round trip of 100 us, a million requests per second need 100 outstanding requests. This is
/// the largest value that leaves six period bits in a transaction id.
const DEFAULT_MAX_OUTSTANDING: u32 = 1 << 14;
/// Longer than any link takes to recover from a lost frame, and short enough for interactive use.
const DEFAULT_REQUEST_TIMEOUT: Duration = Duration::from_ms(2_000);

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NicConfigError {
    /// The processor number has more than 15 bits.
    #[error("processor {0} does not exist: numbers have 15 bits")]
    Processor(u16),
    /// There is no port, or there are more than four.
    #[error("a NIC has 1 to 4 ports, not {0}")]
    Ports(usize),
    /// The memory size is zero or above [`MAX_MEMORY_BYTES`].
    #[error("{0} bytes of memory: expected 1 to {MAX_MEMORY_BYTES}")]
    Memory(u64),
    /// The limit on outstanding requests is zero or above [`MAX_OUTSTANDING`].
    #[error("{0} outstanding requests: expected 1 to {MAX_OUTSTANDING}")]
    Outstanding(u32),
    #[error("the request timeout must not be zero")]
    ZeroTimeout,
}

/// The validated configuration of a NIC, built by [`NicConfig::builder`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicConfig {
    pub(super) name: String,
    pub(super) processor: u16,
    pub(super) ports: Vec<PhitLinkConfig>,
    pub(super) memory_bytes: u64,
    pub(super) max_outstanding: u32,
    pub(super) request_timeout: Duration,
    pub(super) seed: u64,
    pub(super) incarnation: Incarnation,
}

impl NicConfig {
    /// Starts the configuration of the NIC `name` of `processor`; port `i` is its link into network
    /// slice `i`.
    pub fn builder(name: &str, processor: u16, ports: Vec<PhitLinkConfig>) -> NicConfigBuilder {
        NicConfigBuilder(Self {
            name: name.to_owned(),
            processor,
            ports,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            max_outstanding: DEFAULT_MAX_OUTSTANDING,
            request_timeout: DEFAULT_REQUEST_TIMEOUT,
            seed: 0,
            incarnation: Incarnation::default(),
        })
    }

    getters! {
        /// Name of the node.
        name: &str;
        /// One link per slice.
        ports: &[PhitLinkConfig];
    }

    getters! {
        /// Processor number, 15 bits.
        processor: u16;
        /// Size in bytes of the memory that other processors can access.
        memory_bytes: u64;
        /// Maximum number of outstanding requests.
        max_outstanding: u32;
        /// Time after which an unanswered request is reported to its requester.
        request_timeout: Duration;
    }
}

#[derive(Clone, Debug)]
pub struct NicConfigBuilder(NicConfig);

impl NicConfigBuilder {
    setters! {
        /// Size in bytes of the memory that other processors can access. Default 1 GiB, allocated
        /// when written.
        memory_bytes: u64;
        /// Maximum number of outstanding requests. Default 16,384.
        max_outstanding: u32;
        /// Time after which an unanswered request is reported to its requester. Default 2 s.
        request_timeout: Duration;
        /// Seed of the NIC's random numbers. Default 0.
        seed: u64;
        /// Describes earlier incarnations. Default: see [`Incarnation`].
        incarnation: Incarnation;
    }

    /// Validates the values.
    ///
    /// # Errors
    /// See [`NicConfigError`].
    pub fn build(self) -> Result<NicConfig, NicConfigError> {
        let config = self.0;
        if config.processor > MAX_PROCESSOR {
            return Err(NicConfigError::Processor(config.processor));
        }
        if !(1..=MAX_SLICES).contains(&config.ports.len()) {
            return Err(NicConfigError::Ports(config.ports.len()));
        }
        if !(1..=MAX_MEMORY_BYTES).contains(&config.memory_bytes) {
            return Err(NicConfigError::Memory(config.memory_bytes));
        }
        if !(1..=MAX_OUTSTANDING).contains(&config.max_outstanding) {
            return Err(NicConfigError::Outstanding(config.max_outstanding));
        }
        if config.request_timeout == Duration::ZERO {
            return Err(NicConfigError::ZeroTimeout);
        }
        Ok(config)
    }
}
