//! Changes to the wires of a fabric: impairments, noise and cuts.

use super::{Direction, Fabric, LinkId, NodeId};
use crate::device::Device;
use crate::link::impair::{Impairment, LaneNoise, LateCopies, Lateness, Netem, Probability};
use crate::node::{Node, PortId};
use crate::rng::Rng;
use crate::sim::wire::Wire;

impl<N: Node> Fabric<N> {
    /// The wire of one direction of a link.
    ///
    /// # Panics
    /// If there is no such link.
    pub(crate) fn wire(&self, link: LinkId, direction: Direction) -> &Wire {
        &self.joints[self.joint_index(link, direction)].wire
    }

    /// The two ends of a link, first-named end first.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn ends(&self, link: LinkId) -> [(NodeId, PortId); 2] {
        let end = |direction| {
            let joint = &self.joints[self.joint_index(link, direction)];
            (joint.to, joint.port)
        };
        [end(Direction::BToA), end(Direction::AToB)]
    }

    /// The port that one direction of a link leads to.
    ///
    /// # Panics
    /// If there is no such link, or its other end is in another partition.
    pub(crate) fn end_of(&self, link: LinkId, direction: Direction) -> (NodeId, PortId) {
        let joint = &self.joints[self.joint_index(link, direction)];
        (joint.to, joint.port)
    }

    /// Sets or removes the impairment of one direction of a link; frames held by the old one are
    /// lost.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn impair(&mut self, link: LinkId, direction: Direction, netem: Option<Netem>) {
        let impairment = netem.map(|netem| Impairment::new(netem, self.next_stream()));
        let index = self.joint_index(link, direction);
        self.joints[index].wire.set_impairment(impairment);
        self.reschedule(index);
    }

    /// Impairs one direction of a link with a given random stream, so that it does not depend on
    /// earlier impairments.
    ///
    /// # Panics
    /// If there is no such link.
    pub(crate) fn impair_as(
        &mut self,
        link: LinkId,
        direction: Direction,
        netem: Netem,
        stream: u64,
    ) {
        let index = self.joint_index(link, direction);
        let impairment = Impairment::new(netem, Rng::new(self.seed, stream));
        self.joints[index].wire.set_impairment(Some(impairment));
        self.reschedule(index);
    }

    /// Impairs every direction of every link the same way, each with its own random stream.
    pub fn impair_all(&mut self, netem: Option<Netem>) {
        for link in 0..self.links() as u32 {
            for direction in Direction::BOTH {
                self.impair(LinkId(link), direction, netem);
            }
        }
    }

    /// Delivers `share` of the frames of one direction of a link a second time, unchanged and up to
    /// `lateness` later.
    ///
    /// # Panics
    /// If there is no such link, or its wire is from another partition.
    pub(crate) fn copy_late(
        &mut self,
        link: LinkId,
        direction: Direction,
        share: Probability,
        lateness: Lateness,
    ) {
        let late = LateCopies::new(share, lateness, self.next_stream());
        let index = self.joint_index(link, direction);
        self.joints[index].wire.set_late_copies(late);
        self.reschedule(index);
    }

    /// Rewrites late copies with `forgery` from now on.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn forge_late_copies(&mut self, forgery: crate::sim::wire::Forgery) {
        for joint in &mut self.joints {
            joint.wire.forge_late_copies(forgery);
        }
    }

    /// Stops copying frames on all links. Returns how many copies are still to arrive.
    pub(crate) fn stop_late_copies(&mut self) -> usize {
        let wires = self.joints.iter_mut().map(|joint| &mut joint.wire);
        wires
            .map(|wire| {
                wire.stop_late_copies();
                wire.late_copies_held()
            })
            .sum()
    }

    /// Cuts both directions of a link; frames in flight are lost.
    ///
    /// # Panics
    /// If there is no such link, or its other end is in another partition.
    pub fn cut(&mut self, link: LinkId) {
        for direction in Direction::BOTH {
            self.cut_one(link, direction);
        }
    }

    /// Cuts one direction of a link; frames in flight are lost.
    ///
    /// # Panics
    /// If there is no such link.
    pub(crate) fn cut_one(&mut self, link: LinkId, direction: Direction) {
        let index = self.joint_index(link, direction);
        self.joints[index].wire.cut();
        self.reschedule(index);
    }

    /// Restores a cut link.
    ///
    /// # Panics
    /// If there is no such link, or its other end is in another partition.
    pub fn restore(&mut self, link: LinkId) {
        for direction in Direction::BOTH {
            self.restore_one(link, direction);
        }
    }

    /// Restores one direction of a cut link.
    ///
    /// # Panics
    /// If there is no such link.
    pub(crate) fn restore_one(&mut self, link: LinkId, direction: Direction) {
        let index = self.joint_index(link, direction);
        self.joints[index].wire.restore();
    }
}

impl Fabric<Box<dyn Device>> {
    /// Puts noise on a lane at the transmitting end of one direction, or removes it.
    ///
    /// # Panics
    /// If there is no such link, its transmitting end is in another partition, or it has no such
    /// lane.
    pub fn lane_noise(
        &mut self,
        link: LinkId,
        direction: Direction,
        noise: Option<(u8, Probability)>,
    ) {
        let [a, b] = self.ends(link);
        let (node, port) = match direction {
            Direction::AToB => a,
            Direction::BToA => b,
        };
        let noise = noise.map(|(lane, per_bit)| {
            let sender = self.node(node).link(port);
            let layout = sender.expect("the fabric has a wire from this port");
            LaneNoise::new(layout.lane_layout(), lane, per_bit, self.next_stream())
        });
        let index = self.joint_index(link, direction);
        self.joints[index].wire.set_noise(noise);
    }
}
