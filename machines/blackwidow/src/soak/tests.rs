//! Random BlackWidow networks, and canaries of their checks.

use super::*;
use phitwire::sim::check::Violation;
use phitwire::sim::soak::testing::*;

shared_soak_cases!(BlackWidow, 14, |case| case.topology().unwrap().chips.len()
    == 1);

#[test]
fn every_kind_of_harm_and_network_comes_up() {
    let cases: Vec<Case<BlackWidow>> = (0..300).map(Case::random).collect();
    assert_eq!(kinds(&cases).len(), 9, "{:?}", kinds(&cases));
    let any = |wanted: fn(&Case<BlackWidow>) -> bool| cases.iter().any(wanted);
    assert!(any(|case| case.spec.slices > 1));
    assert!(any(|case| case.topology().unwrap().chips.len() > 4));
    assert!(any(|case| case.impairment.contains("gemodel")));
    assert!(any(|case| case.harms.is_empty()));
}

#[test]
fn packets_in_flight_are_not_at_rest() {
    // Canaries of the network's own checks. The case is paced like the chip, since free-running
    // routers hold a phit only for an instant.
    let is_paced =
        |case: &Case<BlackWidow>| case.spec.settings.profile == phitwire::net::Profile::Paper;
    let case = (1..).map(Case::random).find(is_paced);
    let found = found_during_the_run(&case.unwrap(), 2_000, Duration::from_ns(100));
    let any = |wanted: fn(&Violation) -> bool| found.iter().any(wanted);
    assert!(any(|v| matches!(v, Violation::Inside { .. })));
    assert!(any(|v| matches!(v, Violation::Outstanding { .. })));
    assert!(any(|v| matches!(v, Violation::Credits { .. })));
}
