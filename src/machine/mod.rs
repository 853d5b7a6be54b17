//! The machines, one line each: a new one is named here.

pub mod aries;
pub mod blackwidow;
pub mod t3e;
/// The toy machine: what `docs/guide/src/adding-a-machine.md` follows.
#[cfg(feature = "toy")]
#[path = "../../tests/toy/mod.rs"]
pub mod toy;

use phitwire_framing::carrier::frame;

use crate::catalogue::Machine;
use crate::link::Glance;
use crate::net::{self, Effort, Family, Files, Generated, Network, Problems, Read};

/// The machines. The first is meant where a description names none.
///
/// A static, so that what it refers to is compiled once and not in every crate that uses it.
pub static MACHINES: &[&Machine] = &[
    &blackwidow::MACHINE,
    &aries::MACHINE,
    &t3e::MACHINE,
    #[cfg(feature = "toy")]
    &toy::MACHINE,
];

/// The networks of all machines.
pub static FAMILIES: [Family; MACHINES.len()] = {
    let mut families = [MACHINES[0].networks; MACHINES.len()];
    let mut next = 1;
    while next < MACHINES.len() {
        families[next] = MACHINES[next].networks;
        next += 1;
    }
    families
};

/// Reads and checks the description of a network of any machine. `file` is what diagnostics call
/// it.
///
/// # Errors
/// All mistakes that could be found, in the order of the text.
pub fn read(file: &str, text: &str) -> Result<Box<dyn Network>, Problems> {
    read_with(file, text.as_bytes(), Effort::Bounded).map(|read| read.network)
}

/// The same for the bytes of a file, whatever they are, and with this effort.
///
/// # Errors
/// See [`net::read`].
pub fn read_with(file: &str, bytes: &[u8], effort: Effort) -> Result<Read, Problems> {
    read_beside(file, bytes, effort, &Files::default())
}

/// The same for a description that may name other files.
///
/// # Errors
/// See [`net::read`].
pub fn read_beside(
    file: &str,
    bytes: &[u8],
    effort: Effort,
    files: &Files,
) -> Result<Read, Problems> {
    net::read(&FAMILIES, file, bytes, effort, files)
}

/// The network of a name that says how it is made, such as `r2-1024`; `None` if it is no name of
/// any machine's.
///
/// # Errors
/// Why there is no such network.
pub fn generate(name: &str) -> Option<Generated> {
    net::generate(&FAMILIES, name)
}

/// What a frame of any machine carries; `None` for training frames, damaged ones, and what is no
/// frame.
pub fn glance(bytes: &[u8]) -> Option<Glance> {
    let frame = frame::parse(bytes).ok()?;
    MACHINES.iter().find_map(|machine| (machine.glance)(&frame))
}

#[cfg(test)]
mod tests;
