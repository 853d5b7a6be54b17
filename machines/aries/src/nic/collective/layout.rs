//! Reduction trees that follow the machine: first the nodes at one router, then those of one group.
//!
//! Group and router follow from a node's 18-bit number (XC white paper, "Address Translation"; the
//! division into fields is ours), so every participant can build the same tree without
//! communication. One participant represents each group, and one each router. A contribution leaves
//! its router and its group once, combined with those of its neighbours: each link between groups
//! is crossed once in each direction for all participants of a group.

use std::collections::VecDeque;

use phitwire_framing::aries::flit::NodeId;

use super::tree::TreePosition;
use phitwire::nic::MAX_BRANCHING;

impl TreePosition {
    /// The position of `rank` in the tree over `nodes` (in order of rank, without duplicates), laid
    /// out along routers and groups. The children of the root are the ranks at its router, then one
    /// for each other router of its group, then one for each other group; the children of those
    /// follow the same rule. Children beyond `branching` become children of their nearest siblings,
    /// the farthest first.
    ///
    /// `None` if a rank is not a participant, or the branching is not 1 to [`MAX_BRANCHING`].
    pub fn along(nodes: &[NodeId], branching: u32, root: u32, rank: u32) -> Option<Self> {
        let possible = (1..=MAX_BRANCHING as u32).contains(&branching);
        let is_rank = |rank: u32| (rank as usize) < nodes.len();
        if !possible || !is_rank(root) || !is_rank(rank) {
            return None;
        }
        let mut children = neighbourhoods(nodes, root);
        hand_down(&mut children, branching as usize, root);
        let has_it = |children: &Vec<u32>| children.contains(&rank);
        Some(Self {
            parent: children.iter().position(has_it).map(|rank| rank as u32),
            children: children.swap_remove(rank as usize),
        })
    }
}

/// For each rank, the ranks to which it would hand results, nearest first, without a limit on
/// branching.
fn neighbourhoods(nodes: &[NodeId], root: u32) -> Vec<Vec<u32>> {
    let node = |rank: u32| nodes[rank as usize];
    let (home, router) = (node(root).group(), node(root).router());
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    order.sort_unstable_by_key(|&rank| {
        let (group, its_router) = (node(rank).group(), node(rank).router());
        let is_away = group != home;
        let is_elsewhere = !is_away && its_router != router;
        (
            is_away,
            group,
            is_elsewhere,
            its_router,
            rank != root,
            node(rank),
        )
    });
    let mut children = vec![Vec::new(); nodes.len()];
    // Representatives of the current group and router.
    let (mut of_group, mut of_router) = (root, root);
    for &rank in &order[1..] {
        let parent = if node(rank).group() != node(of_group).group() {
            (of_group, of_router) = (rank, rank);
            root
        } else if node(rank).router() != node(of_router).router() {
            of_router = rank;
            of_group
        } else {
            of_router
        };
        children[parent as usize].push(rank);
    }
    children
}

/// Limits every rank to `most` children, from the root down, by making its last children
/// grandchildren.
fn hand_down(children: &mut [Vec<u32>], most: usize, root: u32) {
    let mut next = VecDeque::from([root]);
    while let Some(rank) = next.pop_front() {
        let own = &mut children[rank as usize];
        let rest = own.split_off(own.len().min(most));
        let kept = own.clone();
        for (index, &child) in kept.iter().enumerate() {
            let part = |index: usize| index * rest.len() / kept.len();
            children[child as usize].extend(&rest[part(index)..part(index + 1)]);
        }
        next.extend(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of `groups` groups of `routers` routers with `nics` NICs each, in a random order of
    /// ranks.
    fn machine(groups: u16, routers: u8, nics: u8) -> Vec<NodeId> {
        let in_order = (0..groups).flat_map(|group| {
            let nic = move |router| (0..nics).map(move |nic| NodeId::new(group, router, nic));
            (0..routers).flat_map(nic)
        });
        let mut nodes: Vec<NodeId> = in_order.collect();
        // Ranks at one router are not consecutive.
        let len = nodes.len();
        for rank in 0..len {
            nodes.swap(rank, rank * 7 % len);
        }
        nodes
    }

    /// The parent of each rank but the root. Checks that parent and child agree.
    fn parents(nodes: &[NodeId], branching: u32, root: u32) -> Vec<Option<u32>> {
        let position = |rank| TreePosition::along(nodes, branching, root, rank).unwrap();
        let ranks = 0..nodes.len() as u32;
        for rank in ranks.clone() {
            let own = position(rank);
            assert!(own.children.len() <= branching as usize);
            for child in own.children {
                assert_eq!(position(child).parent, Some(rank));
            }
        }
        ranks.map(|rank| position(rank).parent).collect()
    }

    #[test]
    fn everybody_reaches_the_root_whatever_the_branching() {
        for (groups, routers, nics) in [(1, 1, 1), (1, 1, 4), (3, 4, 1), (3, 5, 4), (9, 2, 3)] {
            let nodes = machine(groups, routers, nics);
            let n = nodes.len() as u32;
            for (branching, root) in [(1, 0), (2, n - 1), (3, n / 2), (32, 0), (32, n / 3)] {
                let parents = parents(&nodes, branching, root);
                for rank in 0..n {
                    let (mut at, mut steps) = (rank, 0);
                    while let Some(parent) = parents[at as usize] {
                        (at, steps) = (parent, steps + 1);
                        assert!(steps < n, "a cycle");
                    }
                    assert_eq!(at, root);
                }
            }
        }
    }

    #[test]
    fn groups_and_routers_are_left_once_whatever_the_branching() {
        let (groups, routers) = (5, 6);
        let nodes = machine(groups, routers, 4);
        for branching in [1, 2, 3, 8, 32] {
            let (mut between_groups, mut between_routers) = (0, 0);
            for (rank, parent) in parents(&nodes, branching, 17).into_iter().enumerate() {
                let Some(parent) = parent else { continue };
                let (own, other) = (nodes[rank], nodes[parent as usize]);
                let is_away = own.group() != other.group();
                between_groups += u16::from(is_away);
                between_routers += u16::from(!is_away && own.router() != other.router());
            }
            assert_eq!(between_groups, groups - 1, "{branching}");
            let own_group = groups * (u16::from(routers) - 1);
            assert_eq!(between_routers, own_group, "{branching}");
        }
    }

    #[test]
    fn invalid_trees_are_refused() {
        let nodes = machine(1, 2, 2);
        assert!(TreePosition::along(&nodes, 0, 0, 0).is_none());
        assert!(TreePosition::along(&nodes, 33, 0, 0).is_none());
        assert!(TreePosition::along(&nodes, 2, 4, 0).is_none());
        assert!(TreePosition::along(&nodes, 2, 0, 4).is_none());
        assert!(TreePosition::along(&[], 2, 0, 0).is_none());
    }
}
