//! Collective runs on the collective unit: setup, repeated joins and reports.

use super::super::amo_cache::CachedMemory;
use super::super::virtual_node::{Target, VirtualNodes};
use super::driver::{Driver, RUN_KEY};
use super::engine::Joiner;
use super::tree::{CollectiveTree, TreePosition};
use super::{CollectiveUnit, JoinError};
use phitwire::nic::{CollectiveReport, CollectiveSpec, CollectiveSpecError};
use phitwire::time::{Duration, Time};

impl CollectiveUnit {
    /// Begins a run.
    ///
    /// # Errors
    /// See [`CollectiveSpecError`].
    pub(crate) fn begin_run(
        &mut self,
        now: Time,
        spec: CollectiveSpec,
        nodes: &VirtualNodes,
    ) -> Result<(), CollectiveSpecError> {
        spec.validate()?;
        match &self.driver {
            Some(driver) if !driver.is_done() => {
                return Err(CollectiveSpecError::Busy(driver.run()));
            }
            Some(driver) if driver.run() == spec.run => {
                return Err(CollectiveSpecError::SameRun(spec.run));
            }
            _ => {}
        }
        let mut rank = None;
        let mut participants = Vec::with_capacity(spec.nics.len());
        for (index, &number) in spec.nics.iter().enumerate() {
            let node = nodes.get(number);
            let node = node.ok_or(CollectiveSpecError::VirtualNode(number))?;
            if node == self.own {
                rank = Some(index as u32);
            }
            participants.push(node);
        }
        let rank = rank.ok_or(CollectiveSpecError::NotParticipant)?;
        let CollectiveSpec {
            branching,
            root,
            run,
            ..
        } = spec;
        let position = TreePosition::along(&participants, branching, root, rank);
        let position = position.ok_or(CollectiveSpecError::Root(root))?;
        let target = |rank: u32| Target::Node(participants[rank as usize]);
        let tree = CollectiveTree {
            parent: position.parent.map(target),
            children: position.children.into_iter().map(target).collect(),
            key: RUN_KEY,
            epoch: run,
            patience: Duration::from_ns(spec.patience_ns),
        };
        // The previous run is over, so release its engine.
        self.driver = None;
        self.configure(spec.engine.into(), &tree, |target| nodes.resolve(target))
            .map_err(|error| CollectiveSpecError::Tree(error.to_string()))?;
        self.driver = Some(Driver::new(spec, rank, now, self.between));
        Ok(())
    }

    /// Ends the run at all participants after the next operation that this one joins. Returns the
    /// engine if that was already requested and the run still continues.
    pub(crate) fn stop_run(&mut self) -> Option<usize> {
        let driver = self.driver.as_mut().filter(|driver| !driver.is_done())?;
        let again = driver.stop();
        again.then(|| driver.engine())
    }

    pub(crate) fn handle_suspension(&mut self, now: Time, span: Duration) {
        if let Some(driver) = &mut self.driver {
            driver.handle_suspension(now, span);
        }
    }

    pub(crate) fn report(&self) -> Option<CollectiveReport> {
        self.driver.as_ref().map(Driver::report)
    }

    pub(super) fn is_driven(&self, engine: usize) -> bool {
        let driver = self.driver.as_ref();
        driver.is_some_and(|driver| driver.engine() == engine && !driver.is_done())
    }

    /// Whether the run has an operation to join.
    pub(super) fn has_turns(&self) -> bool {
        self.driver.as_ref().and_then(Driver::due).is_some()
    }

    /// Joins the next operation of a run if it is due. Returns whether it did.
    pub(super) fn drive(&mut self, now: Time, memory: &mut CachedMemory) -> bool {
        let Some(driver) = &mut self.driver else {
            return false;
        };
        let engine = driver.engine();
        if driver.due().is_some_and(|at| at > now) {
            return false;
        }
        if driver.due().is_none() {
            let idle = self.is_idle(engine);
            if let Some(driver) = self.driver.as_mut().filter(|_| idle) {
                driver.drained();
            }
            return false;
        }
        let join = driver.next(now);
        match self.join(now, engine, Joiner::Driver, &join, memory) {
            Ok(_) => true,
            Err(JoinError::Broken(failure)) => {
                if let Some(driver) = &mut self.driver {
                    driver.fail(failure);
                }
                false
            }
            Err(error) => unreachable!("the engine belongs to the driver: {error}"),
        }
    }
}
