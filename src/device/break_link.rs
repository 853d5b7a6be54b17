//! Faults of links, by port.

use super::DeviceError;
use crate::link::{LinkFault, NodeLink};
use crate::node::PortId;
use crate::time::Time;

/// Applies `fault` to the link of `port`.
///
/// # Errors
/// [`DeviceError::NoSuchFault`].
pub fn break_link<E: NodeLink>(
    end: &mut E,
    now: Time,
    (port, fault): (PortId, LinkFault),
) -> Result<(), DeviceError> {
    let suffered = end.apply_fault(now, fault);
    let link = E::LINK;
    suffered
        .then_some(())
        .ok_or(DeviceError::NoSuchFault { port, link })
}
