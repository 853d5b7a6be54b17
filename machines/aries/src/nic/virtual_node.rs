//! Virtual nodes: a job's contiguous numbering of its nodes.
//!
//! XC white paper, "Address Translation": the NIC translates virtual node identifiers to physical
//! network locations; the mechanism "supports mapping around failed nodes and those allocated to
//! other communication domains".

use std::sync::Arc;

use phitwire_framing::aries::flit::NodeId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A NIC by its physical number.
    Node(NodeId),
    /// A processing element of the job: an index into the virtual node table.
    Virtual(u32),
}

impl From<NodeId> for Target {
    fn from(node: NodeId) -> Self {
        Self::Node(node)
    }
}

/// The table from virtual to physical nodes. Copies share their entries until one is changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VirtualNodes(Arc<Vec<NodeId>>);

impl VirtualNodes {
    pub fn new(nodes: Vec<NodeId>) -> Self {
        Self(Arc::new(nodes))
    }

    /// Contiguous virtual nodes for `nodes`, in their order, without those in `failed`.
    pub fn around(nodes: impl IntoIterator<Item = NodeId>, failed: &[NodeId]) -> Self {
        let healthy = nodes.into_iter().filter(|node| !failed.contains(node));
        Self::new(healthy.collect())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[inline]
    pub fn get(&self, number: u32) -> Option<NodeId> {
        self.0.get(number as usize).copied()
    }

    /// Maps virtual node `number` to `node`, and returns the previous node; `None` if the virtual
    /// node does not exist.
    pub fn remap(&mut self, number: u32, node: NodeId) -> Option<NodeId> {
        let entry = Arc::make_mut(&mut self.0).get_mut(number as usize)?;
        Some(core::mem::replace(entry, node))
    }

    /// The NIC of `target`; `None` for a virtual node that does not exist.
    #[inline]
    pub fn resolve(&self, target: Target) -> Option<NodeId> {
        match target {
            Target::Node(node) => Some(node),
            Target::Virtual(number) => self.get(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_nodes_are_left_out_and_replaced() {
        let node = |n| NodeId::new(0, n, 0);
        let mut table = VirtualNodes::around((0..6).map(node), &[node(1), node(4)]);
        assert_eq!(table.len(), 4);
        let all: Vec<_> = (0..5).map(|n| table.get(n)).collect();
        assert_eq!(
            all,
            [
                Some(node(0)),
                Some(node(2)),
                Some(node(3)),
                Some(node(5)),
                None
            ]
        );
        let shared = table.clone();
        assert_eq!(table.remap(2, node(9)), Some(node(3)));
        assert_eq!(table.remap(4, node(9)), None);
        assert_eq!(table.resolve(Target::Virtual(2)), Some(node(9)));
        assert_eq!(table.resolve(Target::Virtual(4)), None);
        assert_eq!(table.resolve(node(1).into()), Some(node(1)));
        assert_eq!(shared.get(2), Some(node(3)));
    }
}
