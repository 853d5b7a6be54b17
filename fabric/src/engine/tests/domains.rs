//! Several endpoints of one domain, whose registered memory is the same.

use super::opened::Opened;
use super::*;
use crate::engine::endpoint::Endpoint;

/// The second and the third program are endpoints of one domain at one NIC; the third has opened
/// the memory. Peers address the second.
fn domain() -> Opened {
    let mut net = Network::new(&[0, 1, 1], 1, true);
    net.nodes[2].domain = 1;
    Opened::by(net, 2, 64)
}

/// The first program begins a write, whose first put is lost.
fn begin_write(opened: &mut Opened) {
    let from = Pieces::One(opened.lend(&pattern(64, 1)));
    let far = opened.far(0);
    let Node {
        shared, endpoint, ..
    } = &mut opened.net.nodes[0];
    let begun = endpoint.write(shared, far, from, None, op(1, 0));
    assert_eq!(begun, Ok(()));
    opened.net.faults.lost = 1_000;
    opened.net.turn(0);
    opened.net.faults.lost = 0;
}

/// The third endpoint closes, and its NIC with it.
fn close(net: &mut Network) {
    net.in_domain(2, |net, at| {
        let Node {
            endpoint, shared, ..
        } = &mut net.nodes[at];
        Endpoint::close(endpoint, shared);
    });
    net.leave(2);
}

fn is_written(opened: &mut Opened) {
    assert_eq!(opened.net.wait(0).context, 1);
    assert_eq!(Pieces::One(opened.region).now(), pattern(64, 1));
    opened.net.settle();
    for at in 0..2 {
        assert_eq!(opened.net.nodes[at].endpoint.count("renewals"), 0);
    }
}

#[test]
fn memory_is_renewed_by_the_endpoint_that_opened_it() {
    let mut opened = domain();
    let handles = opened.net.open_handles(2);
    begin_write(&mut opened);
    is_written(&mut opened);
    let renewed = opened.net.open_handles(2);
    assert_eq!((renewed.len(), renewed == handles), (handles.len(), false));
}

#[test]
fn memory_of_an_endpoint_that_has_closed_is_opened_by_another() {
    let mut opened = domain();
    let handles = opened.net.open_handles(1);
    close(&mut opened.net);
    begin_write(&mut opened);
    is_written(&mut opened);
    assert_eq!(opened.net.open_handles(1).len(), handles.len() + 1);
}

/// The endpoint closes before or after it has begun the requested renewal.
#[test]
fn a_renewal_outlives_the_endpoint_that_began_it() {
    for has_begun in [false, true] {
        let mut opened = domain();
        begin_write(&mut opened);
        let net = &mut opened.net;
        let soon = net.now + Duration::from_secs(10);
        if has_begun {
            assert!(net.run(soon, |net| net.nodes[2].endpoint.count("renewals") > 0));
        } else {
            net.nodes[2].computes_until = Duration::MAX;
            net.run(soon, |_| false);
        }
        close(net);
        is_written(&mut opened);
    }
}
