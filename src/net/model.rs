//! Nodes, ports, links, and the profiles that configure them.

use phitwire_framing::carrier::lanes::Permutation;

use crate::link::LaneRate;
pub use crate::time::Clock;

/// Longest cable, in metres.
pub const MAX_METRES: u16 = 200;
/// Longest name of a node, in bytes: its field in a training frame.
pub const MAX_NAME_BYTES: usize = 32;

/// A node, by index in its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeRef {
    /// A processor with its NIC.
    Processor(u32),
    Chip(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct End {
    pub node: NodeRef,
    pub port: u8,
}

impl End {
    pub const fn chip(chip: u32, port: u8) -> Self {
        Self {
            node: NodeRef::Chip(chip),
            port,
        }
    }

    pub const fn processor(processor: u32, port: u8) -> Self {
        Self {
            node: NodeRef::Processor(processor),
            port,
        }
    }
}

/// A cable between two ports. `Rate` is the rate of each lane, or `()` where the joined ports
/// determine it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link<Rate = LaneRate> {
    /// End A: by convention the end of the lower node.
    pub a: End,
    pub b: End,
    pub rate: Rate,
    /// Metres of cable, if known: determines a phit's travel time in virtual time.
    pub metres: Option<u16>,
    /// Lane order and polarity, the same in both directions. Channel initialisation must detect
    /// both.
    pub cable: Permutation,
}

impl Link<()> {
    /// A link over a straight cable whose rate is determined by the joined ports.
    pub fn straight(a: End, b: End) -> Self {
        Self {
            a,
            b,
            rate: (),
            metres: None,
            cable: Permutation::default(),
        }
    }
}

impl<Rate> Link<Rate> {
    /// The opposite of `end`; `None` if `end` belongs to another link.
    pub fn other(&self, end: End) -> Option<End> {
        let found = self.ends().into_iter().find(|(own, _)| *own == end);
        found.map(|(_, other)| other)
    }

    /// Each end with its opposite.
    pub const fn ends(&self) -> [(End, End); 2] {
        [(self.a, self.b), (self.b, self.a)]
    }
}

/// Links of a node: id, its own end, the other end.
pub fn ends_of<Rate>(
    links: &[Link<Rate>],
    node: NodeRef,
) -> impl Iterator<Item = (usize, End, End)> {
    links.iter().enumerate().flat_map(move |(id, link)| {
        let both = link
            .ends()
            .into_iter()
            .map(move |(end, other)| (id, end, other));
        both.filter(move |(_, end, _)| end.node == node)
    })
}

/// A choice of buffer depths and times for every link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// The chip's own depths and times, for virtual time and the paced clock. Links between
    /// processes keep the depths and use [their own
    /// times](crate::link::LinkProfile::over_real_wires).
    Paper,
    /// Deeper and slower, for round trips between processes.
    Live,
}

impl Profile {
    /// All profiles, by their names in descriptions.
    pub(crate) const ALL: [(&'static str, Self); 2] =
        [("live", Self::Live), ("paper", Self::Paper)];

    /// The profile's name in descriptions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Paper => "paper",
        }
    }
}
