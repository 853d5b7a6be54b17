//! Processors, chips and links of a generated network.

use phitwire_framing::carrier::lanes::Permutation;

use super::sizing::Plan;
use super::{BlackWidowSpec, Rank, SpecError, blank_registers};
use crate::route::registers::{PORTS, Subtree};
use crate::topology::model::{Chip, FoldedClos, Processor, VirtualRouter};
use phitwire::link::LaneRate;
use phitwire::net::{End, Link, PortSet};

/// Builds the network without its registers.
pub(super) fn build(
    spec: &BlackWidowSpec,
    plan: Plan,
    name: String,
) -> Result<FoldedClos, SpecError> {
    let topology = FoldedClos {
        name,
        slices: spec.slices,
        settings: spec.settings.clone(),
        processors: Vec::with_capacity(spec.processors as usize),
        chips: Vec::new(),
        links: Vec::new(),
    };
    let mut builder = Builder {
        spec,
        plan,
        topology,
    };
    builder.processors();
    for slice in 0..spec.slices {
        builder.slice(slice)?;
    }
    Ok(builder.topology)
}

struct Builder<'s> {
    spec: &'s BlackWidowSpec,
    plan: Plan,
    topology: FoldedClos,
}

/// A virtual router during wiring.
#[derive(Clone, Copy, Debug)]
struct Slot {
    chip: u32,
    first_down: u8,
    first_up: u8,
}

impl Slot {
    fn down(self, n: u32) -> End {
        End::chip(self.chip, self.first_down + n as u8)
    }

    fn up(self, n: u32) -> End {
        End::chip(self.chip, self.first_up + n as u8)
    }
}

impl Builder<'_> {
    fn processors(&mut self) {
        for index in 0..self.spec.processors {
            let number = self.plan.number(self.spec.subtree, index) as u16;
            self.topology.processors.push(Processor {
                name: format!("nic{number}"),
                number,
            });
        }
    }

    fn slice(&mut self, slice: u8) -> Result<(), SpecError> {
        let (plan, subtree) = (self.plan, self.spec.subtree);
        let side1 = if plan.rank == Rank::ALL[1] {
            plan.r1 - 1
        } else {
            1
        };
        let r1: Vec<Slot> = (0..plan.r1)
            .map(|i| {
                let range = (plan.first_of_r1(i), plan.stride);
                self.chip_of_routers(slice, 1, PORTS as u32, 1, range, plan.up1 * side1)[0]
            })
            .collect();
        let (rate, metres) = (self.spec.settings.own.rate, self.spec.settings.own.metres);
        for index in 0..self.spec.processors {
            let down = r1[(index / subtree) as usize].down(index % subtree);
            self.link(End::processor(index, slice), down, rate, metres);
        }
        if plan.rank == Rank::ALL[1] {
            self.sidelinks(&r1, plan.up1);
        }
        if plan.rank.level >= 2 {
            self.upper_ranks(slice, &r1)?;
        }
        Ok(())
    }

    fn upper_ranks(&mut self, slice: u8, r1: &[Slot]) -> Result<(), SpecError> {
        let (plan, radix, parallel) = (self.plan, self.spec.virtual_radix, self.spec.parallel);
        let up2 = match (plan.rank.level, plan.rank.side) {
            (2, side) => plan.up2 * if side { plan.r2 - 1 } else { 0 },
            _ => plan.up2,
        };
        // Indexed by subtree and router.
        let r2: Vec<Vec<Slot>> = (0..plan.r2)
            .map(|g| {
                let range = (plan.first_of_r2(g), plan.size_of_r2());
                self.chip_of_routers(slice, 2, radix, plan.v2, range, up2)
            })
            .collect();
        for (i, lower) in r1.iter().enumerate() {
            let (g, within) = (i / plan.group as usize, i as u32 % plan.group);
            for (v, upper) in r2[g].iter().enumerate() {
                for p in 0..parallel {
                    let up = lower.up(v as u32 * parallel + p);
                    self.router_link(up, upper.down(within * parallel + p));
                }
            }
        }
        if plan.rank.level == 2 {
            if plan.rank.side {
                for v in 0..plan.v2 as usize {
                    let peers: Vec<Slot> = r2.iter().map(|subtree| subtree[v]).collect();
                    self.sidelinks(&peers, plan.up2);
                }
            }
            return Ok(());
        }
        self.rank_3(slice, &r2)
    }

    /// Uplink `j` of router `v` of every rank-2 subtree leads to rank-3 router `(v, j)`.
    fn rank_3(&mut self, slice: u8, r2: &[Vec<Slot>]) -> Result<(), SpecError> {
        let (plan, radix) = (self.plan, self.spec.virtual_radix);
        let sides = if plan.rank.side {
            self.spec.taper[2].apply(plan.group3 / (plan.r3 - 1)) * (plan.r3 - 1)
        } else {
            0
        };
        if plan.group3 + sides > radix {
            let (down, up, kind) = (plan.group3, sides, "sidelinks");
            return Err(SpecError::TooManyPorts {
                rank: 3,
                down,
                up,
                kind,
                radix,
            });
        }
        let r3: Vec<Vec<Slot>> = (0..plan.r3)
            .map(|g| {
                let range = (g * plan.size_of_r3(), plan.size_of_r3());
                self.chip_of_routers(slice, 3, radix, plan.v2 * plan.up2, range, sides)
            })
            .collect();
        for (g, subtree) in r2.iter().enumerate() {
            let (top, within) = (g / plan.group3 as usize, g as u32 % plan.group3);
            for (v, lower) in subtree.iter().enumerate() {
                for j in 0..plan.up2 {
                    let upper = r3[top][v * plan.up2 as usize + j as usize];
                    self.router_link(lower.up(j), upper.down(within));
                }
            }
        }
        if plan.rank.side {
            for v in 0..(plan.v2 * plan.up2) as usize {
                let peers: Vec<Slot> = r3.iter().map(|subtree| subtree[v]).collect();
                self.sidelinks(&peers, sides / (plan.r3 - 1));
            }
        }
        Ok(())
    }

    /// Adds the chips for `count` routers of one subtree, and returns the routers. Downlinks start
    /// at a router's first port, uplinks and sidelinks at its middle, so that each kind fills
    /// separate octants if the radix permits it (BlackWidow sec. 4.4).
    fn chip_of_routers(
        &mut self,
        slice: u8,
        rank: u8,
        radix: u32,
        count: u32,
        (first, size): (u32, u32),
        ups: u32,
    ) -> Vec<Slot> {
        let middle = if ups <= radix - radix / 2 {
            radix / 2
        } else {
            radix - ups
        };
        let per_chip = PORTS as u32 / radix;
        let subtree = Subtree {
            location: first as u16,
            mask: (size - 1) as u16,
        };
        let mut slots = Vec::with_capacity(count as usize);
        for v in 0..count {
            let within = v % per_chip;
            if within == 0 {
                let name = self.chip_name(slice, rank);
                self.topology.chips.push(Chip {
                    name,
                    routers: Vec::new(),
                });
            }
            let chip = self.topology.chips.len() as u32 - 1;
            let base = (within * radix) as u8;
            let ports = PortSet::range(base, radix as u8);
            let node = self
                .topology
                .chips
                .last_mut()
                .expect("a chip was just added");
            let name = match per_chip {
                1 => node.name.clone(),
                _ => format!("{}{}", node.name, char::from(b'a' + within as u8)),
            };
            node.routers.push(VirtualRouter {
                name,
                rank,
                slice,
                ports,
                subtree,
                registers: blank_registers(),
            });
            slots.push(Slot {
                chip,
                first_down: base,
                first_up: base + middle as u8,
            });
        }
        slots
    }

    fn chip_name(&self, slice: u8, rank: u8) -> String {
        // Chips of one rank and slice are consecutive, so the last one has the highest number.
        let prefix = match self.spec.slices {
            1 => format!("r{rank}-"),
            _ => format!("s{slice}-r{rank}-"),
        };
        let last = self
            .topology
            .chips
            .last()
            .and_then(|c| c.name.strip_prefix(&prefix));
        let number = last
            .and_then(|n| n.parse::<u32>().ok())
            .map_or(0, |n| n + 1);
        format!("{prefix}{number}")
    }

    /// Adds `each` sidelinks between every two peers.
    fn sidelinks(&mut self, peers: &[Slot], each: u32) {
        for (i, a) in peers.iter().enumerate() {
            for (j, b) in peers.iter().enumerate().skip(i + 1) {
                for n in 0..each {
                    // Peer j is number j-1 among the peers of i, and i is number i among the peers
                    // of j.
                    self.router_link(a.up((j as u32 - 1) * each + n), b.up(i as u32 * each + n));
                }
            }
        }
    }

    fn router_link(&mut self, a: End, b: End) {
        let usual = &self.spec.settings.own;
        let rate = self.spec.router_rate.unwrap_or(usual.rate);
        let metres = self.spec.router_metres.or(usual.metres);
        self.link(a, b, rate, metres);
    }

    fn link(&mut self, a: End, b: End, rate: LaneRate, metres: Option<u16>) {
        self.topology.links.push(Link {
            a,
            b,
            rate,
            metres,
            cable: Permutation::IDENTITY,
        });
    }
}
