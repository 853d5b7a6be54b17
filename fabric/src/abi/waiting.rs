//! Wait objects: `fi_trywait`, and their descriptors.

use std::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd};

use super::event_queues::EventQueueObject;
use super::objects::{Part, PartObject, answer_int, within};
use super::refusals::refuse;
use super::*;
use crate::domain::Awaited;

/// The kind of wait object that a program requests.
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
/// `arg` is valid for the command's result.
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
    unsafe { *arg.cast::<c_int>() = result };
    Ok(())
}

/// `fi_control` of completion queues and counters.
pub unsafe extern "C" fn control(fid: *mut c_void, command: c_int, arg: *mut c_void) -> c_int {
    // SAFETY: the program passes such an object, and a valid pointer for the result.
    answer_int(|| unsafe {
        let own = &PartObject::of(fid).own;
        answer_control(command, arg, own.waits_by, || {
            Ok(own.wait_object()?.as_fd().as_raw_fd())
        })
    })
}

/// Prepares the wait object of a part for sleep.
fn prepare(part: &Part, awaits: Awaited) -> Result<(), i32> {
    let object = part.wait_object()?;
    within(&part.domain, |state| match state.prepare(awaits, object) {
        true => Ok(()),
        false => Err(libc::EAGAIN),
    })
}

pub unsafe extern "C" fn trywait(_fabric: *mut c_void, fids: *mut *mut Fid, count: c_int) -> c_int {
    // SAFETY: the program passes `count` objects.
    answer_int(|| unsafe {
        for n in 0..usize::try_from(count).map_err(|_| libc::EINVAL)? {
            let fid = *fids.add(n);
            match (*fid).fclass {
                class @ (FI_CLASS_CQ | FI_CLASS_CNTR) => {
                    let part = &PartObject::of(fid.cast()).own;
                    let awaits = match class {
                        FI_CLASS_CQ => Awaited::Queue(part.slot),
                        _ => Awaited::Counter(part.slot),
                    };
                    prepare(part, awaits)?;
                }
                FI_CLASS_EQ => EventQueueObject::of(fid.cast()).own.prepare()?,
                _ => return Err(libc::EINVAL),
            }
        }
        Ok(())
    })
}
