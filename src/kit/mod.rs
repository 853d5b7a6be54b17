//! Building blocks of chips, links and NICs (network interfaces), and the search for [deadlock
//! cycles](cycles). Nothing here depends on a machine.

pub mod arbiter;
pub(crate) mod attendance;
mod below;
pub mod bits;
pub(crate) mod calendar;
pub mod config;
pub mod copy;
pub mod counters;
pub mod cycles;
pub(crate) mod deadlines;
mod digest;
pub mod events;
pub(crate) mod forward_progress;
pub mod pipe;
pub mod ring;
pub mod tiles;

pub use arbiter::{MatrixArbiter, RoundRobin};
pub use attendance::{Attendance, LONGEST_GAP};
pub(crate) use attendance::{Grace, Standstills};
pub use below::below;
pub use bits::bits;
pub use calendar::Calendar;
pub(crate) use deadlines::Deadlines;
pub use digest::{Digest, digest_of_name};
pub use events::Events;
pub use forward_progress::ForwardProgress;
pub use pipe::{Next, Pipe, Room};
