//! Writes a topology as TOML, omitting defaults.

use core::fmt::Write as _;

use crate::link::STANDARD;
use crate::route::registers::NO_PORT;
use crate::route::registers::Subtree;
use crate::topology::computed::{computed_registers, range_text};
use crate::topology::model::{
    Chip, FoldedClos, RouterRegisters, VirtualRouter, is_aligned, rate_text,
};
use crate::topology::wiring::ClosWiring;
use phitwire::net::{PortSet, write_link};

/// The description of a topology, which [`read`](super::read()) parses into the same topology.
/// Computed registers are omitted.
pub fn write(topology: &FoldedClos) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = write_all(&mut text, topology);
    text
}

fn write_all(out: &mut String, topology: &FoldedClos) -> std::fmt::Result {
    writeln!(out, "name = \"{}\"", topology.name)?;
    writeln!(out, "slices = {}", topology.slices)?;
    topology.settings.write(out)?;
    writeln!(
        out,
        "\n# Name = number by which packets are addressed.\n[processors]"
    )?;
    for processor in &topology.processors {
        writeln!(out, "{} = {}", key(&processor.name), processor.number)?;
    }
    let wiring = ClosWiring::new(topology);
    let mut number = 0;
    for chip in &topology.chips {
        let computed: Vec<RouterRegisters> = (0..chip.routers.len() as u32)
            .map(|r| computed_registers(topology, &wiring, number + r))
            .collect();
        number += chip.routers.len() as u32;
        write_chip(out, chip, &computed)?;
    }
    writeln!(
        out,
        "\n# The id of a link is its position in this list, from 0.\n[wiring]\nlinks = ["
    )?;
    let usual = &topology.settings.own;
    for link in &topology.links {
        let rate = (link.rate != usual.rate).then(|| format!(", rate = {}", rate_text(link.rate)));
        let metres = link.metres.filter(|_| link.metres != usual.metres);
        let metres = metres.map(|metres| format!(", metres = {metres}"));
        let own = rate.unwrap_or_default() + &metres.unwrap_or_default();
        write_link(out, topology, (link, STANDARD.lanes), &own)?;
    }
    writeln!(out, "]")
}

/// A name as a TOML key, bare if possible.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.chars().all(bare) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}

fn write_chip(out: &mut String, chip: &Chip, computed: &[RouterRegisters]) -> std::fmt::Result {
    writeln!(out, "\n[[chip]]\nname = \"{}\"", chip.name)?;
    match &chip.routers[..] {
        [router] if router.name == chip.name => router_keys(out, router, "chip", &computed[0]),
        routers => {
            if routers.is_empty() {
                writeln!(out, "router = []")?;
            }
            for (router, computed) in routers.iter().zip(computed) {
                writeln!(out, "\n[[chip.router]]\nname = \"{}\"", router.name)?;
                router_keys(out, router, "chip.router", computed)?;
            }
            Ok(())
        }
    }
}

fn router_keys(
    out: &mut String,
    router: &VirtualRouter,
    section: &str,
    computed: &RouterRegisters,
) -> std::fmt::Result {
    writeln!(out, "rank = {}", router.rank)?;
    if router.slice != 0 {
        writeln!(out, "slice = {}", router.slice)?;
    }
    if router.ports != PortSet::ALL {
        writeln!(out, "ports = \"{}\"", router.ports)?;
    }
    writeln!(out, "processors = {}", subtree(router.subtree))?;
    registers(out, &router.registers, section, computed)
}

fn subtree(subtree: Subtree) -> String {
    match range_text(subtree) {
        Some(range) => format!("\"{range}\""),
        None => format!(
            "{{ location = {:#06x}, mask = {:#06x} }}",
            subtree.location, subtree.mask
        ),
    }
}

fn registers(
    out: &mut String,
    registers: &RouterRegisters,
    section: &str,
    computed: &RouterRegisters,
) -> std::fmt::Result {
    if registers.root_detect != computed.root_detect {
        writeln!(out, "root_detect = {}", subtree(registers.root_detect))?;
    }
    if registers.down_shift != computed.down_shift {
        writeln!(out, "down_shift = {}", registers.down_shift)?;
    }
    if registers.down_mask != computed.down_mask {
        writeln!(out, "down_mask = {:#06x}", registers.down_mask)?;
    }
    if registers.hash_shift != computed.hash_shift {
        writeln!(out, "hash_shift = {}", registers.hash_shift)?;
    }
    if registers.exit_mask != computed.exit_mask {
        writeln!(out, "exit_mask = \"{}\"", registers.exit_mask)?;
    }
    let map: Vec<String> = registers
        .port_map
        .iter()
        .zip(&computed.port_map)
        .enumerate()
        .filter(|(_, (mine, computed))| mine != computed)
        .map(|(logical, (&mine, _))| match mine {
            NO_PORT => format!("{logical} = \"none\""),
            port => format!("{logical} = {port}"),
        })
        .collect();
    if !map.is_empty() {
        writeln!(out, "port_map = {{ {} }}", map.join(", "))?;
    }
    for (index, (mine, computed)) in registers.table.iter().zip(&computed.table).enumerate() {
        if mine != computed {
            writeln!(out, "\n[[{section}.table]]\nentry = {index}")?;
            let (location, mask) = (mine.subtree.location, mine.subtree.mask);
            if is_aligned(mine.subtree) {
                writeln!(out, "processors = {}", subtree(mine.subtree))?;
            } else {
                writeln!(out, "location = {location:#06x}\nmask = {mask:#06x}")?;
            }
            writeln!(out, "ports = \"{}\"", PortSet::from_bits(mine.ports))?;
        }
    }
    Ok(())
}
