//! A network of any machine, for what treats all machines alike.

use core::any::Any;
use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeSet;

use super::channels::TunableChannels;
use super::files::Files;
use super::limits::Effort;
use super::mistake::{Mistake, Mistakes, Problems};
use super::model::{End, NodeRef};
use super::parsed::{self, Parsed};
use super::plan::{self, PlanError, Runtime};
use super::reading::{self, Describe};
use super::reroute::Reroutable;
use super::show::{self, DrawError, TooLarge};
use super::side_networks::SideNetworks;
use crate::device::Device;
use crate::time::Time;

/// A network that can be compared with one of any machine: every [`Network`] that has an equality
/// can.
pub trait Same {
    /// Whether the other is a network of the same machine and the same in everything.
    fn is_same(&self, other: &dyn Network) -> bool;
}

impl<N: Network + PartialEq> Same for N {
    fn is_same(&self, other: &dyn Network) -> bool {
        other.of_machine() == Some(self)
    }
}

/// A network that was read or generated: passive data. One that is kept as a
/// [`Graph`](super::Graph) has the name, nodes and links of that by `of_graph!`.
pub trait Network: Any + fmt::Debug + Same {
    /// Its name.
    fn name(&self) -> &str;

    /// Name and measure in one line.
    fn summary(&self) -> String;

    /// All nodes, routers first.
    fn nodes(&self) -> Vec<NodeRef>;

    /// The name of a node; one that the network does not have reads `?`.
    fn node_name(&self, node: NodeRef) -> Cow<'_, str>;

    /// How many links there are; their ids are the numbers below.
    fn link_count(&self) -> usize;

    /// The ends A and B of a link.
    ///
    /// # Panics
    /// If there is no link of that id.
    fn ends(&self, link: usize) -> (End, End);

    /// The description, which [`read`] turns into the same network again.
    fn write(&self) -> String;

    /// What is wrong with it, as far as this effort shows, and whether all packets were followed to
    /// their ends.
    fn judge(&self, effort: Effort) -> (Mistakes, bool);

    /// Tables of at most `rows` rows each.
    fn table(&self, rows: usize) -> String {
        show::plain::table(self, rows)
    }

    /// In the language of Graphviz.
    fn dot(&self) -> String {
        show::plain::dot(self)
    }

    /// As a drawing.
    ///
    /// # Errors
    /// [`TooLarge`] if nobody could read it.
    fn svg(&self) -> Result<String, TooLarge> {
        show::plain::svg(self)
    }

    /// As a drawing to be looked at as it is: as [`svg`](Self::svg) where that can be read, and
    /// otherwise with what belongs together (a group, a subtree) as one box; or of one such part alone,
    /// in full.
    ///
    /// # Errors
    /// See [`DrawError`].
    fn drawing(&self, part: Option<&str>) -> Result<String, DrawError> {
        match part {
            Some(part) => Err(DrawError::NoParts(part.to_owned())),
            None => Ok(self.svg()?),
        }
    }

    /// Devices, cables and bandwidths as tables, of machines of which they are counted.
    fn inventory(&self) -> Option<String> {
        None
    }

    /// The node of that name, whose links begin to train at `now`.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError>;

    /// The network as one whose route tables can be computed around what has failed, on machines
    /// that have such tables.
    fn reroute(&self) -> Option<&dyn Reroutable> {
        None
    }

    /// The network with these links as its descriptions have links that are not there, or that are
    /// broken; `None` where they have no such thing for one of them.
    fn without(&self, links: &BTreeSet<usize>) -> Option<Box<dyn Network>> {
        let _ = links;
        None
    }

    /// Whether a network interface takes part in runs: not one that the description cuts off.
    fn takes_part(&self, nic: NodeRef) -> bool {
        let _ = nic;
        true
    }

    /// The network as one that carries barriers and maintenance packets, on machines that do.
    fn side_networks(&self) -> Option<&dyn SideNetworks> {
        None
    }

    /// The network as one whose routers have tables of virtual channels, on machines that do.
    fn tunable_channels(&self) -> Option<&dyn TunableChannels> {
        None
    }

    /// `NODE:PORT`.
    fn end_name(&self, end: End) -> String {
        format!("{}:{}", self.node_name(end.node), end.port)
    }

    /// Names of all nodes, routers first.
    fn node_names(&self) -> Vec<String> {
        let nodes = self.nodes().into_iter();
        nodes
            .map(|node| self.node_name(node).into_owned())
            .collect()
    }

    /// What is wrong with it, as far as this effort shows.
    fn check_with(&self, effort: Effort) -> Vec<Mistake> {
        self.judge(effort).0.into_vec()
    }

    /// Everything that is wrong with it.
    fn check(&self) -> Vec<Mistake> {
        self.check_with(Effort::Exact)
    }

    /// Tab-separated lines for scripts: `node NAME router|nic` for every node, then
    /// `link ID NODE_A PORT_A NODE_B PORT_B IF_A IF_B ADDR_A ADDR_B` for every link. An interface
    /// is called `p` and the port; each link has a /31 of 198.18.0.0/15.
    ///
    /// # Errors
    /// [`PlanError::TooManyLinks`] if there are more links than ids and addresses.
    fn plan_lines(&self) -> Result<String, PlanError> {
        plan::lines(self)
    }
}

impl dyn Network {
    /// The network as one of a machine; `None` if it is another machine's.
    pub fn of_machine<N: Network>(&self) -> Option<&N> {
        (self as &dyn Any).downcast_ref()
    }
}

impl PartialEq for dyn Network {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

/// What became of a description without mistakes.
#[derive(Debug)]
pub struct Read {
    /// The network.
    pub network: Box<dyn Network>,
    /// Whether all packets were followed to their ends: see [`Effort`].
    pub followed: bool,
}

/// A network that was generated, or why there is no such network.
pub type Generated = Result<Box<dyn Network>, String>;

/// A machine whose networks can be described.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The word that stands for it in descriptions: `family = "..."`.
    pub word: &'static str,
    /// How the names of networks that can be generated are formed, with examples.
    pub names: &'static str,
    generate: fn(&str) -> Option<Generated>,
    read: fn(&str, &str, &Parsed<'_>, Effort, &Files) -> Result<Read, Problems>,
}

impl Family {
    /// The machine of these networks.
    pub const fn of<N: Describe>() -> Self {
        Self {
            word: N::FAMILY,
            names: N::NAMES,
            generate: |name| {
                let generated = N::generate(name)?;
                Some(generated.map(|network| Box::new(network) as Box<dyn Network>))
            },
            read: |file, text, parsed, effort, files| {
                let described = reading::read_parsed::<N>(file, text, parsed, effort, files)?;
                Ok(Read {
                    network: Box::new(described.topology),
                    followed: described.followed,
                })
            },
        }
    }
}

/// The network of a name that says how one of `families` makes it; `None` if it is no name of
/// theirs.
///
/// # Errors
/// Why there is no such network.
pub(crate) fn generate(families: &[Family], name: &str) -> Option<Generated> {
    families.iter().find_map(|family| (family.generate)(name))
}

/// Reads and checks the description of a network of one of `families`, the first where the
/// description names none, from the bytes of a file, whatever they are, with this effort. `file` is
/// what diagnostics call it; `files` has those that the description may name.
///
/// # Errors
/// The mistakes that could be found, in the order of the text; the first
/// [`MAX_MISTAKES`](super::MAX_MISTAKES) of them are told. Text and messages in them hold nothing
/// that a terminal obeys.
///
/// # Panics
/// If there is no family.
pub fn read(
    families: &[Family],
    file: &str,
    bytes: &[u8],
    effort: Effort,
    files: &Files,
) -> Result<Read, Problems> {
    let text = parsed::text(file, bytes)?;
    let parsed = parsed::parse(file, text)?;
    // Mistakes of the text are the readers' to tell; but which of them, nobody knows who has no
    // family.
    let mut fields = super::fields::Fields::default();
    let found = match parsed.table.get_ref().get("family") {
        Some(value) => {
            let words = families.iter().map(|family| (family.word, family));
            fields.word(value, &words.collect::<Vec<_>>())
        }
        None => Some(&families[0]),
    };
    match found {
        Some(family) => (family.read)(file, text, &parsed, effort, files),
        None => Err(Problems::new(
            file,
            text,
            fields.mistakes,
            parsed::span_in_text,
        )),
    }
}
