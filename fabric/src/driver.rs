//! Runs endpoints, each with its NIC and the clock.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use phitwire_client::door::{Access, Completion, Local, Status};
use phitwire_client::{AttachError, Error, Mapping, Nic, Options, VirtualClock};

use crate::attach_target::{self, AttachTarget};
use crate::engine::core::Segment;
use crate::engine::endpoint::Endpoint;
use crate::engine::reach::{LINE, Reach};
use crate::engine::shared::{Open, Shared};
use crate::engine::slots::{SEGMENT, STAGES, STAGES_AT};
use crate::engine::wire::{Address, PART};
use crate::limit::{Elapsed, Limit};
use crate::memory::Bytes;
use crate::wait::sleep;

/// Time limit for messages in flight at closing.
const DRAIN: Duration = Duration::from_secs(5);
/// While closing: interval of probes to peers that have not received everything. Ranks that end
/// together wait for each other's acknowledgements, and a NIC tries for seconds to deliver to a
/// program that has ended: a probe detects this sooner.
const ASK_AT_CLOSE: Duration = Duration::from_millis(50);
/// Maximum number of completions handled in one turn.
const TURN: usize = 256;
/// How long to wait for a free receive at the NIC while other programs close their endpoints. The
/// limit is short, since the domain's other endpoints wait, too.
pub const ROOM: Duration = Duration::from_secs(1);
/// Calls between two reads of the clock.
const CLOCK_EVERY: u32 = 32;
/// Longest sleep of a call that waits for its NIC.
const NAP: Duration = Duration::from_millis(5);

/// An endpoint, and the NIC that carries out its commands.
#[derive(Debug)]
pub struct Driver {
    /// The endpoint. After calls to it, [`Self::issue`] hands its commands to the NIC.
    pub endpoint: Endpoint,
    nic: Nic,
    elapsed: Elapsed,
    turns: u32,
    /// Time limit for registrations.
    patience: Duration,
    _counted: Counted,
}

/// Endpoints of this program, in all domains.
static ATTACHED: AtomicUsize = AtomicUsize::new(0);

/// Counts one of the program's endpoints while it exists.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn new() -> Self {
        ATTACHED.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ATTACHED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The clock of the virtual lab to which this program attached first.
static CLOCK: OnceLock<VirtualClock> = OnceLock::new();

/// The virtual time of the program's lab; `None` if it has attached to none.
pub fn virtual_clock() -> Option<Duration> {
    CLOCK.get().map(VirtualClock::now)
}

/// Number of endpoints of this program.
pub fn attached() -> usize {
    ATTACHED.load(Ordering::Relaxed)
}

/// Why an endpoint has not been attached to a NIC.
#[derive(Debug)]
pub enum Unattached {
    Attach(AttachError),
    /// The NIC behind this door has no messages, like those of a T3E.
    NoMessages(PathBuf),
}

impl From<AttachError> for Unattached {
    fn from(error: AttachError) -> Self {
        Self::Attach(error)
    }
}

impl fmt::Display for Unattached {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attach(error) => error.fmt(to),
            Self::NoMessages(door) => write!(
                to,
                "{}: this machine's NIC has no block transfers and messages, which programs over \
                 libfabric (MPI, OpenSHMEM) need; use a NIC of an Aries lab",
                door.display()
            ),
        }
    }
}

/// The memory that program and NIC share.
#[derive(Debug)]
struct SharedMemory(Arc<Mapping>);

impl Segment for SharedMemory {
    fn read(&self, offset: u64, out: &mut [u8]) {
        let read = self.0.read_data(offset, out);
        debug_assert!(read.is_ok(), "slots are inside");
    }

    fn write(&self, offset: u64, data: &[u8]) {
        let written = self.0.write_data(offset, data);
        debug_assert!(written.is_ok(), "slots are inside");
    }
}

impl Driver {
    /// Attaches to the NIC.
    ///
    /// # Errors
    /// See [`Unattached`].
    pub fn attach(target: &AttachTarget) -> Result<Self, Unattached> {
        let options = Options {
            job: target.job,
            member: None,
            data_bytes: SEGMENT,
        };
        let patience = attach_target::attach_patience();
        let mut nic = Nic::attach_within(&target.door, &options, patience)?;
        let has = nic.operations();
        if !(has.blocks && has.messages) {
            return Err(Unattached::NoMessages(target.door.clone()));
        }
        let stages = Local {
            offset: STAGES_AT,
            bytes: (STAGES * PART) as u64,
        };
        let handle = register(&mut nic, stages, patience)
            .and_then(|handle| handle.map_err(|status| status.to_string()))
            .map_err(|error| {
                unfit(
                    &target.door,
                    format!("its memory cannot be registered: {error}"),
                )
            })?;
        let reaches_own = target.reach && reaches_own(&mut nic, patience);
        let address = Address {
            processor: nic.processor(),
            member: nic.member(),
            incarnation: incarnation(&nic, handle),
        };
        let segment = Box::new(SharedMemory(nic.mapping().clone()));
        let mut driver = Self {
            endpoint: Endpoint::new(address, target.receives, segment, reaches_own),
            elapsed: Elapsed::new(&nic),
            nic,
            turns: 0,
            patience,
            _counted: Counted::new(),
        };
        if let Some(clock) = driver.nic.virtual_clock() {
            CLOCK.get_or_init(|| clock);
        }
        driver.issue(&mut Shared::default());
        Ok(driver)
    }

    /// Posts the endpoint's commands to the NIC until its queue is full.
    pub fn issue(&mut self, shared: &mut Shared) {
        let mut has_posted = false;
        while let Some(command) = self.endpoint.poll_command() {
            match self.nic.post(&command) {
                Ok(()) => {
                    self.endpoint.command_taken();
                    has_posted = true;
                }
                Err(Error::Full) => break,
                Err(error) => return self.end(shared, &error),
            }
        }
        if has_posted {
            self.nic.flush();
        }
    }

    /// Makes progress. Returns whether anything moved.
    pub fn progress(&mut self, shared: &mut Shared) -> bool {
        let (mut moved, mut is_all) = (false, false);
        for _ in 0..TURN {
            match self.nic.poll_at_once() {
                Ok(Some(completion)) => self.endpoint.handle_completion(shared, &completion),
                Ok(None) => {
                    is_all = true;
                    break;
                }
                Err(error) => {
                    self.end(shared, &error);
                    return moved;
                }
            }
            moved = true;
        }
        moved |= self.endpoint.advance(shared);
        if let Some(peer) = self.endpoint.take_foreign() {
            eprintln!("{}", of_another_job(peer));
        }
        self.turns = self.turns.wrapping_add(1);
        // Virtual time costs nothing to read, and the number of calls depends on the host.
        if is_all && (self.turns.is_multiple_of(CLOCK_EVERY) || self.nic.is_virtual()) {
            let elapsed = self.elapsed.get(&self.nic);
            self.endpoint.handle_timeout(shared, elapsed);
        }
        self.issue(shared);
        moved
    }

    fn end(&mut self, shared: &mut Shared, error: &Error) {
        if !self.endpoint.is_gone() {
            eprintln!("phitwire: {error}");
        }
        self.endpoint.handle_end(shared);
    }

    /// Requests a wake from the NIC. Returns whether it has no completion yet.
    pub fn arm(&mut self) -> bool {
        self.nic.arm()
    }

    /// Cancels [`Self::arm`].
    pub fn disarm(&mut self) {
        self.nic.disarm();
    }

    pub const fn nic(&self) -> &Nic {
        &self.nic
    }

    /// Makes the next turn read the clock.
    pub const fn read_clock(&mut self) {
        self.turns = CLOCK_EVERY - 1;
    }

    /// In a virtual lab, waits for a completion at any of this thread's NICs, for `most` at most.
    /// The next progress reports errors.
    pub fn pause(&mut self, most: Duration) {
        let _ = self.nic.pause_polling(most);
    }

    /// Makes progress, or sleeps for a while. Returns how long it may have slept.
    fn turn(&mut self, shared: &mut Shared) -> Duration {
        if self.progress(shared) {
            return Duration::ZERO;
        }
        if self.nic.is_virtual() {
            self.pause(NAP);
            return Duration::ZERO;
        }
        if !self.nic.arm() {
            return Duration::ZERO;
        }
        sleep([self.nic.fd(), self.nic.socket()], NAP);
        self.nic.disarm();
        NAP
    }

    /// Waits a few seconds at most until messages in flight have arrived, except those to programs
    /// that have ended.
    pub fn drain(&mut self, shared: &mut Shared) {
        let mut asks_at = self.elapsed.get(&self.nic) + ASK_AT_CLOSE;
        let (mut limit, mut asleep) = (Limit::new(DRAIN, &self.nic), Duration::ZERO);
        while !self.endpoint.is_gone()
            && !limit.has_passed(&self.nic, asleep)
            && !self.endpoint.is_drained()
        {
            asleep = self.turn(shared);
            let elapsed = self.elapsed.get(&self.nic);
            if elapsed >= asks_at {
                asks_at = elapsed + ASK_AT_CLOSE;
                self.endpoint.probe_unreached();
                self.issue(shared);
            }
        }
    }

    /// Whether the NIC has a receive for this endpoint, without which no message arrives. If other
    /// programs hold them all, waits for one, but not longer than `most`. If the NIC does not
    /// answer in that time, the result is still true.
    pub fn can_receive(&mut self, shared: &mut Shared, most: Duration) -> bool {
        let (mut limit, mut asleep) = (Limit::new(most, &self.nic), Duration::ZERO);
        let mut is_refused = false;
        self.endpoint.begin_check();
        self.issue(shared);
        while !self.endpoint.is_gone() && self.endpoint.has_receives() != Some(true) {
            if self.endpoint.has_receives() == Some(false) {
                is_refused = true;
                match self.nic.is_virtual() {
                    true => self.pause(NAP),
                    false => sleep([self.nic.socket()], NAP),
                }
                asleep += NAP;
                self.endpoint.begin_check();
                self.issue(shared);
            }
            if limit.has_passed(&self.nic, asleep) {
                return !is_refused;
            }
            asleep = self.turn(shared);
        }
        true
    }

    /// Opens memory to peers and returns its key; `None` if NICs cannot reach it.
    pub fn open_memory(
        &mut self,
        shared: &mut Shared,
        bytes: &Bytes,
        access: u64,
    ) -> Option<(u64, Open)> {
        let base = self.endpoint.begin_opening(bytes, access)?;
        let (Status::Done, handle) = self.wait_for_registration(shared)? else {
            return None;
        };
        let handle = u16::try_from(handle).ok()?;
        let reach = Reach { handle, base };
        let Some(key) = shared.new_key_of(reach) else {
            self.close_memory(shared, handle);
            return None;
        };
        let by = Some(self.endpoint.address());
        Some((key, Open { reach, by }))
    }

    /// Ends transfers from and to registered memory that has been removed, and waits until NICs no
    /// longer access it.
    pub fn end_transfers(&mut self, shared: &mut Shared, key: u64) {
        self.endpoint.region_closed(shared, key);
        self.issue(shared);
        let (mut limit, mut asleep) = (Limit::new(self.patience, &self.nic), Duration::ZERO);
        while self.endpoint.is_using(key)
            && !self.endpoint.is_gone()
            && !limit.has_passed(&self.nic, asleep)
        {
            asleep = self.turn(shared);
        }
    }

    /// Closes opened memory. After this, no peer's NIC can access it under this handle, unless the
    /// program's NIC has not answered in time.
    pub fn close_memory(&mut self, shared: &mut Shared, handle: u16) {
        self.endpoint.begin_closing(handle);
        self.wait_for_registration(shared);
    }

    fn wait_for_registration(&mut self, shared: &mut Shared) -> Option<(Status, u64)> {
        let (mut limit, mut asleep) = (Limit::new(self.patience, &self.nic), Duration::ZERO);
        self.issue(shared);
        while self.endpoint.ended_registration().is_none()
            && !self.endpoint.is_gone()
            && !limit.has_passed(&self.nic, asleep)
        {
            asleep = self.turn(shared);
        }
        let ended = self.endpoint.ended_registration();
        self.endpoint.leave_registration();
        ended
    }
}

/// Operations on such a peer may end without an error, as for one that has ended.
fn of_another_job(peer: Address) -> String {
    format!(
        "phitwire: the program at processor {} is of another job, or {peer} has ended; programs \
         that communicate need the same PHITWIRE_JOB (mpi.sh --job)",
        peer.processor
    )
}

fn unfit(door: &std::path::Path, what: String) -> AttachError {
    AttachError::Unfit {
        path: PathBuf::from(door),
        what,
    }
}

/// Registers memory that peers may get from; returns its handle, or why there is none.
fn register(nic: &mut Nic, part: Local, patience: Duration) -> Result<Result<u16, Status>, String> {
    let access = Access {
        put: false,
        get: true,
        atomic: false,
    };
    let said = |error: Error| error.to_string();
    nic.register(0, part, access).map_err(said)?;
    match nic.wait(Some(patience)).map_err(said)? {
        Some(Completion::End {
            status: Status::Done,
            word,
            ..
        }) => u16::try_from(word)
            .map(Ok)
            .map_err(|_| format!("{word} is not a valid handle")),
        Some(Completion::End { status, .. }) => Ok(Err(status)),
        Some(other) => Err(format!(
            "expected the end of the registration, received {other:?}"
        )),
        None => Err("no response".into()),
    }
}

/// Whether the NIC can access the program's memory: registers some, and closes it again.
fn reaches_own(nic: &mut Nic, patience: Duration) -> bool {
    static PROBE: [u64; 16] = [0; 16];
    let at = (&raw const PROBE).addr() as u64;
    let part = Local::own(at.next_multiple_of(LINE), LINE);
    let Ok(Ok(handle)) = register(nic, part, patience) else {
        return false;
    };
    nic.deregister(0, handle).is_ok() && matches!(nic.wait(Some(patience)), Ok(Some(_)))
}

/// A number that differs from that of the next program at this address. In a virtual lab it depends
/// on nothing else, since messages contain it.
fn incarnation(nic: &Nic, handle: u16) -> u32 {
    if let Some(attachment) = nic.attachment() {
        return (attachment as u32) << 16 | u32::from(handle);
    }
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanos = time.map_or(0, |time| time.as_nanos() as u64);
    let mixed = (nanos ^ u64::from(std::process::id()) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 & !0xffff | u32::from(handle)
}

#[cfg(test)]
mod tests;
