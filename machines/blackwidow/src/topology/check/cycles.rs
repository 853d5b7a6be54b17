//! Detects channels that wait for each other in a cycle, which means deadlock (BlackWidow sec. 7.3
//! and 7.7).

use crate::route::registers::PORTS;
use crate::topology::model::FoldedClos;
use crate::topology::wiring::{ClosWiring, Neighbour};
use phitwire::kit::cycles::{Channels, shortest_cycle};
use phitwire::net::{Location, Mistake};

/// The channels into the ports of all routers, `PORTS` for each. Both virtual channels take the
/// same paths and never wait for each other, so one graph covers both.
struct Inputs<'a> {
    wiring: &'a ClosWiring,
    waits_for: &'a [[u64; PORTS]],
}

impl Channels for Inputs<'_> {
    fn count(&self) -> usize {
        self.waits_for.len() * PORTS
    }

    fn for_each_next(&self, channel: usize, mut each: impl FnMut(usize)) {
        let (router, port) = (channel / PORTS, channel % PORTS);
        let mut out = self.waits_for[router][port];
        if out == 0 {
            return;
        }
        let chip = self.wiring.chip_of(router as u32);
        while let Some(port) = out.checked_ilog2() {
            out &= !(1 << port);
            if let Some(Neighbour::Router(peer, input)) = self.wiring.neighbour(chip, port as u8) {
                each(peer as usize * PORTS + usize::from(input));
            }
        }
    }
}

pub(super) fn check(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    waits_for: &[[u64; PORTS]],
) -> Option<Mistake> {
    let channels: Vec<(u32, u8)> = shortest_cycle(&Inputs { wiring, waits_for })?
        .into_iter()
        .map(|channel| ((channel / PORTS) as u32, (channel % PORTS) as u8))
        .collect();
    let names: Vec<String> = channels
        .iter()
        .map(|&(router, port)| topology.port_name(wiring, router, port))
        .collect();
    let (chip, router) = wiring.place_of(channels[0].0);
    let location =
        named_entry(topology, wiring, &channels).unwrap_or(Location::Router(chip, router));
    Some(
        Mistake::dependency_cycle(location, &names)
            .label("part of the cycle")
            .help(
                "send packets up or over on one side only: a table entry that leads back towards \
                 the source of packets closes the cycle",
            ),
    )
}

/// The table entry of the cycle's routers that was added last.
fn named_entry(
    topology: &FoldedClos,
    wiring: &ClosWiring,
    channels: &[(u32, u8)],
) -> Option<Location> {
    let highest = |&(number, _): &(u32, u8)| {
        let table = &wiring.router(topology, number).registers.table;
        let index = table.iter().rposition(|entry| entry.ports != 0)?;
        let (chip, router) = wiring.place_of(number);
        Some((index, Location::Entry(chip, router, index as u8)))
    };
    channels
        .iter()
        .filter_map(highest)
        .max_by_key(|(index, _)| *index)
        .map(|(_, location)| location)
}
