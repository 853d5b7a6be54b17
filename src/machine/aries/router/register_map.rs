//! Names of the registers, as the maintenance system's commands know them.
//!
//! White paper, "Network Reliability": the daemons of the blade controllers read "memory mapped
//! registers (MMR) which indicate the health of the network". Their map is not public; the names
//! are ours, there are no addresses.
//!
//! | name | |
//! |---|---|
//! | `chip.id` | read only: `0x41524945`, "ARIE" |
//! | `chip.group`, `chip.router` | read only: place in the machine |
//! | `chip.cycle` | read only |
//! | `chip.live_ports` | read only: ports whose link is up, as a bit mask |
//! | `chip.flits_inside` | read only: flits in the tiles and in Netlink |
//! | `chip.quiesced` | 1: no packets are taken from the NICs |
//! | `chip.forward_progress_ns` | forward-progress time-out, emulated nanoseconds |
//! | `chip.black_links` | weight of "stay" in the black dimension, 1 to 15 |
//! | `chip.local_up_class` | class on the way up in the target's own group, 0 to 3 |
//! | `discard.V` | output tiles whose packets on virtual channel V are discarded after a forward-progress time-out; writing can only clear bits |
//! | `load.KIND` | read only: load that neighbours behind ports of a kind were told, 0 to 15 |
//! | `blue_class.target.C`, `blue_class.middle.C` | class after a blue link, by the class before, in the target's group and in a group in the middle |
//! | `root_class.C` | class from the root on |
//! | `bias.M.minimal.shift`, `.add`, `bias.M.non_minimal.shift`, `.add` | bias of adaptive mode M: 0 to 3, 0 to 63 |
//! | `portP.kind` | read only: 0 processor, 1 green, 2 black, 3 blue |
//! | `portP.committed` | read only: flits inside that will leave by the port |
//! | `table.KIND.NAME.I` | entry I of a route table for packets from ports of a kind: bit mask of ports. NAME: `local_minimal`, `local_non_minimal`, `global_minimal`, `global_non_minimal` |
//! | `counter.NAME` | read only: see [`AriesCounters`] |
//!
//! KIND is `processor`, `green`, `black` or `blue`.

use std::sync::Arc;

use super::counters::AriesCounters;
use super::grain::Items;
use super::tiles::Tiles;
use crate::chip::RegisterError;
use crate::machine::aries::route::registers::{
    AriesRegisters, PORTS, PortKind, PortMask, RouteTables, VCS,
};
use RegisterError::BadValue;

/// What `chip.id` reads as.
pub const CHIP_ID: u64 = 0x4152_4945;

/// A register, decoded from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Register {
    Chip(Chip),
    Discard(usize),
    Load(PortKind),
    BlueClass(usize, usize),
    RootClass(usize),
    /// Mode, whether non-minimal, whether the addend.
    Bias(usize, bool, bool),
    Kind(usize),
    Committed(usize),
    Table(PortKind, Table, usize),
    Counter(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chip {
    Id,
    Group,
    Router,
    Cycle,
    LivePorts,
    FlitsInside,
    Quiesced,
    ForwardProgress,
    BlackLinks,
    LocalUpClass,
}

/// One of the four route tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Table {
    global: bool,
    non_minimal: bool,
}

impl Table {
    fn named(name: &str) -> Option<Self> {
        let (global, non_minimal) = match name {
            "local_minimal" => (false, false),
            "local_non_minimal" => (false, true),
            "global_minimal" => (true, false),
            "global_non_minimal" => (true, true),
            _ => return None,
        };
        Some(Self {
            global,
            non_minimal,
        })
    }

    fn of(self, tables: &RouteTables) -> &Vec<PortMask> {
        match (self.global, self.non_minimal) {
            (false, false) => &tables.local_minimal,
            (false, true) => &tables.local_non_minimal,
            (true, false) => &tables.global_minimal,
            (true, true) => &tables.global_non_minimal,
        }
    }

    fn of_mut(self, tables: &mut RouteTables) -> &mut Vec<PortMask> {
        match (self.global, self.non_minimal) {
            (false, false) => &mut tables.local_minimal,
            (false, true) => &mut tables.local_non_minimal,
            (true, false) => &mut tables.global_minimal,
            (true, true) => &mut tables.global_non_minimal,
        }
    }
}

fn kind_of(name: &str) -> Option<PortKind> {
    Some(match name {
        "processor" => PortKind::Processor,
        "green" => PortKind::Green,
        "black" => PortKind::Black,
        "blue" => PortKind::Blue,
        _ => return None,
    })
}

/// A number below `bound`.
fn number(text: &str, bound: usize) -> Option<usize> {
    text.parse().ok().filter(|&n| n < bound)
}

impl Register {
    fn parse(name: &str) -> Option<Self> {
        let parts: Vec<&str> = name.split('.').collect();
        Some(match parts[..] {
            ["chip", name] => Self::Chip(match name {
                "id" => Chip::Id,
                "group" => Chip::Group,
                "router" => Chip::Router,
                "cycle" => Chip::Cycle,
                "live_ports" => Chip::LivePorts,
                "flits_inside" => Chip::FlitsInside,
                "quiesced" => Chip::Quiesced,
                "forward_progress_ns" => Chip::ForwardProgress,
                "black_links" => Chip::BlackLinks,
                "local_up_class" => Chip::LocalUpClass,
                _ => return None,
            }),
            ["discard", vc] => Self::Discard(number(vc, VCS)?),
            ["load", kind] => Self::Load(kind_of(kind)?),
            ["blue_class", "target", class] => Self::BlueClass(0, number(class, 4)?),
            ["blue_class", "middle", class] => Self::BlueClass(1, number(class, 4)?),
            ["root_class", class] => Self::RootClass(number(class, 4)?),
            ["bias", mode, of, what] => {
                let non_minimal = match of {
                    "minimal" => false,
                    "non_minimal" => true,
                    _ => return None,
                };
                let add = match what {
                    "shift" => false,
                    "add" => true,
                    _ => return None,
                };
                Self::Bias(number(mode, 4)?, non_minimal, add)
            }
            ["table", kind, table, index] => {
                let table = Table::named(table)?;
                Self::Table(kind_of(kind)?, table, index.parse().ok()?)
            }
            ["counter", name] => {
                let named = |&n: &usize| AriesCounters::name(n) == Some(name);
                Self::Counter((0..AriesCounters::COUNT).find(named)?)
            }
            [port, what] => {
                let port = number(port.strip_prefix("port")?, PORTS)?;
                match what {
                    "kind" => Self::Kind(port),
                    "committed" => Self::Committed(port),
                    _ => return None,
                }
            }
            _ => return None,
        })
    }
}

/// A value of at most `most`.
fn at_most(value: u64, most: u8, takes: &'static str) -> Result<u8, RegisterError> {
    u8::try_from(value)
        .ok()
        .filter(|&value| value <= most)
        .ok_or(BadValue { takes })
}

impl<I: Items> Tiles<I> {
    /// The register called `name`.
    pub fn get(&self, name: &str) -> Option<u64> {
        let registers = self.registers();
        Some(match Register::parse(name)? {
            Register::Chip(chip) => self.chip_register(chip),
            Register::Discard(vc) => self.discarding()[vc],
            Register::Load(kind) => self.told_load(kind).into(),
            Register::BlueClass(where_, class) => registers.blue_classes[where_][class].into(),
            Register::RootClass(class) => registers.root_classes[class].into(),
            Register::Bias(mode, non_minimal, add) => {
                let mode = registers.bias[mode];
                let bias = if non_minimal {
                    mode.non_minimal
                } else {
                    mode.minimal
                };
                if add { bias.add } else { bias.shift }.into()
            }
            Register::Kind(port) => *registers.ports.get(port)?.as_ref()? as u64,
            Register::Committed(port) => self.committed_flits(port).into(),
            Register::Table(kind, table, index) => {
                *table.of(&registers.tables[kind as usize]).get(index)?
            }
            Register::Counter(index) => self.counters().nth(index)?,
        })
    }

    fn chip_register(&self, chip: Chip) -> u64 {
        let registers = self.registers();
        match chip {
            Chip::Id => CHIP_ID,
            Chip::Group => registers.group.into(),
            Chip::Router => registers.router.into(),
            Chip::Cycle => self.cycle(),
            Chip::LivePorts => self.live,
            Chip::FlitsInside => self.flits_inside(),
            Chip::Quiesced => self.is_quiesced().into(),
            Chip::ForwardProgress => registers.forward_progress_ns,
            Chip::BlackLinks => registers.black_links.into(),
            Chip::LocalUpClass => registers.local_up_class.into(),
        }
    }

    /// Writes the register called `name`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), RegisterError> {
        const CLASS: &str = "0 to 3";
        match Register::parse(name).ok_or(RegisterError::Unknown)? {
            Register::Chip(chip) => self.set_chip(chip, value),
            Register::Discard(vc) => {
                if value & !self.discarding()[vc] != 0 {
                    return Err(BadValue {
                        takes: "what it holds with bits cleared",
                    });
                }
                self.stop_discarding(vc, value);
                Ok(())
            }
            Register::BlueClass(where_, class) => {
                let value = at_most(value, 3, CLASS)?;
                self.change(|r| r.blue_classes[where_][class] = value);
                Ok(())
            }
            Register::RootClass(class) => {
                let value = at_most(value, 3, CLASS)?;
                self.change(|r| r.root_classes[class] = value);
                Ok(())
            }
            Register::Bias(mode, non_minimal, add) => {
                let value = if add {
                    at_most(value, 63, "0 to 63")?
                } else {
                    at_most(value, 3, "0 to 3")?
                };
                self.change(|registers| {
                    let mode = &mut registers.bias[mode];
                    let bias = if non_minimal {
                        &mut mode.non_minimal
                    } else {
                        &mut mode.minimal
                    };
                    *if add { &mut bias.add } else { &mut bias.shift } = value;
                });
                Ok(())
            }
            Register::Table(kind, table, index) => {
                let entries = table.of(&self.registers().tables[kind as usize]).len();
                if index >= entries {
                    return Err(RegisterError::Unknown);
                }
                if value >> PORTS != 0 {
                    return Err(BadValue {
                        takes: "a mask of 44 ports",
                    });
                }
                self.change(|registers| {
                    let tables = Arc::make_mut(&mut registers.tables[kind as usize]);
                    table.of_mut(tables)[index] = value;
                });
                Ok(())
            }
            Register::Load(_)
            | Register::Kind(_)
            | Register::Committed(_)
            | Register::Counter(_) => Err(RegisterError::ReadOnly),
        }
    }

    fn set_chip(&mut self, chip: Chip, value: u64) -> Result<(), RegisterError> {
        match chip {
            Chip::Quiesced => match at_most(value, 1, "0 or 1")? {
                0 => self.release(),
                _ => self.quiesce(),
            },
            Chip::ForwardProgress => {
                if value == 0 {
                    return Err(BadValue {
                        takes: "1 or more nanoseconds",
                    });
                }
                self.change(|r| r.forward_progress_ns = value);
            }
            Chip::BlackLinks => {
                let takes = "1 to 15";
                let value = at_most(value, 15, takes)?;
                if value == 0 {
                    return Err(BadValue { takes });
                }
                self.change(|r| r.black_links = value);
            }
            Chip::LocalUpClass => {
                let value = at_most(value, 3, "0 to 3")?;
                self.change(|r| r.local_up_class = value);
            }
            Chip::Id
            | Chip::Group
            | Chip::Router
            | Chip::Cycle
            | Chip::LivePorts
            | Chip::FlitsInside => return Err(RegisterError::ReadOnly),
        }
        Ok(())
    }

    fn change(&mut self, act: impl FnOnce(&mut AriesRegisters)) {
        let mut registers = self.registers().clone();
        act(&mut registers);
        self.apply(registers);
    }
}

#[cfg(test)]
mod tests {
    use super::super::grain::Flits;
    use super::*;
    use crate::machine::aries::route::harness::Machine;

    #[test]
    fn registers_read_as_they_were_written() {
        let mut core = Tiles::<Flits>::new(Machine::SMALL.registers((1, 4)));
        for (name, old, new) in [
            ("chip.forward_progress_ns", 1_000_000, 77),
            ("chip.black_links", 2, 3),
            ("chip.local_up_class", 1, 2),
            ("chip.quiesced", 0, 1),
            ("blue_class.target.0", 3, 2),
            ("blue_class.middle.2", 2, 3),
            ("root_class.1", 2, 1),
            ("bias.1.non_minimal.add", 4, 63),
            ("bias.3.non_minimal.shift", 3, 2),
            ("bias.0.minimal.add", 0, 1),
            ("table.processor.local_minimal.3", 0, 0b101),
            ("discard.4", 0, 0),
        ] {
            let was = core.get(name).expect(name);
            assert!(was == old || name.starts_with("table"), "{name}: {was}");
            core.set(name, new).expect(name);
            assert_eq!(core.get(name), Some(new), "{name}");
        }
        assert!(core.is_quiesced());
        assert_eq!(core.registers().tables[0].local_minimal[3], 0b101);
        assert_eq!(core.get("chip.id"), Some(CHIP_ID));
        assert_eq!(core.get("chip.group"), Some(1));
        assert_eq!(core.get("port15.kind"), Some(2));
        assert_eq!(core.get("port40.committed"), Some(0));
        assert_eq!(core.get("load.green"), Some(0));
        assert_eq!(core.get("counter.flits_forwarded"), Some(0));
    }

    #[test]
    fn what_is_no_register_or_value_is_refused() {
        let mut core = Tiles::<Flits>::new(Machine::SMALL.registers((0, 0)));
        for name in [
            "",
            "chip",
            "chip.x",
            "port44.kind",
            "port14.kind",
            "bias.4.minimal.add",
            "table.red.local_minimal.0",
            "table.green.local_minimal.6",
            "table.green.local_minimal.-1",
            "counter.x",
            "discard.8",
            "root_class.4",
            "a.b.c.d.e",
        ] {
            assert_eq!(core.get(name), None, "{name}");
        }
        assert_eq!(core.set("chip.y", 0), Err(RegisterError::Unknown));
        assert_eq!(
            core.set("table.green.global_minimal.99", 0),
            Err(RegisterError::Unknown)
        );
        assert_eq!(core.set("chip.cycle", 0), Err(RegisterError::ReadOnly));
        for (name, value) in [
            ("chip.quiesced", 2),
            ("chip.black_links", 0),
            ("chip.forward_progress_ns", 0),
            ("root_class.0", 4),
            ("bias.0.minimal.shift", 4),
            ("discard.0", 1),
            ("table.green.global_minimal.1", 1 << 44),
        ] {
            assert!(
                matches!(core.set(name, value), Err(BadValue { .. })),
                "{name}"
            );
        }
    }
}
