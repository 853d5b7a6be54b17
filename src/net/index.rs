//! An index over link ends: finds the opposite end of a port.

use super::model::{End, NodeRef};

/// A port's link in the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLink<Kind> {
    pub link: u32,
    pub other: End,
    /// The machine's own data on the port.
    pub kind: Kind,
}

/// Constant-time lookup of the ports of all nodes. If two links claim a port, the first gets it.
#[derive(Clone, Debug)]
pub struct PortIndex<Kind> {
    chip_ports: usize,
    chips: Vec<Option<PortLink<Kind>>>,
    processor_ports: usize,
    processors: Vec<Option<PortLink<Kind>>>,
}

impl<Kind: Copy> PortIndex<Kind> {
    /// An index without links, for given numbers of chips and processors and of their ports.
    pub fn new((chips, chip_ports): (usize, usize), (processors, ports): (usize, usize)) -> Self {
        Self {
            chip_ports,
            chips: vec![None; chips * chip_ports],
            processor_ports: ports,
            processors: vec![None; processors * ports],
        }
    }

    /// Assigns the port at `end` to a link, unless another one has it, which is returned. Ignores
    /// ports that no node has.
    pub fn claim(&mut self, end: End, joined: PortLink<Kind>) -> Option<u32> {
        let (ports, slots, node) = match end.node {
            NodeRef::Processor(p) => (self.processor_ports, &mut self.processors, p),
            NodeRef::Chip(c) => (self.chip_ports, &mut self.chips, c),
        };
        let slot = slot(ports, node, end.port).and_then(|slot| slots.get_mut(slot))?;
        match slot {
            Some(first) => Some(first.link),
            None => {
                *slot = Some(joined);
                None
            }
        }
    }

    /// The link at `end`, if any.
    #[inline]
    pub fn at(&self, end: End) -> Option<&PortLink<Kind>> {
        let (ports, slots, node) = match end.node {
            NodeRef::Processor(p) => (self.processor_ports, &self.processors, p),
            NodeRef::Chip(c) => (self.chip_ports, &self.chips, c),
        };
        slots.get(slot(ports, node, end.port)?)?.as_ref()
    }
}

#[inline]
fn slot(ports: usize, node: u32, port: u8) -> Option<usize> {
    (usize::from(port) < ports).then(|| node as usize * ports + usize::from(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_claim_to_a_port_counts_and_unclaimed_ports_are_omitted() {
        let mut index = PortIndex::new((2, 4), (1, 1));
        let (nic, port) = (End::processor(0, 0), End::chip(1, 3));
        let to = |link, other| PortLink {
            link,
            other,
            kind: (),
        };
        assert_eq!(index.claim(port, to(7, nic)), None);
        assert_eq!(index.claim(port, to(8, nic)), Some(7));
        assert_eq!(index.at(port), Some(&to(7, nic)));
        for end in [End::chip(0, 4), End::chip(2, 0), End::processor(0, 1)] {
            assert_eq!(index.claim(end, to(9, port)), None);
            assert_eq!(index.at(end), None);
        }
        assert_eq!(index.at(nic), None);
    }
}
