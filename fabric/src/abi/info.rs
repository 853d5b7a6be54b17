//! `fi_prov_ini`, `fi_getinfo` and fabrics.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

use super::objects::{NONE, Object, answer_int, base, bind_nothing, fid, put, table};
use super::*;
use crate::attach_target::AttachTarget;
use crate::domain::MOST_ENDPOINTS;
use crate::engine::access::MOST_ELEMENT_BYTES;
use crate::engine::endpoint::MOST_OPERATIONS;
use crate::engine::shared::MOST_OBJECTS;
use crate::engine::wire::{Address, MOST_EAGER};

const FI_ENODATA: i32 = libc::ENODATA;
pub const CAPS: u64 = FI_MSG
    | FI_TAGGED
    | FI_RMA
    | FI_ATOMIC
    | FI_READ
    | FI_WRITE
    | FI_RECV
    | FI_SEND
    | FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_MULTI_RECV
    | FI_LOCAL_COMM
    | FI_REMOTE_COMM
    | FI_RMA_EVENT
    | FI_SOURCE
    | FI_DIRECTED_RECV;
/// Capabilities that change how operations are carried out: only for programs that request them.
const ON_REQUEST: u64 =
    FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_MULTI_RECV | FI_DIRECTED_RECV | FI_RMA_EVENT;
const TX_CAPS: u64 = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND;
const RX_CAPS: u64 = FI_MSG
    | FI_TAGGED
    | FI_RMA
    | FI_ATOMIC
    | FI_RECV
    | FI_REMOTE_READ
    | FI_REMOTE_WRITE
    | FI_MULTI_RECV
    | FI_RMA_EVENT
    | FI_SOURCE
    | FI_DIRECTED_RECV;
pub const DOMAIN_CAPS: u64 = FI_LOCAL_COMM | FI_REMOTE_COMM;
pub const ADDRESS_FORMAT: u32 = FI_PROV_SPECIFIC | 0x7077;
pub const PROTOCOL: u32 = FI_PROV_SPECIFIC | 0x7077;
pub const PROTOCOL_VERSION: u32 = 1;
pub const PROVIDER_VERSION: u32 = 1;
pub const FABRIC: &CStr = c"phitwire";
const MR_MODES: c_int = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
pub const MOST_BYTES: usize = 1 << 40;
pub const ORDERS: u64 = FI_ORDER_SAS | FI_ORDER_ATOMIC;
/// Bytes of an element: atomic operations are ordered per element.
pub const MOST_ORDERED: usize = 8;
/// Pieces of memory per message.
pub const IOVS: usize = 8;
/// Contexts of a domain: one each way per endpoint.
pub const MOST_CONTEXTS: usize = MOST_ENDPOINTS;
pub const MOST_REGIONS: usize = 1 << 16;
/// Maximum number of bytes of an injected operation, whose memory is free when the call returns.
pub const MOST_INJECT: usize = 4096;
const _: () = assert!(MOST_INJECT <= MOST_EAGER && 2 * MOST_ELEMENT_BYTES <= MOST_EAGER);

static FABRIC_OPS: Ops<6> = base(close_fabric as Table, bind_nothing as Table, NONE);
static FABRIC_CALLS: Ops<6> = Ops::new([
    domains::open as Table,
    NONE,
    event_queues::open as Table,
    NONE,
    waiting::trywait as Table,
    NONE,
]);

/// The entry point that libfabric calls first.
#[unsafe(no_mangle)]
pub extern "C" fn fi_prov_ini() -> *mut Provider {
    static PROVIDER: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    let at = PROVIDER.get_or_init(|| {
        let provider = Provider {
            version: PROVIDER_VERSION,
            fi_version: library::version().unwrap_or((1 << 16) | 17),
            context: [std::ptr::null_mut(); 4],
            name: FABRIC.as_ptr(),
            getinfo: getinfo as Table,
            fabric: open_fabric as Table,
            cleanup: cleanup as Table,
        };
        // Leak it: libfabric uses the provider as long as the program runs.
        Box::into_raw(Box::new(provider)) as usize
    });
    *at as *mut Provider
}

unsafe extern "C" fn cleanup() {}

unsafe extern "C" fn getinfo(
    version: u32,
    node: *const c_char,
    _service: *const c_char,
    flags: u64,
    hints: *const Info,
    out: *mut *mut Info,
) -> c_int {
    answer_int(|| {
        // SAFETY: libfabric's hints are null or valid, and so are their attributes.
        let hints = unsafe { hints.as_ref() };
        if let Some(hints) = hints
            // SAFETY: as above.
            && !unsafe { hints::suits(hints, version, (flags, !node.is_null())) }
        {
            return Err(FI_ENODATA);
        }
        let target =
            AttachTarget::of_environment().map_err(|error| no_target(&error, FI_ENODATA))?;
        // SAFETY: as above.
        let info = unsafe { describe(hints, &target, version) }?;
        // SAFETY: `info` is new, and the node is null or a string.
        unsafe { set_addresses(&mut *info, hints, named(node), (flags, &target)) };
        // SAFETY: libfabric passes a valid pointer for the result.
        unsafe { *out = info };
        Ok(())
    })
}

/// Logs why this program has no door. Returns `errno`.
pub fn no_target(error: &str, errno: i32) -> i32 {
    library::log(error);
    errno
}

/// Parses a node name in the form that `fi_av_straddr` prints. Other node names do not identify an
/// endpoint and are ignored.
///
/// # Safety
/// `node` is null or a string.
unsafe fn named(node: *const c_char) -> Option<[u8; Address::BYTES]> {
    if node.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let node = unsafe { CStr::from_ptr(node) };
    let address: Address = node.to_str().ok()?.parse().ok()?;
    Some(address.to_bytes())
}

/// Sets the source address and, if one is given, the destination address. Addresses in the call
/// take precedence over those in the hints; the source defaults to that of `attach_target`.
///
/// # Safety
/// `info` was allocated by libfabric, and the hints' addresses are as long as they state.
unsafe fn set_addresses(
    info: &mut Info,
    hints: Option<&Info>,
    named: Option<[u8; Address::BYTES]>,
    (flags, target): (u64, &AttachTarget),
) {
    let hinted = |of: fn(&Info) -> (*mut c_void, usize)| {
        let (at, len) = of(hints?);
        // SAFETY: guaranteed by the caller.
        (!at.is_null() && len == Address::BYTES).then(|| unsafe { *at.cast() })
    };
    let (source, destination) = match flags & FI_SOURCE != 0 {
        true => (named, None),
        false => (None, named),
    };
    let source = source.or_else(|| hinted(|hints| (hints.src_addr, hints.src_addrlen)));
    let destination = destination.or_else(|| hinted(|hints| (hints.dest_addr, hints.dest_addrlen)));
    let source = source.unwrap_or_else(|| target.source());
    (info.src_addr, info.src_addrlen) = (library::copy(&source), source.len());
    if let Some(to) = destination {
        (info.dest_addr, info.dest_addrlen) = (library::copy(&to), to.len());
    }
}

/// # Safety
/// The attributes of the hints are null or valid.
unsafe fn describe(
    hints: Option<&Info>,
    target: &AttachTarget,
    version: u32,
) -> Result<*mut Info, i32> {
    let info = library::new_info().ok_or(libc::ENOMEM)?;
    let asked = hints.map_or(0, |hints| hints.caps);
    let caps = match asked {
        0 => CAPS & !FI_RMA_EVENT,
        // Always add the capabilities that cost nothing.
        asked => asked | (CAPS & !ON_REQUEST),
    };
    info.caps = caps;
    info.addr_format = ADDRESS_FORMAT;
    if let Some(hints) = hints {
        info.handle = hints.handle;
    }
    // SAFETY: libfabric made them all, and nothing else refers to them yet.
    let (tx, rx, ep, domain, fabric) = unsafe {
        let get = (
            info.tx_attr.as_mut(),
            info.rx_attr.as_mut(),
            info.ep_attr.as_mut(),
            info.domain_attr.as_mut(),
            info.fabric_attr.as_mut(),
        );
        match get {
            (Some(a), Some(b), Some(c), Some(d), Some(e)) => (a, b, c, d, e),
            _ => return Err(libc::ENOMEM),
        }
    };
    // SAFETY: guaranteed by the caller.
    let hinted = unsafe {
        (
            hints.and_then(|hints| hints.tx_attr.as_ref()),
            hints.and_then(|hints| hints.rx_attr.as_ref()),
            hints.and_then(|hints| hints.domain_attr.as_ref()),
        )
    };
    describe_contexts((tx, rx), (hinted.0, hinted.1), caps);
    ep.r#type = FI_EP_RDM;
    ep.protocol = PROTOCOL;
    ep.protocol_version = PROTOCOL_VERSION;
    ep.max_msg_size = MOST_BYTES;
    ep.mem_tag_format = u64::MAX;
    ep.max_order_raw_size = MOST_ORDERED;
    ep.max_order_war_size = MOST_ORDERED;
    ep.max_order_waw_size = MOST_ORDERED;
    (ep.tx_ctx_cnt, ep.rx_ctx_cnt) = (1, 1);
    describe_domain(domain, hinted.2, (version, asked));
    domain.name = library::text(&CString::new(target.name()).unwrap_or_default());
    fabric.name = library::text(FABRIC);
    fabric.prov_version = PROVIDER_VERSION;
    Ok(info)
}

fn describe_contexts(
    (tx, rx): (&mut TxAttr, &mut RxAttr),
    hints: (Option<&TxAttr>, Option<&RxAttr>),
    caps: u64,
) {
    *tx = TxAttr {
        caps: caps & TX_CAPS,
        mode: 0,
        op_flags: hints.0.map_or(0, |tx| tx.op_flags),
        msg_order: ORDERS,
        comp_order: 0,
        inject_size: MOST_INJECT,
        size: MOST_OPERATIONS,
        iov_limit: IOVS,
        rma_iov_limit: 1,
        tclass: FI_TC_BEST_EFFORT,
    };
    *rx = RxAttr {
        caps: caps & RX_CAPS,
        mode: 0,
        op_flags: hints.1.map_or(0, |rx| rx.op_flags),
        msg_order: ORDERS,
        comp_order: 0,
        total_buffered_recv: 0,
        size: MOST_OPERATIONS,
        iov_limit: IOVS,
    };
}

fn describe_domain(
    domain: &mut DomainAttr,
    hints: Option<&DomainAttr>,
    (version, asked): (u32, u64),
) {
    let mode = match hints.map(|hints| hints.mr_mode) {
        Some(mode @ (FI_MR_BASIC | FI_MR_SCALABLE)) => mode,
        // Older versions have no other modes.
        Some(0) if version < hints::FI_VERSION_1_5 && asked & (FI_RMA | FI_ATOMIC) != 0 => {
            FI_MR_BASIC
        }
        // The mode bits let NICs access memory directly, which they must not do where peers'
        // operations are counted.
        Some(_) if asked & FI_RMA_EVENT != 0 => 0,
        Some(mode) => mode & MR_MODES,
        None if asked == 0 => MR_MODES,
        None => 0,
    };
    let threading = hints.map_or(0, |hints| hints.threading);
    domain.threading = if threading == 0 {
        FI_THREAD_SAFE
    } else {
        threading
    };
    let progress = |asked: Option<c_int>| match asked {
        Some(FI_PROGRESS_AUTO) => FI_PROGRESS_AUTO,
        _ => FI_PROGRESS_MANUAL,
    };
    domain.data_progress = progress(hints.map(|hints| hints.data_progress));
    // Control operations finish before their calls return, so either kind of progress is correct.
    domain.control_progress = progress(hints.map(|hints| hints.control_progress));
    domain.resource_mgmt = FI_RM_ENABLED;
    let kind = hints.map_or(0, |hints| hints.av_type);
    domain.av_type = if kind == 0 { FI_AV_TABLE } else { kind };
    domain.mr_mode = mode;
    domain.mr_key_size = 8;
    domain.cq_data_size = 8;
    (domain.cq_cnt, domain.ep_cnt) = (MOST_OBJECTS, MOST_ENDPOINTS);
    (domain.tx_ctx_cnt, domain.rx_ctx_cnt) = (MOST_CONTEXTS, MOST_CONTEXTS);
    (domain.max_ep_tx_ctx, domain.max_ep_rx_ctx) = (1, 1);
    domain.cntr_cnt = MOST_OBJECTS;
    domain.mr_iov_limit = 1;
    domain.mr_cnt = MOST_REGIONS;
    domain.caps = DOMAIN_CAPS;
    domain.tclass = FI_TC_BEST_EFFORT;
}

unsafe extern "C" fn open_fabric(
    _attr: *mut FabricAttr,
    out: *mut *mut c_void,
    context: *mut c_void,
) -> c_int {
    answer_int(|| {
        let fid = FidFabric {
            fid: fid(FI_CLASS_FABRIC, context, &FABRIC_OPS),
            ops: table(&FABRIC_CALLS),
            api_version: 0,
        };
        // SAFETY: libfabric passes a valid pointer for the result, or null.
        unsafe {
            put(out, std::ptr::null_mut())?;
            put(out, Object::give(fid, ()))
        }
    })
}

unsafe extern "C" fn close_fabric(fid: *mut c_void) -> c_int {
    // SAFETY: the program closes a fabric, once.
    answer_int(|| unsafe {
        drop(Object::<FidFabric, ()>::take(fid, FI_CLASS_FABRIC)?);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In domains that count peers' operations, programs choose the keys, and addresses start at 0.
    #[test]
    fn memory_that_nics_do_not_reach_needs_no_mode() {
        // SAFETY: all fields are numbers and pointers.
        let [mut hints, mut domain]: [DomainAttr; 2] = unsafe { std::mem::zeroed() };
        hints.mr_mode = MR_MODES;
        for (caps, mode) in [(FI_RMA, MR_MODES), (FI_RMA | FI_RMA_EVENT, 0)] {
            describe_domain(&mut domain, Some(&hints), ((1 << 16) | 17, caps));
            assert_eq!(domain.mr_mode, mode);
        }
        hints.mr_mode = FI_MR_BASIC;
        describe_domain(&mut domain, Some(&hints), ((1 << 16) | 17, FI_RMA_EVENT));
        assert_eq!(domain.mr_mode, FI_MR_BASIC);
    }
}
