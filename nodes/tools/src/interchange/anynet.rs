//! The `network_file` of BookSim's `anynet`: one line per router, with its nodes and its
//! neighbours. A number after one of these is the latency of that link. Links are bidirectional.

use std::fmt::Write as _;

use super::graph::{End, Graph, Node};
use super::{Export, InterchangeError, Mistake};

/// Highest number in a file: that of the largest network. It bounds memory.
const MOST: usize = 1 << 20;

/// Writes each link once, at the router with the lower number.
pub(super) fn write(graph: &Graph) -> Result<Export, InterchangeError> {
    let joined = graph.joined();
    let mut routers_of = vec![0_usize; graph.nics.len()];
    let mut lines: Vec<String> = (0..graph.routers.len())
        .map(|n| format!("router {n}"))
        .collect();
    let mut merged = 0;
    for (&pair, &count) in &joined {
        merged += count - 1;
        // Writing to a String cannot fail.
        let _ = match pair {
            [Node::Router(router), Node::Nic(nic)] => {
                routers_of[nic] += 1;
                write!(lines[router], " node {nic}")
            }
            [Node::Router(low), Node::Router(high)] => write!(lines[low], " router {high}"),
            _ => {
                return Err(InterchangeError::Unsupported(
                    "anynet cannot express a link between two NICs".to_owned(),
                ));
            }
        };
    }
    if let Some(nic) = routers_of.iter().position(|&routers| routers != 1) {
        return Err(InterchangeError::Unsupported(format!(
            "{} is linked to {} routers: a node of anynet has exactly one",
            graph.nics[nic], routers_of[nic]
        )));
    }
    let mut left_out = vec!["anynet has no names, ports or lane rates".to_owned()];
    if merged > 0 {
        left_out.push(format!(
            "{merged} links are omitted: anynet has one link between two routers"
        ));
    }
    Ok(Export {
        text: lines.join("\n") + "\n",
        left_out,
    })
}

/// Reads the format of [`write()`] and of BookSim. Latencies are checked and dropped.
pub(super) fn read(text: &str) -> Result<Graph, Mistake> {
    let mut routers = 0;
    let mut pairs = std::collections::BTreeSet::new();
    let mut homes = std::collections::BTreeMap::new();
    for line in words_of(text) {
        let mut head = None;
        let mut words = line.into_iter().peekable();
        while let Some((word, span)) = words.next() {
            let is_router = match word {
                "router" => true,
                "node" => false,
                _ => {
                    return Err((format!("expected `router` or `node`, found `{word}`"), span));
                }
            };
            let Some((number, at)) = words.next() else {
                return Err((format!("{word} without a number"), span));
            };
            let number = number_of(number, &at)?;
            let node = if is_router {
                Node::Router(number)
            } else {
                Node::Nic(number)
            };
            if is_router {
                routers = routers.max(number + 1);
            }
            // Skip the latency of the link.
            if let Some((next, at)) = words.peek()
                && !matches!(*next, "router" | "node")
            {
                number_of(next, at)?;
                words.next();
            }
            let Some(head) = head else {
                head = Some(node);
                continue;
            };
            let (router, other) = match (head, node) {
                (Node::Router(router), other) | (other @ Node::Nic(_), Node::Router(router)) => {
                    (router, other)
                }
                (Node::Nic(_), Node::Nic(_)) => {
                    return Err((
                        "a node must be linked to a router, not to a node".to_owned(),
                        at,
                    ));
                }
            };
            match other {
                Node::Router(same) if same == router => {
                    return Err((format!("router {router} is linked to itself"), at));
                }
                Node::Router(other) => drop(pairs.insert([router.min(other), router.max(other)])),
                Node::Nic(nic) => match homes.insert(nic, router) {
                    Some(home) if home != router => {
                        return Err((format!("node {nic} is already linked to router {home}"), at));
                    }
                    _ => {}
                },
            }
        }
    }
    let nics = homes.keys().next_back().map_or(0, |last| last + 1);
    if let Some(missing) = (0..nics).find(|nic| !homes.contains_key(nic)) {
        let end = text.len()..text.len();
        return Err((
            format!("node {missing} is not linked to a router, although higher-numbered nodes are"),
            end,
        ));
    }
    let end = |node| End { node, port: None };
    let ends = homes
        .into_iter()
        .map(|(nic, router)| [Node::Router(router), Node::Nic(nic)]);
    let links = ends.chain(pairs.into_iter().map(|pair| pair.map(Node::Router)));
    Ok(Graph {
        title: "anynet".to_owned(),
        routers: (0..routers)
            .map(|router| format!("router {router}"))
            .collect(),
        nics: (0..nics).map(|nic| format!("node {nic}")).collect(),
        links: links.map(|link| link.map(end)).collect(),
        counts_links: false,
    })
}

fn number_of(word: &str, span: &std::ops::Range<usize>) -> Result<usize, Mistake> {
    match word.parse() {
        Ok(number) if number < MOST => Ok(number),
        _ => Err((
            format!("expected a number below {MOST}, found `{word}`"),
            span.clone(),
        )),
    }
}

/// The words of each line, with their byte ranges.
fn words_of(text: &str) -> impl Iterator<Item = Vec<(&str, std::ops::Range<usize>)>> {
    let span_of = |word: &str| {
        let begin = word.as_ptr() as usize - text.as_ptr() as usize;
        begin..begin + word.len()
    };
    text.lines().map(move |line| {
        line.split_whitespace()
            .map(|word| (word, span_of(word)))
            .collect()
    })
}
