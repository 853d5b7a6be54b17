//! The message-rate tool.

fn main() {}
