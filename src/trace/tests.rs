use super::*;

const INPUT: Stage = Stage {
    name: "input",
    cycles: 3,
};
const OUTPUT: Stage = Stage {
    name: "output",
    cycles: 2,
};

fn watch() -> Watch {
    let flow = Flow { from: 1, to: 2 };
    Watch::new(flow, Time::ZERO, Time::from_ns(1_000_000), Some((500, 10)))
}

fn opening(queue_id: QueueId, identity: u64) -> Opening {
    Opening {
        queue_id,
        key: 7,
        identity: Some(identity),
        from: (4, 1),
        arrived_ps: Some(500),
        ..Opening::default()
    }
}

#[test]
fn packets_of_one_key_leave_a_queue_in_order() {
    let mut watch = watch();
    watch.open(opening(0, 1));
    watch.open(opening(0, 2));
    watch.step((0, 9), 7, INPUT, 4);
    watch.step((0, 9), 7, INPUT, 5);
    watch.left(9, 7, OUTPUT, 7, (3, 0));
    watch.left(9, 7, OUTPUT, 9, (3, 0));
    let passages = watch.report(None).passages;
    let identities: Vec<_> = passages.iter().map(|p| p.identity).collect();
    assert_eq!(identities, [Some(1), Some(2)]);
    let stays: Vec<_> = passages[0].stays().collect();
    assert_eq!(stays[0], ("input", Some(500), Some([40, 10])));
    assert_eq!(stays[1], ("output", Some(540), Some([30, 10])));
    assert_eq!(passages[1].left_ps(), Some(590));
}

#[test]
fn front_arrival_follows_from_the_backlog() {
    let mut watch = watch();
    assert_eq!(watch.front_arrived(3, 1, 9), None);
    watch.arrived(3, 1, 4);
    watch.arrived(3, 2, 4);
    watch.arrived(3, 8, 4);
    assert_eq!(watch.front_arrived(3, 12, 9), Some(510));
    assert_eq!(watch.front_arrived(3, 8, 9), Some(520));
    assert_eq!(watch.front_arrived(3, 1, 9), Some(580));
    // Later arrivals do not change the result.
    assert_eq!(watch.front_arrived(3, 5, 4), Some(510));
    assert_eq!(
        watch.front_arrived(3, 13, 9),
        None,
        "the packet was already there"
    );
}

#[test]
fn repeated_decisions_are_counted() {
    let mut watch = watch();
    watch.open(opening(0, 1));
    let choice = |winner| Choice {
        among: "port".into(),
        winner,
        ..Choice::default()
    };
    watch.decided(0, 7, choice(4));
    watch.decided(0, 7, choice(5));
    watch.discarded(0, 7, "no live port");
    let passage = &watch.report(Some(1)).passages[0];
    assert_eq!(
        (passage.choices[0].winner, passage.choices[0].times),
        (5, 2)
    );
    assert_eq!(passage.discarded.as_deref(), Some("no live port"));
    assert_eq!(watch.report(Some(2)).passages, []);
}

#[test]
fn memory_is_bounded_and_the_oldest_go() {
    let mut watch = watch();
    for identity in 0..5_000 {
        watch.open(opening(0, identity));
        watch.arrived(identity as u32 % 7, identity, 1);
    }
    assert!(watch.open.len() == MOST_OPEN && watch.dropped == 5_000 - MOST_OPEN as u64);
    for _ in 0..MOST_OPEN {
        watch.left(0, 7, INPUT, 1, (0, 0));
    }
    for identity in 0..2 * MOST_PASSAGES as u64 {
        watch.open(opening(0, identity));
        watch.left(0, 7, INPUT, 1, (0, 0));
    }
    assert!(watch.done.len() == MOST_PASSAGES);
    assert!(watch.arrivals.values().all(|of| of.len() <= MOST_ARRIVALS));
}

#[test]
fn passages_outside_the_filter_are_dropped() {
    let mut watch = watch();
    for identity in [1, 2, 3] {
        watch.open(opening(identity as u32, identity));
    }
    watch.left(1, 7, INPUT, 1, (0, 0));
    watch.left(2, 7, INPUT, 1, (0, 0));
    watch.want(2);
    watch.open(opening(0, 4));
    watch.left(0, 7, INPUT, 2, (0, 0));
    watch.open(opening(0, 2));
    watch.left(0, 7, INPUT, 3, (0, 0));
    let identities: Vec<_> = watch
        .report(None)
        .passages
        .iter()
        .map(|p| p.identity)
        .collect();
    assert_eq!(identities, [Some(2), Some(2)]);
}

#[test]
fn a_link_is_watched_until_it_has_acknowledged_all() {
    let mut watch = watch();
    watch.open(opening(0, 1));
    watch.left(0, 7, INPUT, 4, (3, 0));
    assert!(watch.is_unsettled());
    watch.settle(|port| (port == 3).then_some((40, false)));
    assert!(watch.is_unsettled());
    watch.settle(|_| Some((42, false)));
    assert!(watch.is_unsettled());
    watch.settle(|_| Some((43, true)));
    assert!(!watch.is_unsettled());
    watch.settle(|_| Some((90, true)));
    let departure = watch.report(None).passages[0]
        .departure
        .expect("the packet has left");
    assert_eq!((departure.resent, departure.acknowledged), (Some(3), true));
}

#[test]
fn a_link_that_went_down_has_acknowledged_nothing() {
    let mut watch = watch();
    watch.open(opening(0, 1));
    watch.left(0, 7, INPUT, 4, (3, 0));
    watch.settle(|_| Some((40, false)));
    watch.settle(|_| None);
    assert!(!watch.is_unsettled());
    watch.open(opening(0, 2));
    watch.left(0, 7, INPUT, 5, (3, 0));
    watch.settle(|_| Some((40, true)));
    let report = watch.report(None);
    let departures = report.passages.iter().map(|passage| passage.departure);
    let outcomes: Vec<_> = departures
        .map(|departure| departure.map(|of| (of.acknowledged, of.link_ended)))
        .collect();
    assert_eq!(outcomes, [Some((false, true)), Some((true, false))]);
}
