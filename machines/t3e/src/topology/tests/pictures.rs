//! Tables and drawings.

use super::{SHAPES, broken, torus};
use crate::topology::show::Measures;
use phitwire::net::Network;

#[test]
fn tables_and_drawings_name_every_node() {
    for text in SHAPES {
        let torus = torus(text);
        let drawn = [torus.table(1_000), torus.dot(), torus.svg().expect("small")];
        for (text, names) in [(&drawn[0], 0), (&drawn[1], 0), (&drawn[2], 1)] {
            for name in torus.node_names().iter().take(match names {
                0 => usize::MAX,
                // The SVG labels processors with logical numbers, so look only for router names.
                _ => torus.shape().nodes() as usize,
            }) {
                assert!(text.contains(name.as_str()), "{name} in {text}");
            }
        }
    }
    assert!(torus("16x16x8").svg().is_err());
}

#[test]
fn large_tori_are_drawn_in_small_boxes_and_plane_by_plane() {
    let large = torus("8x16x16");
    let drawing = large.drawing(None).expect("a drawing");
    assert_eq!(drawing.matches("class=\"node\"").count(), 2_048);
    assert_eq!(
        drawing.matches("class=\"link\"").count(),
        3 * 2_048 * 2 - (7 * 256 + 15 * 128)
    );
    assert!(drawing.contains(">2047</text>") && drawing.len() < 4 << 20);
    let plane = large.drawing(Some("Z 15")).expect("a plane");
    assert_eq!(plane.matches(">PE ").count(), 128);
    assert!(plane.contains("8x16x16, plane Z 15"), "{plane}");
    assert_eq!(plane, large.drawing(Some("15")).expect("a plane"));
    let said = large.drawing(Some("16")).expect_err("too high").to_string();
    assert!(said.contains("planes Z 0 to 15"), "{said}");
    let small = torus("4x4x4");
    assert_eq!(small.drawing(None).ok(), small.svg().ok());
}

#[test]
fn broken_and_spare_parts_are_marked() {
    let torus = broken("3x3x2", &["(0,0,0)+X", "r4", "(1,1,1)+Z"], 2);
    let table = torus.table(100);
    assert!(table.contains("[r1]"), "{table}");
    assert_eq!(table.matches("cut off").count(), 1, "{table}");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.ends_with("broken  straight"))
        .collect();
    // One link; the six of node r4, which include the other one; and the one to its processor.
    assert_eq!(rows.len(), 1 + 6 + 1, "{table}");
    let svg = torus.svg().expect("small");
    for words in ["cut off", "spare", "PE 4", "broken"] {
        assert!(svg.contains(words), "{words} in {svg}");
    }
    assert!(torus.dot().contains("style=dashed"));
}

#[test]
fn measures_are_those_of_the_paper() {
    // Size, average hops, diameter, gigabytes per second across the bisection (T3E sec. 11: 153.6
    // for 512 and above), and the bound on the rate of each node.
    for (text, average, diameter, gbytes, each) in [
        ("2x2x2", 1.71, 3, 9.6, 686.0),
        ("4x4x4", 3.05, 6, 38.4, 610.0),
        ("4x8x4", 4.03, 8, 38.4, 600.0),
        ("8x8x4", 5.02, 10, 76.8, 600.0),
        ("8x8x8", 6.01, 12, 153.6, 600.0),
        ("8x16x8", 8.01, 16, 153.6, 300.0),
    ] {
        let torus = torus(text);
        let measures = Measures::of(&torus);
        assert!((measures.average_hops - average).abs() < 0.005, "{text}");
        assert_eq!(measures.diameter, diameter, "{text}");
        assert!(
            (measures.bisection_gbytes() - gbytes).abs() < 1e-9,
            "{text}"
        );
        let bound = measures.global_mbytes(torus.shape().nodes());
        assert!((bound - each).abs() < 0.5, "{text}: {bound}");
    }
}

#[test]
fn inventories_count_rings() {
    let torus = torus("4x2x2+4x1x1");
    let measures = Measures::of(&torus);
    // The row of the partial plane is closed in X.
    assert_eq!(measures.rings, [5, 8, 8]);
    assert_eq!(measures.open, [0; 3]);
    let short = super::torus("4x4x2+2x4x1");
    assert_eq!(Measures::of(&short).open, [4, 0, 0]);
    let inventory = short.inventory().expect("a torus has an inventory");
    assert!(inventory.contains("plus 4 open rows"), "{inventory}");
    assert!(
        !inventory.contains("Differences from all machines"),
        "{inventory}"
    );
    let small = super::torus("2x1x1")
        .inventory()
        .expect("a torus has an inventory");
    assert!(
        small.contains("2 nodes: the smallest machine had 8"),
        "{small}"
    );
}

/// A text in a drawing: left, top, right and bottom, and the words.
type Words = ([f64; 4], String);

fn words_of(svg: &str) -> Vec<Words> {
    let value = |line: &str, key: &str| -> Option<String> {
        let (_, rest) = line.split_once(&format!("{key}=\""))?;
        Some(rest.split_once('"')?.0.to_owned())
    };
    let read = |line: &str| -> Option<Words> {
        let number = |key| value(line, key)?.parse::<f64>().ok();
        let (x, y, size) = (number(" x")?, number(" y")?, number("font-size")?);
        let words = line.split_once('>')?.1.split_once('<')?.0.to_owned();
        let width = 0.56 * size * words.chars().count() as f64;
        let left = match value(line, "text-anchor")?.as_str() {
            "start" => x,
            "middle" => x - width / 2.0,
            _ => x - width,
        };
        Some(([left, y - 0.75 * size, left + width, y], words))
    };
    let lines = svg.lines().filter(|line| line.starts_with("<text"));
    lines.map(|line| read(line).expect("a text")).collect()
}

#[test]
fn words_of_a_drawing_do_not_overlap() {
    for torus in [
        torus("4x4x4"),
        torus("8x8x8"),
        torus("4x2x2+4x1x1"),
        broken("3x3x3", &["(0,0,0)+X", "r4", "(1,1,1)+Z", "(2,1,1)+Y"], 2),
        torus("1x1x1"),
        torus("2x2x2"),
    ] {
        let svg = torus.svg().expect("small");
        let words = words_of(&svg);
        let size = svg.split_once("width=\"").expect("a width").1;
        let width: f64 = size
            .split_once('"')
            .expect("its end")
            .0
            .parse()
            .expect("a number");
        for (n, (a, first)) in words.iter().enumerate() {
            assert!(
                a[0] >= 0.0 && a[2] <= width,
                "{first} leaves {}",
                torus.name()
            );
            for (b, second) in &words[..n] {
                let apart = a[0] >= b[2] || b[0] >= a[2] || a[1] >= b[3] || b[1] >= a[3];
                assert!(apart, "{}: {first} {a:?} and {second} {b:?}", torus.name());
            }
        }
    }
}
