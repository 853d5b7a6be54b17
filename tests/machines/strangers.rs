//! Untrusted descriptions: any bytes produce a short report without control characters; the limits
//! are those that messages state.

use proptest::prelude::*;

use phitwire::net::is_unseen;
use phitwire::net::{Effort, MAX_MISTAKES, MistakeKind, Problems, Runtime};
use phitwire::time::Time;
use phitwire_blackwidow::topology::read;
use phitwire_machines::CATALOGUE;

const READY: [&str; 6] = [
    include_str!("../../netns-scripts/topologies/pair.toml"),
    include_str!("../../netns-scripts/topologies/quickstart.toml"),
    include_str!("../../netns-scripts/topologies/r2-virtual-routers.toml"),
    include_str!("../../netns-scripts/topologies/r2-fault.toml"),
    include_str!("../../netns-scripts/topologies/aries-pair.toml"),
    include_str!("../../netns-scripts/topologies/aries-3x4.toml"),
];

/// Maximum number of bytes of a report's lines: every mistake has a message, a label and a remedy
/// of a thousand characters.
const MOST_BYTES: usize = 200_000;

/// Reads any bytes and checks the report.
fn answered(bytes: &[u8]) -> Result<(), Problems> {
    let result = CATALOGUE.read_with("any\u{1b}.toml", bytes, Effort::Bounded);
    if let Err(problems) = &result {
        assert!((1..=MAX_MISTAKES).contains(&problems.mistakes().len()));
        let mut drawn = String::new();
        let handler = miette::NarratableReportHandler::new();
        handler
            .render_report(&mut drawn, problems)
            .expect("a String takes everything");
        for text in [problems.lines(), drawn] {
            assert!(text.len() < MOST_BYTES, "{} bytes", text.len());
            let unseen = text.find(|letter| is_unseen(letter) && !"\n\t".contains(letter));
            assert_eq!(unseen, None, "{text:?}");
        }
    }
    result.map(|_| ())
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = answered(&bytes);
    }

    #[test]
    fn any_text_is_answered(text in "(?s).{0,200}") {
        let _ = answered(text.as_bytes());
    }

    #[test]
    fn spoilt_descriptions_are_answered(
        ready in 0..READY.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..6_u8), 1..12),
    ) {
        let mut bytes = READY[ready].as_bytes().to_vec();
        for (place, byte, edit) in edits {
            let at = place.index(bytes.len().max(1)).min(bytes.len().saturating_sub(1));
            let end = (at + usize::from(byte)).min(bytes.len());
            match edit {
                _ if bytes.is_empty() => bytes.push(byte),
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.drain(at..end)),
                3 => {
                    let copy = bytes[at..end].to_vec();
                    bytes.splice(at..at, copy);
                }
                // Replace a digit, if one follows.
                4 => bytes.iter_mut().skip(at).find(|b| b.is_ascii_digit()).into_iter()
                    .for_each(|digit| *digit = b'0' + byte % 10),
                _ => drop(bytes.splice(at..at, *b"\x1b[2J\xe2\x80\xae")),
            }
        }
        let _ = answered(&bytes);
    }
}

/// The mistakes of a text, as lines.
fn error_of(text: &str) -> String {
    answered(text.as_bytes()).map_or_else(|problems| problems.lines(), |()| String::new())
}

const PAIR: &str = "slices = 1\nname = \"pair\"\n[network]\nclock = \"paced\"\nNETWORK\n[processors]\nnic0 = 0\nnic1 = 1\n\
    [[chip]]\nname = \"r\"\nrank = 1\nprocessors = \"0-1\"\nROUTER\n[wiring]\nlinks = [\n\
    { a = \"nic0:0\", b = \"r:0\" },\n{ a = \"nic1:0\", b = \"r:1\" LINK },\n]\n";

const FLY: &str = "family = \"aries\"\nname = \"fly\"\n[dragonfly]\ngroups = 3\nchassis = 4\nblades = 4\nSHAPE\n[network]\n\
    clock = \"paced\"\nNETWORK\n[routing]\nROUTER\n";

/// A description with a key inserted at a placeholder.
fn with(text: &str, place: &str, key: &str) -> String {
    let others = ["NETWORK", "ROUTER", "LINK", "SHAPE"];
    let filled = text.replace(place, key);
    others
        .iter()
        .fold(filled, |text, other| text.replace(other, ""))
}

/// Keys with their least and greatest values: messages for other values name these.
#[test]
fn limits_are_those_that_are_named() {
    let day = 86_400_000;
    let of_pair = [
        ("NETWORK", "dilation", 1, 1_000_000_000_u64),
        ("NETWORK", "lane_retry_threshold", 0, u64::from(u32::MAX)),
        ("NETWORK", "max_packet_phits", 4, 19),
        ("NETWORK", "memory_bytes", 64, 1 << 36),
        ("NETWORK", "request_timeout_ms", 1, day),
        ("NETWORK", "forward_progress_ms", 1, day),
        ("NETWORK", "outstanding", 1, 65_536),
        ("NETWORK", "metres", 1, 200),
        ("LINK", ", metres", 1, 200),
        ("ROUTER", "slice", 0, 0),
        ("ROUTER", "hash_shift", 0, 14),
    ];
    let of_fly = [
        ("NETWORK", "dilation", 1, 1_000_000_000),
        ("NETWORK", "degrades_allowed", 0, 2),
        ("NETWORK", "lane_retry_threshold", 0, u64::from(u32::MAX)),
        ("NETWORK", "memory_bytes", 64, 1 << 36),
        ("NETWORK", "request_timeout_ms", 1, day),
        ("NETWORK", "forward_progress_ms", 1, day),
        ("NETWORK", "give_up_ms", 0, day),
        ("NETWORK", "outstanding", 1, 1_024),
        ("ROUTER", "local_up_class", 0, 3),
        ("SHAPE", "nics", 1, 4),
        // With four chassis there are five links to each of three peers; with three groups of
        // sixteen routers, eighty to each of two.
        ("SHAPE", "black_links", 1, 5),
        ("SHAPE", "global_links", 1, 80),
    ];
    for (text, node, keys) in [(PAIR, "nic1", &of_pair[..]), (FLY, "nic1", &of_fly[..])] {
        for &(place, key, least, most) in keys {
            for value in [least, most] {
                let good = with(text, place, &format!("{key} = {value}"));
                // Some values conflict with others, such as classes; none is out of range or too
                // large to run.
                let error = error_of(&good);
                assert!(
                    !error.contains("out of range") && !error.contains("fit"),
                    "{key} = {value}: {error}"
                );
                if error.is_empty() {
                    let network = CATALOGUE.read("good.toml", &good).expect("it was good");
                    let made = network.device(node, &Runtime::new("lab", 1), Time::ZERO);
                    assert!(made.is_ok(), "{key} = {value}: {:?}", made.err());
                }
            }
            for value in [least.checked_sub(1), Some(most + 1), Some(u64::MAX / 2)] {
                let Some(value) = value else { continue };
                let error = error_of(&with(text, place, &format!("{key} = {value}")));
                let range = [format!("{least} to {most}"), format!("only {least} is")];
                let named = range.iter().any(|range| error.contains(range));
                let other = key == "slice" && error.contains("slices are 0 to 0");
                assert!(named || other, "{key} = {value}: {error}");
            }
        }
    }
}

#[test]
fn the_largest_number_of_a_processor_is_the_one_that_is_named() {
    let text = with(PAIR, "LINK", "");
    for (number, is_right) in [
        (32_767, true),
        (32_768, false),
        (65_536, false),
        (u64::MAX / 2, false),
    ] {
        let error = error_of(&text.replace("nic1 = 1", &format!("nic1 = {number}")));
        let is_refused = error.contains("out of range") || error.contains("exceeds 15 bits");
        // The largest number is valid, although not one of this router.
        assert_eq!(is_refused, !is_right, "{error}");
        assert!(is_right || error.contains("32767"), "{error}");
    }
}

#[test]
fn overlong_names_are_refused_with_the_limit() {
    for (length, is_right) in [(32, true), (33, false), (3_000_000, false)] {
        let name = "n".repeat(length);
        let text = with(PAIR, "LINK", "").replace("nic1", &name);
        let error = error_of(&text);
        assert_eq!(error.is_empty(), is_right, "{error}");
        if !is_right {
            assert!(
                error.contains("too long [") && error.contains("1 to 32 letters"),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}

/// Mistakes of that kind, with the texts of both of their positions.
fn pairs(text: &str, kind: MistakeKind) -> Vec<(String, String)> {
    let problems = CATALOGUE.read("twice.toml", text).expect_err("twice");
    let span = |location: &phitwire::net::Location| match location {
        phitwire::net::Location::Text(span) => span.clone(),
        other => panic!("{other:?}"),
    };
    problems
        .mistakes()
        .filter(|mistake| mistake.kind == kind)
        .map(|mistake| {
            let (first, _) = mistake.other.as_ref().expect("there was a first");
            assert!(span(first).start < span(&mistake.location).start);
            let text = |location| text[span(location)].to_owned();
            (text(&mistake.location), text(first))
        })
        .collect()
}

#[test]
fn duplicates_are_reported_with_both_locations() {
    let fly = with(
        FLY,
        "SHAPE",
        "absent = [\"g0-c0s0\", \"g0-c0s1\", \"g0-c0s0\"]",
    );
    let quoted = |name: &str| format!("\"{name}\"");
    assert_eq!(
        pairs(&fly, MistakeKind::NamedTwice),
        [(quoted("g0-c0s0"), quoted("g0-c0s0"))]
    );
    // Each end of a link names it, so both together name it twice.
    let fly = with(
        FLY,
        "ROUTER",
        "[wiring]\nremove = [\"g0-c0s0:0\", \"g0-c0s1:0\", \"g0-c0s2:0\"]",
    );
    assert_eq!(
        pairs(&fly, MistakeKind::NamedTwice),
        [(quoted("g0-c0s1:0"), quoted("g0-c0s0:0"))]
    );
}

#[test]
fn long_lines_are_cut_around_what_is_wrong() {
    let long = format!(
        "name = \"x\"\na = [{}] # \u{1b}]0;owned\n",
        "\"some\", ".repeat(20_000)
    );
    let key_at_the_end = format!("t = {{ b = 1,{} wrong = 1 }}\n", " ".repeat(50_000));
    for text in [long, key_at_the_end] {
        let problems = CATALOGUE
            .read("long.toml", &text)
            .expect_err("unknown keys");
        let mut drawn = String::new();
        miette::NarratableReportHandler::new()
            .render_report(&mut drawn, &problems)
            .expect("a String takes everything");
        assert!(drawn.len() < 10_000, "{}", drawn.len());
    }
}

#[test]
fn every_packet_is_followed_unless_that_takes_too_long() {
    let described = read("pair.toml", &with(PAIR, "LINK", "")).expect("right");
    assert!(described.followed);
    let large =
        "family = \"aries\"\nname = \"m\"\n[dragonfly]\ngroups = 9\nchassis = 2\nblades = 4\n";
    let read = CATALOGUE.read_with("m.toml", large.as_bytes(), Effort::Bounded);
    assert!(read.expect("right").followed);
}
