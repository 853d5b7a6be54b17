//! Indices that are known to be in range.

/// `index`, which the caller guarantees to be below `N`. In release builds the remainder lets the
/// compiler drop the bounds check; debug builds check the guarantee.
///
/// # Panics
/// In debug builds, if `index` is not below `N`.
#[inline(always)]
pub const fn below<const N: usize>(index: usize) -> usize {
    debug_assert!(index < N, "index out of range");
    index % N
}
