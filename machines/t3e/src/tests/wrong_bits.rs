//! Tests with more wrong bits than checks detect.

use phitwire_framing::t3e::burst::Burst;

use super::{puts, torus, world};
use crate::topology::Torus;
use phitwire::device::LinkFault;
use phitwire::link::impair::Probability;
use phitwire::sim::World;
use phitwire::time::Duration;

/// Sets the noise of every lane in the first `directions`.
fn noise(world: &mut World<Torus>, directions: u8, per_bit: Probability) {
    for router in world.routers().collect::<Vec<_>>() {
        for (port, lane) in (0..directions).flat_map(|port| lanes().map(move |lane| (port, lane))) {
            let fault = LinkFault::LaneNoise { lane, per_bit };
            world.fabric.command(router, |device, now| {
                // At the end of a row the link does not exist, so ignore the error.
                let _ = device.link_fault(now, port, fault);
            });
        }
    }
}

fn lanes() -> std::ops::Range<u8> {
    0..Burst::LANES as u8
}

/// Sum of a counter over all routers and their ports.
fn counted(world: &World<Torus>, counter: &str) -> u64 {
    let mut sum = 0;
    for router in world.routers() {
        let device = world.fabric.node(router);
        device.for_each_counter(&mut |name, value| {
            let own = name.rsplit('.').next();
            sum += if own == Some(counter) { value } else { 0 };
        });
    }
    sum
}

/// Headers with three wrong bits look like headers with one. They contain positions that do not
/// exist, or lengths that differ from their packets'. The network must discard all traces of them.
#[test]
fn nothing_goes_around_for_ever_or_waits_for_a_rest_that_never_comes() {
    // If all directions are noisy, circulating packets are soon detected. If only the first is
    // noisy, later packets soon end those that wait for missing flits.
    nothing_goes_around_for_ever(&[("3x3x3", false, 6), ("3x3x3", false, 1)]);
}

#[test]
#[ignore = "repeats an ordinary test on other tori; run by --long"]
fn neither_does_anything_in_partial_planes_or_in_paced_routers() {
    nothing_goes_around_for_ever(&[("4x2x2+2x2x1", false, 1), ("3x3x3", true, 1)]);
}

fn nothing_goes_around_for_ever(cases: &[(&str, bool, u8)]) {
    for &(shape, paced, directions) in cases {
        let case = format!("{shape} {paced} {directions}");
        let mut spec = torus(shape);
        spec.settings.request_timeout_ms = 5;
        let mut world = world(spec, paced);
        let spec = puts(&world, 1, 1_000);
        world.start_traffic(&spec).expect("traffic");
        world.fabric.run_for(Duration::from_ns(2_500));
        noise(&mut world, directions, Probability::from_ratio(1, 40));
        world.fabric.run_for(Duration::from_us(40));
        noise(&mut world, directions, Probability::ZERO);
        world.fabric.run_for(Duration::from_us(900));
        let before = counted(&world, "flits");
        world.fabric.run_for(Duration::from_us(10));
        assert_eq!(counted(&world, "flits"), before, "{case}: nothing moves");
        assert!(world.finish(1, Duration::from_ms(2_000)), "{case} ends");
        // Wait longer than the timeout for the rest of a packet, half a second.
        world.fabric.run_for(Duration::from_ms(600));
        assert_eq!(world.violations(), [], "{case}");
        let misdirected = counted(&world, "misdirected_packets");
        let misread = counted(&world, "rx_truncated_packets");
        assert!(
            misdirected > 0 && misread > 0,
            "{case}: {misdirected} {misread}"
        );
    }
}
