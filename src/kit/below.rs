//! Indices that are known to be in range.

/// `index`, which is below `N` by what the caller does: in release builds the remainder tells the
/// compiler so, which spares the check of bounds; in debug builds an index that is not is told.
///
/// # Panics
/// In debug builds, if it is not.
#[inline(always)]
pub const fn below<const N: usize>(index: usize) -> usize {
    debug_assert!(index < N, "the index is out of range");
    index % N
}
