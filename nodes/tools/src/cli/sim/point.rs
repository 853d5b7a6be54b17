//! Progress of one point of a run.

use phitwire::sim::direct::{Load, SimPhase, SimProgress};

use crate::cli::progress::Shown;

/// A point of a run, whose progress is shown.
pub(super) struct Point<'a> {
    shown: &'a Shown,
    name: String,
}

impl<'a> Point<'a> {
    /// Point `number` of `points`, counted from one.
    pub(super) fn new(
        shown: &'a Shown,
        (number, of): (usize, usize),
        chosen: Option<&str>,
        load: Load,
    ) -> Self {
        let mut name = if of > 1 {
            format!("{number}/{of} ")
        } else {
            String::new()
        };
        name.push_str(&format!("load {}", load.fraction()));
        if let Some(chosen) = chosen {
            name.push_str(&format!(" {chosen}"));
        }
        Self { shown, name }
    }

    pub(super) fn building(&self) {
        let doing = format!("{} building the network", self.name);
        self.shown.show(&doing, 0, 0, "");
    }

    pub(super) fn show(&self, seed: u64, progress: SimProgress) {
        let phase = match progress.phase {
            SimPhase::Warmup => "warming up",
            SimPhase::Measure => "measuring",
            SimPhase::Drain => "draining",
            SimPhase::Empty => "emptying",
        };
        let seed = if seed == 0 {
            String::new()
        } else {
            format!(" seed +{seed}")
        };
        let doing = format!("{}{seed} {phase}", self.name);
        self.shown
            .show(&doing, progress.cycles, progress.limit, "cycles");
    }
}
