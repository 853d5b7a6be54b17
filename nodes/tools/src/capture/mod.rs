//! Captures: all frames on the links of a lab in one pcapng file, with an interface for each
//! direction of each link.
//!
//! A direction is captured at its sender, in the sender's namespace: [`TapDirection::Sent`]. This
//! captures the frames that the sender handed over, including those that nftables drops at the
//! receiver, but not those that netem dropped at the sender's interface. [`CapturePoint::Receiver`]
//! captures frames that arrive at the other end, before nftables there. [`CapturePoint::Both`]
//! captures both. Neither point shows which frames netem or nftables drops: netem is before both,
//! nftables after both. Frames missing from the second were lost between the two interfaces.
//!
//! - [`links`](LabLink) reads the links of a lab;
//! - [`session`](Capture) opens the taps, one namespace after another, and merges their frames by
//!   time;
//! - [`train`](for_each_datagram) splits trains of datagrams;
//! - [`simulated`](SimulatedCapture) captures the frames of a simulated network;
//! - [`pcapng`] and [`sink`](Sink) write the file.

mod filter;
mod links;
pub mod pcapng;
mod session;
mod simulated;
mod sink;
mod train;

use clap::ValueEnum;
use phitwire_nodes::io::TapDirection;

pub use filter::Filter;
pub use links::links;
pub use session::{Capture, CapturedDirection, End, Until};
pub use simulated::SimulatedCapture;
pub use sink::{Limits, Sink, tail};

/// Where to capture each direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CapturePoint {
    /// At the sender, after its netem
    Sender,
    /// At the receiver, before its nftables
    Receiver,
    /// At both, as two interfaces in the file
    Both,
}

impl CapturePoint {
    const fn directions(self) -> &'static [TapDirection] {
        match self {
            Self::Sender => &[TapDirection::Sent],
            Self::Receiver => &[TapDirection::Received],
            Self::Both => &[TapDirection::Sent, TapDirection::Received],
        }
    }
}
