//! Writes a torus as TOML.

use core::fmt::Write as _;

use super::channels::Channels;
use super::model::Torus;
use phitwire::net::Describe;

/// The description of a torus, without defaults.
pub fn write(torus: &Torus) -> String {
    let mut text = String::new();
    // Writing to a String never fails.
    let _ = write_all(&mut text, torus);
    text
}

fn write_all(out: &mut String, torus: &Torus) -> core::fmt::Result {
    let shape = &torus.shape;
    let (family, name) = (Torus::FAMILY, &torus.graph.name);
    writeln!(out, "family = \"{family}\"\nname = \"{name}\"\n")?;
    let block = |[x, y, z]: [u8; 3]| format!("\"{x}x{y}x{z}\"");
    writeln!(out, "size = {}", block(shape.size()))?;
    if !shape.partial().is_empty() {
        let planes: Vec<String> = shape.partial().iter().copied().map(block).collect();
        writeln!(out, "partial = [{}]", planes.join(", "))?;
    }
    if torus.spares > 0 {
        writeln!(out, "spares = {}", torus.spares)?;
    }
    if !torus.defects.is_empty() {
        writeln!(out, "broken = [")?;
        for defect in torus.defects.iter() {
            writeln!(out, "  \"{}\",", defect.write(shape))?;
        }
        writeln!(out, "]")?;
    }
    if !torus.adaptive {
        writeln!(out, "adaptive = false")?;
    }
    if torus.channels != Channels::default() {
        writeln!(out, "channels = \"{}\"", torus.channels.name())?;
    }
    torus.settings.write(out)?;
    if !torus.vc_tables.is_empty() {
        writeln!(out)?;
        torus.vc_tables.write(out)?;
    }
    Ok(())
}
