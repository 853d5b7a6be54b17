//! Networks by name.

use std::path::Path;

use miette::{Report, miette};
use phitwire::net::{Network, Shown};
use phitwire_nodes::nearest::did_you_mean;

use crate::machines::machines;

/// Names and texts of the bundled descriptions.
fn all() -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.ready)
}

/// The description of the network of this name.
///
/// # Errors
/// See [`find`].
pub fn text(name: &str) -> miette::Result<String> {
    match all().find(|(ready, _)| *ready == name) {
        Some((_, text)) => Ok((*text).to_owned()),
        None => Ok(find(name)?.write()),
    }
}

/// The network in a file, or the network of this name: a bundled one, or one that a machine
/// generates.
///
/// # Errors
/// If it is neither a file nor a name, or the description has errors.
pub fn find(name: &str) -> miette::Result<Box<dyn Network>> {
    if name == "-" || Path::new(name).exists() {
        return super::open(Path::new(name));
    }
    if let Some((_, text)) = all().find(|(ready, _)| *ready == name) {
        return machines().read(name, text).map_err(Report::new);
    }
    if let Some(generated) = machines().generate(name) {
        return generated.map_err(|error| miette!("{error}").wrap_err(Shown(name).to_string()));
    }
    let names: Vec<&str> = all().map(|(name, _)| *name).collect();
    let others: Vec<&str> = machines()
        .families()
        .iter()
        .map(|family| family.names)
        .collect();
    Err(miette!(
        help = format!(
            "available: {}; or {}",
            names.join(", "),
            others.join("; or ")
        ),
        "`{}` is neither a file nor the name of a topology{}",
        Shown(name),
        did_you_mean(name, &names)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use phitwire::net::NodeRef;

    #[test]
    fn every_ready_topology_can_be_read() {
        for (name, _) in all() {
            let nodes = find(name).expect(name).nodes();
            let is_terminal = |node: &NodeRef| matches!(node, NodeRef::Processor(_));
            assert!(nodes.iter().any(is_terminal), "{name}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let report = find("nowhere").expect_err("no such thing");
        // Join the lines, which are also broken at hyphens.
        let text: String = format!("{report:?}").split([' ', '\n', '│']).collect();
        for (name, _) in all() {
            assert!(text.contains(name), "{name}: {text}");
        }
    }
}
