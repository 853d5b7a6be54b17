//! The libfabric that loaded this provider. Its functions are looked up at run time, because
//! linking an old version of a symbol would select the old layout of `fi_info`.

use std::ffi::{CStr, c_char, c_void};

use super::Info;

fn find(name: &CStr) -> Option<*mut c_void> {
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the names end with a zero byte; only libraries that are loaded already are looked up.
    let found = unsafe {
        let library = libc::dlopen(c"libfabric.so.1".as_ptr(), flags);
        match library.is_null() {
            true => libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()),
            false => libc::dlsym(library, name.as_ptr()),
        }
    };
    (!found.is_null()).then_some(found)
}

/// Version of the loaded libfabric.
pub fn version() -> Option<u32> {
    let found = find(c"fi_version")?;
    // SAFETY: the function has this type in all versions.
    let call: extern "C" fn() -> u32 = unsafe { std::mem::transmute(found) };
    Some(call())
}

/// An `fi_info` in libfabric's own layout, with all attributes, zeroed.
pub fn new_info() -> Option<&'static mut Info> {
    let found = find(c"fi_dupinfo")?;
    // SAFETY: the function has this type in all versions.
    let call: extern "C" fn(*const Info) -> *mut Info = unsafe { std::mem::transmute(found) };
    // SAFETY: null, or a new one that nothing else refers to.
    unsafe { call(std::ptr::null()).as_mut() }
}

/// A copy of a string, for libfabric to free.
pub fn text(text: &CStr) -> *mut c_char {
    // SAFETY: the string ends with a zero byte.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// A copy of bytes, for libfabric to free.
///
/// # Safety
/// `from` points to `len` bytes.
pub unsafe fn copy(from: *const c_void, len: usize) -> *mut c_void {
    // SAFETY: guaranteed by the caller; the new memory is as long.
    unsafe {
        let to = libc::malloc(len.max(1));
        if !to.is_null() {
            libc::memcpy(to, from, len);
        }
        to
    }
}
