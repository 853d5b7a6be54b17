//! The data model of a torus, and its specification.

use phitwire_framing::t3e::direction::Direction;

use super::channels::Channels;
use super::defects::{Defect, Defects};
use super::given::GivenTables;
use super::routes::{Computed, destinations};
use crate::link::{CARRIER_LIVE, CARRIER_PAPER, Depths, FlitLinkConfig, RATE, STANDARD};
use crate::pe::E_REGISTERS;
use crate::route::{Broken, Shape};
use crate::router::{MAX_PROCESSORS, PROCESSOR, RouterRegisters};
use phitwire::chip::{ChipConfig, Grain};
use phitwire::link::LinkConfig;
use phitwire::net::{
    Clock, End, Graph, Link, Network, NodeRef, OwnSettings, PlanError, Profile, Runtime, Settings,
};
use phitwire::packets::PacketLinkConfig;

/// Maximum number of nodes: the number of processors that look-up tables can distinguish.
pub const MAX_NODES: u32 = MAX_PROCESSORS as u32;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorusSpec {
    pub name: String,
    /// The torus and its partial planes.
    pub shape: Shape,
    /// Number of nodes at the end of the numbering that have no logical number at first.
    pub spares: u32,
    pub defects: Defects,
    pub adaptive: bool,
    pub channels: Channels,
    /// Tables given in the description, by kind of ring.
    pub vc_tables: GivenTables,
    pub settings: Settings<TorusSettings>,
}

impl TorusSpec {
    /// A torus of that shape with default settings and name.
    pub fn new(shape: Shape) -> Self {
        Self {
            name: Self::name_of(&shape),
            shape,
            spares: 0,
            defects: Defects::default(),
            adaptive: true,
            channels: Channels::default(),
            vc_tables: GivenTables::default(),
            settings: Settings::default(),
        }
    }

    /// The generated name of a torus of that shape, such as `t3e-8x8x8-8x4x2`. Names contain no
    /// `+`.
    pub fn name_of(shape: &Shape) -> String {
        format!("t3e-{shape}").replace('+', "-")
    }

    /// Builds the torus.
    ///
    /// # Panics
    /// If a defect is at a node outside the shape.
    pub fn torus(self) -> Torus {
        let Self {
            name,
            shape,
            spares,
            defects,
            adaptive,
            channels,
            vc_tables,
            settings,
        } = self;
        let nodes = shape.nodes();
        let mut graph = Graph::new(name, nodes, nodes);
        for (from, direction, to) in shape.links() {
            let ends = [(from, direction), (to, direction.opposite())];
            let [a, b] = ends.map(|(node, direction)| End::chip(node, direction.index() as u8));
            graph.join(a, b);
        }
        for node in 0..nodes {
            let router = End::chip(node, PROCESSOR as u8);
            graph.join(End::processor(node, 0), router);
        }
        let destinations = destinations(&shape, &defects.broken(&shape), spares);
        Torus {
            graph,
            shape,
            spares,
            defects,
            adaptive,
            channels,
            vc_tables,
            settings,
            destinations,
            computed: Computed::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Torus {
    pub(super) graph: Graph,
    pub(super) shape: Shape,
    pub(super) spares: u32,
    pub(super) defects: Defects,
    pub(super) adaptive: bool,
    pub(super) channels: Channels,
    pub(super) vc_tables: GivenTables,
    pub(super) settings: Settings<TorusSettings>,
    pub(super) destinations: Vec<u32>,
    pub(super) computed: Computed,
}

/// A torus has no settings beyond those of all networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TorusSettings;

impl OwnSettings for TorusSettings {
    /// The machine's links cannot detect silence. These links go down after two seconds of silence,
    /// so that packets that wait for them can leave the network.
    const GIVE_UP_MS: u64 = 2_000;
    /// Between processes a round trip is longer than the machine's, and covering it takes more
    /// requests than its E-registers can hold. At the machine's depths the E-registers are the
    /// limit.
    const OUTSTANDING: u32 = 4 * E_REGISTERS;
    const MAX_OUTSTANDING: u32 = 4 * E_REGISTERS;
    const MEMORY_UNIT_BYTES: u64 = 64;
}

impl Torus {
    /// The torus and its partial planes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Maximum number of outstanding requests of a processor. At the machine's depths its
    /// E-registers are the limit.
    pub fn outstanding(&self, profile: Profile) -> u32 {
        match profile {
            Profile::Paper => self.settings.outstanding.min(E_REGISTERS),
            Profile::Live => self.settings.outstanding,
        }
    }

    pub fn settings(&self) -> &Settings<TorusSettings> {
        &self.settings
    }

    /// Number of nodes at the end of the numbering that had no logical number at first.
    pub fn spares(&self) -> u32 {
        self.spares
    }

    pub fn defects(&self) -> &Defects {
        &self.defects
    }

    /// The defects in the form that the computation of routes uses.
    pub fn broken(&self) -> Broken {
        self.defects.broken(&self.shape)
    }

    pub fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// How channels are assigned in rings without tables in the description.
    pub fn channels(&self) -> Channels {
        self.channels
    }

    pub fn vc_tables(&self) -> &GivenTables {
        &self.vc_tables
    }

    /// The nodes of the logical processors, by number.
    pub fn destinations(&self) -> &[u32] {
        &self.destinations
    }

    /// The number of the logical processor at a node. A spare node has none, and neither has a node
    /// replaced by a spare.
    pub fn processor(&self, node: u32) -> Option<u16> {
        let own = |&number: &usize| self.destinations[number] == node;
        // Try the node's own number first, which nearly all processors have.
        let first = Some(node as usize).filter(|&number| number < self.destinations.len());
        let found = first.filter(own).or_else(|| {
            let mut numbers = 0..self.destinations.len();
            numbers.find(own)
        });
        found.map(|number| number as u16)
    }

    /// The processor number in the router of a node. A spare has its node's number until it is
    /// assigned another; no look-up table has a path to it. A replaced processor keeps its number.
    pub(super) fn own_number(&self, node: u32) -> u16 {
        self.processor(node).unwrap_or(node as u16)
    }

    /// The link of a node in a direction, or to its processor.
    pub fn link_at(&self, node: u32, port: u8) -> Option<usize> {
        let end = End::chip(node, port);
        let mut links = self.graph.links.iter();
        links.position(|link| link.a == end || link.b == end)
    }

    /// Whether a link, between routers or to a processor, or one of its nodes is declared broken.
    pub fn is_broken(&self, link: &Link<()>) -> bool {
        let is_broken = |end: End| match end.node {
            NodeRef::Processor(node) => self.defects.has(Defect::Node(node)),
            NodeRef::Chip(node) => {
                let direction = Direction::ALL.get(usize::from(end.port));
                let defect = direction.map(|&direction| Defect::Link(node, direction));
                self.defects.has(Defect::Node(node))
                    || defect.is_some_and(|defect| self.defects.has(defect))
            }
        };
        is_broken(link.a) || is_broken(link.b)
    }

    /// This torus with the given choice of adaptivity and channels. If channels are chosen, the
    /// tables of the description are ignored.
    #[must_use]
    pub fn choosing(&self, adaptive: Option<bool>, channels: Option<Channels>) -> Self {
        let vc_tables = match channels {
            Some(_) => GivenTables::default(),
            None => self.vc_tables.clone(),
        };
        let adaptive = adaptive.unwrap_or(self.adaptive);
        let channels = channels.unwrap_or(self.channels);
        let is_same =
            (adaptive, channels, &vc_tables) == (self.adaptive, self.channels, &self.vc_tables);
        Self {
            adaptive,
            channels,
            vc_tables,
            computed: match is_same {
                true => self.computed.clone(),
                false => Computed::default(),
            },
            ..self.clone()
        }
    }

    /// The configuration of a router.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn router(
        &self,
        router: u32,
        runtime: &Runtime,
    ) -> Result<ChipConfig<RouterRegisters, FlitLinkConfig>, PlanError> {
        let node = NodeRef::Chip(router);
        let name = self.node_name(node).into_owned();
        runtime.refuse_cut_through(&name)?;
        let registers = self.registers_of(router);
        let clock = runtime.clock.unwrap_or(self.settings.clock);
        Ok(ChipConfig {
            registers: registers
                .map_err(|error| PlanError::Refused(format!("`{name}` has no tables: {error}")))?,
            name,
            ports: self.ports(node, runtime)?,
            grain: runtime.grain.unwrap_or(match clock {
                Clock::FreeRunning => Grain::Packet,
                Clock::Paced { .. } => Grain::Flit,
            }),
            clock,
        })
    }

    /// The ports of a node with the configurations of their links, in order.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn ports(
        &self,
        node: NodeRef,
        runtime: &Runtime,
    ) -> Result<Vec<(u8, FlitLinkConfig)>, PlanError> {
        let profile = runtime.profile.unwrap_or(self.settings.profile);
        // Only processors, where packets end, correct them.
        let corrects = matches!(node, NodeRef::Processor(_));
        let depths = |port| match profile {
            Profile::Live => Depths::LIVE,
            Profile::Paper if corrects || usize::from(port) == PROCESSOR => Depths::PROCESSOR,
            Profile::Paper => Depths::PAPER,
        };
        let of = (self, &self.settings);
        let carriers = self.graph.ports(of, node, (STANDARD, RATE), runtime)?;
        let carrier_depths = match profile {
            Profile::Live => CARRIER_LIVE,
            Profile::Paper => CARRIER_PAPER,
        };
        let configured = |(port, link): (u8, LinkConfig)| {
            let link = FlitLinkConfig {
                carrier: PacketLinkConfig {
                    link,
                    depths: carrier_depths,
                },
                depths: depths(port),
                corrects,
            };
            (port, link)
        };
        let mut ports: Vec<_> = carriers.into_iter().map(configured).collect();
        ports.sort_by_key(|(port, _)| *port);
        Ok(ports)
    }
}
