//! What is done to a network while traffic flows.

use super::Failure;
use super::words;
use crate::link::Lcb;
use crate::link::impair::{Lateness, Probability};
use crate::node::Node;
use crate::sim::fabric::{Direction, Fabric, LinkId, NodeId};
use crate::sim::network::{Network, NetworkError};
use crate::time::Duration;

/// Something done to the network while traffic flows. Links and nodes are numbers modulo how many
/// there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm {
    /// A link is cut, and restored after a while.
    Cut {
        /// Which.
        link: u32,
        /// How long.
        span: Duration,
    },
    /// One end goes back as if the other had asked for it.
    ForceRetry {
        /// The link.
        link: u32,
    },
    /// One bit in 500 of a lane is wrong.
    LaneNoise {
        /// The link.
        link: u32,
        /// The lane.
        lane: u8,
        /// The direction.
        a_to_b: bool,
    },
    /// Both directions of a link get an impairment of their own.
    Impair {
        /// The link.
        link: u32,
        /// In netem's words.
        words: String,
    },
    /// Some frames of both directions come again, unchanged and late, until after the last harm.
    LateCopies {
        /// The link.
        link: u32,
        /// Of a hundred frames, how many.
        percent: u32,
        /// How late.
        lateness: Lateness,
    },
    /// The next packet in a send buffer is damaged.
    SoftError {
        /// The link.
        link: u32,
    },
    /// A link is taken down by command, and brought up again after a while.
    DownAndUp {
        /// The link.
        link: u32,
        /// How long.
        span: Duration,
    },
    /// A router dies with all that is in it, and starts again.
    RestartRouter {
        /// Which.
        router: u32,
    },
    /// A network interface dies with its memory, and starts again.
    RestartNic {
        /// Which.
        nic: u32,
    },
    /// Some frames of every link come again, unchanged and late, until after the last harm.
    LateCopiesEverywhere {
        /// Of a hundred frames, how many.
        percent: u32,
        /// How late.
        lateness: Lateness,
    },
    /// Lane 0 of a busy link is so noisy that it is given up.
    LoseLane {
        /// Which of the busy ones.
        busy: u32,
        /// The direction.
        a_to_b: bool,
    },
    /// The process at an end of a busy link stands still for a while, and then finds what came meanwhile.
    Stop {
        /// Which of the busy ones.
        busy: u32,
        /// Which of its ends.
        first: bool,
        /// How long.
        span: Duration,
    },
    /// The router at an end of a busy link dies with all that is in it, and starts again.
    RestartEnd {
        /// Which of the busy ones.
        busy: u32,
    },
    /// A link is taken down by command and never brought up again: what the liveness phase must find.
    #[cfg(test)]
    LeaveDown {
        /// Which.
        link: u32,
    },
}

impl Harm {
    /// Whether messages may be lost by it.
    pub const fn destroys(&self) -> bool {
        #[cfg(test)]
        if matches!(self, Self::LeaveDown { .. }) {
            return true;
        }
        matches!(
            self,
            Self::SoftError { .. }
                | Self::DownAndUp { .. }
                | Self::RestartRouter { .. }
                | Self::RestartNic { .. }
                | Self::RestartEnd { .. }
        )
    }

    /// Does it, at the present time of `network`, which goes on while a link is cut or down.
    pub(super) fn inflict(&self, network: &mut Network) -> Result<(), Failure> {
        let links = network.fabric.links() as u32;
        let chosen = |link: &u32| LinkId(link % links);
        match self {
            Self::Cut { link, span } => {
                network.fabric.cut(chosen(link));
                network.fabric.run_for(*span);
                network.fabric.restore(chosen(link));
            }
            Self::ForceRetry { link } => on_first_end(network, chosen(link), |lcb, now, _| {
                lcb.force_retry(now);
            }),
            Self::LaneNoise { link, lane, a_to_b } => {
                let direction = Direction::BOTH[usize::from(!a_to_b)];
                let rate = Probability::from_ratio(1, 500);
                network
                    .fabric
                    .lane_noise(chosen(link), direction, Some((*lane, rate)));
            }
            Self::Impair { link, words: text } => {
                for direction in Direction::BOTH {
                    network
                        .fabric
                        .impair(chosen(link), direction, Some(words(text)));
                }
            }
            Self::LateCopies {
                link,
                percent,
                lateness,
            } => {
                let share = Probability::from_ratio((*percent).into(), 100);
                for direction in Direction::BOTH {
                    let fabric = &mut network.fabric;
                    fabric.copy_late(chosen(link), direction, share, *lateness);
                }
            }
            Self::SoftError { link } => on_first_end(network, chosen(link), |lcb, _, _| {
                lcb.soft_error_next();
            }),
            Self::DownAndUp { link, span } => {
                on_first_end(network, chosen(link), |lcb, now, input| {
                    lcb.link_down(now, input);
                });
                network.fabric.run_for(*span);
                on_first_end(network, chosen(link), |lcb, now, _| lcb.link_up(now));
            }
            #[cfg(test)]
            Self::LeaveDown { link } => on_first_end(network, chosen(link), |lcb, now, input| {
                lcb.link_down(now, input);
            }),
            Self::RestartRouter { router } => {
                let nodes: Vec<NodeId> = network.routers().collect();
                restart(network, &nodes, *router)?;
            }
            Self::RestartNic { nic } => {
                let nodes: Vec<NodeId> = network.processors().collect();
                restart(network, &nodes, *nic)?;
            }
            Self::LateCopiesEverywhere { percent, lateness } => {
                copy_late_everywhere(&mut network.fabric, *percent, *lateness);
            }
            Self::LoseLane { busy, a_to_b } => {
                let direction = Direction::BOTH[usize::from(!a_to_b)];
                let noise = Some((0, Probability::from_ratio(1, 100)));
                let link = busy_link(&network.fabric, *busy);
                network.fabric.lane_noise(link, direction, noise);
            }
            Self::Stop { busy, first, span } => {
                let link = busy_link(&network.fabric, *busy);
                let (node, _) = network.fabric.ends(link)[usize::from(!first)];
                network.fabric.stop(node);
                network.fabric.run_for(*span);
                network.fabric.go_on(node);
            }
            Self::RestartEnd { busy } => {
                let link = busy_link(&network.fabric, *busy);
                let ends = network.fabric.ends(link).map(|(node, _)| node);
                // Every link has a router at one end.
                if let Some(router) = network.routers().find(|node| ends.contains(node)) {
                    network.restart(router).map_err(NetworkError::from)?;
                }
            }
        }
        Ok(())
    }
}

/// Late copies on all links of a fabric.
pub(super) fn copy_late_everywhere<N: Node>(
    fabric: &mut Fabric<N>,
    percent: u32,
    lateness: Lateness,
) {
    let share = Probability::from_ratio(percent.into(), 100);
    for link in (0..fabric.links() as u32).map(LinkId) {
        for direction in Direction::BOTH {
            fabric.copy_late(link, direction, share, lateness);
        }
    }
}

/// One of the links that have carried at least half as many frames as any.
pub(super) fn busy_link<N: Node>(fabric: &Fabric<N>, number: u32) -> LinkId {
    let sent = |link: LinkId| -> u64 {
        let sent = Direction::BOTH.map(|direction| fabric.wire(link, direction).counters().sent);
        sent.iter().sum()
    };
    let links = || (0..fabric.links() as u32).map(LinkId);
    let most = links().map(sent).max().unwrap_or(0);
    let busy: Vec<LinkId> = links().filter(|link| 2 * sent(*link) >= most).collect();
    busy[number as usize % busy.len()]
}

fn restart(network: &mut Network, nodes: &[NodeId], number: u32) -> Result<(), NetworkError> {
    Ok(network.restart(nodes[number as usize % nodes.len()])?)
}

fn on_first_end(
    network: &mut Network,
    link: LinkId,
    act: impl FnOnce(&mut Lcb, crate::time::Time, &mut crate::link::InputQueue),
) {
    let (node, port) = network.fabric.ends(link)[0];
    network.fabric.command(node, |machine, now| {
        machine.with_lcb(now, port, |lcb, input| act(lcb, now, input))
    });
}
