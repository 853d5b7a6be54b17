//! `fi_tsend`, `fi_trecv` and their variants.

use std::ffi::c_void;

use super::endpoints::{CompletionContext, op, outgoing};
use super::messages::{Again, from_of};
use super::objects::{EndpointObject, answer, with_endpoint};
use super::*;
use crate::engine::matching::Posted;
use crate::memory::{Bytes, Pieces};

pub static CALLS: Ops<9> = Ops::new([
    recv as Table,
    recvv as Table,
    recvmsg as Table,
    send as Table,
    sendv as Table,
    sendmsg as Table,
    inject as Table,
    senddata as Table,
    injectdata as Table,
]);

const SENT: u64 = FI_SEND | FI_TAGGED;
const RECEIVED: u64 = FI_RECV | FI_TAGGED;

/// # Safety
/// `ep` is an endpoint.
unsafe fn receive(
    ep: *mut c_void,
    into: Pieces,
    from: u64,
    (tag, ignore): (u64, u64),
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: guaranteed by the caller.
    answer(|| unsafe {
        let has = |flag| flags.is_some_and(|flags| flags & flag != 0);
        if has(FI_PEEK) {
            // Make progress first: the peek must find messages that have already arrived.
            let own = &EndpointObject::of(ep, FI_CLASS_EP)?.own;
            own.within(|state| Ok(state.progress()))?;
        }
        with_endpoint(ep, |endpoint, shared| {
            let posted = Posted {
                op: op(endpoint, context, RECEIVED, flags, tag)?,
                into,
                tag,
                ignore,
                from: from_of(endpoint, shared, from)?,
                multi: None,
            };
            if has(FI_PEEK) {
                endpoint.peek(shared, &posted, flags.unwrap_or(0));
            } else if has(FI_CLAIM) {
                if !endpoint.claim(shared, posted, flags.unwrap_or(0)) {
                    return Err(libc::EINVAL);
                }
            } else {
                endpoint.receive(shared, true, posted, false);
            }
            Ok(0)
        })
    })
}

unsafe extern "C" fn recv(
    ep: *mut c_void,
    buf: *mut c_void,
    len: usize,
    _desc: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: the program keeps its memory until the operation has completed; here and below.
    unsafe {
        let into = Pieces::One(Bytes::new(buf, len));
        receive(ep, into, from, (tag, ignore), context, None)
    }
}

unsafe extern "C" fn recvv(
    ep: *mut c_void,
    iov: *const Iovec,
    _desc: *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let into = pieces::of_iov(iov, count);
        receive(ep, into, from, (tag, ignore), context, None)
    }
}

unsafe extern "C" fn recvmsg(ep: *mut c_void, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let Some(msg) = msg.as_ref() else {
            return -(libc::EINVAL as isize);
        };
        let into = pieces::of_iov(msg.msg_iov, msg.iov_count);
        let tags = (msg.tag, msg.ignore);
        receive(ep, into, msg.addr, tags, msg.context, Some(flags))
    }
}

/// # Safety
/// `ep` is an endpoint.
unsafe fn transmit(
    ep: *mut c_void,
    from: Pieces,
    to: u64,
    (tag, data): (u64, Option<u64>),
    reporting: CompletionContext,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        answer(|| {
            with_endpoint(ep, |endpoint, shared| {
                let op = outgoing(endpoint, (SENT, tag), reporting, from.len())?;
                endpoint.send(shared, to, from, (Some(tag), data), op)?;
                Ok(0)
            })
        })
        .or_progress(ep)
    }
}

unsafe extern "C" fn send(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        transmit(ep, from, to, (tag, None), Some((context, None)))
    }
}

unsafe extern "C" fn sendv(
    ep: *mut c_void,
    iov: *const Iovec,
    _desc: *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let from = pieces::of_iov(iov, count);
        transmit(ep, from, to, (tag, None), Some((context, None)))
    }
}

unsafe extern "C" fn sendmsg(ep: *mut c_void, msg: *const MsgTagged, flags: u64) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let Some(msg) = msg.as_ref() else {
            return -(libc::EINVAL as isize);
        };
        let from = pieces::of_iov(msg.msg_iov, msg.iov_count);
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
        let reporting = Some((msg.context, Some(flags)));
        transmit(ep, from, msg.addr, (msg.tag, data), reporting)
    }
}

unsafe extern "C" fn inject(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    to: u64,
    tag: u64,
) -> isize {
    // SAFETY: see `recv`; a message this short is copied before the call returns.
    unsafe { transmit(ep, Pieces::One(Bytes::new(buf, len)), to, (tag, None), None) }
}

unsafe extern "C" fn senddata(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        transmit(ep, from, to, (tag, Some(data)), Some((context, None)))
    }
}

unsafe extern "C" fn injectdata(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    data: u64,
    to: u64,
    tag: u64,
) -> isize {
    // SAFETY: see `inject`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        transmit(ep, from, to, (tag, Some(data)), None)
    }
}
