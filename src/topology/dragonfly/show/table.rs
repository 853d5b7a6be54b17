//! Tables for terminals.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use super::summary;
use crate::router::aries::registers::PortKind;
use crate::topology::dragonfly::inventory::Inventory;
use crate::topology::dragonfly::model::{Dragonfly, gbps};
use crate::topology::dragonfly::wiring::{DragonflyWiring, Far};
use crate::topology::model::{Clock, NodeRef, Profile};
use crate::topology::ports::PortSet;
use crate::topology::show::{columns, left_out};

/// Routers, bundles and links as tables of at most `rows` rows each; what is left out is counted.
pub fn table(network: &Dragonfly, rows: usize) -> String {
    let wiring = DragonflyWiring::new(network);
    let mut out = String::new();
    // Writing into a String never fails.
    let _ = writeln!(out, "{}\n{}\n", summary(network), settings(network));
    routers(&mut out, network, &wiring, rows);
    bundles(&mut out, network, rows);
    links(&mut out, network, rows);
    out
}

fn settings(network: &Dragonfly) -> String {
    let settings = &network.settings;
    let profile = match settings.profile {
        Profile::Live => "live",
        Profile::Paper => "paper",
    };
    let clock = match settings.clock {
        Clock::FreeRunning => String::from("free-running clock"),
        Clock::Paced { dilation } => format!("clock paced 1:{dilation}"),
    };
    let wires = match &network.generator {
        Some(g) => format!(
            "{} black links per peer, {} per pair of groups, {}",
            g.black_links, g.global_links, g.arrangement
        ),
        None => String::from("all links listed"),
    };
    format!(
        "{profile} profile, {clock}, {} and {} Gb/s per lane, {wires}",
        gbps(settings.lane_rate),
        gbps(settings.global_lane_rate)
    )
}

fn routers(out: &mut String, network: &Dragonfly, wiring: &DragonflyWiring, most: usize) {
    let count = network.routers().count();
    let rows: Vec<Vec<String>> = network
        .routers()
        .take(most)
        .map(|router| {
            let kinds = wiring.kinds(router);
            let ports = |kind| {
                let all = (0_u8..).zip(&kinds).filter(|(_, k)| **k == Some(kind));
                let set = all.fold(PortSet::EMPTY, |set, (port, _)| set.with(port));
                match set.is_empty() {
                    true => String::from("-"),
                    false => set.to_string(),
                }
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
            vec![
                network.shape.router_name(router),
                nics.collect::<Vec<_>>().join(" "),
                ports(PortKind::Green),
                ports(PortKind::Black),
                ports(PortKind::Blue),
                groups.join(", "),
            ]
        })
        .collect();
    columns(
        out,
        &["ROUTER", "NICS", "GREEN", "BLACK", "BLUE", "TO GROUPS"],
        &rows,
    );
    left_out(out, count, rows.len(), "router");
}

fn bundles(out: &mut String, network: &Dragonfly, most: usize) {
    let mut bundles = BTreeMap::<(u16, u16), u32>::new();
    for (&(a, b), &(kind, links)) in &super::joined(network) {
        if kind == PortKind::Blue {
            let (a, b) = (network.shape.group_of(a), network.shape.group_of(b));
            *bundles.entry((a.min(b), a.max(b))).or_default() += links;
        }
    }
    if bundles.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = bundles
        .iter()
        .take(most)
        .map(|((a, b), links)| vec![format!("g{a}"), format!("g{b}"), links.to_string()])
        .collect();
    columns(out, &["GROUP", "GROUP", "LINKS"], &rows);
    left_out(out, bundles.len(), rows.len(), "bundle");
}

fn links(out: &mut String, network: &Dragonfly, most: usize) {
    let rows: Vec<Vec<String>> = network
        .links
        .iter()
        .take(most)
        .enumerate()
        .map(|(id, link)| {
            let kind = match network.kind(link) {
                Some(PortKind::Processor) => "nic",
                Some(PortKind::Green) => "green",
                Some(PortKind::Black) => "black",
                Some(PortKind::Blue) => "blue",
                None => "?",
            };
            let cable = match link.cable.is_identity() {
                true => String::from("straight"),
                false => format!(
                    "lanes {:?}, inverted {:?}",
                    link.cable.order(),
                    link.cable.invert()
                ),
            };
            vec![
                id.to_string(),
                network.end_name(link.a),
                network.end_name(link.b),
                kind.to_owned(),
                cable,
            ]
        })
        .collect();
    columns(out, &["LINK", "A", "B", "KIND", "CABLE"], &rows);
    left_out(out, network.links.len(), rows.len(), "link");
}

/// Devices, cables and bandwidths, per group, per node and in all (white paper, tables 1 to 3), and what the paper's
/// configuration rules would have otherwise.
pub fn inventory(network: &Dragonfly) -> String {
    let counts = network.inventory();
    let mut out = String::new();
    let _ = writeln!(out, "{}\n", summary(network));
    let (groups, nodes) = (counts.groups.max(1) as f64, counts.nodes.max(1) as f64);
    let row = |what: &str, count: u64| {
        let number = |n: f64| {
            format!("{:.4}", n)
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        };
        let count = count as f64;
        vec![
            what.to_owned(),
            number(count),
            number(count / groups),
            number(count / nodes),
        ]
    };
    let rows = [
        row("Aries devices", counts.devices),
        row("nodes", counts.nodes),
        row("rank-1 links (green)", counts.green_links),
        row("rank-2 links (black)", counts.black_links),
        row("rank-3 links (blue)", counts.blue_links),
        row("9X copper cables", counts.copper_cables),
        row("12X active optical cables", counts.optical_cables),
    ];
    columns(
        &mut out,
        &["COMPONENT", "TOTAL", "PER GROUP", "PER NODE"],
        &rows,
    );
    let _ = writeln!(out);
    bandwidths(&mut out, &counts);
    let absent = network.shape.routers() - network.routers().count();
    if absent > 0 {
        let first = network.shape.router_name(network.absent[0]);
        let _ = writeln!(
            out,
            "\n{absent} routers are absent, {first} the first of them"
        );
    }
    let advice = network.advice();
    if !advice.is_empty() {
        let _ = writeln!(
            out,
            "\nThe paper's configuration rules would have it otherwise:"
        );
        for rule in advice {
            let _ = writeln!(out, "- {rule}");
        }
    }
    out
}

fn bandwidths(out: &mut String, counts: &Inventory) {
    let mut rows = vec![vec![
        String::from("link inside a group"),
        String::new(),
        format!("{:.2} per direction", counts.link_gbytes),
    ]];
    if counts.green_bisection > 0 {
        rows.push(vec![
            String::from("rank-1 bisection of a group"),
            format!("{} links", counts.green_bisection),
            format!(
                "{:.0}",
                2.0 * counts.green_bisection as f64 * counts.link_gbytes
            ),
        ]);
    }
    if counts.black_bisection > 0 {
        rows.push(vec![
            String::from("rank-2 bisection of a group"),
            format!("{} links", counts.black_bisection),
            format!(
                "{:.0}",
                2.0 * counts.black_bisection as f64 * counts.link_gbytes
            ),
        ]);
    }
    if counts.blue_links > 0 {
        let range = |(least, most): (u64, u64)| match least == most {
            true => least.to_string(),
            false => format!("{least} to {most}"),
        };
        let (cables, links) = (range(counts.bundle_cables), range(counts.bundle_links));
        let least = counts.bundle_links.0 as f64 * counts.global_link_gbytes;
        rows.push(vec![
            String::from("between two groups"),
            format!("cables: {cables}, links: {links}"),
            format!("{least:.2} per direction"),
        ]);
        let found = match counts.bisection.exact {
            true => "bisection of the groups",
            false => "bisection of the groups, at most",
        };
        rows.push(vec![
            found.to_owned(),
            format!(
                "cables: {}, links: {}",
                counts.bisection.cables, counts.bisection.links
            ),
            format!("{:.0}", counts.bisection_gbytes()),
        ]);
        rows.push(vec![
            String::from("global bandwidth per node"),
            String::new(),
            format!("{:.2} per direction", counts.global_gbytes_per_node()),
        ]);
    }
    columns(out, &["BANDWIDTH", "OF", "GB/S"], &rows);
}

/// The name of a router's network interfaces: `nic4-7`.
pub(super) fn nics_name(network: &Dragonfly, router: u32) -> String {
    let nics = u32::from(network.shape.nics);
    let first = router * nics;
    match nics {
        1 => network.node_name(NodeRef::Processor(first)),
        _ => format!("nic{first}-{}", first + nics - 1),
    }
}
