//! Generates the links of a dragonfly.

use thiserror::Error;

use super::arrangement::Arrangement;
use super::model::{Classes, Dragonfly, DragonflyLink, DragonflySettings, Shape};
use crate::nic::HostTimes;
use crate::route::registers::{AriesRegisters, FIRST_NIC_PORT};
use phitwire::net::{End, NodeRef};

/// First port of the black links; the ports below are for green links.
pub(super) const FIRST_BLACK_PORT: u8 = 15;
pub(super) const FIRST_BLUE_PORT: u8 = 30;
/// Number of ports for black links of a router: three links to each of 5 peers.
const BLACK_PORTS: u8 = FIRST_BLUE_PORT - FIRST_BLACK_PORT;
/// Number of global links of a router (XC white paper, "Dragonfly Implementation").
pub(super) const BLUE_PORTS: u8 = 10;
/// Links of an optical cable: its 12 lanes carry four links of three lanes (XC white paper, table
/// 1).
pub(super) const CABLE_LINKS: u16 = 4;

/// Parameters for the generation of a dragonfly's links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Number of links from a router to its peer in each other chassis.
    pub black_links: u8,
    /// Number of links between each pair of groups: a bundle.
    pub global_links: u16,
    pub arrangement: Arrangement,
    /// Number of links that share a slot. If 4, sets of four links share a cable and a pair of
    /// blades, with two links on each blade; if 1, each link has its own slot.
    pub set_links: u8,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DragonflySpec {
    /// Name; if empty, it is derived from the shape.
    pub name: String,
    pub shape: Shape,
    /// Links from a router to its peer in each other chassis; default three.
    pub black_links: Option<u8>,
    /// Links between each pair of groups; default as many as the ports allow, in whole cables of
    /// four if the chassis are full.
    pub global_links: Option<u16>,
    pub arrangement: Arrangement,
    /// Links that share a slot, 1 or 4; default 4 if the chassis are full and the bundle consists
    /// of whole cables.
    pub set_links: Option<u8>,
    pub settings: DragonflySettings,
}

impl Default for DragonflySpec {
    /// A single router with one NIC.
    fn default() -> Self {
        Self {
            name: String::new(),
            shape: Shape {
                groups: 1,
                chassis: 1,
                blades: 1,
                nics: 1,
            },
            black_links: None,
            global_links: None,
            arrangement: Arrangement::default(),
            set_links: None,
            settings: DragonflySettings::default(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DragonflySpecError {
    #[error("{given} {what} are out of range: expected 1 to {most}")]
    Shape {
        what: &'static str,
        given: u32,
        most: u32,
    },
    /// Each black link of a router needs a port.
    #[error(
        "{given} black links to each of {peers} peers exceed the 15 black ports: expected 1 to \
         {most}"
    )]
    BlackLinks {
        given: u8,
        /// Number of other chassis in the group.
        peers: u8,
        most: u8,
    },
    /// Each link between groups needs a global port.
    #[error(
        "{given} links between each pair of {groups} groups exceed the {ports} global ports of a \
         group: expected 1 to {most}"
    )]
    GlobalLinks {
        given: u16,
        groups: u16,
        ports: u32,
        most: u32,
    },
    #[error(
        "links cannot share cables in sets of {0}: expected 1, or 4 if the number of blades is \
         even and bundles are multiples of four"
    )]
    Sets(u8),
}

impl DragonflySpec {
    /// Parses `aries-9x4x2x4:16` or `aries-9x4x2x4-16`: groups, chassis, blades, NICs and
    /// optionally the links between each pair of groups. Returns `None` for other names.
    pub fn named(name: &str) -> Option<Self> {
        let shape = name.strip_prefix("aries-")?;
        let (shape, links) = match shape.split_once([':', '-']) {
            Some((shape, links)) => (shape, Some(links.parse().ok()?)),
            None => (shape, None),
        };
        let mut parts = shape.split('x');
        let shape = Shape {
            groups: parts.next()?.parse().ok()?,
            chassis: parts.next()?.parse().ok()?,
            blades: parts.next()?.parse().ok()?,
            nics: parts.next()?.parse().ok()?,
        };
        parts.next().is_none().then(|| Self {
            shape,
            global_links: links,
            ..Self::default()
        })
    }

    /// The network, with all blades and links.
    ///
    /// # Errors
    /// See [`DragonflySpecError`].
    pub fn generate(&self) -> Result<Dragonfly, DragonflySpecError> {
        let generator = self.generator()?;
        let mut network = Dragonfly {
            name: self.name.clone(),
            shape: self.shape,
            generator: Some(generator),
            settings: self.settings.clone(),
            classes: Classes::default(),
            bias: AriesRegisters::BIAS,
            host: HostTimes::PAPER,
            absent: Vec::new(),
            links: Vec::new(),
        };
        if network.name.is_empty() {
            let Shape {
                groups,
                chassis,
                blades,
                nics,
            } = self.shape;
            network.name = format!("aries-{groups}x{chassis}x{blades}x{nics}");
            // The name includes every deviation from the defaults, so that it describes this
            // network completely.
            if generator.global_links != Generator::default_global_links(&self.shape) {
                network.name += &format!("-{}", generator.global_links);
            }
        }
        network.links = generator.links(&network.shape, &[]);
        Ok(network)
    }

    /// The spec with its defaults filled in.
    ///
    /// # Errors
    /// See [`DragonflySpecError`].
    pub fn generator(&self) -> Result<Generator, DragonflySpecError> {
        let shape = &self.shape;
        shape.check()?;
        let default_links = || Generator::default_global_links(shape);
        let mut generator = Generator {
            black_links: self.black_links.unwrap_or(3),
            global_links: self.global_links.unwrap_or_else(default_links),
            arrangement: self.arrangement,
            set_links: 1,
        };
        let default_sets = || generator.default_set_links(shape);
        generator.set_links = self.set_links.unwrap_or_else(default_sets);
        generator.check(shape)?;
        Ok(generator)
    }
}

impl Shape {
    /// Checks that every part is in range.
    ///
    /// # Errors
    /// [`DragonflySpecError::Shape`].
    pub fn check(&self) -> Result<(), DragonflySpecError> {
        let parts: [(_, u32, u32); 4] = [
            ("groups", self.groups.into(), Self::MAX_GROUPS.into()),
            ("chassis", self.chassis.into(), Self::MAX_CHASSIS.into()),
            ("blades", self.blades.into(), Self::MAX_BLADES.into()),
            ("NICs", self.nics.into(), Self::MAX_NICS.into()),
        ];
        for (what, given, most) in parts {
            if given == 0 || given > most {
                return Err(DragonflySpecError::Shape { what, given, most });
            }
        }
        Ok(())
    }

    pub const fn global_ports(&self) -> u32 {
        self.group_routers() as u32 * BLUE_PORTS as u32
    }
}

impl Generator {
    /// As many links between each pair of groups as the ports allow; in full chassis, whole cables.
    pub fn default_global_links(shape: &Shape) -> u16 {
        if shape.groups < 2 {
            return 0;
        }
        let most = (shape.global_ports() / u32::from(shape.groups - 1)) as u16;
        if shape.blades == Shape::MAX_BLADES && most >= CABLE_LINKS {
            most - most % CABLE_LINKS
        } else {
            most
        }
    }

    /// 4 for bundles of whole cables between groups of full chassis, otherwise 1.
    pub const fn default_set_links(&self, shape: &Shape) -> u8 {
        let cables = self.global_links > 0 && self.global_links.is_multiple_of(CABLE_LINKS);
        if cables && shape.blades == Shape::MAX_BLADES {
            CABLE_LINKS as u8
        } else {
            1
        }
    }

    /// Maximum number of links from a router to its peer in each other chassis.
    pub(super) const fn most_black_links(shape: &Shape) -> u8 {
        match shape.chassis {
            0 | 1 => BLACK_PORTS,
            chassis => BLACK_PORTS / (chassis - 1),
        }
    }

    /// Maximum number of links between each pair of groups; `None` if there is only one group.
    pub(super) const fn most_global_links(shape: &Shape) -> Option<u32> {
        match shape.groups {
            0 | 1 => None,
            groups => Some(shape.global_ports() / (groups as u32 - 1)),
        }
    }

    /// Checks that the ports of a shape suffice.
    ///
    /// # Errors
    /// See [`DragonflySpecError`].
    pub fn check(&self, shape: &Shape) -> Result<(), DragonflySpecError> {
        let peers = shape.chassis - 1;
        let most = Self::most_black_links(shape);
        if peers > 0 && !(1..=most).contains(&self.black_links) {
            return Err(DragonflySpecError::BlackLinks {
                given: self.black_links,
                peers,
                most,
            });
        }
        let groups = shape.groups;
        if let Some(most) = Self::most_global_links(shape)
            && !(1..=most).contains(&u32::from(self.global_links))
        {
            return Err(DragonflySpecError::GlobalLinks {
                given: self.global_links,
                groups,
                ports: shape.global_ports(),
                most,
            });
        }
        let sets_fit = match self.set_links {
            1 => true,
            4 => shape.blades.is_multiple_of(2) && self.global_links.is_multiple_of(CABLE_LINKS),
            _ => false,
        };
        match sets_fit {
            true => Ok(()),
            false => Err(DragonflySpecError::Sets(self.set_links)),
        }
    }

    /// The links in the order NIC, green, black, blue, without those of the `absent` routers
    /// (sorted).
    pub fn links(&self, shape: &Shape, absent: &[u32]) -> Vec<DragonflyLink> {
        let mut links = Vec::new();
        for nic in 0..shape.all_nics() as u32 {
            let nics = u32::from(shape.nics);
            let port = FIRST_NIC_PORT as u8 + (nic % nics) as u8;
            let (own, router) = (End::processor(nic, 0), End::chip(nic / nics, port));
            links.push(DragonflyLink::straight(own, router));
        }
        for group in 0..shape.groups {
            self.links_inside(shape, group, &mut links);
        }
        for from in 0..shape.groups {
            for to in from + 1..shape.groups {
                self.bundle(shape, from, to, &mut links);
            }
        }
        if !absent.is_empty() {
            let there = |end: End| match end.node {
                NodeRef::Processor(n) => {
                    absent.binary_search(&(n / u32::from(shape.nics))).is_err()
                }
                NodeRef::Chip(r) => absent.binary_search(&r).is_err(),
            };
            links.retain(|link| there(link.a) && there(link.b));
        }
        links
    }

    /// Green and black links of a group. The port to peer p is p, or p - 1 if p is above the
    /// router's own number.
    fn links_inside(&self, shape: &Shape, group: u16, links: &mut Vec<DragonflyLink>) {
        let router = |chassis: u8, blade: u8| shape.router(group, chassis * shape.blades + blade);
        for chassis in 0..shape.chassis {
            for low in 0..shape.blades {
                for high in low + 1..shape.blades {
                    links.push(DragonflyLink::straight(
                        End::chip(router(chassis, low), high - 1),
                        End::chip(router(chassis, high), low),
                    ));
                }
            }
        }
        let port = |peer: u8, link: u8| FIRST_BLACK_PORT + peer * self.black_links + link;
        for blade in 0..shape.blades {
            for low in 0..shape.chassis {
                for high in low + 1..shape.chassis {
                    for link in 0..self.black_links {
                        links.push(DragonflyLink::straight(
                            End::chip(router(low, blade), port(high - 1, link)),
                            End::chip(router(high, blade), port(low, link)),
                        ));
                    }
                }
            }
        }
    }

    fn bundle(&self, shape: &Shape, from: u16, to: u16, links: &mut Vec<DragonflyLink>) {
        for link in 0..self.global_links {
            links.push(DragonflyLink::straight(
                self.global_end(shape, from, to, link),
                self.global_end(shape, to, from, link),
            ));
        }
    }

    /// The end in group `from` of link `link` of the bundle to group `to`. The arrangement is
    /// applied once per set of links, and its slots are spread evenly over the routers or pairs of
    /// routers.
    fn global_end(&self, shape: &Shape, from: u16, to: u16, link: u16) -> End {
        let set_links = u32::from(self.set_links);
        let (copy, lane) = (u32::from(link) / set_links, u32::from(link) % set_links);
        let others = u32::from(shape.groups - 1);
        let all = u32::from(self.global_links) / set_links * others;
        let position = copy * others + u32::from(self.arrangement.position(shape.groups, from, to));
        // A set of four links covers two routers with two links each.
        let routers = if set_links == 1 { 1 } else { 2 };
        let seats = shape.group_routers() as u32 / routers;
        let seat = position * seats / all;
        let index = position - (seat * all).div_ceil(seats);
        let each = set_links / routers;
        let local = seat * routers + lane / each;
        let port = u32::from(FIRST_BLUE_PORT) + index * each + lane % each;
        End::chip(shape.router(from, local as u8), port as u8)
    }
}
