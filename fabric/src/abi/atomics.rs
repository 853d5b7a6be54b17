//! `fi_atomic` and its variants.

use std::ffi::{c_int, c_void};

use super::domains::elements_of;
use super::endpoints::{CompletionContext, outgoing};
use super::messages::Again;
use super::objects::{answer, answer_int, with_endpoint};
use super::*;
use crate::engine::access::{Change, Far, flags_of};
use crate::engine::elements::Form;
use crate::memory::{Bytes, Pieces};

pub static CALLS: Ops<13> = Ops::new([
    write as Table,
    writev as Table,
    writemsg as Table,
    inject as Table,
    readwrite as Table,
    readwritev as Table,
    readwritemsg as Table,
    compwrite as Table,
    compwritev as Table,
    compwritemsg as Table,
    writevalid as Table,
    readwritevalid as Table,
    compwritevalid as Table,
]);

/// Memory of the program: elements at a pointer, or several vectors of them.
enum Elements {
    None,
    At(*const c_void),
    Many(*const Ioc, usize),
}

/// The arguments that all these calls share.
struct Call {
    form: Form,
    count: usize,
    operands: Elements,
    compare: Elements,
    result: Elements,
    far: Far,
    datatype: c_int,
    op: c_int,
    reporting: CompletionContext,
}

/// # Safety
/// `ep` is an endpoint, and the program keeps its memory until the operation has completed.
unsafe fn change(ep: *mut c_void, call: Call) -> isize {
    // SAFETY: guaranteed by the caller.
    unsafe {
        answer(|| {
            let (size, _) = elements_of(call.datatype, call.op, call.form)?;
            let bytes = call.count.saturating_mul(size);
            let pieces = |elements: &Elements| match *elements {
                Elements::None => None,
                Elements::At(at) => Some(Pieces::One(Bytes::new(at, bytes))),
                Elements::Many(ioc, count) => Some(pieces::of_ioc(ioc, count, size)),
            };
            let memory = [&call.operands, &call.compare, &call.result].map(pieces);
            let change = Change {
                datatype: call.datatype as u8,
                op: call.op as u8,
                form: call.form,
                count: call.count,
            };
            let what = flags_of(FI_ATOMIC, call.form != Form::Write);
            with_endpoint(ep, |endpoint, shared| {
                let op = outgoing(endpoint, (what, 0), call.reporting, bytes)?;
                endpoint.atomic(shared, call.far, change, memory, op)?;
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
/// `ioc` is null or points to `count` entries.
unsafe fn total(ioc: *const Ioc, count: usize) -> usize {
    let count = if ioc.is_null() { 0 } else { count };
    // SAFETY: guaranteed by the caller.
    (0..count).map(|n| unsafe { (*ioc.add(n)).count }).sum()
}

/// # Safety
/// The message is null or valid.
unsafe fn of_message(msg: *const MsgAtomic, form: Form, flags: u64) -> Result<Call, isize> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let msg = msg.as_ref().filter(|msg| msg.rma_iov_count == 1);
        let iov = msg.and_then(|msg| msg.rma_iov.as_ref());
        let (Some(msg), Some(iov)) = (msg, iov) else {
            return Err(-(libc::EINVAL as isize));
        };
        Ok(Call {
            form,
            count: iov.len,
            operands: Elements::Many(msg.msg_iov, msg.iov_count),
            compare: Elements::None,
            result: Elements::None,
            far: far(msg.addr, iov.addr, iov.key),
            datatype: msg.datatype,
            op: msg.op,
            reporting: Some((msg.context, Some(flags))),
        })
    }
}

unsafe extern "C" fn write(
    ep: *mut c_void,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let call = Call {
        form: Form::Write,
        count,
        operands: Elements::At(buf),
        compare: Elements::None,
        result: Elements::None,
        far: far(to, address, key),
        datatype,
        op,
        reporting: Some((context, None)),
    };
    // SAFETY: the caller upholds libfabric's contract; here and below.
    unsafe { change(ep, call) }
}

unsafe extern "C" fn writev(
    ep: *mut c_void,
    ioc: *const Ioc,
    _desc: *mut c_void,
    iocs: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `write`.
    unsafe {
        let call = Call {
            form: Form::Write,
            count: total(ioc, iocs),
            operands: Elements::Many(ioc, iocs),
            compare: Elements::None,
            result: Elements::None,
            far: far(to, address, key),
            datatype,
            op,
            reporting: Some((context, None)),
        };
        change(ep, call)
    }
}

unsafe extern "C" fn writemsg(ep: *mut c_void, msg: *const MsgAtomic, flags: u64) -> isize {
    // SAFETY: see `write`.
    unsafe {
        match of_message(msg, Form::Write, flags) {
            Ok(call) => change(ep, call),
            Err(errno) => errno,
        }
    }
}

unsafe extern "C" fn inject(
    ep: *mut c_void,
    buf: *const c_void,
    count: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
) -> isize {
    let call = Call {
        form: Form::Write,
        count,
        operands: Elements::At(buf),
        compare: Elements::None,
        result: Elements::None,
        far: far(to, address, key),
        datatype,
        op,
        reporting: None,
    };
    // SAFETY: see `write`.
    unsafe { change(ep, call) }
}

unsafe extern "C" fn readwrite(
    ep: *mut c_void,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let call = Call {
        form: Form::Fetch,
        count,
        operands: Elements::At(buf),
        compare: Elements::None,
        result: Elements::At(result),
        far: far(to, address, key),
        datatype,
        op,
        reporting: Some((context, None)),
    };
    // SAFETY: see `write`.
    unsafe { change(ep, call) }
}

unsafe extern "C" fn readwritev(
    ep: *mut c_void,
    ioc: *const Ioc,
    _desc: *mut c_void,
    iocs: usize,
    results: *const Ioc,
    _result_desc: *mut c_void,
    result_count: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `write`.
    unsafe {
        let call = Call {
            form: Form::Fetch,
            count: total(results, result_count),
            operands: Elements::Many(ioc, iocs),
            compare: Elements::None,
            result: Elements::Many(results, result_count),
            far: far(to, address, key),
            datatype,
            op,
            reporting: Some((context, None)),
        };
        change(ep, call)
    }
}

unsafe extern "C" fn readwritemsg(
    ep: *mut c_void,
    msg: *const MsgAtomic,
    results: *const Ioc,
    _result_desc: *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: see `write`.
    unsafe {
        match of_message(msg, Form::Fetch, flags) {
            Ok(call) => {
                let result = Elements::Many(results, result_count);
                change(ep, Call { result, ..call })
            }
            Err(errno) => errno,
        }
    }
}

unsafe extern "C" fn compwrite(
    ep: *mut c_void,
    buf: *const c_void,
    count: usize,
    _desc: *mut c_void,
    compare: *const c_void,
    _compare_desc: *mut c_void,
    result: *mut c_void,
    _result_desc: *mut c_void,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    let call = Call {
        form: Form::Compare,
        count,
        operands: Elements::At(buf),
        compare: Elements::At(compare),
        result: Elements::At(result),
        far: far(to, address, key),
        datatype,
        op,
        reporting: Some((context, None)),
    };
    // SAFETY: see `write`.
    unsafe { change(ep, call) }
}

unsafe extern "C" fn compwritev(
    ep: *mut c_void,
    ioc: *const Ioc,
    _desc: *mut c_void,
    iocs: usize,
    compares: *const Ioc,
    _compare_desc: *mut c_void,
    compare_count: usize,
    results: *const Ioc,
    _result_desc: *mut c_void,
    result_count: usize,
    to: u64,
    address: u64,
    key: u64,
    datatype: c_int,
    op: c_int,
    context: *mut c_void,
) -> isize {
    // SAFETY: see `write`.
    unsafe {
        let call = Call {
            form: Form::Compare,
            count: total(ioc, iocs),
            operands: Elements::Many(ioc, iocs),
            compare: Elements::Many(compares, compare_count),
            result: Elements::Many(results, result_count),
            far: far(to, address, key),
            datatype,
            op,
            reporting: Some((context, None)),
        };
        change(ep, call)
    }
}

unsafe extern "C" fn compwritemsg(
    ep: *mut c_void,
    msg: *const MsgAtomic,
    compares: *const Ioc,
    _compare_desc: *mut c_void,
    compare_count: usize,
    results: *const Ioc,
    _result_desc: *mut c_void,
    result_count: usize,
    flags: u64,
) -> isize {
    // SAFETY: see `write`.
    unsafe {
        match of_message(msg, Form::Compare, flags) {
            Ok(call) => {
                let compare = Elements::Many(compares, compare_count);
                let result = Elements::Many(results, result_count);
                change(
                    ep,
                    Call {
                        compare,
                        result,
                        ..call
                    },
                )
            }
            Err(errno) => errno,
        }
    }
}

/// # Safety
/// `out` is null or valid for writing.
unsafe fn valid(datatype: c_int, op: c_int, form: Form, out: *mut usize) -> c_int {
    answer_int(|| {
        let (_, count) = elements_of(datatype, op, form)?;
        // SAFETY: guaranteed by the caller.
        if let Some(out) = unsafe { out.as_mut() } {
            *out = count;
        }
        Ok(())
    })
}

unsafe extern "C" fn writevalid(
    _: *mut c_void,
    datatype: c_int,
    op: c_int,
    out: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { valid(datatype, op, Form::Write, out) }
}

unsafe extern "C" fn readwritevalid(
    _: *mut c_void,
    datatype: c_int,
    op: c_int,
    out: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { valid(datatype, op, Form::Fetch, out) }
}

unsafe extern "C" fn compwritevalid(
    _: *mut c_void,
    datatype: c_int,
    op: c_int,
    out: *mut usize,
) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { valid(datatype, op, Form::Compare, out) }
}
