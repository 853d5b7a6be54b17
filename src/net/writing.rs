//! Writes networks as TOML: the parts of descriptions common to all machines.

use core::fmt::{self, Write as _};

use phitwire_framing::carrier::lanes::{Lanes, Permutation};

use super::model::Link;
use super::network::Network;

/// Writes a link, whose lanes are `lanes`, as an item of a list. `own` has the machine's fields,
/// each after a comma.
pub fn write_link<Rate>(
    out: &mut String,
    network: &impl Network,
    (link, lanes): (&Link<Rate>, Lanes),
    own: &str,
) -> fmt::Result {
    let (a, b) = (network.end_name(link.a), network.end_name(link.b));
    write!(out, "  {{ a = \"{a}\", b = \"{b}\"{own}")?;
    let (order, invert) = (link.cable.order(), link.cable.invert());
    if order != Permutation::IDENTITY.order() {
        write!(out, ", swizzle = {:?}", &order[..lanes.count()])?;
    }
    if invert != Permutation::IDENTITY.invert() {
        write!(out, ", invert = {:?}", &invert[..lanes.count()])?;
    }
    writeln!(out, " }},")
}
