//! `fi_read`, `fi_write` and their variants.

use std::ffi::c_void;

use super::endpoints::{CompletionContext, op, outgoing};
use super::messages::Again;
use super::objects::{answer, with_endpoint};
use super::*;
use crate::engine::access::{Far, flags_of};
use crate::memory::{Bytes, Pieces};

pub static CALLS: Ops<9> = Ops::new([
    read as Table,
    readv as Table,
    readmsg as Table,
    write as Table,
    writev as Table,
    writemsg as Table,
    inject as Table,
    writedata as Table,
    injectdata as Table,
]);

/// # Safety
/// `ep` is an endpoint.
unsafe fn get(
    ep: *mut c_void,
    into: Pieces,
    far: Far,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        answer(|| {
            with_endpoint(ep, |endpoint, shared| {
                let op = op(endpoint, context, flags_of(FI_RMA, true), flags, 0)?;
                endpoint.read(shared, far, into, op)?;
                Ok(0)
            })
        })
        .or_progress(ep)
    }
}

/// # Safety
/// `ep` is an endpoint.
unsafe fn put(
    ep: *mut c_void,
    from: Pieces,
    far: Far,
    data: Option<u64>,
    reporting: CompletionContext,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        answer(|| {
            with_endpoint(ep, |endpoint, shared| {
                let what = flags_of(FI_RMA, false);
                let op = outgoing(endpoint, (what, 0), reporting, from.len())?;
                endpoint.write(shared, far, from, data, op)?;
                Ok(0)
            })
        })
        .or_progress(ep)
    }
}

const fn far(number: u64, address: u64, key: u64) -> Far {
    Far {
        number,
        address,
        key,
    }
}

/// # Safety
/// The message is null or valid.
unsafe fn message<'a>(msg: *const MsgRma) -> Option<(&'a MsgRma, Far)> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let msg = msg.as_ref().filter(|msg| msg.rma_iov_count == 1)?;
        let iov = msg.rma_iov.as_ref()?;
        Some((msg, far(msg.addr, iov.addr, iov.key)))
    }
}

unsafe extern "C" fn read(
    ep: *mut c_void,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    from: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the program keeps its memory until the operation has completed; here and below.
    unsafe {
        let into = Pieces::One(Bytes::new(buf, len));
        get(ep, into, far(from, address, key), context, None)
    }
}

unsafe extern "C" fn readv(
    ep: *mut c_void,
    iov: *const Iovec,
    _desc: *mut c_void,
    count: usize,
    from: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `read`.
    unsafe {
        get(
            ep,
            pieces::of_iov(iov, count),
            far(from, address, key),
            context,
            None,
        )
    }
}

unsafe extern "C" fn readmsg(ep: *mut c_void, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: see `read`.
    unsafe {
        let Some((msg, far)) = message(msg) else {
            return -(libc::EINVAL as isize);
        };
        let into = pieces::of_iov(msg.msg_iov, msg.iov_count);
        get(ep, into, far, msg.context, Some(flags))
    }
}

unsafe extern "C" fn write(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `read`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        put(ep, from, far(to, address, key), None, Some((context, None)))
    }
}

unsafe extern "C" fn writev(
    ep: *mut c_void,
    iov: *const Iovec,
    _desc: *mut c_void,
    count: usize,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `read`.
    unsafe {
        let from = pieces::of_iov(iov, count);
        put(ep, from, far(to, address, key), None, Some((context, None)))
    }
}

unsafe extern "C" fn writemsg(ep: *mut c_void, msg: *const MsgRma, flags: u64) -> isize {
    // SAFETY: see `read`.
    unsafe {
        let Some((msg, far)) = message(msg) else {
            return -(libc::EINVAL as isize);
        };
        let from = pieces::of_iov(msg.msg_iov, msg.iov_count);
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
        put(ep, from, far, data, Some((msg.context, Some(flags))))
    }
}

unsafe extern "C" fn inject(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    to: u64,
    address: u64,
    key: u64,
) -> isize {
    // SAFETY: see `read`; injected bytes are copied before the call returns.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        put(ep, from, far(to, address, key), None, None)
    }
}

unsafe extern "C" fn writedata(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    address: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `read`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        put(
            ep,
            from,
            far(to, address, key),
            Some(data),
            Some((context, None)),
        )
    }
}

unsafe extern "C" fn injectdata(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    data: u64,
    to: u64,
    address: u64,
    key: u64,
) -> isize {
    // SAFETY: see `inject`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        put(ep, from, far(to, address, key), Some(data), None)
    }
}
