//! Registers that a description names itself.

use core::ops::Range;

use toml::Spanned;

use super::read::{location_and_mask, ports, subtree};
use crate::net::{Fields, PortSet, Section, Shown, Value};
use crate::router::yarc::registers::{PORTS, RouteEntry, Subtree, TABLE_ENTRIES};
use crate::topology::computed::NO_PORT;
use crate::topology::model::{FoldedClos, RouterRegisters};

/// Registers that the description names, to be put in the place of computed ones.
#[derive(Debug, Default)]
pub(super) struct Overrides(pub(super) Vec<(usize, usize, Override)>);

#[derive(Debug, Default)]
pub(super) struct Override {
    root_detect: Option<Subtree>,
    table: Vec<(u8, RouteEntry)>,
    down_shift: Option<u8>,
    down_mask: Option<u16>,
    port_map: Vec<(u8, u8)>,
    hash_shift: Option<u8>,
    exit_mask: Option<PortSet>,
}

impl Overrides {
    pub(super) fn apply(self, topology: &mut FoldedClos) {
        for (chip, router, named) in self.0 {
            named.apply(&mut topology.chips[chip].routers[router].registers);
        }
    }
}

impl Override {
    fn apply(self, registers: &mut RouterRegisters) {
        let Self {
            root_detect,
            table,
            down_shift,
            down_mask,
            port_map,
            hash_shift,
            exit_mask,
        } = self;
        registers.root_detect = root_detect.unwrap_or(registers.root_detect);
        for (index, entry) in table {
            registers.table[usize::from(index)] = entry;
        }
        registers.down_shift = down_shift.unwrap_or(registers.down_shift);
        registers.down_mask = down_mask.unwrap_or(registers.down_mask);
        for (logical, physical) in port_map {
            registers.port_map[usize::from(logical)] = physical;
        }
        registers.hash_shift = hash_shift.unwrap_or(registers.hash_shift);
        registers.exit_mask = exit_mask.unwrap_or(registers.exit_mask);
    }
}

/// Reads the register keys of a router, and where its table entries stand.
pub(super) fn named_registers(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    spans: &mut Vec<(u8, Range<usize>)>,
) -> Override {
    let mut named = Override {
        root_detect: section
            .take("root_detect")
            .and_then(|value| subtree(fields, value)),
        ..Override::default()
    };
    let mut number = |key, most: u64| {
        section
            .take(key)
            .and_then(|value| fields.integer(value, 0..=most))
    };
    named.down_shift = number("down_shift", 15).map(|n| n as u8);
    named.down_mask = number("down_mask", 0x7fff).map(|n| n as u16);
    named.hash_shift = number("hash_shift", 14).map(|n| n as u8);
    named.exit_mask = section
        .take("exit_mask")
        .and_then(|value| ports(fields, value));
    if let Some(value) = section.take("port_map")
        && let Some(map) = fields.table(value, "a port map")
    {
        for (key, value) in map.entries() {
            named.port_map.extend(port_map_entry(fields, key, value));
        }
    }
    if let Some(value) = section.take("table") {
        for section in fields.tables(value, "a table entry") {
            let span = section.span();
            if let Some((index, entry)) = table_entry(fields, section) {
                if named.table.iter().any(|(known, _)| *known == index) {
                    let help = "number the entries 0 to 7; the highest that matches wins";
                    fields.bad(span.clone(), format!("entry {index} stands twice"), help);
                }
                named.table.push((index, entry));
                spans.push((index, span));
            }
        }
    }
    named
}

fn port_map_entry(
    fields: &mut Fields,
    key: &Spanned<std::borrow::Cow<'_, str>>,
    value: Value<'_, '_>,
) -> Option<(u8, u8)> {
    let logical = key
        .get_ref()
        .parse::<u8>()
        .ok()
        .filter(|&l| usize::from(l) < PORTS);
    if logical.is_none() {
        let message = format!("`{}` is no logical port", Shown(key.get_ref()));
        fields.bad(key.span(), message, "write a number from 0 to 63");
    }
    let physical = if value.get_ref().as_str() == Some("none") {
        Some(u64::from(NO_PORT))
    } else {
        fields.integer(value, 0..=PORTS as u64 - 1)
    };
    Some((logical?, physical? as u8))
}

fn table_entry(fields: &mut Fields, mut section: Section<'_, '_>) -> Option<(u8, RouteEntry)> {
    let index = match section.take("entry") {
        Some(value) => fields.integer(value, 0..=TABLE_ENTRIES as u64 - 1),
        None => {
            fields.missing(&section, "entry", "1");
            None
        }
    };
    let ports = match section.take("ports") {
        Some(value) => ports(fields, value),
        None => {
            fields.missing(&section, "ports", "\"32-35\"");
            None
        }
    };
    let (location, mask) = (section.take("location"), section.take("mask"));
    let subtree = match (section.take("processors"), location, mask) {
        (Some(value), None, None) => subtree(fields, value),
        (None, Some(location), Some(mask)) => location_and_mask(fields, location, mask),
        _ => {
            fields.bad(
                section.span(),
                "an entry names its destinations once",
                "write either `processors = \"4-7\"` or `location = 0x4, mask = 0x3`",
            );
            None
        }
    };
    fields.finish(section);
    Some((
        index? as u8,
        RouteEntry {
            subtree: subtree?,
            ports: ports?.bits(),
        },
    ))
}
