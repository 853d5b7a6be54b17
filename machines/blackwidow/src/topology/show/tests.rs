use super::{dot, svg, table};
use crate::topology::BlackWidowSpec;

fn quickstart() -> crate::topology::FoldedClos {
    let spec = BlackWidowSpec {
        name: String::from("quickstart"),
        processors: 8,
        subtree: 4,
        ..BlackWidowSpec::default()
    };
    spec.generate().expect("a valid network")
}

#[test]
fn a_table_names_routers_and_links() {
    insta::assert_snapshot!(table(&quickstart(), 100));
}

#[test]
fn a_long_table_counts_omitted_rows() {
    let spec = BlackWidowSpec {
        processors: 1024,
        ..BlackWidowSpec::default()
    };
    let text = table(&spec.generate().expect("a valid network"), 3);
    assert!(text.contains("... and 61 routers more"), "{text}");
    assert!(text.contains("... and 2045 links more"), "{text}");
}

#[test]
fn dot_joins_every_two_neighbours_once() {
    let text = dot(&quickstart());
    assert_eq!(text.matches(" -- ").count(), 9, "{text}");
    assert!(
        text.contains("\"router r1-0\" -- \"router r1-1\" [label=\"4 links\""),
        "{text}"
    );
}

#[test]
fn svg_draws_every_node_once_and_stays_inside() {
    let text = svg(&quickstart()).expect("small enough");
    for name in ["nic0", "nic7", "r1-0", "r1-1"] {
        assert_eq!(
            text.matches(&format!(">{name}</text>")).count(),
            1,
            "{name}"
        );
    }
    let (links, legend) = (9, 2);
    assert_eq!(text.matches("<path").count(), links + legend);
    assert_eq!(text.matches('<').count(), text.matches('>').count());
}

#[test]
fn large_networks_are_drawn_by_subtrees_and_expanded_one_by_one() {
    let network = |processors| {
        let spec = BlackWidowSpec {
            processors,
            ..BlackWidowSpec::default()
        };
        spec.generate().expect("a valid network")
    };
    let drawing = |processors| super::drawing(&network(processors), None).expect("a drawing");
    let whole = drawing(16_384);
    for words in [">subtree 31</text>", ">rank 3</text>", "512 per subtree"] {
        assert!(whole.contains(words), "{words}");
    }
    assert!(whole.len() < 2 << 20);
    assert!(drawing(4_608).contains(">subtree 0</text>"));
    let large = network(16_384);
    let part = super::drawing(&large, Some("subtree 1")).expect("a subtree");
    assert!(part.contains("subtree 1 (#"), "{}", &part[..400]);
    let range = part
        .split_once("(#")
        .and_then(|(_, rest)| rest.split_once(')'));
    let (range, _) = range.expect("its processors");
    assert_eq!(Ok(part.clone()), super::drawing(&large, Some(range)));
    let said = super::drawing(&large, Some("9999"))
        .expect_err("no such subtree")
        .to_string();
    assert!(said.contains("the parts are subtrees 0 to "), "{said}");
    let small = quickstart();
    assert_eq!(
        super::drawing(&small, None),
        Ok(svg(&small).expect("small"))
    );
}

#[test]
fn svg_of_a_large_network_is_refused() {
    let spec = BlackWidowSpec {
        processors: 4608,
        ..BlackWidowSpec::default()
    };
    let error = svg(&spec.generate().expect("a valid network")).expect_err("too large");
    assert_eq!(error.0, 288);
}
