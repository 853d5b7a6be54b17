//! The candidate paths of a packet at a router, and the choice among them.

use phitwire_framing::aries::flit::{Head, Routing};

use super::{Decision, Intent, Loads, NextHop, Part, Routes, Up};
use crate::route::draws::{Draws, HashDraws, NoLoads, count, nth, pick_port};
use crate::route::registers::ModeBias;
use phitwire::rng::{Rng, spread};

impl Routes {
    /// The hash of a deterministic packet, which is the same for all packets of a flow at one
    /// router. The head contains neither source nor address, but all packets of a flow arrive by
    /// the same port, and the id of a hashed packet contains the hash of its cache line.
    pub fn flow_hash(&self, port: u8, head: Head) -> u64 {
        let flow = u64::from(head.line_hash()) << 26
            | u64::from(head.destination().bits()) << 8
            | u64::from(port) << 1
            | u64::from(head.is_response());
        spread(self.salt ^ flow)
    }

    /// A hashed path of the kind that the mode or the packet's state requires, or of the other kind
    /// if there is none.
    pub(super) fn pick_hashed(
        &self,
        phase: Intent,
        mode: Routing,
        draws: &mut HashDraws,
    ) -> Option<Decision> {
        let up_first = phase.wants_up(mode.is_non_minimal());
        for (turn, up) in [up_first, !up_first].into_iter().enumerate() {
            let candidate = if up {
                self.draw_up(&phase.up, draws, &NoLoads)
            } else {
                phase.minimal.pick(draws, &NoLoads)
            };
            if let Some(way) = candidate {
                return Some(phase.decision(way, up, turn > 0));
            }
        }
        None
    }

    /// The less loaded candidate of the kind that the mode or the packet's state requires, or of
    /// the other kind if there is none.
    #[inline(always)] // Inlined like `phase`.
    pub(super) fn pick_of_kind(
        &self,
        phase: Intent,
        wants_up: bool,
        rng: &mut Rng,
        load: &impl Loads,
    ) -> Option<Decision> {
        let up_first = phase.wants_up(wants_up);
        for (turn, up) in [up_first, !up_first].into_iter().enumerate() {
            let candidate = if up {
                let picked = self.pick_up(&phase.up, rng, load);
                picked.map(|(way, _)| way)
            } else {
                phase.minimal.pick(rng, load)
            };
            if let Some(way) = candidate {
                return Some(phase.decision(way, up, turn > 0));
            }
        }
        None
    }

    /// The least loaded path of either kind, at routers with both kinds: at the source, at each
    /// router of the source group, which may divert a packet or return it to a minimal path, and on
    /// the path to a root, where each router can become the root (XC white paper, "Aries Router":
    /// "two minimal and two non-minimal outputs for every packet").
    #[inline(always)] // Inlined like `phase`.
    pub(super) fn pick_adaptive(
        &self,
        mut phase: Intent,
        mode: usize,
        rng: &mut Rng,
        load: &impl Loads,
    ) -> Option<Decision> {
        let mut is_root = false;
        if let (0, Some(class)) = (phase.minimal.ports, phase.up.root) {
            is_root = phase.up.ends != 0;
            let ports = core::mem::take(&mut phase.up.ends);
            phase.minimal = Part { ports, class };
        }
        let down = phase.minimal.pick(rng, load);
        let up = self.pick_up(&phase.up, rng, load);
        let bias = &self.registers.bias[mode & 3];
        match (down, up) {
            (Some(down), Some((up, up_load))) => {
                let cost = bias.cost(load.of(down.port), false, phase.position);
                let goes_up = bias.cost(up_load, true, phase.position) < cost;
                let way = if goes_up { up } else { down };
                Some(phase.decision(way, goes_up || is_root, false))
            }
            (Some(way), None) => Some(phase.decision(way, is_root, false)),
            (None, Some((way, _))) => Some(phase.decision(way, true, phase.at_source)),
            (None, None) => None,
        }
    }

    /// The load of a path after the bias of an adaptive mode, for a packet with the given arrival.
    /// `up` marks a non-minimal path.
    pub fn cost(&self, mode: usize, arrival: super::Arrival, (load, up): (u32, bool)) -> u32 {
        let phase = self.phase(arrival.kind, arrival.head, !0);
        self.registers.bias[mode & 3].cost(load, up, phase.position)
    }

    /// The less loaded of two candidate steps up, and the load of its path. A non-minimal path is
    /// two minimal ones in sequence. The load after the root is unknown here, so it is estimated by
    /// the load of the other candidate. Thus a network whose links are all full diverts no packet;
    /// each diversion would use twice the scarce bandwidth.
    #[inline]
    fn pick_up(&self, up: &Up, rng: &mut Rng, load: &impl Loads) -> Option<(NextHop, u32)> {
        let (one, other) = (self.draw_up(up, rng, load)?, self.draw_up(up, rng, load)?);
        let loads = (load.of(one.port), load.of(other.port));
        let way = if loads.1 < loads.0 { other } else { one };
        Some((way, loads.0 + loads.1))
    }

    /// One candidate for the next step up: green, black or "stay" in either dimension, weighted so
    /// that each router of the group has about the same probability. "Stay" is excluded where the
    /// path could not continue.
    #[inline]
    fn draw_up(&self, up: &Up, draws: &mut impl Draws, load: &impl Loads) -> Option<NextHop> {
        let step = |port| {
            load.drawn(port, true);
            Some(NextHop {
                port,
                class: up.class,
                non_minimal: true,
            })
        };
        let ends = up.ends != 0;
        if up.greens != 0 {
            let greens = count(up.greens);
            let drawn = draws.below(greens + u64::from(up.blacks != 0 || ends));
            if drawn < greens {
                return step(nth(up.greens, drawn));
            }
        }
        if up.blacks != 0 {
            let stays = u64::from(self.registers.black_links.max(1));
            let blacks = count(up.blacks);
            let drawn = draws.below(blacks + if ends { stays } else { 0 });
            if drawn < blacks {
                return step(nth(up.blacks, drawn));
            }
        }
        let ports = up.ends;
        if !ends {
            return None;
        }
        match up.root {
            None => step(nth(ports, draws.below(count(ports)))),
            Some(class) => {
                let root = Part { ports, class };
                Some(root.way(pick_port(ports, draws, load, true)))
            }
        }
    }
}

impl Part {
    /// The less loaded of two candidates.
    #[inline]
    fn pick(&self, draws: &mut impl Draws, load: &impl Loads) -> Option<NextHop> {
        (self.ports != 0).then(|| self.way(pick_port(self.ports, draws, load, false)))
    }
}

impl ModeBias {
    /// A load after the bias, for a packet at the given position. `up` marks a non-minimal path.
    #[inline]
    fn cost(&self, load: u32, up: bool, position: u8) -> u32 {
        let bias = if up { self.non_minimal } else { self.minimal };
        let grown = if up {
            u32::from(self.growth & 63) * u32::from(position)
        } else {
            0
        };
        (load << (bias.shift & 3)) + u32::from(bias.add & 63) + grown
    }
}
