//! Connections of ports, within a fabric and to nodes of another one.

use thiserror::Error;

use super::{
    Alarm, Direction, EXIT, Exit, Fabric, Joint, LinkId, LinkSpec, NO_WIRE, NodeId, SentFrame,
};
use crate::node::{Node, PortId};
use crate::sim::wire::Wire;
use crate::time::Duration;

/// Why two ports were not connected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConnectError {
    #[error("node {0} does not exist")]
    NoNode(u32),
    #[error("node {node} has no port {port}")]
    NoPort { node: u32, port: PortId },
    /// The port has a link already, or is named twice.
    #[error("port {port} of node {node} is already connected")]
    InUse { node: u32, port: PortId },
    /// The latency is zero: a frame must not arrive at the instant it is sent.
    #[error("the latency of a link must not be zero")]
    NoLatency,
}

impl<N: Node> Fabric<N> {
    /// Connects two ports by a link.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(
        &mut self,
        a: (NodeId, PortId),
        b: (NodeId, PortId),
        spec: LinkSpec,
    ) -> Result<LinkId, ConnectError> {
        if spec.latency == Duration::ZERO {
            return Err(ConnectError::NoLatency);
        }
        self.check_free(a)?;
        self.check_free(b)?;
        if a == b {
            let ((NodeId(node), port), _) = (a, b);
            return Err(ConnectError::InUse { node, port });
        }
        let wires = [(a, b), (b, a)].map(|(from, to)| {
            let wire = self.add_wire(to, spec.mtu, Wire::new(spec.latency));
            self.slots[from.0.0 as usize].wires[usize::from(from.1)] = wire;
            wire
        });
        Ok(self.add_link(wires))
    }

    /// Connects a port to a node of another fabric. Frames to the port arrive by the returned link
    /// ([`put_in`](Self::put_in)); frames from it are taken from the returned exit
    /// ([`take_out`](Self::take_out)). The link's direction towards the port is A to B.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub(crate) fn connect_remote(
        &mut self,
        end: (NodeId, PortId),
        spec: LinkSpec,
    ) -> Result<(LinkId, usize), ConnectError> {
        if spec.latency == Duration::ZERO {
            return Err(ConnectError::NoLatency);
        }
        self.check_free(end)?;
        let wire = self.add_wire(end, spec.mtu, Wire::from_remote(spec.latency));
        let exit = self.exits.len();
        self.exits.push(Exit {
            mtu: spec.mtu,
            frames: Vec::new(),
        });
        self.slots[end.0.0 as usize].wires[usize::from(end.1)] = EXIT + exit as u32;
        Ok((self.add_link([wire, NO_WIRE]), exit))
    }

    /// Takes the frames that left by an exit since the last call, with their times of sending;
    /// `frames` must be empty and becomes the exit's buffer.
    ///
    /// # Panics
    /// If there is no such exit.
    pub(crate) fn take_out(&mut self, exit: usize, frames: &mut Vec<SentFrame>) {
        core::mem::swap(&mut self.exits[exit].frames, frames);
    }

    /// Hands over frames that another partition sent to this fabric over a link, in the order of
    /// sending. None may arrive at or before the current time.
    ///
    /// # Panics
    /// If there is no such link.
    pub(crate) fn put_in(&mut self, link: LinkId, frames: &mut Vec<SentFrame>) {
        let index = self.joint_index(link, Direction::AToB);
        for (sent, mut frame) in frames.drain(..) {
            self.joints[index].wire.send(sent, &mut frame);
        }
        self.reschedule(index);
    }

    /// Declares that all frames sent so far over a link from another partition have been handed to
    /// this fabric. Call it before the fabric runs on, at least once per link latency.
    ///
    /// # Panics
    /// If there is no such link.
    pub(crate) fn catch_up(&mut self, link: LinkId) {
        let index = self.joint_index(link, Direction::AToB);
        self.joints[index].wire.catch_up(self.now);
        self.reschedule(index);
    }

    fn check_free(&self, (NodeId(node), port): (NodeId, PortId)) -> Result<(), ConnectError> {
        let slot = self
            .slots
            .get(node as usize)
            .ok_or(ConnectError::NoNode(node))?;
        match slot.wires.get(usize::from(port)) {
            None => Err(ConnectError::NoPort { node, port }),
            Some(&wire) if wire != NO_WIRE => Err(ConnectError::InUse { node, port }),
            Some(_) => Ok(()),
        }
    }

    fn add_wire(&mut self, (to, port): (NodeId, PortId), mtu: usize, wire: Wire) -> u32 {
        if self.buffer.len() < mtu {
            self.buffer.resize(mtu, 0);
        }
        self.joints.push(Joint {
            wire,
            to,
            port,
            mtu,
            alarm: Alarm::NONE,
        });
        self.joints.len() as u32 - 1
    }

    fn add_link(&mut self, wires: [u32; 2]) -> LinkId {
        self.links.push(wires);
        LinkId(self.links.len() as u32 - 1)
    }

    pub(super) fn joint_index(&self, link: LinkId, direction: Direction) -> usize {
        self.links[link.0 as usize][direction as usize] as usize
    }
}
