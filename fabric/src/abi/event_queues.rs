//! `fi_eq_open`, and the calls on event queues.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use phitwire_client::descriptors::Event;

use super::events::{patience, strerror};
use super::objects::{
    FI_EOTHER, Object, answer, answer_int, base, bind_nothing, errno_of, fid, given, put, table,
};
use super::*;
use crate::event_queue::EventQueue;
use crate::wait::sleep;

static OPS: Ops<6> = base(close as Table, bind_nothing as Table, control as Table);
static CALLS: Ops<5> = Ops::new([
    read as Table,
    readerr as Table,
    write as Table,
    sread as Table,
    strerror as Table,
]);

/// An event queue, and the descriptor that is readable while it has events.
pub struct Own {
    /// `None` once it is closed.
    queue: Mutex<Option<EventQueue>>,
    event: Event,
    waits_by: c_int,
    /// Whether the program may write events.
    is_writable: bool,
    /// Endpoints that are bound to it hold clones.
    pub bound: Arc<()>,
}

pub type EventQueueObject = Object<FidSimple, Own>;

impl Own {
    fn lock(&self) -> Result<MutexGuard<'_, Option<EventQueue>>, i32> {
        self.queue.lock().map_err(|_| FI_EOTHER)
    }

    /// Calls `call` with the queue.
    ///
    /// # Errors
    /// Those of `call`; `EINTR` if another thread has closed the queue.
    fn with<T>(
        &self,
        call: impl FnOnce(&mut EventQueue, &Event) -> Result<T, i32>,
    ) -> Result<T, i32> {
        let mut queue = self.lock()?;
        call(queue.as_mut().ok_or(libc::EINTR)?, &self.event)
    }

    fn write(&self, event: u32, bytes: &[u8]) -> Result<(), i32> {
        self.with(|queue, descriptor| {
            queue.write(event, bytes)?;
            descriptor.wake();
            Ok(())
        })
    }

    fn read(&self, most: usize, peek: bool) -> Result<(u32, Vec<u8>), i32> {
        self.with(|queue, descriptor| {
            let found = queue.read(most, peek)?;
            if queue.is_empty() {
                descriptor.clear();
            }
            Ok(found)
        })
    }

    /// Succeeds if the program may sleep until the descriptor is readable.
    ///
    /// # Errors
    /// `EAGAIN`: there are events.
    pub fn prepare(&self) -> Result<(), i32> {
        self.with(|queue, _| match queue.is_empty() {
            true => Ok(()),
            false => Err(libc::EAGAIN),
        })
    }

    /// Closes the queue, which ends waiting reads.
    ///
    /// # Errors
    /// `EBUSY` if endpoints are bound to it; `EINTR` if another thread has closed it.
    fn close(&self) -> Result<(), i32> {
        let mut queue = self.lock()?;
        if Arc::strong_count(&self.bound) > 1 {
            return Err(libc::EBUSY);
        }
        queue.take().ok_or(libc::EINTR)?;
        self.event.wake();
        Ok(())
    }
}

pub unsafe extern "C" fn open(
    _fabric: *mut c_void,
    attr: *const EqAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        // SAFETY: the program passes attributes or null.
        let attr = unsafe { attr.as_ref() };
        let queue = EventQueue::new(attr.map_or(0, |attr| attr.size));
        let own = Own {
            queue: Mutex::new(Some(queue)),
            event: Event::new().map_err(errno_of)?,
            waits_by: waiting::checked(attr.map_or(0, |attr| attr.wait_obj))?,
            is_writable: attr.is_some_and(|attr| attr.flags & FI_WRITE != 0),
            bound: Arc::default(),
        };
        let fid = FidSimple {
            fid: fid(FI_CLASS_EQ, context, &OPS),
            ops: table(&CALLS),
        };
        // SAFETY: the caller passes a valid pointer for the result, or null.
        unsafe {
            put(out, std::ptr::null_mut())?;
            put(out, Object::give(fid, own))
        }
    })
}

unsafe extern "C" fn close(fid: *mut c_void) -> c_int {
    // SAFETY: the program closes an event queue, once.
    answer_int(|| unsafe {
        EventQueueObject::of(fid, FI_CLASS_EQ)?.own.close()?;
        drop(EventQueueObject::take(fid, FI_CLASS_EQ)?);
        Ok(())
    })
}

unsafe extern "C" fn control(fid: *mut c_void, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: the program passes an event queue, and a valid pointer for the result.
    answer_int(|| unsafe {
        let own = &EventQueueObject::of(fid, FI_CLASS_EQ)?.own;
        let raw = || Ok(own.event.as_fd().as_raw_fd());
        waiting::answer_control(command, arg, own.waits_by, raw)
    })
}

/// # Safety
/// `event` is null or valid for the number, and `out` valid for the bytes.
unsafe fn hand_out(
    (number, bytes): (u32, Vec<u8>),
    event: *mut u32,
    out: *mut c_void,
) -> Result<isize, i32> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        put(event, number)?;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len());
    }
    Ok(bytes.len() as isize)
}

/// The size of a program's buffer; 0 if it passes none.
const fn room(out: *const c_void, len: usize) -> usize {
    match out.is_null() {
        true => 0,
        false => len,
    }
}

unsafe extern "C" fn read(
    fid: *mut c_void,
    event: *mut u32,
    out: *mut c_void,
    len: usize,
    flags: u64,
) -> isize {
    // SAFETY: the caller upholds libfabric's contract, here and below; an event longer than `len`
    // is not copied.
    answer(|| unsafe {
        let own = &EventQueueObject::of(fid, FI_CLASS_EQ)?.own;
        given(event)?;
        hand_out(own.read(room(out, len), flags & FI_PEEK != 0)?, event, out)
    })
}

unsafe extern "C" fn sread(
    fid: *mut c_void,
    event: *mut u32,
    out: *mut c_void,
    len: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    // SAFETY: see `read`.
    answer(|| unsafe {
        let own = &EventQueueObject::of(fid, FI_CLASS_EQ)?.own;
        given(event)?;
        let (begin, most) = (Instant::now(), patience(timeout));
        loop {
            let left = most.saturating_sub(begin.elapsed());
            match own.read(room(out, len), flags & FI_PEEK != 0) {
                Err(libc::EAGAIN) if !left.is_zero() => sleep([own.event.as_fd()], left),
                found => return hand_out(found?, event, out),
            }
        }
    })
}

unsafe extern "C" fn write(
    fid: *mut c_void,
    event: u32,
    from: *const c_void,
    len: usize,
    _flags: u64,
) -> isize {
    // SAFETY: see `read`.
    answer(|| unsafe {
        let own = &EventQueueObject::of(fid, FI_CLASS_EQ)?.own;
        if !own.is_writable {
            return Err(libc::EINVAL);
        }
        let data = match len {
            0 => &[],
            _ if from.is_null() => return Err(libc::EINVAL),
            _ => std::slice::from_raw_parts(from.cast(), len),
        };
        own.write(event, data)?;
        Ok(len as isize)
    })
}

unsafe extern "C" fn readerr(_: *mut c_void, _: *mut c_void, _flags: u64) -> isize {
    -(libc::EAGAIN as isize)
}
