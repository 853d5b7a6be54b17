//! Networks of a machine besides the packet network: barriers, and access to registers.

use core::fmt;

use super::model::NodeRef;

/// A register of a router and its intended value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisterValue {
    pub node: NodeRef,
    pub register: String,
    pub value: u64,
}

/// A barrier among some processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierPlan {
    /// Registers of all routers, including those that take no part.
    pub registers: Vec<RegisterValue>,
    /// A one-line summary.
    pub summary: String,
}

/// A network whose routers carry barriers, and maintenance packets that access registers of other
/// routers.
pub trait SideNetworks: fmt::Debug {
    /// Number of barrier units in each router; the first is unit 0.
    fn units(&self) -> u8;

    /// Registers of all routers for a barrier of `unit` among NICs, each with its present number,
    /// over the links for which `works` returns true. An empty list of NICs frees the unit.
    ///
    /// # Errors
    /// Why this barrier is impossible.
    fn barrier(
        &self,
        unit: u8,
        nics: &[(NodeRef, u16)],
        works: &dyn Fn(usize) -> bool,
    ) -> Result<BarrierPlan, String>;

    /// A path for maintenance packets between two routers over the links for which `works` returns
    /// true, in the machine's notation.
    fn way(&self, from: NodeRef, to: NodeRef, works: &dyn Fn(usize) -> bool) -> Option<Vec<i8>>;
}
