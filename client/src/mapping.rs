//! The memory that a program and its NIC share.
#![expect(unsafe_code, reason = "two processes change the mapping")]

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::fstat;
use nix::unistd::ftruncate;
use phitwire_framing::door::segment::{COMMANDS_AT, DATA_AT, MOST_DATA};

// The segment's words are little-endian and used without conversion.
const _: () = assert!(cfg!(target_endian = "little") && usize::BITS == 64);
const WORD: usize = size_of::<u64>();
/// Unit of the data size in bytes: a multiple of every known processor's page size.
const DATA_UNIT: u64 = 1 << 16;
const _: () = assert!((DATA_AT as u64).is_multiple_of(DATA_UNIT));

/// Part of the range is outside of the segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes from offset {offset} exceed the {size} available bytes")]
pub struct OutOfRange {
    /// First byte of the range.
    pub offset: u64,
    /// Length of the range in bytes.
    pub bytes: u64,
    /// Number of bytes available.
    pub size: u64,
}

/// A shared mapping of a segment with the layout of `phitwire_framing::door::segment`.
///
/// The other process may change any byte at any time, so nothing here makes a reference to shared
/// bytes. Relaxed atomic loads and stores copy them: whole aligned words where the range has them,
/// and single bytes at its ends. Such copies are defined under concurrent writes. They may mix old
/// and new words, but a word at a multiple of eight is never torn. They compile to plain moves, one
/// for each word: fast enough for rings and packets, and for blocks within a factor of two of the
/// processor's fastest copy. The [rings](crate::ring) ensure the ordering.
///
/// Accesses of both sizes may meet at one address (a byte at the end of one copy, a word of
/// another). Rust does not define that for atomics of one process, but it is harmless on every
/// processor that Linux runs on: each access is one machine instruction.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    size: NonZeroUsize,
}

// SAFETY: the memory stays mapped while the value lives, and all accesses to it are atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// A new segment with room for at least `data_bytes` bytes of data, all zero, and the
    /// descriptor with which another process can map it. Its size is sealed.
    ///
    /// # Errors
    /// `data_bytes` exceeds [`MOST_DATA`] (`InvalidInput`), or the system refuses the memory.
    pub fn create(data_bytes: u64) -> io::Result<(Self, OwnedFd)> {
        if data_bytes > MOST_DATA {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{data_bytes} bytes of data requested, but the limit is {MOST_DATA}"),
            ));
        }
        let size = DATA_AT as u64 + data_bytes.next_multiple_of(DATA_UNIT);
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let memory = memfd_create(c"phitwire-door", flags)?;
        ftruncate(&memory, size.cast_signed())?;
        let seals = needed_seals() | SealFlag::F_SEAL_SEAL;
        fcntl(&memory, FcntlArg::F_ADD_SEALS(seals))?;
        Ok((Self::map(&memory, size)?, memory))
    }

    /// Maps the segment of another process, which has `data_bytes` bytes of data.
    ///
    /// # Errors
    /// `InvalidData` if the memory has another size, or could be resized, which would let the other
    /// process crash this one; or the error of the system if it refuses to map the memory.
    pub fn open(memory: OwnedFd, data_bytes: u64) -> io::Result<Self> {
        let wrong = |text: String| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        let size = fstat(&memory)?.st_size.cast_unsigned();
        let expected = (DATA_AT as u64).checked_add(data_bytes);
        if data_bytes > MOST_DATA || expected != Some(size) {
            return wrong(format!(
                "the memory has {size} bytes, but {data_bytes} bytes of data need {} (the limit of \
                 data is {MOST_DATA})",
                u128::from(data_bytes) + DATA_AT as u128
            ));
        }
        let seals = SealFlag::from_bits_truncate(fcntl(&memory, FcntlArg::F_GET_SEALS)?);
        if !seals.contains(needed_seals()) {
            return wrong(format!(
                "the size of the memory is not sealed: its seals are {seals:?}"
            ));
        }
        Self::map(&memory, size)
    }

    fn map(memory: impl AsFd, size: u64) -> io::Result<Self> {
        let size = usize::try_from(size).ok().and_then(NonZeroUsize::new);
        let size = size.ok_or(io::ErrorKind::InvalidInput)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so the mapping does not overlap memory in use.
        // All of it stays backed: the file has this length and is sealed against shrinking.
        let base = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, memory, 0)? };
        let base = base.cast();
        Ok(Self { base, size })
    }

    /// Size of the program's data in bytes.
    pub const fn data_bytes(&self) -> u64 {
        (self.size.get() - DATA_AT) as u64
    }

    /// The index or flag at `at`, one of the constants of `phitwire_framing::door::segment`.
    ///
    /// # Panics
    /// If `at` is no such offset. Callers pass constants, never values from outside.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(WORD) && at < COMMANDS_AT, "word at {at}");
        self.word_at(at)
    }

    /// The word at byte `offset` of the data; `None` if `offset` is not a multiple of eight, or
    /// part of the word is outside of the data.
    pub fn data_word(&self, offset: u64) -> Option<&AtomicU64> {
        let at = self.data_at(offset, WORD).ok()?;
        at.is_multiple_of(WORD).then(|| self.word_at(at))
    }

    /// The word at `at`, which must be aligned and within the mapping.
    fn word_at(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(WORD) && at + WORD <= self.size.get());
        // SAFETY: `at` is within the mapping and aligned, since the base is page-aligned. The
        // mapping lives as long as `self`, and only atomic accesses are made to it.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// The byte at `at`, which must be within the mapping.
    fn byte_at(&self, at: usize) -> &AtomicU8 {
        debug_assert!(at < self.size.get());
        // SAFETY: as for `word_at`; a byte needs no alignment.
        unsafe { AtomicU8::from_ptr(self.base.as_ptr().add(at)) }
    }

    fn check(&self, at: usize, bytes: usize) -> Result<(), OutOfRange> {
        let size = self.size.get();
        match at.checked_add(bytes).is_some_and(|end| end <= size) {
            true => Ok(()),
            false => Err(OutOfRange {
                offset: at as u64,
                bytes: bytes as u64,
                size: size as u64,
            }),
        }
    }

    /// Copies the bytes at `at` of the segment into `out`.
    ///
    /// # Errors
    /// See [`OutOfRange`].
    pub fn read(&self, at: usize, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.check(at, out.len())?;
        let head = bytes_to_word(at).min(out.len());
        let (first, rest) = out.split_at_mut(head);
        for (n, byte) in first.iter_mut().enumerate() {
            *byte = self.byte_at(at + n).load(Relaxed);
        }
        let at = at + head;
        let (words, last) = rest.as_chunks_mut::<WORD>();
        for (n, word) in words.iter_mut().enumerate() {
            *word = self.word_at(at + n * WORD).load(Relaxed).to_ne_bytes();
        }
        let at = at + words.len() * WORD;
        for (n, byte) in last.iter_mut().enumerate() {
            *byte = self.byte_at(at + n).load(Relaxed);
        }
        Ok(())
    }

    /// Copies `data` to `at` of the segment.
    ///
    /// # Errors
    /// See [`OutOfRange`].
    pub fn write(&self, at: usize, data: &[u8]) -> Result<(), OutOfRange> {
        self.check(at, data.len())?;
        let head = bytes_to_word(at).min(data.len());
        let (first, rest) = data.split_at(head);
        for (n, byte) in first.iter().enumerate() {
            self.byte_at(at + n).store(*byte, Relaxed);
        }
        let at = at + head;
        let (words, last) = rest.as_chunks::<WORD>();
        for (n, word) in words.iter().enumerate() {
            let word = u64::from_ne_bytes(*word);
            self.word_at(at + n * WORD).store(word, Relaxed);
        }
        let at = at + words.len() * WORD;
        for (n, byte) in last.iter().enumerate() {
            self.byte_at(at + n).store(*byte, Relaxed);
        }
        Ok(())
    }

    /// Position in the segment of byte `offset` of the data, if `bytes` bytes follow.
    fn data_at(&self, offset: u64, bytes: usize) -> Result<usize, OutOfRange> {
        let size = self.data_bytes();
        let end = offset.checked_add(bytes as u64);
        match end.is_some_and(|end| end <= size) {
            true => Ok(DATA_AT + offset as usize),
            false => Err(OutOfRange {
                offset,
                bytes: bytes as u64,
                size,
            }),
        }
    }

    /// Copies data at byte `offset` into `out`.
    ///
    /// # Errors
    /// See [`OutOfRange`].
    pub fn read_data(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.read(self.data_at(offset, out.len())?, out)
    }

    /// Copies `data` to byte `offset` of the program's data.
    ///
    /// # Errors
    /// See [`OutOfRange`].
    pub fn write_data(&self, offset: u64, data: &[u8]) -> Result<(), OutOfRange> {
        self.write(self.data_at(offset, data.len())?, data)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length; all references to it borrow `self`.
        let gone = unsafe { munmap(self.base.cast(), self.size.get()) };
        debug_assert!(gone.is_ok(), "munmap of our own mapping failed: {gone:?}");
    }
}

/// The seals that keep the other process from resizing the memory while it is mapped.
fn needed_seals() -> SealFlag {
    SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW
}

/// Bytes from `at` to the next word.
const fn bytes_to_word(at: usize) -> usize {
    at.wrapping_neg() % WORD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_mappings_share_data() {
        let (ours, memory) = Mapping::create(100).expect("there is memory");
        assert_eq!(ours.data_bytes(), DATA_UNIT);
        let theirs = Mapping::open(memory, DATA_UNIT).expect("it is right");
        let pattern: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for from in 0..16 {
            for bytes in [0, 1, 3, 7, 8, 9, 15, 16, 17, 64, 999] {
                let mut before = vec![0; bytes + 32];
                ours.write_data(from, &vec![0xa5; bytes + 32])
                    .expect("inside");
                ours.write_data(from + 16, &pattern[..bytes])
                    .expect("inside");
                theirs.read_data(from, &mut before).expect("inside");
                assert_eq!(before[..16], [0xa5; 16], "{from} {bytes}");
                assert_eq!(before[16..16 + bytes], pattern[..bytes], "{from} {bytes}");
                assert_eq!(before[16 + bytes..], [0xa5; 16], "{from} {bytes}");
            }
        }
        let word = ours.data_word(DATA_UNIT - 8).expect("inside");
        word.store(u64::from_le_bytes(*b"phitwire"), Relaxed);
        let mut out = [0; 8];
        theirs.read_data(DATA_UNIT - 8, &mut out).expect("inside");
        assert_eq!(&out, b"phitwire");
    }

    #[test]
    fn nothing_outside_is_reached() {
        let (mapping, _) = Mapping::create(DATA_UNIT).expect("there is memory");
        let size = DATA_AT + DATA_UNIT as usize;
        for (at, bytes) in [
            (size, 1),
            (size - 7, 8),
            (usize::MAX, 1),
            (usize::MAX - 7, 64),
        ] {
            mapping.read(at, &mut vec![0; bytes]).expect_err("outside");
            mapping.write(at, &vec![0; bytes]).expect_err("outside");
        }
        for (at, bytes) in [(DATA_UNIT, 1), (DATA_UNIT - 7, 8), (u64::MAX, 1)] {
            mapping.read_data(at, &mut vec![0; bytes]).expect_err("out");
            mapping.write_data(at, &vec![0; bytes]).expect_err("out");
            assert!(mapping.data_word(at).is_none());
        }
        assert!(mapping.data_word(12).is_none(), "not aligned");
        mapping.read(size, &mut []).expect("nothing, at the end");
    }

    #[test]
    fn memory_that_could_shrink_or_has_another_size_is_refused() {
        let kind = |result: io::Result<Mapping>| result.expect_err("it is wrong").kind();
        let (_, memory) = Mapping::create(DATA_UNIT).expect("there is memory");
        ftruncate(&memory, 0).expect_err("sealed");
        for data_bytes in [0, 1, DATA_UNIT - 1, DATA_UNIT + 1, MOST_DATA + 1, u64::MAX] {
            let memory = memory.try_clone().expect("a descriptor");
            let found = kind(Mapping::open(memory, data_bytes));
            assert_eq!(found, io::ErrorKind::InvalidData, "{data_bytes}");
        }
        let found = Mapping::create(MOST_DATA + 1).map(|(mapping, _)| mapping);
        assert_eq!(kind(found), io::ErrorKind::InvalidInput);
        let flags = MFdFlags::MFD_CLOEXEC | MFdFlags::MFD_ALLOW_SEALING;
        let unsealed = memfd_create(c"unsealed", flags).expect("there is memory");
        ftruncate(&unsealed, (DATA_AT as u64 + DATA_UNIT).cast_signed()).expect("there is room");
        let found = kind(Mapping::open(unsealed, DATA_UNIT));
        assert_eq!(found, io::ErrorKind::InvalidData);
    }
}
