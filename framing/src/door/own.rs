//! Memory of a program outside of its segment: the rest of its address space.

use super::command::Local;

/// Flag in [`Local::offset`]: the other bits are an address of the program.
pub const OWN: u64 = 1 << 63;
/// Limit of a program's addresses, exclusive.
pub const OWN_END: u64 = 1 << 48;

impl Local {
    /// `bytes` bytes at `address` of the program's address space. Commands accept it wherever they
    /// accept a part of the program's data.
    pub const fn own(address: u64, bytes: u64) -> Self {
        Self {
            offset: OWN | address,
            bytes,
        }
    }

    /// The address in the program's address space; `None` if it is a part of the segment, or
    /// extends beyond [`OWN_END`].
    pub const fn own_address(self) -> Option<u64> {
        if self.offset & OWN == 0 {
            return None;
        }
        let address = self.offset & !OWN;
        match address.checked_add(self.bytes) {
            Some(end) if end <= OWN_END => Some(address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_memory_and_the_segment_are_distinguished() {
        assert_eq!(Local::own(0x7fff_1234, 8).own_address(), Some(0x7fff_1234));
        let segment = Local {
            offset: 64,
            bytes: 8,
        };
        assert_eq!(segment.own_address(), None);
        for (address, bytes) in [
            (OWN_END, 1),
            (OWN_END - 1, 2),
            (1, u64::MAX),
            (OWN_END * 2, 0),
        ] {
            assert_eq!(
                Local::own(address, bytes).own_address(),
                None,
                "{address:#x}"
            );
        }
        assert_eq!(Local::own(OWN_END - 1, 1).own_address(), Some(OWN_END - 1));
    }
}
