//! A link as it is seen from outside its node.

use super::account::EndAccount;
use super::{DeviceError, LinkFault};
use crate::link::{LinkConfig, LinkControlBlock, LinkCounters, LinkState};
use crate::node::PortId;
use crate::time::{Duration, Time};

/// One end of a link of any machine.
pub trait LinkView {
    /// What the link was told before it started.
    fn config(&self) -> &LinkConfig;
    /// How it stands.
    fn state(&self) -> LinkState;
    /// Whether packets may flow.
    fn is_active(&self) -> bool;
    /// The incarnations of this end and, as far as it knows, of the other.
    fn epochs(&self) -> (u32, u32);
    /// Lanes received on, one bit per lane.
    fn rx_lanes(&self) -> u8;
    /// Lanes sent on, one bit per lane.
    fn tx_lanes(&self) -> u8;
    /// The counters that all link ends have.
    fn counters(&self) -> &LinkCounters;
    /// Calls `visit` with every counter, also those that only this machine's links have.
    fn for_each_counter(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.counters().for_each(visit);
    }
    /// Credit left towards the peer and all that is under way, for those who check it.
    fn account(&self) -> EndAccount;
    /// Packets sent or waiting that the peer has not acknowledged.
    fn unacknowledged_packets(&self) -> u64;
    /// What was sent again: packets, or whatever a link of this machine repeats.
    fn resent(&self) -> u64 {
        self.counters().tx_retransmitted_packets
    }
    /// Smoothed round-trip time, once measured.
    fn round_trip(&self) -> Option<Duration>;
    /// When a data frame of the peer was last accepted.
    fn last_accepted(&self) -> Option<Time>;
    /// Whether nothing is accepted although the peer was asked.
    fn is_silent(&self) -> bool;
    /// Whether the peer is heard and acknowledges nothing.
    fn is_stalled(&self) -> bool;
}

/// One end of a link as the node has it that owns it.
pub trait LinkEnd: LinkControlBlock<Input: Send> + LinkView + Send + 'static {
    /// What links of this kind are called.
    const LINK: &'static str;

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

/// Those methods of [`LinkView`] that link ends have themselves, under the same names.
macro_rules! link_view_by_own_methods {
    () => {
        fn config(&self) -> &$crate::link::LinkConfig {
            Self::config(self)
        }
        fn state(&self) -> $crate::link::LinkState {
            Self::state(self)
        }
        fn is_active(&self) -> bool {
            Self::is_active(self)
        }
        fn epochs(&self) -> (u32, u32) {
            Self::epochs(self)
        }
        fn rx_lanes(&self) -> u8 {
            Self::rx_lanes(self)
        }
        fn tx_lanes(&self) -> u8 {
            Self::tx_lanes(self)
        }
        fn counters(&self) -> &$crate::link::LinkCounters {
            Self::counters(self)
        }
        fn unacknowledged_packets(&self) -> u64 {
            Self::unacknowledged_packets(self)
        }
        fn round_trip(&self) -> Option<$crate::time::Duration> {
            Self::round_trip(self)
        }
        fn last_accepted(&self) -> Option<$crate::time::Time> {
            Self::last_accepted(self)
        }
        fn is_silent(&self) -> bool {
            Self::is_silent(self)
        }
        fn is_stalled(&self) -> bool {
            Self::is_stalled(self)
        }
    };
}

pub(crate) use link_view_by_own_methods;
