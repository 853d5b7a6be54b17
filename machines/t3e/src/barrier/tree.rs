//! A router's register of one unit, which defines its position in the unit's spanning tree.

use core::fmt;

use phitwire_framing::t3e::direction::Direction;
use thiserror::Error;

use phitwire::kit::bits;

/// Source or destination of barrier messages: a neighbour, or the local processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Port {
    Link(Direction),
    Local,
}

impl Port {
    /// Number of router ports that barrier messages use.
    pub const COUNT: usize = 7;

    pub const ALL: [Self; Self::COUNT] = {
        let mut all = [Self::Local; Self::COUNT];
        let mut next = 0;
        while next < Direction::ALL.len() {
            all[next] = Self::Link(Direction::ALL[next]);
            next += 1;
        }
        all
    };

    /// Index of the port: that of its direction, or 6 for the local processor.
    #[inline]
    pub const fn index(self) -> usize {
        match self {
            Self::Link(direction) => direction.index(),
            Self::Local => Direction::ALL.len(),
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link(direction) => direction.fmt(f),
            Self::Local => f.write_str("local"),
        }
    }
}

/// A set of ports, with one bit each by [`Port::index`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortSet(u8);

impl PortSet {
    pub const EMPTY: Self = Self(0);

    /// The set with these bits; higher bits are ignored.
    #[inline]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & ((1 << Port::COUNT) - 1))
    }

    #[inline]
    pub const fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    pub const fn insert(&mut self, port: Port) {
        self.0 |= 1 << port.index();
    }

    #[inline]
    pub const fn remove(&mut self, port: Port) {
        self.0 &= !(1 << port.index());
    }

    #[inline]
    pub const fn contains(self, port: Port) -> bool {
        self.0 >> port.index() & 1 != 0
    }

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub fn iter(self) -> impl Iterator<Item = Port> {
        bits(self.0.into()).map(|index| Port::ALL[index])
    }
}

impl FromIterator<Port> for PortSet {
    fn from_iter<I: IntoIterator<Item = Port>>(ports: I) -> Self {
        let mut set = Self::EMPTY;
        ports.into_iter().for_each(|port| set.insert(port));
        set
    }
}

/// Lowest bit of the parent in a register.
const PARENT_SHIFT: u32 = 7;
/// Lowest bit of the signalled children.
const SIGNALLED_SHIFT: u32 = 10;

/// A router's register of a unit: "which of the six network directions plus the local processor are
/// children in the tree, and which direction (if any) is the parent. It also keeps track of the set
/// of children that have signalled a barrier." (T3E sec. 6)
///
/// Its encoding has 17 bits: children in 6:0, parent in 9:7 (0 for none, otherwise 1 plus the
/// direction's number), and signalled children in 16:10. The register of an unused unit is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TreeRegister {
    children: PortSet,
    parent: Option<Direction>,
    signalled: PortSet,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TreeRegisterError {
    #[error("reserved bits of a tree register are set: {0:#x}")]
    Reserved(u32),
    #[error("invalid parent {0} in a tree register: expected 0 to 6")]
    Parent(u32),
    #[error("{0} is both parent and child")]
    ParentIsChild(Direction),
    #[error("a router with a parent needs at least one child")]
    NoChildren,
    #[error("{0} has signalled but is not a child")]
    NoChildSignalled(Port),
}

impl TreeRegister {
    pub const BITS: u32 = 17;

    pub const UNUSED: Self = Self {
        children: PortSet::EMPTY,
        parent: None,
        signalled: PortSet::EMPTY,
    };

    /// A register in which no child has signalled. Without children and parent the unit is unused;
    /// with children but without a parent the router is the root.
    ///
    /// # Errors
    /// If the parent is among the children, or there is a parent without children.
    pub fn new(children: PortSet, parent: Option<Direction>) -> Result<Self, TreeRegisterError> {
        if let Some(parent) = parent {
            if children.contains(Port::Link(parent)) {
                return Err(TreeRegisterError::ParentIsChild(parent));
            }
            if children.is_empty() {
                return Err(TreeRegisterError::NoChildren);
            }
        }
        Ok(Self {
            children,
            parent,
            signalled: PortSet::EMPTY,
        })
    }

    pub fn bits(self) -> u32 {
        let parent = self.parent.map_or(0, |parent| 1 + parent.index() as u32);
        u32::from(self.children.bits())
            | parent << PARENT_SHIFT
            | u32::from(self.signalled.bits()) << SIGNALLED_SHIFT
    }

    /// Decodes a register.
    ///
    /// # Errors
    /// The invalid field.
    pub fn from_bits(bits: u32) -> Result<Self, TreeRegisterError> {
        if bits >> Self::BITS != 0 {
            return Err(TreeRegisterError::Reserved(
                bits >> Self::BITS << Self::BITS,
            ));
        }
        let parent = match bits >> PARENT_SHIFT & 7 {
            0 => None,
            code => {
                let direction = Direction::ALL.get(code as usize - 1);
                Some(*direction.ok_or(TreeRegisterError::Parent(code))?)
            }
        };
        let mut register = Self::new(PortSet::from_bits(bits as u8), parent)?;
        register.signalled = PortSet::from_bits((bits >> SIGNALLED_SHIFT) as u8);
        let stranger = register.signalled.bits() & !register.children.bits();
        match PortSet::from_bits(stranger).iter().next() {
            Some(port) => Err(TreeRegisterError::NoChildSignalled(port)),
            None => Ok(register),
        }
    }

    #[inline]
    pub const fn children(self) -> PortSet {
        self.children
    }

    /// The direction towards the root; `None` at the root, and for unused units.
    #[inline]
    pub const fn parent(self) -> Option<Direction> {
        self.parent
    }

    #[inline]
    pub const fn signalled(self) -> PortSet {
        self.signalled
    }

    #[inline]
    pub(super) const fn signal(&mut self, child: Port) {
        debug_assert!(self.children.contains(child), "only children signal");
        self.signalled.insert(child);
    }

    #[inline]
    pub(super) const fn restart(&mut self) {
        self.signalled = PortSet::EMPTY;
    }

    /// Whether this router is in the unit's tree.
    #[inline]
    pub const fn is_used(self) -> bool {
        !self.children.is_empty()
    }

    #[inline]
    pub const fn is_complete(self) -> bool {
        self.is_used() && self.signalled.bits() == self.children.bits()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_numbers_of_seventeen_bits() {
        assert_eq!(TreeRegister::from_bits(0), Ok(TreeRegister::UNUSED));
        assert!(!TreeRegister::UNUSED.is_used() && !TreeRegister::UNUSED.is_complete());
        let mut used = 0;
        for bits in 0..1 << TreeRegister::BITS {
            let Ok(register) = TreeRegister::from_bits(bits) else {
                continue;
            };
            assert_eq!(register.bits(), bits);
            assert_eq!(register.is_used(), bits != 0, "{register:?}");
            used += u32::from(register.is_used());
        }
        // A set of n children has 2^n signalled subsets. The parent is absent or a link outside the
        // set: 7 minus the number of links in the set.
        let mut expected = 0;
        for children in 1..1u32 << Port::COUNT {
            let links = (children & 0x3f).count_ones();
            expected += (7 - links) << children.count_ones();
        }
        assert_eq!(used, expected);
    }

    #[test]
    fn refusals_name_the_field() {
        let refused = |bits| TreeRegister::from_bits(bits).expect_err("no register");
        assert_eq!(refused(1 << 17 | 1), TreeRegisterError::Reserved(1 << 17));
        assert_eq!(refused(7 << 7 | 1), TreeRegisterError::Parent(7));
        let parent = Direction::PlusX;
        assert_eq!(
            refused(1 << 7 | 1),
            TreeRegisterError::ParentIsChild(parent)
        );
        assert_eq!(refused(1 << 7), TreeRegisterError::NoChildren);
        let local = TreeRegisterError::NoChildSignalled(Port::Local);
        assert_eq!(refused(1 << 16 | 1), local);
        assert_eq!(refused(1 << 16), local);
    }
}
