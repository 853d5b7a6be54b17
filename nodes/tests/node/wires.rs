//! Wires that fail under open ports, and drops of full sockets.

use std::time::{Duration, Instant};

use crate::common::{
    Take, ethernet_port, free_addresses, has_io_uring, in_namespace, ip, join_interfaces, udp_port,
    wait_until, wait_until_interfaces_send,
};
use phitwire::node::PortId;
use phitwire_nodes::io::{self, Backend, IoEngine, PortConfig};
use phitwire_nodes::wires::Wires;

const ENGINES: [IoEngine; 2] = [IoEngine::Plain, IoEngine::Uring];

fn open(engine: IoEngine, port: &PortConfig) -> Box<dyn Backend> {
    io::open(engine, std::slice::from_ref(port), None).expect("the port opens")
}

/// Sends `count` frames of 1,000 bytes.
fn flood(backend: &mut dyn Backend, count: u32) {
    for number in 0..count {
        backend.frame_buffer(0)[..1000].fill(number as u8);
        backend.queue(0, 1000);
    }
    backend.flush();
    backend.wait(Some(Duration::ZERO)).expect("it waits");
}

/// Receives everything available and returns the number of frames.
fn drain(backend: &mut dyn Backend) -> u64 {
    let (mut frames, mut empty_polls) = (0, 0);
    // A wait may end for internal reasons of the engine.
    while empty_polls < 5 {
        let wait = Duration::from_millis(20);
        backend.wait(Some(wait)).expect("it waits");
        let some = backend.receive(&mut Take::new(|_, _| frames += 1)) > 0;
        empty_polls = if some { 0 } else { empty_polls + 1 };
    }
    frames
}

/// Sends more than the far socket holds while nothing reads it. Every frame must be received or
/// counted.
fn overflow(engine: IoEngine, ports: [PortConfig; 2], trains: bool) {
    const FRAMES: u32 = 40_000;
    let [near, far] = ports;
    let (mut near, mut far) = (open(engine, &near), open(engine, &far));
    near.set_segmentation(if trains { !0 } else { 0 });
    // An interface loses frames for some milliseconds after it has been set up.
    let start = Instant::now();
    let (mut tried, mut before) = (0, 0);
    while before == 0 {
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{engine:?}: nothing passes"
        );
        flood(&mut *near, 1);
        tried += 1;
        before = drain(&mut *far);
    }
    let swallowed = tried - before;
    flood(&mut *near, FRAMES);
    let mut sent = near.counters();
    sent.frames_sent -= swallowed;
    sent.messages_sent -= swallowed;
    let all = u64::from(FRAMES) + before;
    assert_eq!(sent.frames_sent, all, "{engine:?}: {sent:?}");
    let received = before + drain(&mut *far);
    let counters = far.counters();
    let dropped = counters.rx_dropped_socket_full;
    assert!(dropped > 0, "{engine:?}: nothing overflowed: {counters:?}");
    assert_eq!(counters.frames_received, received);
    if trains {
        assert!(sent.messages_sent < sent.frames_sent, "{sent:?}");
        // A train counts as one message.
        let all = counters.messages_received + dropped;
        assert_eq!(sent.messages_sent, all, "{engine:?}: {counters:?}");
    } else {
        let all = received + counters.frames_dropped();
        assert_eq!(sent.frames_sent, all, "{engine:?}: {counters:?}");
    }
}

#[test]
fn drops_of_a_full_udp_socket_are_counted() {
    for engine in ENGINES {
        for trains in [false, true] {
            if engine == IoEngine::Uring && !has_io_uring() {
                continue;
            }
            let addresses = free_addresses(2);
            let near = udp_port(0, addresses[0], addresses[1], None);
            let far = udp_port(0, addresses[1], addresses[0], None);
            overflow(engine, [near, far], trains);
        }
    }
}

#[test]
fn drops_of_a_full_packet_socket_are_counted() {
    for engine in ENGINES {
        in_namespace(move || {
            join_interfaces();
            let ports = ["p0", "p1"].map(|name| ethernet_port(0, name));
            overflow(engine, ports, false);
        });
    }
}

/// A port on `p0` with the wire state that its process keeps, and a port on `p1`.
struct Pair {
    wires: Wires,
    near: Box<dyn Backend>,
    far: Box<dyn Backend>,
    far_wires: Wires,
    /// The defect of the near wire.
    wrong: Option<(&'static str, String)>,
    reports: u32,
}

impl Pair {
    fn new(engine: IoEngine) -> Self {
        let [near, far] = ["p0", "p1"].map(|name| ethernet_port(0, name));
        let mut wires = Wires::new(std::slice::from_ref(&near));
        let mut far_wires = Wires::new(std::slice::from_ref(&far));
        let (near_end, far_end) = (open(engine, &near), open(engine, &far));
        wires.opened(&[near], &*near_end);
        far_wires.opened(&[far], &*far_end);
        Self {
            wires,
            near: near_end,
            far: far_end,
            far_wires,
            wrong: None,
            reports: 0,
        }
    }

    fn update(&mut self) {
        let (wrong, reports) = (&mut self.wrong, &mut self.reports);
        self.wires.update(&mut *self.near, |port: PortId, what| {
            assert_eq!(port, 0);
            *wrong = what;
            *reports += 1;
        });
        self.far_wires.update(&mut *self.far, |_, _| {});
    }

    /// Waits until the near wire has this state, with a reason that contains `word`.
    fn is(&mut self, wanted: &str, word: &str) {
        let start = Instant::now();
        loop {
            self.update();
            let is = self.wrong.as_ref().map_or("whole", |(name, _)| *name);
            let why = self.wrong.as_ref().map_or("", |(_, why)| why.as_str());
            if is == wanted && why.contains(word) {
                return;
            }
            assert!(
                start.elapsed() < Duration::from_secs(1),
                "it is {is} ({why}), not {wanted} ({word})"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether frames pass in both directions.
    fn passes(&mut self) -> bool {
        let Self { near, far, .. } = self;
        (0..20).any(|_| {
            flood(&mut **near, 1);
            drain(&mut **far) > 0
        }) && (0..20).any(|_| {
            flood(&mut **far, 1);
            drain(&mut **near) > 0
        })
    }
}

fn every_death(engine: IoEngine) {
    join_interfaces();
    let mut pair = Pair::new(engine);
    pair.update();
    pair.is("whole", "");
    assert!(pair.passes());

    // The fault, the reported state, and the repair.
    let deaths = [
        ("p0 down", "interface-down", "ip link set p0 up", "p0 up"),
        ("p1 down", "no-carrier", "its other end", "p1 up"),
        ("p0 mtu 700", "short-mtu", "frames need 1500", "p0 mtu 1500"),
    ];
    for (break_it, name, word, mend_it) in deaths {
        ip(&format!("link set {break_it}"));
        pair.is(name, word);
        flood(&mut *pair.near, 3);
        ip(&format!("link set {mend_it}"));
        pair.is("whole", "");
        let passes = pair.passes();
        assert!(passes, "{engine:?}: after `{break_it}` and `{mend_it}`");
    }
    let counters = pair.near.counters();
    assert!(counters.tx_dropped_link_down >= 3, "{counters:?}");
    assert!(counters.tx_dropped_too_long >= 3, "{counters:?}");

    ip("link del p0");
    pair.is("no-interface", "was deleted");
    flood(&mut *pair.near, 3);
    assert_eq!(drain(&mut *pair.near), 0);
    ip("link add p0 type veth peer name p1");
    pair.is("interface-down", "");
    ip("link set p0 up");
    ip("link set p1 up");
    wait_until_interfaces_send();
    pair.is("whole", "");
    assert!(pair.passes(), "{engine:?}: over a new one of the name");

    // The interface may disappear and return before the process checks.
    ip("link del p0");
    join_interfaces();
    pair.is("whole", "");
    assert!(pair.passes(), "{engine:?}: over another new one");

    ip("link set p0 name q0");
    pair.is("no-interface", "renamed");
    ip("link set q0 name p0");
    ip("link set p0 up");
    pair.is("whole", "");
    assert!(pair.passes(), "{engine:?}: under its old name");
}

#[test]
fn every_wire_failure_is_reported_and_survived() {
    for engine in ENGINES {
        in_namespace(move || every_death(engine));
    }
}

#[test]
fn a_moved_wire_is_reported_and_recovers() {
    for engine in ENGINES {
        in_namespace(move || moved(engine));
    }
}

fn moved(engine: IoEngine) {
    join_interfaces();
    let mut pair = Pair::new(engine);
    pair.is("whole", "");
    let mut other = std::process::Command::new("unshare")
        .args(["-n", "sleep", "60"])
        .spawn()
        .expect("unshare starts");
    let pid = other.id();
    let own = std::fs::read_link("/proc/thread-self/ns/net").expect("a namespace");
    let theirs = || std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    wait_until("another namespace", || theirs().as_ref() != Some(&own));
    let index = || io::find_interface("p0").expect("it is here").index;
    let before = index();
    ip(&format!("link set p0 netns {pid}"));
    pair.is("no-interface", "moved to another network namespace");
    let back = |name: &str| {
        let (own, thread) = (std::process::id(), nix::unistd::gettid());
        let target = format!("/proc/{own}/task/{thread}/ns/net");
        let words = format!("-t {pid} -n ip link set {name} netns {target}");
        let mut nsenter = std::process::Command::new("nsenter");
        let status = nsenter.args(words.split(' ')).status();
        assert!(status.expect("nsenter starts").success());
    };
    back("p0");
    assert_eq!(index(), before, "the case is one of the same index");
    ip("link set p0 up");
    pair.is("whole", "");
    // The returned interface has its old index, but its sockets were unbound.
    assert!(pair.passes());
    // The interface is moved away and back before the process checks.
    ip(&format!("link set p0 netns {pid}"));
    back("p0");
    ip("link set p0 up");
    pair.is("whole", "");
    assert!(pair.passes());
    ip(&format!("link set p0 netns {pid}"));
    pair.is("no-interface", "moved to another network namespace");
    // The veth of a namespace that ends is deleted, together with its other end.
    other.kill().expect("it is ours");
    other.wait().expect("it is ours");
    wait_until("p1 is gone", || io::find_interface("p1").is_err());
    join_interfaces();
    pair.is("whole", "");
    assert!(pair.passes());
}

#[test]
fn a_flapping_interface_is_reported_only_when_it_changes() {
    in_namespace(|| {
        join_interfaces();
        let mut pair = Pair::new(IoEngine::Plain);
        pair.is("whole", "");
        for _ in 0..50 {
            ip("link set p0 down");
            ip("link set p0 up");
        }
        pair.is("whole", "");
        let reports = pair.reports;
        ip("link add other type veth peer name another");
        ip("link set other up");
        for _ in 0..20 {
            pair.update();
        }
        assert_eq!(
            pair.reports, reports,
            "another interface is nobody's business"
        );
    });
}
