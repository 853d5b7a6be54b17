//! The routing decision, which selects the outputs that a packet may take.

use phitwire_framing::t3e::direction::Direction;
use phitwire_framing::t3e::tag::Tag;

use super::registers::RouteRegisters;

/// How a packet arrived from another router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub direction: Direction,
    /// The deterministic channel on which the packet arrived, 0 or 1; `None` for the adaptive
    /// channel.
    pub vc: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Deliver,
    /// Discard the packet: no node on its line has the ordinate that it needs.
    Nowhere,
    Go {
        /// The deterministic choice: a direction, and VC0 or VC1 there.
        deterministic: (Direction, u8),
        /// The direction whose adaptive channel the packet may take instead.
        adaptive: Option<Direction>,
    },
}

/// Decides where a packet with `tag` may go from the router with `registers`. `arrival` is how it
/// arrived; for a packet from the router's processor, `Err` has the initial direction (T3E sec. 2,
/// 3.2 and 7).
#[inline(always)]
pub fn decide(
    registers: &RouteRegisters,
    tag: &Tag,
    arrival: Result<Arrival, Option<Direction>>,
) -> Decision {
    if let Err(Some(initial)) = arrival {
        // An initial hop uses VC0: see `docs/guide/src/deviations.md`.
        return Decision::Go {
            deterministic: (initial, 0),
            adaptive: None,
        };
    }
    let arrival = arrival.ok();
    let unsatisfied = tag.unsatisfied(registers.coordinates);
    let Some(direction) = unsatisfied.lowest() else {
        if !tag.final_hop {
            return Decision::Deliver;
        }
        return Decision::Go {
            deterministic: (
                Direction::MinusZ,
                vc(registers, tag, arrival, Direction::MinusZ),
            ),
            adaptive: None,
        };
    };
    // The packet arrived by its final hop, because a packet never passes the router where that hop
    // begins.
    let from_above = arrival.is_some_and(|arrival| arrival.direction == Direction::MinusZ);
    if tag.final_hop && from_above && tag.to.0[2] == registers.plus_z {
        let [x, y, _] = registers.coordinates.0;
        if tag.to.0[..2] == [x, y] {
            return Decision::Deliver;
        }
    }
    if registers.lacks(direction, tag.to) {
        return Decision::Nowhere;
    }
    let highest = unsatisfied.highest();
    let leads = |direction: &Direction| tag.adaptive && !registers.lacks(*direction, tag.to);
    Decision::Go {
        deterministic: (direction, vc(registers, tag, arrival, direction)),
        adaptive: highest.filter(leads),
    }
}

/// The deterministic channel on which a packet leaves in `direction`: the same channel if it goes
/// straight, VC1 once it leaves the dateline, and the table's channel where it enters the
/// direction.
#[inline]
fn vc(registers: &RouteRegisters, tag: &Tag, arrival: Option<Arrival>, direction: Direction) -> u8 {
    match arrival {
        Some(Arrival {
            direction: from,
            vc: Some(vc),
        }) if from == direction => match registers.is_escape(direction) {
            false => vc | u8::from(registers.is_dateline(direction)),
            true => 0,
        },
        _ => registers.entry_vc(direction, tag.to.0[direction.dimension()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire_framing::t3e::tag::Coordinates;

    fn at(coordinates: [u8; 3]) -> RouteRegisters {
        RouteRegisters {
            coordinates: Coordinates(coordinates),
            plus_z: coordinates[2] + 1,
            ..RouteRegisters::default()
        }
    }

    fn tag(to: [u8; 3], signs: u8) -> Tag {
        Tag {
            to: Coordinates(to),
            signs,
            ..Tag::default()
        }
    }

    fn came(direction: Direction, vc: Option<u8>) -> Result<Arrival, Option<Direction>> {
        Ok(Arrival { direction, vc })
    }

    #[test]
    fn the_lowest_direction_is_deterministic_and_the_highest_adaptive() {
        // To -x, +y, +z: "its lowest ordered direction is +y" (T3E sec. 7).
        let adaptive = Tag {
            adaptive: true,
            ..tag([0, 2, 2], 0b001)
        };
        let go = |adaptive| Decision::Go {
            deterministic: (Direction::PlusY, 0),
            adaptive,
        };
        let registers = at([1, 1, 1]);
        let decided = decide(&registers, &adaptive, Err(None));
        assert_eq!(decided, go(Some(Direction::MinusX)));
        let ordered = Tag {
            adaptive: false,
            ..adaptive
        };
        assert_eq!(decide(&registers, &ordered, Err(None)), go(None));
        let there = decide(&at([0, 2, 2]), &adaptive, came(Direction::PlusZ, None));
        assert_eq!(there, Decision::Deliver);
    }

    #[test]
    fn channels_change_at_the_dateline_and_come_from_the_table_on_entry() {
        let mut registers = at([0, 0, 0]);
        registers.datelines = 1 << Direction::PlusX as u8;
        registers.vc_tables[Direction::PlusX as usize] = 1 << 2;
        let of = |registers: &RouteRegisters, arrival| match decide(
            registers,
            &tag([2, 0, 0], 0),
            arrival,
        ) {
            Decision::Go { deterministic, .. } => deterministic.1,
            _ => unreachable!("two hops are left"),
        };
        assert_eq!(of(&registers, Err(None)), 1, "as in the table");
        assert_eq!(of(&registers, came(Direction::PlusY, Some(0))), 1);
        assert_eq!(
            of(&registers, came(Direction::PlusX, Some(0))),
            1,
            "the dateline"
        );
        registers.datelines = 0;
        assert_eq!(
            of(&registers, came(Direction::PlusX, Some(0))),
            0,
            "straight on"
        );
        assert_eq!(
            of(&registers, came(Direction::PlusX, None)),
            1,
            "the packet enters the ring again"
        );
    }

    #[test]
    fn a_packet_to_a_missing_ordinate_has_no_direction() {
        // The uppermost plane has no node above this one.
        let shape: crate::route::Shape = "4x4x2+2x2x1".parse().unwrap();
        let registers = shape.registers(shape.node(Coordinates([3, 3, 1])).unwrap());
        let came = came(Direction::PlusX, Some(0));
        for to in [[3, 3, 2], [3, 9, 1], [4, 0, 0]] {
            let decided = decide(&registers, &tag(to, 0), came);
            assert_eq!(decided, Decision::Nowhere, "{to:?}");
        }
        // On its path to such an ordinate, the packet does not adapt here.
        let adaptive = Tag {
            adaptive: true,
            ..tag([0, 0, 2], 0)
        };
        let go = Decision::Go {
            deterministic: (Direction::PlusX, 0),
            adaptive: None,
        };
        assert_eq!(decide(&registers, &adaptive, came), go);
        let beside = shape.registers(shape.node(Coordinates([0, 3, 1])).unwrap());
        let Decision::Go { deterministic, .. } = decide(&beside, &adaptive, came) else {
            panic!("hops are left");
        };
        assert_eq!(deterministic.0, Direction::PlusY);
    }

    #[test]
    fn initial_and_final_hops_come_before_and_after_all_others() {
        let initial = decide(
            &at([0, 0, 0]),
            &tag([3, 0, 0], 1),
            Err(Some(Direction::PlusZ)),
        );
        let hop = |direction| Decision::Go {
            deterministic: (direction, 0),
            adaptive: None,
        };
        assert_eq!(initial, hop(Direction::PlusZ));
        let last = Tag {
            final_hop: true,
            adaptive: true,
            ..tag([1, 1, 2], 0)
        };
        let above = decide(&at([1, 1, 2]), &last, came(Direction::PlusY, None));
        assert_eq!(above, hop(Direction::MinusZ));
        let arrived = decide(&at([1, 1, 1]), &last, came(Direction::MinusZ, Some(0)));
        assert_eq!(arrived, Decision::Deliver);
        // The packet passes on its way up.
        let passing = decide(&at([1, 1, 1]), &last, came(Direction::PlusY, None));
        assert!(matches!(
            passing,
            Decision::Go {
                deterministic: (Direction::PlusZ, 0),
                ..
            }
        ));
    }
}
