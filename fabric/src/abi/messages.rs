//! `fi_send`, `fi_recv` and their variants.

use std::ffi::c_void;

use super::endpoints::{CompletionContext, op, outgoing};
use super::objects::{EndpointObject, answer, progress, with_endpoint};
use super::*;
use crate::engine::endpoint::Endpoint;
use crate::engine::matching::Posted;
use crate::engine::shared::Shared;
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

const SENT: u64 = FI_SEND | FI_MSG;
const RECEIVED: u64 = FI_RECV | FI_MSG;

/// The source of a receive, if the endpoint has directed receives.
pub fn from_of(
    endpoint: &Endpoint,
    shared: &Shared,
    number: u64,
) -> Result<Option<crate::engine::wire::Address>, i32> {
    if endpoint.caps & FI_DIRECTED_RECV == 0 || number == FI_ADDR_NOTAVAIL {
        return Ok(None);
    }
    let vector = endpoint
        .binds()
        .vector
        .and_then(|slot| shared.vectors.get(slot));
    let address = vector.and_then(|vector| vector.get(number));
    address.map(Some).ok_or(libc::EINVAL)
}

unsafe fn receive(
    ep: *mut c_void,
    into: Pieces,
    from: u64,
    context: *mut c_void,
    flags: Option<u64>,
) -> isize {
    // SAFETY: the program passes an endpoint.
    answer(|| unsafe {
        with_endpoint(ep, |endpoint, shared| {
            let posted = Posted {
                op: op(endpoint, context, RECEIVED, flags, 0)?,
                into,
                tag: 0,
                ignore: u64::MAX,
                from: from_of(endpoint, shared, from)?,
                multi: None,
            };
            let is_multi = flags.unwrap_or(endpoint.op_flags[1]) & FI_MULTI_RECV != 0;
            endpoint.receive(shared, false, posted, is_multi);
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
    context: *mut c_void,
) -> isize {
    // SAFETY: the program keeps its memory until the operation has completed; here and below.
    unsafe { receive(ep, Pieces::One(Bytes::new(buf, len)), from, context, None) }
}

unsafe extern "C" fn recvv(
    ep: *mut c_void,
    iov: *const Iovec,
    _desc: *mut c_void,
    count: usize,
    from: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe { receive(ep, pieces::of_iov(iov, count), from, context, None) }
}

unsafe extern "C" fn recvmsg(ep: *mut c_void, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let Some(msg) = msg.as_ref() else {
            return -(libc::EINVAL as isize);
        };
        let into = pieces::of_iov(msg.msg_iov, msg.iov_count);
        receive(ep, into, msg.addr, msg.context, Some(flags))
    }
}

/// # Safety
/// `ep` is an endpoint.
unsafe fn transmit(
    ep: *mut c_void,
    from: Pieces,
    to: u64,
    data: Option<u64>,
    reporting: CompletionContext,
) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        answer(|| {
            with_endpoint(ep, |endpoint, shared| {
                let op = outgoing(endpoint, (SENT, 0), reporting, from.len())?;
                endpoint.send(shared, to, from, (None, data), op)?;
                Ok(0)
            })
        })
        .or_progress(ep)
    }
}

/// The results of calls that fail with `EAGAIN` when there is no room.
pub trait Again {
    /// After `EAGAIN`, makes progress, so that a retry may find room.
    ///
    /// # Safety
    /// `ep` is an endpoint.
    unsafe fn or_progress(self, ep: *mut c_void) -> Self;
}

impl Again for isize {
    unsafe fn or_progress(self, ep: *mut c_void) -> Self {
        if self == -(libc::EAGAIN as isize) {
            // SAFETY: guaranteed by the caller.
            let object = unsafe { EndpointObject::of(ep, FI_CLASS_EP) };
            let _ = answer(|| progress(&object?.own.domain).map(|()| 0));
        }
        self
    }
}

unsafe extern "C" fn send(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        transmit(
            ep,
            Pieces::One(Bytes::new(buf, len)),
            to,
            None,
            Some((context, None)),
        )
    }
}

unsafe extern "C" fn sendv(
    ep: *mut c_void,
    iov: *const Iovec,
    _desc: *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        transmit(
            ep,
            pieces::of_iov(iov, count),
            to,
            None,
            Some((context, None)),
        )
    }
}

unsafe extern "C" fn sendmsg(ep: *mut c_void, msg: *const Msg, flags: u64) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let Some(msg) = msg.as_ref() else {
            return -(libc::EINVAL as isize);
        };
        let from = pieces::of_iov(msg.msg_iov, msg.iov_count);
        let data = (flags & FI_REMOTE_CQ_DATA != 0).then_some(msg.data);
        transmit(ep, from, msg.addr, data, Some((msg.context, Some(flags))))
    }
}

unsafe extern "C" fn inject(ep: *mut c_void, buf: *const c_void, len: usize, to: u64) -> isize {
    // SAFETY: see `recv`; a message this short is copied before the call returns.
    unsafe { transmit(ep, Pieces::One(Bytes::new(buf, len)), to, None, None) }
}

unsafe extern "C" fn senddata(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `recv`.
    unsafe {
        let from = Pieces::One(Bytes::new(buf, len));
        transmit(ep, from, to, Some(data), Some((context, None)))
    }
}

unsafe extern "C" fn injectdata(
    ep: *mut c_void,
    buf: *const c_void,
    len: usize,
    data: u64,
    to: u64,
) -> isize {
    // SAFETY: see `inject`.
    unsafe { transmit(ep, Pieces::One(Bytes::new(buf, len)), to, Some(data), None) }
}
