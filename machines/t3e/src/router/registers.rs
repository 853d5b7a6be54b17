//! Registers of a router, by name for its control socket and by address for maintenance packets
//! (T3E sec. 8, which names some of them and gives no address).
//!
//! | address | name | register |
//! |---|---|---|
//! | 0x0000 | `physical` | the physical "who am I": ordinates X, Y, Z in bits 3:0, 8:4, 12:9 |
//! | 0x0001 | `logical` | the logical "who am I": the processor's number |
//! | 0x0002 | `datelines` | directions whose rings have their dateline here, one bit each |
//! | 0x0003 | `plus_z` | the Z ordinate of the neighbour in +Z |
//! | 0x0004 | `escapes` | directions in which straight traffic leaves on VC0, one bit each |
//! | 0x0008 to 0x000d | `vc_table.N` | the table of virtual channels of direction N |
//! | 0x0040 to 0x005f | `barrier.N` | the tree register of barrier unit N |
//! | 0x0100 on | a counter's | counters, in reporting order; read only |
//! | 0x1000 to 0x121f | `table.N` | entries of the look-up table; all ones is none |

use phitwire_framing::t3e::barrier::{UNITS, UnitNumber};
use phitwire_framing::t3e::maintenance::MaintenanceCommand;
use phitwire_framing::t3e::tag::Coordinates;

use super::core::{RouterCore, T3eRouter};
use super::lookup::ENTRIES;
use crate::barrier::TreeRegister;
use crate::route::{Entry, NO_ROUTE};
use phitwire::chip::{CoreRegisters, RegisterError};
use phitwire::device::{DeviceError, RegisterInfo, RegisterName};

const VC_TABLES: u16 = 0x0008;
const BARRIERS: u16 = 0x0040;
const COUNTERS: u16 = 0x0100;
const TABLE: u16 = 0x1000;
const TABLE_END: u16 = TABLE + ENTRIES as u16;
/// Names by address of the registers that are not in an array.
const NAMES: [&str; 5] = ["physical", "logical", "datelines", "plus_z", "escapes"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    Physical,
    Logical,
    Datelines,
    PlusZ,
    Escapes,
    VcTable(usize),
    Barrier(UnitNumber),
    Counter(usize),
    Table(usize),
}

impl Register {
    fn of(address: u16) -> Option<Self> {
        Some(match address {
            0 => Self::Physical,
            1 => Self::Logical,
            2 => Self::Datelines,
            3 => Self::PlusZ,
            4 => Self::Escapes,
            VC_TABLES..0x000e => Self::VcTable(usize::from(address - VC_TABLES)),
            BARRIERS..0x0060 => Self::Barrier(UnitNumber::new((address - BARRIERS) as u8)?),
            COUNTERS..TABLE => Self::Counter(usize::from(address - COUNTERS)),
            TABLE..TABLE_END => Self::Table(usize::from(address - TABLE)),
            _ => return None,
        })
    }
}

/// The address of a register or counter, by name.
pub(super) fn address(core: &RouterCore, name: &str) -> Option<u16> {
    if let Some(at) = NAMES.iter().position(|own| *own == name) {
        return Some(at as u16);
    }
    if let Some((array, index)) = name.rsplit_once('.')
        && let Ok(index) = index.parse::<u16>()
    {
        let (first, count) = match array {
            "vc_table" => (VC_TABLES, 6),
            "barrier" => (BARRIERS, UNITS as u16),
            "table" => (TABLE, ENTRIES as u16),
            _ => return None,
        };
        return (index < count).then_some(first + index);
    }
    let (mut at, mut found) = (0, None);
    core.each_counter(&mut |counter, _| {
        if counter == name {
            found = Some(COUNTERS + at);
        }
        at += 1;
    });
    found
}

impl RouterCore {
    /// The value of the register at an address, if it exists.
    pub(super) fn read_register(&self, address: u16) -> Option<u64> {
        let route = &self.crossbar().registers;
        Some(match Register::of(address)? {
            Register::Physical => route.coordinates.bits().into(),
            Register::Logical => self.crossbar().processor.into(),
            Register::Datelines => route.datelines.into(),
            Register::PlusZ => route.plus_z.into(),
            Register::Escapes => route.escapes.into(),
            Register::VcTable(direction) => route.vc_tables[direction].into(),
            Register::Barrier(unit) => self.barriers().register(unit).bits().into(),
            Register::Counter(index) => {
                let (mut at, mut found) = (0, None);
                self.each_counter(&mut |_, value| {
                    if at == index {
                        found = Some(value);
                    }
                    at += 1;
                });
                found?
            }
            Register::Table(index) => {
                let entry = self.crossbar().table.entries().get(index)?;
                entry.map_or(NO_ROUTE, Entry::bits).into()
            }
        })
    }

    pub(super) fn write_register(&mut self, address: u16, value: u64) -> Result<(), RegisterError> {
        let register = Register::of(address).ok_or(RegisterError::Unknown)?;
        let bad = |takes| RegisterError::BadValue { takes };
        let below = |bits: u32, takes| match value >> bits {
            0 => Ok(value),
            _ => Err(bad(takes)),
        };
        if let Register::Barrier(unit) = register {
            let tree = "a tree register of 17 bits (children, parent, no signals of others)";
            let bits = below(TreeRegister::BITS, tree)?;
            let written = TreeRegister::from_bits(bits as u32).map_err(|_| bad(tree))?;
            self.barriers_mut().configure(unit, written);
            return Ok(());
        }
        let crossbar = self.crossbar_mut();
        let route = &mut crossbar.registers;
        match register {
            Register::Physical => {
                let bits = below(13, "ordinates X, Y, Z of 4, 5 and 4 bits")?;
                route.coordinates = Coordinates::from_bits(bits as u16);
            }
            Register::Logical => {
                crossbar.processor = below(12, "a processor number of 12 bits")? as u16;
            }
            Register::Datelines => {
                route.datelines = below(6, "a mask of six directions")? as u8;
            }
            Register::PlusZ => route.plus_z = below(4, "an ordinate of 4 bits")? as u8,
            Register::Escapes => {
                route.escapes = below(6, "a mask of six directions")? as u8;
            }
            Register::VcTable(direction) => {
                route.vc_tables[direction] = below(8, "a mask of eight ordinates")? as u8;
            }
            Register::Table(index) => {
                let takes = "an entry of 20 bits, or 0xffffffff for none";
                let entry = match value {
                    none if none == u64::from(NO_ROUTE) => None,
                    _ => {
                        let bits = below(32, takes)? as u32;
                        Some(Entry::from_bits(bits).ok_or(bad(takes))?)
                    }
                };
                if !crossbar.table.set(index, entry) {
                    return Err(RegisterError::Unknown);
                }
            }
            Register::Counter(_) => {
                let known = self.read_register(address).is_some();
                return Err(match known {
                    true => RegisterError::ReadOnly,
                    false => RegisterError::Unknown,
                });
            }
            Register::Barrier(_) => {}
        }
        self.route_again();
        Ok(())
    }
}

/// The reply to a request that failed with `error`.
pub(super) const fn refusal(error: &RegisterError) -> MaintenanceCommand {
    match error {
        RegisterError::Unknown => MaintenanceCommand::Unknown,
        RegisterError::ReadOnly => MaintenanceCommand::ReadOnly,
        RegisterError::BadValue { .. } => MaintenanceCommand::BadValue,
    }
}

/// Appended to the message about an unknown register.
const HINT: &str = "; the registers are physical, logical, datelines, plus_z, escapes, vc_table.0 \
                    to .5, barrier.0 to .31, table.N and all counters";

/// The address of a register that is given by name or address.
pub(super) fn address_of(
    core: &RouterCore,
    register: RegisterName<'_>,
) -> Result<u16, DeviceError> {
    let found = match register {
        RegisterName::Address(address) => Some(address),
        RegisterName::Name(name) => address(core, name),
    };
    found.ok_or_else(|| unknown(register))
}

fn unknown(register: RegisterName<'_>) -> DeviceError {
    DeviceError::UnknownRegister {
        register: register.to_string(),
        hint: HINT,
    }
}

impl CoreRegisters for RouterCore {
    fn read(chip: &T3eRouter, register: RegisterName<'_>) -> Result<u64, DeviceError> {
        let address = address_of(chip.core(), register)?;
        let value = chip.core().read_register(address);
        value.ok_or_else(|| unknown(register))
    }

    fn write(
        chip: &mut T3eRouter,
        register: RegisterName<'_>,
        value: u64,
    ) -> Result<(), DeviceError> {
        let address = address_of(chip.core(), register)?;
        let written = chip.core_mut().write_register(address, value);
        written.map_err(|why| DeviceError::RegisterRefused {
            register: register.to_string(),
            why: why.into(),
        })
    }

    fn list(chip: &T3eRouter) -> Vec<RegisterInfo> {
        register_list(chip.core())
    }
}

fn register_list(core: &RouterCore) -> Vec<RegisterInfo> {
    let own = [
        (
            13,
            "the physical \"who am I\": ordinates X, Y, Z in bits 3:0, 8:4, 12:9",
        ),
        (12, "the logical \"who am I\": the processor's number"),
        (6, "directions whose dateline is here, one bit each"),
        (4, "the Z ordinate of the neighbour in +Z"),
        (
            6,
            "directions in which packets going straight on leave on VC0, one bit each",
        ),
    ];
    let own = NAMES.into_iter().zip(own).zip(0..);
    let own = own.map(|((name, (bits, about)), address)| {
        RegisterInfo::new(name, true, bits, about).at(address)
    });
    let mut list: Vec<RegisterInfo> = own.collect();
    let mut several = |name: String, first, bits, about: &str| {
        list.push(RegisterInfo::new(name, true, bits, about).at(first));
    };
    let about = "virtual channels on entering a direction, one bit per ordinate";
    several("vc_table.{0..5}".into(), VC_TABLES, 8, about);
    let about = "the tree register of a barrier unit";
    several(
        format!("barrier.{{0..{}}}", UNITS - 1),
        BARRIERS,
        TreeRegister::BITS as u8,
        about,
    );
    if let Some(last) = core.crossbar().table.entries().len().checked_sub(1) {
        let about = "route to a processor, or to a group of four; 0xffffffff for none";
        several(format!("table.{{0..{last}}}"), TABLE, 32, about);
    }
    let mut address = COUNTERS;
    core.each_counter(&mut |name, _| {
        list.push(RegisterInfo::new(name, false, 64, "the counter shown by `stats`").at(address));
        address += 1;
    });
    list
}
