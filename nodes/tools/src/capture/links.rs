//! The links of a lab, and the interfaces at which to capture each direction.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use phitwire_nodes::nearest::nearest;
use phitwire_nodes::run_dir::{LabDir, labs};

/// Directory where `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";

/// Why the links of a lab cannot be captured.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// No lab has that name.
    #[error(
        "lab `{lab}` is not up: {why}; {}bring it up with `netns-scripts/up.sh TOPOLOGY --lab {lab}`",
        another_lab(lab)
    )]
    NotUp {
        lab: String,
        /// The error of reading the lab's files.
        why: io::Error,
    },
    /// The plan is not in the format of `up.sh`.
    #[error("{}, line {line}: {why}; bring the lab down and up again", file.display())]
    BadPlan {
        file: PathBuf,
        line: usize,
        why: &'static str,
    },
    /// Links over loopback ports have no interfaces.
    #[error(
        "lab `{0}` runs over loopback ports, where links have no interfaces: capture `lo` with \
         `tshark -i lo -f 'udp'`, or bring the lab up in namespaces"
    )]
    Loopback(String),
    /// No link matches.
    #[error(
        "lab `{lab}` has no link `{which}`; {}expected all, a link id, \
         NODE:PORT, NODE-NODE or NODE",
        did_you_mean(meant.as_deref())
    )]
    NoLink {
        lab: String,
        /// The requested link.
        which: String,
        /// The most similar name, if any.
        meant: Option<String>,
    },
}

/// The "did you mean" question at the beginning of a message.
fn did_you_mean(meant: Option<&str>) -> String {
    meant.map_or_else(String::new, |meant| format!("did you mean `{meant}`? "))
}

/// The "did you mean" question for a lab; empty if no other lab has a similar name.
fn another_lab(lab: &str) -> String {
    let labs = labs();
    did_you_mean(nearest(lab, &labs).filter(|other| *other != lab))
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEnd {
    pub node: String,
    pub port: String,
    /// The interface, in the namespace of the node.
    pub interface: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabLink {
    pub id: String,
    /// The ends of the link, in the order of the topology.
    pub ends: [LinkEnd; 2],
}

impl LabLink {
    /// Whether `which` names the link: `all`, its id, NODE:PORT, NODE-NODE or NODE.
    fn is(&self, which: &str) -> bool {
        let [a, b] = &self.ends;
        which == "all"
            || which == self.id
            || self.ends.iter().any(|end| {
                which == end.node
                    || which == format!("{}:{}", end.node, end.port)
                    || which == format!("{}:{}", end.node, end.interface)
            })
            || which == format!("{}-{}", a.node, b.node)
            || which == format!("{}-{}", b.node, a.node)
    }

    /// All names of the link except `all`.
    fn names(&self) -> Vec<String> {
        let [a, b] = &self.ends;
        let mut names = vec![
            format!("{}-{}", a.node, b.node),
            format!("{}-{}", b.node, a.node),
        ];
        for end in [a, b] {
            names.push(end.node.clone());
            names.push(format!("{}:{}", end.node, end.port));
        }
        names
    }

    /// The name of the direction from the end with this index: `LINK:A->B`.
    pub fn direction(&self, from: usize) -> String {
        let [a, b] = [&self.ends[from], &self.ends[1 - from]];
        format!("{}:{}->{}", self.id, a.node, b.node)
    }
}

pub fn namespace(lab: &str, node: &str) -> PathBuf {
    Path::new(NAMESPACES).join(format!("phw-{lab}-{node}"))
}

/// The links of a lab in namespaces that match any of `chosen`; all links if it is empty.
///
/// # Errors
/// See [`LinksError`].
pub fn links(dir: &LabDir, chosen: &[String]) -> Result<Vec<LabLink>, LinksError> {
    let lab = dir.lab().to_owned();
    let read = |file: &str| fs::read_to_string(dir.path().join(file));
    let not_up = |why| LinksError::NotUp {
        lab: lab.clone(),
        why,
    };
    let how = read("lab.env").map_err(not_up)?;
    if !how.lines().any(|line| line == "MODE=netns") {
        return Err(LinksError::Loopback(lab));
    }
    let plan = read("plan.tsv").map_err(not_up)?;
    let all = parse(&plan).map_err(|(line, why)| LinksError::BadPlan {
        file: dir.path().join("plan.tsv"),
        line,
        why,
    })?;
    if let Some(which) = chosen
        .iter()
        .find(|which| !all.iter().any(|link| link.is(which)))
    {
        let names: Vec<String> = all.iter().flat_map(LabLink::names).collect();
        return Err(LinksError::NoLink {
            lab,
            which: which.clone(),
            meant: nearest(which, &names).map(str::to_owned),
        });
    }
    let is_chosen = |link: &LabLink| chosen.is_empty() || chosen.iter().any(|which| link.is(which));
    Ok(all.into_iter().filter(is_chosen).collect())
}

/// Parses a plan in the format of `phitwire topology plan`. An error is the number of the invalid
/// line, and the reason.
fn parse(plan: &str) -> Result<Vec<LabLink>, (usize, &'static str)> {
    let mut links = Vec::new();
    for (line, text) in plan.lines().enumerate() {
        let mut fields = text.split('\t');
        match fields.next() {
            Some("link") => {}
            Some("node" | "") => continue,
            _ => return Err((line + 1, "expected a node or a link")),
        }
        let fields: Vec<&str> = fields.collect();
        let [id, node_a, port_a, node_b, port_b, if_a, if_b, ..] = fields[..] else {
            return Err((line + 1, "expected at least seven fields of a link"));
        };
        let end = |node: &str, port: &str, interface: &str| LinkEnd {
            node: node.to_owned(),
            port: port.to_owned(),
            interface: interface.to_owned(),
        };
        links.push(LabLink {
            id: id.to_owned(),
            ends: [end(node_a, port_a, if_a), end(node_b, port_b, if_b)],
        });
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "node\tr0\trouter\nnode\tnic0\tnic\nlink\t0\tr0\t3\tnic0\t0\tp3\tp0\t10.0.0.1\t10.0.0.2\n\
                        link\t1\tr0\t4\tr1\t5\tp4\tp5\t10.0.0.5\t10.0.0.6\n";

    #[test]
    fn links_go_by_their_names() {
        let links = parse(PLAN).expect("a plan");
        assert_eq!(links.len(), 2);
        assert_eq!(links[0].direction(0), "0:r0->nic0");
        assert_eq!(links[0].direction(1), "0:nic0->r0");
        for (which, first, second) in [
            ("all", true, true),
            ("0", true, false),
            ("r0:4", false, true),
            ("r0:p4", false, true),
            ("r1-r0", false, true),
            ("r0", true, true),
            ("nic0", true, false),
            ("nic", false, false),
        ] {
            assert_eq!(
                [links[0].is(which), links[1].is(which)],
                [first, second],
                "{which}"
            );
        }
        let names: Vec<String> = links.iter().flat_map(LabLink::names).collect();
        assert!(
            names
                .iter()
                .all(|name| links.iter().any(|link| link.is(name)))
        );
        assert_eq!(nearest("r0-nci0", &names), Some("r0-nic0"));
        assert_eq!(parse("link\t0\tr0").expect_err("short").0, 1);
        assert_eq!(parse("\nwhat").expect_err("no plan").0, 2);
    }
}
