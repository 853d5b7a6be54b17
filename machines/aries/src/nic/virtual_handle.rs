//! Virtual memory domain handles: a segment has the same handle on every node of a job.
//!
//! XC white paper, "Address Translation": a handle is "translated using a content-addressable
//! memory (CAM) in each NIC. If a match is found, the corresponding MDH base value is added to the
//! value in the packet". Here the target matches the protection key and a range of handles. So all
//! jobs on a node may use handle 0, and the table index of a segment may differ between nodes.

use thiserror::Error;

use super::domain::HANDLES;

/// Number of CAM entries, which the XC white paper does not state.
pub const VIRTUAL_HANDLE_ENTRIES: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualHandles {
    /// Protection key of the requests to translate.
    pub key: u16,
    /// First handle to translate.
    pub first: u16,
    /// Number of handles to translate, from `first` on.
    pub count: u16,
    /// Value added to the handle of a request.
    pub base: u16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum VirtualHandleError {
    #[error("all {VIRTUAL_HANDLE_ENTRIES} entries are in use")]
    Full,
    #[error("another entry already translates some of these handles for this key")]
    Overlap,
    /// The range is empty, or contains handles that do not exist before or after translation.
    #[error("handles must be below {HANDLES} before and after translation")]
    Range,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct VirtualHandleCam(Vec<VirtualHandles>);

impl VirtualHandleCam {
    pub(crate) fn add(&mut self, entry: VirtualHandles) -> Result<(), VirtualHandleError> {
        let VirtualHandles {
            key,
            first,
            count,
            base,
        } = entry;
        let end = u32::from(first) + u32::from(count);
        if count == 0 || end + u32::from(base) > u32::from(HANDLES) {
            return Err(VirtualHandleError::Range);
        }
        let overlaps = |other: &VirtualHandles| {
            other.key == key && first < other.first + other.count && other.first < first + count
        };
        if self.0.iter().any(overlaps) {
            return Err(VirtualHandleError::Overlap);
        }
        if self.0.len() == VIRTUAL_HANDLE_ENTRIES {
            return Err(VirtualHandleError::Full);
        }
        self.0.push(entry);
        Ok(())
    }

    /// Removes the entries of a key, and returns their number.
    pub(crate) fn remove(&mut self, key: u16) -> usize {
        let before = self.0.len();
        self.0.retain(|entry| entry.key != key);
        before - self.0.len()
    }

    /// Translates the `handle` of a request with `key`, if an entry matches.
    #[inline]
    pub(crate) fn translate(&self, key: u16, handle: u16) -> u16 {
        for entry in &self.0 {
            if entry.key == key && handle.wrapping_sub(entry.first) < entry.count {
                return entry.base + handle;
            }
        }
        handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: u16, first: u16, count: u16, base: u16) -> VirtualHandles {
        VirtualHandles {
            key,
            first,
            count,
            base,
        }
    }

    #[test]
    fn the_base_is_added_where_key_and_handle_match() {
        let mut cam = VirtualHandleCam::default();
        cam.add(entry(1, 0, 4, 100)).unwrap();
        cam.add(entry(2, 0, 4, 200)).unwrap();
        cam.add(entry(1, 4, 1, 300)).unwrap();
        assert_eq!((cam.translate(1, 0), cam.translate(1, 3)), (100, 103));
        assert_eq!((cam.translate(2, 1), cam.translate(3, 1)), (201, 1));
        assert_eq!((cam.translate(1, 4), cam.translate(1, 5)), (304, 5));
        assert_eq!(cam.remove(1), 2);
        assert_eq!((cam.translate(1, 0), cam.translate(2, 0)), (0, 200));
    }

    #[test]
    fn entries_do_not_overlap_or_leave_the_table() {
        let mut cam = VirtualHandleCam::default();
        cam.add(entry(1, 8, 8, 0)).unwrap();
        for (first, count) in [(0, 9), (15, 1), (9, 2), (0, HANDLES)] {
            let error = cam.add(entry(1, first, count, 0));
            assert_eq!(error, Err(VirtualHandleError::Overlap));
        }
        for bad in [
            entry(2, 0, 0, 0),
            entry(2, HANDLES - 1, 2, 0),
            entry(2, 0, 2, HANDLES - 1),
        ] {
            assert_eq!(cam.add(bad), Err(VirtualHandleError::Range));
        }
        for key in 2..2 + VIRTUAL_HANDLE_ENTRIES as u16 - 1 {
            cam.add(entry(key, 0, 1, 0)).unwrap();
        }
        assert_eq!(cam.add(entry(99, 0, 1, 0)), Err(VirtualHandleError::Full));
    }
}
