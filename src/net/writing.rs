//! Writes networks as TOML: the parts of descriptions common to all machines.

use core::fmt::{self, Write as _};

use super::model::Link;
use super::network::Network;

/// Writes a link of a list; `own` holds its machine's fields, each after a comma.
pub fn write_link<Rate>(
    out: &mut String,
    network: &impl Network,
    link: &Link<Rate>,
    own: &str,
) -> fmt::Result {
    let (a, b) = (network.end_name(link.a), network.end_name(link.b));
    write!(out, "  {{ a = \"{a}\", b = \"{b}\"{own}")?;
    if link.cable.order() != [0, 1, 2] {
        write!(out, ", swizzle = {:?}", link.cable.order())?;
    }
    if link.cable.invert() != [false; 3] {
        write!(out, ", invert = {:?}", link.cable.invert())?;
    }
    writeln!(out, " }},")
}
