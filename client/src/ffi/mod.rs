//! The C interface: `include/phitwire.h`, which a test generates from this module.
//!
//! Functions return [`PHW_OK`], [`PHW_NOTHING`] or a negative error. None of them panics into C,
//! and null for a required pointer is [`PHW_ARGUMENT`].
#![expect(unsafe_code, reason = "C passes pointers")]

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use phitwire_framing::door::{Access, AtomicOp, Completion, Status};

use crate::{Error, Nic, Options};

mod collective;
mod types;
pub use collective::*;
pub use types::*;

/// A network interface (NIC) that the program is attached to. One thread at a time may use it.
pub struct PhwNic(Nic);

const fn code(error: Error) -> c_int {
    match error {
        Error::Full => PHW_FULL,
        Error::Entry(_) => PHW_NO_COMMAND,
        Error::OutOfRange(_) => PHW_OUT_OF_RANGE,
        Error::Gone => PHW_GONE,
        Error::Broken(_) => PHW_BROKEN,
        Error::Wait(_) => PHW_WAIT,
    }
}

fn guarded(body: impl FnOnce() -> c_int) -> c_int {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(PHW_PANIC)
}

/// Runs `body` with the NIC behind `nic`.
///
/// # Safety
/// `nic` is null, or a NIC of `phw_attach` that nobody else uses.
unsafe fn with(nic: *mut PhwNic, body: impl FnOnce(&mut Nic) -> Result<c_int, Error>) -> c_int {
    guarded(|| {
        // SAFETY: guaranteed by the caller.
        let Some(nic) = (unsafe { nic.as_mut() }) else {
            return PHW_ARGUMENT;
        };
        body(&mut nic.0).unwrap_or_else(code)
    })
}

/// Runs a command.
///
/// # Safety
/// As for [`with`].
unsafe fn ask(nic: *mut PhwNic, body: impl FnOnce(&mut Nic) -> Result<(), Error>) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| body(nic).map(|()| PHW_OK)) }
}

/// Attaches to the NIC whose door is the socket at `door`, for a program of `job`: member 0 to 254
/// of those there, or PHW_ANY_MEMBER, with `data_bytes` bytes of data memory, rounded up to a
/// multiple of 64 KiB (all of them usable). On failure `why` (which may be null) gets up to
/// `why_bytes` bytes of text, zero-terminated.
///
/// # Safety
/// Each pointer is null or valid: `door` is zero-terminated, `nic` has room for a pointer, `why`
/// has `why_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_attach(
    door: *const c_char,
    job: u64,
    member: u8,
    data_bytes: u64,
    nic: *mut *mut PhwNic,
    why: *mut c_char,
    why_bytes: usize,
) -> c_int {
    guarded(|| {
        if door.is_null() || nic.is_null() {
            return PHW_ARGUMENT;
        }
        // SAFETY: not null, and by the caller's promise a zero-terminated string.
        let door = OsStr::from_bytes(unsafe { CStr::from_ptr(door) }.to_bytes());
        let options = Options {
            job,
            member: (member != PHW_ANY_MEMBER).then_some(member),
            data_bytes,
        };
        match Nic::attach(door, &options) {
            Ok(attached) => {
                let attached = Box::into_raw(Box::new(PhwNic(attached)));
                // SAFETY: not null, and by the caller's promise room for a pointer.
                unsafe { nic.write(attached) };
                PHW_OK
            }
            Err(error) => {
                let text = error.to_string();
                if !why.is_null() && why_bytes > 0 {
                    let bytes = text.len().min(why_bytes - 1);
                    // SAFETY: `why` has `why_bytes` bytes, by the caller's promise.
                    unsafe {
                        why.copy_from_nonoverlapping(text.as_ptr().cast(), bytes);
                        why.add(bytes).write(0);
                    }
                }
                PHW_REFUSED
            }
        }
    })
}

/// Detaches from a NIC: the program's registrations end, and so do its commands in flight.
///
/// # Safety
/// `nic` is null or a NIC of `phw_attach`, and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_leave(nic: *mut PhwNic) {
    guarded(|| {
        if !nic.is_null() {
            // SAFETY: made by `phw_attach`, and by the caller's promise not used again.
            drop(unsafe { Box::from_raw(nic) });
        }
        PHW_OK
    });
}

/// The NIC's processor number.
///
/// # Safety
/// `nic` is null or a NIC of `phw_attach`. The same holds for the other functions with this
/// parameter.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_processor(nic: *mut PhwNic) -> c_int {
    // SAFETY: by the caller's promise, here and below.
    unsafe { with(nic, |nic| Ok(nic.processor().into())) }
}

/// The program's member number in the job on this NIC.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_member(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(nic.member().into())) }
}

/// Longest put or get, in bytes.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_longest_put(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(nic.longest_put() as c_int)) }
}

/// What the NIC supports besides puts and gets: `PHW_HAS_ATOMICS` and so on, or-ed.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_operations(nic: *mut PhwNic) -> c_int {
    let bits = |nic: &mut Nic| {
        let has = nic.operations();
        [
            (has.atomics, PHW_HAS_ATOMICS),
            (has.events, PHW_HAS_EVENTS),
            (has.blocks, PHW_HAS_BLOCKS),
            (has.messages, PHW_HAS_MESSAGES),
            (has.collectives, PHW_HAS_COLLECTIVES),
        ]
        .map(|(has, bit)| c_int::from(has) * bit)
        .iter()
        .sum()
    };
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(bits(nic))) }
}

/// Copies `bytes` bytes of the program's data, from byte `offset`, to `out`.
///
/// # Safety
/// `out` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_read(
    nic: *mut PhwNic,
    offset: u64,
    out: *mut u8,
    bytes: usize,
) -> c_int {
    if out.is_null() {
        return PHW_ARGUMENT;
    }
    // SAFETY: by the caller's promise: `out` has `bytes` bytes, which may be uninitialised; they
    // are only written to.
    unsafe {
        ask(nic, |nic| {
            let out = std::slice::from_raw_parts_mut(out, bytes);
            Ok(nic.read(offset, out)?)
        })
    }
}

/// Copies `bytes` bytes of `data` to byte `offset` of the program's data.
///
/// # Safety
/// `data` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_write(
    nic: *mut PhwNic,
    offset: u64,
    data: *const u8,
    bytes: usize,
) -> c_int {
    if data.is_null() {
        return PHW_ARGUMENT;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        ask(nic, |nic| {
            Ok(nic.write(offset, std::slice::from_raw_parts(data, bytes))?)
        })
    }
}

/// The word of the program's data at byte `offset`, a multiple of eight: for example a flag that
/// others put. Access it only with __atomic functions; null if there is no such word.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_word(nic: *mut PhwNic, offset: u64) -> *mut u64 {
    let mut word = std::ptr::null_mut();
    // SAFETY: guaranteed by the caller.
    unsafe {
        ask(nic, |nic| {
            word = nic.word(offset)?.as_ptr();
            Ok(())
        });
    }
    word
}

/// The virtual time in nanoseconds since the start of the lab; PHW_NOTHING if the lab is not
/// virtual.
///
/// # Safety
/// `ns` has room for a word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_time(nic: *mut PhwNic, ns: *mut u64) -> c_int {
    if ns.is_null() {
        return PHW_ARGUMENT;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        with(nic, |nic| {
            let Some(time) = nic.virtual_time() else {
                return Ok(PHW_NOTHING);
            };
            ns.write(time.as_nanos() as u64);
            Ok(PHW_OK)
        })
    }
}

/// In a virtual lab, waits until something arrives, a put into the program's memory included, or
/// for `most_ns` nanoseconds of virtual time: for programs that poll a word. Otherwise returns at
/// once.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_pause(nic: *mut PhwNic, most_ns: u64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.pause(Duration::from_nanos(most_ns))) }
}

/// In a virtual lab, waits for `ns` nanoseconds of virtual time. Otherwise returns at once.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_sleep(nic: *mut PhwNic, ns: u64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.sleep_virtually(Duration::from_nanos(ns))) }
}

/// Writes 1 to 64 bytes to `to`. With `event`, the target program gets PHW_KIND_LANDED.
///
/// # Safety
/// `data` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_put(
    nic: *mut PhwNic,
    name: u64,
    to: PhwRemote,
    data: *const u8,
    bytes: usize,
    event: bool,
) -> c_int {
    if data.is_null() {
        return PHW_ARGUMENT;
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        ask(nic, |nic| {
            let data = std::slice::from_raw_parts(data, bytes);
            nic.put(name, to.into(), data, event)
        })
    }
}

/// Reads up to 64 remote bytes into the program's data.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_get(
    nic: *mut PhwNic,
    name: u64,
    from: PhwRemote,
    into: PhwLocal,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.get(name, from.into(), into.into())) }
}

/// Changes a 64-bit word at `at`, by one of PhwAtomic; with `fetch`, the completion returns its old
/// value.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_atomic(
    nic: *mut PhwNic,
    name: u64,
    at: PhwRemote,
    op: u8,
    a: u64,
    b: u64,
    fetch: bool,
) -> c_int {
    let Some(&op) = AtomicOp::ALL.get(usize::from(op)) else {
        return PHW_ARGUMENT;
    };
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.atomic(name, at.into(), op, [a, b], fetch)) }
}

/// Writes data of the program to `to`. Unless `event` is null, the target program gets the word it
/// points to (PHW_KIND_TOLD) when all bytes are in its memory.
///
/// # Safety
/// `event` is null or points to a word.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_block_put(
    nic: *mut PhwNic,
    name: u64,
    to: PhwRemote,
    from: PhwLocal,
    event: *const u64,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let event = event.as_ref().copied();
        ask(nic, |nic| {
            nic.block_put(name, to.into(), from.into(), event)
        })
    }
}

/// Reads remote bytes into the program's data.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_block_get(
    nic: *mut PhwNic,
    name: u64,
    from: PhwRemote,
    into: PhwLocal,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.block_get(name, from.into(), into.into())) }
}

/// Sends data of the program to a receive of another program of the job.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_send(
    nic: *mut PhwNic,
    name: u64,
    processor: u16,
    member: u8,
    from: PhwLocal,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.send(name, processor, member, from.into())) }
}

/// Posts a buffer for a message (PHW_KIND_RECEIVED).
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_receive(nic: *mut PhwNic, name: u64, into: PhwLocal) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.receive(name, into.into())) }
}

/// Cancels the receive called `name`; the completion's word is 1 if it had no message yet, else 0.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_take_back(nic: *mut PhwNic, name: u64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.take_back(name)) }
}

/// Lets the programs of the job access a part of the data that begins at a multiple of 64, with
/// or-ed rights (PHW_MAY_PUT ...); the completion's word is its handle.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_register(
    nic: *mut PhwNic,
    name: u64,
    part: PhwLocal,
    rights: u8,
) -> c_int {
    if rights > PHW_MAY_PUT | PHW_MAY_GET | PHW_MAY_ATOMIC {
        return PHW_ARGUMENT;
    }
    let access = Access {
        put: rights & PHW_MAY_PUT != 0,
        get: rights & PHW_MAY_GET != 0,
        atomic: rights & PHW_MAY_ATOMIC != 0,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.register(name, part.into(), access)) }
}

/// Ends a registration.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_deregister(nic: *mut PhwNic, name: u64, handle: u16) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.deregister(name, handle)) }
}

/// Makes posted commands visible to the NIC; phw_wait and an empty phw_poll do too.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_flush(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        ask(nic, |nic| {
            nic.flush();
            Ok(())
        })
    }
}

/// Writes the result of a poll or wait to `out`.
///
/// # Safety
/// `out` has room for a completion.
unsafe fn hand_out(found: Option<Completion>, out: *mut PhwCompletion) -> c_int {
    let Some(found) = found else {
        return PHW_NOTHING;
    };
    // SAFETY: guaranteed by the caller.
    unsafe { out.write(found.into()) };
    PHW_OK
}

/// The oldest completion; PHW_NOTHING if there is none.
///
/// # Safety
/// `out` is null or has room for a completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_poll(nic: *mut PhwNic, out: *mut PhwCompletion) -> c_int {
    if out.is_null() {
        return PHW_ARGUMENT;
    }
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(hand_out(nic.poll()?, out))) }
}

/// The oldest completion; sleeps until there is one. PHW_NOTHING after `timeout_ms` milliseconds
/// (negative: never), and when there is room again for a command refused with PHW_FULL.
///
/// # Safety
/// `out` is null or has room for a completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_wait(
    nic: *mut PhwNic,
    timeout_ms: i64,
    out: *mut PhwCompletion,
) -> c_int {
    if out.is_null() {
        return PHW_ARGUMENT;
    }
    let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(hand_out(nic.wait(timeout)?, out))) }
}

/// For programs with their own event loop: requests a wake. 1: the program may sleep until phw_fd
/// or phw_socket is readable; 0: there is something to poll. In both cases call phw_disarm
/// afterwards.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_arm(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(nic.arm().into())) }
}

/// Ends the request of phw_arm: the program is awake.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_disarm(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe {
        ask(nic, |nic| {
            nic.disarm();
            Ok(())
        })
    }
}

/// A descriptor that is readable when the NIC has woken the program.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_fd(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(nic.fd().as_raw_fd())) }
}

/// A descriptor that is readable when the NIC is gone.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_socket(nic: *mut PhwNic) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { with(nic, |nic| Ok(nic.socket().as_raw_fd())) }
}

/// The name of a function's return value, for messages: "ok" for PHW_OK, "out_of_range" for
/// PHW_OUT_OF_RANGE; "unknown" for other numbers. Never null; do not free it.
#[unsafe(no_mangle)]
pub extern "C" fn phw_error_name(code: c_int) -> *const c_char {
    let name = match code {
        PHW_OK => c"ok",
        PHW_NOTHING => c"nothing",
        PHW_FULL => c"full",
        PHW_NO_COMMAND => c"no_command",
        PHW_OUT_OF_RANGE => c"out_of_range",
        PHW_GONE => c"gone",
        PHW_BROKEN => c"broken",
        PHW_WAIT => c"wait",
        PHW_REFUSED => c"refused",
        PHW_ARGUMENT => c"argument",
        PHW_PANIC => c"panic",
        _ => c"unknown",
    };
    name.as_ptr()
}

/// Copies the name of one of PhwStatus, zero-terminated, up to `bytes` bytes.
///
/// # Safety
/// `out` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn phw_status_name(status: u8, out: *mut c_char, bytes: usize) -> c_int {
    let Some(status) = Status::ALL.get(usize::from(status)) else {
        return PHW_ARGUMENT;
    };
    if out.is_null() || bytes == 0 {
        return PHW_ARGUMENT;
    }
    let name = status.name();
    let length = name.len().min(bytes - 1);
    // SAFETY: `out` has room for them, by the caller's promise.
    unsafe {
        out.copy_from_nonoverlapping(name.as_ptr().cast(), length);
        out.add(length).write(0);
    }
    PHW_OK
}
