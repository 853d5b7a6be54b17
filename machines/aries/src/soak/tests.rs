//! Random dragonflies, and the canaries of their checks.

use super::*;
use phitwire::sim::LinkId;
use phitwire::sim::check::Violation;
use phitwire::sim::soak::testing::*;

shared_soak_cases!(AriesLinks, 7, |_| true);

#[test]
fn every_kind_of_harm_dragonfly_and_message_comes_up() {
    let cases: Vec<Case<AriesLinks>> = (0..400).map(Case::random).collect();
    assert_eq!(kinds(&cases).len(), 11, "{:?}", kinds(&cases));
    let any = |wanted: fn(&Case<AriesLinks>) -> bool| cases.iter().any(wanted);
    assert!(any(
        |case| case.spec.shape.groups == 3 && case.spec.shape.chassis == 2
    ));
    assert!(any(|case| case.spec.shape.groups == 1) && any(|case| case.spec.shape.routers() == 1));
    assert!(any(|case| case.traffic.size > 64) && any(|case| case.traffic.size < 8));
    for op in [Operation::Put, Operation::Get, Operation::Amo] {
        assert!(cases.iter().any(|case| case.traffic.op == op), "{op:?}");
    }
    assert!(any(|case| case.collectives.is_some()) && any(|case| case.collectives.is_none()));
    assert!(any(|case| case.harms.is_empty()) && any(|case| case.impairment.is_empty()));
    let kept = |case: &&Case<AriesLinks>| !any_harm(case, Harm::destroys);
    assert!(cases.iter().filter(kept).count() > 100);
}

#[test]
fn packets_in_flight_in_a_dragonfly_are_not_at_rest() {
    let is_long = |case: &Case<AriesLinks>| case.traffic.count > 100 && case.traffic.window > 50;
    let case = (1..).map(Case::random).find(is_long);
    let found = found_during_the_run(&case.unwrap(), 500, Duration::from_us(1));
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
    assert!(any(|v| matches!(v, Violation::Unacknowledged { .. })));
    assert!(any(|v| matches!(v, Violation::Conservation { .. })));
}

/// Canary of the check for flits inside: a router whose link to a NIC accepts nothing keeps the
/// flits for it.
#[test]
fn a_router_that_keeps_flits_is_found() {
    let is_large = |case: &Case<AriesLinks>| case.spec.shape.all_nics() > 5;
    let case = (1..).map(Case::random).find(is_large);
    let mut case = case.expect("a case of this kind");
    // More than the link's own buffers hold.
    case.traffic = TrafficSpec {
        size: 64,
        window: 1_000,
        count: 1_000_000,
        op: Operation::Put,
        ways: None,
        ..case.traffic
    };
    case.traffic.pattern = phitwire::nic::TrafficPattern::List {
        destinations: vec![0],
    };
    let mut world = case.bring_up().expect("all links come up");
    let nic = world.nics().next().expect("the world has NICs");
    let at_nic = |link: &LinkId| {
        let ends = world.fabric.ends(*link);
        ends.iter().any(|(node, _)| *node == nic)
    };
    let link = world.links().find(at_nic).expect("the NIC has a link");
    world.start_traffic(&case.traffic).expect("the run starts");
    world.fabric.run_for(Duration::from_us(500));
    world.fabric.cut(link);
    world.fabric.run_for(Duration::from_ms(20));
    let found = world.violations();
    let inside = |v: &Violation| matches!(v, Violation::Inside { .. });
    assert!(found.iter().any(inside), "{found:?}");
}
