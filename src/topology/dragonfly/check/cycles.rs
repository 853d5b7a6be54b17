//! Channels that wait for each other in a circle: deadlock.
//!
//! A channel is one class of one direction of a link. Requests and responses have virtual channels of their own and
//! take the same ways, so that one graph stands for both; a network interface always takes responses, and takes
//! requests as long as it can send responses, so that requests never hold up responses for good.

use std::collections::VecDeque;

use super::walk::{CLASSES, Walk};
use crate::router::aries::registers::{NETWORK_PORTS, PortMask};
use crate::topology::dragonfly::model::Dragonfly;
use crate::topology::dragonfly::wiring::{DragonflyWiring, Far};
use crate::topology::mistake::{Mistake, MistakeKind, Place};

pub(super) fn check(network: &Dragonfly, wiring: &DragonflyWiring, walk: &Walk) -> Option<Mistake> {
    let circle = circle(wiring, walk)?;
    let names: Vec<String> = circle
        .iter()
        .map(|&channel| {
            let (port, class) = (channel / CLASSES, channel % CLASSES);
            let (router, port) = (port / NETWORK_PORTS, port % NETWORK_PORTS);
            let name = network.shape.router_name(router as u32);
            format!("{name}:{port} class {class}")
        })
        .collect();
    Some(
        Mistake::new(
            MistakeKind::CyclicDependency,
            Place::Network,
            format!(
                "packets can wait for each other in a circle through {}, {}: a deadlock",
                names.join(", "),
                names[0]
            ),
        )
        .help("classes of virtual channels have to grow along every way: see [routing]"),
    )
}

/// Calls `each` for every channel that a packet in `channel` may wait for.
fn for_each_next(
    wiring: &DragonflyWiring,
    walk: &Walk,
    channel: usize,
    mut each: impl FnMut(usize),
) {
    let router = (channel / CLASSES / NETWORK_PORTS) as u32;
    let network: PortMask = (1 << NETWORK_PORTS) - 1;
    for (class, &ports) in walk.waits[channel].iter().enumerate() {
        let mut ports = ports & network;
        while ports != 0 {
            let port = ports.trailing_zeros() as u8;
            ports &= ports - 1;
            if let Some(Far::Router(peer, port)) = wiring.far(router, port) {
                each(Walk::channel(peer, port, class as u8));
            }
        }
    }
}

/// A circle of channels, in order; `None` if there is none.
pub(super) fn circle(wiring: &DragonflyWiring, walk: &Walk) -> Option<Vec<usize>> {
    let channels = walk.waits.len();
    let mut waiting = vec![0_u32; channels];
    for channel in 0..channels {
        for_each_next(wiring, walk, channel, |next| waiting[next] += 1);
    }
    // Channels that nobody waits for are taken away, until none is left or only circles and what follows them.
    let mut free: Vec<usize> = (0..channels)
        .filter(|&channel| waiting[channel] == 0)
        .collect();
    let mut left = channels;
    while let Some(channel) = free.pop() {
        left -= 1;
        for_each_next(wiring, walk, channel, |next| {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                free.push(next);
            }
        });
    }
    if left == 0 {
        return None;
    }
    // Backwards from any channel left there is always another one left: that leads into a circle.
    let inside: Vec<bool> = waiting.iter().map(|&n| n > 0).collect();
    let mut before = vec![usize::MAX; channels];
    for channel in (0..channels).filter(|&channel| inside[channel]) {
        for_each_next(wiring, walk, channel, |next| before[next] = channel);
    }
    let mut at = inside.iter().position(|&left| left)?;
    for _ in 0..left {
        at = before[at];
    }
    Some(shortest(wiring, walk, at, &inside))
}

/// A shortest circle through a channel that lies on one.
fn shortest(wiring: &DragonflyWiring, walk: &Walk, start: usize, inside: &[bool]) -> Vec<usize> {
    let mut before = vec![usize::MAX; inside.len()];
    let mut queue = VecDeque::from([start]);
    while let Some(channel) = queue.pop_front() {
        let mut closes = false;
        for_each_next(wiring, walk, channel, |next| {
            closes |= next == start;
            if inside[next] && before[next] == usize::MAX {
                before[next] = channel;
                queue.push_back(next);
            }
        });
        if closes {
            let mut circle = vec![channel];
            let mut at = channel;
            while at != start {
                at = before[at];
                circle.push(at);
            }
            circle.reverse();
            return circle;
        }
    }
    vec![start]
}
