//! What chips, links and network interfaces are made of. Nothing here knows a machine.

pub(crate) mod counters;
