//! Memory of the program.
#![allow(unsafe_code, reason = "the program lends its memory as pointers")]

use std::ffi::c_void;

/// Bytes of the program. By libfabric's rules the program keeps them, and neither reads nor writes
/// them, until their operation completes; registered memory until it is closed.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    at: *mut u8,
    len: usize,
}

// SAFETY: the program's promise holds for all threads.
unsafe impl Send for Bytes {}

impl Bytes {
    /// # Safety
    /// The bytes are valid as long as the value is used.
    pub const unsafe fn new(at: *const c_void, len: usize) -> Self {
        // Null is empty, regardless of the length.
        let len = if at.is_null() { 0 } else { len };
        Self {
            at: at.cast_mut().cast(),
            len,
        }
    }

    /// No bytes.
    pub const fn none() -> Self {
        Self {
            at: std::ptr::null_mut(),
            len: 0,
        }
    }

    pub const fn len(&self) -> usize {
        self.len
    }

    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn address(&self) -> u64 {
        self.at as u64
    }

    /// A part of the bytes; `None` if it exceeds them.
    pub fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end <= self.len).then(|| Self {
            at: self.at.wrapping_add(offset),
            len,
        })
    }

    /// Calls `look` with the bytes.
    pub fn with<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        match self.len {
            0 => look(&[]),
            // SAFETY: see the type.
            len => look(unsafe { std::slice::from_raw_parts(self.at, len) }),
        }
    }

    /// Calls `change` with the bytes.
    pub fn with_mut<T>(&self, change: impl FnOnce(&mut [u8]) -> T) -> T {
        match self.len {
            0 => change(&mut []),
            // SAFETY: see the type.
            len => change(unsafe { std::slice::from_raw_parts_mut(self.at, len) }),
        }
    }
}

/// Several pieces of memory as one.
#[derive(Clone, Debug)]
pub enum Pieces {
    One(Bytes),
    Many(Vec<Bytes>),
}

impl Pieces {
    fn all(&self) -> &[Bytes] {
        match self {
            Self::One(bytes) => std::slice::from_ref(bytes),
            Self::Many(all) => all,
        }
    }

    /// Address of the first piece.
    pub fn address(&self) -> u64 {
        self.all().first().map_or(0, Bytes::address)
    }

    pub fn len(&self) -> usize {
        self.all().iter().map(Bytes::len).sum()
    }

    /// Calls `visit` with the pieces of `len` bytes from `offset` on, each with its position
    /// relative to `offset`. Anything beyond the end is omitted.
    pub fn visit(&self, offset: usize, len: usize, mut visit: impl FnMut(usize, Bytes)) {
        let (mut skip, mut left, mut done) = (offset, len, 0);
        for piece in self.all() {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let bytes = left.min(piece.len() - skip);
            if bytes == 0 {
                break;
            }
            if let Some(part) = piece.part(skip, bytes) {
                visit(done, part);
            }
            (skip, left, done) = (0, left - bytes, done + bytes);
        }
    }

    /// Copies out `len` bytes from `offset` on.
    pub fn to_vec(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(len);
        self.visit(offset, len, |_, part| {
            part.with(|bytes| out.extend_from_slice(bytes))
        });
        out
    }

    /// Copies in bytes from `offset` on, as many as fit.
    pub fn fill(&self, offset: usize, data: &[u8]) {
        self.visit(offset, data.len(), |at, part| {
            part.with_mut(|bytes| bytes.copy_from_slice(&data[at..at + bytes.len()]));
        });
    }
}

#[cfg(test)]
impl Pieces {
    /// Memory of a test, never freed.
    pub fn leaked(bytes: Vec<u8>) -> Self {
        let bytes: &'static mut [u8] = bytes.leak();
        Self::One(Bytes {
            len: bytes.len(),
            at: bytes.as_mut_ptr(),
        })
    }

    /// Current content of the memory.
    pub fn now(&self) -> Vec<u8> {
        self.to_vec(0, self.len())
    }
}

/// Memory of a test's programs, freed with it.
#[cfg(test)]
#[derive(Debug, Default)]
pub struct Arena(Vec<Box<[u64]>>);

#[cfg(test)]
impl Arena {
    /// Zeros: `len` bytes, `skip` bytes behind a word's address.
    pub fn bytes(&mut self, skip: usize, len: usize) -> Bytes {
        let mut words = vec![0; (skip + len).div_ceil(8).max(1)].into_boxed_slice();
        let at = words.as_mut_ptr().cast::<u8>().wrapping_add(skip);
        self.0.push(words);
        Bytes { at, len }
    }
}
