//! A node of each kind of every machine, to query.

use phitwire::device::{Device, Kind};
use phitwire::net::Runtime;
use phitwire::time::Time;
use phitwire_machines::{CATALOGUE, MACHINES};

use crate::Outcome;

/// The networks whose nodes are queried, and the folder of each network's machine. [`samples`]
/// reports a machine that is missing here.
const NETWORKS: [(&str, &str, &str); 3] = [
    ("BlackWidow", "blackwidow", "quickstart"),
    ("Aries", "aries", "aries-3x4"),
    ("T3E", "t3e", "t3e-2x2x2"),
];

/// A node and its machine.
pub struct Sample {
    /// Name of the machine for display.
    pub machine: &'static str,
    /// The folder of its machine below `machines`.
    pub folder: &'static str,
    pub device: Box<dyn Device>,
}

impl Sample {
    /// `router` or `network interface`.
    pub fn kind(&self) -> &'static str {
        match self.device.kind() {
            Kind::Router => "router",
            Kind::Nic => "network interface",
        }
    }
}

/// A router and a network interface of each machine.
pub fn samples() -> Outcome<Vec<Sample>> {
    if MACHINES.len() != NETWORKS.len() {
        return Err(
            "a machine has no network in nodes/tools/examples/reference/machines.rs".to_owned(),
        );
    }
    let mut all = Vec::new();
    for (machine, folder, name) in NETWORKS {
        let ready = MACHINES.iter().flat_map(|machine| machine.ready);
        let (_, text) = ready
            .into_iter()
            .find(|(other, _)| *other == name)
            .ok_or_else(|| format!("no description {name} comes with the commands"))?;
        let network = CATALOGUE
            .read(name, text)
            .map_err(|problems| problems.lines())?;
        let nodes = network.node_names();
        for kind in [Kind::Router, Kind::Nic] {
            let mut made = nodes.iter().map(|node| {
                network
                    .device(node, &Runtime::new("reference", 1), Time::ZERO)
                    .map_err(|error| error.to_string())
            });
            let device = made
                .find(|device| device.as_ref().map_or(true, |device| device.kind() == kind))
                .ok_or_else(|| format!("{name} has no {kind}"))??;
            all.push(Sample {
                machine,
                folder,
                device,
            });
        }
    }
    Ok(all)
}
