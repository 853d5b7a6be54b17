//! A node as a process: opens its ports, drives it, serves its control socket, and shuts down in
//! order.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_timerslack;
use phitwire::device::{Device, DeviceEvent, EventKind, Kind};
use phitwire::link::LinkConfig;
use phitwire::net::LinkAddresses;
use phitwire::node::PortId;
use phitwire_framing::carrier::frame::{LinkEnd, UDP_PORT};
use serde_json::{Map, Value, json};

use crate::clock::{self, Clock};
use crate::control::Request;
use crate::control::server::Server;
use crate::core_affinity::{CoreAffinity, NetworkPosition};
use crate::door::Door;
use crate::driver::Driver;
use crate::io::{self as ports_io, Attachment, IoEngine, LinkKind, OpenError, PortConfig};
use crate::ip::{self, IpConfig, IpDoor};
use crate::live_device::LiveDevice;
use crate::output;
use crate::run_dir::{LabDir, RunDirError};
use crate::stop::Stop;
use crate::throttle::Throttle;
use crate::wires::Wires;

/// How long a process drains after a request to stop.
const DRAIN: Duration = Duration::from_secs(1);

/// Interval of checks whether the node is empty, while draining.
const DRAIN_LOOK: Duration = Duration::from_millis(10);

/// Permitted delay of the end of a sleep, in nanoseconds, which lets the kernel coalesce wake-ups.
const TIMER_SLACK_NS: u64 = 1_000;

/// Interval at which a busy node checks the control socket, in addition to when a wait reports it
/// ready.
const CONTROL_INTERVAL: Duration = Duration::from_millis(4);

/// Configuration of a process and its ports.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    pub node: String,
    pub lab: String,
    pub link: LinkKind,
    /// The engine that sends and receives frames.
    pub io: IoEngine,
    /// Largest MTU to use; `None` takes that of the interfaces.
    pub mtu: Option<usize>,
    /// `Some(base)` uses UDP ports on loopback instead of interfaces: link `i` has `base + 2i` at
    /// its end A and the next one at its end B.
    pub loopback: Option<u16>,
    /// Whether raw Ethernet frames skip the queueing discipline (and with it `tc netem`).
    pub qdisc_bypass: bool,
    /// Whether several frames may go out in one segmentation-offload send.
    pub offload: bool,
    /// How long to poll for frames before sleeping.
    pub spin: Duration,
    /// Position in the network, to stay on one core while there is little to do.
    pub position: Option<NetworkPosition>,
    /// IP over the fabric, if wanted; routers ignore it.
    pub ip: Option<IpConfig>,
    /// Seed of the noise of fault commands.
    pub seed: u64,
}

/// Why a process could not start, or stopped.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    #[error(transparent)]
    RunDir(#[from] RunDirError),
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The UDP port of the link exceeds 65535.
    #[error("link {link} needs UDP port {port}, above 65535; choose a lower --loopback base port")]
    LoopbackPort {
        link: u16,
        /// UDP port that the link would need.
        port: u32,
    },
    #[error("the plan has no address for link {0}")]
    NoAddress(u16),
    #[error("cannot install the signal handler: {0}")]
    Signals(#[from] ctrlc::Error),
    #[error(
        "cannot create the control socket {path}: {source}; set PHITWIRE_RUN_DIR to another \
         directory"
    )]
    ControlSocket { path: PathBuf, source: io::Error },
    #[error("cannot create the door {path}: {source}; set PHITWIRE_RUN_DIR to another directory")]
    Door { path: PathBuf, source: io::Error },
    #[error("cannot create the wake-up descriptor: {0}")]
    Wake(io::Error),
    #[error("--ip: {0}")]
    Ip(#[from] ip::OpenError),
    #[error("event loop failed: {0}")]
    Loop(#[from] io::Error),
}

/// The configuration of `port`, whose link is `link`.
///
/// # Errors
/// When the link's number exceeds the loopback ports or addresses.
pub fn attach(
    config: &ProcessConfig,
    port: PortId,
    link: &LinkConfig,
) -> Result<PortConfig, ProcessError> {
    let at_a = link.end() == LinkEnd::A;
    let interface = format!("p{port}");
    let attachment = match (config.loopback, config.link) {
        (Some(base), _) => {
            let even = u32::from(base) + 2 * u32::from(link.link());
            let address = |end: u32| {
                let port = u16::try_from(even + end);
                port.map(|port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
                    .map_err(|_| ProcessError::LoopbackPort {
                        link: link.link(),
                        port: even + end,
                    })
            };
            let (a, b) = (address(0)?, address(1)?);
            let (local, peer) = if at_a { (a, b) } else { (b, a) };
            Attachment::Udp {
                local,
                peer,
                interface: None,
            }
        }
        (None, LinkKind::Udp) => {
            let LinkAddresses { a, b } = LinkAddresses::of(usize::from(link.link()))
                .ok_or(ProcessError::NoAddress(link.link()))?;
            let (local, peer) = if at_a { (a, b) } else { (b, a) };
            let at = |address| SocketAddrV4::new(address, UDP_PORT);
            Attachment::Udp {
                local: at(local),
                peer: at(peer),
                interface: Some(interface),
            }
        }
        (None, LinkKind::Ethernet) => Attachment::Ethernet {
            interface,
            qdisc_bypass: config.qdisc_bypass,
        },
    };
    Ok(PortConfig {
        port,
        attachment,
        mtu: config.mtu,
    })
}

/// Runs `device` until a request to stop, then prints a summary on standard output.
///
/// # Errors
/// When the process cannot start, or its event loop fails.
pub fn run(
    config: &ProcessConfig,
    mut device: Box<dyn Device>,
    clock: Clock,
) -> Result<(), ProcessError> {
    // Otherwise the kernel may end each sleep 50 us late, which exceeds the delay of a link.
    if let Err(error) = set_timerslack(TIMER_SLACK_NS) {
        tracing::debug!(%error, "cannot set the timer slack");
    }
    let claim = LabDir::new(&config.lab)?.claim(&config.node)?;
    let stop = Stop::new().map_err(ProcessError::Wake)?;
    stop.on_signals()?;
    let mut ports: Vec<PortConfig> = Vec::new();
    for (port, link) in device.links() {
        ports.push(attach(config, port, link.config())?);
    }
    let mut wires = Wires::new(&ports);
    let ip = config.ip.filter(|_| device.kind() == Kind::Nic);
    let ip = ip.map(|ip| IpDoor::open(ip, &mut *device));
    let ip = ip.transpose()?;
    let door = device.local_port().map(|_| Door::bind(claim.door()));
    let door = door.transpose().map_err(|source| ProcessError::Door {
        path: claim.door().to_owned(),
        source,
    })?;
    let mut watched = vec![stop.wake_fd()];
    watched.extend(wires.fds());
    let wires_readable = bits_from(1, watched.len());
    // Append descriptors that only wake the loop. The others are identified by position.
    watched.extend(ip.as_ref().and_then(IpDoor::fd));
    watched.extend(door.as_ref().map(Door::fd));
    let server =
        Server::bind(claim.socket(), &watched).map_err(|source| ProcessError::ControlSocket {
            path: claim.socket().to_owned(),
            source,
        })?;
    let mut backend = ports_io::open(config.io, &ports, Some(server.raw_fd()))?;
    let turns = device.links().map(|(_, link)| link.bytes_per_turn());
    backend.ports_mut().set_bytes_per_turn(turns.sum());
    wires.opened(&ports, &*backend);
    tracing::info!(
        node = config.node,
        kind = device.kind().name(),
        ports = ports.len(),
        engine = backend.engine(),
        "running"
    );
    let home = config
        .position
        .and_then(|position| CoreAffinity::of(position, clock.now()));
    let device = LiveDevice::new(device, config.seed);
    let driver = Driver::new(device, backend, clock, config.spin);
    let mut process = Process {
        config,
        driver,
        server,
        stop,
        wires,
        wires_readable,
        ip,
        door,
        home,
        offload: config.offload,
        started: Instant::now(),
        events: Throttle::new(),
    };
    process.update_wires();
    let drained = process.run()?;
    process.events.flush_all(Instant::now(), log);
    process.wires.flush_all();
    if let Err(error) = output::print(&process.summary(drained)) {
        tracing::warn!(%error, "cannot print the summary");
    }
    Ok(())
}

/// Bit of the first watched descriptor in the result of [`Server::serve`], which has a bit for each
/// in their order.
const STOP_READABLE: u32 = 1 << 0;

/// The bits of the descriptors from `first` to the one before `end`.
const fn bits_from(first: usize, end: usize) -> u32 {
    (1 << end) - (1 << first)
}

struct Process<'a> {
    config: &'a ProcessConfig,
    driver: Driver<LiveDevice>,
    server: Server,
    stop: Stop,
    wires: Wires,
    /// Bits of the wires' descriptors in the result of [`Server::serve`].
    wires_readable: u32,
    ip: Option<IpDoor>,
    door: Option<Door>,
    home: Option<CoreAffinity>,
    /// Whether segmentation offload is wanted.
    offload: bool,
    started: Instant,
    /// Throttled events. For each port, there are as many kinds as events have variants.
    events: Throttle<EventKind, DeviceEvent>,
}

impl Process<'_> {
    /// The event loop. Returns whether the node was empty at its end.
    fn run(&mut self) -> io::Result<bool> {
        let mut look = self.driver.now();
        let mut drain_until: Option<Instant> = None;
        loop {
            let mut longest = self.longest_sleep(drain_until.is_some());
            let asks = self.driver.is_idle().then_some(&self.door);
            let asks = asks.and_then(Option::as_ref);
            if asks.is_some_and(Door::before_sleep) {
                longest = Some(Duration::ZERO);
            }
            let events = &mut self.events;
            let side = self.driver.turn(longest, |_, event| {
                events.note(Instant::now(), event.kind(), event, log);
            })?;
            if let Some(door) = &self.door {
                door.after_sleep();
            }
            self.pass_ip();
            self.pass_door(drain_until.is_some());
            let events = &mut self.events;
            if events.next_flush().is_some() {
                events.flush(Instant::now(), log);
            }
            let now = self.driver.turned();
            if side || clock::until(look, now) >= CONTROL_INTERVAL {
                self.serve_control()?;
                if self.wires.look(&mut *self.driver.backend) {
                    self.update_wires();
                }
                look = self.driver.now();
                if let Some(home) = &mut self.home {
                    home.look(look);
                }
            }
            match (self.stop.requests(), drain_until) {
                (0, _) => {}
                (1, None) => {
                    let now = self.driver.now();
                    self.driver.node.device.begin_drain(now);
                    drain_until = Some(Instant::now() + DRAIN);
                }
                (1, Some(until)) => {
                    let empty = self.driver.node.device.holds() == 0 && self.driver.is_idle();
                    if empty || Instant::now() >= until {
                        return Ok(empty);
                    }
                }
                _ => return Ok(false),
            }
        }
    }

    /// Passes packets between the kernel and the fabric.
    fn pass_ip(&mut self) {
        let now = self.driver.turned();
        if let Some(ip) = &mut self.ip
            && let Some(puts) = self.driver.node.device.remote_puts()
            && ip.pass(now, puts)
        {
            self.driver.wake();
        }
    }

    /// Passes commands and completions between local programs and the NIC.
    fn pass_door(&mut self, is_draining: bool) {
        let now = self.driver.turned();
        if let Some(door) = &mut self.door
            && let Some(port) = self.driver.node.device.local_port()
            && door.pass(now, port, is_draining)
        {
            self.driver.wake();
        }
    }

    /// The longest sleep permitted by everything except the node.
    fn longest_sleep(&self, draining: bool) -> Option<Duration> {
        let flush = self.events.next_flush();
        let flush = flush.map(|at| at.saturating_duration_since(Instant::now()));
        let drain = draining.then_some(DRAIN_LOOK);
        let look = self.wires.next_look(&*self.driver.backend);
        let ip = self.ip.as_ref().and_then(IpDoor::next_deadline);
        let ip = ip.map(|at| clock::until(self.driver.now(), at));
        let door = self.door.as_ref().and_then(Door::pause);
        [flush, drain, look, ip, door, self.server.pause()]
            .into_iter()
            .flatten()
            .min()
    }

    fn serve_control(&mut self) -> io::Result<()> {
        let Self {
            config,
            driver,
            server,
            stop,
            offload,
            started,
            ip,
            door,
            ..
        } = self;
        let (now, mut gone) = (driver.now(), false);
        if let Some(door) = door
            && let Some(port) = driver.node.device.local_port()
        {
            gone = door.serve(now, port)?;
        }
        let wanted = *offload;
        let served = server.serve(|client, request| match request {
            Request::Stats => Ok(Value::Object(stats(driver, ip.as_ref(), door.as_ref()))),
            Request::Info => Ok(info(config, driver, *started)),
            Request::Offload { enabled } => {
                *offload = enabled;
                Ok(json!({ "offload": enabled }))
            }
            Request::Shutdown => {
                stop.request();
                Ok(json!({}))
            }
            request => {
                let now = driver.now();
                driver.node.answer(now, client, request)
            }
        })?;
        for &client in &served.gone {
            let now = driver.now();
            driver.node.client_gone(now, client);
        }
        if served.requests > 0 || !served.gone.is_empty() || gone {
            driver.wake();
        }
        if served.readable & STOP_READABLE != 0 {
            stop.acknowledge();
        }
        if served.readable & self.wires_readable != 0 {
            self.update_wires();
        } else if self.offload != wanted {
            self.set_segmentation();
        }
        Ok(())
    }

    fn update_wires(&mut self) {
        let Driver { node, backend, .. } = &mut self.driver;
        self.wires
            .update(&mut **backend, |port, wrong| node.set_wire(port, wrong));
        self.set_segmentation();
    }

    /// Allows several frames per call where offload is wanted and no queueing discipline must see
    /// single frames.
    fn set_segmentation(&mut self) {
        self.driver.node.set_impaired(self.wires.impaired());
        let single_frames = self.wires.single_frames();
        let allowed = if self.offload { !single_frames } else { 0 };
        self.driver.backend.set_segmentation(allowed);
    }

    fn summary(&self, drained: bool) -> String {
        let mut sums: BTreeMap<String, u64> = BTreeMap::new();
        self.driver.node.for_each_counter(&mut |name, value| {
            let name = match name.split_once('.') {
                Some((port, rest)) if port.starts_with("port") => rest,
                _ => name,
            };
            *sums.entry(name.to_owned()).or_default() += value;
        });
        let io = self.driver.backend.counters();
        let mut text = format!(
            "{} `{}` of lab `{}` ran for {:.1} s and ended {}\n  frames sent {}, received {}, \
             dropped {}; engine {}\n",
            self.driver.node.device.kind(),
            self.config.node,
            self.config.lab,
            self.started.elapsed().as_secs_f64(),
            if drained {
                "with no packets or requests left"
            } else {
                "with packets or requests left"
            },
            io.frames_sent,
            io.frames_received,
            io.frames_dropped(),
            self.driver.backend.engine(),
        );
        for (name, value) in sums.iter().filter(|(_, value)| **value > 0) {
            text.push_str(&format!("  {name} {value}\n"));
        }
        text
    }
}

/// Logs the last of `count` events of a kind, in one line.
fn log(event: &DeviceEvent, count: u64) {
    match (event.link(), count) {
        (Some((port, event)), 1) => tracing::info!(port, ?event, "link"),
        (Some((port, event)), _) => tracing::info!(port, ?event, count, "link"),
        (None, 1) => tracing::info!(?event, "event"),
        (None, _) => tracing::info!(?event, count, "event"),
    }
}

/// Every counter by name: the node's own, `portN.` for links, `io.` for the backend, `loop.` for
/// the event loop, `ip.` for IP, `door.` for local programs.
fn stats(
    driver: &Driver<LiveDevice>,
    ip: Option<&IpDoor>,
    door: Option<&Door>,
) -> Map<String, Value> {
    let mut all = Map::new();
    driver.node.for_each_counter(&mut |name, value| {
        all.insert(name.to_owned(), json!(value));
    });
    let io = driver.backend.counters();
    io.for_each(|name, value| {
        all.insert(format!("io.{name}"), json!(value));
    });
    all.insert("io.frames_dropped".to_owned(), json!(io.frames_dropped()));
    driver.counters().for_each(|name, value| {
        all.insert(format!("loop.{name}"), json!(value));
    });
    if let Some(ip) = ip {
        ip.for_each_counter(|name, value| {
            all.insert(format!("ip.{name}"), json!(value));
        });
    }
    if let Some(door) = door {
        door.for_each_counter(|name, value| {
            all.insert(format!("door.{name}"), json!(value));
        });
    }
    all
}

fn info(config: &ProcessConfig, driver: &Driver<LiveDevice>, started: Instant) -> Value {
    let mut info = Map::new();
    let ports: Vec<Value> = driver
        .node
        .linked_ports()
        .map(|port| json!({ "port": port, "frame_limit": driver.backend.frame_limit(port) }))
        .collect();
    for (name, value) in [
        ("node", json!(config.node)),
        ("lab", json!(config.lab)),
        ("kind", json!(driver.node.device.kind().name())),
        ("pid", json!(std::process::id())),
        ("version", json!(env!("CARGO_PKG_VERSION"))),
        (
            "link",
            if config.loopback.is_some() {
                json!("loopback")
            } else {
                json!(config.link)
            },
        ),
        ("engine", json!(driver.backend.engine())),
        ("uptime_ms", json!(started.elapsed().as_millis() as u64)),
        ("ports", json!(ports)),
    ] {
        info.insert(name.to_owned(), value);
    }
    let device = &driver.node.device;
    if let Some(traffic) = device.traffic() {
        let can = traffic.abilities();
        info.insert("max_size".to_owned(), json!(can.max_size));
        info.insert("get_unit".to_owned(), json!(can.get_unit));
        info.insert(
            "collectives".to_owned(),
            json!(device.collectives().is_some()),
        );
    }
    if let Some(barriers) = device.barriers() {
        info.insert("barrier_units".to_owned(), json!(barriers.units()));
    }
    info.extend(device.describe());
    Value::Object(info)
}
