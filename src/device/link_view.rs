//! A link as it is seen from outside its node.

use super::account::EndAccount;
use super::{DeviceError, LinkFault};
use crate::link::{EndStatus, LinkControlBlock};
use crate::node::PortId;
use crate::time::Time;

/// One end of a link of any machine.
pub trait LinkView: EndStatus {
    /// Calls `visit` with every counter, also those that only this machine's links have.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counters().for_each(visit);
    }
    /// Credit left towards the peer and all that is under way, for those who check it.
    fn account(&self) -> EndAccount;
    /// What was sent for the first time, in the unit of [`resent`](Self::resent).
    fn sent(&self) -> u64 {
        self.counters().tx_packets
    }
    /// Bytes of frames from a link like this after which its node hands on what follows from them
    /// before it takes in more, if all links have some: five or six frames of an Ethernet.
    fn bytes_per_turn(&self) -> usize {
        8_000
    }
    /// What was sent again: packets, or whatever a link of this machine repeats.
    fn resent(&self) -> u64 {
        self.counters().tx_retransmitted_packets
    }
    /// What came with a wrong check: packets, or whatever a link of this machine checks.
    fn bad_checks(&self) -> u64 {
        self.counters().rx_crc_errors
    }
}

/// One end of a link as the node has it that owns it.
pub trait LinkEnd: LinkControlBlock<Input: Send> + LinkView + Send + 'static {
    /// What links of this kind are called.
    const LINK: &'static str;
    /// What its virtual channels are called, by number.
    const VC_NAMES: &'static [&'static str];

    /// Does `fault` to the link; false if it cannot suffer that.
    fn suffer(&mut self, now: Time, fault: LinkFault, input: &mut Self::Input) -> bool;

    /// The same for the link of `port`.
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

impl EndAccount {
    /// The account of a link end.
    pub fn of(link: &dyn LinkView) -> Self {
        link.account()
    }
}
