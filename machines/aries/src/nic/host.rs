//! The host of a NIC in the machine's time: issuing processes, the host interface, the memory
//! behind it, and the units of the NIC that have a rate.
//!
//! XC white paper, "Aries Performance". `docs/guide/src/virtual-time.md` lists each constant as
//! stated, inferred or decided. A host delays packets and completions; it never changes them.

use std::collections::BTreeMap;

use phitwire_framing::aries::packet::Command;

use super::client_words::client_of;
use super::outstanding::RequestOrigin;
use super::packet_buf::PacketBuf;
use phitwire::nic::local::Client;
use phitwire::nic::{MAX_WINDOWS, RunRequest};
use phitwire::time::{Duration, Time};

/// A cycle of the NIC: 800 MHz.
const CYCLE_PS: u64 = 1_250;
/// The unit of [`HostTimes::line_cycles`].
const LINE: u64 = 64;
/// The NIC accepts no packets while the backlog of the host interface exceeds this.
const MOST_BACKLOG: Duration = Duration::from_ns(100);
/// Maximum number of delayed responses; at this number the NIC accepts no requests.
const MOST_DELAYED: usize = 1024;

/// The times of a host: the `[host]` section of a description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostTimes {
    /// Processes that issue messages.
    pub processes: u32,
    /// Messages per second that one process can issue.
    pub issue_per_s: u64,
    /// Time that a write takes to cross the host interface, in either direction.
    pub crossing_ns: u64,
    /// Time that the NIC takes to read host memory, there and back.
    pub read_ns: u64,
    /// Rate of the host interface in each direction, in MB/s.
    pub pcie_mbytes_per_s: u64,
    /// Bytes of the host interface for each transfer, in addition to data.
    pub pcie_overhead_bytes: u64,
    /// Cycles of 800 MHz in which the NIC reads or writes 64 bytes.
    pub line_cycles: u64,
    /// Longest message that a process writes to the NIC; the block transfer engine reads longer
    /// ones.
    pub fma_bytes: u64,
    /// Cycles of 800 MHz between two atomic operations on cached variables.
    pub amo_hit_cycles: u64,
    /// Nanoseconds between two atomic operations that miss the cache.
    pub amo_miss_ns: u64,
    /// Time from the last arrival of an operation to its next message, in a collective engine.
    pub engine_step_ns: u64,
}

impl HostTimes {
    /// Intel Xeon E5 at 2.6 GHz, as in figures 11 to 15 of the XC white paper.
    pub const PAPER: Self = Self {
        processes: 1,
        issue_per_s: 7_500_000,
        crossing_ns: 173,
        read_ns: 790,
        pcie_mbytes_per_s: 16_000,
        pcie_overhead_bytes: 24,
        line_cycles: 5,
        fma_bytes: 1_024,
        amo_hit_cycles: 2,
        amo_miss_ns: 10,
        engine_step_ns: 10,
    };

    pub(crate) const fn issue(&self) -> Duration {
        Duration::from_ps(1_000_000_000_000 / self.issue_per_s)
    }

    pub(crate) const fn crossing(&self) -> Duration {
        Duration::from_ns(self.crossing_ns)
    }

    pub(crate) const fn read(&self) -> Duration {
        Duration::from_ns(self.read_ns)
    }

    /// The time between two collective operations of a process: it sees the result, and issues the
    /// next one.
    pub(crate) fn between_collectives(&self) -> Duration {
        self.issue() + self.crossing().times(2)
    }

    /// The time that `bytes` of data occupy a direction of the host interface: that of the NIC, or
    /// of PCI Express with its overhead if that is longer.
    const fn transfer(&self, bytes: u64) -> Duration {
        let cycles = (bytes * self.line_cycles).div_ceil(LINE);
        let (nic, pcie) = (cycles * CYCLE_PS, self.pcie(bytes));
        Duration::from_ps(if nic > pcie { nic } else { pcie })
    }

    const fn pcie(&self, bytes: u64) -> u64 {
        ((bytes + self.pcie_overhead_bytes) * 1_000_000).div_ceil(self.pcie_mbytes_per_s)
    }

    /// A read request, which carries no data.
    const fn request(&self) -> Duration {
        Duration::from_ps(self.pcie(0))
    }
}

/// A request as the target's host sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub command: Command,
    pub bytes: usize,
    /// Whether an atomic operation found its variable in the cache.
    pub hit: bool,
}

/// The host of one NIC. `down`, `up`, `atomics` and each process hold the time from which they are
/// free.
#[derive(Debug)]
pub(crate) struct Host {
    pub times: HostTimes,
    /// Processes that issue the messages of runs.
    processes: Vec<Time>,
    /// Local programs, by client number: a process each.
    programs: [Time; MAX_WINDOWS + 1],
    /// Data from the host to the NIC.
    down: Time,
    /// Data, and read requests, from the NIC to the host.
    up: Time,
    atomics: Time,
    /// Responses that wait for the host, by time and order.
    answers: BTreeMap<(Time, u64), PacketBuf>,
    serial: u64,
    /// The last call of [`arrive`](Self::arrive).
    now: Time,
}

/// Occupies a resource for `time`, starting at `at` or once it is free. Returns the end.
fn occupy(free: &mut Time, at: Time, time: Duration) -> Time {
    *free = (*free).max(at) + time;
    *free
}

impl Host {
    pub(crate) fn new(times: HostTimes, now: Time) -> Self {
        Self {
            processes: vec![now; times.processes.max(1) as usize],
            programs: [now; MAX_WINDOWS + 1],
            down: now,
            up: now,
            atomics: now,
            answers: BTreeMap::new(),
            serial: 0,
            now,
            times,
        }
    }

    /// When a process can issue the next message.
    pub(crate) fn next_free(&self) -> Time {
        let first = self.processes.iter().copied().min();
        first.unwrap_or(Time::ZERO)
    }

    /// Lets a program or, for a run, the first free process issue a message; returns when the NIC
    /// has it.
    fn issue(&mut self, now: Time, client: Option<Client>) -> Time {
        let issue = self.times.issue();
        let process = match client {
            Some(Client(number)) => self.programs.get_mut(usize::from(number)),
            None => self.processes.iter_mut().min(),
        };
        let issued = process.map_or(now, |free| occupy(free, now, issue));
        issued + self.times.crossing()
    }

    /// When a request of `origin` with `bytes` of data can leave the NIC.
    pub(crate) fn leaves(&mut self, now: Time, origin: RequestOrigin, bytes: usize) -> Time {
        match origin {
            RequestOrigin::Traffic(RunRequest::Message(_))
            | RequestOrigin::User(_)
            | RequestOrigin::Transaction(_) => {
                let client = match origin {
                    RequestOrigin::User(user) => client_of(user),
                    _ => None,
                };
                // The interface is not occupied while a message crosses it.
                let issued = self.issue(now, client);
                let moved = occupy(&mut self.down, now, self.times.transfer(bytes as u64));
                moved + issued.since(now)
            }
            RequestOrigin::Transfer(..) if bytes > 0 => {
                occupy(&mut self.up, now, self.times.request());
                occupy(&mut self.down, now, self.times.transfer(bytes as u64))
            }
            _ => now,
        }
    }

    /// When a block transfer that a program, or a process of a run, issues now can begin.
    pub(crate) fn block_begins(
        &mut self,
        now: Time,
        client: Option<Client>,
        (bytes, is_get): (u64, bool),
    ) -> Time {
        let issued = self.issue(now, client);
        let is_read = !is_get && bytes > self.times.fma_bytes;
        let read = if is_read {
            self.times.read()
        } else {
            Duration::ZERO
        };
        issued + read
    }

    /// When the last of the `bytes` bytes of a response is in host memory.
    pub(crate) fn lands(&mut self, now: Time, bytes: usize) -> Time {
        match bytes {
            0 => now,
            bytes => occupy(&mut self.up, now, self.times.transfer(bytes as u64)),
        }
    }

    /// When the processes see everything that has landed so far.
    pub(crate) fn seen(&self, now: Time) -> Time {
        self.up.max(now) + self.times.crossing()
    }

    /// When the response to `served` can leave.
    pub(crate) fn answers(&mut self, now: Time, served: Served) -> Time {
        let times = self.times;
        match served.command {
            Command::Put { .. } | Command::Message { .. } => self.lands(now, served.bytes),
            Command::Get { .. } => {
                occupy(&mut self.up, now, times.request());
                let data = times.transfer(served.bytes as u64);
                occupy(&mut self.down, now, data) + times.read()
            }
            Command::Amo { .. } => {
                let hit = Duration::from_ps(times.amo_hit_cycles * CYCLE_PS);
                let done = match served.hit {
                    true => occupy(&mut self.atomics, now, hit),
                    false => {
                        let miss = Duration::from_ns(times.amo_miss_ns);
                        occupy(&mut self.up, now, times.request());
                        occupy(&mut self.atomics, now, miss) + times.read()
                    }
                };
                // "Host memory is updated each time the variable is updated."
                self.lands(now, served.bytes);
                done
            }
            Command::Control { .. } => now,
        }
    }

    pub(crate) fn push_answer(&mut self, at: Time, packet: &PacketBuf) {
        self.serial += 1;
        self.answers.insert((at, self.serial), *packet);
    }

    /// The next response that can leave by `now`.
    pub(crate) fn pop_answer(&mut self, now: Time) -> Option<PacketBuf> {
        let first = self.answers.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }

    /// Whether the NIC accepts no requests, since too many responses wait.
    pub(crate) fn is_full(&self) -> bool {
        self.answers.len() >= MOST_DELAYED
    }

    /// When the NIC accepts packets again, if the host delays it now.
    pub(crate) fn busy_until(&self, now: Time) -> Option<Time> {
        let taken = self.up.max(self.atomics);
        let limit = now + MOST_BACKLOG;
        (taken > limit).then(|| now + taken.since(limit))
    }

    /// Begins a turn of the NIC.
    pub(crate) fn arrive(&mut self, now: Time) {
        self.now = now;
    }

    /// The time of the NIC's last turn.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// When the next response leaves the host, unless it already has and waits for the link.
    pub(crate) fn next_answer(&self) -> Option<Time> {
        let first = self.answers.keys().next();
        first.map(|&(at, _)| at).filter(|&at| at > self.now)
    }
}
