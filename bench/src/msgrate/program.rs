//! A program at the door of a NIC, and its messages in flight.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use phitwire::nic::Destinations;
use phitwire_client::door::{Access, Completion, Local, Status};
use phitwire_client::{Error, Nic, Options};
use phitwire_nodes::run_dir::LabDir;

use super::door_error::DoorError;

/// Maximum time for registering memory, and time after which a message counts as lost for good;
/// requests time out earlier.
pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// Number of slots that messages to one target may hold for each free slot of the source.
const PARTS_HELD: usize = 4;
/// Maximum number of draws for a message, since destinations that hold too many slots are skipped.
const MOST_TRIES: usize = 16;

/// A slot, and the message in flight that occupies it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) began: Instant,
    pub(super) number: u64,
    /// The target program.
    pub(super) to: usize,
}

/// A program at a door.
pub(super) struct Program {
    pub(super) node: String,
    pub(super) nic: Nic,
    /// Handle of the program's memory.
    pub(super) handle: u16,
    /// Destinations of the program; `None` if it only receives.
    pub(super) destinations: Option<Destinations>,
    pub(super) slots: Vec<Slot>,
    pub(super) free: Vec<usize>,
    pub(super) under_way: usize,
    /// Number of slots held by messages to each program, in flight or lost for good.
    pub(super) held: Vec<usize>,
    pub(super) sent: u64,
    pub(super) is_gone: bool,
}

/// Attaches to the door of NIC `node`, with memory of `data_bytes`.
pub(super) fn attach(lab: &LabDir, node: &str, data_bytes: u64) -> Result<Nic, DoorError> {
    let options = Options {
        job: u64::from(std::process::id()) << 32 | 0x7261_7465,
        member: None,
        data_bytes,
    };
    Ok(Nic::attach(lab.door(node)?, &options)?)
}

impl Program {
    /// A program that keeps up to `window` messages in flight; 0 if it only receives.
    pub(super) fn new(
        node: &str,
        nic: Nic,
        destinations: Option<Destinations>,
        window: usize,
    ) -> Self {
        let (began, number, to) = (Instant::now(), 0, 0);
        Self {
            node: node.to_owned(),
            nic,
            handle: 0,
            destinations,
            slots: vec![Slot { began, number, to }; window],
            free: (0..window).collect(),
            under_way: 0,
            held: Vec::new(),
            sent: 0,
            is_gone: false,
        }
    }

    /// The target of the next message: the next destination that does not hold too many slots. So
    /// that a dead target does not take all slots, each may hold at most [`PARTS_HELD`] times as
    /// many as are free (dynamic thresholds). A single destination may hold all.
    pub(super) fn next_target(&mut self, by_processor: &HashMap<u16, usize>) -> Option<usize> {
        for _ in 0..MOST_TRIES {
            let to = self.destinations.as_mut()?.next()?;
            let to = *by_processor.get(&to)?;
            if self.may_send(to) {
                return Some(to);
            }
        }
        None
    }

    pub(super) fn may_send(&self, to: usize) -> bool {
        let is_only_one = |d: &Destinations| d.all().len() == 1;
        match self.destinations.as_ref().is_some_and(is_only_one) {
            true => !self.free.is_empty(),
            false => self.held[to] < PARTS_HELD * self.free.len(),
        }
    }

    pub(super) fn failed(&self, error: Error) -> DoorError {
        let node = self.node.clone();
        DoorError::Nic { node, error }
    }

    /// Gives the others access to the first bytes of the program's memory.
    pub(super) fn register(&mut self, bytes: u64) -> Result<(), DoorError> {
        let part = Local { offset: 0, bytes };
        let asked = self.nic.register(0, part, Access::ALL);
        asked.map_err(|error| self.failed(error))?;
        match self.nic.wait(Some(PATIENCE)) {
            Ok(Some(Completion::End {
                status: Status::Done,
                word,
                ..
            })) => self.handle = word as u16,
            Ok(Some(Completion::End { status, .. })) => {
                return Err(DoorError::Register(self.node.clone(), status));
            }
            Ok(_) => return Err(DoorError::Silent(self.node.clone())),
            Err(error) => return Err(self.failed(error)),
        }
        Ok(())
    }
}
