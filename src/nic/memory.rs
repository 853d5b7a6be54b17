//! The processor's local memory: lazily allocated pages behind a bounds check.
//!
//! A memory that nobody has written reads as zeros and costs eight bytes per page, so that many
//! network interfaces with large memories fit on one machine.

const PAGE_SHIFT: u32 = 16;
const PAGE_BYTES: usize = 1 << PAGE_SHIFT;

/// Largest memory a network interface may be given, in bytes (64 GiB).
pub const MAX_MEMORY_BYTES: u64 = 1 << 36;

/// An access reached beyond the end of the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("access to {len} bytes at {address:#x} leaves a memory of {size} bytes")]
pub struct OutOfRange {
    /// First byte of the access.
    pub address: u64,
    /// Bytes asked for.
    pub len: usize,
    /// Bytes the memory has.
    pub size: u64,
}

/// A sparse memory of a fixed size in bytes; pages of 64 KiB appear when first written.
#[derive(Clone, Debug)]
pub struct Memory {
    size: u64,
    pages: Vec<Option<Box<[u8; PAGE_BYTES]>>>,
}

impl Memory {
    /// A memory of `size` bytes, all zero.
    ///
    /// # Panics
    /// If `size` exceeds [`MAX_MEMORY_BYTES`]; configurations are checked before.
    pub fn new(size: u64) -> Self {
        assert!(
            size <= MAX_MEMORY_BYTES,
            "the configuration bounds the memory"
        );
        let pages = size.div_ceil(PAGE_BYTES as u64) as usize;
        Self {
            size,
            pages: vec![None; pages],
        }
    }

    /// Size in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of pages that hold something.
    pub fn resident(&self) -> u64 {
        self.pages.iter().flatten().count() as u64 * PAGE_BYTES as u64
    }

    #[inline]
    fn check(&self, address: u64, len: usize) -> Result<(), OutOfRange> {
        match address.checked_add(len as u64) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(OutOfRange {
                address,
                len,
                size: self.size,
            }),
        }
    }

    /// Stores `data` at `address`.
    ///
    /// # Errors
    /// [`OutOfRange`] when any byte is beyond the end; nothing is stored then.
    #[inline]
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), OutOfRange> {
        self.check(address, data.len())?;
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
    /// [`OutOfRange`] when any byte is beyond the end; `out` is untouched then.
    #[inline]
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.check(address, out.len())?;
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

    #[test]
    fn what_a_write_stored_a_read_returns() {
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
