//! Descriptions are parsed, written and checked, with the position of every mistake.

use super::{network, spec};
use crate::link::rates;
use crate::route::registers::{Bias, PortKind};
use crate::topology::{Arrangement, Dragonfly, DragonflyLink, DragonflySpec, read, show, write};
use phitwire::net::{Clock, End, NodeRef, Profile};
use phitwire_framing::carrier::lanes::Permutation;

fn again(network: &Dragonfly) -> Dragonfly {
    let text = write(network);
    read("again.toml", &text).unwrap_or_else(|problems| panic!("{}\n{text}", problems.lines()))
}

#[test]
fn written_networks_are_read_back() {
    for (_, arrangement) in Arrangement::ALL {
        let spec = DragonflySpec {
            arrangement,
            black_links: Some(2),
            ..spec(4, 3, 2, 3)
        };
        let network = spec.generate().expect("a valid spec");
        assert_eq!(again(&network), network);
    }
}

#[test]
fn differences_from_the_generator_are_written_too() {
    let mut changed = network(3, 2, 2, 4);
    changed.settings.profile = Profile::Paper;
    changed.settings.clock = Clock::Paced { dilation: 7 };
    changed.settings.own.global_rate = rates::G14_0;
    changed.bias[2].minimal = Bias { shift: 1, add: 63 };
    changed.bias[3].growth = 5;
    (changed.host.processes, changed.host.crossing_ns) = (16, 200);
    changed.absent = vec![10];
    let generator = changed.generator.expect("generated");
    changed.links = generator.links(&changed.shape, &changed.absent);
    // One black and one blue link less, and one of them moved, with crossed lanes.
    let blue = changed.links.len() - 1;
    let moved = changed.links.remove(blue);
    changed.links.remove(25);
    changed.links.push(DragonflyLink {
        b: End {
            node: moved.b.node,
            port: 39,
        },
        cable: Permutation::new([2, 0, 1], [true, false, false]).expect("an order"),
        ..moved
    });
    assert_eq!(again(&changed), changed);
    assert!(write(&changed).contains("absent = [\"g2-c1s0\"]"));
    let host = "\n[host]\nprocesses = 16\ncrossing_ns = 200\n";
    assert!(write(&changed).contains(host), "only what differs");
}

#[test]
fn links_of_another_order_are_listed_all() {
    let mut shuffled = network(3, 2, 2, 2);
    shuffled.links.reverse();
    let text = write(&shuffled);
    assert!(text.contains("generate = \"nothing\""));
    let read = again(&shuffled);
    assert_eq!(read.links, shuffled.links);
    assert_eq!(read.generator, None);
}

/// The first line reported for a description with a mistake, after its file name.
fn mistake(text: &str) -> String {
    let problems = read("x", text).expect_err(text);
    let lines = problems.lines();
    lines.lines().next().expect("a mistake").to_owned()
}

const HEAD: &str =
    "family = \"aries\"\nname = \"x\"\n[dragonfly]\ngroups = 2\nchassis = 2\nblades = 2\n";

#[test]
fn mistakes_are_reported_with_their_location() {
    // Added text (`\n` is a new line), position of the mistake, and words of the message.
    let table = r#"
nics = 5 | x:7:8 | out of range
nisc = 2 | x:7:1 | did you mean `nics`?
global_links = 41 | x:7:16 | exceed the 40 global ports
black_links = 15\nset_links = 3 | x:8:13 | sets of 3
arrangement = "random" | x:7:15 | "absolute" or "relative"
absent = ["g2-c0s0"] | x:7:11 | unknown router `g2-c0s0`
generate = "nothing"\nglobal_links = 1 | x:8:16 | `generate` is "nothing"
[wiring]\nremove = ["g0-c0s0:9"] | x:8:11 | no generated link
[wiring]\nlinks = [{ a = "g0-c0s9:9", b = "nic0:0" }] | x:8:16 | unknown node `g0-c0s9`
[wiring]\nlinks = [{ a = "g0-c0s0:44", b = "nic0:0" }] | x:8:16 | no port 44
[wiring]\nlinks = [{ a = "g0-c0s0:20", b = "g0-c1s1:20" }] | x:8:10 | cannot be linked
[wiring]\nlinks = [{ a = "g0-c0s0:30", b = "g1-c1s1:20" }] | x:8:10 | has more than one link
[wiring]\nlinks = [{ a = "g0-c0s0:41", b = "g1-c1s1:20" }] | x:8:10 | is a NIC port
[wiring]\nremove = ["nic3:0"] | x:2:8 | nic3 has no link
[routing]\nroot_classes = [0, 1, 2] | x:8:16 | expected four classes
[routing]\nroot_classes = [0, 1, 2, 3] | x:2:8 | in a cycle
[network]\nlane_rate = 0 | x:8:13 | not a valid lane rate
[network]\noutstanding = 1025 | x:8:15 | 1 to 1024
"#;
    let rows: Vec<&str> = table.trim().lines().collect();
    assert_eq!(rows.len(), 18);
    for row in rows {
        let [tail, place, words] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let line = mistake(&format!("{HEAD}{}\n", tail.replace("\\n", "\n")));
        let is_right = line.starts_with(place) && line.contains(words);
        assert!(is_right, "{tail}: {line}");
    }
    assert!(mistake("family = \"aries\"\nname = \"x\"\n").contains("lacks the key `dragonfly`"));
}

#[test]
fn a_group_that_falls_apart_is_a_mistake() {
    // A group of two routers without the link between them, and no other connection.
    let text = "family = \"aries\"\nname = \"x\"\n[dragonfly]\ngroups = 1\nchassis = 1\nblades = \
                2\n\
                [wiring]\nremove = [\"g0-c0s0:0\"]\n";
    assert!(mistake(text).contains("the network is not connected: 2 pairs"));
}

#[test]
fn drawings_show_every_router_or_give_a_reason() {
    for (groups, chassis, blades, links) in [(1, 1, 1, 0), (3, 2, 2, 2), (9, 6, 16, 4)] {
        let network = network(groups, chassis, blades, links);
        let dot = show::dot(&network);
        let svg = show::svg(&network).expect("small enough to draw");
        for router in network.routers() {
            let name = network.node_name(NodeRef::Chip(router));
            let is_drawn = dot.contains(&format!("\"{name}\"")) && svg.contains(&name);
            assert!(is_drawn, "{name}");
        }
        assert!(show::table(&network, 5).contains(&network.name));
    }
    assert!(show::svg(&network(49, 1, 8, 1)).is_err());
}

fn drawn_links(svg: &str) -> std::collections::BTreeSet<usize> {
    let parts = svg.split("data-links=\"").skip(1);
    let lists = parts.filter_map(|part| part.split('"').next());
    lists
        .flat_map(str::split_whitespace)
        .filter_map(|link| link.parse().ok())
        .collect()
}

#[test]
fn many_groups_are_drawn_as_boxes_and_expanded_one_by_one() {
    let kinds = |network: &Dragonfly, wanted: PortKind| {
        let links = network.links.iter().enumerate();
        let of_kind = links.filter(|(_, link)| network.kind(link) == Some(wanted));
        of_kind
            .map(|(number, _)| number)
            .collect::<std::collections::BTreeSet<_>>()
    };
    // A circle with numbers, one without, and a field of squares.
    for (groups, chassis, blades, links, words) in [
        (9, 2, 8, 8, ">group 8</text>"),
        (20, 2, 8, 1, ">g19</text>"),
        (60, 1, 16, 1, "each square shows the blue links"),
    ] {
        let network = network(groups, chassis, blades, links);
        let drawing = show::drawing(&network, None).expect("a drawing");
        assert!(drawing.contains(words), "{groups}");
        assert_eq!(
            drawn_links(&drawing),
            kinds(&network, PortKind::Blue),
            "{groups}"
        );
        assert!(drawing.len() < 1 << 20);
    }
    let large = network(9, 2, 8, 8);
    let group = show::drawing(&large, Some("group 3")).expect("a group");
    assert!(group.contains(">g3-c1s7</text>") && !group.contains(">g2-c0s0</text>"));
    assert!(
        group.contains("blue links to group 0: 8, group 1: 8"),
        "{group}"
    );
    assert_eq!(group, show::drawing(&large, Some("3")).expect("a group"));
    for wrong in ["9", "chassis 1", "-1", ""] {
        let said = show::drawing(&large, Some(wrong))
            .expect_err(wrong)
            .to_string();
        assert!(said.contains("the parts are groups 0 to 8"), "{said}");
    }
    // Small networks are drawn in full, as when watching a lab.
    let small = network(3, 2, 2, 2);
    assert_eq!(
        show::drawing(&small, None),
        Ok(show::svg(&small).expect("small"))
    );
}

/// Links leave a group in separate lanes between the boxes.
#[test]
fn blue_links_pass_behind_no_router() {
    let network = network(3, 2, 2, 2);
    let svg = show::svg(&network).expect("small");
    let numbers = |text: &str| -> Vec<f64> {
        let is_apart = |c: char| !c.is_ascii_digit() && c != '.' && c != '-';
        let parts = text.split(is_apart).filter(|part| !part.is_empty());
        parts.filter_map(|part| part.parse().ok()).collect()
    };
    let boxes: Vec<_> = svg
        .split("<rect ")
        .filter(|part| part.starts_with("x=") && part.contains("rx=\"4\""))
        .map(|part| numbers(part)[..4].to_vec())
        .collect();
    // For each path: the lane, and its range of heights, at both ends.
    let lanes: Vec<[f64; 3]> = svg
        .split("<path d=\"")
        .filter_map(|path| path.split_once('"').map(|(path, _)| path))
        .filter(|path| path.contains('V'))
        .flat_map(|path| {
            let all = numbers(path);
            [[all[2], all[3], all[4]], [all[9], all[11], all[10]]]
        })
        .collect();
    assert_eq!((boxes.len(), lanes.len()), (12, 12));
    for (number, &[lane, from, to]) in lanes.iter().enumerate() {
        for frame in &boxes {
            let [x, y, width, height] = frame[..] else {
                panic!("four numbers")
            };
            let is_beside = lane < x || lane > x + width;
            let is_apart = from.max(to) < y || from.min(to) > y + height;
            assert!(is_beside || is_apart, "lane {lane} in {frame:?}");
        }
        let is_own =
            |&[other, _, edge]: &[f64; 3]| (other - lane).abs() > 1.0 || (edge - to).abs() > 1.0;
        assert!(
            lanes[..number].iter().all(is_own),
            "lane {lane} occurs twice"
        );
    }
}

#[test]
fn the_tables_of_a_small_network() {
    insta::assert_snapshot!("small-table", show::table(&network(3, 2, 2, 2), 4));
    insta::assert_snapshot!("small-inventory", show::inventory(&network(3, 2, 2, 2)));
    let mut spec = spec(6, 6, 16, 48);
    spec.shape.nics = 4;
    let network = spec.generate().expect("the network fits");
    insta::assert_snapshot!("partial-inventory", show::inventory(&network));
}
