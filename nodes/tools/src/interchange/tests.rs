use std::collections::BTreeSet;

use crate::machines::machines;

use super::*;
use crate::interchange::graph::{End, Node};

fn ready() -> impl Iterator<Item = (&'static str, &'static str)> {
    machines()
        .machines()
        .iter()
        .flat_map(|machine| machine.ready.iter().copied())
}

#[test]
fn graphml_gives_every_ready_network_back() {
    for (name, description) in ready() {
        let network = machines().read(name, description).expect(name);
        let export = export(&*network, description, Written::Graphml).expect("a graph");
        assert_eq!(export.left_out, Vec::<String>::new());
        let (graph, found) = read(name, &export.text, Readable::Graphml).expect("what was written");
        assert_eq!(found.as_deref(), Some(description), "{name}");
        assert_eq!(graph, Graph::of(&*network), "{name}");
        assert_eq!(graph.compare(&*network), Ok(Same::InOrder));
        // In another order, nodes match by name; a single router matches in any order.
        let same = shuffled(&graph, 3).compare(&*network);
        let is_one = graph.routers.len() == 1;
        assert!(same == Ok(Same::ByName) || is_one, "{name}: {same:?}");
    }
}

/// The graph with its nodes and links in another order.
fn shuffled(graph: &Graph, seed: usize) -> Graph {
    // A step coprime to the length visits every index.
    let order = |len: usize| {
        let step = (seed..).find(|step| gcd(*step, len) == 1).unwrap_or(1);
        (0..len)
            .map(move |at| (at * step + 1) % len)
            .collect::<Vec<_>>()
    };
    let (routers, nics) = (order(graph.routers.len()), order(graph.nics.len()));
    let mut other = graph.clone();
    for (from, &to) in routers.iter().enumerate() {
        other.routers[to] = graph.routers[from].clone();
    }
    for (from, &to) in nics.iter().enumerate() {
        other.nics[to] = graph.nics[from].clone();
    }
    let moved = |end: End| End {
        node: match end.node {
            Node::Router(index) => Node::Router(routers[index]),
            Node::Nic(index) => Node::Nic(nics[index]),
        },
        ..end
    };
    let links = order(graph.links.len());
    for (from, &to) in links.iter().enumerate() {
        other.links[to] = graph.links[from].map(moved);
    }
    other
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The graph without names and ports, like those of other tools.
fn nameless(graph: &Graph) -> Graph {
    let names = |what: &str, count: usize| (0..count).map(|n| format!("{what}{n}")).collect();
    let bare = |end: End| End { port: None, ..end };
    Graph {
        title: "theirs".to_owned(),
        routers: names("switch", graph.routers.len()),
        nics: names("host", graph.nics.len()),
        links: graph.links.iter().map(|link| link.map(bare)).collect(),
        counts_links: graph.counts_links,
    }
}

fn made(name: &str) -> Box<dyn Network> {
    machines().generate(name).expect(name).expect(name)
}

#[test]
fn a_renumbered_graph_is_recognised_in_any_order() {
    for (name, made_by) in [
        ("t3e-4x2x3", "t3e --size 4x2x3"),
        ("t3e-4x4x2-4x2x1", "t3e --size 4x4x2 --partial 4x2x1"),
        ("r1-32", "blackwidow --processors 32 --rank 1"),
        ("r2-64", "blackwidow --processors 64 --rank 2"),
        (
            "aries-3x2x2x1",
            "dragonfly --groups 3 --chassis 2 --blades 2 --nics 1",
        ),
        (
            "aries-2x1x4x2",
            "dragonfly --groups 2 --chassis 1 --blades 4 --nics 2",
        ),
    ] {
        let network = made(name);
        let theirs = nameless(&Graph::of(&*network));
        let found = find(&theirs).expect(name);
        assert_eq!(found.same, Same::InOrder, "{name}");
        assert_eq!(found.name, made_by);
        assert_eq!(Graph::of(&*found.network).links, Graph::of(&*network).links);
        let other = shuffled(&theirs, 5);
        let found = find(&other).expect(name);
        if theirs.routers.len() == 1 {
            continue;
        }
        let Same::ByLinks([routers, nics]) = found.same else {
            panic!("{name}: {:?}", found.same);
        };
        // Under the names of the file, the nodes have the file's links.
        let called = Graph {
            routers,
            nics,
            ..nameless(&Graph::of(&*found.network))
        };
        let again = called.by_name(&other).expect("the same names");
        assert_eq!(again.joined(), other.joined(), "{name}");
    }
}

#[test]
fn every_ready_network_is_found_without_its_name() {
    for (name, description) in ready() {
        let network = machines().read(name, description).expect(name);
        let found = find(&nameless(&Graph::of(&*network))).expect(name);
        let both = [&network, &found.network].map(|network| Graph::of(&**network).joined());
        assert_eq!(both[0], both[1], "{name} is not {}", found.name);
    }
}

#[test]
fn graphs_of_other_networks_are_not_recognised() {
    let mut graph = nameless(&Graph::of(&*made("t3e-3x3x3")));
    // Swap the ends of two links: all node degrees stay the same.
    let routers: Vec<usize> = (0..graph.links.len())
        .filter(|&link| {
            graph.links[link]
                .iter()
                .all(|end| matches!(end.node, Node::Router(_)))
        })
        .collect();
    let (one, other) = (routers[0], routers[routers.len() / 2]);
    let kept = graph.links[one][1];
    graph.links[one][1] = graph.links[other][1];
    graph.links[other][1] = kept;
    let error = find(&graph).expect_err("it is none");
    assert!(error.to_string().contains("27 routers"), "{error}");
    let mut fewer = nameless(&Graph::of(&*made("t3e-3x3x3")));
    fewer.links.remove(routers[3]);
    fewer.counts_links = false;
    let error = find(&fewer).expect_err("it is none").to_string();
    assert!(
        error.ends_with("`t3e --size 3x3x3` except for 1 missing link"),
        "{error}"
    );
}

#[test]
fn links_that_are_missing_are_named_and_left_out() {
    for (name, link, word) in [
        ("t3e-2x3x3", 5, "broken"),
        ("aries-3x2x2x1", 14, "remove"),
        ("quickstart", 8, "links"),
    ] {
        let network = match ready().find(|(ready, _)| *ready == name) {
            Some((_, text)) => machines().read(name, text).expect(name),
            None => made(name),
        };
        let mut graph = Graph::of(&*network);
        graph.links.remove(link);
        let missing = Difference::Missing(BTreeSet::from([link]));
        assert_eq!(graph.compare(&*network), Err(missing), "{name}");
        let without = network.without(&BTreeSet::from([link])).expect(name);
        let text = without.write();
        assert!(text.contains(word), "{name}: {text}");
        let again = machines().read(name, &text).expect(name);
        assert_eq!(&*again, &*without, "{name}");
        assert_ne!(&*again, &*network, "{name}");
        // A torus lists broken links; the others omit them.
        let left = Graph::of(&*again).links.len();
        let is_wired = usize::from(word == "broken");
        assert_eq!(left, graph.links.len() + is_wired, "{name}");
        // Without ports the comparison knows only the number of links between two nodes.
        let Err(Difference::Missing(links)) = nameless(&graph).compare(&*network) else {
            panic!("{name}");
        };
        assert_eq!(links.len(), 1, "{name}");
    }
    // A NIC's link is not one that a torus can list as broken.
    let torus = made("t3e-2x2x2");
    let nic = torus.link_count() - 1;
    assert!(torus.without(&BTreeSet::from([nic])).is_none());
}

#[test]
fn anynet_lists_all_links_or_is_refused_with_a_reason() {
    let (mut said, mut merged) = (0, 0);
    for (name, description) in ready() {
        let network = machines().read(name, description).expect(name);
        let Ok(export) = export(&*network, description, Written::BooksimAnynet) else {
            continue;
        };
        said += 1;
        merged += export.left_out.len() - 1;
        let (graph, found) = read(name, &export.text, Readable::BooksimAnynet).expect(name);
        assert_eq!(found, None);
        graph.compare(&*network).expect(name);
        // Any missing line is noticed.
        let fewer = export.text.replacen(" router 1", "", 1);
        if fewer != export.text {
            let (graph, _) = read(name, &fewer, Readable::BooksimAnynet).expect(name);
            let difference = graph.compare(&*network).expect_err(name).to_string();
            assert!(difference.contains("link"), "{difference}");
        }
    }
    assert!(said > 5 && merged > 0, "{said} {merged}");
}

#[test]
fn files_of_booksim_are_read() {
    let text = "router 0 node 0 3 node 1 router 1 15\n\nnode 2 router 1\nrouter 1 router 0 15 \n";
    let (graph, _) = read("x", text, Readable::BooksimAnynet).expect("a file of BookSim");
    assert_eq!(graph.counts(), (2, 3));
    assert_eq!(graph.links.len(), 4);
}

#[test]
fn mistakes_in_files_are_reported_with_their_location() {
    let graphml = |body: &str| format!("<graphml><graph>{body}</graph></graphml>");
    for (format, text, word, offset) in [
        (
            Readable::BooksimAnynet,
            "router 0 nod 1".to_owned(),
            "`nod`",
            9,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 node".to_owned(),
            "node without a number",
            9,
        ),
        (
            Readable::BooksimAnynet,
            "router 99999999".to_owned(),
            "expected a number below",
            7,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 router 0".to_owned(),
            "itself",
            16,
        ),
        (
            Readable::BooksimAnynet,
            "node 0 node 1".to_owned(),
            "not to a node",
            12,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 node 1".to_owned(),
            "node 0 is not linked to a router",
            15,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 node 0\nrouter 1 node 0".to_owned(),
            "already linked to router 0",
            30,
        ),
        (Readable::Graphml, "<graphml>".to_owned(), "never closed", 0),
        (Readable::Graphml, "<graphml/>".to_owned(), "no <graph>", 0),
        (Readable::Graphml, graphml("<node/>"), "no id", 16),
        (
            Readable::Graphml,
            graphml("<edge source='a'/>"),
            "no target",
            16,
        ),
        (
            Readable::Graphml,
            graphml("<edge source='a' target='b'/>"),
            "unknown node `a`",
            16,
        ),
        (
            Readable::Graphml,
            graphml("<node id='a'/><node id='a'/>"),
            "duplicate node id `a`",
            30,
        ),
        (
            Readable::Graphml,
            graphml("<node id='a'><data key='kind'>cat</data></node>"),
            "`cat`",
            16,
        ),
    ] {
        let InterchangeError::Mistake {
            message,
            span: found,
            ..
        } = read("x", &text, format).expect_err(&text)
        else {
            panic!("{text}");
        };
        assert!(message.contains(word), "{text}: {message}");
        assert_eq!(found.offset(), offset, "{text}: {message}");
    }
}

#[test]
fn containerlab_has_a_node_and_a_line_for_everything() {
    for (name, description) in ready() {
        let network = machines().read(name, description).expect(name);
        let export = export(&*network, description, Written::Containerlab).expect("a lab");
        let count = |what: &str| export.text.matches(what).count();
        assert_eq!(count("cmd: phitwire run"), network.nodes().len(), "{name}");
        assert_eq!(count("- endpoints: ["), network.link_count(), "{name}");
    }
}
