//! The processor's local memory: lazily allocated pages behind a bounds check.
//!
//! Unwritten memory reads as zeros and costs eight bytes per page, so that many NICs with large
//! memories fit on one host.
//!
//! Addresses beyond the end, at multiples of [`WINDOW_BYTES`], may be mapped to a [`Window`]:
//! memory that a local program shares with its NIC.

use core::fmt::Debug;

const PAGE_SHIFT: u32 = 16;
const PAGE_BYTES: usize = 1 << PAGE_SHIFT;

/// Largest memory of a NIC, in bytes (64 GiB).
pub const MAX_MEMORY_BYTES: u64 = 1 << 36;

/// Address space of a window: window `n` begins at `n + 1` times this value.
pub const WINDOW_BYTES: u64 = 1 << 49;
/// Offset of the program's address space in its window: byte `a` of the program is at this offset
/// plus `a`.
pub const OWN_AT: u64 = 1 << 48;
pub const MAX_WINDOWS: usize = 64;

const _: () = assert!(
    MAX_MEMORY_BYTES <= WINDOW_BYTES && OWN_AT < WINDOW_BYTES,
    "the memory ends below the first window, and a window holds both of its parts"
);
const _: () = assert!(
    (MAX_WINDOWS as u64 + 1).checked_mul(WINDOW_BYTES).is_some(),
    "every window has addresses"
);

/// Memory shared with another process, which may change it at any time.
pub trait Window: Debug + Send {
    /// Size in bytes, at most [`OWN_AT`].
    fn size(&self) -> u64;

    /// Fills `out` from `offset` on. The caller ensures that the range is inside the window.
    fn read(&self, offset: u64, out: &mut [u8]);

    /// Stores `data` at `offset`. The caller ensures that the range is inside the window.
    fn write(&mut self, offset: u64, data: &[u8]);

    /// Updates the 64-bit word at `offset`, a multiple of eight, and returns the old value. The
    /// update is atomic for the other process; `change` may be called more than once.
    fn update(&mut self, offset: u64, change: &dyn Fn(u64) -> u64) -> u64;

    /// The program's address space, if the NIC can access it.
    fn own(&self) -> Option<&dyn OwnMemory> {
        None
    }
}

/// The address space of another process, which may unmap parts of it at any time.
pub trait OwnMemory: Debug + Send {
    /// Fills `out` from `address` on.
    ///
    /// # Errors
    /// [`Unreachable`] if the program has not mapped the whole range.
    fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Unreachable>;

    /// Stores `data` at `address`, possibly not before [`flush`](Self::flush) is called. The
    /// other process observes stores in order.
    ///
    /// # Errors
    /// [`Unreachable`] if the program has not mapped the whole range.
    fn write(&self, address: u64, data: &[u8]) -> Result<(), Unreachable>;

    /// Completes all earlier stores and invalidates cached reads.
    fn flush(&self);
}

/// Some of the bytes are not mapped, or their mapping does not permit the access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the program's memory is not mapped there")]
pub struct Unreachable;

/// An access beyond the end of the memory, or to memory that a program has unmapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("access to {len} bytes at {address:#x} exceeds the memory of {size} bytes")]
pub struct OutOfRange {
    pub(crate) address: u64,
    pub(crate) len: usize,
    pub(crate) size: u64,
}

/// A sparse memory of a fixed size in bytes. Pages of 64 KiB are allocated at the first write.
#[derive(Debug)]
pub struct Memory {
    size: u64,
    pages: Vec<Option<Box<[u8; PAGE_BYTES]>>>,
    windows: Vec<Option<Box<dyn Window>>>,
}

impl Memory {
    /// Bytes of allocated pages.
    #[cfg(test)]
    pub(crate) fn resident(&self) -> u64 {
        self.pages.iter().flatten().count() as u64 * PAGE_BYTES as u64
    }

    /// Creates a memory of `size` bytes, all zero.
    ///
    /// # Panics
    /// If `size` exceeds [`MAX_MEMORY_BYTES`]; configurations are checked earlier.
    pub fn new(size: u64) -> Self {
        assert!(
            size <= MAX_MEMORY_BYTES,
            "the configuration limits the memory"
        );
        let pages = size.div_ceil(PAGE_BYTES as u64) as usize;
        Self {
            size,
            pages: vec![None; pages],
            windows: Vec::new(),
        }
    }

    /// Attaches `window` and returns its index; `None` if there are already [`MAX_WINDOWS`].
    ///
    /// # Panics
    /// If the window is larger than [`OWN_AT`].
    pub fn attach(&mut self, window: Box<dyn Window>) -> Option<usize> {
        assert!(
            window.size() <= OWN_AT,
            "the creator of a window limits its size"
        );
        let free = self.windows.iter().position(Option::is_none);
        let index = free.unwrap_or(self.windows.len());
        if index == MAX_WINDOWS {
            return None;
        }
        if index == self.windows.len() {
            self.windows.push(None);
        }
        debug_assert!(self.windows[index].is_none(), "window {index} is in use");
        debug_assert!(self.windows.len() <= MAX_WINDOWS);
        self.windows[index] = Some(window);
        Some(index)
    }

    /// Detaches a window, if it exists; its addresses are then out of range.
    pub fn detach(&mut self, window: usize) -> Option<Box<dyn Window>> {
        self.windows.get_mut(window)?.take()
    }

    pub const fn window_base(window: usize) -> u64 {
        (window as u64 + 1) * WINDOW_BYTES
    }

    /// Whether the `len` bytes at `address` exist, in the memory or in one window.
    #[inline]
    pub fn contains(&self, address: u64, len: u64) -> bool {
        match address.checked_add(len) {
            Some(end) if end <= self.size => true,
            Some(_) if address >= WINDOW_BYTES => self.seen(address, len).is_some(),
            _ => false,
        }
    }

    /// The window that contains the `len` bytes at `address`, and their offset in it.
    fn seen(&self, address: u64, len: u64) -> Option<(usize, u64)> {
        let index = (address / WINDOW_BYTES).checked_sub(1)? as usize;
        let offset = address % WINDOW_BYTES;
        let window = self.windows.get(index)?.as_ref()?;
        let is_inside = match offset < OWN_AT {
            true => offset.checked_add(len)? <= window.size(),
            false => offset.checked_add(len)? <= WINDOW_BYTES && window.own().is_some(),
        };
        is_inside.then_some((index, offset))
    }

    /// The program's address space that contains the `len` bytes at `address`, and their address
    /// there.
    fn own(&self, address: u64, len: u64) -> Option<(&dyn OwnMemory, u64)> {
        let (index, offset) = self.seen(address, len)?;
        let own = self.windows[index].as_ref()?.own()?;
        Some((own, offset.checked_sub(OWN_AT)?))
    }

    /// Completes all earlier stores to programs' address spaces.
    pub fn flush(&self) {
        for window in self.windows.iter().flatten() {
            if let Some(own) = window.own() {
                own.flush();
            }
        }
    }

    /// Updates a word of `N` bytes in a program's address space at `address`, a multiple of `N`,
    /// and returns the old value. `None` if `address` is not in an address space. All such updates
    /// are made here, one after another, but the program itself may change the word in between.
    fn update_own<const N: usize>(
        &self,
        address: u64,
        change: impl FnOnce([u8; N]) -> [u8; N],
    ) -> Option<Result<[u8; N], OutOfRange>> {
        let (own, at) = self.own(address, N as u64)?;
        let mut old = [0; N];
        let changed = own.read(at, &mut old).and_then(|()| match change(old) {
            // Skip the write of an unchanged word, which could overwrite a concurrent store of the
            // program.
            new if new == old => Ok(()),
            new => own.write(at, &new),
        });
        Some(changed.map_or_else(|_| Err(self.out_of_range(address, N)), |()| Ok(old)))
    }

    /// Like [`update_shared`](Self::update_shared), for a 32-bit word at a multiple of four.
    ///
    /// # Errors
    /// [`OutOfRange`] if the word is in no window, or the program has unmapped it.
    pub fn update_shared_32(
        &mut self,
        address: u64,
        change: &dyn Fn(u32) -> u32,
    ) -> Result<u32, OutOfRange> {
        let changed = |word| change(u32::from_le_bytes(word)).to_le_bytes();
        if let Some(old) = self.update_own::<4>(address, changed) {
            return old.map(u32::from_le_bytes);
        }
        let shift = (address & 4) * 8;
        let mask = 0xffff_ffff << shift;
        let whole = |word: u64| {
            let new = change((word >> shift) as u32);
            word & !mask | u64::from(new) << shift
        };
        let old = self.update_shared(address & !7, &whole)?;
        Ok((old >> shift) as u32)
    }

    fn out_of_range(&self, address: u64, len: usize) -> OutOfRange {
        let size = self.size;
        OutOfRange { address, len, size }
    }

    /// Updates the 64-bit word at `address` of a window, a multiple of eight, and returns the old
    /// value. The update is atomic for the program.
    ///
    /// # Errors
    /// [`OutOfRange`] if the word is in no window, or the program has unmapped it.
    pub fn update_shared(
        &mut self,
        address: u64,
        change: &dyn Fn(u64) -> u64,
    ) -> Result<u64, OutOfRange> {
        let changed = |word| change(u64::from_le_bytes(word)).to_le_bytes();
        if address.is_multiple_of(8)
            && let Some(old) = self.update_own::<8>(address, changed)
        {
            return old.map(u64::from_le_bytes);
        }
        let seen = self.seen(address, 8).filter(|_| address.is_multiple_of(8));
        let (index, offset) = seen.ok_or_else(|| self.out_of_range(address, 8))?;
        let window = self.windows[index].as_mut();
        Ok(window.expect("the window was found").update(offset, change))
    }

    #[cold]
    fn write_window(&mut self, address: u64, data: &[u8]) -> Result<(), OutOfRange> {
        let seen = self.seen(address, data.len() as u64);
        let (index, offset) = seen.ok_or_else(|| self.out_of_range(address, data.len()))?;
        if let Some((own, at)) = self.own(address, data.len() as u64) {
            let written = own.write(at, data);
            return written.map_err(|_| self.out_of_range(address, data.len()));
        }
        if let Some(window) = &mut self.windows[index] {
            window.write(offset, data);
        }
        Ok(())
    }

    #[cold]
    fn read_window(&self, address: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        let seen = self.seen(address, out.len() as u64);
        let (index, offset) = seen.ok_or_else(|| self.out_of_range(address, out.len()))?;
        if let Some((own, at)) = self.own(address, out.len() as u64) {
            let read = own.read(at, out);
            return read.map_err(|_| self.out_of_range(address, out.len()));
        }
        if let Some(window) = &self.windows[index] {
            window.read(offset, out);
        }
        Ok(())
    }

    pub const fn size(&self) -> u64 {
        self.size
    }

    #[inline]
    fn is_own(&self, address: u64, len: usize) -> bool {
        let end = address.checked_add(len as u64);
        end.is_some_and(|end| end <= self.size)
    }

    /// Stores `data` at `address`.
    ///
    /// # Errors
    /// [`OutOfRange`] if any byte is beyond the end; then nothing is stored.
    #[inline]
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), OutOfRange> {
        if !self.is_own(address, data.len()) {
            return self.write_window(address, data);
        }
        let (mut address, mut data) = (address, data);
        while !data.is_empty() {
            let offset = address as usize & (PAGE_BYTES - 1);
            let (now, later) = data.split_at(data.len().min(PAGE_BYTES - offset));
            let page = self.pages[(address >> PAGE_SHIFT) as usize]
                .get_or_insert_with(|| Box::new([0; PAGE_BYTES]));
            page[offset..offset + now.len()].copy_from_slice(now);
            address += now.len() as u64;
            data = later;
        }
        Ok(())
    }

    /// Fills `out` from `address` on.
    ///
    /// # Errors
    /// [`OutOfRange`] if any byte is beyond the end; then `out` is untouched.
    #[inline]
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        if !self.is_own(address, out.len()) {
            return self.read_window(address, out);
        }
        let (mut address, mut out) = (address, out);
        while !out.is_empty() {
            let offset = address as usize & (PAGE_BYTES - 1);
            let (now, later) = out.split_at_mut(out.len().min(PAGE_BYTES - offset));
            match &self.pages[(address >> PAGE_SHIFT) as usize] {
                Some(page) => now.copy_from_slice(&page[offset..offset + now.len()]),
                None => now.fill(0),
            }
            address += now.len() as u64;
            out = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Shared(Vec<u8>);

    impl Window for Shared {
        fn size(&self) -> u64 {
            self.0.len() as u64
        }

        fn read(&self, offset: u64, out: &mut [u8]) {
            out.copy_from_slice(&self.0[offset as usize..][..out.len()]);
        }

        fn write(&mut self, offset: u64, data: &[u8]) {
            self.0[offset as usize..][..data.len()].copy_from_slice(data);
        }

        fn update(&mut self, offset: u64, change: &dyn Fn(u64) -> u64) -> u64 {
            let word = self.0[offset as usize..].first_chunk_mut::<8>().unwrap();
            let old = u64::from_le_bytes(*word);
            *word = change(old).to_le_bytes();
            old
        }
    }

    #[test]
    fn a_window_is_reached_until_it_is_taken_away_and_no_further() {
        let mut memory = Memory::new(100);
        let windows: Vec<_> = (0..MAX_WINDOWS)
            .map(|_| memory.attach(Box::new(Shared(vec![0; 40]))))
            .collect();
        assert_eq!(windows, (0..MAX_WINDOWS).map(Some).collect::<Vec<_>>());
        assert_eq!(memory.attach(Box::new(Shared(vec![]))), None);
        let base = Memory::window_base(2);
        memory.write(base + 36, &[1, 2, 3, 4]).unwrap();
        let mut out = [0xa5; 4];
        memory.read(base + 36, &mut out).unwrap();
        assert_eq!(out, [1, 2, 3, 4]);
        memory.read(Memory::window_base(1) + 36, &mut out).unwrap();
        assert_eq!(out, [0; 4], "another's");
        assert_eq!(
            memory.update_shared(base + 32, &|word| word + 5),
            Ok(0x0403_0201 << 32)
        );
        assert!(memory.update_shared(base + 40, &|word| word).is_err());
        assert!(memory.update_shared(base + 4, &|word| word).is_err());
        for (address, len) in [(base + 37, 4), (base - 1, 4), (96, 5), (u64::MAX - 2, 4)] {
            assert!(!memory.contains(address, len), "{address:#x}");
            assert!(memory.write(address, &[9; 4][..len as usize % 5]).is_err() || len > 4);
        }
        assert!(memory.contains(base, 40) && memory.contains(96, 4));
        assert_eq!(memory.detach(2).map(|window| window.size()), Some(40));
        assert!(memory.detach(2).is_none() && memory.detach(MAX_WINDOWS).is_none());
        assert!(memory.write(base, &[9]).is_err() && !memory.contains(base, 1));
        assert_eq!(memory.attach(Box::new(Shared(vec![0; 8]))), Some(2));
        memory.read(base, &mut out).unwrap();
        assert_eq!(out, [0; 4], "no data of the previous program");
    }

    #[test]
    fn reads_return_written_bytes() {
        let mut memory = Memory::new(1 << 20);
        let data: Vec<u8> = (1..=32).collect();
        // The last address straddles two pages.
        for address in [0, 5, (1 << 20) - 32, PAGE_BYTES as u64 - 7] {
            memory.write(address, &data).unwrap();
            let mut out = [0xa5; 32];
            memory.read(address, &mut out).unwrap();
            assert_eq!(out[..], data[..]);
        }
        assert_eq!(memory.resident(), 3 * PAGE_BYTES as u64);
    }

    #[test]
    fn untouched_memory_reads_zero_and_costs_nothing() {
        let memory = Memory::new(MAX_MEMORY_BYTES);
        let mut out = [0xa5; 32];
        memory.read(MAX_MEMORY_BYTES / 2, &mut out).unwrap();
        assert_eq!(out, [0; 32]);
        assert_eq!(memory.resident(), 0);
    }

    #[test]
    fn an_access_beyond_the_end_changes_nothing() {
        let mut memory = Memory::new(100);
        memory.write(96, &[7; 4]).unwrap();
        assert_eq!(
            memory.write(97, &[9; 4]),
            Err(OutOfRange {
                address: 97,
                len: 4,
                size: 100
            })
        );
        assert!(memory.write(u64::MAX, &[9; 4]).is_err());
        let mut out = [0xa5; 5];
        assert!(memory.read(96, &mut out).is_err());
        assert_eq!(out, [0xa5; 5]);
        memory.read(96, &mut out[..4]).unwrap();
        assert_eq!(out, [7, 7, 7, 7, 0xa5]);
    }
}
