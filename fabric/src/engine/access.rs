//! Accesses of a program to another program's memory.

use phitwire_client::door::Remote;

use super::elements::Form;
use crate::flags::{FI_ATOMIC, FI_READ, FI_RMA, FI_WRITE};

/// Maximum number of element bytes of an atomic operation: two operands of this size fit in one
/// message.
pub const MOST_ELEMENT_BYTES: usize = 4000;

/// An address in another program's memory.
#[derive(Clone, Copy, Debug)]
pub struct Far {
    /// The peer, by its number in the address vector.
    pub number: u64,
    pub address: u64,
    /// The key of the registered memory.
    pub key: u64,
}

/// Another program's memory, in the form in which NICs address it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub peer: usize,
    pub key: u64,
    /// The address of its first byte.
    pub at: Remote,
}

/// An atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// libfabric's number of the element type.
    pub datatype: u8,
    /// libfabric's number of the operation.
    pub op: u8,
    /// The call that requests the operation.
    pub form: Form,
    pub count: usize,
}

/// The completion flags of an operation on remote memory.
pub const fn flags_of(kind: u64, reads: bool) -> u64 {
    let direction = if reads { FI_READ } else { FI_WRITE };
    match kind {
        FI_ATOMIC => FI_ATOMIC | direction,
        _ => FI_RMA | direction,
    }
}
