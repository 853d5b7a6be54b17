//! The wires of a process: the state of their interfaces, frames that the kernel rejects or drops,
//! and the log about them.

use std::io;
use std::mem::{Discriminant, discriminant};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use phitwire::node::PortId;
use pnet::util::MacAddr;

use crate::io::{
    Backend, FilterWatch, InterfaceWatch, PortConfig, SendFailure, SendNotice, Wire, WireState,
};
use crate::throttle::Throttle;

/// Interval of queries for state that the kernel does not announce.
const LOOK: Duration = Duration::from_secs(1);

/// A log notice about a wire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Notice {
    /// The state of a wire has changed.
    Wire { interface: String, state: WireState },
    /// An interface has a new hardware address.
    Readdressed { interface: String, mac: MacAddr },
    /// The kernel began or ceased to reject frames.
    Send(SendNotice),
    /// Messages dropped because receive buffers were full.
    SocketFull { messages: u64 },
}

type Kind = (
    Discriminant<Notice>,
    Option<Discriminant<SendNotice>>,
    Option<SendFailure>,
    PortId,
);

#[derive(Debug)]
struct PortWire {
    port: PortId,
    wire: Wire,
    state: WireState,
    /// Index and life of the interface that the port was last attached to.
    attached: Option<(u32, u32)>,
    mac: Option<MacAddr>,
    /// Whether the port was bound when opened, and not checked since.
    opened: bool,
}

/// See the module docs.
#[derive(Debug)]
pub struct Wires {
    watch: Option<InterfaceWatch>,
    filters: Option<FilterWatch>,
    wires: Vec<PortWire>,
    log: Throttle<Kind, (PortId, Notice)>,
    looked: Instant,
    /// Number of messages dropped by full sockets, as last logged.
    dropped: u64,
}

impl Wires {
    /// Watches the interfaces of these ports; their state is unknown before
    /// [`update`](Self::update).
    pub fn new(ports: &[PortConfig]) -> Self {
        // The required MTU is known only when the ports are open.
        let wires: Vec<_> = ports
            .iter()
            .map(|config| PortWire {
                port: config.port,
                wire: Wire::new(config, 0),
                state: WireState::Whole,
                attached: None,
                mac: None,
                opened: true,
            })
            .collect();
        let names = wires.iter().map(|of| of.wire.interface.clone());
        Self {
            watch: InterfaceWatch::new(names)
                .inspect_err(|error| tracing::warn!(%error, "cannot watch interfaces"))
                .ok(),
            // An ordinary process may not watch filters, and could not set any either.
            filters: FilterWatch::new()
                .inspect_err(|error| tracing::debug!(%error, "cannot watch filters"))
                .ok(),
            wires,
            log: Throttle::new(),
            looked: Instant::now(),
            dropped: 0,
        }
    }

    /// Records the frame lengths of the ports, which are known once they are open.
    pub fn opened(&mut self, ports: &[PortConfig], backend: &dyn Backend) {
        for (of, config) in self.wires.iter_mut().zip(ports) {
            of.wire = Wire::new(config, backend.frame_limit(of.port));
            of.opened = !backend.ports().is_detached(of.port);
        }
    }

    /// Readable when [`update`](Self::update) has something to do.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let interfaces = self.watch.as_ref().map(InterfaceWatch::fd);
        let filters = self.filters.as_ref().map(FilterWatch::fd);
        interfaces.into_iter().chain(filters)
    }

    /// Handles interface changes, binds ports to new interfaces, and reports changes in the defects
    /// of wires to `changed`: the name of the state, and the reason; `None` for an intact wire.
    pub fn update(
        &mut self,
        backend: &mut dyn Backend,
        mut changed: impl FnMut(PortId, Option<(&'static str, String)>),
    ) {
        if let Some(filters) = &mut self.filters
            && let Err(error) = filters.update()
        {
            tracing::warn!(%error, "stopped watching filters");
            self.filters = None;
        }
        let Some(watch) = &mut self.watch else {
            return;
        };
        if let Err(error) = watch.update() {
            // Stop watching: the socket would stay readable. Links continue; dead ones become
            // silent.
            tracing::warn!(%error, "stopped watching interfaces");
            self.watch = None;
            return;
        }
        let now = Instant::now();
        for of in &mut self.wires {
            let mut state = of.wire.judge(watch);
            if let Some(mac) = of.readdressed(watch) {
                let interface = of.wire.interface.clone();
                let notice = Notice::Readdressed { interface, mac };
                note(&mut self.log, now, of.port, notice);
            }
            // Ignore errors of a broken wire: its state gives the reason, and the port is attached
            // again after the repair.
            if let Err(error) = of.attach(backend, watch, &state)
                && state == WireState::Whole
            {
                state = WireState::Unbound(error.to_string());
            }
            if state == of.state {
                continue;
            }
            let why = state.why(&of.wire.interface);
            changed(of.port, why.map(|why| (state.name(), why)));
            let notice = Notice::Wire {
                interface: of.wire.interface.clone(),
                state: state.clone(),
            };
            of.state = state;
            note(&mut self.log, now, of.port, notice);
        }
    }

    /// Bit mask of the ports whose interface has a queueing discipline that must see single frames.
    pub fn single_frames(&self) -> u64 {
        let found = |of: &PortWire| self.watch.as_ref()?.find(&of.wire.interface);
        self.mask(|of| found(of).is_some_and(|found| found.single_frames))
    }

    /// Bit mask of the ports whose frames the kernel may drop, delay or change: those with such a
    /// discipline, or with a filter of nftables.
    pub fn impaired(&self) -> u64 {
        let filtered = |of: &PortWire| {
            let filters = self.filters.as_ref();
            filters.is_some_and(|filters| filters.is_filtered(&of.wire.interface))
        };
        self.single_frames() | self.mask(filtered)
    }

    fn mask(&self, is_in: impl Fn(&PortWire) -> bool) -> u64 {
        let ports = self.wires.iter().filter(|of| is_in(of));
        ports.fold(0, |mask, of| mask | 1 << of.port)
    }

    /// Logs frames that the kernel rejects, periodically queries its drops, and writes due lines.
    /// Returns whether [`update`](Self::update) should be called although nothing is readable.
    pub fn look(&mut self, backend: &mut dyn Backend) -> bool {
        let now = Instant::now();
        while let Some((port, notice)) = backend.ports_mut().poll_trouble(now) {
            note(&mut self.log, now, port, Notice::Send(notice));
        }
        let due = now.saturating_duration_since(self.looked) >= LOOK;
        if due {
            self.looked = now;
            let dropped = backend.counters().rx_dropped_socket_full;
            let messages = dropped - self.dropped;
            if messages > 0 {
                self.dropped = dropped;
                note(&mut self.log, now, 0, Notice::SocketFull { messages });
            }
        }
        self.log
            .flush(now, |(port, notice), count| write(*port, notice, count));
        due && self.is_unbound()
    }

    /// Time until [`look`](Self::look) is due without any frame.
    pub fn next_look(&self, backend: &dyn Backend) -> Option<Duration> {
        let ask = backend.ports().troubled() != 0 || self.is_unbound();
        let ask = ask.then(|| self.looked + LOOK);
        let at = [self.log.next_flush(), ask].into_iter().flatten().min()?;
        Some(at.saturating_duration_since(Instant::now()))
    }

    /// Writes all pending log records.
    pub fn flush_all(&mut self) {
        self.log.flush_all(Instant::now(), |(port, notice), count| {
            write(*port, notice, count)
        });
    }

    fn is_unbound(&self) -> bool {
        let unbound = |of: &PortWire| matches!(of.state, WireState::Unbound(_));
        self.wires.iter().any(unbound)
    }
}

impl PortWire {
    /// The new hardware address of the interface, if it has changed.
    fn readdressed(&mut self, watch: &InterfaceWatch) -> Option<MacAddr> {
        let mac = watch.find(&self.wire.interface)?.mac;
        let before = self.mac.replace(mac)?;
        if before == mac {
            return None;
        }
        if !self.wire.is_by_address() {
            // Bind again, since the frames carry the interface's address.
            self.attached = None;
        }
        Some(mac)
    }

    /// Binds the port to its interface if that is a new one. This happens as soon as the interface
    /// exists, since frames may arrive as soon as it is up. If the interface is usable again, also
    /// retries earlier failures.
    fn attach(
        &mut self,
        backend: &mut dyn Backend,
        watch: &InterfaceWatch,
        state: &WireState,
    ) -> io::Result<()> {
        let Some(found) = watch.find(&self.wire.interface) else {
            return Ok(());
        };
        if std::mem::take(&mut self.opened) {
            // Already bound when opened. Binding again requires rights that an ordinary process
            // lacks.
            self.attached = Some((found.index, found.life));
            return Ok(());
        }
        let is_another = self.attached != Some((found.index, found.life));
        let is_well_again = *state == WireState::Whole && self.state != WireState::Whole;
        if is_another || is_well_again {
            self.attached = None;
            let ports = backend.ports_mut();
            ports.attach_again(self.port, found.index, found.mac)?;
            self.attached = Some((found.index, found.life));
        }
        Ok(())
    }
}

fn note(log: &mut Throttle<Kind, (PortId, Notice)>, now: Instant, port: PortId, notice: Notice) {
    let send = match &notice {
        Notice::Send(send) => Some(*send),
        _ => None,
    };
    let failure = send.map(|send| match send {
        SendNotice::Failing { failure, .. } | SendNotice::Recovered { failure, .. } => failure,
    });
    let send = send.as_ref().map(discriminant);
    let kind = (discriminant(&notice), send, failure, port);
    log.note(now, kind, (port, notice), |(port, notice), count| {
        write(*port, notice, count);
    });
}

/// Logs the last of `count` notices of a kind, in one line.
fn write(port: PortId, notice: &Notice, count: u64) {
    match notice {
        Notice::Wire { interface, state } => match state.why(interface) {
            Some(why) => tracing::warn!(port, state = state.name(), count, "wire: {why}"),
            None => tracing::info!(port, interface, count, "wire: works again"),
        },
        Notice::Readdressed { interface, mac } => tracing::warn!(
            port,
            count,
            "the hardware address of interface {interface} changed to {mac}; the other end of a \
             UDP link sends to the old one until it resolves the address again (run `ip neigh \
             flush nud all dev INTERFACE` there)"
        ),
        Notice::Send(SendNotice::Failing { failure, errno }) => match failure {
            // Expected when peers start later.
            SendFailure::Refused => tracing::info!(port, %errno, "cannot send frames: {failure}"),
            _ => tracing::warn!(port, %errno, count, "cannot send frames: {failure}"),
        },
        Notice::Send(SendNotice::Recovered {
            failure,
            after,
            frames,
        }) => tracing::info!(
            port,
            frames,
            after_ms = after.as_millis() as u64,
            count,
            "sending frames again; frames were dropped because {failure}"
        ),
        Notice::SocketFull { messages } => tracing::warn!(
            messages,
            "the kernel dropped frames because receive buffers were full: the process was stopped \
             or got too little CPU time"
        ),
    }
}
