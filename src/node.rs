//! The contract between a router or NIC (network interface) and its driver.

use crate::time::{Duration, Time};

/// A port of a node, by its physical number (router: below [`MAX_PORTS`]; NIC: its slices).
pub type PortId = u8;

/// Maximum number of ports of a node: one bit each in the masks of ports of [`Node::ready_ports`],
/// chips and drivers.
pub const MAX_PORTS: usize = u64::BITS as usize;

const _: () = assert!(
    MAX_PORTS <= PortId::MAX as usize,
    "a port id holds every port, and one more value for none"
);

/// Purpose of a wakeup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// Phits in the pipeline that a paced or virtual clock will move later.
    Pipeline,
    /// A link timer: retry, delayed acknowledgement, initialisation, reorder hold.
    Link,
    /// A forward-progress timer of an output virtual channel.
    ForwardProgress,
    /// A NIC's request timeout, or a workload's next message.
    Request,
}

/// The time at which to call [`Node::advance`] if no frame arrives before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The earliest pending deadline.
    pub at: Time,
    pub reason: WakeReason,
}

impl Wakeup {
    /// A wakeup at `at` for `reason`; `None` if that is [`Time::NEVER`].
    pub fn at(at: Time, reason: WakeReason) -> Option<Self> {
        (at != Time::NEVER).then_some(Self { at, reason })
    }

    /// The earlier of two optional wakeups.
    pub fn earlier(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        match (a, b) {
            (Some(x), Some(y)) => Some(if y.at < x.at { y } else { x }),
            (x, None) => x,
            (None, y) => y,
        }
    }
}

/// A router or NIC: ports and a state machine, without sockets, clocks or threads.
///
/// Call order: any number of [`handle_frame`](Self::handle_frame), then one
/// [`advance`](Self::advance), then [`poll_frame`](Self::poll_frame) on every port of
/// [`ready_ports`](Self::ready_ports) until each returns `None`, then
/// [`poll_event`](Self::poll_event) until `None`. Call `advance` again at
/// [`next_wakeup`](Self::next_wakeup) at the latest. `now` never decreases between calls.
///
/// `now` is [attended](crate::kit::attendance) time: a driver leaves out suspensions of its
/// process, and reports each with [`handle_suspension`](Self::handle_suspension) before it hands in
/// the frames that arrived since.
pub trait Node {
    /// Events for the maintenance controller or the local user.
    type Event;

    /// Number of ports, at most [`MAX_PORTS`]; valid port ids are below it.
    fn ports(&self) -> usize;

    /// Receives one link frame, without Ethernet or UDP header, on `port`.
    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]);

    /// Reports that the process was suspended for `span`, which ended at `now`. `now` does not
    /// include it.
    fn handle_suspension(&mut self, now: Time, span: Duration) {
        let _ = (now, span);
    }

    /// Runs the pipeline up to the cycle that the clock permits, and expires timers.
    fn advance(&mut self, now: Time);

    /// Ports on which [`poll_frame`](Self::poll_frame) may have something to send, as a bit mask.
    fn ready_ports(&self) -> u64;

    /// Writes the next frame of `port` into `buf`, whose length is the link's limit, and returns
    /// its length, or `None` if there is nothing to send.
    fn poll_frame(&mut self, now: Time, port: PortId, buf: &mut [u8]) -> Option<usize>;

    /// The earliest deadline, if any.
    fn next_wakeup(&self) -> Option<Wakeup>;

    /// The next event, oldest first.
    fn poll_event(&mut self) -> Option<Self::Event>;
}
