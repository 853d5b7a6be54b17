//! Endpoints: opening, binding, options, names.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::event_queues::EventQueueObject;
use super::objects::{
    DomainObject, EndpointObject, NONE, Object, Part, PartObject, answer, answer_int, base, fid,
    given, put, room_of, table, with_driver, with_endpoint, within,
};
use super::refusals::{REMOTE, check_flags, no_remote_counters};
use super::*;
use crate::attach_target;
use crate::driver::{self, Driver};
use crate::engine::endpoint::Endpoint;
use crate::engine::shared::Op;
use crate::engine::wire::Address;

static OPS: Ops<6> = base(close as Table, bind as Table, control as Table);
static CALLS: Ops<7> = Ops::new([
    cancel as Table,
    getopt as Table,
    setopt as Table,
    NONE,
    NONE,
    NONE,
    NONE,
]);
static NAMES: Ops<9> = Ops::new([
    NONE,
    getname as Table,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
    NONE,
]);

pub unsafe extern "C" fn open(
    domain: *mut c_void,
    info: *const Info,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        // SAFETY: the program passes a domain, libfabric's `fi_info`, and a valid result pointer.
        let (object, info) = unsafe {
            put(out, std::ptr::null_mut())?;
            (DomainObject::of(domain, FI_CLASS_DOMAIN)?, given(info)?)
        };
        let own = &object.own;
        let target = own.target.for_another_endpoint(driver::attached());
        let mut driver = Driver::attach(&target).map_err(|error| {
            eprintln!("phitwire: {error}");
            libc::ENODEV
        })?;
        let endpoint = &mut driver.endpoint;
        endpoint.caps = info.caps;
        if let Some(patience) = attach_target::patience() {
            endpoint.wait_for(patience);
        }
        // SAFETY: as above.
        let flags = unsafe {
            let tx = info.tx_attr.as_ref().map_or(0, |attr| attr.op_flags);
            let rx = info.rx_attr.as_ref().map_or(0, |attr| attr.op_flags);
            [tx, rx]
        };
        endpoint.op_flags = flags;
        let slot = within(&own.domain, |state| {
            state.insert(driver).ok_or(libc::ENOMEM)
        })?;
        let fid = FidEp {
            fid: fid(FI_CLASS_EP, context, &OPS),
            ops: table(&CALLS),
            cm: table(&NAMES),
            msg: table(&messages::CALLS),
            rma: table(&remote::CALLS),
            tagged: table(&tags::CALLS),
            atomic: table(&atomics::CALLS),
            collective: table(&NO_COLLECTIVES),
        };
        let part = Part::new(&own.domain, slot);
        // SAFETY: as above.
        unsafe { put(out, Object::give(fid, part)) }
    })
}

static NO_COLLECTIVES: Ops<11> = Ops::new([NONE; 11]);

unsafe extern "C" fn close(fid: *mut c_void) -> c_int {
    answer_int(|| {
        // SAFETY: the program closes an endpoint, once.
        let own = &unsafe { EndpointObject::take(fid, FI_CLASS_EP)? }.own;
        own.close(|state| {
            if let Some(mut driver) = state.remove(own.slot) {
                driver.drain(&mut state.shared);
                driver.endpoint.close(&mut state.shared);
            }
        })
    })
}

unsafe extern "C" fn bind(ep: *mut c_void, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: the program passes an endpoint, and an object to bind it to.
    answer_int(|| unsafe {
        let class = given(other)?.fclass;
        if class == FI_CLASS_EQ {
            let queue = EventQueueObject::of(other.cast(), class)?;
            let endpoint = EndpointObject::of(ep, FI_CLASS_EP)?;
            let bound = endpoint.own.events.set(queue.own.bound.clone());
            return bound.map_err(|_| libc::EINVAL);
        }
        if ![FI_CLASS_AV, FI_CLASS_CQ, FI_CLASS_CNTR].contains(&class) {
            return Err(libc::ENOSYS);
        }
        let other = PartObject::of(other.cast(), class)?;
        let endpoint = EndpointObject::of(ep, FI_CLASS_EP)?;
        if !Arc::ptr_eq(&other.own.domain, &endpoint.own.domain) {
            return Err(libc::EINVAL);
        }
        let slot = other.own.slot;
        with_endpoint(ep, |endpoint, shared| {
            let binds = endpoint.binds_mut();
            let is_selective = flags & FI_SELECTIVE_COMPLETION != 0;
            match class {
                FI_CLASS_AV => binds.vector = Some(slot),
                FI_CLASS_CQ => {
                    if flags & FI_SEND != 0 {
                        binds.transmit = Some((slot, is_selective));
                    }
                    if flags & FI_RECV != 0 {
                        binds.receive = Some((slot, is_selective));
                    }
                }
                _ => {
                    if flags & REMOTE != 0 && !shared.counts {
                        return Err(no_remote_counters());
                    }
                    let of_messages = [FI_SEND, FI_RECV];
                    let of_memory = [FI_READ, FI_WRITE, FI_REMOTE_READ, FI_REMOTE_WRITE];
                    let all = of_messages.into_iter().chain(of_memory);
                    for flag in all.filter(|flag| flags & flag != 0) {
                        binds.counters.insert(flag, slot);
                    }
                }
            }
            Ok(())
        })
    })
}

unsafe extern "C" fn control(ep: *mut c_void, command: c_int, arg: *mut u64) -> c_int {
    // SAFETY: the program passes an endpoint, and flags if the command takes any.
    answer_int(|| unsafe {
        match command {
            FI_ENABLE => with_driver(ep, |driver, shared| {
                let can_receive = driver.can_receive(shared, driver::ROOM);
                can_receive.then_some(()).ok_or_else(no_receives)
            }),
            FI_GETOPSFLAG | FI_SETOPSFLAG => with_endpoint(ep, |endpoint, _| {
                let flags = *given(arg)?;
                let which = usize::from(flags & FI_SEND == 0);
                if command == FI_GETOPSFLAG {
                    return put(arg, endpoint.op_flags[which]);
                }
                check_flags(flags)?;
                endpoint.op_flags[which] = flags & !(FI_SEND | FI_RECV);
                Ok(())
            }),
            _ => Err(libc::ENOSYS),
        }
    })
}

/// Reports that no receives are left for an endpoint, which would get no answers.
fn no_receives() -> i32 {
    eprintln!(
        "phitwire: other endpoints hold all receives of the NIC; use fewer endpoints (OpenSHMEM: \
         contexts), or fewer ranks per NIC"
    );
    libc::ENOBUFS
}

unsafe extern "C" fn cancel(ep: *mut c_void, context: *mut c_void) -> isize {
    // SAFETY: the program passes an endpoint.
    answer(|| unsafe {
        with_endpoint(ep, |endpoint, shared| {
            match endpoint.cancel(shared, context as usize) {
                true => Ok(0),
                false => Err(libc::ENOENT),
            }
        })
    })
}

unsafe extern "C" fn getopt(
    ep: *mut c_void,
    _level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    // SAFETY: the program passes an endpoint, and a buffer of the given length.
    answer_int(|| unsafe {
        if name != FI_OPT_MIN_MULTI_RECV {
            return Err(libc::ENOPROTOOPT);
        }
        if room_of(len, size_of::<usize>())? < size_of::<usize>() || value.is_null() {
            return Err(FI_ETOOSMALL);
        }
        let room = with_endpoint(ep, |endpoint, _| Ok(endpoint.least_room()))?;
        value.cast::<usize>().write_unaligned(room);
        Ok(())
    })
}

unsafe extern "C" fn setopt(
    ep: *mut c_void,
    _level: c_int,
    name: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    // SAFETY: the program passes an endpoint, and a value of the given length.
    answer_int(|| unsafe {
        if name != FI_OPT_MIN_MULTI_RECV || len != size_of::<usize>() {
            return Err(libc::ENOPROTOOPT);
        }
        given(value)?;
        let room = value.cast::<usize>().read_unaligned();
        with_endpoint(ep, |endpoint, _| {
            endpoint.set_least_room(room);
            Ok(())
        })
    })
}

unsafe extern "C" fn getname(ep: *mut c_void, out: *mut c_void, len: *mut usize) -> c_int {
    // SAFETY: the program passes an endpoint, and a buffer of the given length.
    answer_int(|| unsafe {
        let address = with_endpoint(ep, |endpoint, _| Ok(endpoint.address()))?;
        if room_of(len, Address::BYTES)? < Address::BYTES || out.is_null() {
            return Err(FI_ETOOSMALL);
        }
        let bytes = address.to_bytes();
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), bytes.len());
        Ok(())
    })
}

/// Returns the completion attributes of an operation. `flags` are those of the call; `None` selects
/// the endpoint's default flags.
///
/// # Errors
/// `EOPNOTSUPP` for flags that are not supported.
pub fn op(
    endpoint: &Endpoint,
    context: *mut c_void,
    what: u64,
    flags: Option<u64>,
    tag: u64,
) -> Result<Op, i32> {
    let (bind, which) = match what & FI_RECV != 0 {
        true => (endpoint.binds().receive, 1),
        false => (endpoint.binds().transmit, 0),
    };
    if let Some(flags) = flags {
        check_flags(flags)?;
    }
    let flags = flags.unwrap_or(endpoint.op_flags[which]);
    let is_selective = bind.is_some_and(|(_, is_selective)| is_selective);
    Ok(Op {
        context: context as usize,
        flags: what,
        reports_success: !is_selective || flags & FI_COMPLETION != 0,
        is_delivery: flags & FI_DELIVERY_COMPLETE != 0,
        tag,
    })
}

/// How a call reports its operation: the context, and the flags as in [`op`]. `None` means that the
/// operation is injected and its success is not reported.
pub type CompletionContext = Option<(*mut c_void, Option<u64>)>;

/// Like [`op`], for an operation that sends `len` bytes.
///
/// # Errors
/// Those of [`op`]; `EMSGSIZE` for injected operations with too many bytes.
pub fn outgoing(
    endpoint: &Endpoint,
    (what, tag): (u64, u64),
    reporting: CompletionContext,
    len: usize,
) -> Result<Op, i32> {
    let flags = reporting.map_or(FI_INJECT, |(_, flags)| {
        flags.unwrap_or(endpoint.op_flags[0])
    });
    if flags & FI_INJECT != 0 && len > info::MOST_INJECT {
        return Err(libc::EMSGSIZE);
    }
    match reporting {
        Some((context, flags)) => op(endpoint, context, what, flags, tag),
        None => Ok(Op {
            context: 0,
            flags: what,
            reports_success: false,
            is_delivery: false,
            tag,
        }),
    }
}
