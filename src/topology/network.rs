//! A network of either family, for what treats both alike.

use super::check;
use super::description;
use super::description::fields::Fields;
use super::dragonfly::{self, Dragonfly};
use super::layout::Layout;
use super::limits::Effort;
use super::mistake::{Mistake, Problems};
use super::model::Topology;
use super::parsed;
use super::plan::{NodePlan, PlanError, Runtime};
use super::show::{self, TooLarge};
use crate::device::Device;
use crate::time::Time;

/// A network that was read or generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A folded Clos of YARC routers.
    Blackwidow(Topology),
    /// A dragonfly of Aries routers: `family = "aries"`.
    Aries(Dragonfly),
}

/// What became of a description without mistakes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The network.
    pub network: Network,
    /// Whether all packets were followed to their ends: see [`Effort`].
    pub followed: bool,
}

impl Network {
    /// Reads and checks a description of either family. `file` is what diagnostics call it.
    ///
    /// # Errors
    /// All mistakes that could be found, in the order of the text.
    pub fn read(file: &str, text: &str) -> Result<Self, Problems> {
        Self::read_with(file, text.as_bytes(), Effort::Bounded).map(|read| read.network)
    }

    /// The same for the bytes of a file, whatever they are, and with so much effort.
    ///
    /// # Errors
    /// The mistakes that could be found, in the order of the text; the first
    /// [`MAX_MISTAKES`](super::MAX_MISTAKES) of them are told. Text and messages in them hold
    /// nothing that a terminal obeys.
    pub fn read_with(file: &str, bytes: &[u8], effort: Effort) -> Result<Read, Problems> {
        let text = parsed::text(file, bytes)?;
        let parsed = parsed::parse(file, text)?;
        // Mistakes of the text are the readers' to tell; but which of them, nobody knows who has no
        // family.
        let mut fields = Fields::default();
        let is_aries = match parsed.table.get_ref().get("family") {
            Some(value) => fields.word(value, &[("blackwidow", false), ("aries", true)]),
            None => Some(false),
        };
        match is_aries {
            Some(true) => {
                let (network, followed) = dragonfly::read_parsed(file, text, &parsed, effort)?;
                let network = Self::Aries(network);
                Ok(Read { network, followed })
            }
            Some(false) => {
                let described = description::read_parsed(file, text, &parsed, effort)?;
                let followed = described.followed;
                let network = Self::Blackwidow(described.topology);
                Ok(Read { network, followed })
            }
            None => Err(Problems::new(
                file,
                text,
                fields.mistakes,
                parsed::span_in_text,
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
        self.check_with(Effort::Exact)
    }

    /// What is wrong with it, as far as so much effort shows.
    pub fn check_with(&self, effort: Effort) -> Vec<Mistake> {
        let (mistakes, _) = match self {
            Self::Blackwidow(topology) => check::within(topology, effort),
            Self::Aries(network) => dragonfly::check_within(network, effort),
        };
        mistakes.into_vec()
    }

    /// Its nodes and links.
    pub fn layout(&self) -> &dyn Layout {
        match self {
            Self::Blackwidow(topology) => topology,
            Self::Aries(network) => network,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.layout().name()
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

    /// The node of that name, whose links begin to train at `now`.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        self.layout().device(node, runtime, now)
    }

    /// Nodes and links for scripts: see [`Layout::plan_lines`].
    ///
    /// # Errors
    /// [`PlanError::TooManyLinks`] if there are more links than ids and addresses.
    pub fn plan_lines(&self) -> Result<String, PlanError> {
        self.layout().plan_lines()
    }

    /// Names of all nodes, routers first.
    pub fn node_names(&self) -> Vec<String> {
        let layout = self.layout();
        let names = |node| layout.node_name(node);
        layout.routers_first().into_iter().map(names).collect()
    }
}
