//! Dependencies between deterministic channels, which prove that tables cannot deadlock.

use core::fmt;

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::{Coordinates, Tag};

use super::decision::{Arrival, Decision, decide};
use super::entry::Entry;
use super::registers::RouteRegisters;
use super::shape::Shape;
use super::tables::Tables;
use super::walk::Channel;
use phitwire::kit::cycles::{Channels, shortest_cycle};

/// Number of channels of a node: VC0 and VC1 in each direction.
const PER_NODE: usize = 12;

/// The channel-dependency graph of a machine's deterministic channels.
///
/// A packet holds a channel and waits for the next one on its path. Requests and responses have
/// separate channels with the same use, and no packet changes between them, so one graph covers
/// both. A packet enters an adaptive channel only if all of it fits, so no packet waits through an
/// adaptive buffer (T3E sec. 5). When it returns from there it holds no channel and looks up its
/// channel again, which may happen at every node of its minimal paths.
#[derive(Clone, Debug)]
pub struct Dependencies<'a> {
    shape: &'a Shape,
    /// By [`number`] of a channel: the channels of the next node for which its packets may wait,
    /// one bit each.
    waits: Vec<u16>,
}

/// A cycle of channels that wait for each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyCycle(pub Vec<(Coordinates, Direction, u8)>);

impl fmt::Display for DependencyCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (coordinates, direction, vc)) in self.0.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            write!(f, "{comma}{coordinates} {direction} VC{vc}")?;
        }
        Ok(())
    }
}

impl std::error::Error for DependencyCycle {}

/// Checks that packets routed by `tables` and `registers` can never wait for each other in a
/// cycle.
///
/// # Errors
/// Describes a possible cycle.
///
/// # Panics
/// If a node has no registers.
pub fn check(
    shape: &Shape,
    registers: &[RouteRegisters],
    tables: &Tables,
) -> Result<(), DependencyCycle> {
    let routes = tables.routes().map(|(from, _, entry)| (from, entry));
    let dependencies = Dependencies::of(shape, registers, routes);
    dependencies.find_cycle().map_or(Ok(()), Err)
}

impl<'a> Dependencies<'a> {
    /// Dependencies of packets that nodes send by entries of look-up tables. A path ends at a
    /// missing link.
    ///
    /// # Panics
    /// If a node does not exist or has no registers.
    pub fn of(
        shape: &'a Shape,
        registers: &[RouteRegisters],
        routes: impl Iterator<Item = (u32, Entry)>,
    ) -> Self {
        Self::decided_by(decide, shape, &[registers], routes)
    }

    /// The dependencies while routers change from the first of these register sets to the last,
    /// each at any time.
    ///
    /// # Panics
    /// If a node does not exist or has no registers.
    pub fn while_changing(
        shape: &'a Shape,
        registers: &[&[RouteRegisters]],
        routes: impl Iterator<Item = (u32, Entry)>,
    ) -> Self {
        Self::decided_by(decide, shape, registers, routes)
    }

    /// Like [`of`](Self::of), for routers with another decision function.
    pub(super) fn decided_by(
        decide: Decide,
        shape: &'a Shape,
        registers: &[&[RouteRegisters]],
        routes: impl Iterator<Item = (u32, Entry)>,
    ) -> Self {
        let mut search = Search {
            decide,
            shape,
            registers,
            waits: vec![0; shape.nodes() as usize * PER_NODE],
            seen: vec![0; shape.nodes() as usize * ARRIVALS],
            tag: 0,
            stack: Vec::new(),
        };
        // Process all packets with the same tag together: their path depends on how they arrived,
        // not on their source.
        let mut routes: Vec<(u32, u32)> =
            routes.map(|(from, entry)| (entry.bits(), from)).collect();
        routes.sort_unstable();
        let mut last = None;
        for (bits, from) in routes {
            search.tag += u32::from(last != Some(bits));
            last = Some(bits);
            let entry = Entry::from_bits(bits).expect("the bits came from an entry");
            search.follow(from, &entry);
        }
        Self {
            shape,
            waits: search.waits,
        }
    }

    /// A shortest dependency cycle, if there is one.
    pub fn find_cycle(&self) -> Option<DependencyCycle> {
        let named = |number: usize| {
            let node = (number / PER_NODE) as u32;
            let direction = Direction::ALL[number % PER_NODE / 2];
            (self.shape.coordinates(node), direction, (number % 2) as u8)
        };
        shortest_cycle(self).map(|circle| DependencyCycle(circle.into_iter().map(named).collect()))
    }

    /// The channels for which a packet in `channel` may wait.
    ///
    /// # Panics
    /// If the channel does not exist.
    pub fn waits_for(&self, channel: Channel) -> Vec<Channel> {
        let mut next = Vec::new();
        self.for_each_next(number(channel), |number| {
            next.push(Channel {
                node: (number / PER_NODE) as u32,
                direction: Direction::ALL[number % PER_NODE / 2],
                vc: (number % 2) as u8,
            });
        });
        next
    }
}

impl Channels for Dependencies<'_> {
    fn count(&self) -> usize {
        self.waits.len()
    }

    fn for_each_next(&self, channel: usize, mut each: impl FnMut(usize)) {
        let mut waits = self.waits[channel];
        if waits == 0 {
            return;
        }
        let node = (channel / PER_NODE) as u32;
        let direction = Direction::ALL[channel % PER_NODE / 2];
        let next = self.shape.neighbour(node, direction);
        let next = next.expect("a packet waits at the end of this link") as usize;
        while waits != 0 {
            each(next * PER_NODE + waits.trailing_zeros() as usize);
            waits &= waits - 1;
        }
    }
}

fn number(channel: Channel) -> usize {
    channel.node as usize * PER_NODE + in_node(channel.direction, channel.vc)
}

fn in_node(direction: Direction, vc: u8) -> usize {
    direction.index() * 2 + usize::from(vc)
}

pub(super) type Decide = fn(&RouteRegisters, &Tag, Result<Arrival, Option<Direction>>) -> Decision;

/// Number of ways to arrive at a router: from its processor, or in a direction on one of three
/// channels.
const ARRIVALS: usize = 1 + 6 * 3;

/// A packet at a router: node and arrival.
type State = (u32, Result<Arrival, Option<Direction>>);

struct Search<'a> {
    decide: Decide,
    shape: &'a Shape,
    /// Sets of registers; each router has those of one of the sets.
    registers: &'a [&'a [RouteRegisters]],
    waits: Vec<u16>,
    /// The last tag that was visited, by node and arrival.
    seen: Vec<u32>,
    tag: u32,
    stack: Vec<State>,
}

impl Search<'_> {
    /// Visits every state that a packet from `from` may reach.
    fn follow(&mut self, from: u32, entry: &Entry) {
        self.visit((from, Err(entry.initial)));
        while let Some((node, arrival)) = self.stack.pop() {
            let either = self.registers;
            for registers in either {
                self.pass(&registers[node as usize], entry, (node, arrival));
            }
        }
    }

    /// Visits every state that a packet at a router may reach next with the given registers.
    fn pass(&mut self, registers: &RouteRegisters, entry: &Entry, (node, arrival): State) {
        let Decision::Go {
            deterministic: (direction, vc),
            adaptive,
        } = (self.decide)(registers, &entry.tag, arrival)
        else {
            return;
        };
        if let Ok(Arrival {
            direction: from,
            vc: Some(held),
        }) = arrival
        {
            let last = self.shape.neighbour(node, from.opposite());
            let last = last.expect("the packet came over this link") as usize;
            self.waits[last * PER_NODE + in_node(from, held)] |= 1 << in_node(direction, vc);
        }
        self.go(node, direction, Some(vc));
        if adaptive.is_some() {
            // "In any minimal direction" (T3E sec. 2.4), whichever one a router offers.
            for direction in entry.tag.unsatisfied(registers.coordinates).iter() {
                self.go(node, direction, None);
            }
        }
    }

    fn go(&mut self, node: u32, direction: Direction, vc: Option<u8>) {
        if let Some(next) = self.shape.neighbour(node, direction) {
            self.visit((next, Ok(Arrival { direction, vc })));
        }
    }

    fn visit(&mut self, state: State) {
        let (node, arrival) = state;
        let arrival = arrival.map_or(0, |Arrival { direction, vc }| {
            1 + direction.index() * 3 + vc.map_or(2, usize::from)
        });
        let seen = &mut self.seen[node as usize * ARRIVALS + arrival];
        if *seen != self.tag {
            *seen = self.tag;
            self.stack.push(state);
        }
    }
}

#[cfg(test)]
#[path = "dependency_tests.rs"]
mod tests;
