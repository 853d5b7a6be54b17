//! The route tables of every router, also for a network with failed links and routers.
//!
//! # Ports of an entry
//!
//! A packet follows a cycle-free order of channels: in each class (source group 0, towards the root
//! 1, from the root 2, target group 3) green before black before blue. Every port of every entry
//! leads to a router from which the packet can continue *within that order*, so that no packet ever
//! reaches a router without a path for it. This has two consequences:
//!
//! - Within a group a minimal path is one green link and then one black link. If that green or that
//!   black link has failed, the pair communicates through a root (classes 1 and 2).
//! - There is one global entry per destination *group*. So a blue link is used only if its arrival
//!   router reaches every router of that group by one green and one black link. A failed green link
//!   excludes its two routers as arrival routers; a failed router excludes the other routers of its
//!   chassis. If a bundle has no usable link left, the group is reached through a third group.
//!
//! A router with its own blue links to the destination's group uses only those ("reducing the
//! minimal path length to three", XC white paper, "Cray XC Routing"). A router without such links
//! uses every port that leads to a router with them in one or two steps.

mod global;
mod local;
mod report;

use std::sync::Arc;

use super::model::{Dragonfly, Shape};
use super::wiring::DragonflyWiring;
use crate::route::registers::{AriesRegisters, PortMask, RouteTables};
use global::Reaching;
use local::LocalGroup;

pub use phitwire::net::Faults;
pub use report::RouteReport;

/// The registers of all routers, and the pairs that they do not connect.
#[derive(Clone, Debug)]
pub struct Routed {
    /// By router number in the machine. Absent and failed routers have empty tables.
    pub registers: Vec<AriesRegisters>,
    pub report: RouteReport,
    /// By group: the routers that global entries for it reach.
    coverage: Vec<u128>,
}

/// The tables of one router during construction.
#[derive(Clone, Debug, Default)]
struct Making {
    processor: RouteTables,
    green: RouteTables,
    black: RouteTables,
    /// Non-minimal global entries for packets from a blue link.
    blue_non_minimal: Vec<PortMask>,
}

impl Making {
    fn new(routers: usize, groups: usize) -> Self {
        let empty = RouteTables {
            local_minimal: vec![0; routers],
            local_non_minimal: vec![0; routers],
            global_minimal: vec![0; groups],
            global_non_minimal: vec![0; groups],
        };
        Self {
            processor: empty.clone(),
            green: empty.clone(),
            black: empty,
            blue_non_minimal: vec![0; groups],
        }
    }

    /// The tables by kind of the arrival port. Those for blue ports are often the same as the
    /// processor's.
    fn finish(self) -> [Arc<RouteTables>; 4] {
        let blue =
            (self.blue_non_minimal != self.processor.global_non_minimal).then(|| RouteTables {
                global_non_minimal: self.blue_non_minimal,
                ..self.processor.clone()
            });
        let processor = Arc::new(self.processor);
        let blue = blue.map_or_else(|| Arc::clone(&processor), Arc::new);
        [processor, Arc::new(self.green), Arc::new(self.black), blue]
    }
}

impl Dragonfly {
    /// Computes the registers of every router for a network with the failed parts `faults`.
    pub fn route(&self, faults: &Faults) -> Routed {
        self.route_with(&DragonflyWiring::new(self), faults)
    }

    /// Like [`route`](Self::route), with existing wiring.
    pub fn route_with(&self, wiring: &DragonflyWiring, faults: &Faults) -> Routed {
        let shape = &self.shape;
        let groups: Vec<LocalGroup> = (0..shape.groups)
            .map(|group| LocalGroup::new(self, wiring, faults, group))
            .collect();
        let mut making =
            vec![Making::new(shape.group_routers(), usize::from(shape.groups)); shape.routers()];
        for (group, routers) in groups.iter().zip(making.chunks_mut(shape.group_routers())) {
            group.fill(routers);
        }
        let coverage: Vec<u128> = (0..groups.len())
            .map(|to| global::coverage(&groups, to))
            .collect();
        let mut reaching = Reaching::new(shape.routers());
        for (to, &covered) in coverage.iter().enumerate() {
            reaching.towards(&groups, to, covered);
            reaching.fill(&groups, to, &mut making);
        }
        let registers: Vec<AriesRegisters> = making
            .into_iter()
            .enumerate()
            .map(|(router, tables)| self.registers_of(wiring, router as u32, tables))
            .collect();
        let report = report::report(self, wiring, faults, &registers, &coverage);
        Routed {
            registers,
            report,
            coverage,
        }
    }

    fn registers_of(
        &self,
        wiring: &DragonflyWiring,
        router: u32,
        tables: Making,
    ) -> AriesRegisters {
        AriesRegisters {
            group: self.shape.group_of(router),
            router: self.shape.local_of(router),
            ports: wiring.kinds(router),
            tables: tables.finish(),
            black_links: self.generator.map_or(1, |g| g.black_links).max(1),
            bias: self.bias,
            blue_classes: self.classes.blue,
            root_classes: self.classes.root,
            local_up_class: self.classes.local_up,
            forward_progress_ns: self.settings.forward_progress_ms.saturating_mul(1_000_000),
        }
    }
}

impl Routed {
    /// Whether packets from other groups reach a router, if there are entries for its group.
    pub(super) fn covers(&self, router: u32, shape: &Shape) -> bool {
        let covered = self.coverage.get(usize::from(shape.group_of(router)));
        covered.is_some_and(|covered| covered >> shape.local_of(router) & 1 != 0)
    }

    /// Whether packets from one router reach another.
    pub fn joins(&self, shape: &Shape, from: u32, to: u32) -> bool {
        self.reached(from, shape.group_of(to)) >> shape.local_of(to) & 1 != 0
    }

    /// The routers of `group` that packets from `router` reach, as a bit mask of their numbers in
    /// the group.
    pub fn reached(&self, router: u32, group: u16) -> u128 {
        let Some(registers) = self.registers.get(router as usize) else {
            return 0;
        };
        report::reached(registers, group, &self.coverage)
    }
}
