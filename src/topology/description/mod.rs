//! The TOML description of a topology.
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
//! replace what was computed, entry by entry:
//!
//! ```toml
//! [[chip.table]]                # or [[chip.router.table]]
//! entry = 1                     # the highest matching entry wins
//! processors = "4-7"            # or location = 0x4, mask = 0x3; "all" is the entire network
//! ports = "33-35"               # avoids port 32 on the way to 4-7
//! ```

pub(super) mod fields;
mod overrides;
pub(super) mod read;
pub(super) mod wiring;
mod write;

use core::ops::Range;

use super::check;
use super::generate::fill_registers;
use super::limits::Effort;
use super::mistake::{Place, Problems};
use super::model::Topology;
use super::parsed::{self, Parsed};
use fields::Fields;

/// A topology that was read, with the places of its parts in the text.
#[derive(Clone, Debug)]
pub struct Described {
    /// The topology.
    pub topology: Topology,
    /// Whether all packets were followed to their ends: see [`Effort`].
    pub followed: bool,
    spans: Spans,
}

/// Where the parts of a topology stand in its text.
#[derive(Clone, Debug, Default)]
struct Spans {
    processors: Vec<Range<usize>>,
    chips: Vec<Range<usize>>,
    routers: Vec<Vec<Range<usize>>>,
    entries: Vec<((u32, u32, u8), Range<usize>)>,
    links: Vec<Range<usize>>,
    network: Range<usize>,
}

impl Spans {
    fn of(&self, place: &Place) -> Range<usize> {
        let router = |c: u32, r: u32| self.routers.get(c as usize)?.get(r as usize);
        let span = match place {
            Place::Text(span) => Some(span),
            Place::Network => None,
            Place::Processor(p) => self.processors.get(*p as usize),
            Place::Chip(c) => self.chips.get(*c as usize),
            Place::Router(c, r) => router(*c, *r),
            Place::Entry(c, r, e) => {
                let entry = self.entries.iter().find(|(at, _)| *at == (*c, *r, *e));
                entry.map(|(_, span)| span).or_else(|| router(*c, *r))
            }
            Place::Link(l) => self.links.get(*l as usize),
        };
        span.unwrap_or(&self.network).clone()
    }
}

impl Described {
    /// Bytes of the description that speak of `place`; those of the network's name for a part that
    /// has none of its own.
    pub fn span(&self, place: &Place) -> Range<usize> {
        self.spans.of(place)
    }
}

/// Reads and checks a description. `file` is what diagnostics call it.
///
/// # Errors
/// All mistakes that could be found, in the order of the text. A description with mistakes in its
/// text or structure is not checked for what would follow from them, such as processors that
/// cannot be reached.
pub fn read(file: &str, text: &str) -> Result<Described, Problems> {
    read_parsed(file, text, &parsed::parse(file, text)?, Effort::Bounded)
}

/// The same for a text that has been parsed.
pub(super) fn read_parsed(
    file: &str,
    text: &str,
    Parsed { table, errors }: &Parsed<'_>,
    effort: Effort,
) -> Result<Described, Problems> {
    let mut fields = Fields::default();
    for error in errors {
        fields.syntax(error);
    }
    let mut described = Described {
        topology: read::empty(),
        followed: false,
        spans: Spans {
            network: 0..0,
            ..Spans::default()
        },
    };
    if errors.is_empty() {
        let overrides = read::topology(&mut fields, table, &mut described);
        if fields.mistakes.is_empty() {
            fill_registers(&mut described.topology);
            overrides.apply(&mut described.topology);
        }
    }
    let mut mistakes = fields.mistakes;
    if errors.is_empty() {
        if mistakes.is_empty() {
            (mistakes, described.followed) = check::within(&described.topology, effort);
        } else {
            mistakes.append(check::structure_of_a_part(&described.topology));
        }
    }
    if mistakes.is_empty() {
        return Ok(described);
    }
    Err(Problems::new(file, text, mistakes, |place| {
        described.span(place)
    }))
}

pub use write::write;

/// The topology of a description without mistakes in its text, right or wrong.
#[cfg(test)]
pub(super) fn read_unchecked(text: &str) -> Option<Topology> {
    let table = toml::de::DeTable::parse(text).ok()?;
    let mut fields = Fields::default();
    let mut described = Described {
        topology: read::empty(),
        followed: false,
        spans: Spans::default(),
    };
    let overrides = read::topology(&mut fields, &table, &mut described);
    fill_registers(&mut described.topology);
    overrides.apply(&mut described.topology);
    fields.mistakes.is_empty().then_some(described.topology)
}
