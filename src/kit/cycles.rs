//! Channels that wait for each other in a cycle: deadlock.

use std::collections::VecDeque;

/// The channel-dependency graph of a network (Dally and Seitz, *Deadlock-free message routing in
/// multiprocessor interconnection networks*, 1987). Channels are numbered; edges lead from a
/// channel to those that a packet holding it may wait for. Edges are computed on demand, not
/// stored: a large network has a hundred million.
pub trait Channels {
    /// Number of channels in the graph.
    fn count(&self) -> usize;

    /// Calls `each` for every channel that a packet in `channel` may wait for.
    fn for_each_next(&self, channel: usize, each: impl FnMut(usize));
}

const NONE: usize = usize::MAX;

/// A shortest cycle through the lowest channel of a strongly connected component, in order; `None`
/// if the graph has no cycle.
pub fn shortest_cycle(channels: &impl Channels) -> Option<Vec<usize>> {
    let at = channel_on_cycle(channels)?;
    let mut ahead = vec![NONE; channels.count()];
    let _ = shortest_path(channels, at, NONE, &mut ahead);
    // Visit channels that do not lead back only once.
    let mut back = vec![NONE; channels.count()];
    let leads_back = |&channel: &usize| {
        ahead[channel] != NONE
            && back[channel] == NONE
            && shortest_path(channels, channel, at, &mut back).is_some()
    };
    let lowest = (0..channels.count()).find(leads_back)?;
    shortest_path(channels, lowest, lowest, &mut vec![NONE; channels.count()])
}

/// Finds any channel that lies on a cycle.
fn channel_on_cycle(channels: &impl Channels) -> Option<usize> {
    let count = channels.count();
    let mut waiting = vec![0_u32; count];
    for channel in 0..count {
        channels.for_each_next(channel, |next| waiting[next] += 1);
    }
    // Remove channels without a remaining predecessor. The rest are cycles and their successors.
    let mut free: Vec<usize> = (0..count)
        .filter(|&channel| waiting[channel] == 0)
        .collect();
    let mut left = count;
    while let Some(channel) = free.pop() {
        left -= 1;
        channels.for_each_next(channel, |next| {
            waiting[next] -= 1;
            if waiting[next] == 0 {
                free.push(next);
            }
        });
    }
    // Every remaining channel has a remaining predecessor, so a walk backwards from any of them
    // ends in a cycle.
    let mut at = waiting.iter().rposition(|&n| n > 0)?;
    let mut before = vec![NONE; count];
    for channel in (0..count).filter(|&channel| waiting[channel] > 0) {
        channels.for_each_next(channel, |next| before[next] = channel);
    }
    for _ in 0..left {
        at = before[at];
    }
    Some(at)
}

/// A shortest path from `start` to a channel that waits for `goal`, both included, through channels
/// without an entry in `before`, which the search fills in.
fn shortest_path(
    channels: &impl Channels,
    start: usize,
    goal: usize,
    before: &mut [usize],
) -> Option<Vec<usize>> {
    before[start] = start;
    let mut queue = VecDeque::from([start]);
    while let Some(channel) = queue.pop_front() {
        let mut arrives = false;
        channels.for_each_next(channel, |next| {
            arrives |= next == goal;
            if before[next] == NONE {
                before[next] = channel;
                queue.push_back(next);
            }
        });
        if arrives {
            let mut way = vec![channel];
            while way.last() != Some(&start) {
                way.push(before[way[way.len() - 1]]);
            }
            way.reverse();
            return Some(way);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Channels for Vec<Vec<usize>> {
        fn count(&self) -> usize {
            self.len()
        }

        fn for_each_next(&self, channel: usize, each: impl FnMut(usize)) {
            self[channel].iter().copied().for_each(each);
        }
    }

    #[test]
    fn the_shortest_cycle_through_the_lowest_channel_is_found() {
        assert_eq!(shortest_cycle(&vec![vec![1, 2], vec![2], vec![]]), None);
        assert_eq!(shortest_cycle(&vec![vec![0]]), Some(vec![0]));
        // 0 leads into the component of 1 to 4, which leads out to 5.
        let knot = vec![vec![4], vec![2], vec![3, 1], vec![4], vec![1, 5], vec![]];
        assert_eq!(shortest_cycle(&knot), Some(vec![1, 2]));
        // Channels that only lead into or out of a cycle are not part of it.
        let circles = vec![vec![3], vec![], vec![4], vec![2], vec![2, 1]];
        assert_eq!(shortest_cycle(&circles), Some(vec![2, 4]));
    }
}
