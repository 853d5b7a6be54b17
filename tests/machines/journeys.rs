//! Follows packets through a network by the records of its routers.

use phitwire::net::{End, Network, NodeRef, PathEnd, Peers, Sightings, TracedPacket};
use phitwire::trace::{Departure, Passage, Step};
use phitwire_machines::CATALOGUE;

/// Maximum number of routers on a path.
const MOST_HOPS: usize = 64;

fn network() -> Box<dyn Network> {
    CATALOGUE
        .generate("aries-1x2x2x2")
        .expect("a name")
        .expect("a network")
}

fn at(network: &dyn Network, name: &str) -> NodeRef {
    let mut nodes = network.nodes().into_iter();
    nodes
        .find(|&node| network.node_name(node) == name)
        .expect(name)
}

fn passage(port: u8, came: u64, out: Option<u8>) -> Passage {
    Passage {
        identity: Some(5),
        port,
        arrived_ps: Some(came),
        steps: vec![Step {
            stage: "all".into(),
            left_ps: came + 10,
            least_ps: 0,
        }],
        departure: out.map(|port| Departure {
            port,
            vc: 0,
            resent_before: None,
            resent: None,
            acknowledged: true,
            link_ended: false,
        }),
        ..Passage::default()
    }
}

/// Two NICs of neighbouring routers, and the ports between them.
fn pair(network: &dyn Network) -> (Peers, NodeRef, NodeRef, [End; 6]) {
    let peers = Peers::of(network);
    let from = at(network, "nic0");
    let (_, enters) = peers.of_node(from).next().expect("a link");
    let between = peers
        .of_node(enters.node)
        .find(|(_, other)| matches!(other.node, NodeRef::Chip(_)));
    let (leaves, comes) = between.expect("a neighbour");
    let last = peers
        .of_node(comes.node)
        .find(|(_, other)| matches!(other.node, NodeRef::Processor(_)));
    let (ejects, to) = last.expect("a network interface");
    (
        peers,
        from,
        to.node,
        [enters, leaves, comes, ejects, to, to],
    )
}

#[test]
fn a_packet_is_followed_to_its_end_and_no_further_than_it_was_seen() {
    let network = network();
    let (peers, from, to, [enters, leaves, comes, ejects, ..]) = pair(&*network);
    let packet = TracedPacket {
        from,
        to,
        response: false,
        identity: 5,
        not_before_ps: 100,
        slack_ps: 0,
    };
    let mut seen = Sightings::new();
    assert_eq!(
        peers.follow(packet, &seen).1,
        PathEnd::NotQueried(enters.node)
    );
    seen.insert(enters.node, Vec::new());
    assert_eq!(peers.follow(packet, &seen).1, PathEnd::NotSeen);
    // An earlier packet with the same identity is a different one.
    seen.insert(
        enters.node,
        vec![
            passage(enters.port, 50, Some(leaves.port)),
            passage(enters.port, 120, Some(leaves.port)),
        ],
    );
    let (hops, way) = peers.follow(packet, &seen);
    assert_eq!((hops.len(), way), (1, PathEnd::NotQueried(comes.node)));
    assert_eq!(hops[0].passage.arrived_ps, Some(120));
    seen.insert(comes.node, vec![passage(comes.port, 60, None)]);
    let way = peers.follow(packet, &seen).1;
    assert_eq!(way, PathEnd::OnLink { acknowledged: true });
    seen.insert(comes.node, vec![passage(comes.port, 140, None)]);
    assert_eq!(peers.follow(packet, &seen).1, PathEnd::Inside);
    seen.insert(
        comes.node,
        vec![passage(comes.port, 140, Some(ejects.port))],
    );
    let (hops, way) = peers.follow(packet, &seen);
    assert_eq!((hops.len(), way), (2, PathEnd::Delivered));
    for ended in [false, true] {
        let passages = seen.get_mut(&comes.node).expect("it was asked");
        let departure = passages[0].departure.as_mut().expect("it left");
        (departure.acknowledged, departure.link_ended) = (false, ended);
        assert_eq!(peers.follow(packet, &seen).1, PathEnd::LastLink { ended });
    }
}

#[test]
fn a_routing_loop_is_not_followed_for_ever() {
    let network = network();
    let (peers, from, to, [enters, leaves, comes, ..]) = pair(&*network);
    let mut seen = Sightings::new();
    let of = |at: End, out: End| passage(at.port, 1, Some(out.port));
    // Back and forth over one link, all at one moment, so that time does not end it.
    let still = |mut passage: Passage| {
        passage.steps[0].left_ps = 1;
        passage
    };
    seen.insert(
        enters.node,
        vec![still(of(enters, leaves)), still(of(leaves, leaves))],
    );
    seen.insert(comes.node, vec![still(of(comes, comes))]);
    let packet = TracedPacket {
        from,
        to,
        response: false,
        identity: 5,
        not_before_ps: 0,
        slack_ps: 0,
    };
    let (hops, way) = peers.follow(packet, &seen);
    assert_eq!((hops.len(), way), (MOST_HOPS, PathEnd::Loop));
}
