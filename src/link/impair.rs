//! Impairment of one direction of a link: netem's effects as a pure, seeded decorator.
//!
//! It sits between the sender's `poll_frame` and the receiver's `handle_frame`, never inside a
//! router or a link control block. In virtual time it is the wire; where the kernel has no
//! `sch_netem`, a process may put it in front of its socket. Words and arithmetic are netem's (see
//! [`Netem`]), plus a seed: the same seed gives the same losses.
//!
//! Call order: [`send`](Impairment::send) for each frame, [`poll`](Impairment::poll) until `None`,
//! then again at [`next_deadline`](Impairment::next_deadline).

mod lane_noise;
mod late_copies;
mod netem;
mod normal;

pub use lane_noise::LaneNoise;
pub(crate) use late_copies::LateCopies;
pub use late_copies::{LateCopyCounters, Lateness};
pub(crate) use netem::{Chance, Delay, Distribution, Loss};
pub use netem::{Netem, NetemError, Probability, Rate};

use std::collections::{BTreeMap, VecDeque};

use crate::rng::Rng;
use crate::time::{Duration, Time};

/// Counters of an impairment, in frames. Every frame is in exactly one of `lost`, `over_limit`,
/// `cleared`, `delivered` or still held; duplicates count as separate frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImpairCounters {
    /// Frames given to [`Impairment::send`].
    pub(crate) offered: u64,
    /// Copies made.
    pub duplicated: u64,
    /// Frames lost by the loss model.
    pub lost: u64,
    /// Frames dropped because `limit` frames were held.
    pub(crate) over_limit: u64,
    /// Frames with one bit flipped.
    pub corrupted: u64,
    /// Frames sent ahead of delayed ones.
    pub reordered: u64,
    /// Frames dropped by [`Impairment::clear`].
    pub(crate) cleared: u64,
    /// Frames returned by [`Impairment::poll`].
    pub(crate) delivered: u64,
}

/// A sequence of draws, each correlated with the one before.
#[derive(Clone, Debug)]
struct CorrelatedDraw {
    last: u32,
}

impl CorrelatedDraw {
    fn new(rng: &mut Rng) -> Self {
        Self { last: draw(rng) }
    }

    /// netem's `get_crandom`.
    fn next(&mut self, rng: &mut Rng, correlation: Probability) -> u32 {
        let fresh = draw(rng);
        if correlation == Probability::ZERO {
            return fresh;
        }
        let weight = u64::from(correlation.parts()) + 1;
        let answer =
            (u64::from(fresh) * ((1 << 32) - weight) + u64::from(self.last) * weight) >> 32;
        self.last = answer as u32;
        self.last
    }

    /// Draws whether an event of probability `chance` happens.
    fn happens(&mut self, rng: &mut Rng, chance: Chance) -> bool {
        chance.probability > Probability::ZERO
            && chance.probability.parts() >= self.next(rng, chance.correlation)
    }
}

fn draw(rng: &mut Rng) -> u32 {
    (rng.next_u64() >> 32) as u32
}

/// State of the loss model; Gilbert-Elliott uses the first two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LossState {
    /// Gilbert-Elliott's good state; receiving within a gap.
    Gap,
    /// Gilbert-Elliott's bad state; losing within a burst.
    Burst,
    /// Receiving within a burst.
    BurstReceiving,
    /// An isolated loss within a gap.
    GapLosing,
}

/// One impaired direction of a link.
#[derive(Clone, Debug)]
pub struct Impairment {
    netem: Netem,
    rng: Rng,
    delay_draw: CorrelatedDraw,
    loss_draw: CorrelatedDraw,
    duplicate_draw: CorrelatedDraw,
    corrupt_draw: CorrelatedDraw,
    reorder_draw: CorrelatedDraw,
    loss_state: LossState,
    /// Frames since the last reordered one (for `gap`).
    since_reorder: u32,
    /// Frames sent ahead of delayed ones, the latest first, as in netem.
    front: VecDeque<(Time, Vec<u8>)>,
    /// Delayed frames by departure; the serial number keeps equal departures in order.
    delayed: BTreeMap<(Time, u64), Vec<u8>>,
    serial: u64,
    spare: Vec<Vec<u8>>,
    counters: ImpairCounters,
}

/// Maximum number of buffers kept for reuse by one impairment.
const SPARE_BUFFERS: usize = 64;

impl Impairment {
    /// An impairment as `netem` describes it. A `seed` there overrides `rng`.
    pub fn new(netem: Netem, rng: Rng) -> Self {
        let mut rng = netem.seed.map_or(rng, |seed| Rng::new(seed, 0));
        Self {
            netem,
            delay_draw: CorrelatedDraw::new(&mut rng),
            loss_draw: CorrelatedDraw::new(&mut rng),
            duplicate_draw: CorrelatedDraw::new(&mut rng),
            corrupt_draw: CorrelatedDraw::new(&mut rng),
            reorder_draw: CorrelatedDraw::new(&mut rng),
            rng,
            loss_state: LossState::Gap,
            since_reorder: 0,
            front: VecDeque::new(),
            delayed: BTreeMap::new(),
            serial: 0,
            spare: Vec::new(),
            counters: ImpairCounters::default(),
        }
    }

    pub(crate) const fn counters(&self) -> &ImpairCounters {
        &self.counters
    }

    /// Frames held now, at most the limit.
    pub(crate) fn held(&self) -> usize {
        self.front.len() + self.delayed.len()
    }

    /// Takes a frame for delivery. Frames beyond the limit are dropped and counted.
    pub fn send(&mut self, now: Time, bytes: &[u8]) {
        self.counters.offered += 1;
        let copy = self
            .duplicate_draw
            .happens(&mut self.rng, self.netem.duplicate);
        let lost = self.is_lost();
        // As in the kernel, a loss removes one of the two copies. The copy is enqueued again and so
        // has its own chance of loss.
        self.counters.duplicated += u64::from(copy);
        self.counters.lost += u64::from(lost);
        if copy && !lost {
            if self.is_lost() {
                self.counters.lost += 1;
            } else {
                self.enqueue(now, bytes);
            }
        }
        if copy || !lost {
            self.enqueue(now, bytes);
        }
    }

    /// The next frame due by `now`, with the time at which it is due; earliest first.
    pub fn poll(&mut self, now: Time) -> Option<(Time, Vec<u8>)> {
        let due = if let Some(first) = self.front.pop_front() {
            first
        } else {
            let entry = self.delayed.first_entry()?;
            let at = entry.key().0;
            if at > now {
                return None;
            }
            (at, entry.remove())
        };
        self.counters.delivered += 1;
        Some(due)
    }

    /// When the next frame is due, if any is held.
    pub fn next_deadline(&self) -> Option<Time> {
        match self.front.front() {
            Some((at, _)) => Some(*at),
            None => self.delayed.first_key_value().map(|((at, _), _)| *at),
        }
    }

    /// Drops every frame held (a cable pulled out).
    pub(crate) fn clear(&mut self) {
        self.counters.cleared += self.held() as u64;
        self.front.clear();
        self.delayed.clear();
    }

    /// Returns a buffer for reuse.
    pub(crate) fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS {
            self.spare.push(buffer);
        }
    }

    /// netem's `loss_event`: draws for one frame.
    fn is_lost(&mut self) -> bool {
        match self.netem.loss {
            Loss::None => false,
            Loss::Random(chance) => self.loss_draw.happens(&mut self.rng, chance),
            Loss::GilbertElliott {
                p,
                r,
                loss_in_bad,
                loss_in_good,
            } => {
                let (leave, other, loss) = match self.loss_state {
                    LossState::Burst => (r, LossState::Gap, loss_in_bad),
                    _ => (p, LossState::Burst, loss_in_good),
                };
                if self.below(leave) {
                    self.loss_state = other;
                }
                // As in the kernel, the state before the transition decides the frame's fate.
                self.below(loss)
            }
            Loss::FourState {
                p13,
                p31,
                p32,
                p23,
                p14,
            } => {
                let point = draw(&mut self.rng);
                let up_to = |a: Probability, b: Probability| a.parts().saturating_add(b.parts());
                let (next, lost) = match self.loss_state {
                    LossState::Gap if point < p14.parts() => (LossState::GapLosing, true),
                    LossState::Gap if point < up_to(p13, p14) => (LossState::Burst, true),
                    LossState::Gap | LossState::GapLosing => (LossState::Gap, false),
                    LossState::BurstReceiving if point < p23.parts() => (LossState::Burst, true),
                    LossState::BurstReceiving => (LossState::BurstReceiving, false),
                    LossState::Burst if point < p32.parts() => (LossState::BurstReceiving, false),
                    LossState::Burst if point < up_to(p31, p32) => (LossState::Gap, false),
                    LossState::Burst => (LossState::Burst, true),
                };
                self.loss_state = next;
                lost
            }
        }
    }

    fn below(&mut self, probability: Probability) -> bool {
        // Probability zero never happens and probability one always does, whatever the draw.
        let point = draw(&mut self.rng);
        probability == Probability::ONE || point < probability.parts()
    }

    fn enqueue(&mut self, now: Time, bytes: &[u8]) {
        let corrupt = self.corrupt_draw.happens(&mut self.rng, self.netem.corrupt);
        let flipped =
            (corrupt && !bytes.is_empty()).then(|| self.rng.below(bytes.len() as u64 * 8));
        if self.held() >= self.netem.limit as usize {
            self.counters.over_limit += 1;
            return;
        }
        let mut frame = self.spare.pop().unwrap_or_default();
        frame.clear();
        frame.extend_from_slice(bytes);
        if let Some(bit) = flipped {
            frame[(bit / 8) as usize] ^= 1 << (bit % 8);
            self.counters.corrupted += 1;
        }
        if self.goes_first() {
            self.since_reorder = 0;
            self.counters.reordered += 1;
            self.front.push_front((now, frame));
        } else {
            let at = self.departure(now, frame.len());
            self.since_reorder = self.since_reorder.saturating_add(1);
            self.delayed.insert((at, self.serial), frame);
            self.serial += 1;
        }
    }

    /// netem's reordering: outside the gap, and by chance.
    fn goes_first(&mut self) -> bool {
        let Netem { gap, reorder, .. } = self.netem;
        gap != 0
            && self.since_reorder >= gap - 1
            && self.reorder_draw.happens(&mut self.rng, reorder)
    }

    /// Departure time of a frame of `length` bytes that is not sent ahead.
    fn departure(&mut self, now: Time, length: usize) -> Time {
        let mut delay = self.delay();
        let mut from = now;
        if let Some(rate) = self.netem.rate {
            // Start from the last frame to leave; the time it still waits counts towards this
            // frame's delay.
            let last_front = self.front.back().map(|(at, _)| *at);
            let last_delayed = self.delayed.last_key_value().map(|((at, _), _)| *at);
            if let Some(last) = last_front.max(last_delayed).filter(|last| *last > now) {
                delay = delay - last.since(now);
                from = last;
            }
            let length = length as i128 + i128::from(rate.overhead_bytes);
            let bits = length.max(0) as u128 * 8;
            let ps = bits * 1_000_000_000_000 / u128::from(rate.bits_per_second);
            delay = delay + Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX));
        }
        from + delay
    }

    /// netem's `tabledist`; never below zero.
    fn delay(&mut self) -> Duration {
        let Delay {
            base,
            jitter,
            correlation,
            distribution,
        } = self.netem.delay;
        if jitter == Duration::ZERO {
            return base;
        }
        let point = self.delay_draw.next(&mut self.rng, correlation);
        let spread = i128::from(jitter.as_ps());
        let offset = match distribution {
            Distribution::Uniform => ((i128::from(point) * 2 * spread) >> 32) - spread,
            Distribution::Normal => {
                spread * i128::from(normal::quantile(point)) / i128::from(normal::SCALE)
            }
        };
        let ps = (i128::from(base.as_ps()) + offset).max(0);
        Duration::from_ps(u64::try_from(ps).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
