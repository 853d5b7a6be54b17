//! A link as seen from outside its node.

use phitwire_framing::carrier::lane_layout::LaneLayout;

use super::account::EndAccount;
use super::{DeviceError, LinkFault};
use crate::link::{EndStatus, LinkControlBlock};
use crate::node::PortId;
use crate::time::Time;

/// One end of a link of any machine.
pub trait LinkView: EndStatus {
    /// Calls `visit` with every counter, including those specific to the machine's links.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counters().for_each(visit);
    }
    /// Layout of the link's frames, for noise on single lanes.
    fn lane_layout(&self) -> LaneLayout;
    /// Remaining credit towards the peer and everything in flight, for checks.
    fn account(&self) -> EndAccount;
    /// Units sent for the first time, in the unit of [`resent`](Self::resent).
    fn sent(&self) -> u64 {
        self.counters().tx_packets
    }
    /// Frame bytes that the node takes in from this link before it sends the resulting frames: five
    /// or six Ethernet frames.
    fn bytes_per_turn(&self) -> usize {
        8_000
    }
    /// Units resent: packets, or the unit that this machine's links resend.
    fn resent(&self) -> u64 {
        self.counters().tx_retransmitted_packets
    }
    /// Units received with an invalid check: packets, or the unit that this machine's links check.
    fn bad_checks(&self) -> u64 {
        self.counters().rx_crc_errors
    }
}

/// One end of a link, as owned by its node.
pub trait LinkEnd: LinkControlBlock<Input: Send> + LinkView + Send + 'static {
    /// Name of this kind of link in messages.
    const LINK: &'static str;
    /// Names of its virtual channels, by number.
    const VC_NAMES: &'static [&'static str];

    /// Applies `fault`; returns false if links of this kind do not have it.
    fn suffer(&mut self, now: Time, fault: LinkFault, input: &mut Self::Input) -> bool;

    /// Applies `fault` to the link of `port`.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchFault`].
    fn break_link(
        &mut self,
        now: Time,
        (port, fault): (PortId, LinkFault),
        input: &mut Self::Input,
    ) -> Result<(), DeviceError> {
        let link = Self::LINK;
        let suffered = self.suffer(now, fault, input);
        suffered
            .then_some(())
            .ok_or(DeviceError::NoSuchFault { port, link })
    }
}
