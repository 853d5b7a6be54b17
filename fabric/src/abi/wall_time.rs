//! `MPI_Wtime` in virtual labs.
//!
//! `mpi.sh` preloads this library into the ranks of a virtual lab, so that these functions stand
//! before those of MPI. Elsewhere they have no effect: a provider's symbols are local.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use crate::driver::virtual_clock;

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// MPI's own function of this name.
fn of_mpi(name: &CStr) -> Option<unsafe extern "C" fn() -> f64> {
    // SAFETY: the name is zero-terminated.
    let found: *mut c_void = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    // SAFETY: MPI's functions of these names have no argument and return a double; a null pointer
    // is `None`.
    unsafe { std::mem::transmute(found) }
}

/// The result of MPI's own function, 0 if there is no MPI.
fn ask_mpi(name: &CStr, known: &'static OnceLock<Option<unsafe extern "C" fn() -> f64>>) -> f64 {
    let found = known.get_or_init(|| of_mpi(name));
    // SAFETY: see `of_mpi`; the functions may be called at any time.
    found.map_or(0.0, |own| unsafe { own() })
}

/// The time since the start of the lab, in seconds.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtime() -> f64 {
    static OWN: OnceLock<Option<unsafe extern "C" fn() -> f64>> = OnceLock::new();
    match virtual_clock() {
        Some(now) => now.as_nanos() as f64 / SECOND,
        None => ask_mpi(c"PMPI_Wtime", &OWN),
    }
}

/// The resolution of `MPI_Wtime`, in seconds.
#[unsafe(no_mangle)]
pub extern "C" fn MPI_Wtick() -> f64 {
    static OWN: OnceLock<Option<unsafe extern "C" fn() -> f64>> = OnceLock::new();
    match virtual_clock() {
        Some(_) => 1.0 / SECOND,
        None => ask_mpi(c"PMPI_Wtick", &OWN),
    }
}
