//! Writes a dragonfly as TOML: the parameters of its links, and the differences from them.

use core::fmt::Write as _;

use super::generate::Generator;
use super::host;
use super::model::{Classes, Dragonfly, DragonflyLink};
use crate::link::STANDARD;
use crate::route::registers::{AriesRegisters, Bias};
use phitwire::net::{NodeRef, write_link};

/// The description of a network, which [`read`](super::read()) parses into the same network. All
/// links are listed if the generated ones are not in the generator's order.
pub fn write(network: &Dragonfly) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = write_all(&mut text, network);
    text
}

/// Differences between the links of a network and those of its generator.
struct Difference<'a> {
    removed: Vec<DragonflyLink>,
    added: &'a [DragonflyLink],
}

fn difference<'a>(network: &'a Dragonfly, generator: &Generator) -> Option<Difference<'a>> {
    let generated = generator.links(&network.shape, &network.absent);
    let mut kept = 0;
    let mut removed = Vec::new();
    for link in generated {
        if network.links.get(kept) == Some(&link) {
            kept += 1;
        } else {
            removed.push(link);
        }
    }
    let added = &network.links[kept..];
    // A generated link after a listed one would get another index when read.
    (!added.iter().any(|link| removed.contains(link))).then_some(Difference { removed, added })
}

fn write_all(out: &mut String, network: &Dragonfly) -> std::fmt::Result {
    let generator = network.generator.as_ref();
    let found = generator.and_then(|generator| Some((generator, difference(network, generator)?)));
    writeln!(out, "family = \"aries\"\nname = \"{}\"", network.name)?;
    let shape = &network.shape;
    writeln!(
        out,
        "\n[dragonfly]\ngroups = {}\nchassis = {}               # of each group\nblades = {}      \
                   # of each \
         chassis: one router each\nnics = {}                  # of each router",
        shape.groups, shape.chassis, shape.blades, shape.nics
    )?;
    match &found {
        Some((generator, _)) => {
            writeln!(
                out,
                "black_links = {}           # to the peer in each other chassis\nglobal_links = \
                 {}          # between each \
                 pair of groups\nset_links = {}             # links that share a \
                 cable\narrangement = \"{}\"",
                generator.black_links,
                generator.global_links,
                generator.set_links,
                generator.arrangement
            )?;
        }
        None => writeln!(
            out,
            "generate = \"nothing\"       # all links are listed below"
        )?,
    }
    if !network.absent.is_empty() {
        let names: Vec<String> = network
            .absent
            .iter()
            .map(|&router| format!("\"{}\"", network.node_name(NodeRef::Chip(router))))
            .collect();
        writeln!(out, "absent = [{}]", names.join(", "))?;
    }
    network.settings.write(out)?;
    routing(out, network)?;
    host::write(out, &network.host)?;
    let (removed, added) = match &found {
        Some((_, difference)) => (&difference.removed[..], difference.added),
        None => (&[][..], &network.links[..]),
    };
    if removed.is_empty() && added.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n[wiring]")?;
    if !removed.is_empty() {
        writeln!(
            out,
            "# Generated links to remove, each by one end.\nremove = ["
        )?;
        for link in removed {
            writeln!(out, "  \"{}\",", network.end_name(link.a))?;
        }
        writeln!(out, "]")?;
    }
    if !added.is_empty() {
        writeln!(out, "links = [")?;
        for link in added {
            write_link(out, network, (link, STANDARD.lanes), "")?;
        }
        writeln!(out, "]")?;
    }
    Ok(())
}

fn routing(out: &mut String, network: &Dragonfly) -> std::fmt::Result {
    let classes = &network.classes;
    if *classes == Classes::default() && network.bias == AriesRegisters::BIAS {
        return Ok(());
    }
    writeln!(out, "\n[routing]")?;
    if *classes != Classes::default() {
        writeln!(out, "blue_classes = {:?}", classes.blue)?;
        writeln!(out, "root_classes = {:?}", classes.root)?;
        writeln!(out, "local_up_class = {}", classes.local_up)?;
    }
    if network.bias != AriesRegisters::BIAS {
        let pair = |bias: Bias| format!("[{}, {}]", bias.shift, bias.add);
        writeln!(out, "bias = [")?;
        for mode in network.bias {
            let (minimal, non_minimal) = (pair(mode.minimal), pair(mode.non_minimal));
            let growth = match mode.growth {
                0 => String::new(),
                growth => format!(", growth = {growth}"),
            };
            writeln!(
                out,
                "  {{ minimal = {minimal}, non_minimal = {non_minimal}{growth} }},"
            )?;
        }
        writeln!(out, "]")?;
    }
    Ok(())
}
