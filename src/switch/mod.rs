//! (switch)
