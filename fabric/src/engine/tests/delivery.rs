//! Messages that complete when the peer's program has received them (`FI_DELIVERY_COMPLETE`).

use super::*;

const TAG: u64 = 3;
const BYTES: usize = 100;

/// Sends a message that completes at its delivery.
fn send(net: &mut Network, to: u64, context: usize) {
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    let op = Op {
        is_delivery: true,
        ..op(context, FI_SEND | FI_TAGGED)
    };
    let from = Pieces::leaked(pattern(BYTES, context));
    assert_eq!(
        endpoint.send(shared, to, from, (Some(TAG), None), op),
        Ok(())
    );
}

fn completions(net: &mut Network, at: usize) -> usize {
    let queue = net.nodes[at].shared.queues.get_mut(0);
    queue.expect("it is there").entries.len()
}

/// The peer's NIC has the message long before the peer's program stops computing.
#[test]
fn a_message_is_delivered_once_the_program_takes_it_in() {
    let mut net = all(2);
    let into = net.nodes[1].receive(TAG, 1, BYTES);
    net.nodes[1].computes_until = Duration::from_secs(3);
    send(&mut net, 1, 2);
    net.nodes[0].send(1, TAG, 3, pattern(BYTES, 3));
    net.run(Duration::from_secs(2), |_| false);
    assert_eq!(net.wait(0).context, 3, "the plain one");
    assert_eq!(completions(&mut net, 0), 0);
    assert_eq!(net.wait(0).context, 2);
    assert_eq!(into.now(), pattern(BYTES, 2));
}

#[test]
fn messages_to_oneself_are_delivered() {
    let mut net = all(1);
    let into = net.nodes[0].receive(TAG, 1, BYTES);
    send(&mut net, 0, 2);
    assert_eq!(completions(&mut net, 0), 0);
    assert_eq!([net.wait(0).context, net.wait(0).context], [1, 2]);
    assert_eq!(into.now(), pattern(BYTES, 2));
}

/// The NIC has received the message, but its program never does.
#[test]
fn the_fate_of_an_undelivered_message_is_unknown() {
    let mut net = all(2);
    net.nodes[1].computes_until = Duration::MAX;
    send(&mut net, 1, 2);
    net.settle();
    assert_eq!(net.nodes[0].errors(), []);
    net.nodes[1].is_silent = true;
    net.run(Duration::from_secs(60), |_| false);
    let errors = net.nodes[0].errors();
    assert_eq!(errors, [(2, libc::ETIMEDOUT, Why::Unknown)]);
}

/// The peer's program acknowledges a message, whose reply from the NIC was lost, and ends.
fn acknowledged() -> Network {
    let mut net = all(2);
    net.nodes[1].receive(TAG, 1, BYTES);
    net.faults.unanswered = 1_000;
    send(&mut net, 1, 2);
    net.turn(0);
    net.faults.unanswered = 0;
    assert_eq!(net.wait(1).context, 1);
    net.nodes[0].receive(TAG, 3, BYTES);
    net.nodes[1].send(0, TAG, 4, pattern(BYTES, 4));
    assert_eq!(net.wait(0).context, 3, "it carries the acknowledgement");
    net.leave(1);
    net
}

#[test]
fn acknowledged_messages_are_not_resent() {
    let mut net = acknowledged();
    assert_eq!(net.wait(0).context, 2);
    net.run(Duration::from_secs(60), |_| false);
    assert_eq!(net.nodes[0].errors(), []);
}

#[test]
fn acknowledged_messages_do_not_fail_with_their_peer() {
    let mut net = acknowledged();
    net.nodes[0].endpoint.probe_unreached();
    net.settle();
    let lost = net.nodes[0].endpoint.failures();
    assert!(lost.iter().any(Option::is_some), "{lost:?}");
    assert_eq!(net.nodes[0].errors(), []);
    assert_eq!(net.wait(0).context, 2);
}

#[test]
fn acknowledged_messages_do_not_fail_with_the_nic() {
    let mut net = acknowledged();
    let Node {
        shared, endpoint, ..
    } = &mut net.nodes[0];
    endpoint.handle_end(shared);
    assert_eq!(net.nodes[0].errors(), []);
    assert_eq!(net.wait(0).context, 2);
}
