//! Building blocks of chips, links and NICs (network interfaces), and the search for [deadlock
//! cycles](cycles). Nothing here knows a machine.

pub mod arbiter;
pub mod attendance;
mod below;
mod bits;
pub mod calendar;
pub mod config;
pub mod copy;
pub mod counters;
pub mod cycles;
pub mod deadlines;
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
pub use deadlines::Deadlines;
pub use digest::Digest;
pub use digest::digest_of_name;
pub use events::Events;
pub use forward_progress::ForwardProgress;
pub use pipe::{Next, Pipe, Room};
