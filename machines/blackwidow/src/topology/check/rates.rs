//! Checks that each octant has a single rate (BlackWidow sec. 4.4).

use crate::route::registers::PORTS;
use crate::topology::model::{FoldedClos, rate_text};
use phitwire::link::LaneRate;
use phitwire::net::{Location, MistakeKind as K, Mistakes};
use phitwire::net::{Network as _, NodeRef};

/// Number of tiles that share three SerDes macros with 24 lanes. Only a figure shows which tiles
/// they are; here they are ports 8k to 8k+7.
pub(crate) const OCTANT: usize = 8;

pub(super) fn check(topology: &FoldedClos, mistakes: &mut Mistakes) {
    let octants = PORTS / OCTANT;
    let mut first: Vec<Option<(u32, LaneRate)>> = vec![None; topology.chips.len() * octants];
    for (l, link) in topology.links.iter().enumerate() {
        for end in [link.a, link.b] {
            let NodeRef::Chip(chip) = end.node else {
                continue;
            };
            let octant = usize::from(end.port) / OCTANT;
            let slot = first.get_mut(chip as usize * octants + octant);
            let Some(slot) = slot.filter(|_| octant < octants) else {
                continue;
            };
            match *slot {
                None => *slot = Some((l as u32, link.rate)),
                Some((other, rate)) if rate != link.rate => {
                    let name = topology.node_name(end.node);
                    let (from, to) = (octant * OCTANT, octant * OCTANT + OCTANT - 1);
                    mistakes.push(
                        K::UnequalRates.at(Location::Link(l as u32),
                            format!(
                                "ports {from}-{to} of {name} share their SerDes, but their links \
                                 run at {} and {} Gb/s per lane",
                                rate_text(rate),
                                rate_text(link.rate)
                            ),
                        )
                        .label(format!("{} Gb/s", rate_text(link.rate)))
                        .other(Location::Link(other), format!("{} Gb/s", rate_text(rate)))
                        .help(
                            "use one rate for all links of an octant, or move a link to another \
                             octant",
                        ),
                    );
                }
                Some(_) => {}
            }
        }
    }
}
