//! Simulates a network of any machine behind a machine-independent interface.

use core::fmt::Debug;

use serde_json::{Map, Value};

use super::config::{Config, ConfigError};
use super::encoded::build::wire;
use super::executor::Executor;
use super::message_trace::Found;
use super::model::CycleModel;
use super::report::Report;
use super::run::{SimProgress, Simulation};
use super::watch::Watcher;
use crate::link::impair::Netem;
use crate::net::{Network, NodeRef};
use crate::sim::tap::Tap;
use crate::time::Duration;

/// The kind of a network's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// Links pass phits directly.
    Direct,
    /// Phits travel in frames, which may be impaired, between link control blocks.
    Encoded(Option<Netem>),
}

/// A network with its traffic, before its first cycle.
pub trait Run {
    /// Passes the state to `watcher` every `every` cycles or every window, whichever is longer.
    ///
    /// # Errors
    /// If the network is another machine's.
    fn watch(
        &mut self,
        network: &dyn Network,
        every: u64,
        watcher: Watcher,
    ) -> Result<(), ConfigError>;
    /// Runs all phases and returns the report. Reports progress to `progress` throughout.
    fn run(&mut self, executor: &mut dyn Executor, progress: &mut dyn FnMut(SimProgress))
    -> Report;

    /// Passes every frame from now on to `tap`: see [`Simulation::set_tap`].
    fn set_tap(&mut self, tap: &Tap);

    /// Takes the trace of the messages.
    fn found(&mut self) -> Found;
}

impl<M: CycleModel> Run for Simulation<M> {
    fn watch(
        &mut self,
        network: &dyn Network,
        every: u64,
        watcher: Watcher,
    ) -> Result<(), ConfigError> {
        Self::watch(self, topology::<M>(network)?, every, watcher);
        Ok(())
    }

    fn run(
        &mut self,
        executor: &mut dyn Executor,
        progress: &mut dyn FnMut(SimProgress),
    ) -> Report {
        Self::run(self, executor, progress)
    }

    fn set_tap(&mut self, tap: &Tap) {
        Self::set_tap(self, tap);
    }

    fn found(&mut self) -> Found {
        Self::found(self)
    }
}

/// A machine with its chosen options.
pub trait Simulator: Debug {
    /// Name that distinguishes the machine when several values of an option are compared.
    fn name(&self) -> Option<&'static str>;

    /// Describes the machine's options, for people and programs that read results.
    fn about(&self) -> Map<String, Value>;

    /// The highest load of `config`'s traffic at which a network can serve every source: see
    /// [`CycleModel::bound`].
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn bound(&self, network: &dyn Network, config: &Config) -> Result<Option<f64>, ConfigError>;

    /// Travel time of frames on each link, in the order of the network's links.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn wires(&self, network: &dyn Network) -> Result<Vec<Duration>, ConfigError>;

    /// The NIC that has the terminal with this number in reports.
    fn source(&self, network: &dyn Network, terminal: u64) -> Option<NodeRef>;

    /// A network of this machine with the traffic of `config`, cut into `partitions` partitions;
    /// their number does not change the result. Encoded links are up.
    ///
    /// # Errors
    /// See [`ConfigError`].
    fn build(
        &self,
        network: &dyn Network,
        config: &Config,
        links: Links,
        partitions: usize,
        executor: &mut dyn Executor,
    ) -> Result<Box<dyn Run>, ConfigError>;
}

/// Options of a machine, with a name to distinguish them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen<M: CycleModel> {
    /// Name that distinguishes the options when several values of one are compared.
    pub name: Option<&'static str>,
    pub options: M::Options,
}

impl<M: CycleModel> Simulator for Chosen<M> {
    fn name(&self) -> Option<&'static str> {
        self.name
    }

    fn about(&self) -> Map<String, Value> {
        match serde_json::to_value(M::about(&self.options)) {
            Ok(Value::Object(about)) => about,
            _ => Map::new(),
        }
    }

    fn bound(&self, network: &dyn Network, config: &Config) -> Result<Option<f64>, ConfigError> {
        M::bound(topology::<M>(network)?, config, &self.options)
    }

    fn wires(&self, network: &dyn Network) -> Result<Vec<Duration>, ConfigError> {
        let topology = topology::<M>(network)?;
        (0..network.link_count())
            .map(|link| wire::<M>(topology, &self.options, link))
            .collect()
    }

    fn source(&self, network: &dyn Network, terminal: u64) -> Option<NodeRef> {
        let topology = topology::<M>(network).ok()?;
        let nics = network.nodes().into_iter().filter_map(|node| match node {
            NodeRef::Processor(nic) => Some(nic),
            NodeRef::Chip(_) => None,
        });
        let nics: Vec<u32> = nics.collect();
        let is_it = |&&nic: &&u32| {
            let ports = 0..M::PORTS.min(64) as u8;
            let mut numbers = ports.map(|port| M::terminal(topology, nic, port));
            numbers.any(|number| number == Some(terminal))
        };
        // Numbers follow the order of the NICs; missing NICs shift them.
        let (before, from) = nics.split_at(terminal as usize % nics.len().max(1));
        let found = from.iter().chain(before.iter().rev()).find(is_it);
        found.map(|&nic| NodeRef::Processor(nic))
    }

    fn build(
        &self,
        network: &dyn Network,
        config: &Config,
        links: Links,
        partitions: usize,
        executor: &mut dyn Executor,
    ) -> Result<Box<dyn Run>, ConfigError> {
        let topology = topology::<M>(network)?;
        let options = &self.options;
        let simulation = match links {
            Links::Direct => Simulation::<M>::new(topology, config, options, partitions),
            Links::Encoded(netem) => Simulation::<M>::with_encoded_links(
                topology, config, options, netem, partitions, executor,
            ),
        };
        Ok(Box::new(simulation?))
    }
}

/// The network as the machine's own type.
fn topology<M: CycleModel>(network: &dyn Network) -> Result<&M::Topology, ConfigError> {
    let elsewhere = || ConfigError::Elsewhere(network.name().to_owned());
    network.of_machine().ok_or_else(elsewhere)
}
