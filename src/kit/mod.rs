//! What chips, links and network interfaces are made of. Nothing here knows a machine.

pub(crate) mod counters;
pub mod deadlines;
pub mod events;

pub use deadlines::Deadlines;
pub use events::Events;
