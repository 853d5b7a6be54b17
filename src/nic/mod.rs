//! (nic)
