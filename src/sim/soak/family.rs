//! What machines have to be soaked.

use core::fmt::Debug;

use super::{Case, CaseReport, Failure, Keep, Late, Soaked, shrink};
use crate::time::Time;

/// A case of any family.
pub trait SoakCase: Debug + Send + Sync {
    /// Runs the case; `trace` hears of every harm and of every event of a node, with its time.
    ///
    /// # Errors
    /// See [`Failure`].
    fn run(&self, trace: &mut dyn FnMut(Time, &str)) -> Result<CaseReport, Failure>;

    /// The case with no more than `keep` names. Harms that it does not have are not kept.
    #[must_use]
    fn reduced(&self, keep: &Keep) -> Box<dyn SoakCase>;

    /// Everything that can be left out of it: its harms, an impairment if it has one, its messages.
    fn whole(&self) -> Keep;
}

impl dyn SoakCase + '_ {
    /// The least that still fails: leaves out harms one by one, then the impairment, then halves
    /// the messages, as long as `fails` says so of what is left. `fails` is asked a few dozen times
    /// at most.
    pub fn shrink(&self, mut fails: impl FnMut(&dyn SoakCase) -> bool) -> Keep {
        shrink::least(self.whole(), |keep| fails(&*self.reduced(keep)))
    }
}

impl<M: Soaked> SoakCase for Case<M> {
    fn run(&self, trace: &mut dyn FnMut(Time, &str)) -> Result<CaseReport, Failure> {
        self.run(trace)
    }

    fn reduced(&self, keep: &Keep) -> Box<dyn SoakCase> {
        let mut case = self.clone();
        if let Some(kept) = &keep.harms {
            let harms = self.harms.iter().enumerate();
            let left = harms.filter(|(index, _)| kept.contains(index));
            case.harms = left.map(|(_, harm)| harm.clone()).collect();
        }
        if keep.clear {
            case.impairment.clear();
        }
        if let Some(messages) = keep.messages {
            case.traffic.count = messages;
            if let Some(spec) = &mut case.collectives {
                spec.count = spec.count.min(messages);
            }
        }
        Box::new(case)
    }

    fn whole(&self) -> Keep {
        Keep {
            harms: Some((0..self.harms.len()).collect()),
            clear: self.impairment.is_empty(),
            messages: Some(self.traffic.count),
        }
    }
}

/// A family of cases: a seed makes one of each.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// The word for its machine.
    pub machine: &'static str,
    /// Whether links carry frames, which can come again.
    pub has_frames: bool,
    /// The case of a seed.
    pub case: fn(u64, Late) -> Box<dyn SoakCase>,
}

impl Family {
    /// Networks of a machine over links under harm.
    pub const fn over_links<M: Soaked>(name: &'static str, machine: &'static str) -> Self {
        Self {
            name,
            machine,
            has_frames: true,
            case: |seed, how| Box::new(M::case(seed, how)),
        }
    }
}
