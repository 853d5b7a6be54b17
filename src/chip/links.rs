//! The links of a chip.

use crate::link::NodeLink;
use crate::node::PortId;
use crate::time::Time;

/// The links of a chip, by port.
#[derive(Debug)]
pub struct Links<E: NodeLink> {
    ports: Vec<Option<Box<E>>>,
    in_use: u64,
}

impl<E: NodeLink> Links<E> {
    /// The links of a chip with ports below `ports`, training from `now`. A nonexistent or repeated
    /// port in `configured` is ignored.
    pub(super) fn new(
        ports: usize,
        configured: impl IntoIterator<Item = (PortId, E::Config)>,
        now: Time,
    ) -> Self {
        let mut links = Self {
            ports: (0..ports).map(|_| None).collect(),
            in_use: 0,
        };
        for (port, config) in configured {
            if let Some(slot @ None) = links.ports.get_mut(usize::from(port)) {
                *slot = Some(Box::new(E::new(config, now)));
                links.in_use |= 1 << port;
            }
        }
        links
    }

    /// The link end of `port`, if it has a link.
    #[inline]
    pub fn end(&self, port: usize) -> Option<&E> {
        self.ports.get(port)?.as_deref()
    }

    #[inline]
    pub fn end_mut(&mut self, port: usize) -> Option<&mut E> {
        self.ports.get_mut(port)?.as_deref_mut()
    }

    /// The receive buffer of `port`, if it has a link.
    #[inline]
    pub fn input(&self, port: usize) -> Option<&E::Input> {
        self.end(port).map(E::input)
    }

    #[inline]
    pub fn input_mut(&mut self, port: usize) -> Option<&mut E::Input> {
        self.end_mut(port).map(E::input_mut)
    }

    /// Ports with a link, one bit each.
    #[inline]
    pub fn in_use(&self) -> u64 {
        self.in_use
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &E)> {
        let ports = self.ports.iter().enumerate();
        ports.filter_map(|(number, port)| Some((number, port.as_deref()?)))
    }
}
