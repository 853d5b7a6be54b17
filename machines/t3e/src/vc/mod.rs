//! Virtual channels of deterministic packets: which of VC0 and VC1 a packet takes where it enters a
//! ring, so that rings are free of cycles and the two channels carry alike (T3E paper, sections 3.2
//! and 4).
//!
//! A [`Ring`] has two ways round it, each a [`UnidirectionalRing`] with a dateline.
//! [`RingTables`] hold the channels of its routes, [`VcTables`] those of both ways as routers load
//! them. [`Annealing`] looks for tables of low [`Balance`] at every [`Level`], and [`optimised`] is
//! that with the settings of the machine. [`table1`] is the paper's table of what they reach.

pub mod anneal;
pub mod balance;
pub mod ring;
pub mod table1;
pub mod tables;

pub use anneal::Annealing;
pub use balance::{Balance, Level};
pub use ring::{NODES, Ring, RingError, UnidirectionalRing};
pub use tables::{Entries, RingTables, VcTables};

/// How much a search tries, where it is not what the machine's tables are made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    /// What it draws from.
    pub seed: u64,
    /// [`Annealing::flips`], if they are said.
    pub flips: Option<u32>,
}

/// The tables of the machine for `ring`, always the same ones. Where it is a ring of Z with a node
/// of a partial plane, `final_hops` keeps the entry of each router's own ordinate at VC0.
///
/// This takes some milliseconds for each way round it.
pub fn optimised(ring: Ring, final_hops: bool) -> VcTables {
    searched(ring, final_hops, Tries::default())
}

/// The same by other tries, for which it may take longer.
pub fn searched(ring: Ring, final_hops: bool, tries: Tries) -> VcTables {
    let machine = Annealing::machine(ring.ordinates().len());
    let annealing = Annealing {
        final_hops,
        flips: tries.flips.unwrap_or(machine.flips),
        ..machine
    };
    VcTables::new(ring, |ring| annealing.run(ring, tries.seed))
}
