//! Rings under `phitwire sim`, over encoded links.

use super::Packet;
use super::network::Ring;
use super::router::{RingCore, RingRouter};
use phitwire::catalogue::Simulated;
use phitwire::net::{NodeRef, PlanError, Runtime};
use phitwire::packets::{PacketLinkConfig, PacketModel};
use phitwire::time::Time;

/// The simulator's model of rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingModel;

impl PacketModel for RingModel {
    type Topology = Ring;
    type Packet = Packet;
    type Core = RingCore;

    const LINK_CYCLES: u32 = 4;

    fn router(ring: &Ring, chip: u32, runtime: &Runtime) -> Result<RingRouter, PlanError> {
        Ok(RingRouter::new(ring.router(chip, runtime)?, Time::ZERO))
    }

    fn nic_link(ring: &Ring, nic: u32, runtime: &Runtime) -> Result<PacketLinkConfig, PlanError> {
        let mut ports = ring.ports(NodeRef::Processor(nic), runtime)?;
        Ok(ports.remove(0).1)
    }
}

impl Simulated for RingModel {}
