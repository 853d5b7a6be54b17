//! Link ends, read from the plan that `up.sh` writes next to a lab's sockets.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use phitwire_nodes::run_dir::LabDir;

/// An end of a link; frames sent out of it attack the other end.
#[derive(Clone, Debug)]
pub struct End {
    pub link: u16,
    pub node: String,
    pub port: u16,
    pub interface: String,
    /// Node at the other end, which is attacked.
    pub peer: String,
    pub peer_port: u16,
    /// Network namespace of the node.
    pub netns: PathBuf,
}

/// Both ends of each link in `links`, in that order.
pub fn ends(lab: &str, links: &[u16]) -> Result<Vec<End>, Box<dyn Error>> {
    let path = LabDir::new(lab)?.path().join("plan.tsv");
    let plan = fs::read_to_string(&path).map_err(|error| {
        format!(
            "{}: {error} (is the lab up? up.sh TOPOLOGY --lab {lab})",
            path.display()
        )
    })?;
    let mut ends = Vec::new();
    for wanted in links {
        let fields = plan
            .lines()
            .map(|line| line.split('\t').collect::<Vec<_>>())
            .find(|fields| {
                fields.first() == Some(&"link")
                    && fields.get(1).and_then(|id| id.parse().ok()) == Some(*wanted)
            });
        let Some([_, _, a, port_a, b, port_b, if_a, if_b, ..]) = fields.as_deref() else {
            return Err(format!("lab {lab} has no link {wanted}").into());
        };
        let number = |port: &str| port.parse::<u16>();
        let end =
            |(node, port, interface): (&str, u16, &str), (peer, peer_port): (&str, u16)| End {
                link: *wanted,
                node: node.to_owned(),
                port,
                interface: interface.to_owned(),
                peer: peer.to_owned(),
                peer_port,
                netns: PathBuf::from(format!("/run/netns/phw-{lab}-{node}")),
            };
        let (port_a, port_b) = (number(port_a)?, number(port_b)?);
        ends.push(end((a, port_a, if_a), (b, port_b)));
        ends.push(end((b, port_b, if_b), (a, port_a)));
    }
    Ok(ends)
}
