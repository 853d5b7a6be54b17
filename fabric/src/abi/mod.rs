//! libfabric's structures, as in its headers since 1.17, and the calls that take them.
//!
//! Structures that have grown since then are declared only as far as all versions agree, and only
//! that part is read when libfabric passes them. `fi_info`, which libfabric expects in full, is
//! allocated by libfabric itself ([`library`]). Tables of operations state their length, so that a
//! newer library does not read beyond their ends. A test compares the declarations with the headers
//! where they are installed.
//!
//! All `unsafe` code of this crate is here and in [`crate::memory`].
#![allow(unsafe_code, reason = "this is the interface to C")]
#![allow(
    missing_docs,
    reason = "the names are those of libfabric's manual pages"
)]

mod atomics;
mod domains;
mod endpoints;
mod event_queues;
mod events;
mod hints;
mod info;
mod library;
mod messages;
mod objects;
mod pieces;
mod refusals;
mod remote;
mod tags;
mod vectors;
mod waiting;
mod wall_time;

#[cfg(test)]
mod tests;

use std::ffi::{c_char, c_int, c_void};

pub use crate::flags::*;

// ---- Capabilities and flags ---------------------------------------------------------------------
pub const FI_MULTICAST: u64 = 1 << 5;
pub const FI_COLLECTIVE: u64 = 1 << 6;
pub const FI_MORE: u64 = 1 << 18;
pub const FI_PEEK: u64 = 1 << 19;
pub const FI_TRIGGER: u64 = 1 << 20;
pub const FI_FENCE: u64 = 1 << 21;
pub const FI_COMPLETION: u64 = 1 << 24;
pub const FI_EVENT: u64 = FI_COMPLETION;
pub const FI_INJECT: u64 = 1 << 25;
pub const FI_INJECT_COMPLETE: u64 = 1 << 26;
pub const FI_TRANSMIT_COMPLETE: u64 = 1 << 27;
pub const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub const FI_COMMIT_COMPLETE: u64 = 1 << 30;
pub const FI_MATCH_COMPLETE: u64 = 1 << 31;
pub const FI_HMEM: u64 = 1 << 47;
pub const FI_RMA_PMEM: u64 = 1 << 49;
pub const FI_SOURCE_ERR: u64 = 1 << 50;
pub const FI_LOCAL_COMM: u64 = 1 << 51;
pub const FI_REMOTE_COMM: u64 = 1 << 52;
pub const FI_SHARED_AV: u64 = 1 << 53;
pub const FI_RMA_EVENT: u64 = 1 << 56;
pub const FI_SOURCE: u64 = 1 << 57;
pub const FI_NAMED_RX_CTX: u64 = 1 << 58;
pub const FI_DIRECTED_RECV: u64 = 1 << 59;
pub const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;
pub const FI_PROV_SPECIFIC: u32 = 1 << 31;

pub const FI_MR_BASIC: c_int = 1;
pub const FI_MR_SCALABLE: c_int = 2;
pub const FI_MR_VIRT_ADDR: c_int = 1 << 4;
pub const FI_MR_ALLOCATED: c_int = 1 << 5;
pub const FI_MR_PROV_KEY: c_int = 1 << 6;

pub const FI_ORDER_SAS: u64 = 1 << 8;
/// Keeps reads and writes in order among one endpoint's atomic operations on the same remote
/// element.
pub const FI_ORDER_ATOMIC: u64 = 0xf << 36;

pub const FI_AV_MAP: c_int = 1;
pub const FI_AV_TABLE: c_int = 2;
pub const FI_PROGRESS_AUTO: c_int = 1;
pub const FI_PROGRESS_MANUAL: c_int = 2;
/// libfabric 2.0 and later.
pub const FI_PROGRESS_CONTROL_UNIFIED: c_int = 3;
pub const FI_THREAD_SAFE: c_int = 1;
pub const FI_THREAD_ENDPOINT: c_int = 5;
pub const FI_RM_ENABLED: c_int = 2;
pub const FI_EP_RDM: c_int = 3;
pub const FI_TC_BEST_EFFORT: u32 = 0x200;

pub const FI_WAIT_NONE: c_int = 0;
pub const FI_WAIT_UNSPEC: c_int = 1;
pub const FI_WAIT_FD: c_int = 3;
pub const FI_WAIT_YIELD: c_int = 5;

pub const FI_CLASS_FABRIC: usize = 1;
pub const FI_CLASS_DOMAIN: usize = 2;
pub const FI_CLASS_EP: usize = 3;
pub const FI_CLASS_AV: usize = 11;
pub const FI_CLASS_MR: usize = 12;
pub const FI_CLASS_EQ: usize = 13;
pub const FI_CLASS_CQ: usize = 14;
pub const FI_CLASS_CNTR: usize = 15;

/// Commands of `fi_control`.
pub const FI_GETOPSFLAG: c_int = 2;
pub const FI_SETOPSFLAG: c_int = 3;
pub const FI_GETWAIT: c_int = 5;
pub const FI_ENABLE: c_int = 6;
pub const FI_QUEUE_WORK: c_int = 11;
pub const FI_CANCEL_WORK: c_int = 12;
pub const FI_FLUSH_WORK: c_int = 13;
pub const FI_GETWAITOBJ: c_int = 16;
pub const FI_OPT_MIN_MULTI_RECV: c_int = 0;

// ---- Arguments ----------------------------------------------------------------------------------
#[repr(C)]
pub struct Iovec {
    pub base: *mut c_void,
    pub len: usize,
}

#[repr(C)]
pub struct Ioc {
    pub addr: *mut c_void,
    pub count: usize,
}

#[repr(C)]
pub struct TxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub inject_size: usize,
    pub size: usize,
    pub iov_limit: usize,
    pub rma_iov_limit: usize,
    pub tclass: u32,
}

#[repr(C)]
pub struct RxAttr {
    pub caps: u64,
    pub mode: u64,
    pub op_flags: u64,
    pub msg_order: u64,
    pub comp_order: u64,
    pub total_buffered_recv: usize,
    pub size: usize,
    pub iov_limit: usize,
}

#[repr(C)]
pub struct EpAttr {
    pub r#type: c_int,
    pub protocol: u32,
    pub protocol_version: u32,
    pub max_msg_size: usize,
    pub msg_prefix_size: usize,
    pub max_order_raw_size: usize,
    pub max_order_war_size: usize,
    pub max_order_waw_size: usize,
    pub mem_tag_format: u64,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub auth_key_size: usize,
    pub auth_key: *mut u8,
}

#[repr(C)]
pub struct DomainAttr {
    pub domain: *mut c_void,
    pub name: *mut c_char,
    pub threading: c_int,
    pub control_progress: c_int,
    pub data_progress: c_int,
    pub resource_mgmt: c_int,
    pub av_type: c_int,
    pub mr_mode: c_int,
    pub mr_key_size: usize,
    pub cq_data_size: usize,
    pub cq_cnt: usize,
    pub ep_cnt: usize,
    pub tx_ctx_cnt: usize,
    pub rx_ctx_cnt: usize,
    pub max_ep_tx_ctx: usize,
    pub max_ep_rx_ctx: usize,
    pub max_ep_stx_ctx: usize,
    pub max_ep_srx_ctx: usize,
    pub cntr_cnt: usize,
    pub mr_iov_limit: usize,
    pub caps: u64,
    pub mode: u64,
    pub auth_key: *mut u8,
    pub auth_key_size: usize,
    pub max_err_data: usize,
    pub mr_cnt: usize,
    pub tclass: u32,
}

#[repr(C)]
pub struct FabricAttr {
    pub fabric: *mut c_void,
    pub name: *mut c_char,
    pub prov_name: *mut c_char,
    pub prov_version: u32,
    pub api_version: u32,
}

#[repr(C)]
pub struct Info {
    pub next: *mut Info,
    pub caps: u64,
    pub mode: u64,
    pub addr_format: u32,
    pub src_addrlen: usize,
    pub dest_addrlen: usize,
    pub src_addr: *mut c_void,
    pub dest_addr: *mut c_void,
    pub handle: *mut Fid,
    pub tx_attr: *mut TxAttr,
    pub rx_attr: *mut RxAttr,
    pub ep_attr: *mut EpAttr,
    pub domain_attr: *mut DomainAttr,
    pub fabric_attr: *mut FabricAttr,
    pub nic: *mut c_void,
}

#[repr(C)]
pub struct AvAttr {
    pub r#type: c_int,
    pub rx_ctx_bits: c_int,
    pub count: usize,
    pub ep_per_node: usize,
    pub name: *const c_char,
    pub map_addr: *mut c_void,
    pub flags: u64,
}

#[repr(C)]
pub struct CqAttr {
    pub size: usize,
    pub flags: u64,
    pub format: c_int,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_cond: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
pub struct EqAttr {
    pub size: usize,
    pub flags: u64,
    pub wait_obj: c_int,
    pub signaling_vector: c_int,
    pub wait_set: *mut c_void,
}

#[repr(C)]
pub struct CntrAttr {
    pub events: c_int,
    pub wait_obj: c_int,
    pub wait_set: *mut c_void,
    pub flags: u64,
}

/// The part of `fi_mr_attr` that we use.
#[repr(C)]
pub struct MrAttr {
    pub mr_iov: *const Iovec,
    pub iov_count: usize,
    pub access: u64,
    pub offset: u64,
    pub requested_key: u64,
    pub context: *mut c_void,
}

#[repr(C)]
pub struct AtomicAttr {
    pub count: usize,
    pub size: usize,
}

#[repr(C)]
pub struct Msg {
    pub msg_iov: *const Iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct MsgTagged {
    pub msg_iov: *const Iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub tag: u64,
    pub ignore: u64,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct RmaIov {
    pub addr: u64,
    pub len: usize,
    pub key: u64,
}

#[repr(C)]
pub struct MsgRma {
    pub msg_iov: *const Iovec,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: usize,
    pub context: *mut c_void,
    pub data: u64,
}

#[repr(C)]
pub struct MsgAtomic {
    pub msg_iov: *const Ioc,
    pub desc: *mut *mut c_void,
    pub iov_count: usize,
    pub addr: u64,
    /// Here `len` counts elements.
    pub rma_iov: *const RmaIov,
    pub rma_iov_count: usize,
    pub datatype: c_int,
    pub op: c_int,
    pub context: *mut c_void,
    pub data: u64,
}

/// `fi_cq_tagged_entry`; the other formats are prefixes of it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CqEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
}

/// Bytes of an entry, by `fi_cq_format`.
pub const CQ_ENTRY_BYTES: [usize; 5] = [8, 8, 24, 40, 48];

/// `fi_cq_err_entry` as of 1.17; later versions append fields.
#[repr(C)]
pub struct CqErrEntry {
    pub op_context: *mut c_void,
    pub flags: u64,
    pub len: usize,
    pub buf: *mut c_void,
    pub data: u64,
    pub tag: u64,
    pub olen: usize,
    pub err: c_int,
    pub prov_errno: c_int,
    pub err_data: *mut c_void,
    pub err_data_size: usize,
}

// ---- Objects ------------------------------------------------------------------------------------
/// A table of operations: its size in bytes, and function pointers.
#[repr(C)]
pub struct Ops<const N: usize> {
    pub size: usize,
    pub calls: [*const c_void; N],
}

// SAFETY: tables never change, and they point to functions.
unsafe impl<const N: usize> Sync for Ops<N> {}

impl<const N: usize> Ops<N> {
    pub const fn new(calls: [*const c_void; N]) -> Self {
        let size = size_of::<Self>();
        Self { size, calls }
    }
}

/// Pointer to a table of operations of any length.
pub type Table = *const c_void;

#[repr(C)]
pub struct Fid {
    pub fclass: usize,
    pub context: *mut c_void,
    pub ops: Table,
}

#[repr(C)]
pub struct FidFabric {
    pub fid: Fid,
    pub ops: Table,
    pub api_version: u32,
}

#[repr(C)]
pub struct FidDomain {
    pub fid: Fid,
    pub ops: Table,
    pub mr: Table,
}

/// Address vectors, event queues, completion queues and counters.
#[repr(C)]
pub struct FidSimple {
    pub fid: Fid,
    pub ops: Table,
}

#[repr(C)]
pub struct FidMr {
    pub fid: Fid,
    pub mem_desc: *mut c_void,
    pub key: u64,
}

#[repr(C)]
pub struct FidEp {
    pub fid: Fid,
    pub ops: Table,
    pub cm: Table,
    pub msg: Table,
    pub rma: Table,
    pub tagged: Table,
    pub atomic: Table,
    pub collective: Table,
}

#[repr(C)]
pub struct Provider {
    pub version: u32,
    pub fi_version: u32,
    pub context: [*mut c_void; 4],
    pub name: *const c_char,
    pub getinfo: *const c_void,
    pub fabric: *const c_void,
    pub cleanup: *const c_void,
}

// SAFETY: after the provider was handed over, only libfabric changes it.
unsafe impl Sync for Provider {}
// SAFETY: as above.
unsafe impl Send for Provider {}
