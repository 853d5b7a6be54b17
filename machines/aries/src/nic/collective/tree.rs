//! Reduction trees: the children of each node, whose contributions it combines.

use phitwire_framing::aries::flit::NodeId;
use thiserror::Error;

use super::super::virtual_node::Target;
use phitwire::nic::{DEFAULT_PATIENCE, ENGINES, MAX_BRANCHING};
use phitwire::time::Duration;

/// A participant's position in a reduction tree, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePosition {
    /// The rank to which the partial result is sent; `None` for the root.
    pub parent: Option<u32>,
    /// The ranks whose partial results are combined, in this order, after this rank's contribution.
    pub children: Vec<u32>,
}

impl TreePosition {
    /// The position of `rank` in a heap of `participants` ranks, counted from the root on, with up
    /// to `branching` children per rank. The depth is minimal, and every child is farther from the
    /// root (modulo `participants`) than its parent.
    ///
    /// `None` if a rank is not a participant, or the branching is not 1 to [`MAX_BRANCHING`].
    pub fn new(participants: u32, branching: u32, root: u32, rank: u32) -> Option<Self> {
        let possible = (1..=MAX_BRANCHING as u32).contains(&branching);
        if !possible || root >= participants || rank >= participants {
            return None;
        }
        let (n, k) = (u64::from(participants), u64::from(branching));
        let index = (u64::from(rank) + n - u64::from(root)) % n;
        let rank_at = |index: u64| ((index + u64::from(root)) % n) as u32;
        let first = index * k + 1;
        Some(Self {
            parent: (index > 0).then(|| rank_at((index - 1) / k)),
            children: (first..(first + k).min(n)).map(rank_at).collect(),
        })
    }
}

/// The part of a reduction tree that one NIC needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectiveTree {
    /// The node to which the partial result is sent; `None` for the root.
    pub parent: Option<Target>,
    /// The nodes whose partial results are combined, in this order: up to [`MAX_BRANCHING`].
    pub children: Vec<Target>,
    /// Key of the communicator, the same in the whole tree. Messages with another key are rejected.
    pub key: u16,
    /// Number of this setup of the tree: the same in the whole tree, and different from all earlier
    /// ones on this engine, whose packets may still be in flight.
    pub epoch: u32,
    /// How long a message to a neighbour is repeated, and how long a joined operation waits for
    /// other participants, before it fails.
    pub patience: Duration,
}

impl CollectiveTree {
    /// The tree as `rank` sees it, over `nodes` (in order of rank), with the default patience.
    /// `None` as for [`TreePosition::new`].
    pub fn of_rank(
        nodes: &[Target],
        branching: u32,
        root: u32,
        rank: u32,
        key: u16,
        epoch: u32,
    ) -> Option<Self> {
        let participants = u32::try_from(nodes.len()).ok()?;
        let position = TreePosition::new(participants, branching, root, rank)?;
        let node = |rank: u32| nodes[rank as usize];
        Some(Self {
            parent: position.parent.map(node),
            children: position.children.into_iter().map(node).collect(),
            key,
            epoch,
            patience: DEFAULT_PATIENCE,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TreeError {
    #[error("collective engine {0} does not exist: there are {ENGINES}")]
    Engine(usize),
    #[error("{0} children: expected at most {MAX_BRANCHING}")]
    Branching(usize),
    /// The virtual node table does not contain this entry.
    #[error("virtual node {0} does not exist")]
    VirtualNode(u32),
    /// A node occurs twice in the tree; it may be this one.
    #[error("node {0:?} is listed twice in the tree")]
    Twice(NodeId),
    #[error("the timeout (patience) is zero")]
    Patience,
    /// An operation is pending here, or a neighbour has not acknowledged its result.
    #[error("the collective engine is busy")]
    Busy,
}

/// The neighbours in a tree, with their nodes resolved.
#[derive(Clone, Debug)]
pub(super) struct Neighbours {
    /// The children in their order, followed by the parent.
    nodes: Vec<NodeId>,
    children: usize,
    pub key: u16,
    pub epoch: u32,
    pub patience: Duration,
}

impl Neighbours {
    pub(super) fn new(
        tree: &CollectiveTree,
        own: NodeId,
        resolve: impl Fn(Target) -> Option<NodeId>,
    ) -> Result<Self, TreeError> {
        let children = tree.children.len();
        if children > MAX_BRANCHING {
            return Err(TreeError::Branching(children));
        }
        if tree.patience == Duration::ZERO {
            return Err(TreeError::Patience);
        }
        let mut nodes = Vec::with_capacity(children + 1);
        for &target in tree.children.iter().chain(&tree.parent) {
            let node = resolve(target).ok_or(match target {
                Target::Virtual(number) => TreeError::VirtualNode(number),
                Target::Node(node) => TreeError::Twice(node),
            })?;
            if node == own || nodes.contains(&node) {
                return Err(TreeError::Twice(node));
            }
            nodes.push(node);
        }
        Ok(Self {
            nodes,
            children,
            key: tree.key,
            epoch: tree.epoch,
            patience: tree.patience,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn children(&self) -> usize {
        self.children
    }

    pub(super) fn parent(&self) -> Option<usize> {
        (self.nodes.len() > self.children).then_some(self.children)
    }

    pub(super) fn node(&self, index: usize) -> NodeId {
        self.nodes[index]
    }

    pub(super) fn index_of(&self, node: NodeId) -> Option<usize> {
        self.nodes.iter().position(|&other| other == node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(n: u32, k: u32, root: u32, rank: u32) -> TreePosition {
        TreePosition::new(n, k, root, rank).unwrap()
    }

    #[test]
    fn parents_and_children_agree_and_everybody_reaches_the_root() {
        for (n, k) in [
            (1, 1),
            (2, 1),
            (7, 2),
            (33, 32),
            (34, 32),
            (100, 3),
            (1000, 32),
        ] {
            for root in [0, n / 2, n - 1] {
                let mut edges = 0;
                for rank in 0..n {
                    let node = position(n, k, root, rank);
                    assert!(node.children.len() <= k as usize);
                    assert_eq!(node.parent.is_none(), rank == root);
                    edges += node.children.len();
                    for &child in &node.children {
                        assert_eq!(position(n, k, root, child).parent, Some(rank));
                    }
                    let (mut at, mut steps) = (rank, 0);
                    while let Some(parent) = position(n, k, root, at).parent {
                        (at, steps) = (parent, steps + 1);
                        assert!(steps < n, "a cycle");
                    }
                    assert_eq!(at, root);
                }
                assert_eq!(edges as u32, n - 1);
            }
        }
    }

    #[test]
    fn a_tree_of_depth_three_and_branching_32_covers_most_systems() {
        // XC white paper, "Reductions and Barriers".
        let covered = 1 + 32 + 32 * 32 + 32 * 32 * 32;
        let depth = |rank| {
            let mut node = position(covered, 32, 0, rank);
            let mut depth = 0;
            while let Some(parent) = node.parent {
                node = position(covered, 32, 0, parent);
                depth += 1;
            }
            depth
        };
        assert_eq!((depth(covered - 1), depth(32), depth(33)), (3, 1, 2));
    }

    #[test]
    fn invalid_trees_are_refused() {
        assert!(TreePosition::new(4, 0, 0, 0).is_none());
        assert!(TreePosition::new(4, 33, 0, 0).is_none());
        assert!(TreePosition::new(4, 2, 4, 0).is_none());
        assert!(TreePosition::new(4, 2, 0, 4).is_none());
        assert!(TreePosition::new(0, 2, 0, 0).is_none());
        assert!(TreePosition::new(u32::MAX, 32, u32::MAX - 1, 5).is_some());
    }
}
