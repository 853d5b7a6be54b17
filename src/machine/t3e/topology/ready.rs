//! Descriptions that come with the command.

/// Names and texts.
pub const READY: &[(&str, &str)] = &[];
