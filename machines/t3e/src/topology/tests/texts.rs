use super::{SHAPES, broken, shape, torus};
use crate::topology::{Channels, Defect, READY, Torus, TorusSpec};
use phitwire::net::{Clock, Location, Network, Problems, Profile, describe};

fn read(text: &str) -> Result<Torus, Problems> {
    let text = format!("family = \"t3e\"\nname = \"x\"\n{text}");
    describe::<Torus>("x", &text).map(|described| described.topology)
}

fn again(torus: &Torus) -> Torus {
    let text = torus.write();
    let read = describe::<Torus>("x", &text);
    read.unwrap_or_else(|problems| panic!("{text}{}", problems.lines()))
        .topology
}

#[test]
fn written_tori_are_read_back() {
    for text in SHAPES {
        let torus = torus(text);
        assert_eq!(again(&torus), torus, "{text}");
    }
    let mut spec = TorusSpec::new(shape("4x4x2+2x4x1"));
    spec.name = String::from("lab");
    spec.spares = 4;
    spec.adaptive = false;
    spec.channels = Channels::TimeOfCrossing;
    spec.settings.profile = Profile::Paper;
    spec.settings.clock = Clock::Paced { dilation: 100 };
    spec.settings.outstanding = 7;
    for defect in ["(3,3,1)-X", "r5", "(0,0,2)-Z"] {
        spec.defects
            .add(Defect::read(defect, &spec.shape).expect("there"));
    }
    let torus = spec.torus();
    assert_eq!(again(&torus), torus);
    let text = torus.write();
    for line in [
        "partial = [\"2x4x1\"]",
        "  \"(2,3,1)+X\",",
        "  \"(3,0,0)\",",
        "  \"(0,0,1)+Z\",",
        "adaptive = false",
        "channels = \"time-of-crossing\"",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn sizes_are_written_in_two_ways() {
    let one = read("size = \"4x2x2\"\npartial = [\"4x1x1\"]\n").expect("right");
    let other = read("size = [4, 2, 2]\npartial = [[4, 1, 1]]\n").expect("right");
    assert_eq!(one, other);
    assert_eq!(one.shape(), &shape("4x2x2+4x1x1"));
    assert_eq!((one.spares(), one.is_adaptive()), (0, true));
}

#[test]
fn mistakes_have_places() {
    // The first mistake is on line 3.
    for (text, at, expected, help) in [
        ("spares = 1\n", (0, 0), "lacks the key `size`", "4x4x4"),
        (
            "size = \"8x8\"\n",
            (3, 8),
            "is not three sizes",
            "[8, 8, 8]",
        ),
        (
            "size = [8, 8]\n",
            (3, 8),
            "expected three sizes",
            "[8, 8, 8]",
        ),
        (
            "size = \"17x2x2\"\n",
            (3, 8),
            "addresses allow at most 16",
            "32 in Y",
        ),
        (
            "size = \"0x2x2\"\n",
            (3, 8),
            "size in X is zero",
            "up to 16",
        ),
        (
            "size = \"16x16x16\"\n",
            (3, 8),
            "4096 nodes",
            "up to 16 nodes",
        ),
        (
            "size = \"4x4x2\"\npartial = [\"4x5x1\"]\n",
            (4, 11),
            "partial plane of 5 nodes in Y",
            "smaller than the torus in X or Y",
        ),
        (
            "size = \"4x4x1\"\npartial = [\"4x2x1\"]\n",
            (4, 11),
            "at least two planes",
            "partial planes are smaller",
        ),
        (
            "size = \"2x2x2\"\nspares = 8\n",
            (4, 10),
            "all 8 nodes are spare",
            "leave some",
        ),
        (
            "size = \"2x2x2\"\nbroken = [\"r0+X\", \"r9\"]\n",
            (4, 19),
            "\"r9\": no such node in the torus",
            "(0,1,2)+X",
        ),
        (
            "size = \"2x2x2\"\nbroken = [\"nic3\"]\n",
            (4, 11),
            "not a link or node",
            "r5-Y",
        ),
        (
            "size = \"1x2x2\"\nbroken = [\"r0-X\"]\n",
            (4, 11),
            "no link in -X",
            "r5-Y",
        ),
        (
            "size = \"4x1x1\"\nbroken = [\"(0,0,0)+X\", \"r1-X\"]\n",
            (4, 24),
            "(0,0,0)+X is listed twice",
            "list it once",
        ),
        (
            "size = \"2x2x2\"\nadaptive = \"yes\"\n",
            (4, 12),
            "expected a boolean",
            "true or false",
        ),
        (
            "size = \"2x2x2\"\nchannels = \"none\"\n",
            (4, 12),
            "unknown value",
            "\"time-of-crossing\"",
        ),
        (
            "size = \"2x2x2\"\nspare = 1\n",
            (4, 1),
            "has no key `spare`",
            "did you mean `spares`?",
        ),
        (
            "size = \"2x2x2\"\n[network]\noutstanding = 2049\n",
            (5, 15),
            "2049 is out of range",
            "1 to 2048",
        ),
    ] {
        let problems = read(text).expect_err(text);
        let lines = problems.lines();
        assert_eq!(problems.mistakes().len(), 1, "{text}{lines}");
        assert!(
            lines.contains(expected) && lines.contains(help),
            "{text}{lines}"
        );
        if at != (0, 0) {
            assert_eq!(problems.line_and_column(0), at, "{text}{lines}");
        }
    }
}

#[test]
fn mistakes_of_a_shape_are_reported_at_its_size() {
    let problems = read("size = \"5x16x8\"\n").expect_err("no fours");
    assert_eq!(problems.line_and_column(0), (3, 8));
    let all: Vec<String> = ["+X", "-X", "+Y", "-Y", "+Z", "-Z"]
        .iter()
        .map(|direction| format!("\"(1,1,1){direction}\""))
        .collect();
    let text = format!("size = \"4x4x4\"\nbroken = [{}]\n", all.join(", "));
    let problems = read(&text).expect_err("a node without links");
    assert_eq!(problems.mistakes().len() + problems.more(), 126);
    let location = &problems.mistakes().next().expect("one").location;
    assert!(matches!(location, Location::Chip(_)));
}

#[test]
fn defects_are_read_as_they_are_written() {
    let shape = shape("4x2x2+4x1x1");
    for (from, direction, _) in shape.links() {
        let defect = Defect::link(&shape, from, direction).expect("a link");
        assert_eq!(Defect::read(&defect.write(&shape), &shape), Ok(defect));
    }
    for text in [
        "",
        "+X",
        "r",
        "r+X",
        "(0,0)",
        "(0,0,0",
        "(0,0,0,0)+X",
        "r0 +X",
        "r-1",
    ] {
        assert!(Defect::read(text, &shape).is_err(), "{text}");
    }
    let spaced = Defect::read("(1, 0, 1)+Y", &shape);
    assert_eq!(spaced, Defect::read("(1,0,1)+Y", &shape));
    assert!(Defect::read("(300,0,0)", &shape).is_err());
    let torus = broken("4x2x2", &["r0+X", "r1+X", "r3"], 1);
    assert_eq!(torus.defects().to_string(), "2 links and 1 node");
    assert!(torus.summary().contains("16 nodes (1 spare)"));
}

#[test]
fn ready_descriptions_are_right() {
    for (name, text) in READY {
        let described = describe::<Torus>(name, text);
        let torus = described
            .unwrap_or_else(|problems| panic!("{}", problems.lines()))
            .topology;
        assert_eq!(&torus.name(), name);
        assert_eq!(again(&torus), torus);
        assert!(text.starts_with("# "), "{name} begins with a comment");
    }
}
