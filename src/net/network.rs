//! Networks of any machine behind one trait.

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

/// Equality of networks of any machines. Implemented for every [`Network`] with `PartialEq`.
pub trait Same {
    /// Whether `other` is an equal network of the same machine.
    fn is_same(&self, other: &dyn Network) -> bool;
}

impl<N: Network + PartialEq> Same for N {
    fn is_same(&self, other: &dyn Network) -> bool {
        other.of_machine() == Some(self)
    }
}

/// A network that was read or generated: passive data. For one stored as a [`Graph`](super::Graph),
/// `of_graph!` implements name, nodes and links.
pub trait Network: Any + fmt::Debug + Same {
    fn name(&self) -> &str;

    /// Name and size in one line.
    fn summary(&self) -> String;

    /// All nodes, routers first.
    fn nodes(&self) -> Vec<NodeRef>;

    /// The name of a node; `?` if the network does not have it.
    fn node_name(&self, node: NodeRef) -> Cow<'_, str>;

    /// Whether the description has the times of the NICs' hosts.
    fn has_host_times(&self) -> bool {
        false
    }

    /// Number of links; link ids are the indices below it.
    fn link_count(&self) -> usize;

    /// The ends A and B of a link.
    ///
    /// # Panics
    /// If no link has that id.
    fn ends(&self, link: usize) -> (End, End);

    /// The network's description, from which [`read`] makes an equal network.
    fn write(&self) -> String;

    /// Returns the mistakes that `effort` finds, and whether every packet was followed to its
    /// destination.
    fn judge(&self, effort: Effort) -> (Mistakes, bool);

    /// Tables of at most `rows` rows each.
    fn table(&self, rows: usize) -> String {
        show::plain::table(self, rows)
    }

    /// The network in Graphviz format.
    fn dot(&self) -> String {
        show::plain::dot(self)
    }

    /// An SVG drawing.
    ///
    /// # Errors
    /// [`TooLarge`] if the drawing would be unreadable.
    fn svg(&self) -> Result<String, TooLarge> {
        show::plain::svg(self)
    }

    /// A drawing for viewing: [`svg`](Self::svg) where that is readable, otherwise with each unit
    /// (a group, a subtree) as one box; or one such `part` alone, in full.
    ///
    /// # Errors
    /// See [`DrawError`].
    fn drawing(&self, part: Option<&str>) -> Result<String, DrawError> {
        match part {
            Some(part) => Err(DrawError::NoParts(part.to_owned())),
            None => Ok(self.svg()?),
        }
    }

    /// Tables of devices, cables and bandwidths, for machines that can list them.
    fn inventory(&self) -> Option<String> {
        None
    }

    /// The node with that name, whose links begin to train at `now`.
    ///
    /// # Errors
    /// See [`PlanError`].
    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError>;

    /// The network's [`Reroutable`] view, on machines with route tables that can be computed around
    /// failures.
    fn reroute(&self) -> Option<&dyn Reroutable> {
        None
    }

    /// The network with these links marked missing or broken in its description; `None` if the
    /// description has no mark for one of them.
    fn without(&self, links: &BTreeSet<usize>) -> Option<Box<dyn Network>> {
        let _ = links;
        None
    }

    /// Whether a NIC takes part in runs; false if the description isolates it.
    fn takes_part(&self, nic: NodeRef) -> bool {
        let _ = nic;
        true
    }

    /// The network's [`SideNetworks`] view, on machines that carry barriers and maintenance
    /// packets.
    fn side_networks(&self) -> Option<&dyn SideNetworks> {
        None
    }

    /// The network's [`TunableChannels`] view, on machines whose routers have tables of virtual
    /// channels.
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

    /// The network's mistakes that `effort` finds.
    fn check_with(&self, effort: Effort) -> Vec<Mistake> {
        self.judge(effort).0.into_vec()
    }

    /// All mistakes of the network.
    fn check(&self) -> Vec<Mistake> {
        self.check_with(Effort::Exact)
    }

    /// Tab-separated lines for scripts: `node NAME router|nic` for every node, then `link ID NODE_A
    /// PORT_A NODE_B PORT_B IF_A IF_B ADDR_A ADDR_B` for every link. Interfaces are named `p` and
    /// the port; each link has a /31 of 198.18.0.0/15.
    ///
    /// # Errors
    /// [`PlanError::TooManyLinks`] if there are more links than ids and addresses.
    fn plan_lines(&self) -> Result<String, PlanError> {
        plan::lines(self)
    }
}

impl dyn Network {
    /// The network as machine type `N`; `None` if it belongs to another machine.
    pub fn of_machine<N: Network>(&self) -> Option<&N> {
        (self as &dyn Any).downcast_ref()
    }
}

impl PartialEq for dyn Network {
    fn eq(&self, other: &Self) -> bool {
        self.is_same(other)
    }
}

/// The result of reading a description without mistakes.
#[derive(Debug)]
pub struct Read {
    pub network: Box<dyn Network>,
    /// Whether all packets were followed to their destinations: see [`Effort`].
    pub followed: bool,
}

/// A generated network, or why it cannot be generated.
pub type Generated = Result<Box<dyn Network>, String>;

/// A machine whose networks can be described.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The family's name in descriptions: `family = "..."`.
    pub word: &'static str,
    /// Format of the names that can be generated, with examples.
    pub names: &'static str,
    generate: fn(&str) -> Option<Generated>,
    read: fn(&str, &str, &Parsed<'_>, Effort, &Files) -> Result<Read, Problems>,
}

impl Family {
    /// The family of networks `N`.
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

/// The network that `name` generates in one of `families`; `None` if the name belongs to no family.
///
/// # Errors
/// The reason why it cannot be generated.
pub(crate) fn generate(families: &[Family], name: &str) -> Option<Generated> {
    families.iter().find_map(|family| (family.generate)(name))
}

/// Reads and checks the bytes of a description with the given effort. It describes a network of one
/// of `families`, by default the first. Diagnostics call it `file`; `files` has the files that it
/// may name.
///
/// # Errors
/// The mistakes found, in the order of the text; at most [`MAX_MISTAKES`](super::MAX_MISTAKES) are
/// reported. Their texts and messages hold no terminal control sequences.
///
/// # Panics
/// If `families` is empty.
pub fn read(
    families: &[Family],
    file: &str,
    bytes: &[u8],
    effort: Effort,
    files: &Files,
) -> Result<Read, Problems> {
    let text = parsed::text(file, bytes)?;
    let parsed = parsed::parse(file, text)?;
    // Only the reader of a family reports mistakes of the text, so none are reported if the
    // `family` is unknown.
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
