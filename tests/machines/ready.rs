//! The ready files of the labs are valid, and this list is complete.

use phitwire_machines::CATALOGUE;

macro_rules! ready {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../netns-scripts/topologies/", $name)))),*]
    };
}

/// Every file of the folder. A new file must be added here.
const READY: [(&str, &str); 18] = ready![
    "aries-3x4.toml",
    "aries-group.toml",
    "aries-pair.toml",
    "crossed-cables.toml",
    "paced.toml",
    "pair.toml",
    "quickstart.toml",
    "r1-32.toml",
    "r1-4-slices.toml",
    "r1-4.toml",
    "r2-fault.toml",
    "r2-sidelinks.toml",
    "r2-virtual-routers.toml",
    "t3e-2x2x2.toml",
    "t3e-3x3x3.toml",
    "t3e-4x2x2-partial.toml",
    "three-subtrees.toml",
    "yarc-64.toml",
];

#[test]
fn ready_topologies_are_right() {
    for (name, text) in READY {
        let network = CATALOGUE
            .read(name, text)
            .unwrap_or_else(|problems| panic!("{}", problems.lines()));
        assert_eq!(format!("{}.toml", network.name()), name);
        assert!(text.starts_with("# "), "{name} says what it is for");
        assert!(network.plan_lines().is_ok());
        let again = CATALOGUE
            .read(name, &network.write())
            .expect("what was read can be written and read");
        assert_eq!(*again, *network, "{name}");
        assert!(network.svg().is_ok());
    }
}

#[test]
fn a_name_that_can_be_generated_is_the_same_network_as_the_ready_one() {
    let mut both = 0;
    for (file, text) in READY {
        let name = file.trim_end_matches(".toml");
        let Some(Ok(generated)) = CATALOGUE.generate(name) else {
            continue;
        };
        let ready = CATALOGUE.read(file, text).expect("a right one");
        assert_eq!(*ready, *generated, "{name}");
        both += 1;
    }
    assert!(both >= 3, "{both}");
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test may look which files there are"
)]
fn no_ready_topology_is_forgotten() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/netns-scripts/topologies");
    let entries = std::fs::read_dir(directory).expect("the directory of ready topologies");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    assert_eq!(names, READY.map(|(name, _)| name));
}

#[test]
fn the_quickstart_is_the_one_of_the_readme() {
    let (name, text) = READY
        .into_iter()
        .find(|(name, _)| *name == "quickstart.toml")
        .expect("a ready topology");
    let network = CATALOGUE.read(name, text).expect("a right one");
    let summary = "quickstart: R1.5, 8 processors, 1 slice, 2 routers on 2 chips, 10 links";
    assert_eq!(network.summary(), summary);
}
