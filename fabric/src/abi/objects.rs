//! Objects that libfabric's programs hold, and what every call does around the engine.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use super::{Fid, Ops, Table, library};
use crate::engine::endpoint::Endpoint;
use crate::engine::shared::Shared;
use crate::engine::{Domain, State};
use crate::place::Place;

pub const FI_EOTHER: i32 = 256;
/// Fruitless calls before one yields the processor, and yields before one sleeps.
const SPINS: u32 = 8;
const YIELDS: u32 = 24;
/// How long a call that should not wait sleeps at most.
const NAP: Duration = Duration::from_millis(1);

/// An object: what libfabric knows of it, and what we do.
#[repr(C)]
pub struct Object<F, T> {
    pub fid: F,
    pub own: T,
}

impl<F, T> Object<F, T> {
    /// Gives it to the program.
    pub fn give(fid: F, own: T) -> *mut c_void {
        Box::into_raw(Box::new(Self { fid, own })).cast()
    }

    /// # Safety
    /// `fid` is such an object, which lives on.
    pub unsafe fn of<'a>(fid: *const c_void) -> &'a Self {
        // SAFETY: the caller's promise.
        unsafe { &*fid.cast() }
    }

    /// Takes it back.
    ///
    /// # Safety
    /// `fid` is such an object, and nobody uses it any more.
    pub unsafe fn take(fid: *mut c_void) -> Box<Self> {
        // SAFETY: it came from `give`.
        unsafe { Box::from_raw(fid.cast()) }
    }
}

/// A domain's own.
pub struct DomainOwn {
    pub domain: Arc<Domain>,
    pub place: Place,
    /// Addresses of registered memory are those of the program; keys are given by the provider.
    pub is_virtual: bool,
    pub gives_keys: bool,
}

/// Something of a domain, by number.
pub struct Part {
    pub domain: Arc<Domain>,
    pub slot: usize,
    /// Of completion queues.
    pub format: c_int,
}

pub type DomainObject = Object<super::FidDomain, DomainOwn>;
pub type PartObject = Object<super::FidSimple, Part>;
pub type EndpointObject = Object<super::FidEp, Part>;

/// What a call answers; no panic gets out.
pub fn answer(call: impl FnOnce() -> Result<isize, i32>) -> isize {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => value,
        Ok(Err(errno)) => -(errno as isize),
        Err(_) => -(FI_EOTHER as isize),
    }
}

/// The same for calls that answer with an `int`.
pub fn answer_int(call: impl FnOnce() -> Result<(), i32>) -> c_int {
    answer(|| call().map(|()| 0)) as c_int
}

/// Does something to what is below the lock.
pub fn within<T>(
    domain: &Domain,
    call: impl FnOnce(&mut State) -> Result<T, i32>,
) -> Result<T, i32> {
    call(&mut *domain.lock().ok_or(FI_EOTHER)?)
}

/// Does something to an end point.
///
/// # Safety
/// `fid` is one.
pub unsafe fn with_endpoint<T>(
    fid: *const c_void,
    call: impl FnOnce(&mut Endpoint, &mut Shared) -> Result<T, i32>,
) -> Result<T, i32> {
    // SAFETY: the caller's promise.
    let object = unsafe { EndpointObject::of(fid) };
    within(&object.own.domain, |state| {
        let endpoint = state
            .endpoints
            .get_mut(object.own.slot)
            .ok_or(libc::EINVAL)?;
        call(endpoint, &mut state.shared)
    })
}

/// Moves what is under way until `look` finds something, or the time is over. Without a time it
/// looks once, but leaves the processor to others if there was nothing often.
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

/// Sleeps until a network interface has something, without the lock.
fn rest(domain: &Domain, mut state: std::sync::MutexGuard<'_, State>, most: Duration) {
    let mut is_quiet = true;
    let mut wakers = Vec::new();
    for endpoint in state.endpoints.iter_mut() {
        is_quiet &= endpoint.arm();
        wakers.extend(endpoint.wakers());
    }
    drop(state);
    if is_quiet {
        library::poll(&wakers, most);
    }
    if let Some(mut state) = domain.lock() {
        for endpoint in state.endpoints.iter_mut() {
            endpoint.disarm();
        }
    }
}

/// Stands where an operation is not there.
pub unsafe extern "C" fn no_such_call() -> isize {
    -(libc::ENOSYS as isize)
}

pub const NONE: Table = no_such_call as *const c_void;

/// Operations of any object, with `close`, `bind` and `control`.
pub const fn base(close: Table, bind: Table, control: Table) -> Ops<6> {
    Ops::new([close, bind, control, NONE, NONE, NONE])
}

/// The beginning of an object.
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
