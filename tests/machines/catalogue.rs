//! A program does not start with machines that cannot be distinguished.

use phitwire::catalogue::{Catalogue, Machine};
use phitwire_framing::carrier::lane_layout::LaneLayout;
use phitwire_machines::MACHINES;

use super::both;

/// The catalogue of all machines and the toy machine with some parts of its own.
fn with(change: impl FnOnce(&mut Machine)) -> Catalogue {
    let mut toy = Machine {
        ..phitwire_toy::MACHINE
    };
    change(&mut toy);
    let mut machines = MACHINES.to_vec();
    machines.push(Box::leak(Box::new(toy)));
    Catalogue::new(machines.leak())
}

/// Concatenates the parts of two machines.
fn joined<T: Copy>(parts: &[T], more: &[T]) -> &'static [T] {
    [parts, more].concat().leak()
}

#[test]
fn all_machines_and_the_toy_are_distinct() {
    let catalogue = with(|_| {});
    assert_eq!(catalogue.machines().len(), MACHINES.len() + 1);
    for machine in catalogue.machines() {
        assert!(!machine.frames.is_empty() && !machine.generators.is_empty());
    }
}

/// A frame kind that is missing in a machine's list would not be checked against other machines'
/// codes.
#[test]
fn links_carry_the_frames_that_their_machine_lists() {
    let catalogue = with(|_| {});
    for machine in catalogue.machines() {
        let ready = machine.ready.iter();
        let ready = ready.map(|(name, text)| catalogue.read(name, text).expect(name));
        let ring = (machine.networks.word == "ring").then(|| catalogue.generate("ring-3"));
        let ring = ring.flatten().map(|ring| ring.expect("a ring"));
        let mut links = 0;
        for network in ready.chain(ring) {
            let devices = both(&*network);
            for (_, link) in devices.iter().flat_map(|device| device.links()) {
                let kind = link.lane_layout().kind();
                let is_listed = machine.frames.iter().any(|frame| frame.kind() == kind);
                assert!(is_listed, "{}: {kind:?}", network.name());
                links += 1;
            }
        }
        assert!(links > 0, "{}", machine.networks.word);
    }
}

#[test]
#[should_panic(expected = "two machines have the same `family`")]
fn two_machines_of_one_family_are_refused() {
    with(|toy| toy.networks = phitwire_aries::MACHINE.networks);
}

#[test]
#[should_panic(expected = "two generators have one name")]
fn two_machines_with_a_generator_of_one_name_are_refused() {
    with(|toy| toy.generators = phitwire_t3e::MACHINE.generators);
}

#[test]
#[should_panic(expected = "two soak families have one name")]
fn two_machines_with_a_soak_family_of_one_name_are_refused() {
    with(|toy| toy.soak = joined(toy.soak, &phitwire_blackwidow::MACHINE.soak[..1]));
}

#[test]
#[should_panic(expected = "two kinds of frames have one code")]
fn two_machines_with_a_kind_of_frame_of_one_code_are_refused() {
    with(|toy| toy.frames = joined(toy.frames, phitwire_aries::MACHINE.frames));
}

#[test]
#[should_panic(expected = "two kinds of frames have one code")]
fn a_machine_with_a_kind_of_frame_twice_is_refused() {
    with(|toy| toy.frames = joined(toy.frames, toy.frames));
}

#[test]
#[should_panic(expected = "another kind than training frames")]
fn training_frames_belong_to_no_machine() {
    let kind = phitwire_framing::carrier::training::Training::KIND;
    let _ = LaneLayout::plain(kind, phitwire_aries::link::STANDARD.lanes);
}
