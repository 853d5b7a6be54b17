//! The AMO cache, and the memory behind it.
//!
//! XC white paper, "Remote Memory Access": a 64-entry cache of atomic variables spares reads of
//! host memory. "Host memory is updated each time the variable is updated. Lazy update mechanisms
//! are also provided." Accesses through the NIC are coherent with the cache: a put evicts the words
//! that it touches, and a get returns the cached values.

use phitwire::nic::memory::{Memory, OutOfRange, WINDOW_BYTES};

/// Entries of the cache (XC white paper, "Remote Memory Access").
pub const AMO_CACHE_ENTRIES: usize = 64;
const WORD: u64 = 8;
/// The tag of an empty entry: an address beyond any memory.
const EMPTY: u64 = u64::MAX;

/// When an atomic operation updates host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AmoUpdate {
    /// With every operation.
    #[default]
    EachTime,
    /// When the word is evicted, read by a get or overwritten by a put, or the cache is flushed.
    Lazy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AmoCacheCounts {
    pub hits: u64,
    pub misses: u64,
    pub writebacks: u64,
}

/// The memory of a node, accessed through its NIC.
#[derive(Debug)]
pub(crate) struct CachedMemory {
    memory: Memory,
    update: AmoUpdate,
    /// Addresses of the cached words, separate from their values so that a search is a short scan.
    tags: [u64; AMO_CACHE_ENTRIES],
    values: [u64; AMO_CACHE_ENTRIES],
    dirty: u64,
    /// Last use of each entry, in operations.
    used: [u64; AMO_CACHE_ENTRIES],
    clock: u64,
    filled: usize,
    pub counts: AmoCacheCounts,
}

impl CachedMemory {
    /// Creates a memory of `bytes`, a multiple of eight.
    pub(crate) fn new(bytes: u64, update: AmoUpdate) -> Self {
        debug_assert!(
            bytes.is_multiple_of(WORD),
            "the configuration aligns the size"
        );
        Self {
            memory: Memory::new(bytes),
            update,
            tags: [EMPTY; AMO_CACHE_ENTRIES],
            values: [0; AMO_CACHE_ENTRIES],
            dirty: 0,
            used: [0; AMO_CACHE_ENTRIES],
            clock: 0,
            filled: 0,
            counts: AmoCacheCounts::default(),
        }
    }

    /// The memory behind the cache, which may be stale with lazy updates.
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The memory for the processor's own use, after a flush of the cache.
    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        self.clear();
        &mut self.memory
    }

    /// The memory, for attaching and detaching windows. Words in windows are never cached.
    pub(crate) fn windows_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    pub(crate) fn flush(&mut self) {
        while self.dirty != 0 {
            self.write_back(self.dirty.trailing_zeros() as usize);
        }
    }

    fn clear(&mut self) {
        self.flush();
        self.tags = [EMPTY; AMO_CACHE_ENTRIES];
        self.filled = 0;
    }

    fn write_back(&mut self, entry: usize) {
        let bytes = self.values[entry].to_le_bytes();
        let written = self.memory.write(self.tags[entry], &bytes);
        debug_assert!(written.is_ok(), "the word was read from the same address");
        self.dirty &= !(1 << entry);
        self.counts.writebacks += 1;
    }

    /// Writes back the cached words that overlap the `len` bytes at `address`; `forget` also evicts
    /// them.
    #[inline]
    fn settle(&mut self, address: u64, len: usize, forget: bool) {
        if self.filled == 0 || (!forget && self.dirty == 0) {
            return;
        }
        let first = address & !(WORD - 1);
        let span = address.saturating_add(len as u64) - first;
        // Most accesses touch no cached word, so this check has no branch per entry.
        let touched = |tag: u64| tag.wrapping_sub(first) < span;
        if !self.tags.iter().fold(false, |any, &tag| any | touched(tag)) {
            return;
        }
        for entry in 0..AMO_CACHE_ENTRIES {
            if !touched(self.tags[entry]) {
                continue;
            }
            if self.dirty >> entry & 1 != 0 {
                self.write_back(entry);
            }
            if forget {
                self.tags[entry] = EMPTY;
                self.filled -= 1;
            }
        }
    }

    #[inline]
    pub(crate) fn write(&mut self, address: u64, data: &[u8]) -> Result<(), OutOfRange> {
        self.settle(address, data.len(), true);
        self.memory.write(address, data)
    }

    #[inline]
    pub(crate) fn read(&mut self, address: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.settle(address, out.len(), false);
        self.memory.read(address, out)
    }

    /// The current 64-bit word at `address`, a multiple of eight in the memory. Has no side
    /// effects.
    pub(crate) fn peek_64(&self, address: u64) -> u64 {
        if let Some(entry) = self.tags.iter().position(|&tag| tag == address) {
            return self.values[entry];
        }
        let mut word = [0; WORD as usize];
        let read = self.memory.read(address, &mut word);
        debug_assert!(read.is_ok(), "the caller checked the address");
        u64::from_le_bytes(word)
    }

    /// Updates the 64-bit word at `address`, a multiple of eight, and returns its old value. Words
    /// shared with a program are not cached, so that the program sees each change at once.
    pub(crate) fn update_64(
        &mut self,
        address: u64,
        change: impl Fn(u64) -> u64,
    ) -> Result<u64, OutOfRange> {
        if address >= WINDOW_BYTES {
            return self.memory.update_shared(address, &change);
        }
        let entry = self.fetch(address)?;
        let old = self.values[entry];
        self.store(entry, change(old));
        Ok(old)
    }

    /// Updates the 32-bit word at `address`, a multiple of four, and returns its old value.
    pub(crate) fn update_32(
        &mut self,
        address: u64,
        change: impl Fn(u32) -> u32,
    ) -> Result<u32, OutOfRange> {
        let shift = (address & 4) * 8;
        if address >= WINDOW_BYTES {
            return self.memory.update_shared_32(address, &change);
        }
        let entry = self.fetch(address & !(WORD - 1))?;
        let word = self.values[entry];
        let old = (word >> shift) as u32;
        self.store(entry, replaced(word, shift, change(old)));
        Ok(old)
    }

    /// The cache entry of the word at `address`, which is fetched if necessary.
    fn fetch(&mut self, address: u64) -> Result<usize, OutOfRange> {
        self.clock += 1;
        if let Some(entry) = self.tags.iter().position(|&tag| tag == address) {
            self.counts.hits += 1;
            self.used[entry] = self.clock;
            return Ok(entry);
        }
        let mut word = [0; WORD as usize];
        self.memory.read(address, &mut word)?;
        self.counts.misses += 1;
        let entry = if self.filled < AMO_CACHE_ENTRIES {
            let empty = self.tags.iter().position(|&tag| tag == EMPTY);
            empty.expect("the cache has an empty entry")
        } else {
            self.oldest()
        };
        if self.dirty >> entry & 1 != 0 {
            self.write_back(entry);
        }
        self.filled += usize::from(self.tags[entry] == EMPTY);
        self.tags[entry] = address;
        self.values[entry] = u64::from_le_bytes(word);
        self.used[entry] = self.clock;
        Ok(entry)
    }

    fn oldest(&self) -> usize {
        let mut oldest = 0;
        for entry in 1..AMO_CACHE_ENTRIES {
            if self.used[entry] < self.used[oldest] {
                oldest = entry;
            }
        }
        oldest
    }

    fn store(&mut self, entry: usize, word: u64) {
        self.values[entry] = word;
        self.dirty |= 1 << entry;
        if self.update == AmoUpdate::EachTime {
            let written = self.memory.write(self.tags[entry], &word.to_le_bytes());
            debug_assert!(written.is_ok(), "the word was read from the same address");
            self.dirty &= !(1 << entry);
        }
    }
}

/// `word` with 32 of its bits replaced.
const fn replaced(word: u64, shift: u64, with: u32) -> u64 {
    word & !(0xffff_ffff << shift) | (with as u64) << shift
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::rng::Rng;

    #[test]
    fn reads_and_writes_through_the_nic_are_coherent_with_atomics() {
        for update in [AmoUpdate::EachTime, AmoUpdate::Lazy] {
            let mut rng = Rng::new(3, update as u64);
            let mut memory = CachedMemory::new(1024, update);
            let mut model = [0_u8; 1024];
            for _ in 0..200_000 {
                let at = rng.below(1024 - 64);
                let here = at as usize;
                match rng.below(8) {
                    0 => {
                        let len = 1 + rng.below(64) as usize;
                        let data: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
                        memory.write(at, &data).unwrap();
                        model[here..here + len].copy_from_slice(&data);
                    }
                    1 => {
                        let mut out = vec![0xa5; 1 + rng.below(64) as usize];
                        memory.read(at, &mut out).unwrap();
                        assert_eq!(out, model[here..here + out.len()]);
                    }
                    2 if rng.chance(1, 50) => {
                        let mut all = [0; 1024];
                        memory.memory_mut().read(0, &mut all).unwrap();
                        assert_eq!(all, model);
                    }
                    2..5 => {
                        let here = here & !3;
                        let old = memory.update_32(here as u64, |w| w.wrapping_mul(5) + 1);
                        let word = u32::from_le_bytes(model[here..here + 4].try_into().unwrap());
                        assert_eq!(old, Ok(word));
                        let new = word.wrapping_mul(5) + 1;
                        model[here..here + 4].copy_from_slice(&new.to_le_bytes());
                    }
                    _ => {
                        let here = here & !7;
                        let old = memory.update_64(here as u64, |w| w.wrapping_add(77));
                        let word = u64::from_le_bytes(model[here..here + 8].try_into().unwrap());
                        assert_eq!(old, Ok(word));
                        let new = word.wrapping_add(77);
                        model[here..here + 8].copy_from_slice(&new.to_le_bytes());
                    }
                }
            }
            let AmoCacheCounts { hits, misses, .. } = memory.counts;
            assert!(hits > 10_000 && misses > 10_000);
        }
    }

    #[test]
    fn a_word_in_use_stays_cached_and_memory_follows_the_update_policy() {
        let bytes = |memory: &CachedMemory| {
            let mut word = [0; 8];
            memory.memory().read(0, &mut word).unwrap();
            u64::from_le_bytes(word)
        };
        let mut eager = CachedMemory::new(1 << 16, AmoUpdate::EachTime);
        let mut lazy = CachedMemory::new(1 << 16, AmoUpdate::Lazy);
        for n in 1..=100 {
            eager.update_64(0, |w| w + 1).unwrap();
            lazy.update_64(0, |w| w + 1).unwrap();
            // Operations on other words evict it and each other.
            lazy.update_64(n * 8, |w| w + 1).unwrap();
            assert_eq!((bytes(&eager), bytes(&lazy)), (n, 0));
        }
        assert_eq!((eager.counts.hits, eager.counts.misses), (99, 1));
        assert_eq!((lazy.counts.hits, lazy.counts.misses), (99, 101));
        assert_eq!(lazy.counts.writebacks, 101 - AMO_CACHE_ENTRIES as u64);
        lazy.flush();
        assert_eq!(bytes(&lazy), 100);
        let mut out = [0; 8];
        lazy.update_64(0, |w| w + 1).unwrap();
        lazy.read(4, &mut out).unwrap();
        assert_eq!(bytes(&lazy), 101, "a partial get writes the word back");
    }

    #[test]
    fn a_word_beyond_the_memory_changes_nothing() {
        let mut memory = CachedMemory::new(64, AmoUpdate::Lazy);
        assert!(memory.update_64(64, |w| w + 1).is_err());
        assert!(memory.update_32(1 << 40, |w| w + 1).is_err());
        assert!(memory.write(60, &[1; 8]).is_err());
        assert!(memory.read(u64::MAX, &mut [0; 8]).is_err());
    }
}
