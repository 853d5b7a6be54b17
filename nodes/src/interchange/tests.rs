use super::*;
use phitwire::machine::{self, MACHINES};

fn ready() -> impl Iterator<Item = (&'static str, &'static str)> {
    MACHINES
        .iter()
        .flat_map(|machine| machine.ready.iter().copied())
}

#[test]
fn graphml_gives_every_ready_network_back() {
    for (name, description) in ready() {
        let network = machine::read(name, description).expect(name);
        let export = export(&*network, description, Written::Graphml).expect("a graph");
        assert_eq!(export.left_out, Vec::<String>::new());
        let (graph, found) = read(name, &export.text, Readable::Graphml).expect("what was written");
        assert_eq!(found.as_deref(), Some(description), "{name}");
        assert_eq!(graph, Graph::of(&*network), "{name}");
        graph.compare(&*network).expect("the same");
    }
}

#[test]
fn anynet_says_who_is_joined_or_why_it_cannot() {
    let (mut said, mut merged) = (0, 0);
    for (name, description) in ready() {
        let network = machine::read(name, description).expect(name);
        let Ok(export) = export(&*network, description, Written::BooksimAnynet) else {
            continue;
        };
        said += 1;
        merged += export.left_out.len() - 1;
        let (graph, found) = read(name, &export.text, Readable::BooksimAnynet).expect(name);
        assert_eq!(found, None);
        graph.compare(&*network).expect(name);
        // Any line less is noticed.
        let fewer = export.text.replacen(" router 1", "", 1);
        if fewer != export.text {
            let (graph, _) = read(name, &fewer, Readable::BooksimAnynet).expect(name);
            let difference = graph.compare(&*network).expect_err(name).to_string();
            assert!(difference.contains("links"), "{difference}");
        }
    }
    assert!(said > 5 && merged > 0, "{said} {merged}");
}

#[test]
fn what_booksim_reads_is_read() {
    let text = "router 0 node 0 3 node 1 router 1 15\n\nnode 2 router 1\nrouter 1 router 0 15 \n";
    let (graph, _) = read("x", text, Readable::BooksimAnynet).expect("a file of BookSim");
    assert_eq!(graph.counts(), (2, 3));
    assert_eq!(graph.links.len(), 4);
}

#[test]
fn mistakes_of_files_are_told_with_their_places() {
    let graphml = |body: &str| format!("<graphml><graph>{body}</graph></graphml>");
    for (format, text, word, place) in [
        (
            Readable::BooksimAnynet,
            "router 0 nod 1".to_owned(),
            "`nod`",
            9,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 node".to_owned(),
            "missing",
            9,
        ),
        (
            Readable::BooksimAnynet,
            "router 99999999".to_owned(),
            "no number",
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
            "not at a node",
            12,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 node 1".to_owned(),
            "node 0 is at no router",
            15,
        ),
        (
            Readable::BooksimAnynet,
            "router 0 node 0\nrouter 1 node 0".to_owned(),
            "router 0 already",
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
            "no node `a`",
            16,
        ),
        (
            Readable::Graphml,
            graphml("<node id='a'/><node id='a'/>"),
            "two nodes",
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
            place: found,
            ..
        } = read("x", &text, format).expect_err(&text)
        else {
            panic!("{text}");
        };
        assert!(message.contains(word), "{text}: {message}");
        assert_eq!(found.offset(), place, "{text}: {message}");
    }
}

#[test]
fn containerlab_has_a_node_and_a_line_for_everything() {
    for (name, description) in ready() {
        let network = machine::read(name, description).expect(name);
        let export = export(&*network, description, Written::Containerlab).expect("a lab");
        let count = |what: &str| export.text.matches(what).count();
        assert_eq!(count("cmd: phitwire run"), network.nodes().len(), "{name}");
        assert_eq!(count("- endpoints: ["), network.link_count(), "{name}");
    }
}
