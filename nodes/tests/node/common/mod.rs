//! A node that moves verified frames, and network namespaces for the threads of a test.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::collections::VecDeque;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, unshare};
use phitwire::node::{Node, PortId, WakeReason, Wakeup};
use phitwire::time::{Duration as Span, Time};
use phitwire_nodes::clock::Clock;
use phitwire_nodes::driver::{Driven, Driver};
use phitwire_nodes::io::{self, Attachment, FrameSink, IoEngine, PortConfig};

/// Maximum number of unacknowledged frames, so that no socket buffer overflows.
const WINDOW: u64 = 256;

/// Sends `goal` numbered frames on every port, and checks order and every byte of received frames.
pub struct Toy {
    pub ports: Vec<ToyPort>,
    goal: u64,
    /// Whether lost frames are resent (go-back-N from the acknowledged frame).
    retry: bool,
}

#[derive(Default)]
pub struct ToyPort {
    pub sent: u64,
    pub acked: u64,
    pub expected: u64,
    /// Frames that arrived twice, or ahead of a lost one.
    pub out_of_order: u64,
    owes_ack: bool,
    last_progress: Time,
    /// Retries since the last acknowledgement or frame. Each waits twice as long as the previous
    /// one, so that copies do not flood a slow machine.
    tries: u32,
    pub complaints: VecDeque<String>,
}

impl ToyPort {
    fn retry_at(&self) -> Time {
        self.last_progress + Span::from_ms(6 << self.tries)
    }
}

/// Length in bytes of frame `number`: mostly full frames, every seventh a shorter one.
fn length(number: u64, limit: usize) -> usize {
    if number % 7 == 6 {
        17 + (number as usize * 131) % (limit - 17)
    } else {
        limit
    }
}

fn fill(number: u64, index: usize) -> u8 {
    (number as usize * 31 + index * 7) as u8
}

impl Toy {
    pub fn new(ports: usize, goal: u64, retry: bool) -> Self {
        Self {
            ports: (0..ports).map(|_| ToyPort::default()).collect(),
            goal,
            retry,
        }
    }

    pub fn is_done(&self) -> bool {
        self.ports
            .iter()
            .all(|p| p.acked == self.goal && p.expected == self.goal && !p.owes_ack)
    }
}

impl Node for Toy {
    type Event = String;

    fn ports(&self) -> usize {
        self.ports.len()
    }

    fn handle_frame(&mut self, now: Time, port: PortId, bytes: &[u8]) {
        let port = &mut self.ports[usize::from(port)];
        if bytes.len() < 17 {
            port.complaints
                .push_back(format!("a frame of {} bytes", bytes.len()));
            return;
        }
        let read = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap());
        let (number, ack) = (read(1), read(9));
        if ack > port.acked {
            port.acked = ack;
            (port.last_progress, port.tries) = (now, 0);
        }
        if bytes[0] == 0 {
            return;
        }
        port.owes_ack = true;
        if number != port.expected {
            port.out_of_order += 1;
            return;
        }
        let bad = (17..bytes.len()).find(|&i| bytes[i] != fill(number, i));
        if let Some(index) = bad {
            port.complaints
                .push_back(format!("frame {number}: byte {index} is wrong"));
        }
        port.expected += 1;
        (port.last_progress, port.tries) = (now, 0);
    }

    fn advance(&mut self, now: Time) {
        if !self.retry {
            return;
        }
        for port in &mut self.ports {
            if now >= port.retry_at() {
                port.sent = port.acked;
                port.owes_ack = true;
                port.last_progress = now;
                port.tries = (port.tries + 1).min(6);
            }
        }
    }

    fn ready_ports(&self) -> u64 {
        let mut mask = 0;
        for (i, port) in self.ports.iter().enumerate() {
            let may_send = port.sent < self.goal && port.sent < port.acked + WINDOW;
            mask |= u64::from(may_send || port.owes_ack) << i;
        }
        mask
    }

    fn poll_frame(&mut self, _now: Time, port: PortId, buf: &mut [u8]) -> Option<usize> {
        let port = &mut self.ports[usize::from(port)];
        let data = port.sent < self.goal && port.sent < port.acked + WINDOW;
        if !data && !port.owes_ack {
            return None;
        }
        let bytes = if data {
            length(port.sent, buf.len())
        } else {
            17
        };
        buf[0] = u8::from(data);
        buf[1..9].copy_from_slice(&port.sent.to_be_bytes());
        buf[9..17].copy_from_slice(&port.expected.to_be_bytes());
        for (index, byte) in buf[..bytes].iter_mut().enumerate().skip(17) {
            *byte = fill(port.sent, index);
        }
        port.owes_ack = false;
        port.sent += u64::from(data);
        Some(bytes)
    }

    fn next_wakeup(&self) -> Option<Wakeup> {
        let at = self.ports.iter().map(ToyPort::retry_at).min()?;
        self.retry.then_some(Wakeup {
            at,
            reason: WakeReason::Link,
        })
    }

    fn poll_event(&mut self) -> Option<String> {
        self.ports
            .iter_mut()
            .find_map(|port| port.complaints.pop_front())
    }
}

impl Driven for Toy {
    fn accepted(&self, port: PortId) -> u64 {
        self.ports[usize::from(port)].expected
    }
}

/// Receives frames without accepting any.
pub struct Take<F>(F);

impl<F: FnMut(PortId, &[u8])> Take<F> {
    pub fn new(take: F) -> Self {
        Self(take)
    }
}

impl<F: FnMut(PortId, &[u8])> FrameSink for Take<F> {
    fn frame(&mut self, port: PortId, bytes: &[u8]) {
        (self.0)(port, bytes);
    }

    fn accepted(&self, _port: PortId) -> u64 {
        0
    }
}

/// Drives a toy until it is done and its peer has had time to notice. Panics on a complaint, or
/// after 30 s.
pub fn run_toy(
    toy: Toy,
    engine: IoEngine,
    ports: &[PortConfig],
    mut each_turn: impl FnMut(&Toy, Instant),
) -> (Driver<Toy>, &'static str) {
    let backend = io::open(engine, ports, None).expect("the ports open");
    let name = backend.engine();
    let mut driver = Driver::new(toy, backend, Clock::new(), Duration::ZERO);
    let start = Instant::now();
    let mut done_at = None;
    loop {
        driver
            .turn(Some(Duration::from_millis(10)), |_, complaint| {
                panic!("{complaint}")
            })
            .expect("the backend works");
        each_turn(&driver.node, start);
        if driver.node.is_done() {
            done_at.get_or_insert_with(Instant::now);
        }
        if done_at.is_some_and(|at: Instant| at.elapsed() > Duration::from_millis(200)) {
            return (driver, name);
        }
        let progress: Vec<_> = driver
            .node
            .ports
            .iter()
            .map(|p| (p.sent, p.acked, p.expected))
            .collect();
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "stuck at {progress:?}: {:?}",
            driver.backend.counters()
        );
    }
}

/// `count` unused UDP addresses on loopback.
pub fn free_addresses(count: usize) -> Vec<SocketAddrV4> {
    let sockets: Vec<_> = (0..count)
        .map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
        .collect();
    sockets
        .iter()
        .map(|s| SocketAddrV4::new(Ipv4Addr::LOCALHOST, s.local_addr().unwrap().port()))
        .collect()
}

pub fn udp_port(
    port: PortId,
    local: SocketAddrV4,
    peer: SocketAddrV4,
    interface: Option<&str>,
) -> PortConfig {
    let interface = interface.map(str::to_owned);
    PortConfig {
        port,
        attachment: Attachment::Udp {
            local,
            peer,
            interface,
        },
        mtu: None,
    }
}

pub fn ethernet_port(port: PortId, interface: &str) -> PortConfig {
    let interface = interface.to_owned();
    let attachment = Attachment::Ethernet {
        interface,
        qdisc_bypass: false,
    };
    PortConfig {
        port,
        attachment,
        mtu: None,
    }
}

/// Reports that the test on this thread cannot run here. The line bypasses the test harness's
/// capture, so that `tests/run.sh` counts the test as skipped.
pub fn skip(reason: &str) {
    let name = std::thread::current().name().unwrap_or("main").to_owned();
    let line = format!("SKIPPED {name}: {reason}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

/// Moves the calling thread into a new network namespace. Returns false, and reports the reason, if
/// that is not allowed.
pub fn own_namespace() -> bool {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => true,
        Err(errno) => {
            skip(&format!("no network namespace can be made here: {errno}"));
            false
        }
    }
}

/// Runs `test` on a separate thread of the same name; panics if `test` does.
pub fn aside<T: Send + 'static>(test: impl FnOnce() -> T + Send + 'static) -> T {
    let name = std::thread::current().name().unwrap_or("main").to_owned();
    let thread = std::thread::Builder::new().name(name).spawn(test).unwrap();
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs `test` on a thread in a new network namespace; the test's own thread stays where it is.
pub fn in_namespace(test: impl FnOnce() + Send + 'static) {
    aside(|| {
        if own_namespace() {
            test();
        }
    });
}

/// Whether this process may create an io_uring. If not, reports the reason.
pub fn has_io_uring() -> bool {
    match io_uring::IoUring::new(8) {
        Ok(_) => true,
        Err(error) => {
            skip(&format!("the kernel refuses io_uring: {error}"));
            false
        }
    }
}

/// Waits until `is_so` returns true, for at most five seconds.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(5), "{what} not so");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Creates the pair `p0` and `p1` in the calling thread's namespace, and sets both up.
pub fn join_interfaces() {
    ip("link add p0 type veth peer name p1");
    ip("link set p0 up");
    ip("link set p1 up");
    wait_until_interfaces_send();
}

/// Waits until `p0` and `p1` can send: the kernel attaches their queues only after `ip` has
/// returned, and silently drops earlier frames.
pub fn wait_until_interfaces_send() {
    for interface in ["p0", "p1"] {
        let show = format!("-oneline link show {interface}");
        wait_until(interface, || ip(&show).contains(" state UP "));
    }
}

/// Runs `ip` in the calling thread's namespace, and returns its output.
pub fn ip(arguments: &str) -> String {
    let output = Command::new("ip")
        .args(arguments.split(' '))
        .output()
        .expect("ip starts");
    assert!(output.status.success(), "ip {arguments}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
