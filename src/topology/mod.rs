//! (topology)
