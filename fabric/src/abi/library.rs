//! The libfabric that loaded this provider. Its functions are looked up at run time, because
//! linking an old version of a symbol would select the old layout of `fi_info`.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::{Info, Provider, info};

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

/// Keeps this provider loaded when libfabric closes it at the end of the program: a thread may
/// still run it.
pub fn keep() {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the address is that of a function, and a found library has a name.
    unsafe {
        if libc::dladdr(keep as *const c_void, info.as_mut_ptr()) != 0 {
            libc::dlopen(info.assume_init().dli_fname, flags);
        }
    }
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

/// Copies bytes into memory that libfabric frees. Returns null if none is left.
pub fn copy(from: &[u8]) -> *mut c_void {
    // SAFETY: the new memory is as long as the bytes.
    unsafe {
        let to = libc::malloc(from.len().max(1));
        if !to.is_null() {
            libc::memcpy(to, from.as_ptr().cast(), from.len());
        }
        to
    }
}

/// Writes a warning to libfabric's log.
pub fn log(text: &str) {
    const FI_LOG_WARN: c_int = 0;
    const FI_LOG_CORE: c_int = 0;
    let (Some(found), Ok(text)) = (find(c"fi_log"), CString::new(text)) else {
        return;
    };
    if find(c"fi_log_enabled").is_none_or(|enabled| {
        // SAFETY: the function has this type in all versions.
        let call: extern "C" fn(*const Provider, c_int, c_int) -> c_int =
            unsafe { std::mem::transmute(enabled) };
        call(info::fi_prov_ini(), FI_LOG_WARN, FI_LOG_CORE) == 0
    }) {
        return;
    }
    // SAFETY: the function has this type in all versions.
    let call: Log = unsafe { std::mem::transmute(found) };
    // SAFETY: the format takes one string, and all strings end with a zero byte.
    unsafe {
        call(
            info::fi_prov_ini(),
            FI_LOG_WARN,
            FI_LOG_CORE,
            c"phitwire".as_ptr(),
            0,
            c"%s\n".as_ptr(),
            text.as_ptr(),
        );
    }
}

/// `fi_log`: provider, level, subsystem, function, line, format.
type Log =
    unsafe extern "C" fn(*const Provider, c_int, c_int, *const c_char, c_int, *const c_char, ...);
