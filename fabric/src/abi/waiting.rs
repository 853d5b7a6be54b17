//! Wait objects: `fi_trywait`, and their descriptors.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use super::event_queues::EventQueueObject;
use super::objects::{Part, PartObject, answer_int, given, put};
use super::refusals::refuse;
use super::*;
use crate::domain::Awaited;

/// Checks the kind of wait object that a program requests.
///
/// # Errors
/// `ENOSYS` for kinds that are not supported.
pub fn checked(waits_by: c_int) -> Result<c_int, i32> {
    let kinds = [FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_FD, FI_WAIT_YIELD];
    match kinds.contains(&waits_by) {
        true => Ok(waits_by),
        false => Err(refuse("wait objects other than descriptors", libc::ENOSYS)),
    }
}

/// Answers `FI_GETWAITOBJ` and `FI_GETWAIT`.
///
/// # Safety
/// `arg` is null or valid for the command's result.
pub unsafe fn answer_control(
    command: c_int,
    arg: *mut c_void,
    waits_by: c_int,
    raw: impl FnOnce() -> Result<c_int, i32>,
) -> Result<(), i32> {
    let result = match command {
        FI_GETWAITOBJ => waits_by,
        FI_GETWAIT if waits_by == FI_WAIT_FD => raw()?,
        _ => return Err(libc::ENOSYS),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { put(arg.cast::<c_int>(), result) }
}

/// Returns a completion queue or counter, and what its waiters await.
///
/// # Safety
/// As for [`Object::of`].
unsafe fn part_of(fid: *const c_void) -> Result<(Arc<PartObject>, AwaitedIn), i32> {
    // SAFETY: guaranteed by the caller; every object begins with its `Fid`.
    unsafe {
        let class = given(fid.cast::<Fid>())?.fclass;
        let awaited: AwaitedIn = match class {
            FI_CLASS_CQ => Awaited::Queue,
            FI_CLASS_CNTR => Awaited::Counter,
            _ => return Err(libc::EINVAL),
        };
        Ok((PartObject::of(fid, class)?, awaited))
    }
}

/// Maps a slot to what its waiters await.
type AwaitedIn = fn(usize) -> Awaited;

/// `fi_control` of completion queues and counters.
pub unsafe extern "C" fn control(fid: *mut c_void, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: the program passes such an object, and a valid pointer for the result.
    answer_int(|| unsafe {
        let (object, _) = part_of(fid)?;
        let own = &object.own;
        answer_control(command, arg, own.waits_by, || {
            Ok(own.wait_object()?.as_fd().as_raw_fd())
        })
    })
}

/// Prepares a part's wait object for sleep. A signal prevents one sleep, just as it ends one
/// waiting read.
fn prepare(part: &Part, awaits: Awaited) -> Result<(), i32> {
    let object = part.wait_object()?;
    part.within(|state| {
        let is_signalled = state.take_signal(awaits);
        match !is_signalled && state.prepare(awaits, object) {
            true => Ok(()),
            false => Err(libc::EAGAIN),
        }
    })
}

pub unsafe extern "C" fn trywait(_fabric: *mut c_void, fids: *mut *mut Fid, count: c_int) -> c_int {
    // SAFETY: the program passes `count` objects.
    answer_int(|| unsafe {
        let count = usize::try_from(count).map_err(|_| libc::EINVAL)?;
        if fids.is_null() && count > 0 {
            return Err(libc::EINVAL);
        }
        for n in 0..count {
            let fid: *const c_void = (*fids.add(n)).cast();
            if let Ok(queue) = EventQueueObject::of(fid, FI_CLASS_EQ) {
                queue.own.prepare()?;
                continue;
            }
            let (object, awaited) = part_of(fid)?;
            prepare(&object.own, awaited(object.own.slot))?;
        }
        Ok(())
    })
}
