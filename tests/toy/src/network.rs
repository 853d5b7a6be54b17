//! The network: a ring of routers with two NICs each.

use super::link;
use super::nic::RingNic;
use super::router::{CLOCKWISE, COUNTERCLOCKWISE, FIRST_NIC, RingPosition, RingRouter};
use phitwire::catalogue::{Generator, Kind, OptionSpec, OptionValues, common};
use phitwire::chip::{ChipConfig, Grain};
use phitwire::device::Device;
use phitwire::net::{
    Describe, Effort, End, Fields, Graph, Mistakes, Network, NodeRef, OwnSettings, PlanError,
    Runtime, Section, Settings, Spans, of_graph,
};
use phitwire::packets::{PacketLinkConfig, PacketNicConfig};
use phitwire::time::{Duration, Time};

/// Routers of a ring: two would have more than one link between them; numbers have 16 bits.
const ROUTERS: std::ops::RangeInclusive<u64> = 3..=4_096;

pub const GENERATOR: Generator = Generator {
    name: "ring",
    about: "A ring of routers with two network interfaces each",
    options: &[OptionSpec::new(
        "routers",
        "ROUTERS",
        Kind::Number(*ROUTERS.start(), *ROUTERS.end()),
        "Routers, 3 to 4096",
    )
    .required()],
    generate: |given| {
        let routers = given.get("routers").map_err(|error| error.to_string())?;
        let (name, settings) = common(given).map_err(|error| error.to_string())?;
        let routers = routers.unwrap_or(3);
        let name = Some(name).filter(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| format!("ring-{routers}"));
        Ok(Box::new(Ring::new(name, routers, settings)))
    },
    sizes: |outline| {
        let has_two = outline.routers > 2 && outline.nics == 2 * outline.routers;
        let size = has_two.then(|| OptionValues::of([("routers", outline.routers.to_string())]));
        size.into_iter().collect()
    },
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    graph: Graph,
    settings: Settings<RingSettings>,
    /// See [`RingPosition::bubble`]; not part of a description.
    pub(super) bubble: u64,
}

/// Empty: a ring needs only the common settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSettings;

impl OwnSettings for RingSettings {
    const GIVE_UP_MS: u64 = 0;
    const OUTSTANDING: u32 = 64;
    const MAX_OUTSTANDING: u32 = 64;
}

impl Ring {
    /// The ring of `routers` routers, at least three.
    pub fn new(name: String, routers: u32, settings: Settings<RingSettings>) -> Self {
        let mut graph = Graph::new(name, routers, 2 * routers);
        for router in 0..routers {
            let next = End::chip((router + 1) % routers, COUNTERCLOCKWISE);
            graph.join(End::chip(router, CLOCKWISE), next);
        }
        for nic in 0..2 * routers {
            let port = FIRST_NIC + (nic % 2) as u8;
            graph.join(End::processor(nic, 0), End::chip(nic / 2, port));
        }
        Self {
            graph,
            settings,
            bubble: 1,
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
    ) -> Result<ChipConfig<RingPosition, PacketLinkConfig>, PlanError> {
        let node = NodeRef::Chip(router);
        Ok(ChipConfig {
            name: self.node_name(node).into_owned(),
            registers: RingPosition {
                own: router as u16,
                routers: self.graph.chips as u16,
                bubble: self.bubble,
            },
            ports: self.ports(node, runtime)?,
            grain: Grain::Packet,
            clock: runtime.clock.unwrap_or(self.settings.clock),
        })
    }

    /// The ports of a node with the configurations of their links.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn ports(
        &self,
        node: NodeRef,
        runtime: &Runtime,
    ) -> Result<Vec<(u8, PacketLinkConfig)>, PlanError> {
        let rate = (link::STANDARD, link::RATE);
        let of = (self, &self.settings);
        let depths = link::depths(runtime.profile.unwrap_or(self.settings.profile));
        let ports = self.graph.ports(of, node, rate, runtime)?.into_iter();
        let configured = ports.map(|(port, link)| (port, PacketLinkConfig { link, depths }));
        Ok(configured.collect())
    }
}

impl Describe for Ring {
    const FAMILY: &'static str = "ring";
    const WHAT: &'static str = "the description of a ring";
    const NAMES: &'static str = "ring-ROUTERS, such as ring-8";

    fn read(name: String, fields: &mut Fields, root: &mut Section<'_, '_>, _: &mut Spans) -> Self {
        let routers = fields.need(root, "routers", "8");
        let routers = routers.and_then(|value| fields.integer(value, ROUTERS));
        let settings = fields.part(root, "network", "[network]");
        let settings = settings.map(|section| Settings::read(fields, section));
        Self::new(
            name,
            routers.unwrap_or(3) as u32,
            settings.unwrap_or_default(),
        )
    }

    fn generate(name: &str) -> Option<Result<Self, String>> {
        let routers: u32 = name.strip_prefix("ring-")?.parse().ok()?;
        if !ROUTERS.contains(&routers.into()) {
            return Some(Err(format!("a ring has {ROUTERS:?} routers")));
        }
        Some(Ok(Self::new(name.to_owned(), routers, Settings::default())))
    }
}

impl Network for Ring {
    of_graph!(graph);

    fn summary(&self) -> String {
        let Graph {
            name, chips, nics, ..
        } = &self.graph;
        let headline = self.settings.headline();
        format!("{name}: a ring of {chips} routers, {nics} network interfaces, {headline}")
    }

    fn write(&self) -> String {
        let (family, Graph { name, chips, .. }) = (Self::FAMILY, &self.graph);
        let mut text = format!("family = \"{family}\"\nname = \"{name}\"\nrouters = {chips}\n");
        // Ignore the result: writing into a String never fails.
        let _ = self.settings.write(&mut text);
        text
    }

    fn judge(&self, _: Effort) -> (Mistakes, bool) {
        (self.graph.judge_name(), true)
    }

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        let found = self.graph.find(node)?;
        let nic = match found {
            NodeRef::Chip(router) => {
                return Ok(Box::new(RingRouter::new(
                    self.router(router, runtime)?,
                    now,
                )));
            }
            NodeRef::Processor(nic) => nic,
        };
        let (settings, nics) = (&self.settings, self.graph.nics);
        let config = PacketNicConfig {
            number: nic as u16,
            nics: nics as u16,
            links: vec![self.ports(found, runtime)?.remove(0).1],
            memory_bytes: settings.memory_bytes,
            outstanding: settings.outstanding,
            // Replies and requests share the one channel.
            answers: (nics * settings.outstanding) as usize,
            timeout: Duration::from_ms(settings.request_timeout_ms),
            incarnation: runtime.incarnation,
            seed: None,
        };
        Ok(Box::new(RingNic::new(config, now)))
    }
}
