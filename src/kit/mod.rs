//! What chips, links and network interfaces are made of, and the search for [circles](cycles) of
//! waiting channels. Nothing here knows a machine.

pub mod arbiter;
pub mod attendance;
mod below;
mod bits;
pub mod calendar;
pub(crate) mod config;
pub(crate) mod copy;
pub(crate) mod counters;
pub mod cycles;
pub mod deadlines;
mod digest;
pub mod events;
pub(crate) mod forward_progress;
pub mod pipe;
pub(crate) mod ring;
pub(crate) mod tiles;

pub use arbiter::{MatrixArbiter, RoundRobin};
pub use attendance::{Attendance, LONGEST_GAP};
pub(crate) use attendance::{Grace, Standstills};
pub use below::below;
pub use bits::bits;
pub use calendar::Calendar;
pub use deadlines::Deadlines;
pub(crate) use digest::Digest;
pub use digest::digest_of_name;
pub use events::Events;
pub(crate) use forward_progress::ForwardProgress;
pub use pipe::{Next, Pipe, Room};
