//! `fi_av_open`, and the calls on address vectors.

use std::ffi::{c_char, c_int, c_void};

use super::objects::{
    DomainObject, NONE, Object, Part, PartObject, answer, answer_int, base, bind_nothing, fid, put,
    room_of, table, within,
};
use super::refusals::refuse;
use super::*;
use crate::domain::State;
use crate::engine::shared::{self, Vector};
use crate::engine::wire::Address;

static OPS: Ops<6> = base(close as Table, bind_nothing as Table, NONE);
static CALLS: Ops<7> = Ops::new([
    insert as Table,
    NONE,
    NONE,
    remove as Table,
    lookup as Table,
    straddr as Table,
    NONE,
]);

pub unsafe extern "C" fn open(
    domain: *mut c_void,
    attr: *mut AvAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        // SAFETY: the program passes a domain, attributes or null, and a valid result pointer.
        let (object, attr) = unsafe {
            put(out, std::ptr::null_mut())?;
            (DomainObject::of(domain, FI_CLASS_DOMAIN)?, attr.as_mut())
        };
        let own = &object.own;
        if let Some(attr) = attr {
            if !attr.name.is_null() {
                return Err(refuse("address vectors shared by programs", libc::ENOSYS));
            }
            if attr.flags & FI_EVENT != 0 {
                return Err(refuse(
                    "address vectors that insert in the background",
                    libc::ENOSYS,
                ));
            }
            if attr.r#type == 0 {
                attr.r#type = FI_AV_TABLE;
            }
        }
        let vector = Vector::default();
        let slot = within(&own.domain, |state| {
            state.shared.vectors.insert(vector).ok_or(libc::ENOMEM)
        })?;
        let fid = FidSimple {
            fid: fid(FI_CLASS_AV, context, &OPS),
            ops: table(&CALLS),
        };
        let part = Part::new(&own.domain, slot);
        // SAFETY: as above.
        unsafe { put(out, Object::give(fid, part)) }
    })
}

unsafe extern "C" fn close(fid: *mut c_void) -> c_int {
    answer_int(|| {
        let remove = |state: &mut State, slot| drop(state.shared.vectors.remove(slot));
        // SAFETY: the program closes a vector, once.
        unsafe { PartObject::close(fid, FI_CLASS_AV, shared::Object::Vector, remove) }
    })
}

/// # Safety
/// `fid` is a vector.
unsafe fn with<T>(
    fid: *const c_void,
    call: impl FnOnce(&mut Vector) -> Result<T, i32>,
) -> Result<T, i32> {
    // SAFETY: guaranteed by the caller.
    let own = &unsafe { PartObject::of(fid, FI_CLASS_AV)? }.own;
    own.within(|state| call(state.shared.vectors.get_mut(own.slot).ok_or(libc::EINVAL)?))
}

unsafe extern "C" fn insert(
    fid: *mut c_void,
    addresses: *const [u8; Address::BYTES],
    count: usize,
    numbers: *mut u64,
    _flags: u64,
    _context: *mut c_void,
) -> c_int {
    // SAFETY: the program passes `count` addresses, and room for `count` numbers, or null.
    let done = answer(|| unsafe {
        with(fid, |vector| {
            if addresses.is_null() && count > 0 {
                return Err(libc::EINVAL);
            }
            let mut inserted = 0;
            for n in 0..count {
                let address = Address::of_bytes(addresses.add(n).read_unaligned());
                let number = address.map_or(FI_ADDR_NOTAVAIL, |address| vector.insert(address));
                inserted += isize::from(address.is_some());
                if !numbers.is_null() {
                    *numbers.add(n) = number;
                }
            }
            Ok(inserted)
        })
    });
    done as c_int
}

unsafe extern "C" fn remove(
    fid: *mut c_void,
    numbers: *const u64,
    count: usize,
    _flags: u64,
) -> c_int {
    // SAFETY: the program passes `count` numbers.
    answer_int(|| unsafe {
        with(fid, |vector| {
            if numbers.is_null() && count > 0 {
                return Err(libc::EINVAL);
            }
            (0..count).for_each(|n| vector.remove(*numbers.add(n)));
            Ok(())
        })
    })
}

unsafe extern "C" fn lookup(
    fid: *mut c_void,
    number: u64,
    out: *mut c_void,
    len: *mut usize,
) -> c_int {
    // SAFETY: the caller passes a buffer of the given length.
    answer_int(|| unsafe {
        let address = with(fid, |vector| vector.get(number).ok_or(libc::EINVAL))?;
        let bytes = address.to_bytes();
        let room = room_of(len, bytes.len())?;
        if out.is_null() && room > 0 {
            return Err(libc::EINVAL);
        }
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), out.cast(), room.min(bytes.len()));
        Ok(())
    })
}

unsafe extern "C" fn straddr(
    _fid: *mut c_void,
    address: *const [u8; Address::BYTES],
    out: *mut c_char,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: the program passes an address, and a buffer of the given length.
    answer(|| unsafe {
        let address = match address.is_null() {
            true => None,
            false => Address::of_bytes(address.read_unaligned()),
        };
        let text = match address {
            Some(address) => format!("{address}\0"),
            None => "phitwire://?\0".to_owned(),
        };
        let room = match out.is_null() {
            true => 0,
            false => room_of(len, text.len())?,
        };
        let bytes = room.min(text.len());
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), out, bytes);
        if bytes > 0 {
            *out.add(bytes - 1) = 0;
        }
        Ok(0)
    });
    out
}
