//! The cost of barriers and eurekas on an idle network, computed rather than measured.
//!
//! "This scheme keeps global barrier/eureka latency to less than that of a single remote memory
//! reference" (T3E sec. 6). The paper does not give the time per hop. Assuming three clocks per hop
//! (T3E table 2, for a packet that goes straight) and ten at each end, these tests show the cost of
//! the generated trees: twice their height in hops, and one clock for each further unit. The
//! network consists only of barrier units; the wires of the router core are not modelled.

use phitwire_framing::t3e::barrier::UNITS;

use super::network::{Network, Options, Report};
use super::plan::{Plan, Role};
use super::torus::Torus;

/// Shape, clocks of a barrier, and clocks of the longest round trip. A trip in one direction takes
/// 10 clocks at each end, and 3 at each router between, or 6 where the path turns (at most twice).
const SIZES: [([u32; 3], u64, u64); 6] = [
    ([2, 2, 2], 38, 64),
    ([4, 4, 4], 56, 82),
    ([4, 8, 4], 68, 94),
    ([8, 8, 8], 92, 118),
    ([8, 16, 8], 116, 142),
    ([8, 32, 8], 164, 190),
];

fn run(shape: [u32; 3], roles: impl Fn(u32) -> Role) -> (u64, Report) {
    let torus = Torus::new(shape);
    let nodes: Vec<u32> = (0..torus.nodes()).collect();
    let roles: Vec<Role> = nodes.iter().map(|&node| roles(node)).collect();
    let mut options = Options::new(0);
    (options.link, options.end) = (3, 10);
    let network = Network::new(torus, vec![Plan::always(&nodes, &roles, 1)], options);
    let height = network.tree(0).height().into();
    let diameter: u32 = shape.iter().map(|radix| radix / 2).sum();
    assert_eq!(height, u64::from(diameter));
    (height, network.run().expect("a clean run"))
}

#[test]
fn a_barrier_costs_less_than_the_longest_reference() {
    for (shape, clocks, round_trip) in SIZES {
        let (height, report) = run(shape, |_| Role::Join);
        assert_eq!(report.last_release, 2 * height * 3 + 20);
        assert_eq!(report.last_release, clocks, "{shape:?}");
        assert!(clocks < round_trip);
        let links = u64::from(shape.iter().product::<u32>()) - 1;
        assert_eq!(report.words, [links, 0, links, 0]);
    }
}

#[test]
fn a_eureka_costs_at_most_as_much() {
    for (shape, clocks, _) in SIZES {
        // The root is node 0; the farthest node is half-way around each dimension.
        let [x, y, z] = shape;
        let farthest = x / 2 + x * (y / 2 + y * (z / 2));
        let signals = |who| {
            move |node| {
                if node == who {
                    Role::Trigger
                } else {
                    Role::Watch
                }
            }
        };
        let (height, report) = run(shape, signals(farthest));
        assert_eq!(report.last_eureka, clocks);
        assert_eq!(report.words[1], height);
        let (_, report) = run(shape, signals(0));
        assert_eq!(report.last_eureka, height * 3 + 20);
        assert_eq!(report.words[1], 0);
    }
}

/// Units share the links: each waits for the others once, not at every hop.
#[test]
fn all_units_at_once_cost_a_clock_each() {
    let shape = [4, 4, 4];
    let torus = Torus::new(shape);
    let nodes: Vec<u32> = (0..torus.nodes()).collect();
    let plan = Plan::always(&nodes, &vec![Role::Join; nodes.len()], 1);
    let mut options = Options::new(0);
    (options.link, options.end) = (3, 10);
    let report = Network::new(torus, vec![plan; UNITS], options).run();
    let report = report.expect("a clean run");
    assert_eq!(report.last_release, 56 + UNITS as u64 - 1);
}
