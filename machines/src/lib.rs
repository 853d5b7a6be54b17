//! The machines that come with phitwire. A program with another machine passes its own list to
//! `phitwire_tools::cli::main`.

use phitwire::catalogue::{Catalogue, Machine};

/// BlackWidow comes first: it is the default where a description names no machine.
pub static MACHINES: &[&Machine] = &[
    &phitwire_blackwidow::MACHINE,
    &phitwire_aries::MACHINE,
    &phitwire_t3e::MACHINE,
];

pub static CATALOGUE: Catalogue = Catalogue::new(MACHINES);
