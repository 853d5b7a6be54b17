//! Collective operations of a node.

use super::collective::{CollectiveCompletion, CollectiveTree, Join, JoinError, Joiner, TreeError};
use super::interface::Interface;
use super::node::AriesNic;
use phitwire::nic::{CollectiveReport, CollectiveSpec, CollectiveSpecError};
use phitwire::time::Time;

impl Interface {
    pub(crate) fn set_up_collective(
        &mut self,
        engine: usize,
        tree: &CollectiveTree,
    ) -> Result<(), TreeError> {
        let nodes = &self.virtual_nodes;
        self.collective
            .configure(engine, tree, |target| nodes.resolve(target))
    }

    /// Whether requests may be posted in the current period.
    pub(super) fn may_ask(&mut self, now: Time) -> bool {
        let slab = &mut self.requester.outstanding.slab;
        slab.advance(now);
        slab.is_open()
    }

    pub(crate) fn join(&mut self, now: Time, engine: usize, join: &Join) -> Result<u32, JoinError> {
        let memory = &mut self.responder.memory;
        let joiner = Joiner::User(join.user);
        let sequence = self.collective.join(now, engine, joiner, join, memory)?;
        self.advance_collective(now);
        Ok(sequence)
    }

    pub(crate) fn stop_collective(&mut self, now: Time, engine: usize) {
        self.collective.stop(now, engine);
        self.advance_collective(now);
    }

    pub(super) fn leave_collective(&mut self, now: Time, engine: usize) {
        self.collective.leave(now, engine);
        self.advance_collective(now);
    }

    pub(crate) fn begin_collectives(
        &mut self,
        now: Time,
        spec: CollectiveSpec,
    ) -> Result<(), CollectiveSpecError> {
        self.collective.begin_run(now, spec, &self.virtual_nodes)?;
        self.advance_collective(now);
        Ok(())
    }

    pub(super) fn advance_collective(&mut self, now: Time) {
        let memory = &mut self.responder.memory;
        self.collective.issue(now, &mut self.requester, memory);
    }
}

/// Collective operations. See [`CollectiveTree`] and [`Join`].
impl AriesNic {
    /// Sets up the reduction tree of a collective engine (0 to 3). Operation numbers restart from
    /// 0.
    ///
    /// # Errors
    /// On a [`TreeError`] the engine is unchanged.
    pub fn set_up_collective(
        &mut self,
        engine: usize,
        tree: &CollectiveTree,
    ) -> Result<(), TreeError> {
        self.interface.set_up_collective(engine, tree)
    }

    /// Removes the reduction tree of an engine.
    ///
    /// # Errors
    /// [`TreeError::Engine`]; [`TreeError::Busy`] while an operation is pending or a neighbour has
    /// not acknowledged its result.
    pub fn release_collective(&mut self, engine: usize) -> Result<(), TreeError> {
        self.interface.collective.release(engine)
    }

    /// Whether nothing is pending on an engine and all results are acknowledged, so that it can be
    /// set up again.
    pub fn collective_idle(&self, engine: usize) -> bool {
        self.interface.collective.is_idle(engine)
    }

    /// Fails the tree of an engine, here and at every participant that can be reached. Pending
    /// operations end with [`CollectiveFailure::Stopped`](super::CollectiveFailure::Stopped); no
    /// operation can be joined before the tree is set up again with another epoch.
    pub fn stop_collective(&mut self, now: Time, engine: usize) {
        self.interface.stop_collective(now, engine);
        self.flush();
    }

    /// Joins the next operation of an engine and returns its number, which is the same at all
    /// participants. [`poll_collective`](Self::poll_collective) reports its end.
    ///
    /// # Errors
    /// On a [`JoinError`] nothing was joined.
    pub fn join(&mut self, now: Time, engine: usize, join: &Join) -> Result<u32, JoinError> {
        let sequence = self.interface.join(now, engine, join)?;
        self.flush();
        Ok(sequence)
    }

    pub fn poll_collective(&mut self) -> Option<CollectiveCompletion> {
        self.interface.collective.poll_completion()
    }

    /// Begins a run of collective operations: sets up its tree and joins one operation after
    /// another, each verified. Only one run is active at a time.
    ///
    /// # Errors
    /// See [`CollectiveSpecError`]. If the engine is [`Busy`](TreeError::Busy), retry: a neighbour
    /// may not have acknowledged the last result of the previous run.
    pub fn begin_collectives(
        &mut self,
        spec: CollectiveSpec,
        now: Time,
    ) -> Result<(), CollectiveSpecError> {
        if self.clients.has_engine(spec.engine) {
            let error = "a local program uses the collective engine";
            return Err(CollectiveSpecError::Tree(error.to_owned()));
        }
        self.interface.begin_collectives(now, spec)?;
        self.flush();
        Ok(())
    }

    /// The report of the current run, or of the last one; `None` before the first.
    pub fn collective_report(&self) -> Option<CollectiveReport> {
        self.interface.collective.report()
    }

    /// Ends the run at all participants after the next operation that this one joins. A second call
    /// fails the tree, here and at every participant that can be reached, which also ends an
    /// operation that waits for others.
    pub fn stop_collectives(&mut self, now: Time) {
        if let Some(engine) = self.interface.collective.stop_run() {
            self.stop_collective(now, engine);
        }
    }
}
