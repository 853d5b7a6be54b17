//! Virtual channels of deterministic packets: the choice of VC0 or VC1 where a packet enters a
//! ring, such that rings are free of cycles and the two channels carry equal load ("The Cray T3E
//! Network", sec. 3.2 and 4).
//!
//! A [`Ring`] has two directions, each a [`UnidirectionalRing`] with a dateline. [`RingTables`]
//! contain the channels of its routes, [`VcTables`] those of both directions in the routers'
//! format. [`Annealing`] searches for tables of low [`Balance`] at every [`Level`], and
//! [`optimised`] does so with the settings of the machine. [`table1`] is T3E table 1, which gives
//! the achieved balance.

pub mod anneal;
pub mod balance;
pub mod ring;
pub mod table1;
pub mod tables;

pub use anneal::Annealing;
pub use balance::{Balance, Level};
pub use ring::{NODES, Ring, RingError, UnidirectionalRing};
pub use tables::{Entries, RingTables, VcTables};

/// Seed and effort of a search. By default they are those of the machine's tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tries {
    pub seed: u64,
    /// [`Annealing::flips`], if given.
    pub flips: Option<u32>,
}

/// The tables of the machine for `ring`, always the same. For a ring in Z with a node of a partial
/// plane, `final_hops` keeps the entry of each router's own ordinate at VC0.
///
/// The search takes some milliseconds per direction.
pub fn optimised(ring: Ring, final_hops: bool) -> VcTables {
    searched(ring, final_hops, Tries::default())
}

/// Like [`optimised`], but with other effort, so that it may take longer.
pub fn searched(ring: Ring, final_hops: bool, tries: Tries) -> VcTables {
    let machine = Annealing::machine(ring.ordinates().len());
    let annealing = Annealing {
        final_hops,
        flips: tries.flips.unwrap_or(machine.flips),
        ..machine
    };
    VcTables::new(ring, |ring| annealing.run(ring, tries.seed))
}
