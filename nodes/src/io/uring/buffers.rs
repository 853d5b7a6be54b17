//! Receive buffers that all ports share, provided to the kernel through a ring.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::IoUring;
use io_uring::types::BufRingEntry;

/// Page size that the kernel wants the ring aligned to.
const PAGE: usize = 4096;

/// Zeroed memory, aligned to a page, at a fixed address.
struct Pages {
    base: NonNull<u8>,
    layout: Layout,
}

impl Pages {
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(PAGE), PAGE)
            .expect("a few megabytes, aligned to a power of two");
        // SAFETY: the layout's size is not zero.
        let base = unsafe { alloc_zeroed(layout) };
        let base = NonNull::new(base).unwrap_or_else(|| handle_alloc_error(layout));
        Self { base, layout }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, freed once.
        unsafe { dealloc(self.base.as_ptr(), self.layout) }
    }
}

/// The ring of provided buffers, and the buffers.
///
/// A buffer belongs to the kernel from [`give_back`](Self::give_back) (or the start) until a
/// completion names it, and to us from then on.
pub(super) struct Buffers {
    ring: Pages,
    memory: Pages,
    entries: u16,
    stride: usize,
    tail: u16,
}

impl Buffers {
    /// `entries` (a power of two) buffers of `stride` bytes, all given to the kernel as group
    /// `group` of `uring`.
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
        let ring = Pages::new(usize::from(entries) * size_of::<BufRingEntry>());
        let memory = Pages::new(usize::from(entries) * stride);
        // SAFETY: the ring's memory is page-aligned, zeroed, as long as `entries` entries and at a
        // fixed address; it outlives its use by the caller's promise.
        unsafe {
            uring.submitter().register_buf_ring_with_flags(
                ring.base.as_ptr() as u64,
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

    /// The first `bytes` bytes of buffer `id`, which a completion has named. `None` when the
    /// completion does not fit the buffers.
    pub fn get(&self, id: u16, bytes: usize) -> Option<&[u8]> {
        if id >= self.entries || bytes > self.stride {
            return None;
        }
        // SAFETY: within the allocation; initialised, because it began zeroed; the kernel does not
        // write to a buffer that it has named in a completion until that is given back, which
        // needs `&mut self`.
        Some(unsafe {
            let start = self.memory.base.as_ptr().add(usize::from(id) * self.stride);
            std::slice::from_raw_parts(start, bytes)
        })
    }

    /// Puts buffer `id` back into the ring; the kernel sees it after [`publish`](Self::publish).
    pub fn give_back(&mut self, id: u16) {
        assert!(id < self.entries);
        let slot = usize::from(self.tail & (self.entries - 1));
        let address = self.memory.base.as_ptr() as u64 + u64::from(id) * self.stride as u64;
        // SAFETY: the slot is within the ring; the kernel reads only slots before the published
        // tail, which this one is not. Only address, length and id are written: the tail itself
        // lies in the reserved field of the first entry.
        unsafe {
            let entry = &mut *self.ring.base.as_ptr().cast::<BufRingEntry>().add(slot);
            entry.set_addr(address);
            entry.set_len(self.stride as u32);
            entry.set_bid(id);
        }
        self.tail = self.tail.wrapping_add(1);
    }

    /// Lets the kernel see what was given back.
    pub fn publish(&mut self) {
        // SAFETY: the address is that of the tail field in the first entry, aligned and valid as
        // long as the ring; the kernel reads it concurrently, hence the atomic store.
        unsafe {
            let tail = BufRingEntry::tail(self.ring.base.as_ptr().cast()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}
