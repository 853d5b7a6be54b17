//! Two ends joined by memory: frames that one sends in a round reach the other in the same round.

use phitwire::link::{EndName, LinkConfig, LinkStandard};
use phitwire::time::{Duration, Time};
use phitwire_framing::carrier::frame::LinkEnd;

/// A link control block or a node with one port.
pub trait End {
    fn is_up(&self) -> bool;
    /// Handles due timers; called before frames are polled.
    fn advance(&mut self, _now: Time) {}
    fn poll_frame(&mut self, now: Time, buf: &mut [u8]) -> Option<usize>;
    fn handle_frame(&mut self, now: Time, bytes: &[u8]);
    /// Consumes received data.
    fn take(&mut self) {}
}

/// Two ends whose frames are copied from one to the other.
pub struct Joined<E> {
    pub ends: [E; 2],
    pub now: Time,
    buf: Vec<u8>,
}

impl<E: End> Joined<E> {
    /// Ends with an established session, for frames of at most `frame_bytes`.
    pub fn up(ends: [E; 2], frame_bytes: usize) -> Self {
        let mut joined = Self {
            ends,
            now: Time::ZERO,
            buf: vec![0; frame_bytes],
        };
        while !joined.ends.iter().all(E::is_up) {
            joined.round(Duration::from_us(100));
        }
        joined
    }

    /// Advances time by `time` and exchanges frames until neither end has any.
    pub fn round(&mut self, time: Duration) {
        self.now += time;
        let now = self.now;
        for index in [0, 1] {
            let [a, b] = &mut self.ends;
            let (from, to) = if index == 0 { (a, b) } else { (b, a) };
            from.advance(now);
            while let Some(length) = from.poll_frame(now, &mut self.buf) {
                to.handle_frame(now, &self.buf[..length]);
            }
            to.take();
        }
    }
}

/// The two ends of one link between the nodes `a` and `b`.
pub fn links(standard: LinkStandard) -> [LinkConfig; 2] {
    let name = |node: &str| EndName {
        node: node.to_owned(),
        port: 0,
    };
    [(LinkEnd::A, "a", "b"), (LinkEnd::B, "b", "a")].map(|(end, local, peer)| {
        let link = LinkConfig::builder(standard, 1, end, name(local), name(peer));
        link.build().expect("the names are good")
    })
}
