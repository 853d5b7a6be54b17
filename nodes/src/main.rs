//! The `phitwire` command.

fn main() {}
