//! The TOML description of a folded Clos.
//!
//! ```toml
//! name = "pair"                 # required; slices = 1 is the default
//!
//! [network]                     # every key has a default
//! profile = "live"
//!
//! [processors]                  # name = number
//! nic0 = 0
//! nic1 = 1
//!
//! [[chip]]                      # one router of 64 ports
//! name = "r1-0"
//! rank = 1
//! processors = "0-1"            # its subtree
//!
//! [wiring]
//! links = [
//!   { a = "nic0:0", b = "r1-0:0" },
//!   { a = "nic1:0", b = "r1-0:1", rate = 3.125, swizzle = [2, 0, 1] },
//! ]
//! ```
//!
//! A chip split into virtual routers has `[[chip.router]]` sections, each with `name`, `rank`,
//! `slice`, `ports` and `processors`. Registers are computed from the structure; a router's keys
//! `root_detect`, `table`, `down_shift`, `down_mask`, `port_map`, `hash_shift` and `exit_mask`
//! replace the computed values, entry by entry:
//!
//! ```toml
//! [[chip.table]]                # or [[chip.router.table]]
//! entry = 1                     # the highest matching entry wins
//! processors = "4-7"            # or location = 0x4, mask = 0x3; "all" is the entire network
//! ports = "33-35"               # avoids port 32 on the way to 4-7
//! ```

mod links;
mod overrides;
mod read;
mod write;

use super::model::FoldedClos;
use phitwire::net::{self, Described, Problems};

pub use write::write;

/// Reads and checks a description. `file` is its name in diagnostics.
///
/// # Errors
/// All mistakes, in text order. A description with mistakes in its text or structure is not checked
/// for consequences such as unreachable processors.
pub fn read(file: &str, text: &str) -> Result<Described<FoldedClos>, Problems> {
    net::describe(file, text)
}
