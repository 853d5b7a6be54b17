//! A network of either family, for what treats both alike.

use toml::de::DeTable;

use super::description;
use super::description::fields::Fields;
use super::dragonfly::{self, Dragonfly};
use super::mistake::{Mistake, Place, Problems};
use super::model::{NodeRef, Topology};
use super::plan::{NodePlan, PlanError, Runtime};
use super::show::{self, TooLarge};

/// A network that was read or generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A folded Clos of YARC routers.
    Blackwidow(Topology),
    /// A dragonfly of Aries routers: `family = "aries"`.
    Aries(Dragonfly),
}

impl Network {
    /// Reads and checks a description of either family. `file` is what diagnostics call it.
    ///
    /// # Errors
    /// All mistakes that could be found, in the order of the text.
    pub fn read(file: &str, text: &str) -> Result<Self, Problems> {
        // Mistakes of the text are the readers' to tell; but which of them, nobody knows who has no family.
        let (table, _) = DeTable::parse_recoverable(text);
        let mut fields = Fields::default();
        let is_aries = match table.get_ref().get("family") {
            Some(value) => fields.word(value, &[("blackwidow", false), ("aries", true)]),
            None => Some(false),
        };
        match is_aries {
            Some(true) => dragonfly::read(file, text).map(Self::Aries),
            Some(false) => {
                description::read(file, text).map(|described| Self::Blackwidow(described.topology))
            }
            None => Err(Problems::new(
                file,
                text,
                fields.mistakes,
                |place| match place {
                    Place::Text(span) => span.clone(),
                    _ => 0..0,
                },
            )),
        }
    }

    /// The description, which [`read`](Self::read) turns into the same network again.
    pub fn write(&self) -> String {
        match self {
            Self::Blackwidow(topology) => description::write(topology),
            Self::Aries(network) => dragonfly::write(network),
        }
    }

    /// Everything that is wrong with it.
    pub fn check(&self) -> Vec<Mistake> {
        match self {
            Self::Blackwidow(topology) => super::check(topology),
            Self::Aries(network) => dragonfly::check(network),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Blackwidow(topology) => &topology.name,
            Self::Aries(network) => &network.name,
        }
    }

    /// Name and measure in one line.
    pub fn summary(&self) -> String {
        match self {
            Self::Blackwidow(topology) => show::summary(topology),
            Self::Aries(network) => dragonfly::show::summary(network),
        }
    }

    /// Tables of at most `rows` rows each.
    pub fn table(&self, rows: usize) -> String {
        match self {
            Self::Blackwidow(topology) => show::table(topology, rows),
            Self::Aries(network) => dragonfly::show::table(network, rows),
        }
    }

    /// In the language of Graphviz.
    pub fn dot(&self) -> String {
        match self {
            Self::Blackwidow(topology) => show::dot(topology),
            Self::Aries(network) => dragonfly::show::dot(network),
        }
    }

    /// As a drawing.
    ///
    /// # Errors
    /// [`TooLarge`] if nobody could read it.
    pub fn svg(&self) -> Result<String, TooLarge> {
        match self {
            Self::Blackwidow(topology) => show::svg(topology),
            Self::Aries(network) => dragonfly::show::svg(network),
        }
    }

    /// The configuration of the node of that name.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn plan(&self, node: &str, runtime: &Runtime) -> Result<NodePlan, PlanError> {
        match self {
            Self::Blackwidow(topology) => topology.plan(node, runtime),
            Self::Aries(network) => network.plan(node, runtime),
        }
    }

    /// Nodes and links for scripts: see [`Topology::plan_lines`].
    ///
    /// # Errors
    /// [`PlanError::TooManyLinks`] if there are more links than ids and addresses.
    pub fn plan_lines(&self) -> Result<String, PlanError> {
        match self {
            Self::Blackwidow(topology) => topology.plan_lines(),
            Self::Aries(network) => network.plan_lines(),
        }
    }

    /// Names of all nodes, routers first.
    pub fn node_names(&self) -> Vec<String> {
        match self {
            Self::Blackwidow(topology) => {
                let routers = topology.chips.iter().map(|chip| chip.name.clone());
                routers
                    .chain(topology.processors.iter().map(|p| p.name.clone()))
                    .collect()
            }
            Self::Aries(network) => {
                let routers = network
                    .routers()
                    .map(|r| network.node_name(NodeRef::Chip(r)));
                let nics = network
                    .nics()
                    .map(|n| network.node_name(NodeRef::Processor(n)));
                routers.chain(nics).collect()
            }
        }
    }
}
