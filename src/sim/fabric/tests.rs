use super::*;
use crate::link::impair::Netem;
use crate::node::{WakeReason, Wakeup};

/// A node that sends a numbered frame on each port every `period` and logs what it receives.
#[derive(Debug)]
struct Metronome {
    ports: usize,
    period: Duration,
    next: Time,
    left: u64,
    due: Vec<u64>,
    sent: u64,
    log: Vec<(Time, PortId, u64)>,
    events: VecDeque<u64>,
}

impl Metronome {
    fn new(ports: usize, period: Duration, count: u64) -> Self {
        Self {
            ports,
            period,
            next: Time::ZERO,
            left: count,
            due: vec![0; ports],
            sent: 0,
            log: Vec::new(),
            events: VecDeque::new(),
        }
    }
}

impl Node for Metronome {
    type Event = u64;

    fn ports(&self) -> usize {
        self.ports
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        let number = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
        self.log.push((now, port, number));
        self.events.push_back(number);
    }

    fn advance(&mut self, now: Time) {
        while self.left > 0 && self.next <= now {
            self.left -= 1;
            self.next += self.period;
            self.due.iter_mut().for_each(|due| *due += 1);
        }
    }

    fn ready_ports(&self) -> u64 {
        (1 << self.ports) - 1
    }

    fn poll_frame(&mut self, _: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let due = &mut self.due[usize::from(port)];
        *due = due.checked_sub(1)?;
        buf[..8].copy_from_slice(&self.sent.to_be_bytes());
        self.sent += 1;
        Some(8)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        (self.left > 0).then_some(Wakeup {
            at: self.next,
            reason: WakeReason::Request,
        })
    }

    fn poll_event(&mut self) -> Option<u64> {
        self.events.pop_front()
    }
}

const US: Duration = Duration::from_us(1);
const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);

fn pair(seed: u64, count: u64) -> (Fabric<Metronome>, LinkId) {
    joined(seed, [count, 0], Duration::from_ns(300))
}

/// Two nodes that send `counts` frames, over a link with this latency.
fn joined(seed: u64, counts: [u64; 2], latency: Duration) -> (Fabric<Metronome>, LinkId) {
    let mut fabric = Fabric::new(seed);
    let [a, b] = counts.map(|count| fabric.add(Metronome::new(1, US, count)));
    let joined = fabric.connect((a, 0), (b, 0), LinkSpec { latency, mtu: 64 });
    (fabric, joined.expect("the ports are free"))
}

/// Makes a node send one frame after `wait`.
fn send_one(fabric: &mut Fabric<Metronome>, node: NodeId, wait: Duration) {
    fabric.command(node, |node, now| {
        node.left = 1;
        node.next = now + wait;
    });
}

fn netem(words: &str) -> Option<Netem> {
    Some(words.parse().expect("words of netem"))
}

#[test]
fn frames_arrive_after_the_latency_and_events_are_kept() {
    let (mut fabric, link) = pair(1, 3);
    fabric.run_until(Time::from_ns(2_299));
    assert_eq!(fabric.in_flight(), 1);
    assert_eq!(fabric.now(), Time::from_ns(2_299));
    let ends = fabric.ends(link);
    assert_eq!(ends, [(A, 0), (B, 0)]);
    let log = &fabric.node(ends[1].0).log;
    let at = Time::from_ns;
    assert_eq!(log, &[(at(300), 0, 0), (at(1_300), 0, 1)]);
    fabric.run_for(Duration::from_ns(1));
    assert_eq!(fabric.node(B).log.len(), 3);
    assert_eq!(fabric.next_event_time(), None);
    assert!(!fabric.step(), "no event is left");
    let first = fabric.poll_event().expect("one event per frame");
    let expected = FabricEvent {
        at: at(300),
        node: B,
        event: 0,
    };
    assert_eq!(first, expected);
    assert_eq!(fabric.wire_counters().delivered, 3);
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let run = |seed| {
        let (mut fabric, _) = pair(seed, 500);
        fabric.impair_all(netem("delay 5us 4us loss 10% duplicate 5% corrupt 5%"));
        fabric.run_for(Duration::from_ms(1));
        fabric.trace_hash()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn the_trace_sees_time_and_content() {
    let hash = |count, latency_ns| {
        let (mut fabric, _) = joined(1, [count, 0], Duration::from_ns(latency_ns));
        fabric.run_for(Duration::from_ms(1));
        fabric.trace_hash()
    };
    assert_ne!(hash(3, 300), hash(4, 300));
    assert_ne!(hash(3, 300), hash(3, 301));
}

#[test]
fn impairment_acts_on_its_direction_only() {
    let (mut fabric, link) = joined(1, [100, 100], LinkSpec::default().latency);
    fabric.impair(link, Direction::AToB, netem("loss 100%"));
    fabric.run_for(Duration::from_ms(1));
    assert_eq!([A, B].map(|node| fabric.node(node).log.len()), [100, 0]);
    let lost = |direction| fabric.wire(link, direction).counters().impaired.lost;
    assert_eq!(Direction::BOTH.map(lost), [100, 0]);
}

#[test]
fn replacing_an_impairment_keeps_its_counters() {
    let (mut fabric, link) = pair(1, 10);
    fabric.impair_all(netem("delay 100us"));
    fabric.run_until(Time::from_ns(4_500));
    assert_eq!(fabric.in_flight(), 5);
    fabric.impair_all(None);
    fabric.run_for(Duration::from_ms(1));
    let counters = fabric.wire(link, Direction::AToB).counters();
    assert_eq!((counters.impaired.cleared, counters.delivered), (5, 5));
    assert_eq!(fabric.node(B).log[0].2, 5);
}

#[test]
fn a_cut_loses_frames_in_flight_until_it_is_restored() {
    let (mut fabric, link) = pair(1, 10);
    fabric.run_until(Time::from_ns(3_100));
    fabric.cut(link);
    fabric.run_until(Time::from_ns(6_500));
    fabric.restore(link);
    fabric.run_for(Duration::from_ms(1));
    // Frame 3 was in flight; 4 to 6 were sent into the cut.
    let numbers = fabric.node(B).log.iter().map(|entry| entry.2);
    assert!(numbers.eq([0, 1, 2, 7, 8, 9]));
    assert_eq!(fabric.wire(link, Direction::AToB).counters().lost_in_cut, 4);
}

#[test]
fn a_new_incarnation_receives_what_was_sent_to_the_old_one() {
    let (mut fabric, _) = pair(1, 2);
    fabric.run_until(Time::from_ns(1_100));
    let old = fabric.replace(B, Metronome::new(1, US, 0));
    assert_eq!(old.log.len(), 1);
    fabric.run_for(US);
    assert_eq!(fabric.node(B).log, [(Time::from_ns(1_300), 0, 1)]);
}

#[test]
fn a_suspended_node_receives_waiting_frames_later() {
    let (mut fabric, link) = pair(1, 5_000);
    fabric.run_until(Time::from_ns(1_500));
    let b = B;
    fabric.suspend(b);
    fabric.suspend(b);
    // A command to a stopped node takes effect when the node resumes.
    send_one(&mut fabric, b, Duration::ZERO);
    fabric.run_until(Time::from_ns(3_500));
    assert_eq!(fabric.node(b).log.len(), 2);
    assert_eq!(fabric.node(b).sent, 0);
    fabric.resume(b);
    let now = Time::from_ns(3_500);
    assert_eq!(fabric.node(b).log[2..], [(now, 0, 2), (now, 0, 3)]);
    fabric.run_for(US);
    assert_eq!((fabric.node(b).log.len(), fabric.node(b).sent), (5, 1));
    // The queue of waiting frames is limited.
    fabric.suspend(b);
    fabric.run_for(Duration::from_ms(10));
    fabric.resume(b);
    assert_eq!(fabric.node(b).log.len(), 5 + MAX_WAITING);
    let lost = fabric.wire(link, Direction::AToB).counters().overrun;
    assert_eq!(lost as usize, 5_000 - 5 - MAX_WAITING);
    // A new incarnation must not get frames that waited for the old one.
    fabric.suspend(b);
    fabric.replace(b, Metronome::new(1, US, 1));
    fabric.run_for(US);
    assert_eq!(fabric.node(b).sent, 1);
}

#[test]
fn a_command_lets_the_node_run_at_once() {
    let (mut fabric, _) = pair(1, 0);
    fabric.run_until(Time::from_ns(5_000));
    let answer = fabric.command(A, |node, now| {
        node.left = 1;
        node.next = now;
        "done"
    });
    assert_eq!(answer, "done");
    fabric.run_for(US);
    assert_eq!(fabric.node(B).log, [(Time::from_ns(5_300), 0, 0)]);
}

#[test]
fn waiting_for_a_condition_is_bounded() {
    let (mut fabric, _) = pair(1, 10);
    let received = |count| move |fabric: &mut Fabric<Metronome>| fabric.node(B).log.len() >= count;
    assert!(fabric.run_until_done(Duration::from_ms(1), US, received(4)));
    assert_eq!(fabric.now(), Time::from_ns(4_000));
    assert!(!fabric.run_until_done(Duration::from_ms(1), US, received(11)));
    assert_eq!(fabric.now(), Time::from_ns(1_004_000));
}

#[test]
fn wrong_connections_are_refused() {
    let (mut fabric, _) = pair(1, 0);
    let c = fabric.add(Metronome::new(2, US, 0));
    let spec = LinkSpec::default();
    let mut refuse = |a, b, spec| {
        fabric
            .connect(a, b, spec)
            .expect_err("an invalid connection")
    };
    let in_use = |node| ConnectError::InUse { node, port: 0 };
    let no_port = ConnectError::NoPort { node: 2, port: 2 };
    let no_latency = LinkSpec {
        latency: Duration::ZERO,
        ..spec
    };
    for (a, b, spec, error) in [
        ((c, 0), (NodeId(9), 0), spec, ConnectError::NoNode(9)),
        ((c, 2), (c, 0), spec, no_port),
        ((c, 0), (A, 0), spec, in_use(0)),
        ((c, 0), (c, 0), spec, in_use(2)),
        ((c, 0), (c, 1), no_latency, ConnectError::NoLatency),
    ] {
        assert_eq!(refuse(a, b, spec), error);
    }
    // A cable may have both ends at one node.
    assert!(fabric.connect((c, 0), (c, 1), spec).is_ok());
}

#[test]
fn a_port_without_a_cable_sends_into_nothing() {
    let mut fabric = Fabric::new(1);
    fabric.add(Metronome::new(3, US, 5));
    fabric.run_for(Duration::from_ms(1));
    assert_eq!(fabric.node(A).sent, 15);
}

/// A node that always requests to run at the current time.
struct Restless;

impl Node for Restless {
    type Event = ();

    fn ports(&self) -> usize {
        0
    }

    fn handle_frame(&mut self, _: Time, _: PortId, _: &[u8]) {}

    fn advance(&mut self, _: Time) {}

    fn ready_ports(&self) -> u64 {
        0
    }

    fn poll_frame(&mut self, _: Time, _: PortId, _: &mut [u8]) -> Option<usize> {
        None
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        Some(Wakeup {
            at: Time::ZERO,
            reason: WakeReason::Pipeline,
        })
    }

    fn poll_event(&mut self) -> Option<()> {
        None
    }
}

#[test]
#[should_panic(expected = "forever (Pipeline)")]
fn a_node_that_never_lets_time_pass_is_found() {
    let mut fabric = Fabric::new(1);
    fabric.add(Restless);
    fabric.run_for(US);
}

#[test]
fn deadlines_that_move_do_not_fill_the_queue() {
    let mut fabric = Fabric::new(1);
    let a = fabric.add(Metronome::new(1, US, 0));
    for round in 1..=1000u64 {
        send_one(&mut fabric, a, Duration::from_ms(1));
        fabric.run_until(Time::from_ns(round * 100));
        assert!(fabric.queue.len() <= 2, "{} entries", fabric.queue.len());
    }
    fabric.run_for(Duration::from_ms(2));
    assert_eq!(fabric.node(a).sent, 1);
    assert_eq!(fabric.next_event_time(), None);
    // The deadline may also move to the current time.
    send_one(&mut fabric, a, Duration::from_ms(1));
    fabric.run_for(US);
    fabric.command(a, |node, now| node.next = now);
    fabric.run_for(US);
    assert_eq!(fabric.node(a).sent, 2);
}
