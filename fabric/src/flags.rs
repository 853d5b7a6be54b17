//! libfabric's flags of operations and completions that the engine uses; `fi_endpoint(3)`,
//! `fi_cq(3)` and `fi_msg(3)` describe them.
#![allow(
    missing_docs,
    reason = "the names are those of libfabric's manual pages"
)]

pub const FI_MSG: u64 = 1 << 1;
pub const FI_RMA: u64 = 1 << 2;
pub const FI_TAGGED: u64 = 1 << 3;
pub const FI_ATOMIC: u64 = 1 << 4;
pub const FI_READ: u64 = 1 << 8;
pub const FI_WRITE: u64 = 1 << 9;
pub const FI_RECV: u64 = 1 << 10;
pub const FI_SEND: u64 = 1 << 11;
pub const FI_REMOTE_READ: u64 = 1 << 12;
pub const FI_REMOTE_WRITE: u64 = 1 << 13;
pub const FI_MULTI_RECV: u64 = 1 << 16;
pub const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub const FI_CLAIM: u64 = 1 << 59;
pub const FI_DISCARD: u64 = 1 << 58;
pub const FI_ADDR_NOTAVAIL: u64 = u64::MAX;
pub const FI_ETOOSMALL: i32 = 257;
