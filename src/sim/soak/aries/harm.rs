//! What is done to a dragonfly while traffic flows.

use super::{AriesFailure, words};
use crate::link::impair::{Lateness, Probability};
use crate::link::{AriesInput, AriesLcb};
use crate::sim::dragonfly::AriesNetwork;
use crate::sim::fabric::{Direction, LinkId, NodeId};
use crate::sim::network::NetworkError;
use crate::sim::soak::harm::{busy_link, copy_late_everywhere};
use crate::time::{Duration, Time};

/// Something done to the network while traffic flows. Links and routers are numbers modulo how many there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AriesHarm {
    /// A link is cut, and restored after a while: shorter than any time-out of a request.
    Cut {
        /// Which.
        link: u32,
        /// How long.
        span: Duration,
    },
    /// One end replays everything that is not acknowledged.
    ForceRetry {
        /// The link.
        link: u32,
    },
    /// One end sends its next data set with a bad CRC.
    BadCrc {
        /// The link.
        link: u32,
    },
    /// One end initialises its lanes again.
    Reinitialise {
        /// The link.
        link: u32,
    },
    /// One end hears nothing for a while: its receive clock is lost.
    LoseClock {
        /// The link.
        link: u32,
        /// How long.
        span: Duration,
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

impl AriesHarm {
    /// Whether any message may be lost by it: not only one, as by a soft error.
    pub const fn destroys(&self) -> bool {
        #[cfg(test)]
        if matches!(self, Self::LeaveDown { .. }) {
            return true;
        }
        matches!(
            self,
            Self::DownAndUp { .. } | Self::RestartRouter { .. } | Self::RestartEnd { .. }
        )
    }

    /// Does it, at the present time of `network`, which goes on while a link is cut or down.
    pub(super) fn inflict(&self, network: &mut AriesNetwork) -> Result<(), AriesFailure> {
        let links = network.fabric.links() as u32;
        let chosen = |link: &u32| LinkId(link % links);
        match self {
            Self::Cut { link, span } => {
                network.fabric.cut(chosen(link));
                network.fabric.run_for(*span);
                network.fabric.restore(chosen(link));
            }
            Self::ForceRetry { link } => {
                on_first_end(network, chosen(link), |lcb, now, _| lcb.force_retry(now));
            }
            Self::BadCrc { link } => {
                on_first_end(network, chosen(link), |lcb, _, _| lcb.force_bad_crc());
            }
            Self::Reinitialise { link } => {
                on_first_end(network, chosen(link), |lcb, now, _| lcb.force_reinit(now));
            }
            Self::LoseClock { link, span } => {
                let span = *span;
                on_first_end(network, chosen(link), |lcb, now, _| {
                    lcb.lose_clock(now, span);
                });
            }
            Self::LaneNoise { link, lane, a_to_b } => {
                let direction = Direction::BOTH[usize::from(!a_to_b)];
                let noise = Some((*lane, Probability::from_ratio(1, 500)));
                network.fabric.lane_noise(chosen(link), direction, noise);
            }
            Self::Impair { link, words: text } => {
                for direction in Direction::BOTH {
                    let netem = Some(words(text));
                    network.fabric.impair(chosen(link), direction, netem);
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
            Self::SoftError { link } => {
                on_first_end(network, chosen(link), |lcb, _, _| lcb.soft_error_next());
            }
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
                let restarted = network.restart(nodes[*router as usize % nodes.len()]);
                restarted.map_err(NetworkError::from)?;
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

fn on_first_end(
    network: &mut AriesNetwork,
    link: LinkId,
    act: impl FnOnce(&mut AriesLcb, Time, &mut AriesInput),
) {
    let (node, port) = network.fabric.ends(link)[0];
    network.fabric.command(node, |machine, now| {
        machine.with_lcb(now, port, |lcb, input| act(lcb, now, input))
    });
}
