//! Time that programs spend, and limits of it: in a virtual lab, virtual time.

use std::time::{Duration, Instant};

use phitwire_client::Nic;
use phitwire_client::patience::Patience;

/// Time since a begin.
#[derive(Clone, Copy, Debug)]
pub enum Elapsed {
    Host(Instant),
    Virtual(Duration),
}

impl Elapsed {
    /// Begins now, by the time of `nic`.
    pub fn new(nic: &Nic) -> Self {
        nic.virtual_time()
            .map_or_else(|| Self::Host(Instant::now()), Self::Virtual)
    }

    pub fn get(&self, nic: &Nic) -> Duration {
        match self {
            Self::Host(begin) => begin.elapsed(),
            Self::Virtual(begin) => nic.virtual_time().unwrap_or(*begin).saturating_sub(*begin),
        }
    }
}

/// A limit that ignores time during which the waiting program did not run.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Host(Patience),
    Virtual { begin: Elapsed, most: Duration },
}

impl Limit {
    /// Starts the limit now, by the time of `nic`.
    pub fn new(most: Duration, nic: &Nic) -> Self {
        match nic.is_virtual() {
            true => Self::Virtual {
                begin: Elapsed::new(nic),
                most,
            },
            false => Self::Host(Patience::new(most)),
        }
    }

    /// Whether the limit has passed. `asleep` is the longest time that the program may have slept
    /// before.
    pub fn has_passed(&mut self, nic: &Nic, asleep: Duration) -> bool {
        match self {
            Self::Host(patience) => patience.left(asleep).is_none(),
            Self::Virtual { begin, most } => begin.get(nic) >= *most,
        }
    }
}
