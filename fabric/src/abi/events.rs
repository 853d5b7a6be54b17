//! Completion queues and counters.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use super::objects::{
    DomainObject, Object, Part, PartObject, Wait, answer, answer_int, base, bind_nothing, fid,
    progress, put, table, until, within,
};
use super::*;
use crate::domain::{Awaited, State};
use crate::engine::shared::{self, Counter, Entry, Queue, Shared, Why};

const FI_EAVAIL: i32 = 259;
/// The format of queues whose attributes specify none.
const FORMAT_CONTEXT: c_int = 1;

static QUEUE_OPS: Ops<6> = base(
    close_queue as Table,
    bind_nothing as Table,
    waiting::control as Table,
);
static QUEUE_CALLS: Ops<7> = Ops::new([
    read as Table,
    readfrom as Table,
    readerr as Table,
    sread as Table,
    sreadfrom as Table,
    signal as Table,
    strerror as Table,
]);
static COUNTER_OPS: Ops<6> = base(
    close_counter as Table,
    bind_nothing as Table,
    waiting::control as Table,
);
static COUNTER_CALLS: Ops<7> = Ops::new([
    counter_read as Table,
    counter_readerr as Table,
    counter_add as Table,
    counter_set as Table,
    counter_wait as Table,
    counter_adderr as Table,
    counter_seterr as Table,
]);
pub unsafe extern "C" fn open_queue(
    domain: *mut c_void,
    attr: *mut CqAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        // SAFETY: the program passes a domain, attributes or null, and a valid result pointer.
        let (object, attr) = unsafe {
            put(out, std::ptr::null_mut())?;
            (DomainObject::of(domain, FI_CLASS_DOMAIN)?, attr.as_mut())
        };
        let own = &object.own;
        let (mut format, mut waits_by) = (FORMAT_CONTEXT, 0);
        if let Some(attr) = attr {
            waits_by = waiting::checked(attr.wait_obj)?;
            if attr.format == 0 {
                attr.format = FORMAT_CONTEXT;
            }
            format = attr.format;
        }
        if !(1..5).contains(&format) {
            return Err(libc::ENOSYS);
        }
        let slot = within(&own.domain, |state| {
            state
                .shared
                .queues
                .insert(Queue::default())
                .ok_or(libc::ENOMEM)
        })?;
        let fid = FidSimple {
            fid: fid(FI_CLASS_CQ, context, &QUEUE_OPS),
            ops: table(&QUEUE_CALLS),
        };
        let mut part = Part::new(&own.domain, slot);
        (part.format, part.waits_by) = (format, waits_by);
        // SAFETY: as above.
        unsafe { put(out, Object::give(fid, part)) }
    })
}

unsafe extern "C" fn close_queue(fid: *mut c_void) -> c_int {
    answer_int(|| {
        let remove = |state: &mut State, slot| {
            state.shared.queues.remove(slot);
            state.end_waits(Awaited::Queue(slot));
        };
        // SAFETY: the program closes a queue, once.
        unsafe { PartObject::close(fid, FI_CLASS_CQ, shared::Object::Queue, remove) }
    })
}

/// The result of a read: entries, or `EAVAIL`.
type Found = Result<Vec<(Entry, u64)>, i32>;

fn look(shared: &mut Shared, slot: usize, count: usize, waits: bool) -> Option<Found> {
    let Some(queue) = shared.queues.get_mut(slot) else {
        return Some(Err(libc::EINVAL));
    };
    if !queue.errors.is_empty() {
        return Some(Err(FI_EAVAIL));
    }
    if queue.entries.is_empty() {
        let is_over = waits && std::mem::take(&mut queue.is_signalled);
        return is_over.then_some(Err(libc::EAGAIN));
    }
    let found = queue.entries.drain(..count.min(queue.entries.len()));
    Some(Ok(found.collect()))
}

/// # Safety
/// `fid` is a queue, `out` has room for `count` entries of its format, `sources` is null or has
/// room for `count`.
unsafe fn read_into(
    fid: *mut c_void,
    out: *mut c_void,
    count: usize,
    sources: *mut u64,
    patience: Option<Duration>,
) -> isize {
    answer(|| {
        if count > 0 && out.is_null() {
            return Err(libc::EINVAL);
        }
        // SAFETY: guaranteed by the caller.
        let own = &unsafe { PartObject::of(fid, FI_CLASS_CQ)? }.own;
        let wait = Wait {
            part: own,
            awaits: Awaited::Queue(own.slot),
            // Without room for entries there is nothing to wait for.
            most: patience.filter(|_| count > 0),
        };
        let found = until(wait, |shared| match count {
            // Make progress only, since the read has no room for entries.
            0 => None,
            _ => look(shared, own.slot, count, patience.is_some()),
        })?;
        let found = found.ok_or(libc::EAGAIN)??;
        let bytes = CQ_ENTRY_BYTES[own.format as usize];
        for (n, (entry, source)) in found.iter().enumerate() {
            let entry = CqEntry {
                op_context: entry.context as *mut c_void,
                flags: entry.flags,
                len: entry.len,
                buf: entry.buf as *mut c_void,
                data: entry.data,
                tag: entry.tag,
            };
            // SAFETY: guaranteed by the caller; each format is a prefix of the longest.
            unsafe {
                let from = std::ptr::from_ref(&entry).cast::<u8>();
                let to = out.cast::<u8>().add(n * bytes);
                std::ptr::copy_nonoverlapping(from, to, bytes);
                if !sources.is_null() {
                    *sources.add(n) = *source;
                }
            }
        }
        Ok(found.len() as isize)
    })
}

/// The maximum time that a call waits: practically for ever if `timeout` is negative.
pub fn patience(timeout: c_int) -> Duration {
    let millis = u64::try_from(timeout);
    millis.map_or(
        Duration::from_secs(u64::from(u32::MAX)),
        Duration::from_millis,
    )
}

unsafe extern "C" fn read(fid: *mut c_void, out: *mut c_void, count: usize) -> isize {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { read_into(fid, out, count, std::ptr::null_mut(), None) }
}

unsafe extern "C" fn readfrom(
    fid: *mut c_void,
    out: *mut c_void,
    count: usize,
    sources: *mut u64,
) -> isize {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { read_into(fid, out, count, sources, None) }
}

unsafe extern "C" fn sread(
    fid: *mut c_void,
    out: *mut c_void,
    count: usize,
    _cond: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe {
        read_into(
            fid,
            out,
            count,
            std::ptr::null_mut(),
            Some(patience(timeout)),
        )
    }
}

unsafe extern "C" fn sreadfrom(
    fid: *mut c_void,
    out: *mut c_void,
    count: usize,
    sources: *mut u64,
    _cond: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { read_into(fid, out, count, sources, Some(patience(timeout))) }
}

/// Makes a waiting read return, or else the next one.
unsafe extern "C" fn signal(fid: *mut c_void) -> c_int {
    answer_int(|| {
        // SAFETY: the program passes a queue.
        let own = &unsafe { PartObject::of(fid, FI_CLASS_CQ)? }.own;
        own.within(|state| {
            let queue = state.shared.queues.get_mut(own.slot).ok_or(libc::EINVAL)?;
            queue.is_signalled = true;
            state.called();
            Ok(())
        })
    })
}

unsafe extern "C" fn readerr(fid: *mut c_void, out: *mut CqErrEntry, _flags: u64) -> isize {
    // SAFETY: the program passes a queue and a valid pointer for the result; all versions of the
    // structure have the part that is written.
    answer(|| unsafe {
        let own = &PartObject::of(fid, FI_CLASS_CQ)?.own;
        let out = out.as_mut().ok_or(libc::EINVAL)?;
        let error = own.within(|state| {
            let queue = state.shared.queues.get_mut(own.slot).ok_or(libc::EINVAL)?;
            queue.errors.pop_front().ok_or(libc::EAGAIN)
        });
        let (entry, failure, over) = error?;
        *out = CqErrEntry {
            op_context: entry.context as *mut c_void,
            flags: entry.flags,
            len: entry.len,
            buf: entry.buf as *mut c_void,
            data: entry.data,
            tag: entry.tag,
            olen: over,
            err: failure.errno,
            prov_errno: failure.why as c_int,
            err_data: out.err_data,
            err_data_size: 0,
        };
        Ok(1)
    })
}

pub unsafe extern "C" fn strerror(
    _: *mut c_void,
    number: c_int,
    _: *const c_void,
    out: *mut c_char,
    len: usize,
) -> *const c_char {
    let text = Why::text(number);
    if !out.is_null() && len > 0 {
        // SAFETY: the caller passes a buffer of the given length.
        unsafe { libc::strncpy(out, text.as_ptr(), len - 1) };
        // SAFETY: as above.
        unsafe { *out.add(len - 1) = 0 };
    }
    text.as_ptr()
}

pub unsafe extern "C" fn open_counter(
    domain: *mut c_void,
    attr: *const CntrAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        // SAFETY: the program passes a domain, attributes or null, and a valid result pointer.
        let (object, attr) = unsafe {
            put(out, std::ptr::null_mut())?;
            (DomainObject::of(domain, FI_CLASS_DOMAIN)?, attr.as_ref())
        };
        let own = &object.own;
        let waits_by = waiting::checked(attr.map_or(0, |attr| attr.wait_obj))?;
        let slot = within(&own.domain, |state| {
            state
                .shared
                .counters
                .insert(Counter::default())
                .ok_or(libc::ENOMEM)
        })?;
        let fid = FidSimple {
            fid: fid(FI_CLASS_CNTR, context, &COUNTER_OPS),
            ops: table(&COUNTER_CALLS),
        };
        let mut part = Part::new(&own.domain, slot);
        part.waits_by = waits_by;
        // SAFETY: as above.
        unsafe { put(out, Object::give(fid, part)) }
    })
}

unsafe extern "C" fn close_counter(fid: *mut c_void) -> c_int {
    answer_int(|| {
        let remove = |state: &mut State, slot| {
            state.shared.counters.remove(slot);
            state.end_waits(Awaited::Counter(slot));
        };
        // SAFETY: the program closes a counter, once.
        unsafe { PartObject::close(fid, FI_CLASS_CNTR, shared::Object::Counter, remove) }
    })
}

/// # Safety
/// `fid` is a counter.
unsafe fn change_counter(fid: *mut c_void, change: impl FnOnce(&mut Counter)) -> c_int {
    answer_int(|| {
        // SAFETY: guaranteed by the caller.
        let own = &unsafe { PartObject::of(fid, FI_CLASS_CNTR)? }.own;
        own.within(|state| {
            change(
                state
                    .shared
                    .counters
                    .get_mut(own.slot)
                    .ok_or(libc::EINVAL)?,
            );
            state.called();
            Ok(())
        })
    })
}

/// # Safety
/// `fid` is a counter.
unsafe fn counter_now(fid: *mut c_void) -> Counter {
    let mut now = Counter::default();
    let _ = answer(|| {
        // SAFETY: guaranteed by the caller.
        let own = &unsafe { PartObject::of(fid, FI_CLASS_CNTR)? }.own;
        progress(&own.domain)?;
        own.within(|state| {
            state.leave(Awaited::Counter(own.slot));
            let counter = state.shared.counters.get_mut(own.slot);
            now = counter.ok_or(libc::EINVAL)?.read();
            Ok(0)
        })
    });
    now
}

unsafe extern "C" fn counter_read(fid: *mut c_void) -> u64 {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { counter_now(fid).value }
}

unsafe extern "C" fn counter_readerr(fid: *mut c_void) -> u64 {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { counter_now(fid).errors }
}

unsafe extern "C" fn counter_add(fid: *mut c_void, value: u64) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe {
        change_counter(fid, |counter| {
            counter.value = counter.value.wrapping_add(value)
        })
    }
}

unsafe extern "C" fn counter_set(fid: *mut c_void, value: u64) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { change_counter(fid, |counter| counter.value = value) }
}

unsafe extern "C" fn counter_adderr(fid: *mut c_void, value: u64) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe {
        change_counter(fid, |counter| {
            counter.errors = counter.errors.wrapping_add(value)
        })
    }
}

unsafe extern "C" fn counter_seterr(fid: *mut c_void, value: u64) -> c_int {
    // SAFETY: the caller upholds libfabric's contract.
    unsafe { change_counter(fid, |counter| counter.errors = value) }
}

unsafe extern "C" fn counter_wait(fid: *mut c_void, threshold: u64, timeout: c_int) -> c_int {
    answer_int(|| {
        // SAFETY: the caller upholds libfabric's contract.
        let own = &unsafe { PartObject::of(fid, FI_CLASS_CNTR)? }.own;
        let mut before = None;
        let wait = Wait {
            part: own,
            awaits: Awaited::Counter(own.slot),
            most: Some(patience(timeout)),
        };
        let found = until(wait, |shared| {
            let counter = shared.counters.get_mut(own.slot)?.read();
            let errors = *before.get_or_insert(counter.errors);
            match counter {
                counter if counter.errors != errors => Some(Err(FI_EAVAIL)),
                counter if counter.value >= threshold => Some(Ok(())),
                _ => None,
            }
        })?;
        found.unwrap_or(Err(libc::ETIMEDOUT))
    })
}
