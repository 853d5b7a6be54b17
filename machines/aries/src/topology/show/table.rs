//! Tables for terminals.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use super::{joined, summary};
use crate::link::STANDARD;
use crate::route::registers::PortKind;
use crate::topology::inventory::{Bisection, Inventory};
use crate::topology::model::{Dragonfly, gbps};
use crate::topology::wiring::{DragonflyWiring, Far};
use phitwire::net::show::{Table, links, or_dash};
use phitwire::net::{NodeRef, PortSet};

/// Tables of routers, bundles and links with at most `rows` rows each; omitted rows are counted.
pub fn table(network: &Dragonfly, rows: usize) -> String {
    let wiring = DragonflyWiring::new(network);
    let mut out = format!("{}\n{}\n\n", summary(network), settings(network));
    routers(&mut out, network, &wiring, rows);
    bundles(&mut out, network, rows);
    let all = (&network.links[..], STANDARD.lanes);
    links(&mut out, network, all, rows, ["KIND"], |link| {
        [match network.kind(link) {
            Some(PortKind::Processor) => "nic",
            Some(PortKind::Green) => "green",
            Some(PortKind::Black) => "black",
            Some(PortKind::Blue) => "blue",
            None => "?",
        }]
    });
    out
}

fn settings(network: &Dragonfly) -> String {
    let settings = &network.settings;
    let wires = match &network.generator {
        Some(g) => format!(
            "{} black links per peer, {} per pair of groups, {}",
            g.black_links, g.global_links, g.arrangement
        ),
        None => String::from("all links listed"),
    };
    let (rate, global) = (gbps(settings.own.rate), gbps(settings.own.global_rate));
    let headline = settings.headline();
    format!("{headline}, {rate} and {global} Gb/s per lane, {wires}")
}

fn routers(out: &mut String, network: &Dragonfly, wiring: &DragonflyWiring, most: usize) {
    let mut table = Table::new(["ROUTER", "NICS", "GREEN", "BLACK", "BLUE", "TO GROUPS"]);
    for router in network.routers().take(most) {
        let kinds = wiring.kinds(router);
        let ports = |kind| {
            let all = (0_u8..).zip(&kinds).filter(|(_, k)| **k == Some(kind));
            or_dash(all.fold(PortSet::EMPTY, |set, (port, _)| set.with(port)))
        };
        let mut groups = BTreeMap::<u16, u32>::new();
        for port in 0..kinds.len() as u8 {
            if let (Some(PortKind::Blue), Some(Far::Router(peer, _))) =
                (wiring.kind(router, port), wiring.far(router, port))
            {
                *groups.entry(network.shape.group_of(peer)).or_default() += 1;
            }
        }
        let groups: Vec<String> = groups
            .into_iter()
            .map(|(group, links)| match links {
                1 => group.to_string(),
                _ => format!("{group} x{links}"),
            })
            .collect();
        let first = router * u32::from(network.shape.nics);
        let nics = (first..first + u32::from(network.shape.nics)).map(|n| n.to_string());
        table.row([
            &network.shape.router_name(router),
            &nics.collect::<Vec<_>>().join(" "),
            &ports(PortKind::Green),
            &ports(PortKind::Black),
            &ports(PortKind::Blue),
            &groups.join(", "),
        ]);
    }
    table.write_of(out, network.routers().count(), "router");
}

fn bundles(out: &mut String, network: &Dragonfly, most: usize) {
    let mut bundles = BTreeMap::<(u16, u16), usize>::new();
    for (&(a, b), (kind, links)) in &joined(network) {
        if *kind == PortKind::Blue {
            let (a, b) = (network.shape.group_of(a), network.shape.group_of(b));
            *bundles.entry((a.min(b), a.max(b))).or_default() += links.len();
        }
    }
    if bundles.is_empty() {
        return;
    }
    let mut table = Table::new(["GROUP", "GROUP", "LINKS"]);
    for ((a, b), links) in bundles.iter().take(most) {
        table.row([&format_args!("g{a}"), &format_args!("g{b}"), links]);
    }
    table.write_of(out, bundles.len(), "bundle");
}

/// Devices, cables and bandwidths, per group, per node and in total (XC white paper, tables 1 to
/// 3), and violations of its configuration rules.
pub fn inventory(network: &Dragonfly) -> String {
    let counts = network.inventory();
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", summary(network));
    let (groups, nodes) = (counts.groups.max(1) as f64, counts.nodes.max(1) as f64);
    let number = |n: f64| {
        let digits = format!("{n:.4}");
        digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    let mut table = Table::new(["COMPONENT", "TOTAL", "PER GROUP", "PER NODE"]);
    for (what, count) in [
        ("Aries devices", counts.devices),
        ("nodes", counts.nodes),
        ("rank-1 links (green)", counts.green_links),
        ("rank-2 links (black)", counts.black_links),
        ("rank-3 links (blue)", counts.blue_links),
        ("9X copper cables", counts.copper_cables),
        ("12X active optical cables", counts.optical_cables),
    ] {
        let count = count as f64;
        let each = [count, count / groups, count / nodes].map(number);
        table.row([&what, &each[0], &each[1], &each[2]]);
    }
    table.write(&mut out);
    let _ = writeln!(out);
    bandwidths(&mut out, &counts);
    let absent = network.shape.routers() - network.routers().count();
    if absent > 0 {
        let first = network.shape.router_name(network.absent[0]);
        let _ = writeln!(out, "\n{absent} routers are absent; the first is {first}");
    }
    let advice = network.advice();
    if !advice.is_empty() {
        let _ = writeln!(
            out,
            "\nViolations of the configuration rules (Cray XC white paper):"
        );
        for rule in advice {
            let _ = writeln!(out, "- {rule}");
        }
    }
    out
}

fn bandwidths(out: &mut String, counts: &Inventory) {
    let mut table = Table::new(["BANDWIDTH", "OF", "GB/S"]);
    let within = counts.link_gbytes;
    let each = format!("{within:.2} per direction");
    table.row([&"link inside a group", &"", &each]);
    for (what, links) in [
        ("rank-1 bisection of a group", counts.green_bisection),
        ("rank-2 bisection of a group", counts.black_bisection),
    ] {
        if links > 0 {
            let both = 2.0 * links as f64 * within;
            table.row([
                &what,
                &format_args!("{links} links"),
                &format_args!("{both:.0}"),
            ]);
        }
    }
    if counts.blue_links > 0 {
        let range = |(least, most): (u64, u64)| match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        let (cables, links) = (range(counts.bundle_cables), range(counts.bundle_links));
        let least = counts.bundle_links.0 as f64 * counts.global_link_gbytes;
        table.row([
            &"between two groups",
            &format_args!("cables: {cables}, links: {links}"),
            &format_args!("{least:.2} per direction"),
        ]);
        let found = match counts.bisection.exact {
            true => "bisection of the groups",
            false => "bisection of the groups, at most",
        };
        let Bisection { cables, links, .. } = counts.bisection;
        table.row([
            &found,
            &format_args!("cables: {cables}, links: {links}"),
            &format_args!("{:.0}", counts.bisection_gbytes()),
        ]);
        let share = counts.global_gbytes_per_node();
        let each = format!("{share:.2} per direction");
        table.row([&"global bandwidth per node", &"", &each]);
    }
    table.write(out);
}

/// The range of a router's NICs: `nic4-7`.
pub(super) fn nics_name(network: &Dragonfly, router: u32) -> String {
    let nics = u32::from(network.shape.nics);
    let first = router * nics;
    match nics {
        1 => network.node_name(NodeRef::Processor(first)),
        _ => format!("nic{first}-{}", first + nics - 1),
    }
}
