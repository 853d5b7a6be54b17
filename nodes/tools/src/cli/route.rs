//! `phitwire route`: the path that a packet would take, without sending one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::process::ExitCode;

use clap::Args;
use miette::miette;
use phitwire::device::{Device, capability};
use phitwire::net::{End, Network, NodeRef, Peers, Runtime};
use phitwire::text_table::TextTable;
use phitwire::time::Time;
use phitwire::trace::{Onward, Outlook, Question};
use phitwire_nodes::control::{Client, Request};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{json, print};
use crate::description;
use crate::trace::live::{Lab, numbers_of};

/// Maximum number of routers on a path.
const MOST_HOPS: usize = 64;

/// Show the route of a packet from one NIC to another, without sending one: at each router the
/// tables and registers consulted, the hash, and all ports that it may choose
///
/// Uses the description alone, or with --lab the tables and links of the running routers. Where the
/// load decides, the route continues through the first port. Exit status: 0 if there is a route; 1
/// if there is none.
#[derive(Debug, Args)]
pub struct RouteArgs {
    /// A description, or the name of a network, and two NICs: `quickstart nic0 nic7`. With --lab,
    /// only the two NICs
    #[arg(required = true, num_args = 2..=3, value_names = ["TOPOLOGY", "FROM", "TO"])]
    words: Vec<String>,
    /// Query the routers of this lab
    #[arg(long)]
    lab: Option<String>,
    /// Route of the answer, from FROM back to TO
    #[arg(long)]
    response: bool,
    /// Route of packets that must stay in order
    #[arg(long)]
    ordered: bool,
    /// Address of the request, on machines that route by address
    #[arg(long, value_name = "ADDRESS", default_value = "0", value_parser = super::ctl::parse_value)]
    address: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A predicted path, as JSON.
#[derive(Serialize, JsonSchema)]
pub(super) struct Path<'a> {
    /// Version of this schema.
    version: u32,
    /// Name of the network.
    topology: &'a str,
    /// The lab whose routers were queried; null: the description alone.
    lab: Option<&'a str>,
    /// Source of the packet.
    from: &'a str,
    /// Destination of the packet.
    to: &'a str,
    /// Whether the packet would arrive.
    arrives: bool,
    /// Why it would not arrive.
    why_not: Option<&'a str>,
    /// The routers, in order.
    hops: &'a [Hop],
}

/// A router on the path.
#[derive(Debug, Serialize, JsonSchema)]
struct Hop {
    /// Name of the router.
    router: String,
    /// Port by which the packet arrives.
    in_port: u8,
    #[serde(flatten)]
    outlook: Outlook,
    /// The peer of each output: `NODE:PORT`; null if the port has no link.
    leads: Vec<Option<String>>,
}

/// The source of the routers' decisions.
enum DecisionSource<'n> {
    Description(&'n dyn Network, BTreeMap<NodeRef, Box<dyn Device>>),
    Lab(&'n str),
}

impl DecisionSource<'_> {
    fn outlook(
        &mut self,
        node: NodeRef,
        name: &str,
        question: &Question,
    ) -> miette::Result<Outlook> {
        match self {
            Self::Description(network, made) => {
                let device = match made.entry(node) {
                    Entry::Occupied(made) => made.into_mut(),
                    Entry::Vacant(entry) => {
                        let device = network.device(name, &Runtime::new("route", 1), Time::ZERO);
                        entry.insert(device.map_err(|error| miette!("{name}: {error}"))?)
                    }
                };
                let found = device
                    .need::<capability::Outlook>()
                    .map(|router| router.outlook(question));
                let mut outlook = found.map_err(|error| miette!("{name}: {error}"))?;
                // Clear the state: links of a description are neither up nor down.
                outlook.ways.iter_mut().for_each(|way| way.is_up = None);
                Ok(outlook)
            }
            Self::Lab(lab) => {
                let answer = Client::connect(lab, name)
                    .and_then(|mut client| client.ask(&Request::Outlook(question.clone())));
                let answer = answer.map_err(|error| miette!("{name}: {error}"))?;
                Outlook::deserialize(answer).map_err(|error| miette!("{name}: {error}"))
            }
        }
    }
}

pub fn run(args: &RouteArgs) -> miette::Result<ExitCode> {
    let (network, from, to) = match (&args.lab, &args.words[..]) {
        (Some(lab), [from, to]) => (Lab::open(lab)?.network, from, to),
        (None, [topology, from, to]) => (description::find(topology)?, from, to),
        _ => {
            return Err(miette!(
                help = "try `phitwire route quickstart nic0 nic7`, or `phitwire route --lab NAME \
                        nic0 nic7`",
                "expected a topology and two NICs, or --lab and two NICs"
            ));
        }
    };
    let network = &*network;
    let mut asked = match &args.lab {
        Some(lab) => DecisionSource::Lab(lab),
        None => DecisionSource::Description(network, BTreeMap::new()),
    };
    let (source, target) = (numbers_of(network, from)?, numbers_of(network, to)?);
    let question = Question {
        port: 0,
        to: target.routed,
        response: args.response,
        ordered: args.ordered,
        address: args.address,
        state: None,
    };
    let ends = (source.node, target.node);
    let (hops, end) = follow(network, ends, question, |node, name, question| {
        asked.outlook(node, name, question)
    })?;
    let found = end.is_none();
    let text = match args.json {
        true => json(&Path {
            version: 1,
            topology: network.name(),
            lab: args.lab.as_deref(),
            from,
            to,
            arrives: found,
            why_not: end.as_deref(),
            hops: &hops,
        })?,
        false => {
            let end = end.unwrap_or_else(|| format!("it arrives at {to}"));
            format!("{}{end}\n", table(&hops))
        }
    };
    print(&text)?;
    Ok(match found {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The routers on the path, and the reason if it ends before its destination. `outlook` asks a
/// router.
fn follow(
    network: &dyn Network,
    (source, target): (NodeRef, NodeRef),
    mut question: Question,
    mut outlook: impl FnMut(NodeRef, &str, &Question) -> miette::Result<Outlook>,
) -> miette::Result<(Vec<Hop>, Option<String>)> {
    let peers = Peers::of(network);
    let mut hops: Vec<Hop> = Vec::new();
    let Some((_, mut at)) = peers.of_node(source).next() else {
        return Ok((hops, Some("the NIC has no link".to_owned())));
    };
    while hops.len() < MOST_HOPS {
        let router = network.node_name(at.node).into_owned();
        question.port = at.port;
        let outlook = outlook(at.node, &router, &question)?;
        let out = |way: &Onward| {
            let port = way.port;
            peers.of_end(End {
                node: at.node,
                port,
            })
        };
        let leads = outlook
            .ways
            .iter()
            .map(|way| out(way).map(|end| network.end_name(end)));
        let leads = leads.collect();
        let next = onward(&outlook.ways).map(|way| (way.state, out(way)));
        let how = match outlook.ways.is_empty() {
            true => outlook.how.clone(),
            false => "all links on its routes are down".to_owned(),
        };
        hops.push(Hop {
            router: router.clone(),
            in_port: at.port,
            outlook,
            leads,
        });
        at = match next {
            None => return Ok((hops, Some(format!("it ends at {router}: {how}")))),
            Some((_, None)) => {
                return Ok((
                    hops,
                    Some(format!("it ends at {router}: the port has no link")),
                ));
            }
            Some((_, Some(end))) if end.node == target => return Ok((hops, None)),
            Some((_, Some(end))) if matches!(end.node, NodeRef::Processor(_)) => {
                let end = network.end_name(end);
                return Ok((hops, Some(format!("it ends at {end}"))));
            }
            Some((state, Some(end))) => {
                question.state = Some(state);
                end
            }
        };
    }
    Ok((hops, Some("the route is a cycle".to_owned())))
}

/// The first output whose link is not down; `None` if all are down.
fn onward(ways: &[Onward]) -> Option<&Onward> {
    ways.iter().find(|way| way.is_up != Some(false))
}

fn table(hops: &[Hop]) -> String {
    let mut table = TextTable::new(&["hop", "router", "in", "consults", "candidates", "chosen"]);
    for (number, hop) in hops.iter().enumerate() {
        let ways = hop.outlook.ways.iter().zip(&hop.leads);
        let mut ways = ways.map(|(way, lead)| {
            let down = match way.is_up {
                Some(false) => ", down",
                _ => "",
            };
            let lead = lead.as_deref().unwrap_or("nowhere");
            format!(
                "port {} VC {} to {lead} ({}{down})",
                way.port, way.vc, way.kind
            )
        });
        let mut consulted = hop.outlook.consulted.iter().cloned();
        table.row([
            (number + 1).to_string(),
            hop.router.clone(),
            format!("port {}", hop.in_port),
            consulted.next().unwrap_or_default(),
            ways.next().unwrap_or_default(),
            hop.outlook.how.clone(),
        ]);
        loop {
            let (entry, way) = (consulted.next(), ways.next());
            if entry.is_none() && way.is_none() {
                break;
            }
            let none = String::new;
            table.row([
                none(),
                none(),
                none(),
                entry.unwrap_or_default(),
                way.unwrap_or_default(),
                none(),
            ]);
        }
    }
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(port: u8, is_up: Option<bool>) -> Onward {
        Onward {
            port,
            vc: 0,
            kind: "minimal".into(),
            is_up,
            state: 0,
        }
    }

    #[test]
    fn nothing_leaves_by_links_that_are_down() {
        let port = |ways: &[Onward]| onward(ways).map(|way| way.port);
        assert_eq!(port(&[way(30, Some(false)), way(0, Some(true))]), Some(0));
        assert_eq!(port(&[way(30, Some(false)), way(0, Some(false))]), None);
        assert_eq!(port(&[way(30, None), way(0, None)]), Some(30), "no lab");
        assert_eq!(port(&[]), None);
    }

    /// The routers on the path between the first NICs of two groups of a lab, and its end, if all
    /// links of one router are down.
    fn path_with_dead_links(of: &str) -> (Vec<String>, Option<String>) {
        let network = description::find("aries-3x4").expect("a ready topology");
        let [from, to] = ["nic0", "nic4"].map(|name| numbers_of(&*network, name).expect(name));
        let mut asked = DecisionSource::Description(&*network, BTreeMap::new());
        let question = Question {
            port: 0,
            to: to.routed,
            response: false,
            ordered: true,
            address: 0,
            state: None,
        };
        let ends = (from.node, to.node);
        let (hops, end) = follow(&*network, ends, question, |node, name, question| {
            let mut outlook = asked.outlook(node, name, question)?;
            let is_up = Some(name != of);
            outlook.ways.iter_mut().for_each(|way| way.is_up = is_up);
            Ok(outlook)
        })
        .expect("every router answers");
        let routers = hops.into_iter().map(|hop| hop.router);
        (routers.collect(), end)
    }

    #[test]
    fn a_route_ends_at_a_router_whose_links_are_all_down() {
        let (routers, end) = path_with_dead_links("none");
        assert_eq!(end, None, "it arrives");
        assert!(routers.len() > 1, "{routers:?}");
        for (at, router) in routers.iter().enumerate() {
            let (passed, end) = path_with_dead_links(router);
            assert_eq!(passed, routers[..=at]);
            let said = format!("it ends at {router}: all links on its routes are down");
            assert_eq!(end, Some(said));
        }
    }
}
