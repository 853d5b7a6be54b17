//! Names of the registers in the maintenance system's commands.
//!
//! XC white paper, "Network Reliability": the daemons of the blade controllers read "memory mapped
//! registers (MMR) which indicate the health of the network". Their map is not published. The names
//! are phitwire's, and there are no addresses.
//!
//! | name | |
//! |---|---|
//! | `chip.id` | read only: `0x41524945`, "ARIE" |
//! | `chip.group`, `chip.router` | read only: position in the machine |
//! | `chip.cycle` | read only |
//! | `chip.live_ports` | read only: ports whose link is up, as a bit mask |
//! | `chip.flits_inside` | read only: flits in the tiles and in Netlink |
//! | `chip.quiesced` | 1: no packets are taken from the NICs |
//! | `chip.forward_progress_ns` | forward-progress timeout, emulated nanoseconds |
//! | `chip.black_links` | weight of "stay" in the black dimension, 1 to 15 |
//! | `chip.local_up_class` | class on the path up in the target's own group, 0 to 3 |
//! | `discard.V` | output tiles discarding on virtual channel V (see below); writing clears bits |
//! | `load.KIND` | read only: load reported to neighbours behind ports of a kind, 0 to 15 |
//! | `blue_class.target.C` | class after a blue link in the target's group, by the class before |
//! | `blue_class.middle.C` | the same in an intermediate group |
//! | `root_class.C` | class from the root on |
//! | `bias.M.growth` | added by adaptive mode M to non-minimal loads per step of a path: 0 to 63 |
//! | `bias.M.minimal.shift`, `.add` | bias of adaptive mode M: 0 to 3, 0 to 63 |
//! | `bias.M.non_minimal.shift`, `.add` | the same for non-minimal paths |
//! | `portP.kind` | read only: 0 processor, 1 green, 2 black, 3 blue |
//! | `portP.committed` | read only: flits inside that will leave by the port |
//! | `table.KIND.NAME.I` | route table entry I for packets from ports of a kind: port bit mask |
//! | `counter.NAME` | read only: see [`AriesCounters`] |
//!
//! Tiles discard after a forward-progress timeout; writing `discard.V` can only clear bits. KIND is
//! `processor`, `green`, `black` or `blue`; the NAME of a table is `local_minimal`,
//! `local_non_minimal`, `global_minimal` or `global_non_minimal`.

use std::sync::Arc;

use super::counters::AriesCounters;
use super::grain::Items;
use super::tiles::Tiles;
use crate::route::registers::{AriesRegisters, PORTS, PortKind, PortMask, VCS};
use RegisterError::BadValue;
use phitwire::chip::RegisterError;
use phitwire::device::RegisterInfo;

pub const CHIP_ID: u64 = 0x4152_4945;

const KINDS: [&str; 4] = ["processor", "green", "black", "blue"];

fn kind_of(name: &str) -> Option<PortKind> {
    let found = KINDS.iter().position(|kind| *kind == name)?;
    Some(PortKind::ALL[found])
}

fn number(text: &str, bound: usize) -> Option<usize> {
    text.parse().ok().filter(|&n| n < bound)
}

fn port_of(name: &str) -> Option<usize> {
    number(name.strip_prefix("port")?, PORTS)
}

fn at_most(value: u64, most: u8, takes: &'static str) -> Result<u8, RegisterError> {
    u8::try_from(value)
        .ok()
        .filter(|&value| value <= most)
        .ok_or(BadValue { takes })
}

/// A register of a few bits with an upper limit: its field, the limit, and a description of the
/// range.
fn small<'r>(
    registers: &'r mut AriesRegisters,
    name: &[&str],
) -> Option<(&'r mut u8, u8, &'static str)> {
    let (register, most) = match *name {
        ["chip", "local_up_class"] => (&mut registers.local_up_class, 3),
        ["blue_class", "target", class] => (&mut registers.blue_classes[0][number(class, 4)?], 3),
        ["blue_class", "middle", class] => (&mut registers.blue_classes[1][number(class, 4)?], 3),
        ["root_class", class] => (&mut registers.root_classes[number(class, 4)?], 3),
        ["bias", mode, "growth"] => (&mut registers.bias[number(mode, 4)?].growth, 63),
        ["bias", mode, of, what] => {
            let mode = &mut registers.bias[number(mode, 4)?];
            let bias = match of {
                "minimal" => &mut mode.minimal,
                "non_minimal" => &mut mode.non_minimal,
                _ => return None,
            };
            match what {
                "shift" => (&mut bias.shift, 3),
                "add" => (&mut bias.add, 63),
                _ => return None,
            }
        }
        _ => return None,
    };
    Some((register, most, if most == 3 { "0 to 3" } else { "0 to 63" }))
}

fn entry<'r>(registers: &'r mut AriesRegisters, name: [&str; 3]) -> Option<&'r mut PortMask> {
    let [kind, table, index] = name;
    let tables = Arc::make_mut(&mut registers.tables[kind_of(kind)? as usize]);
    let mut tables = tables.by_name_mut().into_iter();
    let (_, table) = tables.find(|(name, _)| *name == table)?;
    table.get_mut(index.parse::<usize>().ok()?)
}

pub(super) fn register_list(registers: &AriesRegisters) -> Vec<RegisterInfo> {
    let kinds = format!("{{{}}}", KINDS.join(","));
    let ports = (0..PORTS).filter(|&port| registers.ports.get(port).copied().flatten().is_some());
    let ports = ports
        .map(|port| format!("port{port}"))
        .collect::<Vec<_>>()
        .join(",");
    let counters = (0..AriesCounters::COUNT).filter_map(AriesCounters::name);
    let counters = counters.collect::<Vec<_>>().join(",");
    let read = |name: String, bits, about: &str| RegisterInfo::new(name, false, bits, about);
    let write = |name: String, bits, about: &str| RegisterInfo::new(name, true, bits, about);
    let mut list = vec![
        read("chip.id".into(), 32, "0x41524945, \"ARIE\""),
        read("chip.{group,router}".into(), 9, "group and router number"),
        read("chip.cycle".into(), 64, "cycles since start"),
        read(
            "chip.live_ports".into(),
            44,
            "ports with a live link, one bit each",
        ),
        read(
            "chip.ports_in_use".into(),
            44,
            "ports with a link, one bit each",
        ),
        read(
            "chip.flits_inside".into(),
            64,
            "flits in the tiles and in Netlink",
        ),
        read("chip.drained".into(), 1, "1: the router holds no packets"),
        write(
            "chip.quiesced".into(),
            1,
            "1: the router takes no packets from the NICs",
        ),
        write(
            "chip.forward_progress_ns".into(),
            64,
            "forward-progress timeout, emulated ns",
        ),
        write(
            "chip.black_links".into(),
            4,
            "weight of \"stay\" in the black dimension, 1 to 15",
        ),
        write(
            "chip.local_up_class".into(),
            2,
            "class on the way up within the destination group",
        ),
        write(
            "discard.{0..7}".into(),
            48,
            "by virtual channel: output tiles that discard flits; writing can only clear bits",
        ),
        read(
            format!("load.{kinds}"),
            4,
            "load reported to neighbours behind ports of this kind",
        ),
        write(
            "blue_class.{target,middle}.{0..3}".into(),
            2,
            "class after a blue link, by the previous class",
        ),
        write(
            "root_class.{0..3}".into(),
            2,
            "class from the root on, by the previous class",
        ),
        write(
            "bias.{0..3}.{minimal,non_minimal}.shift".into(),
            2,
            "adaptive mode: left shift of the load",
        ),
        write(
            "bias.{0..3}.{minimal,non_minimal}.add".into(),
            6,
            "adaptive mode: number added to the shifted load",
        ),
        write(
            "bias.{0..3}.growth".into(),
            6,
            "adaptive mode: number added to non-minimal loads for each hop",
        ),
    ];
    if !ports.is_empty() {
        list.push(read(
            format!("{{{ports}}}.kind"),
            2,
            "0 processor, 1 green, 2 black, 3 blue",
        ));
        list.push(read(
            format!("{{{ports}}}.committed"),
            32,
            "flits inside the router that will leave by this port",
        ));
    }
    for (name, table) in registers.tables[0].by_name() {
        if let Some(last) = table.len().checked_sub(1) {
            let name = format!("table.{kinds}.{name}.{{0..{last}}}");
            list.push(write(
                name,
                44,
                "route table for packets from ports of this kind: mask of ports",
            ));
        }
    }
    list.push(read(
        format!("counter.{{{counters}}}"),
        64,
        "the counter shown by `stats`",
    ));
    list
}

impl<I: Items> Tiles<I> {
    pub fn get(&self, name: &str) -> Option<u64> {
        let name: Vec<&str> = name.split('.').collect();
        let registers = self.registers();
        Some(match name[..] {
            ["chip", "id"] => CHIP_ID,
            ["chip", "group"] => registers.group.into(),
            ["chip", "router"] => registers.router.into(),
            ["chip", "cycle"] => self.cycle(),
            ["chip", "live_ports"] => self.live,
            ["chip", "flits_inside"] => self.flits_inside(),
            ["chip", "quiesced"] => self.is_quiesced().into(),
            ["chip", "forward_progress_ns"] => registers.forward_progress_ns,
            ["chip", "black_links"] => registers.black_links.into(),
            ["discard", vc] => self.discarding()[number(vc, VCS)?],
            ["load", kind] => self.reported_load(kind_of(kind)?).into(),
            ["table", kind, table, index] => *entry(&mut registers.clone(), [kind, table, index])?,
            ["counter", name] => {
                let named = |&n: &usize| AriesCounters::name(n) == Some(name);
                self.counters()
                    .nth((0..AriesCounters::COUNT).find(named)?)?
            }
            [port, "kind"] => *registers.ports.get(port_of(port)?)?.as_ref()? as u64,
            [port, "committed"] => self.committed_flits(port_of(port)?).into(),
            _ => (*small(&mut registers.clone(), &name)?.0).into(),
        })
    }

    /// Writes register `name`.
    ///
    /// # Errors
    /// See [`RegisterError`].
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), RegisterError> {
        let parts: Vec<&str> = name.split('.').collect();
        let refused = |takes| Err(BadValue { takes });
        let mut registers = self.registers().clone();
        match parts[..] {
            ["chip", "quiesced"] => {
                match at_most(value, 1, "0 or 1")? {
                    0 => self.release(),
                    _ => self.quiesce(),
                }
                return Ok(());
            }
            ["discard", vc] => {
                let vc = number(vc, VCS).ok_or(RegisterError::Unknown)?;
                if value & !self.discarding()[vc] != 0 {
                    return refused("the current value with bits cleared");
                }
                self.stop_discarding(vc, value);
                return Ok(());
            }
            ["chip", "forward_progress_ns"] if value == 0 => {
                return refused("at least 1 ns");
            }
            ["chip", "forward_progress_ns"] => registers.forward_progress_ns = value,
            ["chip", "black_links"] if value == 0 => return refused("1 to 15"),
            ["chip", "black_links"] => registers.black_links = at_most(value, 15, "1 to 15")?,
            ["table", kind, table, index] => {
                let entry = entry(&mut registers, [kind, table, index]);
                let entry = entry.ok_or(RegisterError::Unknown)?;
                if value >> PORTS != 0 {
                    return refused("a mask of 44 ports");
                }
                *entry = value;
            }
            // Unused ports have this register too.
            [port, "kind"] if port_of(port).is_some() => return Err(RegisterError::ReadOnly),
            _ => match small(&mut registers, &parts) {
                Some((register, most, takes)) => *register = at_most(value, most, takes)?,
                None if self.get(name).is_some() => return Err(RegisterError::ReadOnly),
                None => return Err(RegisterError::Unknown),
            },
        }
        self.apply(registers);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::grain::Flits;
    use super::*;
    use crate::route::harness::Machine;

    #[test]
    fn registers_read_as_they_were_written() {
        let mut core = Tiles::<Flits>::new(Machine::small().registers((1, 4)));
        for (name, old, new) in [
            ("chip.forward_progress_ns", 1_000_000, 77),
            ("chip.black_links", 2, 3),
            ("chip.local_up_class", 1, 2),
            ("chip.quiesced", 0, 1),
            ("blue_class.target.0", 3, 2),
            ("blue_class.middle.2", 2, 3),
            ("root_class.1", 2, 1),
            ("bias.2.non_minimal.add", 4, 63),
            ("bias.3.non_minimal.shift", 0, 2),
            ("bias.1.growth", 5, 63),
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
    fn invalid_registers_and_values_are_refused() {
        let mut core = Tiles::<Flits>::new(Machine::small().registers((0, 0)));
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
