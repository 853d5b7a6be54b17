//! Captures: all that passes the links of a lab in one pcapng file, an interface for each direction
//! of each link.
//!
//! A direction is heard at its sender, in the sender's namespace: [`Hears::Sent`]. There is what the
//! sender handed over, also what is lost on the way by nftables at the receiver. What netem does at
//! the sender's interface has happened by then: what it loses is not heard. [`Place::Receiver`]
//! hears what comes in at the other end, before nftables there; [`Place::Both`] both, so that what
//! is missing from the second was lost between the two.
//!
//! - [`links`](LabLink) reads which links there are;
//! - [`session`](Capture) opens the taps, one namespace after the other, and puts what they hear in the
//!   order of its time;
//! - [`train`](for_each_datagram) takes trains of datagrams apart;
//! - [`simulated`](SimulatedCapture) writes the frames of a simulated network down likewise;
//! - [`pcapng`] and [`sink`](Sink) write it down.

mod filter;
mod links;
pub mod pcapng;
mod session;
mod simulated;
mod sink;
mod train;

use clap::ValueEnum;
use phitwire_nodes::io::Hears;

pub use filter::{Filter, FilterError};
pub use links::{LabLink, LinksError, links};
pub use session::{Capture, CaptureError, End, Heard, Until};
pub use simulated::SimulatedCapture;
pub use sink::{Limits, Room, Sink, SinkError, tail};
pub use train::for_each_datagram;

/// Where a direction of a link is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Where it is sent, behind netem there
    Sender,
    /// Where it comes in, before nftables there
    Receiver,
    /// In both places, an interface of the file for each
    Both,
}

impl Place {
    /// What is heard there.
    const fn hears(self) -> &'static [Hears] {
        match self {
            Self::Sender => &[Hears::Sent],
            Self::Receiver => &[Hears::Received],
            Self::Both => &[Hears::Sent, Hears::Received],
        }
    }
}
