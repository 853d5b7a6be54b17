//! Domains, registered memory, and the supported atomic operations.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use super::info::no_target;
use super::objects::{
    DomainObject, DomainOwn, EndpointObject, NONE, Object, Part, PartObject, answer_int, base,
    bind_nothing, errno_of, fid, given, put, table, within,
};
use super::refusals::{REMOTE, no_remote_counters, refuse};
use super::*;
use crate::attach_target::AttachTarget;
use crate::domain::Domain;
use crate::driver::Driver;
use crate::engine::access::MOST_ELEMENT_BYTES;
use crate::engine::elements::{Form, is_valid, size_of_type};
use crate::engine::shared::{Open, Region};
use crate::memory::Bytes;
use crate::progress::Progress;

const FI_ENOKEY: i32 = 266;
const FI_FETCH_ATOMIC: u64 = 1 << 58;
const FI_COMPARE_ATOMIC: u64 = 1 << 59;

pub static OPS: Ops<6> = base(close as Table, bind_nothing as Table, control as Table);
static CALLS: Ops<11> = Ops::new([
    vectors::open as Table,
    events::open_queue as Table,
    endpoints::open as Table,
    NONE,
    events::open_counter as Table,
    NONE,
    NONE,
    NONE,
    query_atomic as Table,
    NONE,
    NONE,
]);
static MEMORY_CALLS: Ops<3> = Ops::new([
    register as Table,
    register_iov as Table,
    register_attr as Table,
]);
static REGION_OPS: Ops<6> = base(
    close_region as Table,
    bind_region as Table,
    control_region as Table,
);

type RegionObject = Object<FidMr, (Arc<Domain>, u64)>;

pub unsafe extern "C" fn open(
    _fabric: *mut c_void,
    info: *const Info,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        // SAFETY: the caller passes a valid pointer for the result, or null.
        unsafe { put(out, std::ptr::null_mut())? };
        let target =
            AttachTarget::of_environment().map_err(|error| no_target(&error, libc::ENODEV))?;
        // SAFETY: the program passes an `fi_info` that libfabric made.
        let attr = unsafe { info.as_ref().and_then(|info| info.domain_attr.as_ref()) };
        let mode = attr.map_or(0, |attr| attr.mr_mode);
        let domain = Arc::new(Domain::new().map_err(errno_of)?);
        // SAFETY: as above.
        let caps = unsafe { info.as_ref() }.map_or(0, |info| info.caps);
        within(&domain, |state| {
            state.shared.counts = caps & FI_RMA_EVENT != 0;
            Ok(())
        })?;
        let progress = match attr.map(|attr| attr.data_progress) {
            Some(FI_PROGRESS_AUTO) => {
                library::keep();
                Some(Progress::start(&domain).map_err(errno_of)?)
            }
            _ => None,
        };
        let own = DomainOwn {
            domain,
            progress,
            target,
            is_virtual: mode == FI_MR_BASIC || mode & FI_MR_VIRT_ADDR != 0,
            gives_keys: mode == FI_MR_BASIC || mode & FI_MR_PROV_KEY != 0,
        };
        let fid = FidDomain {
            fid: fid(FI_CLASS_DOMAIN, context, &OPS),
            ops: table(&CALLS),
            mr: table(&MEMORY_CALLS),
        };
        // SAFETY: as above.
        unsafe { put(out, Object::give(fid, own)) }
    })
}

unsafe extern "C" fn close(fid: *mut c_void) -> c_int {
    // SAFETY: the program closes a domain, once.
    answer_int(|| unsafe {
        drop(DomainObject::take(fid, FI_CLASS_DOMAIN)?);
        Ok(())
    })
}

unsafe extern "C" fn control(_: *mut c_void, command: c_int, _: *mut c_void) -> c_int {
    let what = match command {
        FI_QUEUE_WORK | FI_CANCEL_WORK | FI_FLUSH_WORK => "triggered operations (FI_QUEUE_WORK)",
        _ => "this command of fi_control on a domain",
    };
    -refuse(what, libc::ENOSYS)
}

/// Memory that a program registers: the bytes, their access flags, and the requested key and
/// context.
type Registered = (Bytes, u64, u64, *mut c_void);

/// # Safety
/// `domain` is a domain or null, `out` valid for writing or null.
unsafe fn add(
    domain: *const c_void,
    (bytes, access, requested, context): Registered,
    out: *mut *mut c_void,
) -> Result<(), i32> {
    // SAFETY: guaranteed by the caller.
    let object = unsafe {
        put(out, std::ptr::null_mut())?;
        DomainObject::of(domain, FI_CLASS_DOMAIN)?
    };
    let own = &object.own;
    let key = within(&own.domain, |state| {
        let (mut drivers, shared) = state.all();
        let opened = drivers
            .next()
            .filter(|_| own.gives_keys && own.is_virtual && !shared.counts)
            .and_then(|driver| driver.open_memory(shared, &bytes, access));
        let (key, open) = match opened {
            Some((key, open)) => (key, Some(open)),
            None if own.gives_keys => (shared.new_key(), None),
            None => (requested, None),
        };
        if shared.regions.contains_key(&key) {
            return Err(FI_ENOKEY);
        }
        let base = if own.is_virtual { bytes.address() } else { 0 };
        let region = Region {
            bytes,
            access,
            base,
            open,
            counters: Vec::new(),
        };
        shared.regions.insert(key, region);
        Ok(key)
    })?;
    let fid = FidMr {
        fid: fid(FI_CLASS_MR, context, &REGION_OPS),
        mem_desc: std::ptr::null_mut(),
        key,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { put(out, Object::give(fid, (own.domain.clone(), key))) }
}

pub unsafe extern "C" fn register(
    domain: *mut c_void,
    buf: *const c_void,
    len: usize,
    access: u64,
    _offset: u64,
    requested: u64,
    _flags: u64,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the program keeps the memory until it closes the region, and passes a domain.
    answer_int(|| unsafe {
        let bytes = Bytes::new(buf, len);
        add(domain, (bytes, access, requested, context), out)
    })
}

unsafe extern "C" fn register_iov(
    domain: *mut c_void,
    iov: *const Iovec,
    count: usize,
    access: u64,
    _offset: u64,
    requested: u64,
    _flags: u64,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    // SAFETY: as for `register`.
    answer_int(|| unsafe {
        if count != 1 {
            return Err(libc::EINVAL);
        }
        let iov = given(iov)?;
        let bytes = Bytes::new(iov.base, iov.len);
        add(domain, (bytes, access, requested, context), out)
    })
}

unsafe extern "C" fn register_attr(
    domain: *mut c_void,
    attr: *const MrAttr,
    _flags: u64,
    out: *mut *mut c_void,
) -> c_int {
    // SAFETY: as for `register`.
    answer_int(|| unsafe {
        let attr = given(attr)?;
        if attr.iov_count != 1 {
            return Err(libc::EINVAL);
        }
        let iov = given(attr.mr_iov)?;
        let bytes = Bytes::new(iov.base, iov.len);
        let registered = (bytes, attr.access, attr.requested_key, attr.context);
        add(domain, registered, out)
    })
}

unsafe extern "C" fn close_region(fid: *mut c_void) -> c_int {
    answer_int(|| {
        // SAFETY: the program closes a region, once.
        let object = unsafe { RegionObject::take(fid, FI_CLASS_MR)? };
        let (domain, key) = &object.own;
        within(domain, |state| {
            let (mut drivers, shared) = state.all();
            let region = shared.regions.remove(key);
            // Memory that is being renewed has no handle, and the NIC rejects this closing. But the
            // NIC answers in order, so by then the renewal has closed the memory.
            if let Some(Open { reach, by }) = region.and_then(|region| region.open) {
                let is_opener = |driver: &&mut Driver| Some(driver.endpoint.address()) == by;
                if let Some(driver) = drivers.find(is_opener) {
                    driver.close_memory(shared, reach.handle);
                }
            }
            drop(drivers);
            let (drivers, shared) = state.all();
            drivers.for_each(|driver| driver.end_transfers(shared, *key));
            Ok(())
        })
    })
}

unsafe extern "C" fn bind_region(region: *mut c_void, other: *mut Fid, flags: u64) -> c_int {
    // SAFETY: the program passes a region, and an object to bind it to.
    answer_int(|| unsafe {
        let region = RegionObject::of(region, FI_CLASS_MR)?;
        let (domain, key) = &region.own;
        if given(other)?.fclass == FI_CLASS_EP {
            // Every endpoint of the domain can use the memory already.
            let endpoint = EndpointObject::of(other.cast(), FI_CLASS_EP)?;
            return same_domain(domain, &endpoint.own);
        }
        let counter = PartObject::of(other.cast(), FI_CLASS_CNTR)?;
        same_domain(domain, &counter.own)?;
        if flags & !REMOTE != 0 || flags == 0 {
            return Err(libc::EINVAL);
        }
        counter.own.within(|state| {
            let shared = &mut state.shared;
            if !shared.counts {
                return Err(no_remote_counters());
            }
            let region = shared.regions.get_mut(key).ok_or(libc::EINVAL)?;
            let counted = [FI_REMOTE_READ, FI_REMOTE_WRITE];
            let counted = counted.into_iter().filter(|flag| flags & flag != 0);
            let slots = counted.map(|flag| (flag, counter.own.slot));
            region.counters.extend(slots);
            Ok(())
        })
    })
}

fn same_domain(domain: &Arc<Domain>, part: &Part) -> Result<(), i32> {
    match Arc::ptr_eq(domain, &part.domain) {
        true => Ok(()),
        false => Err(libc::EINVAL),
    }
}

unsafe extern "C" fn control_region(_: *mut c_void, command: c_int, _: *mut c_void) -> c_int {
    match command {
        FI_ENABLE => 0,
        _ => -libc::ENOSYS,
    }
}

unsafe extern "C" fn query_atomic(
    _domain: *mut c_void,
    datatype: c_int,
    op: c_int,
    attr: *mut AtomicAttr,
    flags: u64,
) -> c_int {
    answer_int(|| {
        let form = match flags {
            0 => Form::Write,
            FI_FETCH_ATOMIC => Form::Fetch,
            FI_COMPARE_ATOMIC => Form::Compare,
            _ => return Err(libc::EOPNOTSUPP),
        };
        let (size, count) = elements_of(datatype, op, form)?;
        // SAFETY: the caller passes a valid pointer for the result, or null.
        if let Some(attr) = unsafe { attr.as_mut() } {
            *attr = AtomicAttr { count, size };
        }
        Ok(())
    })
}

/// Returns the bytes per element and the maximum number of elements per operation.
pub fn elements_of(datatype: c_int, op: c_int, form: Form) -> Result<(usize, usize), i32> {
    let codes = (u8::try_from(datatype), u8::try_from(op));
    let (Ok(datatype), Ok(op)) = codes else {
        return Err(libc::EOPNOTSUPP);
    };
    match size_of_type(datatype) {
        Some(size) if is_valid(datatype, op, form) => Ok((size, MOST_ELEMENT_BYTES / size)),
        _ => Err(libc::EOPNOTSUPP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(datatype: c_int, op: c_int, flags: u64) -> Result<(usize, usize), c_int> {
        let mut attr = AtomicAttr { count: 0, size: 0 };
        // SAFETY: the call uses no domain, and the result is valid.
        let answer = unsafe { query_atomic(std::ptr::null_mut(), datatype, op, &mut attr, flags) };
        match answer {
            0 => Ok((attr.size, attr.count)),
            errno => Err(errno),
        }
    }

    /// The table of the guide: all types of up to eight bytes, except complex numbers.
    fn is_supported(datatype: c_int, op: c_int, flags: u64) -> bool {
        let (is_integer, is_float) = ((0..8).contains(&datatype), [8, 9].contains(&datatype));
        let (bor, band, bxor, read, write, mswap) = (6, 7, 9, 10, 11, 18);
        let is_bitwise = [bor, band, bxor, mswap].contains(&op);
        let is_op = match flags {
            0 => (0..read).contains(&op) || op == write,
            FI_FETCH_ATOMIC => (0..=write).contains(&op),
            FI_COMPARE_ATOMIC => (write + 1..=mswap).contains(&op),
            _ => false,
        };
        is_op && (is_integer || is_float && !is_bitwise)
    }

    #[test]
    fn exactly_what_is_supported_is_reported() {
        let both = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
        for flags in [0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC, both, FI_TAGGED] {
            for (datatype, op) in (-1..20).flat_map(|op| (-1..20).map(move |of| (of, op))) {
                let size = [1, 1, 2, 2, 4, 4, 8, 8, 4, 8].get(datatype as usize);
                let expected = match (is_supported(datatype, op, flags), size) {
                    (true, Some(size)) => Ok((*size, MOST_ELEMENT_BYTES / size)),
                    _ => Err(-libc::EOPNOTSUPP),
                };
                assert_eq!(
                    query(datatype, op, flags),
                    expected,
                    "{datatype} {op} {flags:#x}"
                );
            }
        }
    }
}
