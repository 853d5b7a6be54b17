//! Tables for terminals.

use super::headline;
use crate::link::STANDARD;
use crate::route::registers::{PortKind, Subtree};
use crate::topology::computed::range_text;
use crate::topology::model::{FoldedClos, VirtualRouter, rate_text};
use crate::topology::wiring::ClosWiring;
use phitwire::net::PortSet;
use phitwire::net::show::{Table, links, or_dash};

/// Tables of routers and links with at most `rows` rows each; omitted rows are counted.
pub fn table(topology: &FoldedClos, rows: usize) -> String {
    let wiring = ClosWiring::new(topology);
    let mut out = format!(
        "{}\n{}\n\n",
        headline(topology, &wiring),
        settings(topology)
    );
    ranks(&mut out, topology, &wiring);
    routers(&mut out, topology, &wiring, rows);
    let own = ["KIND", "GB/S"];
    let all = (&topology.links[..], STANDARD.lanes);
    links(&mut out, topology, all, rows, own, |link| {
        let kind = match topology.kind_of(link.a, link.b) {
            PortKind::Up => "up",
            PortKind::Side => "side",
            PortKind::Down => "down",
        };
        [kind, rate_text(link.rate)]
    });
    out
}

fn settings(topology: &FoldedClos) -> String {
    let settings = &topology.settings;
    format!(
        "{}, {} Gb/s per lane, {} outstanding requests per processor",
        settings.headline(),
        rate_text(settings.own.rate),
        settings.outstanding
    )
}

/// One row per rank, as an overview of a large network.
fn ranks(out: &mut String, topology: &FoldedClos, wiring: &ClosWiring) {
    let mut table = Table::new(["RANK", "ROUTERS", "DOWN", "SIDE", "UP"]);
    for rank in 1..=3 {
        let all =
            (0..wiring.router_count() as u32).filter(|&r| wiring.router(topology, r).rank == rank);
        let of = |kind| -> u32 {
            let ports = |r| wiring.ports_of_kind(topology, r, kind).len();
            all.clone().map(ports).sum()
        };
        let (down, side, up) = (of(PortKind::Down), of(PortKind::Side), of(PortKind::Up));
        let count = all.clone().count();
        if count > 0 {
            table.row([&rank, &count, &down, &side, &up]);
        }
    }
    table.write_of(out, 0, "rank");
}

fn subtree_text(subtree: Subtree) -> String {
    range_text(subtree)
        .unwrap_or_else(|| format!("{:#06x}/{:#06x}", subtree.location, subtree.mask))
}

/// The routing table of a router, such as `all by 32-35; 4-7 by 33`.
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
    or_dash(entries.join("; "))
}

fn routers(out: &mut String, topology: &FoldedClos, wiring: &ClosWiring, most: usize) {
    let mut table = Table::new([
        "ROUTER",
        "CHIP",
        "RANK",
        "SLICE",
        "PROCESSORS",
        "DOWN",
        "SIDE",
        "UP",
        "UP OR OVER TO",
    ]);
    let count = wiring.router_count();
    for number in 0..count.min(most) as u32 {
        let router = wiring.router(topology, number);
        let ports = |kind| or_dash(wiring.ports_of_kind(topology, number, kind));
        table.row([
            &router.name,
            &topology.chips[wiring.chip_of(number) as usize].name,
            &router.rank,
            &router.slice,
            &subtree_text(router.subtree),
            &ports(PortKind::Down),
            &ports(PortKind::Side),
            &ports(PortKind::Up),
            &table_text(router),
        ]);
    }
    table.write_of(out, count, "router");
}
