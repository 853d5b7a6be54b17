//! Registers that a description sets.

use core::ops::Range;

use toml::Spanned;

use super::read::{location_and_mask, ports, subtree};
use crate::route::registers::NO_PORT;
use crate::route::registers::{PORTS, RouteEntry, TABLE_ENTRIES};
use crate::topology::model::{FoldedClos, RouterRegisters};
use phitwire::net::{Fields, Section, Shown, Value};

type Change = Box<dyn FnOnce(&mut RouterRegisters)>;

/// Registers that the description sets, by chip and router; they replace the computed ones.
#[derive(Default)]
pub(super) struct Overrides(pub(super) Vec<(usize, usize, Vec<Change>)>);

impl Overrides {
    pub(super) fn apply(self, topology: &mut FoldedClos) {
        for (chip, router, changes) in self.0 {
            let registers = &mut topology.chips[chip].routers[router].registers;
            changes.into_iter().for_each(|change| change(registers));
        }
    }
}

/// Reads the register keys of a router, and the positions of its table entries.
pub(super) fn named_registers(
    fields: &mut Fields,
    section: &mut Section<'_, '_>,
    spans: &mut Vec<(u8, Range<usize>)>,
) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    let root = section.take("root_detect");
    if let Some(root) = root.and_then(|value| subtree(fields, value)) {
        changes.push(Box::new(move |registers| registers.root_detect = root));
    }
    if let Some(shift) = fields.number(section, "down_shift", 0..=15) {
        changes.push(Box::new(move |registers| {
            registers.down_shift = shift as u8
        }));
    }
    if let Some(mask) = fields.number(section, "down_mask", 0..=0x7fff) {
        changes.push(Box::new(move |registers| registers.down_mask = mask as u16));
    }
    if let Some(shift) = fields.number(section, "hash_shift", 0..=14) {
        changes.push(Box::new(move |registers| {
            registers.hash_shift = shift as u8
        }));
    }
    let exits = section.take("exit_mask");
    if let Some(exits) = exits.and_then(|value| ports(fields, value)) {
        changes.push(Box::new(move |registers| registers.exit_mask = exits));
    }
    if let Some(map) = fields.part(section, "port_map", "a port map") {
        for (key, value) in map.entries() {
            if let Some((logical, physical)) = port_map_entry(fields, key, value) {
                changes.push(Box::new(move |registers| {
                    registers.port_map[usize::from(logical)] = physical;
                }));
            }
        }
    }
    let table = section.take("table");
    for section in table.map_or(Vec::new(), |value| fields.tables(value, "a table entry")) {
        let span = section.span();
        if let Some((index, entry)) = table_entry(fields, section) {
            if spans.iter().any(|(known, _)| *known == index) {
                let help =
                    "number the entries 0 to 7; the matching entry with the highest number wins";
                fields.bad(span.clone(), format!("entry {index} is listed twice"), help);
            }
            spans.push((index, span));
            changes.push(Box::new(move |registers| {
                registers.table[usize::from(index)] = entry;
            }));
        }
    }
    changes
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
        let message = format!("`{}` is not a logical port", Shown(key.get_ref()));
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
    let index = fields.need(&mut section, "entry", "1");
    let index = index.and_then(|value| fields.integer(value, 0..=TABLE_ENTRIES as u64 - 1));
    let out = fields.need(&mut section, "ports", "\"32-35\"");
    let ports = out.and_then(|value| ports(fields, value));
    let (location, mask) = (section.take("location"), section.take("mask"));
    let subtree = match (section.take("processors"), location, mask) {
        (Some(value), None, None) => subtree(fields, value),
        (None, Some(location), Some(mask)) => location_and_mask(fields, location, mask),
        _ => {
            fields.bad(
                section.span(),
                "an entry must specify its destinations exactly once",
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
