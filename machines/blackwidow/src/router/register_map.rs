//! Addresses and names of the registers, as used by maintenance packets and the control socket.
//!
//! An address has 16 bits, and every register up to 64. The BlackWidow paper prints no register
//! map; this one is phitwire's.
//!
//! | address | name | |
//! |---|---|---|
//! | `0x0000` | `chip.id` | read only: `0x59415243`, "YARC" |
//! | `0x0001` | `chip.forward_progress_ns` | forward-progress timeout, emulated nanoseconds |
//! | `0x0002` | `chip.ports_in_use` | read only: bit mask |
//! | `0x0003` | `chip.cycle` | read only |
//! | `0x0004` | `chip.discard_requests` | ports whose requests are discarded after a forward-progress timeout; writing can only clear bits |
//! | `0x0005` | `chip.discard_responses` | the same for responses |
//! | `0x0100 + n` | `counter.n` | read only: counter number n of [`RouterCounters`] |
//! | `0x4000 + 64 p + r` | `tileP.NAME` | register r of tile p, as follows |
//! | r = `0x00` | `kind` | 0 down, 1 up, 2 side |
//! | r = `0x01`, `0x02` | `root_location`, `root_mask` | root detect, 15 bits each |
//! | r = `0x03`, `0x04` | `down_shift`, `down_mask` | down route: 0 to 15, and 15 bits |
//! | r = `0x05` | `hash_shift` | first hash bit in use, 0 to 14 |
//! | r = `0x06` | `exit_mask` | ports of the virtual router |
//! | r = `0x08 + i` | `table.I.subtree` | entry i: location in bits 14:0, mask in bits 30:16 |
//! | r = `0x10 + i` | `table.I.ports` | entry i: bit mask of ports; 0 = not in use |
//! | r = `0x18 + i` | `port_map.I` | physical ports of logical ports 8i to 8i+7, one byte each, lowest first; `0xff` = none |

use super::core::Core;
use super::counters::RouterCounters;
use crate::route::is_supported_count;
use crate::route::registers::{NO_PORT, PORTS, PortKind, Subtree, TABLE_ENTRIES, TileRegisters};
use RegisterError::BadValue;
pub use phitwire::chip::RegisterError;
use phitwire::device::RegisterInfo;
use phitwire_framing::yarc::maintenance::RegisterStatus;

pub const CHIP_ID: u64 = 0x5941_5243;

/// The maintenance reply status for a failed write.
pub(super) const fn status_of(error: RegisterError) -> RegisterStatus {
    match error {
        RegisterError::Unknown => RegisterStatus::Unknown,
        RegisterError::ReadOnly => RegisterStatus::ReadOnly,
        RegisterError::BadValue { .. } => RegisterStatus::BadValue,
    }
}

/// Range of a 15-bit register, for messages.
const FIFTEEN_BITS: &str = "0 to 0x7fff";

const COUNTERS_AT: u16 = 0x0100;
const TILES_AT: u16 = 0x4000;
const TILES_END: u16 = 0x5000;
const TABLE_SUBTREE_AT: u16 = 0x08;
const TABLE_PORTS_AT: u16 = 0x10;
const PORT_MAP_AT: u16 = 0x18;
const PORT_MAP_END: u16 = 0x20;

const CHIP_NAMES: [&str; 6] = [
    "id",
    "forward_progress_ns",
    "ports_in_use",
    "cycle",
    "discard_requests",
    "discard_responses",
];
const TILE_NAMES: [&str; 7] = [
    "kind",
    "root_location",
    "root_mask",
    "down_shift",
    "down_mask",
    "hash_shift",
    "exit_mask",
];

/// Splits a tile address into tile and register.
fn in_tile(address: u16) -> (usize, u16) {
    (usize::from(address - TILES_AT) / 64, address % 64)
}

fn read_tile(tile: &TileRegisters, register: u16) -> Option<u64> {
    let i = usize::from(register % 8);
    Some(match register {
        0x00 => match tile.kind {
            PortKind::Down => 0,
            PortKind::Up => 1,
            PortKind::Side => 2,
        },
        0x01 => tile.root_detect.location.into(),
        0x02 => tile.root_detect.mask.into(),
        0x03 => tile.down_shift.into(),
        0x04 => tile.down_mask.into(),
        0x05 => tile.hash_shift.into(),
        0x06 => tile.exit_mask,
        TABLE_SUBTREE_AT..TABLE_PORTS_AT => {
            let subtree = tile.table[i].subtree;
            u64::from(subtree.location) | u64::from(subtree.mask) << 16
        }
        TABLE_PORTS_AT..PORT_MAP_AT => tile.table[i].ports,
        PORT_MAP_AT..PORT_MAP_END => {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&tile.port_map[8 * i..8 * i + 8]);
            u64::from_le_bytes(bytes)
        }
        _ => return None,
    })
}

fn write_tile(tile: &mut TileRegisters, register: u16, value: u64) -> Result<(), RegisterError> {
    let i = usize::from(register % 8);
    let up_to = |max: u64, takes| {
        let fits = value <= max;
        fits.then_some(value as u16).ok_or(BadValue { takes })
    };
    match register {
        0x00 => {
            tile.kind = match value {
                0 => PortKind::Down,
                1 => PortKind::Up,
                2 => PortKind::Side,
                _ => {
                    let takes = "0 (down), 1 (up) or 2 (side)";
                    return Err(BadValue { takes });
                }
            }
        }
        0x01 => tile.root_detect.location = up_to(0x7fff, FIFTEEN_BITS)?,
        0x02 => tile.root_detect.mask = up_to(0x7fff, FIFTEEN_BITS)?,
        0x03 => tile.down_shift = up_to(15, "0 to 15")? as u8,
        0x04 => tile.down_mask = up_to(0x7fff, FIFTEEN_BITS)?,
        0x05 => tile.hash_shift = up_to(14, "0 to 14")? as u8,
        0x06 => tile.exit_mask = value,
        TABLE_SUBTREE_AT..TABLE_PORTS_AT => {
            if value & !0x7fff_7fff != 0 {
                let takes = "a location in bits 14:0 and a mask in bits 30:16";
                return Err(BadValue { takes });
            }
            tile.table[i].subtree = Subtree {
                location: value as u16,
                mask: (value >> 16) as u16,
            };
        }
        TABLE_PORTS_AT..PORT_MAP_AT => {
            if value != 0 && !is_supported_count(value.count_ones()) {
                let takes = "masks of 0 to 8, 10, 12, 14, 16, 20, 24, 28 or 32 ports";
                return Err(BadValue { takes });
            }
            tile.table[i].ports = value;
        }
        PORT_MAP_AT..PORT_MAP_END => {
            let bytes = value.to_le_bytes();
            let fits = |port: &u8| usize::from(*port) < PORTS || *port == NO_PORT;
            if !bytes.iter().all(fits) {
                let takes = "ports 0 to 0x3f, or 0xff for none, in each byte";
                return Err(BadValue { takes });
            }
            tile.port_map[8 * i..8 * i + 8].copy_from_slice(&bytes);
        }
        _ => return Err(RegisterError::Unknown),
    }
    Ok(())
}

/// The address of the register `name`, such as `tile12.table.0.ports`.
pub fn register_address(name: &str) -> Option<u16> {
    let (block, register) = name.split_once('.')?;
    let position = |names: &[&str]| names.iter().position(|n| *n == register);
    let number = |text: &str, below: usize| {
        // A leading plus sign or zero would give a register several names.
        let plain =
            text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
        text.parse::<usize>().ok().filter(|n| plain && *n < below)
    };
    match block {
        "chip" => position(&CHIP_NAMES).map(|n| n as u16),
        "counter" => number(register, RouterCounters::COUNT).map(|n| COUNTERS_AT + n as u16),
        _ => {
            let tile = number(block.strip_prefix("tile")?, PORTS)? as u16;
            let offset = match register.split('.').collect::<Vec<_>>()[..] {
                [_] => position(&TILE_NAMES)? as u16,
                ["table", i, "subtree"] => TABLE_SUBTREE_AT + number(i, TABLE_ENTRIES)? as u16,
                ["table", i, "ports"] => TABLE_PORTS_AT + number(i, TABLE_ENTRIES)? as u16,
                ["port_map", i] => PORT_MAP_AT + number(i, PORTS / 8)? as u16,
                _ => return None,
            };
            Some(TILES_AT + tile * 64 + offset)
        }
    }
}

pub(super) fn register_list(tiles: &[Option<TileRegisters>]) -> Vec<RegisterInfo> {
    let used = (0..tiles.len()).filter(|&tile| tiles[tile].is_some());
    let used: Vec<usize> = used.collect();
    let counters = RouterCounters::COUNT.saturating_sub(1);
    let chip = [
        (false, 32, "0x59415243, \"YARC\""),
        (true, 64, "forward-progress timeout, emulated ns"),
        (false, 64, "ports in use, one bit each"),
        (false, 64, "cycles since start"),
        (
            true,
            64,
            "ports that discard requests; writing can only clear bits",
        ),
        (
            true,
            64,
            "ports that discard responses; writing can only clear bits",
        ),
    ];
    let of_chip = CHIP_NAMES.into_iter().zip(chip).zip(0..);
    let of_chip = of_chip.map(|((name, (writable, bits, about)), address)| {
        RegisterInfo::new(format!("chip.{name}"), writable, bits, about).at(address)
    });
    let mut list: Vec<RegisterInfo> = of_chip.collect();
    let about = "counters, in the order of `stats`";
    let counters = RegisterInfo::new(format!("counter.{{0..{counters}}}"), false, 64, about);
    list.push(counters.at(COUNTERS_AT));
    let Some(first) = used.first() else {
        return list;
    };
    let names = used.iter().map(usize::to_string).collect::<Vec<_>>();
    let names = names.join(",");
    let mut of_tile = |name: &str, offset, bits, about: &str| {
        let info = RegisterInfo::new(format!("tile{{{names}}}.{name}"), true, bits, about);
        list.push(info.at(TILES_AT + *first as u16 * 64 + offset));
    };
    let plain = [
        (
            2,
            "direction of the link: 0 down, 1 up, 2 sideways; each tile is 0x40 after the \
             previous one",
        ),
        (15, "root detect: location of the subtree below"),
        (15, "root detect: bits of the location to ignore"),
        (4, "down route: right shift of the destination"),
        (
            15,
            "down route: mask of the shifted destination, which gives the logical port",
        ),
        (4, "first hash bit to use"),
        (64, "ports of the virtual router, one bit each"),
    ];
    for ((name, (bits, about)), offset) in TILE_NAMES.into_iter().zip(plain).zip(0..) {
        of_tile(name, offset, bits, about);
    }
    let about = "routing table: location in bits 14:0, mask in bits 30:16";
    of_tile("table.{0..7}.subtree", TABLE_SUBTREE_AT, 31, about);
    of_tile(
        "table.{0..7}.ports",
        TABLE_PORTS_AT,
        64,
        "routing table: mask of ports",
    );
    let about = "ports of eight logical ports, one byte each; 0xff for none";
    of_tile("port_map.{0..7}", PORT_MAP_AT, 64, about);
    list
}

pub fn register_name(address: u16) -> Option<String> {
    Some(match address {
        0..COUNTERS_AT => format!("chip.{}", CHIP_NAMES.get(usize::from(address))?),
        COUNTERS_AT..TILES_AT => {
            let n = usize::from(address - COUNTERS_AT);
            RouterCounters::name(n).map(|_| format!("counter.{n}"))?
        }
        TILES_AT..TILES_END => {
            let ((tile, register), i) = (in_tile(address), address % 8);
            match register {
                TABLE_SUBTREE_AT..TABLE_PORTS_AT => format!("tile{tile}.table.{i}.subtree"),
                TABLE_PORTS_AT..PORT_MAP_AT => format!("tile{tile}.table.{i}.ports"),
                PORT_MAP_AT..PORT_MAP_END => format!("tile{tile}.port_map.{i}"),
                _ => format!("tile{tile}.{}", TILE_NAMES.get(usize::from(register))?),
            }
        }
        _ => return None,
    })
}

impl Core {
    /// The value of the register at `address`; `None` if it is unknown or its tile is not in use.
    pub fn read_register(&self, address: u16) -> Option<u64> {
        Some(match address {
            0x0000 => CHIP_ID,
            0x0001 => self.registers.forward_progress_ns,
            0x0002 => self.ports.in_use,
            0x0003 => self.cycle,
            0x0004 => self.columns.discarding[0],
            0x0005 => self.columns.discarding[1],
            COUNTERS_AT..TILES_AT => self.counters().nth((address - COUNTERS_AT).into())?,
            TILES_AT..TILES_END => {
                let (tile, register) = in_tile(address);
                read_tile(self.registers.tiles.get(tile)?.as_ref()?, register)?
            }
            _ => return None,
        })
    }

    /// Writes the register at `address`. Packets that are already routed keep their route.
    ///
    /// # Errors
    /// On a [`RegisterError`] nothing changes.
    pub fn write_register(&mut self, address: u16, value: u64) -> Result<(), RegisterError> {
        let refused = |takes| Err(BadValue { takes });
        match address {
            0x0001 if value == 0 => return refused("at least 1"),
            0x0001 => self.registers.forward_progress_ns = value,
            0x0004 | 0x0005 => {
                let discarding = &mut self.columns.discarding[usize::from(address - 0x0004)];
                if value & !*discarding != 0 {
                    return refused("the current value with bits cleared");
                }
                *discarding = value;
                return Ok(());
            }
            TILES_AT..TILES_END => {
                let (tile, register) = in_tile(address);
                let tile = self.registers.tiles.get_mut(tile).and_then(Option::as_mut);
                write_tile(tile.ok_or(RegisterError::Unknown)?, register, value)?;
            }
            _ if self.read_register(address).is_some() => return Err(RegisterError::ReadOnly),
            _ => return Err(RegisterError::Unknown),
        }
        self.compile_routes();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::registers::ChipRegisters;
    use crate::router::harness::down_tile;
    use crate::topology::BlackWidowSpec;

    fn core() -> Core {
        let tile = TileRegisters {
            kind: PortKind::Side,
            root_detect: Subtree {
                location: 0x60,
                mask: 0x1f,
            },
            down_mask: 0x1f,
            hash_shift: 5,
            ..down_tile()
        };
        Core::new(ChipRegisters {
            tiles: vec![None, Some(tile)],
            forward_progress_ns: 1_000,
        })
    }

    #[test]
    fn every_address_has_one_name_and_every_name_its_address() {
        let mut names = std::collections::HashSet::new();
        for address in 0..=u16::MAX {
            if let Some(name) = register_name(address) {
                assert_eq!(register_address(&name), Some(address), "{name}");
                assert!(names.insert(name));
            }
        }
        assert_eq!(names.len(), 6 + RouterCounters::COUNT + 64 * 31);
        for name in [
            "",
            "chip",
            "chip.",
            "tile64.kind",
            "tile01.kind",
            "tile1.table.8.ports",
            "tile+1.kind",
        ] {
            assert_eq!(register_address(name), None, "{name}");
        }
    }

    #[test]
    fn written_registers_are_read_back_and_no_other_changes() {
        let mut core = core();
        let before: Vec<_> = (0..=u16::MAX).map(|a| core.read_register(a)).collect();
        let values = [
            ("tile1.kind", 1),
            ("tile1.root_location", 0x7fe0),
            ("tile1.table.7.subtree", 0x001f_7fe0),
            ("tile1.table.7.ports", 0xf0),
            ("tile1.port_map.7", 0x3f01_0203_0405_0607),
            ("tile1.exit_mask", 0xffff),
            ("chip.forward_progress_ns", 77),
        ];
        for (name, value) in values {
            let address = register_address(name).unwrap();
            core.write_register(address, value).unwrap();
            for other in 0..=u16::MAX {
                let expected = if other == address {
                    Some(value)
                } else {
                    before[usize::from(other)]
                };
                assert_eq!(
                    core.read_register(other),
                    expected,
                    "{name} against {other:#x}"
                );
            }
            core.write_register(address, before[usize::from(address)].unwrap())
                .unwrap();
        }
    }

    /// A controller can write back every value that it reads, on any network.
    #[test]
    fn every_register_that_can_be_written_takes_the_value_that_it_has() {
        let shapes = [
            (2, 2, None::<&str>),
            (8, 4, None),
            (12, 3, None),
            (32, 4, Some("R2")),
            (64, 32, None),
            (600, 20, None),
            (2_048, 32, Some("R3")),
        ];
        for (processors, subtree, rank) in shapes {
            let spec = BlackWidowSpec {
                processors,
                subtree,
                rank: rank.map(|rank| rank.parse().expect("a rank")),
                ..BlackWidowSpec::default()
            };
            let mut topology = spec.generate().expect("a valid network");
            // The widest values that a topology file can contain.
            let widest = &mut topology.chips[0].routers[0].registers;
            (widest.down_shift, widest.down_mask, widest.hash_shift) = (15, 0x7fff, 14);
            // One chip of each kind is enough of a large network.
            for chip in (0..topology.chips.len()).step_by(1 + topology.chips.len() / 12) {
                let registers = topology.chip_registers(chip as u32).expect("a chip");
                let mut core = Core::new(registers);
                for address in 0..=u16::MAX {
                    let Some(value) = core.read_register(address) else {
                        continue;
                    };
                    match core.write_register(address, value) {
                        Ok(()) | Err(RegisterError::ReadOnly) => {}
                        Err(error) => panic!(
                            "{} of chip {chip} of {processors} processors is {value:#x}: {error}",
                            register_name(address).expect("a register")
                        ),
                    }
                    assert_eq!(core.read_register(address), Some(value));
                }
            }
        }
    }

    #[test]
    fn refusals_name_their_reason() {
        let mut core = core();
        let mut write = |name, value| core.write_register(register_address(name).unwrap(), value);
        assert_eq!(write("chip.id", 0), Err(RegisterError::ReadOnly));
        assert_eq!(write("counter.0", 0), Err(RegisterError::ReadOnly));
        assert_eq!(
            write("tile0.kind", 0),
            Err(RegisterError::Unknown),
            "tile 0 is not in use"
        );
        let bad = [
            ("tile1.kind", 3, "2 (side)"),
            ("tile1.root_mask", 0x8000, "0x7fff"),
            ("tile1.down_shift", 16, "15"),
            ("tile1.down_mask", 0x8000, "0x7fff"),
            ("tile1.hash_shift", 15, "14"),
            // Nine ports.
            ("tile1.table.0.ports", 0x1ff, "8, 10"),
            ("tile1.table.0.subtree", 0x8000, "14:0"),
            ("tile1.port_map.0", 64, "0x3f"),
            ("tile1.port_map.0", 0xfe, "0xff"),
            ("chip.discard_requests", 1, "cleared"),
            ("chip.forward_progress_ns", 0, "at least 1"),
        ];
        for (name, value, words) in bad {
            let error = write(name, value).expect_err(name);
            assert!(matches!(error, BadValue { .. }), "{name}: {error}");
            assert!(error.to_string().contains(words), "{name}: {error}");
        }
        assert_eq!(core.write_register(0xffff, 0), Err(RegisterError::Unknown));
    }
}
