//! Program memory that NICs access directly: the rights of peers, and the keys that contain its
//! handle and address.

use phitwire_client::door::{Access, Local};

use crate::flags::{FI_REMOTE_READ, FI_REMOTE_WRITE};
use crate::memory::Bytes;

/// Registered memory begins at a line and has whole words.
pub const LINE: u64 = 64;
const WORD: u64 = 4;

/// Stands for the handle of memory that has none at the moment; no NIC assigns this value.
pub(super) const NO_HANDLE: u16 = u16::MAX;

/// A NIC's handle and base address for the memory of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    pub handle: u16,
    /// The address of its first byte, a multiple of 64.
    pub base: u64,
}

/// Marks keys that hold a reach; other keys are small numbers.
const MARK: u64 = 1 << 63;
const SERIAL_SHIFT: u32 = 54;
/// Number of keys with the same handle and base.
pub(super) const SERIALS: u64 = 1 << 9;
const HANDLE_SHIFT: u32 = 42;
const HANDLES: u64 = 1 << 12;
const BASES: u64 = 1 << HANDLE_SHIFT;

impl Reach {
    /// The key that holds this reach; `None` if its numbers are too large for one. Keys with the
    /// same handle and base differ by `serial`, modulo [`SERIALS`].
    pub const fn key(self, serial: u64) -> Option<u64> {
        debug_assert!(
            self.base.is_multiple_of(LINE),
            "memory is registered in lines"
        );
        let (handle, base) = (self.handle as u64, self.base / LINE);
        if handle >= HANDLES || base >= BASES {
            return None;
        }
        Some(MARK | ((serial % SERIALS) << SERIAL_SHIFT) | (handle << HANDLE_SHIFT) | base)
    }

    /// The reach in a key; `None` if NICs do not reach its memory.
    pub const fn of_key(key: u64) -> Option<Self> {
        if key & MARK == 0 {
            return None;
        }
        Some(Self {
            handle: (key >> HANDLE_SHIFT & (HANDLES - 1)) as u16,
            base: (key & (BASES - 1)) * LINE,
        })
    }
}

/// The lines that contain `bytes`, in the form that can be registered; `None` if they overflow.
pub(super) fn lines(bytes: &Bytes) -> Option<Local> {
    let base = bytes.address() / LINE * LINE;
    let end = bytes.address().checked_add(bytes.len() as u64)?;
    Some(Local::own(base, end.checked_next_multiple_of(WORD)? - base))
}

/// The access of NICs to memory opened with libfabric's flags. A read-only atomic operation is a
/// get.
pub(super) const fn access_of(flags: u64) -> Access {
    Access {
        put: flags & FI_REMOTE_WRITE != 0,
        get: flags & FI_REMOTE_READ != 0,
        atomic: flags & FI_REMOTE_WRITE != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_only_memory_is_not_writable() {
        let access = |put, get, atomic| Access { put, get, atomic };
        assert_eq!(access_of(FI_REMOTE_READ), access(false, true, false));
        assert_eq!(access_of(FI_REMOTE_WRITE), access(true, false, true));
        assert_eq!(access_of(FI_REMOTE_READ | FI_REMOTE_WRITE), Access::ALL);
    }

    #[test]
    fn keys_locate_memory() {
        for (handle, base, serial) in [
            (1, 64, 0),
            (0xffd, (1 << 48) - 64, 511),
            (77, 0x7fff_0000_0040, 513),
        ] {
            let reach = Reach { handle, base };
            let key = reach.key(serial);
            assert_eq!(key.and_then(Reach::of_key), Some(reach));
            assert_ne!(key, reach.key(serial + 1));
            assert_ne!(key, Some(u64::MAX), "FI_KEY_NOTAVAIL");
        }
        assert_eq!(Reach::of_key(1 << 62), None);
        for (handle, base) in [(1 << 12, 64), (1, 1 << 48)] {
            assert_eq!(Reach { handle, base }.key(1), None);
        }
    }
}
