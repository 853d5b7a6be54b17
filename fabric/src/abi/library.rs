//! The libfabric that has loaded this provider. Nothing is linked: a linked old version of a symbol
//! would mean the old layout of `fi_info`.

use std::ffi::{CStr, c_char, c_void};
use std::os::fd::RawFd;
use std::time::Duration;

use super::Info;

fn find(name: &CStr) -> Option<*mut c_void> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the names end with a zero byte; what is loaded already is only looked up.
    let found = unsafe {
        let library = libc::dlopen(c"libfabric.so.1".as_ptr(), flags);
        match library.is_null() {
            true => libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()),
            false => libc::dlsym(library, name.as_ptr()),
        }
    };
    (!found.is_null()).then_some(found)
}

/// Its version.
pub fn version() -> Option<u32> {
    let found = find(c"fi_version")?;
    // SAFETY: that is its type in all versions.
    let call: extern "C" fn() -> u32 = unsafe { std::mem::transmute(found) };
    Some(call())
}

/// An `fi_info` of its own layout, with all attributes, all zero.
pub fn new_info() -> Option<&'static mut Info> {
    let found = find(c"fi_dupinfo")?;
    // SAFETY: that is its type in all versions.
    let call: extern "C" fn(*const Info) -> *mut Info = unsafe { std::mem::transmute(found) };
    // SAFETY: it is null, or a new one that nobody else has.
    unsafe { call(std::ptr::null()).as_mut() }
}

/// A copy of a text that libfabric frees.
pub fn text(text: &CStr) -> *mut c_char {
    // SAFETY: it ends with a zero byte.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// A copy of bytes that libfabric frees.
///
/// # Safety
/// `from` points to `len` bytes.
pub unsafe fn copy(from: *const c_void, len: usize) -> *mut c_void {
    // SAFETY: the caller's promise; the new memory is as long.
    unsafe {
        let to = libc::malloc(len.max(1));
        if !to.is_null() {
            libc::memcpy(to, from, len);
        }
        to
    }
}

/// Sleeps until one of the descriptors is readable, at most for that long.
pub fn poll(descriptors: &[RawFd], most: Duration) {
    let events = |&fd: &RawFd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut all: Vec<_> = descriptors.iter().map(events).collect();
    let most = libc::timespec {
        tv_sec: most.as_secs().cast_signed(),
        tv_nsec: most.subsec_nanos().into(),
    };
    // SAFETY: the array is as long as it says.
    unsafe { libc::ppoll(all.as_mut_ptr(), all.len() as _, &most, std::ptr::null()) };
}
