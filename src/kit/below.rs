//! Indices that are known to be in range.

/// `index`, checked to be below `N`, so that indexing an array of `N` needs no second check.
///
/// # Panics
/// If `index` is not below `N`: the state that it comes from is broken, and any other element would
/// be wrong.
#[inline(always)]
pub const fn below<const N: usize>(index: usize) -> usize {
    assert!(index < N, "an index from state is out of range");
    index
}
