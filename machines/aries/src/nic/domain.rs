//! Memory domains: the local memory that network requests may access, and the requests that may
//! access it.
//!
//! A request identifies memory by a 12-bit memory domain handle (MDH) and a 40-bit offset into the
//! segment registered under it (XC white paper, "Address Translation"). It must belong to the
//! segment's communication domain ("Cray XC Network Software Stack"), which it proves with a 16-bit
//! protection key. The white paper names no key, but it is publicly known at the level of
//! registers.

use thiserror::Error;

use phitwire::nic::memory::Memory;

/// Number of 12-bit memory domain handles that can be registered. The two highest are reserved: a
/// packet that a link cut off is filled with ones, and messages need a handle without a domain.
pub const HANDLES: u16 = (1 << 12) - 2;
/// Alignment of a domain's base in bytes, so that aligned offsets are aligned in memory.
pub const DOMAIN_ALIGNMENT: u64 = 64;
/// Exclusive limit of offsets into a domain: 40 bits.
pub const MAX_DOMAIN_BYTES: u64 = 1 << 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Puts, and block transfers that write.
    pub put: bool,
    pub get: bool,
    pub atomic: bool,
}

impl Permissions {
    pub const ALL: Self = Self {
        put: true,
        get: true,
        atomic: true,
    };
    pub const READ_ONLY: Self = Self {
        put: false,
        get: true,
        atomic: false,
    };
}

/// A segment of local memory exposed to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    /// Local address of the segment; a multiple of [`DOMAIN_ALIGNMENT`].
    pub base: u64,
    /// Size of the segment in bytes; a multiple of four, since gets read whole words.
    pub length: u64,
    /// The protection key that a request must carry.
    pub key: u16,
    pub permissions: Permissions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RegisterError {
    /// The handle is not below [`HANDLES`].
    #[error("memory domain handle {0} does not exist: there are {HANDLES}")]
    Handle(u16),
    #[error("memory domain handle {0} is in use")]
    InUse(u16),
    #[error("a domain must begin at a multiple of 64 bytes and contain whole 4-byte words")]
    Alignment,
    /// The segment is empty, longer than the offsets can address, or beyond the end of memory.
    #[error("{length} bytes at {base:#x} are outside the memory of {memory} bytes")]
    Bounds { base: u64, length: u64, memory: u64 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Put,
    Get,
    Atomic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    UnknownHandle,
    WrongKey,
    Permission,
    OutOfBounds,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Domains {
    /// Domains by handle, up to the highest handle ever registered.
    table: Vec<Option<Domain>>,
}

impl Domains {
    pub(crate) fn register(
        &mut self,
        handle: u16,
        domain: Domain,
        memory: &Memory,
    ) -> Result<(), RegisterError> {
        let Domain { base, length, .. } = domain;
        if handle >= HANDLES {
            return Err(RegisterError::Handle(handle));
        }
        if base % DOMAIN_ALIGNMENT != 0 || length % 4 != 0 {
            return Err(RegisterError::Alignment);
        }
        if length == 0 || length > MAX_DOMAIN_BYTES || !memory.contains(base, length) {
            return Err(RegisterError::Bounds {
                base,
                length,
                memory: memory.size(),
            });
        }
        let index = usize::from(handle);
        if self.get(handle).is_some() {
            return Err(RegisterError::InUse(handle));
        }
        if self.table.len() <= index {
            self.table.resize(index + 1, None);
        }
        self.table[index] = Some(domain);
        Ok(())
    }

    /// Removes the domain of `handle`; later requests to it are rejected.
    pub(crate) fn deregister(&mut self, handle: u16) -> Option<Domain> {
        self.table.get_mut(usize::from(handle))?.take()
    }

    #[inline]
    pub(crate) fn get(&self, handle: u16) -> Option<&Domain> {
        self.table.get(usize::from(handle))?.as_ref()
    }

    /// The local address of the `len` bytes at `offset` of a domain, if the request may access
    /// them.
    #[inline]
    pub(crate) fn locate(
        &self,
        handle: u16,
        key: u16,
        offset: u64,
        len: u64,
        access: Access,
    ) -> Result<u64, Denied> {
        let domain = self.get(handle).ok_or(Denied::UnknownHandle)?;
        if domain.key != key {
            return Err(Denied::WrongKey);
        }
        let Permissions { put, get, atomic } = domain.permissions;
        let allowed = match access {
            Access::Put => put,
            Access::Get => get,
            Access::Atomic => atomic,
        };
        if !allowed {
            return Err(Denied::Permission);
        }
        match offset.checked_add(len) {
            Some(end) if end <= domain.length => Ok(domain.base + offset),
            _ => Err(Denied::OutOfBounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 1 << 20;

    fn domain(base: u64, length: u64) -> Domain {
        Domain {
            base,
            length,
            key: 0xbeef,
            permissions: Permissions::ALL,
        }
    }

    #[test]
    fn every_reason_for_denial_is_distinguished() {
        let mut domains = Domains::default();
        let memory = Memory::new(MEMORY);
        domains.register(7, domain(128, 100), &memory).unwrap();
        let read_only = Domain {
            permissions: Permissions::READ_ONLY,
            ..domain(0, 64)
        };
        domains.register(9, read_only, &memory).unwrap();
        let locate =
            |handle, key, offset, len, access| domains.locate(handle, key, offset, len, access);
        assert_eq!(locate(7, 0xbeef, 96, 4, Access::Put), Ok(224));
        assert_eq!(
            locate(7, 0xbeef, 97, 4, Access::Put),
            Err(Denied::OutOfBounds)
        );
        assert_eq!(
            locate(7, 0xbeef, u64::MAX, 4, Access::Get),
            Err(Denied::OutOfBounds)
        );
        assert_eq!(locate(7, 0xbeee, 0, 4, Access::Put), Err(Denied::WrongKey));
        for handle in [6, 8, 4095, u16::MAX] {
            assert_eq!(
                locate(handle, 0xbeef, 0, 4, Access::Put),
                Err(Denied::UnknownHandle)
            );
        }
        assert_eq!(locate(9, 0xbeef, 0, 4, Access::Get), Ok(0));
        for access in [Access::Put, Access::Atomic] {
            assert_eq!(locate(9, 0xbeef, 0, 4, access), Err(Denied::Permission));
        }
        assert!(domains.deregister(7).is_some() && domains.deregister(7).is_none());
        assert_eq!(
            domains.locate(7, 0xbeef, 0, 4, Access::Put),
            Err(Denied::UnknownHandle)
        );
    }

    #[test]
    fn invalid_domains_are_not_registered() {
        let mut domains = Domains::default();
        let memory = Memory::new(MEMORY);
        let mut register =
            |handle, base, length| domains.register(handle, domain(base, length), &memory);
        assert_eq!(
            register(HANDLES, 0, 64),
            Err(RegisterError::Handle(HANDLES))
        );
        assert_eq!(register(1, 8, 64), Err(RegisterError::Alignment));
        assert_eq!(register(1, 0, 63), Err(RegisterError::Alignment));
        for (base, length) in [(0, 0), (0, MEMORY + 4), (MEMORY, 4), (u64::MAX - 63, 64)] {
            assert!(matches!(
                register(1, base, length),
                Err(RegisterError::Bounds { .. })
            ));
        }
        assert_eq!(register(1, MEMORY - 64, 64), Ok(()));
        assert_eq!(register(1, 0, 64), Err(RegisterError::InUse(1)));
    }
}
