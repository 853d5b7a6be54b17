//! Channel tables are searched for, written, read and checked.

use std::collections::BTreeSet;

use phitwire_framing::t3e::direction::Direction;

use super::{SHAPES, broken, shape, torus};
use crate::route::{RouteRegisters, dependency};
use crate::topology::{Channels, GivenTables, RingKind, Torus, TorusSpec};
use crate::vc;
use phitwire::catalogue::{Catalogue, Machine};
use phitwire::net::{
    ChannelSearch, Effort, Faults, Files, FoundChannels, MistakeKind as K, Network, NodeRef,
    Problems, RegisterValue, Reroutable as _, RoutedTables, TunableChannels,
};

static OWN: [&Machine; 1] = [&crate::MACHINE];
const MACHINES: Catalogue = Catalogue::new(&OWN);

/// A ring of eight in X, and rings of one in the other dimensions.
const RING: &str = "family = \"t3e\"\nname = \"x\"\nsize = \"8x1x1\"\n";

fn search(torus: &Torus, wanted: &ChannelSearch) -> FoundChannels {
    let found = torus.search_channels(wanted);
    found.expect("a torus has rings")
}

/// Tables of the ring of eight in both directions: all of them `table` except at some ordinates.
fn tables(table: &str, others: &[(usize, &str)]) -> String {
    let mut all = [table; 8];
    for &(ordinate, table) in others {
        all[ordinate] = table;
    }
    format!(
        "[[vc_tables]]\ndimensions = [\"X\"]\nordinates = [0, 1, 2, 3, 4, 5, 6, 7]\ndatelines = [0, 7]\n\
         plus = {all:?}\nminus = {:?}\n",
        ["00000000"; 8]
    )
}

fn read(text: &str) -> Result<Box<dyn Network>, Problems> {
    MACHINES.read("x.toml", text)
}

fn read_with_files(
    text: &str,
    name: &'static str,
    file: &str,
) -> Result<Box<dyn Network>, Problems> {
    let file = file.as_bytes().to_vec();
    let files = Files::new(move |asked| match asked == name {
        true => Ok(file.clone()),
        false => Err(format!("cannot read {asked}: no such file")),
    });
    let read = MACHINES.read_with_files("x.toml", text.as_bytes(), Effort::Bounded, &files);
    read.map(|read| read.network)
}

fn of(network: &dyn Network) -> &Torus {
    network.of_machine().expect("a torus")
}

#[test]
fn the_default_search_finds_the_routers_tables() {
    for text in SHAPES {
        let torus = torus(text);
        let wanted = ChannelSearch::default();
        let Ok(found) = torus.search_channels(&wanted) else {
            assert_eq!(text, "1x1x1");
            continue;
        };
        assert_eq!(found.report.circle, None);
        let read = torus.read_channel_tables("x", found.file.as_bytes());
        let read = read.unwrap_or_else(|problems| panic!("{}", problems.lines()));
        assert_eq!(Ok(read), torus.channel_tables(), "{text}");
    }
}

#[test]
fn rings_that_are_alike_have_the_same_tables() {
    for torus in [
        torus("4x4x2+2x4x1+2x2x1"),
        torus("4x10x9+4x4x1+2x10x2"),
        broken("8x4x4+8x2x2+4x4x1", &["(7,0,0)+X"], 0),
        broken("2x32x2", &["(0,3,0)+Y", "(1,17,1)+Y"], 0),
    ] {
        let shape = torus.shape();
        let registers = &torus.routes().expect("tables").registers;
        for (kind, rings) in RingKind::all(shape) {
            let of = |nodes: &Vec<u32>| -> Vec<[u8; 2]> {
                let of = |&node: &u32| {
                    let tables = registers[node as usize].vc_tables;
                    [tables[kind.dimension], tables[kind.dimension + 3]]
                };
                nodes.iter().map(of).collect()
            };
            let tables: BTreeSet<_> = rings.iter().map(of).collect();
            assert_eq!(tables.len(), 1, "{kind} of {shape}");
        }
    }
}

#[test]
fn a_search_reports_its_result() {
    let torus = torus("8x4x2");
    let found = search(&torus, &ChannelSearch::default());
    let ring = &found.report.rings[0];
    assert_eq!(ring.dimensions, ["X"]);
    assert_eq!((ring.count, ring.datelines[1]), (8, 7));
    let whole = &ring.imbalance[0];
    // Compare with T3E table 1.
    assert_eq!((whole.way, whole.nodes), ("+", 8));
    assert_eq!(whole.before.average, 0.8125);
    assert_eq!(whole.after.average, 0.03125);
    for line in [
        "8 rings in X, ordinates 0 to 7",
        "0.812  0.031",
        "No deadlock",
    ] {
        assert!(found.text.contains(line), "{line} in {}", found.text);
    }
    // A search with only a few changes finds worse tables.
    let little = ChannelSearch {
        rings: vec![String::from("X")],
        steps: Some(1),
        seed: 7,
    };
    let little = search(&torus, &little);
    assert_eq!(little.report.rings.len(), 1);
    assert_ne!(little.file, found.file);
    let other = ChannelSearch {
        seed: 1,
        ..ChannelSearch::default()
    };
    assert_ne!(search(&torus, &other).file, found.file, "another optimum");
    for (word, expected) in [("W", "expected X, Y or Z"), ("x", "unknown dimension `x`")] {
        let wanted = ChannelSearch {
            rings: vec![word.to_owned()],
            ..ChannelSearch::default()
        };
        let refused = torus.search_channels(&wanted).expect_err(word);
        assert!(refused.contains(expected), "{refused}");
    }
    let flat = super::torus("4x4x1");
    let wanted = ChannelSearch {
        rings: vec![String::from("Z")],
        ..ChannelSearch::default()
    };
    let refused = flat.search_channels(&wanted).expect_err("flat");
    assert_eq!(refused, "the torus has no rings in Z");
}

#[test]
fn written_tables_are_read_again_in_a_description_and_from_a_file() {
    let wanted = ChannelSearch {
        seed: 3,
        steps: Some(1),
        ..ChannelSearch::default()
    };
    for text in ["4x2x2", "3x3x3", "4x4x2+2x4x1+2x2x1", "16x10x1"] {
        let plain = torus(text);
        let found = search(&plain, &wanted);
        let spec = TorusSpec {
            vc_tables: GivenTables::read_file("x", found.file.as_bytes(), plain.shape())
                .unwrap_or_else(|problems| panic!("{}", problems.lines())),
            ..TorusSpec::new(shape(text))
        };
        let given = spec.torus();
        let read_again = read(&given.write()).unwrap_or_else(|p| panic!("{}", p.lines()));
        assert_eq!(of(&*read_again), &given);
        assert_ne!(given, plain);
        let named = plain
            .write()
            .replacen("\n\n", "\nvc_tables = \"t.toml\"\n", 1);
        let named = read_with_files(&named, "t.toml", &found.file);
        assert_eq!(
            of(&*named.unwrap_or_else(|p| panic!("{}", p.lines()))),
            &given
        );
        // Routers get these tables.
        let loaded = given
            .read_channel_tables("x", found.file.as_bytes())
            .expect("right");
        assert_eq!(given.channel_tables(), Ok(loaded));
        assert_ne!(given.channel_tables(), plain.channel_tables());
        // Another channel assignment may still be chosen.
        let chosen = given.choosing(None, Some(Channels::Optimised));
        assert_eq!(chosen.channel_tables(), plain.channel_tables());
        assert_eq!(
            given.choosing(None, None).channel_tables(),
            given.channel_tables()
        );
    }
}

#[test]
fn a_digit_is_the_entry_of_its_position() {
    let text = format!("{RING}{}", tables("00000000", &[(2, "00010100")]));
    let network = read(&text).unwrap_or_else(|problems| panic!("{}", problems.lines()));
    let torus = of(&*network);
    let registers = &torus.routes().expect("tables").registers;
    assert_eq!(registers[2].vc_tables, [1 << 3 | 1 << 5, 0, 0, 0, 0, 0]);
    assert_eq!(registers[2].entry_vc(Direction::PlusX, 3), 1);
    assert_eq!(registers[2].entry_vc(Direction::PlusX, 4), 0);
}

#[test]
fn a_wrong_table_is_refused_with_its_cycle() {
    let text = format!("{RING}{}", tables("11111111", &[]));
    let check = |problems: &Problems| {
        let mistakes: Vec<_> = problems.mistakes().collect();
        assert_eq!(mistakes.len(), 1, "{}", problems.lines());
        assert_eq!(mistakes[0].kind, K::CyclicDependency);
        for ordinate in 0..8 {
            let channel = format!("({ordinate},0,0) +X VC1");
            assert!(mistakes[0].message.contains(&channel), "{}", mistakes[0]);
        }
        assert!(mistakes[0].help.contains("phitwire topology channels"));
    };
    let problems = read(&text).expect_err("all cross the dateline on VC1");
    check(&problems);
    assert_eq!(problems.line_and_column(0), (4, 1), "the section");
    let named = format!("{RING}vc_tables = \"t.toml\"\n");
    let problems = read_with_files(&named, "t.toml", &tables("11111111", &[]));
    let problems = problems.expect_err("all cross the dateline on VC1");
    check(&problems);
    assert_eq!(problems.line_and_column(0), (4, 13), "the name of the file");
    // These tables are valid if no packet crosses the dateline with them.
    let text = format!("{RING}{}", tables("00000000", &[(0, "11111111")]));
    assert!(read(&text).is_ok());
}

/// A change in a section, with the position of the mistake, its message and its help.
type Mistaken = (
    &'static str,
    &'static str,
    (usize, usize),
    &'static str,
    &'static str,
);

#[rustfmt::skip] // One mistake per line.
const MISTAKES: [Mistaken; 20] = [
    ("[[vc_tables]]", "vc_tables = 3\n[other]", (4, 13), "found an integer", "an array"),
    ("dimensions = [\"X\"]\n", "", (4, 1), "lacks the key `dimensions`", "[\"X\"]"),
    ("[\"X\"]", "\"X\"", (5, 14), "found a string", "an array"),
    ("[\"X\"]", "[\"W\"]", (5, 15), "unknown value \"W\"", "\"X\" or \"Y\""),
    ("[\"X\"]", "[]", (5, 14), "one or more distinct dimensions", "at most once"),
    ("[\"X\"]", "[\"X\", \"X\"]", (5, 14), "one or more distinct dimensions", "at most once"),
    ("[\"X\"]", "[\"X\", \"Y\"]", (6, 13), "no ring in Y of the ordinates 0 to 7", "rings in X of"),
    ("6, 7]\n", "6]\n", (6, 13), "no ring in X of the ordinates 0 to 6", "X of the ordinates 0 to 7"),
    ("6, 7]\n", "6, 7, 9]\n", (6, 13), "no ring in X of the ordinates 0 to 7, 9", "has rings in X"),
    ("[0, 1,", "[1, 1,", (6, 13), "in ascending order", "each ordinate once"),
    ("[0, 1,", "[0, 99,", (6, 17), "99 is out of range", "0 to 31"),
    ("[0, 7]", "[7, 0]", (7, 13), "datelines of + and - in X of", "write [0, 7]"),
    ("[0, 7]", "[0]", (7, 13), "expected the two datelines", "of + and -"),
    ("plus = [\"00000000\", ", "plus = [", (8, 8), "7 tables for a ring of 8 nodes", "one table per"),
    ("plus = [\"00000000\"", "plus = [\"0000000\"", (8, 9), "\"0000000\" is not a table", "eight digits"),
    ("plus = [\"00000000\"", "plus = [\"000000000\"", (8, 9), "not a table of eight", "n + 24"),
    ("plus = [\"00000000\"", "plus = [\"00000002\"", (8, 9), "not a table of eight", "eight digits"),
    ("plus = [\"00000000\"", "plus = [\"\\u001b[31m\"", (8, 9), "\\u{1b}[31m", "eight digits"),
    ("plus = [\"00000000\"", "plus = [0", (8, 9), "found an integer", "a string"),
    ("minus", "mines", (9, 1), "has no key `mines`", "did you mean `minus`?"),
];

#[test]
fn mistakes_have_places() {
    let good = tables("00000000", &[]);
    for (from, to, at, expected, help) in MISTAKES {
        assert!(good.contains(from), "{from}");
        let text = format!("{RING}{}", good.replacen(from, to, 1));
        let problems = read(&text).expect_err(expected);
        let is_expected = |(index, mistake): (usize, &phitwire::net::Mistake)| {
            problems.line_and_column(index) == at
                && mistake.message.contains(expected)
                && mistake.help.contains(help)
        };
        let found = problems.mistakes().enumerate().any(is_expected);
        assert!(found, "{at:?} {expected} {help} in {}", problems.lines());
        // A separate file has the same mistakes three lines higher.
        if !to.contains("other") {
            let torus = torus("8x1x1");
            let alone = torus.read_channel_tables("t", good.replacen(from, to, 1).as_bytes());
            let alone = alone.expect_err(expected);
            assert_eq!(alone.mistakes().len(), problems.mistakes().len());
            assert!(alone.lines().contains(expected), "{}", alone.lines());
        }
    }
    let twice = format!("{RING}{good}{good}");
    let problems = read(&twice).expect_err("twice");
    assert!(
        problems.lines().contains("already have tables"),
        "{}",
        problems.lines()
    );
    assert_eq!(problems.line_and_column(0), (10, 1));
}

#[test]
fn mistakes_in_another_file_have_a_location() {
    let named = format!("{RING}vc_tables = \"t.toml\"\n");
    for (file, expected) in [
        (
            "",
            "t.toml:1:1: the file of tables lacks the key `vc_tables`",
        ),
        ("x = 1\n", "has no key `x`"),
        ("[[vc_tables]\n", "t.toml:1:"),
        (
            "[[vc_tables]]\ndimensions = 3\n",
            "t.toml:2:14: found an integer",
        ),
        ("vc_tables = \"t.toml\"\n", "t.toml:1:13: found a string"),
    ] {
        let problems = read_with_files(&named, "t.toml", file).expect_err(expected);
        assert!(
            problems.lines().contains(expected),
            "{expected} in {}",
            problems.lines()
        );
        let all = 0..problems.mistakes().len();
        assert!(
            all.into_iter()
                .all(|index| problems.line_and_column(index) == (4, 13))
        );
    }
    let missing = read_with_files(&named, "other.toml", "").expect_err("missing");
    assert!(
        missing
            .lines()
            .contains("\"t.toml\": cannot read t.toml: no such file"),
        "{}",
        missing.lines()
    );
    let none = read(&named).expect_err("no files");
    assert!(
        none.lines().contains("other files cannot be read here"),
        "{}",
        none.lines()
    );
    let many = "[[vc_tables]]\n".repeat(100_000);
    let problems = read_with_files(&named, "t.toml", &many).expect_err("too many");
    assert!(problems.lines().len() < 100_000 && problems.more() > 0);
}

#[test]
fn written_tables_hold_for_large_machines_too() {
    let ordinates: Vec<u8> = (0..16).collect();
    let text = format!(
        "family = \"t3e\"\nname = \"x\"\nsize = \"16x16x8\"\n[[vc_tables]]\ndimensions = [\"Y\"]\n\
         ordinates = {ordinates:?}\ndatelines = [0, 15]\nplus = {0:?}\nminus = {0:?}\n",
        ["11111111"; 16]
    );
    let problems = read(&text).expect_err("a cycle among 2048 nodes");
    assert!(problems.lines().contains("Y VC1"), "{}", problems.lines());
}

#[test]
fn entries_unusable_around_a_failure_are_restored() {
    // From 6 no packet goes + to 5, seven hops across the dateline, until the link between them
    // breaks.
    let text = format!(
        "{RING}{}",
        tables("00000000", &[(6, "00000100"), (2, "00010000")])
    );
    let network = read(&text).unwrap_or_else(|problems| panic!("{}", problems.lines()));
    let torus = of(&*network);
    let shape = torus.shape();
    let plus =
        |registers: &[RouteRegisters]| [2, 6].map(|node: usize| registers[node].vc_tables[0]);
    let described = torus.routes().expect("tables");
    assert_eq!(plus(&described.registers), [1 << 3, 1 << 5]);
    let mut broken = torus.broken();
    broken.set_link(shape, 5, Direction::PlusX, true);
    let around = torus
        .routes_around(broken, torus.destinations())
        .expect("tables");
    assert_eq!(plus(&around.registers), [1 << 3, 0]);
    // Tables that routers get while the lab runs follow the same rule.
    let link = torus
        .link_at(5, Direction::PlusX.index() as u8)
        .expect("a link");
    let faults = Faults {
        links: [link as u32].into(),
        ..Faults::default()
    };
    let routed = torus.routed(&faults);
    assert_eq!(routed.refused(), None);
    let channels = |routed: &dyn RoutedTables, node| {
        let tables = routed.tables(node).expect("tables");
        tables["channels"][0].clone()
    };
    assert_eq!(channels(&*routed, 6), 0);
    assert_eq!(channels(&*torus.routed(&Faults::default()), 6), 1 << 5);
}

/// All registers of the ring, with the given tables of +X.
fn holding(torus: &Torus, plus: impl Fn(u32) -> u64) -> Vec<RegisterValue> {
    let mut registers = torus.channel_tables().expect("tables");
    for RegisterValue {
        node,
        register,
        value,
    } in &mut registers
    {
        *value = match (node, &**register) {
            (NodeRef::Chip(node), "vc_table.0") => plus(*node),
            _ => 0,
        };
    }
    registers
}

#[test]
fn tables_are_judged_for_themselves_and_while_they_change() {
    let torus = torus("8x1x1");
    let zeros = holding(&torus, |_| 0);
    let ones = holding(&torus, |_| 0xff);
    // Either half of the ring may begin on VC1. If some routers have the first tables and some the
    // second, both halves do.
    let [low, high] = [0, 1].map(|half| holding(&torus, |node| u64::from(node / 4 == half) * 0xff));
    assert_eq!(torus.judge_channels(&zeros, &low), Ok(()));
    assert_eq!(torus.judge_channels(&zeros, &high), Ok(()));
    let refused = torus.judge_channels(&low, &high).expect_err("a circle");
    assert!(
        refused.starts_with("while only some routers have the new tables"),
        "{refused}"
    );
    assert!(refused.contains("(0,0,0) +X VC1"), "{refused}");
    let refused = torus.judge_channels(&zeros, &ones).expect_err("a circle");
    assert!(
        refused.starts_with("possible deadlock: packets can wait for each other in a cycle"),
        "{refused}"
    );
    // A change that corrects faulty tables is allowed.
    assert_eq!(torus.judge_channels(&ones, &low), Ok(()));
    // Registers that are not listed stay unchanged, so the circle remains.
    assert!(torus.judge_channels(&ones, &[]).is_err());
    for (register, value) in [("vc_table.6", 0), ("vc_table.0", 256), ("physical", 0)] {
        let node = NodeRef::Chip(0);
        let wrong = RegisterValue {
            node,
            register: register.to_owned(),
            value,
        };
        assert!(
            torus.judge_channels(&zeros, &[wrong]).is_err(),
            "{register}"
        );
    }
}

#[test]
fn tables_by_any_seed_are_safe() {
    for seed in 0..5 {
        let wanted = ChannelSearch {
            seed,
            steps: Some(500),
            ..ChannelSearch::default()
        };
        let torus = torus("10x9x2+4x4x2");
        let found = search(&torus, &wanted);
        assert_eq!(found.report.circle, None);
        let tables = GivenTables::read_file("x", found.file.as_bytes(), torus.shape());
        let mut registers = torus.routes().expect("tables").registers.clone();
        tables.expect("right").fill(torus.shape(), &mut registers);
        let tables = &torus.routes().expect("tables").tables;
        assert_eq!(dependency::check(torus.shape(), &registers, tables), Ok(()));
    }
    let ring = vc::Ring::whole(8).expect("a valid ring size");
    let entries = vec![[0; 2]; 8];
    let plain = vc::VcTables::from_entries(ring.clone(), &entries);
    assert_eq!(plain, Some(vc::VcTables::time_of_crossing(ring.clone())));
    assert_eq!(vc::VcTables::from_entries(ring, &entries[1..]), None);
}
