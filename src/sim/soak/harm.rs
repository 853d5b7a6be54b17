//! Harm done to a network while traffic flows.

use core::fmt::Debug;

use super::{Failure, words};
use crate::device::{DeviceError, LinkFault};
use crate::link::impair::{Lateness, Probability};
use crate::net::Network;
use crate::node::Node;
use crate::sim::fabric::{Direction, Fabric, LinkId, NodeId};
use crate::sim::world::World;
use crate::time::Duration;

/// Harm that only one machine's links can suffer.
pub trait OwnHarm: Clone + Debug + PartialEq + Send + Sync {
    /// The number of the link to harm, modulo the number of links, and the fault.
    fn fault(&self) -> (u32, LinkFault);

    fn end(&self) -> usize {
        0
    }

    /// The fault that ends this harm; `None` if the harm ends without one.
    fn cure(&self) -> Option<LinkFault> {
        None
    }

    /// Whether the harm may lose any message.
    fn destroys(&self) -> bool {
        false
    }
}

/// For machines without harm specific to their links.
impl OwnHarm for core::convert::Infallible {
    fn fault(&self) -> (u32, LinkFault) {
        match *self {}
    }
}

/// Harm to the network while traffic flows. Numbers of links and nodes are modulo their count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm<Own> {
    /// A link is cut, and restored after less than any request timeout.
    Cut { link: u32, span: Duration },
    /// One end resends everything unacknowledged, as if the peer had requested it.
    ForceRetry { link: u32 },
    /// One bit in 500 of a lane is flipped.
    LaneNoise { link: u32, lane: u8, a_to_b: bool },
    /// Both directions of a link get their own impairment.
    Impair {
        link: u32,
        /// In netem's syntax.
        words: String,
    },
    /// Some frames of both directions arrive a second time, unchanged and late. Stays active until
    /// after the last harm.
    LateCopies {
        link: u32,
        percent: u32,
        lateness: Lateness,
    },
    /// The next packet in a send buffer is damaged.
    SoftError { link: u32 },
    /// A link is taken down by command, and brought up again later.
    DownAndUp { link: u32, span: Duration },
    /// A router loses its contents and restarts.
    RestartRouter { router: u32 },
    /// A NIC loses its memory and restarts.
    RestartNic { nic: u32 },
    /// On every link, `percent` percent of the frames arrive a second time, unchanged and late,
    /// until after the last harm.
    LateCopiesEverywhere { percent: u32, lateness: Lateness },
    /// Lane 0 of a busy link gets enough noise to be decommissioned.
    LoseLane {
        /// Index among the busy links.
        busy: u32,
        a_to_b: bool,
    },
    /// The process at an end of a busy link is suspended for a while and then receives the frames
    /// of that time.
    Stop {
        /// Index among the busy links.
        busy: u32,
        /// Whether that end is the link's end A.
        first: bool,
        span: Duration,
    },
    /// The router at an end of a busy link loses its contents and restarts.
    RestartEnd {
        /// Index among the busy links.
        busy: u32,
    },
    /// Harm that only this machine's links can suffer.
    Own(Own),
    /// A link is taken down by command and never brought up again: the liveness phase must find it.
    #[cfg(any(test, feature = "testing"))]
    LeaveDown { link: u32 },
}

impl<Own: OwnHarm> Harm<Own> {
    /// Whether the harm may lose any message, not just one as a soft error does.
    pub fn destroys(&self) -> bool {
        match self {
            #[cfg(any(test, feature = "testing"))]
            Self::LeaveDown { .. } => true,
            Self::Own(own) => own.destroys(),
            _ => matches!(
                self,
                Self::DownAndUp { .. }
                    | Self::RestartRouter { .. }
                    | Self::RestartNic { .. }
                    | Self::RestartEnd { .. }
            ),
        }
    }

    /// Whether the harm may lose a message.
    pub fn may_lose(&self) -> bool {
        matches!(self, Self::SoftError { .. }) || self.destroys()
    }

    /// Inflicts the harm at the current time of `world`, which runs on while a link is cut or down.
    pub(crate) fn inflict<L: Network>(&self, world: &mut World<L>) -> Result<(), Failure> {
        let links = world.fabric.links() as u32;
        let chosen = |link: &u32| LinkId(link % links);
        match self {
            Self::Cut { link, span } => {
                world.fabric.cut(chosen(link));
                world.fabric.run_for(*span);
                world.fabric.restore(chosen(link));
            }
            Self::ForceRetry { link } => on_first_end(world, chosen(link), LinkFault::ForceRetry)?,
            Self::LaneNoise { link, lane, a_to_b } => {
                let noise = Some((*lane, Probability::from_ratio(1, 500)));
                world.fabric.lane_noise(chosen(link), way(*a_to_b), noise);
            }
            Self::Impair { link, words: text } => {
                for direction in Direction::BOTH {
                    let netem = Some(words(text));
                    world.fabric.impair(chosen(link), direction, netem);
                }
            }
            Self::LateCopies {
                link,
                percent,
                lateness,
            } => copy_late(&mut world.fabric, chosen(link), *percent, *lateness),
            Self::LateCopiesEverywhere { percent, lateness } => {
                for link in world.links() {
                    copy_late(&mut world.fabric, link, *percent, *lateness);
                }
            }
            Self::SoftError { link } => on_first_end(world, chosen(link), LinkFault::SoftError)?,
            Self::DownAndUp { link, span } => {
                on_first_end(world, chosen(link), LinkFault::Down)?;
                world.fabric.run_for(*span);
                on_first_end(world, chosen(link), LinkFault::Up)?;
            }
            Self::RestartRouter { router } => restart(world, world.routers(), *router)?,
            Self::RestartNic { nic } => restart(world, world.nics(), *nic)?,
            Self::LoseLane { busy, a_to_b } => {
                let noise = Some((0, Probability::from_ratio(1, 100)));
                let link = busy_link(&world.fabric, *busy);
                world.fabric.lane_noise(link, way(*a_to_b), noise);
            }
            Self::Stop { busy, first, span } => {
                let link = busy_link(&world.fabric, *busy);
                let (node, _) = world.fabric.ends(link)[usize::from(!first)];
                world.fabric.suspend(node);
                world.fabric.run_for(*span);
                world.fabric.resume(node);
            }
            Self::RestartEnd { busy } => {
                let link = busy_link(&world.fabric, *busy);
                let ends = world.fabric.ends(link).map(|(node, _)| node);
                // Every link has a router at one end.
                if let Some(router) = world.routers().find(|node| ends.contains(node)) {
                    world.restart(router)?;
                }
            }
            Self::Own(own) => {
                let (link, fault) = own.fault();
                on_end(world, chosen(&link), own.end(), fault)?;
            }
            #[cfg(any(test, feature = "testing"))]
            Self::LeaveDown { link } => on_first_end(world, chosen(link), LinkFault::Down)?,
        }
        Ok(())
    }

    /// Removes lasting harm, but leaves the wires impaired.
    pub(crate) fn undo<L: Network>(&self, world: &mut World<L>) -> Result<(), Failure> {
        if let Self::Own(own) = self
            && let Some(cure) = own.cure()
        {
            let links = world.fabric.links() as u32;
            on_end(world, LinkId(own.fault().0 % links), own.end(), cure)?;
        }
        Ok(())
    }
}

const fn way(a_to_b: bool) -> Direction {
    if a_to_b {
        Direction::AToB
    } else {
        Direction::BToA
    }
}

/// Sets late copies in both directions of a link.
fn copy_late<N: Node>(fabric: &mut Fabric<N>, link: LinkId, percent: u32, lateness: Lateness) {
    let share = Probability::from_ratio(percent.into(), 100);
    for direction in Direction::BOTH {
        fabric.copy_late(link, direction, share, lateness);
    }
}

/// One of the links that carried at least half as many frames as the busiest.
fn busy_link<N: Node>(fabric: &Fabric<N>, number: u32) -> LinkId {
    let sent = |link: LinkId| -> u64 {
        let sent = Direction::BOTH.map(|direction| fabric.wire(link, direction).counters().sent);
        sent.iter().sum()
    };
    let links = || (0..fabric.links() as u32).map(LinkId);
    let most = links().map(sent).max().unwrap_or(0);
    let busy: Vec<LinkId> = links().filter(|link| 2 * sent(*link) >= most).collect();
    busy[number as usize % busy.len()]
}

fn restart<L: Network>(
    world: &mut World<L>,
    nodes: impl Iterator<Item = NodeId>,
    number: u32,
) -> Result<(), Failure> {
    let nodes: Vec<NodeId> = nodes.collect();
    Ok(world.restart(nodes[number as usize % nodes.len()])?)
}

fn on_first_end<L: Network>(
    world: &mut World<L>,
    link: LinkId,
    fault: LinkFault,
) -> Result<(), DeviceError> {
    on_end(world, link, 0, fault)
}

fn on_end<L: Network>(
    world: &mut World<L>,
    link: LinkId,
    end: usize,
    fault: LinkFault,
) -> Result<(), DeviceError> {
    let (node, port) = world.fabric.ends(link)[end];
    world
        .fabric
        .command(node, |device, now| device.link_fault(now, port, fault))
}
