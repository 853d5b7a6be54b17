//! Lost peers that are alive: nothing from them, or for them, reaches the program's memory.

use super::opened::{Opened, close};
use super::*;
use crate::engine::clock::{PATIENCE, TICK};

/// Longer than a silent peer is waited for.
const LONG: Duration = PATIENCE.saturating_mul(2);

/// Time until a lost peer that can be reached has been notified.
const MINUTE: Duration = Duration::from_secs(60);

/// The first program is cut off from the second one, which never gives anyone up.
fn begin_loss(net: &mut Network) {
    net.nodes[1].endpoint.wait_for(Duration::ZERO);
    net.cuts.insert((0, 1), net.now + LONG);
}

/// The first program loses the second one, which is not notified.
fn lose(net: &mut Network) {
    begin_loss(net);
    net.run(net.now + LONG, |_| false);
    let lost = net.nodes[0].endpoint.failures();
    assert!(lost.iter().any(Option::is_some), "{lost:?}");
}

#[test]
fn puts_that_were_given_up_arrive_no_more() {
    // Either program gives the other one up.
    for who in [0, 1] {
        let mut opened = Opened::new(64);
        let from = Pieces::One(opened.lend(&pattern(64, 1)));
        let far = opened.far(0);
        let net = &mut opened.net;
        let handles = net.open_handles(1);
        let (posted, _) = program::posted(2, 7, 8);
        let from_first = Some(net.nodes[0].endpoint.address());
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[1];
        let posted = Posted {
            from: from_first,
            ..posted
        };
        endpoint.receive(shared, true, posted, false);
        net.nodes[1 - who].endpoint.wait_for(Duration::ZERO);
        net.cuts.insert((0, 1), net.now + LONG);
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        let begun = endpoint.write(shared, far, from, None, op(1, 0));
        assert_eq!(begun, Ok(()));
        net.run(net.now + LONG, |_| false);
        let knows = net.nodes[1].errors();
        assert_eq!(knows.is_empty(), who == 0, "{knows:?}");
        net.run(net.now + MINUTE, |_| false);
        let lost = [(1, libc::ETIMEDOUT, Why::Unknown)];
        assert_eq!(net.nodes[0].errors(), lost);
        let renewed = net.open_handles(1);
        assert_eq!(renewed.len(), handles.len());
        assert!(
            renewed[0] == handles[0] && renewed[1] != handles[1],
            "the stages have the handle of the address, the region another one"
        );
    }
}

/// The program owns the memory again as soon as the operation fails.
#[test]
fn messages_that_failed_are_not_fetched() {
    let mut opened = Opened::new(64);
    let bytes = pattern(3 * PART, 1);
    let from = opened.lend(&bytes);
    let into = Pieces::One(opened.lend(&vec![0; bytes.len()]));
    let net = &mut opened.net;
    let handles = net.open_handles(0);
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let message = (Some(7), None);
    let begun = endpoint.send(shared, 1, Pieces::One(from), message, op(1, FI_SEND));
    assert_eq!(begun, Ok(()));
    net.settle();
    assert_eq!(net.open_handles(0).len(), handles.len() + 1, "it is open");
    begin_loss(net);
    let has_failed = |net: &mut Network| {
        let queue = net.nodes[0].shared.queues.get_mut(0);
        queue.is_some_and(|queue| !queue.errors.is_empty())
    };
    assert!(net.run(net.now + LONG, has_failed));
    assert_eq!(net.open_handles(0), handles);
    assert_eq!(net.nodes[0].errors(), [(1, libc::ETIMEDOUT, Why::Unknown)]);
    Pieces::One(from).fill(0, &vec![0xee; bytes.len()]);
    let (posted, _) = program::posted(2, 7, 0);
    let posted = Posted {
        into: into.clone(),
        ..posted
    };
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[1];
    endpoint.receive(shared, true, posted, false);
    net.run(net.now + MINUTE, |_| false);
    assert_eq!(net.nodes[1].errors().len(), 1, "it fails");
    assert!(into.now().iter().all(|&byte| byte == 0));
}

/// The stages of the failed message are kept until the peer has been notified, even if another
/// message needs some.
#[test]
fn a_message_that_failed_does_not_become_another_one() {
    let mut net = all(3);
    net.nodes[0].send(1, 7, 1, pattern(PART, 1));
    net.settle();
    lose(&mut net);
    assert_eq!(net.nodes[0].errors(), [(1, libc::ETIMEDOUT, Why::Unknown)]);
    net.nodes[0].send(2, 7, 2, pattern(PART, 2));
    net.settle();
    // The cut has ended, and the peer has not been notified that it is lost.
    let into = net.nodes[1].receive(7, 3, PART);
    assert_eq!(net.wait(1).context, 3);
    assert_eq!(into.now(), pattern(PART, 1));
    net.nodes[2].receive(7, 4, PART);
    assert_eq!([net.wait(2).context, net.wait(0).context], [4, 2]);
    net.run(net.now + MINUTE, |_| false);
    assert_eq!(net.nodes[0].endpoint.kept(), 0);
}

#[test]
fn stages_kept_for_silent_peers_are_bounded() {
    let mut net = all(2);
    (0..48).for_each(|n| net.nodes[0].send(1, 7, n, pattern(PART, n)));
    net.settle();
    net.nodes[1].is_silent = true;
    net.run(net.now + LONG, |_| false);
    assert_eq!(net.nodes[0].errors().len(), 48);
    let kept = net.nodes[0].endpoint.kept();
    assert!((1..=24).contains(&kept), "{kept}");
}

/// Each peer has a separate range.
#[test]
fn a_loss_does_not_stop_others_that_fetch_the_same_memory() {
    let mut opened = Opened::by(Network::new(&[0, 1, 2], 1, true), 1, 64);
    let bytes = pattern(3 * PART, 1);
    let from = opened.lend(&bytes);
    let into = Pieces::One(opened.lend(&vec![0; bytes.len()]));
    let net = &mut opened.net;
    for to in [1, 2] {
        let Node {
            shared, endpoint, ..
        } = &mut net.nodes[0];
        let op = op(to, FI_SEND);
        let message = (Some(7), None);
        let begun = endpoint.send(shared, to as u64, Pieces::One(from), message, op);
        assert_eq!(begun, Ok(()));
    }
    net.settle();
    lose(net);
    assert_eq!(net.nodes[0].errors(), [(1, libc::ETIMEDOUT, Why::Unknown)]);
    let (posted, _) = program::posted(3, 7, 0);
    let posted = Posted {
        into: into.clone(),
        ..posted
    };
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[2];
    endpoint.receive(shared, true, posted, false);
    assert_eq!([net.wait(2).context, net.wait(0).context], [3, 2]);
    assert_eq!(into.now(), bytes);
}

#[test]
fn memory_that_is_closed_is_not_read_in_place() {
    let mut opened = Opened::new(600_000);
    let into = Pieces::One(opened.lend(&vec![0; 600_000]));
    let region = Region {
        bytes: opened.region,
        access: FI_REMOTE_READ,
        base: 0,
        open: None,
        counters: Vec::new(),
    };
    let net = &mut opened.net;
    let handles = net.open_handles(1);
    net.nodes[1].shared.regions.insert(11, region);
    let far = Far {
        number: 1,
        address: 0,
        key: 11,
    };
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let begun = endpoint.read(shared, far, into.clone(), op(1, 0));
    assert_eq!(begun, Ok(()));
    let soon = net.now + Duration::from_secs(1);
    assert!(net.run(soon, |net| net.nodes[0].endpoint.count("pulls") > 0));
    // The fetches are lost, and would be repeated.
    net.faults.lost = 1_000;
    net.turn(0);
    assert_eq!(net.open_handles(1).len(), handles.len() + 1);
    close(net, 1, 11);
    assert!(net.nodes[1].endpoint.is_using(11));
    let late = net.now + TICK;
    assert!(net.run(late, |net| !net.nodes[1].endpoint.is_using(11)));
    assert_eq!(net.open_handles(1), handles);
    Pieces::One(opened.region).fill(0, &vec![0xee; 600_000]);
    net.faults.lost = 0;
    net.run(net.now + MINUTE, |_| false);
    assert_eq!(net.nodes[0].errors(), [(1, libc::EREMOTEIO, Why::Refused)]);
    assert!(into.now().iter().all(|&byte| byte == 0));
}
