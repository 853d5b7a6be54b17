//! Tables for terminals.

use core::fmt::Write as _;

use super::{counted, headline};
use crate::router::yarc::registers::{PortKind, Subtree};
use crate::topology::computed::ENTIRE_NETWORK;
use crate::topology::model::{
    Clock, Profile, Topology, VirtualRouter, is_aligned, range_of_subtree, rate_text,
};
use crate::topology::ports::PortSet;
use crate::topology::wiring::Wiring;

/// Routers and links as tables of at most `rows` rows each; what is left out is counted.
pub fn table(topology: &Topology, rows: usize) -> String {
    let wiring = Wiring::new(topology);
    let mut out = String::new();
    // Writing into a String never fails.
    let _ = writeln!(out, "{}", headline(topology, &wiring));
    let _ = writeln!(out, "{}\n", settings(topology));
    ranks(&mut out, topology, &wiring);
    routers(&mut out, topology, &wiring, rows);
    links(&mut out, topology, rows);
    out
}

fn settings(topology: &Topology) -> String {
    let settings = &topology.settings;
    let profile = match settings.profile {
        Profile::Live => "live",
        Profile::Paper => "paper",
    };
    let clock = match settings.clock {
        Clock::FreeRunning => String::from("free-running clock"),
        Clock::Paced { dilation } => format!("clock paced 1:{dilation}"),
    };
    format!(
        "{profile} profile, {clock}, {} Gb/s per lane, {} outstanding requests per processor",
        rate_text(settings.rate),
        settings.outstanding
    )
}

/// Columns as wide as their widest cell.
pub(in crate::topology) fn columns(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    for row in core::iter::once(&head).chain(rows) {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"))
            .collect();
        let _ = writeln!(out, "{}", cells.join("  ").trim_end());
    }
}

pub(in crate::topology) fn left_out(out: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        let _ = writeln!(out, "... and {} more", counted(all - shown, what));
    }
    let _ = writeln!(out);
}

/// One row per rank and slice count: what a large network looks like as a whole.
fn ranks(out: &mut String, topology: &Topology, wiring: &Wiring) {
    let mut rows = Vec::new();
    for rank in 1..=3 {
        let all =
            (0..wiring.router_count() as u32).filter(|&r| wiring.router(topology, r).rank == rank);
        let of = |kind| -> usize {
            all.clone()
                .map(|r| wiring.ports_of_kind(topology, r, kind).len() as usize)
                .sum()
        };
        let (down, side, up) = (of(PortKind::Down), of(PortKind::Side), of(PortKind::Up));
        let count = all.clone().count();
        if count > 0 {
            rows.push(vec![
                rank.to_string(),
                count.to_string(),
                down.to_string(),
                side.to_string(),
                up.to_string(),
            ]);
        }
    }
    columns(out, &["RANK", "ROUTERS", "DOWN", "SIDE", "UP"], &rows);
    let _ = writeln!(out);
}

fn subtree_text(subtree: Subtree) -> String {
    let (first, last) = range_of_subtree(subtree);
    if subtree == ENTIRE_NETWORK {
        String::from("all")
    } else if !is_aligned(subtree) {
        format!("{:#06x}/{:#06x}", subtree.location, subtree.mask)
    } else if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// The table of a router: `all by 32-35; 4-7 by 33`.
fn table_text(router: &VirtualRouter) -> String {
    let entries: Vec<String> = router
        .registers
        .table
        .iter()
        .filter(|entry| entry.ports != 0)
        .map(|entry| {
            format!(
                "{} by {}",
                subtree_text(entry.subtree),
                PortSet::from_bits(entry.ports)
            )
        })
        .collect();
    if entries.is_empty() {
        String::from("-")
    } else {
        entries.join("; ")
    }
}

fn routers(out: &mut String, topology: &Topology, wiring: &Wiring, most: usize) {
    let count = wiring.router_count();
    let rows: Vec<Vec<String>> = (0..count.min(most) as u32)
        .map(|number| {
            let router = wiring.router(topology, number);
            let chip = &topology.chips[wiring.chip_of(number) as usize].name;
            let ports = |kind| {
                let ports = wiring.ports_of_kind(topology, number, kind);
                if ports.is_empty() {
                    String::from("-")
                } else {
                    ports.to_string()
                }
            };
            vec![
                router.name.clone(),
                chip.clone(),
                router.rank.to_string(),
                router.slice.to_string(),
                subtree_text(router.subtree),
                ports(PortKind::Down),
                ports(PortKind::Side),
                ports(PortKind::Up),
                table_text(router),
            ]
        })
        .collect();
    let head = [
        "ROUTER",
        "CHIP",
        "RANK",
        "SLICE",
        "PROCESSORS",
        "DOWN",
        "SIDE",
        "UP",
        "UP OR OVER TO",
    ];
    columns(out, &head, &rows);
    left_out(out, count, rows.len(), "router");
}

fn links(out: &mut String, topology: &Topology, most: usize) {
    let rows: Vec<Vec<String>> = topology
        .links
        .iter()
        .take(most)
        .enumerate()
        .map(|(id, link)| {
            let kind = match topology.kind_of(link.a, link.b) {
                PortKind::Up => "up",
                PortKind::Side => "side",
                PortKind::Down => "down",
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
                topology.end_name(link.a),
                topology.end_name(link.b),
                kind.to_owned(),
                rate_text(link.rate).to_owned(),
                cable,
            ]
        })
        .collect();
    columns(out, &["LINK", "A", "B", "KIND", "GB/S", "CABLE"], &rows);
    left_out(out, topology.links.len(), rows.len(), "link");
}
