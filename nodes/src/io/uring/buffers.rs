//! Receive buffers that all ports share, provided to the kernel through a ring.

use std::io;
use std::num::NonZeroUsize;
use std::os::raw::c_void;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;
use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous, munmap};

/// A private mapping: zeroed, page-aligned, at a fixed address. The kernel zeroes pages lazily, so
/// a page takes memory only once it is written; large pages are disabled to keep that small.
struct Pages {
    base: NonNull<c_void>,
    length: NonZeroUsize,
}

impl Pages {
    fn new(bytes: usize) -> io::Result<Self> {
        let length = NonZeroUsize::new(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: the kernel chooses the address, so the mapping does not overlap memory in use.
        let base = unsafe { mmap_anonymous(None, length, access, MapFlags::MAP_PRIVATE)? };
        let this = Self { base, length };
        // SAFETY: this is our mapping, and the advice does not change its contents. A kernel
        // without large pages refuses the advice, which does no harm.
        let _ = unsafe { madvise(base, bytes, MmapAdvise::MADV_NOHUGEPAGE) };
        Ok(this)
    }

    fn base(&self) -> *mut u8 {
        self.base.as_ptr().cast()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and nothing refers to it any longer.
        let gone = unsafe { munmap(self.base, self.length.get()) };
        debug_assert!(gone.is_ok(), "cannot unmap the buffers: {gone:?}");
    }
}

/// The ring of provided buffers, and the buffers.
///
/// A buffer belongs to the kernel from [`give_back`](Self::give_back) (or from the start) until a
/// completion names it; then it belongs to us.
pub(super) struct Buffers {
    ring: Pages,
    memory: Pages,
    entries: u16,
    stride: usize,
    tail: u16,
}

impl Buffers {
    /// `entries` (a power of two) buffers of `stride` bytes, all owned by the kernel at first as
    /// group `group` of `uring`.
    ///
    /// # Errors
    /// When the kernel has no provided-buffer rings (before Linux 5.19).
    ///
    /// # Safety
    /// The value must outlive every request of `uring` that selects from `group`.
    pub unsafe fn new(
        uring: &IoUring,
        group: u16,
        entries: u16,
        stride: usize,
    ) -> io::Result<Self> {
        assert!(entries.is_power_of_two());
        let ring = Pages::new(usize::from(entries) * size_of::<BufRingEntry>())?;
        let memory = Pages::new(usize::from(entries) * stride)?;
        // SAFETY: the ring's memory is page-aligned, zeroed, as long as `entries` entries and at a
        // fixed address; the caller promises that it outlives its use.
        unsafe {
            uring.submitter().register_buf_ring_with_flags(
                ring.base() as u64,
                entries,
                group,
                0,
            )?;
        }
        let mut this = Self {
            ring,
            memory,
            entries,
            stride,
            tail: 0,
        };
        for id in 0..entries {
            this.give_back(id);
        }
        this.publish();
        Ok(this)
    }

    /// The first `bytes` bytes of buffer `id`, as named by a completion. `None` when the completion
    /// does not match the buffers.
    pub fn get(&self, id: u16, bytes: usize) -> Option<&[u8]> {
        if id >= self.entries || bytes > self.stride {
            return None;
        }
        // SAFETY: the range is within the allocation and initialised, since it was zeroed. The
        // kernel does not write to a buffer named in a completion until it is given back, which
        // needs `&mut self`.
        Some(unsafe {
            let start = self.memory.base().add(usize::from(id) * self.stride);
            std::slice::from_raw_parts(start, bytes)
        })
    }

    /// Returns buffer `id` to the ring; the kernel sees it after [`publish`](Self::publish).
    pub fn give_back(&mut self, id: u16) {
        assert!(id < self.entries);
        let slot = usize::from(self.tail & (self.entries - 1));
        let address = self.memory.base() as u64 + u64::from(id) * self.stride as u64;
        // SAFETY: the slot is within the ring, and the kernel reads only slots before the published
        // tail, so not this one. Only address, length and id are written: the tail itself lies in
        // the reserved field of the first entry.
        unsafe {
            let entry = &mut *self.ring.base().cast::<BufRingEntry>().add(slot);
            entry.set_addr(address);
            entry.set_len(self.stride as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Makes the returned buffers visible to the kernel.
    pub fn publish(&mut self) {
        // SAFETY: this is the address of the tail field in the first entry, aligned and valid as
        // long as the ring. The kernel reads it concurrently, hence the atomic store.
        unsafe {
            let tail = BufRingEntry::tail(self.ring.base().cast()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}
