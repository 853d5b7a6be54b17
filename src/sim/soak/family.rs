//! The soak tests of machines.

use core::fmt::Debug;

use super::{Case, CaseReport, Failure, Keep, Late, Soaked, shrink};
use crate::time::Time;

pub trait SoakCase: Debug + Send + Sync {
    /// Runs the case; `trace` gets every harm and every node event, with its time.
    ///
    /// # Errors
    /// See [`Failure`].
    fn run(&self, trace: &mut dyn FnMut(Time, &str)) -> Result<CaseReport, Failure>;

    /// The case with only the parts in `keep`. Indices of harms that the case does not have are
    /// ignored.
    #[must_use]
    fn reduced(&self, keep: &Keep) -> Box<dyn SoakCase>;

    /// The parts that can be left out: harms, the impairment if any, messages.
    fn whole(&self) -> Keep;
}

impl dyn SoakCase + '_ {
    /// The smallest case that still fails: leaves out harms one by one, then the impairment, then
    /// halves the messages, as long as `fails` returns true. Calls `fails` a few dozen times at
    /// most.
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

/// A family of cases: each seed gives one.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    pub name: &'static str,
    /// Name of the machine.
    pub machine: &'static str,
    /// Whether links carry frames, so that late copies can be made.
    pub has_frames: bool,
    pub case: fn(u64, Late) -> Box<dyn SoakCase>,
}

impl Family {
    /// A family over networks of machine `M`, with harm to links.
    pub const fn over_links<M: Soaked>(name: &'static str, machine: &'static str) -> Self {
        Self {
            name,
            machine,
            has_frames: true,
            case: |seed, how| Box::new(M::case(seed, how)),
        }
    }
}
