//! Checks of shape, names, ports and links.

use crate::route::registers;
use crate::route::registers::PortKind;
use crate::topology::model::{Dragonfly, DragonflyLink, Shape};
use crate::topology::read::PORTS;
use phitwire::net::{
    End, Location, MAX_NAME_BYTES, Mistake, MistakeKind as K, Mistakes, PortIndex, PortLink, Shown,
    name_problem,
};

pub(super) fn check(network: &Dragonfly) -> Mistakes {
    let mut mistakes = Mistakes::default();
    if let Some(why) = name_problem(&network.name) {
        let message = format!("\"{}\" is not a valid name: {why}", Shown(&network.name));
        mistakes.push(K::BadValue.at(Location::Network, message).help(format!(
            "write 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` or `.`"
        )));
    }
    if let Err(error) = network.shape.check() {
        // Stop here: without nodes nothing else can be checked.
        let mut alone = Mistakes::default();
        alone.push(K::BadValue.at(Location::Network, error.to_string()));
        return alone;
    }
    if network.routers().next().is_none() {
        mistakes.push(
            K::BadValue
                .at(Location::Network, "all routers are absent")
                .help("shorten the list `absent`"),
        );
    }
    links(network, &mut mistakes);
    mistakes
}

fn links(network: &Dragonfly, mistakes: &mut Mistakes) {
    let Shape { nics, .. } = network.shape;
    let routers = network.shape.routers();
    let mut used = PortIndex::new(
        (routers, registers::PORTS),
        (routers * usize::from(nics), 1),
    );
    for (l, link) in network.links.iter().enumerate() {
        let before = mistakes.len();
        for end in [link.a, link.b] {
            mistakes.extend(end_problem(network, l as u32, end));
        }
        if mistakes.len() > before {
            continue;
        }
        for (end, other) in link.ends() {
            let joined = PortLink {
                link: l as u32,
                other,
                kind: (),
            };
            if let Some(first) = used.claim(end, joined) {
                let message = format!("{} has more than one link", network.end_name(end));
                mistakes.push(
                    K::PortUsedTwice
                        .at(Location::Link(l as u32), message)
                        .again(Location::Link(first))
                        .help("a port has one link; `remove` a generated one or use another port"),
                );
            }
        }
        mistakes.extend(kind_problem(network, l as u32, link));
    }
    for nic in network.nics() {
        let (own, router) = network.nic_ends(nic);
        if used.at(own).is_none() {
            let (own, router) = (network.end_name(own), network.end_name(router));
            mistakes.push(
                K::MissingLink
                    .at(Location::Network, format!("nic{nic} has no link"))
                    .help(format!("add {{ a = \"{own}\", b = \"{router}\" }}")),
            );
        }
    }
}

fn end_problem(network: &Dragonfly, link: u32, end: End) -> Option<Mistake> {
    if !network.has(end.node) {
        let message = format!("{} is not in the network", network.node_name(end.node));
        return Some(K::UnknownNode.at(Location::Link(link), message));
    }
    (end.port >= Dragonfly::ports_of(end.node)).then(|| {
        let message = format!("port {} does not exist", network.end_name(end));
        K::PortOutOfRange
            .at(Location::Link(link), message)
            .help(PORTS)
    })
}

fn kind_problem(network: &Dragonfly, l: u32, link: &DragonflyLink) -> Option<Mistake> {
    let ends = || (network.end_name(link.a), network.end_name(link.b));
    let Some(kind) = network.kind(link) else {
        let (a, b) = ends();
        return Some(
            K::BadLink.at(Location::Link(l), format!("{a} cannot be linked to {b}")).help(
                "links connect routers of the same chassis, of the same slot in two chassis of a \
                 group, or of two groups; NIC n connects to port 40 + n mod nics of router n div \
                 nics",
            ),
        );
    };
    let ports = [link.a, link.b];
    let on_nic_port = ports
        .into_iter()
        .find(|end| kind != PortKind::Processor && !Dragonfly::is_network_port(end.port));
    on_nic_port.map(|end| {
        let message = format!("{} is a NIC port", network.end_name(end));
        K::BadLink
            .at(Location::Link(l), message)
            .help("links between routers use ports 0 to 39")
    })
}
