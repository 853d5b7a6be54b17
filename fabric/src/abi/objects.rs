//! Objects that programs hold, and the common steps of every call: locking, progress, conversion of
//! errors.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{Fid, Ops, Table};
use crate::driver::{self, Domain, State};
use crate::engine::endpoint::Endpoint;
use crate::engine::shared::Shared;
use crate::place::Place;

pub const FI_EOTHER: i32 = 256;
/// Calls without progress before one yields the core, and yields before one sleeps.
const SPINS: u32 = 8;
const YIELDS: u32 = 24;
/// Longest sleep of a call that should not block.
const NAP: Duration = Duration::from_millis(1);

/// An object: libfabric's part, and ours.
#[repr(C)]
pub struct Object<F, T> {
    pub fid: F,
    pub own: T,
}

impl<F, T> Object<F, T> {
    /// Hands it to the program.
    pub fn give(fid: F, own: T) -> *mut c_void {
        Box::into_raw(Box::new(Self { fid, own })).cast()
    }

    /// # Safety
    /// `fid` is such an object, and outlives the reference.
    pub unsafe fn of<'a>(fid: *const c_void) -> &'a Self {
        // SAFETY: guaranteed by the caller.
        unsafe { &*fid.cast() }
    }

    /// Takes it back from the program.
    ///
    /// # Safety
    /// `fid` is such an object, and no longer used.
    pub unsafe fn take(fid: *mut c_void) -> Box<Self> {
        // SAFETY: the caller guarantees that it came from `give` and is not used again.
        unsafe { Box::from_raw(fid.cast()) }
    }
}

/// Our part of a domain.
pub struct DomainOwn {
    pub domain: Arc<Domain>,
    pub place: Place,
    /// Addresses in registered memory are the program's virtual ones; the provider assigns keys.
    pub is_virtual: bool,
    pub gives_keys: bool,
}

/// An object of a domain, by slot.
pub struct Part {
    pub domain: Arc<Domain>,
    pub slot: usize,
    /// Format of a completion queue.
    pub format: c_int,
}

pub type DomainObject = Object<super::FidDomain, DomainOwn>;
pub type PartObject = Object<super::FidSimple, Part>;
pub type EndpointObject = Object<super::FidEp, Part>;

/// Converts the result of a call to libfabric's; catches panics.
pub fn answer(call: impl FnOnce() -> Result<isize, i32>) -> isize {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => value,
        Ok(Err(errno)) => -(errno as isize),
        Err(_) => -(FI_EOTHER as isize),
    }
}

/// Like [`answer`], for calls that return an `int`.
pub fn answer_int(call: impl FnOnce() -> Result<(), i32>) -> c_int {
    answer(|| call().map(|()| 0)) as c_int
}

/// Calls `call` with the state behind the lock.
pub fn within<T>(
    domain: &Domain,
    call: impl FnOnce(&mut State) -> Result<T, i32>,
) -> Result<T, i32> {
    call(&mut *domain.lock().ok_or(FI_EOTHER)?)
}

/// Calls `call` with an endpoint.
///
/// # Safety
/// `fid` is an endpoint.
pub unsafe fn with_endpoint<T>(
    fid: *const c_void,
    call: impl FnOnce(&mut Endpoint, &mut Shared) -> Result<T, i32>,
) -> Result<T, i32> {
    // SAFETY: guaranteed by the caller.
    let object = unsafe { EndpointObject::of(fid) };
    within(&object.own.domain, |state| {
        let driver = state.endpoints.get_mut(object.own.slot);
        let driver = driver.ok_or(libc::EINVAL)?;
        let called = call(&mut driver.endpoint, &mut state.shared);
        driver.issue(&mut state.shared);
        called
    })
}

/// Makes progress until `look` finds something or `patience` ends. Without patience it looks once,
/// but yields the core if nothing was found many times in a row.
pub fn until<T>(
    domain: &Domain,
    patience: Option<Duration>,
    mut look: impl FnMut(&mut Shared) -> Option<T>,
) -> Result<Option<T>, i32> {
    let begin = std::time::Instant::now();
    loop {
        let mut state = domain.lock().ok_or(FI_EOTHER)?;
        if let Some(found) = look(&mut state.shared) {
            return Ok(Some(found));
        }
        state.progress();
        if let Some(found) = look(&mut state.shared) {
            return Ok(Some(found));
        }
        let idle = state.idle;
        if idle > SPINS + YIELDS {
            rest(domain, state, NAP);
        } else if idle > SPINS {
            drop(state);
            std::thread::yield_now();
        }
        match patience {
            Some(patience) if begin.elapsed() < patience => {}
            _ => return Ok(None),
        }
    }
}

/// Sleeps without the lock until a NIC has work for the program.
fn rest(domain: &Domain, mut state: std::sync::MutexGuard<'_, State>, most: Duration) {
    let mut is_quiet = true;
    let mut wakers = Vec::new();
    for driver in state.endpoints.iter_mut() {
        is_quiet &= driver.arm();
        wakers.push(driver.wakers());
    }
    drop(state);
    if is_quiet {
        driver::sleep(&wakers, most);
    }
    if let Some(mut state) = domain.lock() {
        for driver in state.endpoints.iter_mut() {
            driver.disarm();
        }
    }
}

/// Stands in for operations that are not implemented.
pub unsafe extern "C" fn no_such_call() -> isize {
    -(libc::ENOSYS as isize)
}

pub const NONE: Table = no_such_call as *const c_void;

/// The operations of every object: `close`, `bind` and `control`.
pub const fn base(close: Table, bind: Table, control: Table) -> Ops<6> {
    Ops::new([close, bind, control, NONE, NONE, NONE])
}

/// The header of an object.
pub const fn fid(fclass: usize, context: *mut c_void, ops: &'static Ops<6>) -> Fid {
    Fid {
        fclass,
        context,
        ops: std::ptr::from_ref(ops).cast(),
    }
}

pub const fn table<const N: usize>(ops: &'static Ops<N>) -> Table {
    std::ptr::from_ref(ops).cast()
}

pub unsafe extern "C" fn bind_nothing(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    0
}
