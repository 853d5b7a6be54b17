//! Checks of names, numbers, ports, links, subtrees and slices.

use std::collections::{BTreeMap, BTreeSet};

use crate::route::registers::{PORTS, Subtree};
use crate::topology::model::{
    FoldedClos, MAX_PROCESSORS, MAX_SLICES, VirtualRouter, is_aligned, range_of_subtree,
};
use crate::topology::wiring::ClosWiring;
use phitwire::net::{
    End, Link, Location, MAX_NAME_BYTES, Mistake, MistakeKind as K, Mistakes, Network as _,
    NodeRef, PortIndex, PortLink, PortSet, Shown, ends_of, name_problem,
};

pub(super) fn check(topology: &FoldedClos, wiring: &ClosWiring) -> Mistakes {
    let mut mistakes = of_a_part(topology);
    routers(topology, &mut mistakes);
    for (l, link) in topology.links.iter().enumerate() {
        let before = mistakes.len();
        for end in [link.a, link.b] {
            mistakes.extend(without_router(topology, l as u32, end));
        }
        if mistakes.len() == before {
            mistakes.extend(neighbours(topology, wiring, l as u32, link));
        }
    }
    injections(topology, wiring, &mut mistakes);
    mistakes
}

/// The mistakes that remain meaningful when parts could not be read.
pub(super) fn of_a_part(topology: &FoldedClos) -> Mistakes {
    let mut mistakes = Mistakes::default();
    names(topology, &mut mistakes);
    numbers(topology, &mut mistakes);
    let (chips, processors) = (topology.chips.len(), topology.processors.len());
    // Index only valid slices; an invalid number of slices is reported separately.
    let mut used = PortIndex::new((chips, PORTS), (processors, usize::from(MAX_SLICES)));
    for (l, link) in topology.links.iter().enumerate() {
        for (end, other) in link.ends() {
            let link = l as u32;
            let joined = PortLink {
                link,
                other,
                kind: (),
            };
            port(topology, end, joined, &mut used, &mut mistakes);
        }
    }
    mistakes
}

fn names(topology: &FoldedClos, mistakes: &mut Mistakes) {
    let mut judge = |name: &str, location: Location| {
        let node = matches!(location, Location::Processor(_) | Location::Chip(_));
        if let Some(why) = name_problem(name).or_else(|| node_name_problem(name).filter(|_| node)) {
            mistakes.push(
                K::BadValue.at(location,
                    format!("\"{}\" is not a valid name: {why}", Shown(name)),
                )
                .help(format!(
                    "write 1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` or `.`, beginning with \
                     a letter or digit"
                )),
            );
        }
    };
    judge(&topology.name, Location::Network);
    for (i, processor) in topology.processors.iter().enumerate() {
        judge(&processor.name, Location::Processor(i as u32));
    }
    for (c, chip) in topology.chips.iter().enumerate() {
        judge(&chip.name, Location::Chip(c as u32));
        for (r, router) in chip.routers.iter().enumerate() {
            judge(&router.name, Location::Router(c as u32, r as u32));
        }
    }
    let processors = topology.processors.iter().enumerate();
    let chips = topology.chips.iter().enumerate();
    let nodes = processors
        .map(|(i, p)| (p.name.as_str(), Location::Processor(i as u32)))
        .chain(chips.map(|(i, c)| (c.name.as_str(), Location::Chip(i as u32))));
    duplicates(nodes, "node", mistakes);
    // A chip with a single router may share its name with the router. Two such chips with one name
    // are already reported as duplicate chips.
    let mut whole_chips = BTreeSet::new();
    let mut routers = Vec::new();
    for (c, chip) in topology.chips.iter().enumerate() {
        for (r, router) in chip.routers.iter().enumerate() {
            if router.name != chip.name || whole_chips.insert(router.name.as_str()) {
                routers.push((router.name.as_str(), Location::Router(c as u32, r as u32)));
            }
        }
    }
    duplicates(routers.into_iter(), "virtual router", mistakes);
}

fn duplicates<'t>(
    names: impl Iterator<Item = (&'t str, Location)>,
    what: &str,
    mistakes: &mut Mistakes,
) {
    let mut known: BTreeMap<&str, Location> = BTreeMap::new();
    for (name, location) in names {
        if let Some(first) = known.get(name) {
            let message = format!("two {what}s have the name {}", Shown(name));
            mistakes.push(
                K::DuplicateName
                    .at(location, message)
                    .again(first.clone())
                    .help(format!("give each {what} a unique name")),
            );
        } else {
            known.insert(name, location);
        }
    }
}

/// The meaning that `text` already has where node names appear, if any.
fn node_name_problem(text: &str) -> Option<&'static str> {
    if text == "all" {
        Some("it means all nodes and all links")
    } else if text.bytes().all(|b| b.is_ascii_digit()) {
        Some("numbers are reserved for links")
    } else {
        None
    }
}

fn numbers(topology: &FoldedClos, mistakes: &mut Mistakes) {
    let mut known: BTreeMap<u16, u32> = BTreeMap::new();
    for (i, processor) in topology.processors.iter().enumerate() {
        let (name, number, location) = (
            &processor.name,
            processor.number,
            Location::Processor(i as u32),
        );
        if u32::from(number) >= MAX_PROCESSORS {
            let message = format!("number {number} of {name} exceeds 15 bits");
            mistakes.push(
                K::NumberOutOfRange
                    .at(location, message)
                    .help("the destination field of a packet holds at most 32767"),
            );
        } else if let Some(&first) = known.get(&number) {
            let other = &topology.processors[first as usize].name;
            mistakes.push(
                K::DuplicateNumber
                    .at(
                        location,
                        format!("{name} and {other} both have number {number}"),
                    )
                    .again(Location::Processor(first))
                    .help("packets are addressed by number: give each processor a unique one"),
            );
        } else {
            known.insert(number, i as u32);
        }
    }
}

fn routers(topology: &FoldedClos, mistakes: &mut Mistakes) {
    if !(1..=MAX_SLICES).contains(&topology.slices) {
        let message = format!("invalid number of slices: {}", topology.slices);
        mistakes.push(
            K::BadValue
                .at(Location::Network, message)
                .help("use 1 to 4: a processor has one injection port per slice"),
        );
    }
    for (c, chip) in topology.chips.iter().enumerate() {
        let mut taken: Vec<(PortSet, u32)> = Vec::new();
        for (r, router) in chip.routers.iter().enumerate() {
            let at = Location::Router(c as u32, r as u32);
            let name = &router.name;
            if router.slice >= topology.slices {
                let message = format!("{name} is in slice {}, which does not exist", router.slice);
                let last = topology.slices.saturating_sub(1);
                mistakes.push(K::SliceInconsistent.at(at.clone(), message).help(format!(
                    "slices are 0 to {last}; raise `slices` or change the slice of the \
                             router"
                )));
            }
            if !is_aligned(router.subtree) {
                let (location, mask) = (router.subtree.location, router.subtree.mask);
                let message = format!(
                    "the subtree of {name}, location {location:#06x} and mask {mask:#06x}, is not \
                     an aligned range"
                );
                mistakes.push(
                    K::BadSubtree
                        .at(at.clone(), message)
                        .help("write an aligned range whose size is a power of two, like \"4-7\""),
                );
            }
            for (ports, other) in &taken {
                let both = PortSet::from_bits(ports.bits() & router.ports.bits());
                if !both.is_empty() {
                    let first = &chip.routers[*other as usize].name;
                    mistakes.push(
                        K::PortLeak
                            .at(
                                at.clone(),
                                format!("{name} and {first} both use port {both} of {}", chip.name),
                            )
                            .other(Location::Router(c as u32, *other), "the other router")
                            .help("assign each of the 64 ports of the chip to one router only"),
                    );
                }
            }
            taken.push((router.ports, r as u32));
        }
    }
}

fn port(
    topology: &FoldedClos,
    end: End,
    joined: PortLink<()>,
    used: &mut PortIndex<()>,
    mistakes: &mut Mistakes,
) {
    let link = joined.link;
    let location = Location::Link(link);
    let name = topology.node_name(end.node);
    let count = match end.node {
        NodeRef::Processor(_) => usize::from(topology.slices),
        NodeRef::Chip(_) => PORTS,
    };
    let exists = match end.node {
        NodeRef::Processor(p) => (p as usize) < topology.processors.len(),
        NodeRef::Chip(c) => (c as usize) < topology.chips.len(),
    };
    if !exists {
        let message = format!("link {link} ends at a nonexistent node");
        mistakes.push(K::UnknownNode.at(location, message));
    } else if usize::from(end.port) >= count {
        let help = match end.node {
            NodeRef::Processor(_) => {
                "a processor has one port per slice: raise `slices`, or use a port below the \
                 number of slices"
            }
            NodeRef::Chip(_) => "a chip has ports 0 to 63",
        };
        let message = format!("{name} has no port {}", end.port);
        mistakes.push(K::PortOutOfRange.at(location, message).help(help));
    } else if let Some(first) = used.claim(end, joined) {
        // The remedy scans every link, so it is computed lazily.
        mistakes.add(|| {
            K::PortUsedTwice
                .at(
                    location,
                    format!("port {} of {name} has more than one link", end.port),
                )
                .again(Location::Link(first))
                .help(free_port(topology, end))
        });
    }
}

fn without_router(topology: &FoldedClos, link: u32, end: End) -> Option<Mistake> {
    let NodeRef::Chip(chip) = end.node else {
        return None;
    };
    let chip = topology.chips.get(chip as usize)?;
    let orphan = usize::from(end.port) < PORTS && topology.rank_of(end) == 0;
    orphan.then(|| {
        K::PortWithoutRouter
            .at(
                Location::Link(link),
                format!(
                    "port {} of {} is not assigned to a virtual router",
                    end.port, chip.name
                ),
            )
            .help("add the port to the `ports` of a router on this chip")
    })
}

fn free_port(topology: &FoldedClos, end: End) -> String {
    let NodeRef::Chip(c) = end.node else {
        return String::from("a processor has one link per slice: remove one of the links");
    };
    let chip = &topology.chips[c as usize];
    let all = match chip.routers.iter().find(|r| r.ports.contains(end.port)) {
        Some(router) => router.ports,
        None => PortSet::ALL,
    };
    let used: PortSet = ends_of(&topology.links, end.node)
        .map(|(_, end, _)| end.port)
        .collect();
    match (all - used).iter().next() {
        Some(port) => format!("move one of the links to a free port, such as {port}"),
        None => String::from("remove one of the links: the router has no free port"),
    }
}

/// The mistake of a link between the two ends, if any.
fn neighbours(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    index: u32,
    link: &Link,
) -> Option<Mistake> {
    let location = Location::Link(index);
    let (a, b) = (link.a, link.b);
    match (a.node, b.node) {
        (NodeRef::Processor(_), NodeRef::Processor(_)) => {
            let help = "connect ports of a processor to rank-1 routers (BlackWidow sec. 2.2)";
            let message = "two processors cannot be connected directly";
            Some(K::BadLink.at(location, message).help(help))
        }
        (NodeRef::Processor(p), NodeRef::Chip(_)) => injection(topology, wiring, location, p, a, b),
        (NodeRef::Chip(_), NodeRef::Processor(p)) => injection(topology, wiring, location, p, b, a),
        (NodeRef::Chip(_), NodeRef::Chip(_)) => between_routers(topology, wiring, location, a, b),
    }
}

fn injection(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    location: Location,
    processor: u32,
    nic: End,
    end: End,
) -> Option<Mistake> {
    let router = wiring.router(topology, wiring.router_at(end)?);
    let processor = &topology.processors[processor as usize];
    let (name, number) = (&processor.name, processor.number);
    let VirtualRouter {
        name: at,
        rank,
        slice,
        subtree,
        ..
    } = router;
    let (port, (first, last)) = (nic.port, range_of_subtree(*subtree));
    let (kind, message, help) = if *rank != 1 {
        let message = format!("{name} is connected to {at}, a router of rank {rank}");
        let help = "connect processors to rank-1 routers (BlackWidow sec. 2.2)";
        (K::BadLink, message, help)
    } else if *slice != port {
        let message = format!("port {port} of {name} is connected to slice {slice} (router {at})");
        let help = "connect port s of a processor to slice s: slices are separate networks";
        (K::SliceInconsistent, message, help)
    } else if !subtree.contains(number) {
        let message = format!(
            "{name} has number {number}, but is connected to {at} with subtree {first}-{last}"
        );
        let help = "change the number, the subtree of the router, or the link";
        (K::BadSubtree, message, help)
    } else {
        return None;
    };
    Some(kind.at(location, message).help(help))
}

fn between_routers(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    location: Location,
    a: End,
    b: End,
) -> Option<Mistake> {
    let (ra, rb) = (wiring.router_at(a)?, wiring.router_at(b)?);
    let (x, y) = (wiring.router(topology, ra), wiring.router(topology, rb));
    let mistake = |kind: K, message: String, help| Some(kind.at(location, message).help(help));
    if ra == rb {
        return mistake(
            K::BadLink,
            format!("both ends are at router {}", x.name),
            "a link connects two routers, or a processor and a router",
        );
    }
    if x.slice != y.slice {
        return mistake(
            K::SliceInconsistent,
            format!(
                "{} is in slice {}, {} in slice {}",
                x.name, x.slice, y.name, y.slice
            ),
            "connect only routers of the same slice: slices are separate networks",
        );
    }
    if x.rank.abs_diff(y.rank) > 1 {
        return mistake(
            K::BadLink,
            format!("{} has rank {}, {} rank {}", x.name, x.rank, y.name, y.rank),
            "connect routers of equal or adjacent ranks (BlackWidow sec. 5)",
        );
    }
    let covers = |outer: Subtree, inner: Subtree| {
        outer.contains(inner.location) && outer.mask & inner.mask == inner.mask
    };
    let (lower, upper) = if x.rank <= y.rank { (x, y) } else { (y, x) };
    let ((f1, l1), (f2, l2)) = (
        range_of_subtree(lower.subtree),
        range_of_subtree(upper.subtree),
    );
    if lower.rank == upper.rank {
        let overlap = covers(x.subtree, y.subtree) || covers(y.subtree, x.subtree);
        let message = format!(
            "{} and {} are peers, but their subtrees {f1}-{l1} and {f2}-{l2} overlap",
            lower.name, upper.name
        );
        let help = "sidelinks connect peers with disjoint sets of processors";
        return mistake(K::BadSubtree, message, help).filter(|_| overlap);
    }
    if !covers(upper.subtree, lower.subtree) {
        return mistake(
            K::BadSubtree,
            format!(
                "the subtree {f1}-{l1} of {} is not contained in the subtree {f2}-{l2} of {}",
                lower.name, upper.name
            ),
            "the subtree of a router must contain those of all routers below it",
        );
    }
    None
}

fn injections(topology: &FoldedClos, wiring: &ClosWiring, mistakes: &mut Mistakes) {
    if topology.processors.is_empty() {
        mistakes.push(
            K::BadValue
                .at(Location::Network, "the network has no processors")
                .help("list at least two under [processors]"),
        );
    }
    for p in 0..topology.processors.len() as u32 {
        for slice in 0..topology.slices.min(MAX_SLICES) {
            if wiring.injection_link(p, slice).is_none() {
                let name = &topology.processors[p as usize].name;
                mistakes.push(
                    K::SliceInconsistent
                        .at(
                            Location::Processor(p),
                            format!("{name} has no link to slice {slice}"),
                        )
                        .help(format!(
                            "add a link from \"{name}:{slice}\" to a rank-1 router"
                        )),
                );
            }
        }
    }
}
