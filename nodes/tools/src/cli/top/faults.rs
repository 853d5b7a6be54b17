//! Faults that can be injected by hand.

use phitwire::node::PortId;
use phitwire_nodes::control::Fault;

/// The label of a fault, and the fault at a port.
pub type Offer = (&'static str, fn(PortId) -> Fault);

/// The faults of the menu.
pub const MENU: [Offer; 13] = [
    ("take the link down", |port| Fault::LinkDown { port }),
    ("bring the link up", |port| Fault::LinkUp { port }),
    ("flip a bit of the next packet", |port| Fault::SoftError {
        port,
    }),
    ("resend everything unacknowledged", |port| {
        Fault::ForceRetry { port }
    }),
    ("send the next set with a bad CRC", |port| Fault::BadCrc {
        port,
    }),
    ("reinitialise the lanes", |port| Fault::Reinit { port }),
    ("lose the receive clock for 100 ms", |port| {
        Fault::LoseClock { port, ms: 100 }
    }),
    ("noise on lane 0, 1 bit of 100,000", |port| {
        noise(port, 0, "1/100000")
    }),
    ("noise on lane 0, 1 bit of 1,000", |port| {
        noise(port, 0, "1/1000")
    }),
    ("noise on lane 1, 1 bit of 1,000", |port| {
        noise(port, 1, "1/1000")
    }),
    ("end noise on lane 0", |port| noise(port, 0, "0")),
    ("end noise on lane 1", |port| noise(port, 1, "0")),
    ("inject errors into 1 % of the sets", |port| Fault::Inject {
        port,
        probability: 655,
        lane_mask: 7,
        bit_mask: 1,
        max_per_64_sets: 64,
        seed: 1,
    }),
];

fn noise(port: PortId, lane: u8, rate: &str) -> Fault {
    Fault::LaneNoise {
        port,
        lane,
        rate: rate.to_owned(),
    }
}
