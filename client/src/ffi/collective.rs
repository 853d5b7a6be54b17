//! Collective operations for C.

use std::ffi::c_int;

use phitwire_framing::door::{CollectiveRequest, Reduction};

use super::{PHW_ARGUMENT, PhwLocal, PhwNic, ask};

/// Makes the NIC node number `rank` of a tree over the NICs whose numbers are in the data, two
/// bytes each: engine 0 to 3, up to `branching` children (1 to 32), an `epoch` that no earlier tree
/// of the engine had, and how long to wait for others. All but `rank` is the same for all.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
#[allow(clippy::too_many_arguments, reason = "C has no named arguments")]
pub unsafe extern "C" fn phw_collective_set_up(
    nic: *mut PhwNic,
    name: u64,
    engine: u8,
    rank: u16,
    branching: u8,
    epoch: u32,
    patience_ms: u32,
    processors: PhwLocal,
) -> c_int {
    let request = CollectiveRequest::SetUp {
        engine,
        rank,
        branching,
        epoch,
        patience_ms,
        processors: processors.into(),
    };
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.collective(name, request)) }
}

/// Joins the engine's next operation: one of PhwReduction, the same for all. The completion's word
/// is the result.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_collective_join(
    nic: *mut PhwNic,
    name: u64,
    engine: u8,
    reduction: u8,
    word: u64,
    location: u64,
) -> c_int {
    let Some(op) = Reduction::from_code(reduction.into()) else {
        return PHW_ARGUMENT;
    };
    let request = CollectiveRequest::Join {
        engine,
        op,
        word,
        location,
    };
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.collective(name, request)) }
}

/// Releases the engine when nothing is in flight there.
#[unsafe(no_mangle)]
#[allow(clippy::missing_safety_doc, reason = "as for phw_processor")]
pub unsafe extern "C" fn phw_collective_leave(nic: *mut PhwNic, name: u64, engine: u8) -> c_int {
    let request = CollectiveRequest::Leave { engine };
    // SAFETY: guaranteed by the caller.
    unsafe { ask(nic, |nic| nic.collective(name, request)) }
}
