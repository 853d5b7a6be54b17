use phitwire_framing::t3e::tag::{Coordinates, Tag};

use super::{SHAPES, broken, shape, torus};
use crate::route::{dependency, walk};
use crate::topology::{Channels, Torus, TorusSpec};
use phitwire::net::{Effort, MistakeKind as K, Network};

/// Follows packets from every working node to every reachable processor by the routers' registers.
fn follow(torus: &Torus) -> usize {
    let routers = torus.registers().expect("tables");
    let registers: Vec<_> = routers.iter().map(|router| router.route).collect();
    let broken = torus.broken();
    let mut followed = 0;
    for from in 0..torus.shape().nodes() {
        for (processor, &to) in torus.destinations().iter().enumerate() {
            let entry = routers[from as usize].table.look_up(processor as u16);
            if let Some(entry) = entry {
                let way = walk(torus.shape(), &broken, &registers, from, to, &entry);
                let way = way.unwrap_or_else(|why| panic!("{from} to {to}: {why}"));
                for pair in way.windows(2) {
                    let at = &registers[pair[1].node as usize];
                    let crosses =
                        pair[0].direction == pair[1].direction && at.is_dateline(pair[1].direction);
                    assert!(!crosses || pair[0].vc == 0, "{from} to {to}: {way:?}");
                }
                followed += 1;
            }
        }
    }
    followed
}

#[test]
fn every_pair_has_a_path() {
    for text in SHAPES {
        let torus = torus(text);
        let nodes = torus.shape().nodes() as usize;
        assert_eq!(follow(&torus), nodes * nodes, "{text}");
        let routes = torus.routes().expect("tables");
        dependency::check(torus.shape(), &routes.registers, &routes.tables).expect("no circle");
    }
}

#[test]
fn broken_links_are_gone_around() {
    for (text, defects) in [
        ("3x3x3", vec!["(0,0,0)+X", "r4-Y", "(2,2,2)+Z"]),
        ("4x4x4", vec!["(1,1,1)+X", "(1,1,1)+Y", "(1,1,1)-X"]),
        ("2x2x2", vec!["r0+X", "r0-X"]),
        ("4x2x2+4x1x1", vec!["(0,0,0)+X"]),
    ] {
        let torus = broken(text, &defects, 0);
        let nodes = torus.shape().nodes() as usize;
        assert_eq!(follow(&torus), nodes * nodes, "{text}");
        assert!(torus.check().is_empty(), "{text}: {:?}", torus.check());
    }
}

#[test]
fn ways_that_are_not_minimal_keep_off_vc1_before_the_dateline() {
    let ones = |torus: &Torus| {
        let registers = torus.registers().expect("tables").into_iter();
        let tables = registers.flat_map(|router| router.route.vc_tables);
        tables.map(u8::count_ones).sum::<u32>()
    };
    // Entries are shared in rings of more than eight nodes, and groups of four share routes above
    // 544 processors, so that a packet to one of the four may have to go more than half around the
    // ring.
    for (text, defects) in [
        ("2x10x2", &["(0,3,0)+Y"][..]),
        (
            "2x32x2",
            &["(0,3,0)+Y", "(1,17,1)+Y", "(1,18,1)+X", "(1,18,1)-X"],
        ),
        ("16x2x2", &["(7,0,0)+X", "r11"]),
        ("2x2x16", &["(1,1,9)-Z", "(1,1,9)+X", "(1,1,9)-X"]),
        ("4x32x6", &[]),
        ("4x10x9+4x4x1+2x10x2", &["(0,0,0)+Y"]),
        ("8x4x4+8x2x2+4x4x1", &["(7,0,0)+X"]),
        ("4x4x9+2x2x1+1x4x1+2x2x1", &["(0,0,9)-Z"]),
    ] {
        let (whole, cut) = (torus(text), broken(text, defects, 0));
        assert!(ones(&cut) > 0 && ones(&cut) <= ones(&whole), "{text}");
        let whole = (!defects.is_empty()).then_some(whole);
        for torus in whole.into_iter().chain([cut]) {
            let (mistakes, followed) = torus.judge(Effort::Exact);
            assert!(mistakes.is_empty() && followed, "{text}: {mistakes:?}");
            // No packet crosses on VC1, even if no circular wait would follow.
            follow(&torus);
        }
    }
}

#[test]
fn channels_and_adaptivity_are_as_described() {
    let of = |channels, adaptive| {
        let spec = TorusSpec {
            channels,
            adaptive,
            ..TorusSpec::new(shape("8x2x2"))
        };
        let torus = spec.torus();
        assert!(torus.judge(Effort::Exact).0.is_empty());
        let registers = torus.registers().expect("tables");
        let ones = registers.iter().flat_map(|router| router.route.vc_tables);
        let ones: u32 = ones.map(u8::count_ones).sum();
        let entries = registers
            .iter()
            .flat_map(|router| router.table.entries())
            .flatten();
        let adaptive = entries.filter(|entry| entry.tag.adaptive).count();
        (ones, adaptive)
    };
    let (ones, adaptive) = of(Channels::Optimised, true);
    assert!(ones > 0);
    assert_eq!(adaptive, 32 * 32);
    assert_eq!(of(Channels::TimeOfCrossing, false), (0, 0));
}

#[test]
fn spares_replace_broken_nodes() {
    let numbers = |torus: &Torus| torus.destinations().to_vec();
    let whole = broken("3x2x2", &[], 2);
    assert_eq!(numbers(&whole), (0..10).collect::<Vec<_>>());
    assert_eq!((whole.processor(9), whole.processor(10)), (Some(9), None));
    // A spare router's table contains all processors but its own.
    let router = whole.registers_of(11).expect("tables");
    assert_eq!(router.processor, 11);
    assert!(router.table.look_up(9).is_some() && router.table.look_up(11).is_none());

    let torus = broken("3x2x2", &["r4", "r10"], 2);
    assert_eq!(numbers(&torus), [0, 1, 2, 3, 11, 5, 6, 7, 8, 9]);
    assert_eq!((torus.processor(4), torus.processor(11)), (None, Some(4)));
    assert_eq!(torus.registers_of(11).expect("tables").processor, 4);
    assert!(torus.check().is_empty(), "{:?}", torus.check());
    assert_eq!(follow(&torus), 10 * 10);
    // Without spares left, the number stays at its node, which is unreachable.
    let torus = broken("3x2x2", &["r4"], 0);
    assert_eq!(numbers(&torus)[4], 4);
    assert_eq!(follow(&torus), 11 * 11);
    assert!(torus.check().is_empty());
}

#[test]
fn above_544_processors_spares_come_in_fours() {
    let torus = broken("8x8x10", &["r9"], 8);
    let destinations = torus.destinations();
    assert_eq!(destinations.len(), 632);
    assert_eq!(destinations[7..13], [7, 632, 633, 634, 635, 12]);
    let router = torus.registers_of(0).expect("tables");
    assert!(router.table.is_in_fours());
    let Coordinates(at) = torus.shape().coordinates(633);
    let found = router.table.look_up(9).expect("a route");
    assert_eq!(found.tag.to, Coordinates(at));
    let odd = broken("8x8x10", &["r9"], 6);
    let (mistakes, followed) = odd.judge(Effort::Bounded);
    assert!(mistakes.is_empty() && followed, "{mistakes:?}");

    let odd = super::torus("5x16x8");
    let mistakes = odd.check();
    assert_eq!(mistakes.len(), 1);
    assert_eq!(mistakes[0].kind, K::BadValue);
    assert!(mistakes[0].to_string().contains("even"), "{}", mistakes[0]);
}

#[test]
fn nodes_without_a_path_are_mistakes() {
    // All links of a node are broken, so no packet reaches or leaves it.
    let all = ["(1,1,1)+X", "(1,1,1)-X", "(1,1,1)+Y", "(1,1,1)-Y"];
    let torus = broken(
        "4x4x4",
        &[&all[..], &["(1,1,1)+Z", "(1,1,1)-Z"]].concat(),
        0,
    );
    let (mistakes, _) = torus.judge(Effort::Exact);
    assert_eq!(mistakes.len(), 2 * 63);
    let kept = mistakes.into_vec();
    assert_eq!(kept.len(), phitwire::net::MAX_MISTAKES);
    assert!(kept.iter().all(|mistake| mistake.kind == K::Unreachable));
    let message = kept[0].to_string();
    assert!(message.contains("have no route to r"), "{message}");
    // This is not a mistake if the node is declared isolated.
    let torus = broken("4x4x4", &["(1,1,1)"], 0);
    assert!(torus.check().is_empty());
}

#[test]
fn a_dependency_cycle_is_found() {
    let torus = torus("4x1x1");
    let mut wrong = torus.routes().expect("tables").clone();
    // No packet changes channels, and all go around in +X.
    for registers in &mut wrong.registers {
        registers.datelines = 0;
        registers.vc_tables = [0; 6];
    }
    let around = |from: u32| {
        let to = Coordinates([((from + 2) % 4) as u8, 0, 0]);
        let tag = Tag {
            to,
            ..Tag::default()
        };
        (from, crate::route::Entry { tag, initial: None })
    };
    let circle =
        super::super::check::dependency_cycle(&torus, &[&wrong.registers], (0..4).map(around));
    let mistake = circle.expect("a circle");
    assert_eq!(mistake.kind, K::CyclicDependency);
    assert!(mistake.message.contains("(0,0,0) +X VC0"), "{mistake}");
}

fn is_right(text: &str) {
    let (mistakes, followed) = torus(text).judge(Effort::Exact);
    assert!(mistakes.is_empty() && followed, "{text}: {mistakes:?}");
}

/// With partial planes, and routes in fours.
#[test]
fn a_machine_of_the_paper_is_right() {
    is_right("8x12x8+8x4x2+4x12x1");
    assert!(!torus("8x32x8").judge(Effort::Bounded).1);
}

#[test]
#[ignore = "repeats an ordinary test on whole tori; run by --long"]
fn the_machines_of_the_paper_are_right() {
    for text in ["8x8x8", "8x16x8", "8x32x8"] {
        is_right(text);
    }
}
