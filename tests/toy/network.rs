//! The network: a ring of routers with two network interfaces each.

use std::borrow::Cow;

use super::link;
use super::nic::{NicConfig, RingNic};
use super::router::{CLOCKWISE, COUNTERCLOCKWISE, FIRST_NIC, RingPlace, RingRouter};
use crate::catalogue::{Generator, Kind, OptionSpec, common};
use crate::chip::{ChipConfig, Grain};
use crate::device::Device;
use crate::link::LinkConfig;
use crate::net::{
    Describe, Effort, End, Fields, Link, MistakeKind, Mistakes, Network, NodeRef, OwnSettings,
    Place, PlanError, Runtime, Section, Settings, Spans, ends_of, link_config, name_problem,
};
use crate::time::{Duration, Time};

/// Routers of a ring: links between them are more than one, and numbers have 16 bits.
const ROUTERS: std::ops::RangeInclusive<u64> = 3..=4_096;

/// Makes rings from options.
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
};

/// A ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ring {
    name: String,
    routers: u32,
    settings: Settings<RingSettings>,
    links: Vec<Link<()>>,
}

/// A ring has no settings of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingSettings;

impl OwnSettings for RingSettings {
    const GIVE_UP_MS: u64 = 0;
    const OUTSTANDING: u32 = 64;
    const MAX_OUTSTANDING: u32 = 64;
}

impl Ring {
    /// The ring of so many routers, at least three.
    pub fn new(name: String, routers: u32, settings: Settings<RingSettings>) -> Self {
        let link = |a, b| Link {
            a,
            b,
            rate: (),
            metres: None,
            cable: Default::default(),
        };
        let around = (0..routers).map(|router| {
            let next = (router + 1) % routers;
            link(
                End::chip(router, CLOCKWISE),
                End::chip(next, COUNTERCLOCKWISE),
            )
        });
        let down = (0..2 * routers).map(|nic| {
            let port = FIRST_NIC + (nic % 2) as u8;
            link(End::processor(nic, 0), End::chip(nic / 2, port))
        });
        let links = around.chain(down).collect();
        Self {
            name,
            routers,
            settings,
            links,
        }
    }

    /// How many routers it has.
    pub fn routers(&self) -> u32 {
        self.routers
    }

    /// The configuration of a router.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn router(
        &self,
        router: u32,
        runtime: &Runtime,
    ) -> Result<ChipConfig<RingPlace, LinkConfig>, PlanError> {
        let (own, routers) = (router as u16, self.routers as u16);
        let node = NodeRef::Chip(router);
        Ok(ChipConfig {
            name: self.node_name(node).into_owned(),
            registers: RingPlace { own, routers },
            ports: self.ports(node, runtime)?,
            grain: Grain::Packet,
            clock: runtime.clock.unwrap_or(self.settings.clock).into(),
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
    ) -> Result<Vec<(u8, LinkConfig)>, PlanError> {
        let ends = ends_of(&self.links, node);
        ends.map(|(id, end, _)| {
            let place = (id, &self.links[id], end);
            let rate = (link::STANDARD, link::RATE);
            let config = link_config(self, &self.settings, place, rate, runtime)?;
            let built = config.build();
            Ok((
                end.port,
                built.map_err(|error| PlanError::Link { link: id, error })?,
            ))
        })
        .collect()
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
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> String {
        let Self {
            name,
            routers,
            settings,
            ..
        } = self;
        let headline = settings.headline();
        format!(
            "{name}: a ring of {routers} routers, {} network interfaces, {headline}",
            2 * routers
        )
    }

    fn nodes(&self) -> Vec<NodeRef> {
        let routers = (0..self.routers).map(NodeRef::Chip);
        routers
            .chain((0..2 * self.routers).map(NodeRef::Processor))
            .collect()
    }

    fn node_name(&self, node: NodeRef) -> Cow<'_, str> {
        match node {
            NodeRef::Chip(router) => Cow::Owned(format!("r{router}")),
            NodeRef::Processor(nic) => Cow::Owned(format!("nic{nic}")),
        }
    }

    fn link_count(&self) -> usize {
        self.links.len()
    }

    fn ends(&self, link: usize) -> (End, End) {
        self.links[link].ends()[0]
    }

    fn write(&self) -> String {
        let (family, name, routers) = (Self::FAMILY, &self.name, self.routers);
        let mut text = format!("family = \"{family}\"\nname = \"{name}\"\nrouters = {routers}\n");
        // Writing into a String never fails.
        let _ = self.settings.write(&mut text);
        text
    }

    fn judge(&self, _: Effort) -> (Mistakes, bool) {
        let mut mistakes = Mistakes::default();
        if let Some(why) = name_problem(&self.name) {
            let message = format!("this cannot be a name: {why}");
            mistakes.push(MistakeKind::BadValue.at(Place::Network, message));
        }
        (mistakes, true)
    }

    fn device(
        &self,
        node: &str,
        runtime: &Runtime,
        now: Time,
    ) -> Result<Box<dyn Device>, PlanError> {
        let found = self
            .nodes()
            .into_iter()
            .find(|own| self.node_name(*own) == node);
        let found = found.ok_or_else(|| PlanError::NoSuchNode(node.to_owned()))?;
        let mut ports = self.ports(found, runtime)?;
        let settings = &self.settings;
        Ok(match found {
            NodeRef::Chip(router) => Box::new(RingRouter::new(self.router(router, runtime)?, now)),
            NodeRef::Processor(nic) => {
                let config = NicConfig {
                    number: nic as u16,
                    nics: 2 * self.routers as u16,
                    link: ports.remove(0).1,
                    memory_bytes: settings.memory_bytes,
                    outstanding: settings.outstanding,
                    timeout: Duration::from_ms(settings.request_timeout_ms),
                    incarnation: runtime.incarnation,
                };
                Box::new(RingNic::new(config, now))
            }
        })
    }

    fn is_same(&self, other: &dyn Network) -> bool {
        other.of_machine() == Some(self)
    }
}
