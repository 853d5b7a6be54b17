//! Objects that programs hold, and the common steps of every call: locking, progress, and the
//! conversion of errors.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use phitwire_client::pause_after;

use super::{FI_CLASS_CNTR, FI_CLASS_EP, Fid, Ops, Table};
use crate::attach_target::AttachTarget;
use crate::domain::{Awaited, Domain, State};
use crate::driver::Driver;
use crate::engine::endpoint::Endpoint;
use crate::engine::shared::{self, Shared};
use crate::progress::Progress;
use crate::wait::WaitObject;

pub const FI_EOTHER: i32 = 256;
/// Idle calls in a row before calls yield the core, and further ones before calls sleep.
const SPINS: u32 = 8;
const YIELDS: u32 = 24;
/// Longest sleep of a call that should not block.
const NAP: Duration = Duration::from_millis(1);

/// An object: libfabric's part, and ours. Calls hold a reference to it, as the program does: if one
/// thread closes it while another one waits on it, it lives until that call returns.
#[repr(C)]
pub struct Object<F, T> {
    pub fid: F,
    pub own: T,
}

impl<F, T> Object<F, T> {
    /// Passes the object's first reference to the program.
    pub fn give(fid: F, own: T) -> *mut c_void {
        Arc::into_raw(Arc::new(Self { fid, own })).cast_mut().cast()
    }

    /// Returns the object that a program passes to a call.
    ///
    /// # Errors
    /// `EINVAL` for null, and for an object of another class or of another provider.
    ///
    /// # Safety
    /// `fid` is null or an open object.
    pub unsafe fn of(fid: *const c_void, class: usize) -> Result<Arc<Self>, i32> {
        // SAFETY: guaranteed by the caller.
        unsafe { check(fid, class)? };
        let object = fid.cast::<Self>();
        // SAFETY: this provider's objects of the class come from `give`, and the program holds a
        // reference.
        unsafe {
            Arc::increment_strong_count(object);
            Ok(Arc::from_raw(object))
        }
    }

    /// Takes the program's reference back.
    ///
    /// # Errors
    /// As for [`Self::of`].
    ///
    /// # Safety
    /// As for [`Self::of`], and no call on the object begins after this one.
    pub unsafe fn take(fid: *const c_void, class: usize) -> Result<Arc<Self>, i32> {
        // SAFETY: guaranteed by the caller; the program's reference came from `give`.
        unsafe {
            check(fid, class)?;
            Ok(Arc::from_raw(fid.cast()))
        }
    }
}

/// The table of operations of this provider's objects, by class. Another provider's objects have a
/// different table, and only their `Fid` may be read.
static TABLES: [AtomicPtr<c_void>; FI_CLASS_CNTR + 1] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; FI_CLASS_CNTR + 1];

/// # Safety
/// `fid` is null or an open object.
unsafe fn check(fid: *const c_void, class: usize) -> Result<(), i32> {
    // SAFETY: guaranteed by the caller; every object begins with its `Fid`.
    let fid = unsafe { fid.cast::<Fid>().as_ref() };
    let table = TABLES[class].load(Ordering::Relaxed);
    match fid {
        Some(fid) if fid.fclass == class && !table.is_null() && fid.ops == table.cast_const() => {
            Ok(())
        }
        _ => Err(libc::EINVAL),
    }
}

/// The argument behind a pointer of the program.
///
/// # Errors
/// `EINVAL` for null.
///
/// # Safety
/// `at` is null, or valid while the reference is used.
pub unsafe fn given<'a, T>(at: *const T) -> Result<&'a T, i32> {
    // SAFETY: guaranteed by the caller.
    unsafe { at.as_ref() }.ok_or(libc::EINVAL)
}

/// Writes a result for the program.
///
/// # Errors
/// `EINVAL` for null.
///
/// # Safety
/// `out` is null or valid for writing.
pub unsafe fn put<T>(out: *mut T, value: T) -> Result<(), i32> {
    if out.is_null() {
        return Err(libc::EINVAL);
    }
    // SAFETY: guaranteed by the caller.
    unsafe { out.write(value) };
    Ok(())
}

/// Returns the size of a result's buffer, and sets the size of the result, both in bytes.
///
/// # Errors
/// `EINVAL` for null.
///
/// # Safety
/// `len` is null or valid for reading and writing.
pub unsafe fn room_of(len: *mut usize, bytes: usize) -> Result<usize, i32> {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let room = *given(len)?;
        put(len, bytes)?;
        Ok(room)
    }
}

/// Our part of a domain.
pub struct DomainOwn {
    pub domain: Arc<Domain>,
    pub target: AttachTarget,
    /// Addresses in registered memory are the program's virtual ones; the provider assigns keys.
    pub is_virtual: bool,
    pub gives_keys: bool,
    /// The thread of automatic progress, if the program requests it.
    #[expect(dead_code, reason = "dropping it ends the thread")]
    pub progress: Option<Progress>,
}

/// An endpoint, queue, counter or address vector of a domain, identified by its slot.
pub struct Part {
    pub domain: Arc<Domain>,
    pub slot: usize,
    /// Format of a completion queue.
    pub format: c_int,
    /// Kind of the wait object of a completion queue or a counter.
    pub waits_by: c_int,
    /// The wait object, created when it is first needed.
    object: OnceLock<Arc<WaitObject>>,
    /// For an endpoint: keeps its event queue open.
    pub events: OnceLock<Arc<()>>,
    /// Set under the domain's lock.
    is_closed: AtomicBool,
}

impl Part {
    pub fn new(domain: &Arc<Domain>, slot: usize) -> Self {
        Self {
            domain: domain.clone(),
            slot,
            format: 0,
            waits_by: 0,
            object: OnceLock::new(),
            events: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Locks the domain's state for a call on this part.
    ///
    /// # Errors
    /// `EINTR` if another thread has closed the part; its slot may then belong to another one.
    pub fn lock(&self) -> Result<MutexGuard<'_, State>, i32> {
        let state = self.domain.lock().ok_or(FI_EOTHER)?;
        match self.is_closed.load(Ordering::Relaxed) {
            true => Err(libc::EINTR),
            false => Ok(state),
        }
    }

    /// Calls `call` with the state, as [`Self::lock`] does.
    pub fn within<T>(&self, call: impl FnOnce(&mut State) -> Result<T, i32>) -> Result<T, i32> {
        call(&mut *self.lock()?)
    }

    /// Closes the part: `call` removes it from the state.
    pub fn close(&self, call: impl FnOnce(&mut State)) -> Result<(), i32> {
        self.close_unbound(None, call)
    }

    /// Closes the part, unless endpoints or memory are bound to it as an `object`.
    ///
    /// # Errors
    /// `EBUSY`, and those of [`Self::lock`].
    fn close_unbound(
        &self,
        object: Option<shared::Object>,
        call: impl FnOnce(&mut State),
    ) -> Result<(), i32> {
        let mut state = self.lock()?;
        if object.is_some_and(|object| state.is_bound(object)) {
            return Err(libc::EBUSY);
        }
        self.is_closed.store(true, Ordering::Relaxed);
        call(&mut state);
        Ok(())
    }

    /// Returns the wait object, and creates it if there is none yet.
    ///
    /// # Errors
    /// The system's error, if no descriptor is free.
    pub fn wait_object(&self) -> Result<&Arc<WaitObject>, i32> {
        if self.object.get().is_none() {
            let object = Arc::new(self.domain.wait_object().map_err(errno_of)?);
            // Another thread may have been faster.
            let _ = self.object.set(object);
        }
        self.object.get().ok_or(FI_EOTHER)
    }
}

/// The part that a call waits on, what it waits for, and how long.
#[derive(Clone, Copy)]
pub struct Wait<'a> {
    pub part: &'a Part,
    pub awaits: Awaited,
    /// `None`: the call does not wait.
    pub most: Option<Duration>,
}

pub type DomainObject = Object<super::FidDomain, DomainOwn>;
pub type PartObject = Object<super::FidSimple, Part>;
impl PartObject {
    /// Closes a queue, counter or vector: `call` removes the slot from the state.
    ///
    /// # Errors
    /// `EBUSY` if endpoints or memory are bound to it: it stays open.
    ///
    /// # Safety
    /// As for [`Object::take`].
    pub unsafe fn close(
        fid: *const c_void,
        class: usize,
        object: fn(usize) -> shared::Object,
        call: impl FnOnce(&mut State, usize),
    ) -> Result<(), i32> {
        // SAFETY: guaranteed by the caller.
        let part = &unsafe { Self::of(fid, class)? }.own;
        let slot = part.slot;
        part.close_unbound(Some(object(slot)), |state| call(state, slot))?;
        // SAFETY: guaranteed by the caller; no other call has closed it.
        drop(unsafe { Self::take(fid, class)? });
        Ok(())
    }
}

pub type EndpointObject = Object<super::FidEp, Part>;

/// Converts the result of a call to libfabric's; catches panics.
pub fn answer(call: impl FnOnce() -> Result<isize, i32>) -> isize {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => value,
        Ok(Err(errno)) => -(errno as isize),
        Err(_) => -(FI_EOTHER as isize),
    }
}

/// The error number of a failed system call.
pub fn errno_of(error: std::io::Error) -> i32 {
    error.raw_os_error().unwrap_or(FI_EOTHER)
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
/// As for [`Object::of`].
pub unsafe fn with_endpoint<T>(
    fid: *const c_void,
    call: impl FnOnce(&mut Endpoint, &mut Shared) -> Result<T, i32>,
) -> Result<T, i32> {
    // SAFETY: guaranteed by the caller.
    unsafe { with_driver(fid, |driver, shared| call(&mut driver.endpoint, shared)) }
}

/// Calls `call` with an endpoint and its NIC.
///
/// # Safety
/// As for [`Object::of`].
pub unsafe fn with_driver<T>(
    fid: *const c_void,
    call: impl FnOnce(&mut Driver, &mut Shared) -> Result<T, i32>,
) -> Result<T, i32> {
    // SAFETY: guaranteed by the caller.
    let object = unsafe { EndpointObject::of(fid, FI_CLASS_EP)? };
    object.own.within(|state| {
        let (driver, shared) = state.endpoint(object.own.slot).ok_or(libc::EINVAL)?;
        let called = call(driver, shared);
        driver.issue(shared);
        state.called();
        called
    })
}

/// Makes progress; yields the core or naps if many calls in a row have found nothing to do.
pub fn progress(domain: &Domain) -> Result<(), i32> {
    let mut state = domain.lock().ok_or(FI_EOTHER)?;
    state.progress();
    relax(domain, state);
    Ok(())
}

/// Makes progress until `look` finds something or the wait ends. A call that does not wait makes
/// progress once, and relaxes as [`progress`] does.
///
/// # Errors
/// `EINTR` if another thread closes the part.
pub fn until<T>(
    wait: Wait<'_>,
    mut look: impl FnMut(&mut Shared) -> Option<T>,
) -> Result<Option<T>, i32> {
    let begin = Instant::now();
    let mut virtual_begin = None;
    let domain = &wait.part.domain;
    loop {
        let mut state = wait.part.lock()?;
        state.leave(wait.awaits);
        if let Some(found) = look(&mut state.shared) {
            return Ok(Some(found));
        }
        state.progress();
        if let Some(found) = look(&mut state.shared) {
            return Ok(Some(found));
        }
        let Some(most) = wait.most else {
            relax(domain, state);
            return Ok(None);
        };
        let elapsed = match state.virtual_time() {
            None => begin.elapsed(),
            Some(now) => now.saturating_sub(*virtual_begin.get_or_insert(now)),
        };
        let left = most.saturating_sub(elapsed);
        if left.is_zero() {
            return Ok(None);
        }
        if virtual_begin.is_some() {
            relax(domain, state);
            continue;
        }
        match wait.part.wait_object() {
            Ok(object) if state.idle > SPINS + YIELDS => {
                let sleeps = state.prepare(wait.awaits, object);
                drop(state);
                if sleeps {
                    object.sleep(left);
                }
            }
            _ => relax(domain, state),
        }
    }
}

/// Leaves the core to others after many calls in a row without progress. In a virtual lab, lets
/// time pass: a call without progress after another one waits until something arrives, or for a
/// short time.
fn relax(domain: &Domain, mut state: MutexGuard<'_, State>) {
    let idle = state.idle;
    if idle == 0 {
        return;
    }
    if state.virtual_time().is_some() {
        if let Some(pause) = pause_after(idle) {
            state.pause(pause);
        }
        return;
    }
    if idle > SPINS + YIELDS {
        domain.nap(state, NAP);
    } else if idle > SPINS {
        drop(state);
        std::thread::yield_now();
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

/// The header of an object. All objects of a class have the same operations.
pub fn fid(fclass: usize, context: *mut c_void, ops: &'static Ops<6>) -> Fid {
    let ops = table(ops);
    let before = TABLES[fclass].swap(ops.cast_mut(), Ordering::Relaxed);
    debug_assert!(before.is_null() || before.cast_const() == ops, "one table");
    Fid {
        fclass,
        context,
        ops,
    }
}

pub const fn table<const N: usize>(ops: &'static Ops<N>) -> Table {
    std::ptr::from_ref(ops).cast()
}

pub unsafe extern "C" fn bind_nothing(_: *mut Fid, _: *mut Fid, _: u64) -> c_int {
    0
}
