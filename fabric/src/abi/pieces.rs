//! Memory that calls pass as vectors.

use super::{Ioc, Iovec};
use crate::memory::{Bytes, Pieces};

/// # Safety
/// `iov` points to `count` entries, each valid for [`Bytes::new`].
pub unsafe fn of_iov(iov: *const Iovec, count: usize) -> Pieces {
    if iov.is_null() || count == 0 {
        return Pieces::One(Bytes::none());
    }
    // SAFETY: guaranteed by the caller.
    let all = unsafe { std::slice::from_raw_parts(iov, count) };
    // SAFETY: guaranteed by the caller.
    let bytes = |iov: &Iovec| unsafe { Bytes::new(iov.base, iov.len) };
    match all {
        [only] => Pieces::One(bytes(only)),
        _ => Pieces::Many(all.iter().map(bytes).collect()),
    }
}

/// Like [`of_iov`], for elements of `size` bytes each.
///
/// # Safety
/// As for [`of_iov`].
pub unsafe fn of_ioc(ioc: *const Ioc, count: usize, size: usize) -> Pieces {
    if ioc.is_null() || count == 0 {
        return Pieces::One(Bytes::none());
    }
    // SAFETY: guaranteed by the caller.
    let all = unsafe { std::slice::from_raw_parts(ioc, count) };
    // SAFETY: guaranteed by the caller.
    let bytes = |ioc: &Ioc| unsafe { Bytes::new(ioc.addr, ioc.count.saturating_mul(size)) };
    Pieces::Many(all.iter().map(bytes).collect())
}
