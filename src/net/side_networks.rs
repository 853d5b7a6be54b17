//! Networks that a machine has beside the one of packets: barriers, and the way to registers.

use core::fmt;

use super::model::NodeRef;

/// A register of a router, and what it is to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterValue {
    /// The router.
    pub node: NodeRef,
    /// The register's name.
    pub register: String,
    /// Its value.
    pub value: u64,
}

/// What is between some processors, for a barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierPlan {
    /// Registers of all routers, also of those that have no part in it.
    pub registers: Vec<RegisterValue>,
    /// In a line.
    pub summary: String,
}

/// A network whose routers carry barriers, and maintenance packets that read and write registers of
/// other routers.
pub trait SideNetworks: fmt::Debug {
    /// Units of the routers, numbered from 0.
    fn units(&self) -> u8;

    /// Registers of all routers for a barrier of `unit` among network interfaces, each with the
    /// number that it has now, by the links that `works` allows; of nobody, those that free the
    /// unit.
    ///
    /// # Errors
    /// In words, why there is no such barrier.
    fn barrier(
        &self,
        unit: u8,
        nics: &[(NodeRef, u16)],
        works: &dyn Fn(usize) -> bool,
    ) -> Result<BarrierPlan, String>;

    /// A way for maintenance packets from one router to another, by the links that `works` allows,
    /// as devices take it.
    fn way(&self, from: NodeRef, to: NodeRef, works: &dyn Fn(usize) -> bool) -> Option<Vec<i8>>;
}
