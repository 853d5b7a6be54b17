//! NICs without a network, in a thread that executes commands at once between the attached
//! programs: sufficient to test a client.

mod order;

use order::Order;
use phitwire_client::Mapping;
use phitwire_client::descriptors::{self, Event};
use phitwire_client::door::hello::{ANY_MEMBER, Entry, HELLO_BYTES, Hello, Operations, Welcome};
use phitwire_client::door::{
    Access, AtomicOp, COMMAND_BYTES, Command, Completion, Local, Remote, Request, Status,
};
use phitwire_client::ring::NicEnd;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// The doors, and the thread behind them.
#[allow(dead_code, reason = "no test uses all of it")]
pub struct Fake {
    pub doors: Vec<PathBuf>,
    _directory: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    /// Bit mask of the NICs that do not answer.
    silent: Arc<AtomicU64>,
    event: Arc<Event>,
    pace: Pace,
    thread: Option<JoinHandle<()>>,
}

/// Number of calls of [`Fake::settle`], and how many of these the thread has answered because
/// nothing was left to do.
#[derive(Clone, Default)]
struct Pace {
    asked: Arc<AtomicU64>,
    done: Arc<AtomicU64>,
}

#[allow(dead_code, reason = "no test uses all of it")]
impl Fake {
    /// Starts `count` NICs.
    pub fn start(count: usize) -> Self {
        Self::start_as(count, true, None)
    }

    /// Starts NICs that change the last byte of all stores, and add one too many.
    pub fn start_wrong(count: usize) -> Self {
        Self::start_as(count, false, None)
    }

    /// Starts NICs that take one command at a time, when all programs wait, in an order drawn from
    /// `seed`: see [`order`]. If no program can continue, all are disconnected.
    pub fn start_in_order(count: usize, seed: u64) -> Self {
        Self::start_as(count, true, Some(Order::new(seed)))
    }

    fn start_as(count: usize, is_right: bool, order: Option<Order>) -> Self {
        let directory = tempfile::tempdir().expect("there is room");
        let path = |n| directory.path().join(format!("nic-{n}.door"));
        let doors: Vec<_> = (0..count).map(path).collect();
        let listen = |door: &PathBuf| {
            let listener = UnixListener::bind(door).expect("the path is new");
            listener.set_nonblocking(true).expect("it can be");
            listener
        };
        let stop = Arc::new(AtomicBool::new(false));
        let silent = Arc::new(AtomicU64::new(0));
        let event = Arc::new(Event::new().expect("there are descriptors"));
        let pace = Pace::default();
        let mut nics = Nics {
            listeners: doors.iter().map(listen).collect(),
            event: event.clone(),
            pace: pace.clone(),
            programs: Vec::new(),
            domains: Vec::new(),
            sends: Vec::new(),
            silent: silent.clone(),
            unanswered: Vec::new(),
            is_right,
            order,
        };
        let thread = std::thread::spawn({
            let stop = stop.clone();
            move || {
                while !stop.load(Relaxed) && !nics.is_jammed() {
                    nics.work();
                }
            }
        });
        Self {
            doors,
            _directory: directory,
            stop,
            silent,
            event,
            pace,
            thread: Some(thread),
        }
    }

    /// Returns when all commands flushed before have been executed, all completions delivered, and
    /// programs that have left removed. Exceptions are commands to silent NICs, and messages
    /// without a receive. So no test depends on the machine's speed. Not for NICs that take
    /// commands in a drawn order.
    pub fn settle(&self) {
        let number = self.pace.asked.fetch_add(1, AcqRel) + 1;
        self.event.wake();
        let end = Instant::now() + Duration::from_secs(60);
        while self.pace.done.load(Acquire) < number {
            assert!(Instant::now() < end, "the network interfaces stand still");
            std::thread::yield_now();
        }
    }

    /// Disconnects a NIC without notice.
    pub fn silence(&self, processor: u16) {
        self.silent.fetch_or(1 << processor, AcqRel);
    }

    /// Reconnects all NICs. Commands sent to silent ones time out.
    pub fn rejoin(&self) {
        self.silent.store(0, Release);
        self.event.wake();
    }

    /// Ends all NICs.
    pub fn stop(&mut self) {
        self.stop.store(true, Relaxed);
        self.event.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the network interfaces are right");
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// Maximum number of posted receives at one NIC.
const MOST_RECEIVES: usize = 1024;

struct Program {
    processor: u16,
    member: u8,
    job: u64,
    end: NicEnd,
    socket: UnixStream,
    event: Event,
    receives: VecDeque<(u64, Local)>,
    /// Number of sends that wait for a receive.
    sending: u64,
    is_gone: bool,
}

/// Registered memory of a program.
struct Domain {
    program: usize,
    part: Local,
    access: Access,
}

struct Send {
    program: usize,
    name: u64,
    to: usize,
    from: Local,
}

struct Nics {
    listeners: Vec<UnixListener>,
    event: Arc<Event>,
    pace: Pace,
    programs: Vec<Program>,
    domains: Vec<Option<Domain>>,
    sends: Vec<Send>,
    silent: Arc<AtomicU64>,
    /// Program and name of each command to a silent NIC.
    unanswered: Vec<(usize, u64)>,
    is_right: bool,
    order: Option<Order>,
}

type Ended<T = u64> = Result<T, Status>;

impl Nics {
    fn work(&mut self) {
        self.accept();
        if self.order.is_some() {
            return self.work_in_order();
        }
        // Commands flushed later may or may not be in this round.
        let asked = self.pace.asked.load(Acquire);
        let mut has_worked = false;
        for at in 0..self.programs.len() {
            let mut entry = [0xa5; COMMAND_BYTES];
            while self.next_command(at, &mut entry) {
                has_worked = true;
                self.carry_out(at, &entry);
            }
        }
        if self.silent.load(Acquire) == 0 {
            for (at, name) in std::mem::take(&mut self.unanswered) {
                self.end(at, name, Err(Status::TimedOut), 0);
            }
        }
        self.deliver();
        self.publish();
        if !has_worked {
            // A program that leaves has flushed its commands before.
            self.notice_gone();
            self.pace.done.store(asked, Release);
            self.sleep();
        }
    }

    fn publish(&mut self) {
        for program in self.programs.iter_mut().filter(|p| !p.is_gone) {
            if program.end.publish() {
                program.event.wake();
            }
        }
    }

    fn sleep(&mut self) {
        let here = || self.programs.iter().filter(|p| !p.is_gone);
        here().for_each(|p| p.end.sleeps_until_room());
        if !here().any(|p| p.end.has_commands() || p.end.has_more_room()) {
            let listeners = self.listeners.iter().map(AsFd::as_fd);
            let sockets = here().map(|p| p.socket.as_fd());
            let all = listeners.chain(sockets).chain([self.event.as_fd()]);
            let mut all: Vec<_> = all.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
            poll(&mut all, PollTimeout::NONE).expect("one can wait for them");
        }
        here().for_each(|p| p.end.sleeps(false));
        self.event.clear();
    }

    fn notice_gone(&mut self) {
        for at in 0..self.programs.len() {
            let program = &mut self.programs[at];
            let says = io::Read::read(&mut program.socket, &mut [0]);
            if !program.is_gone && matches!(says, Ok(0)) {
                program.is_gone = true;
                program.receives.clear();
                for domain in &mut self.domains {
                    domain.take_if(|domain| domain.program == at);
                }
            }
        }
    }

    fn accept(&mut self) {
        for processor in 0..self.listeners.len() {
            while let Ok((socket, _)) = self.listeners[processor].accept() {
                self.greet(processor as u16, socket);
            }
        }
    }

    fn greet(&mut self, processor: u16, mut socket: UnixStream) {
        let mut message = [0; HELLO_BYTES];
        socket.set_nonblocking(false).expect("it can be");
        if io::Read::read_exact(&mut socket, &mut message).is_err() {
            return;
        }
        let answer = |welcome: Welcome, with: &[BorrowedFd<'_>]| {
            let mut message = [0xa5; HELLO_BYTES];
            welcome.emit(&mut message);
            let _ = descriptors::send(&socket, &message, with);
        };
        let Ok(hello) = Hello::parse(&message) else {
            return answer(Welcome::refused(Entry::NotUnderstood), &[]);
        };
        let of_job = self.programs.iter();
        let is_taken = |member| {
            of_job.clone().any(|p| {
                (p.processor, p.job, p.member, p.is_gone) == (processor, hello.job, member, false)
            })
        };
        let member = match hello.member {
            ANY_MEMBER => (0..ANY_MEMBER).find(|&member| !is_taken(member)),
            member => Some(member).filter(|&member| !is_taken(member)),
        };
        let Some(member) = member else {
            return answer(Welcome::refused(Entry::MemberTaken), &[]);
        };
        let (mapping, memory) = Mapping::create(hello.data_bytes).expect("there is memory");
        let event = Event::new().expect("there are descriptors");
        let welcome = Welcome {
            entry: Entry::Welcome,
            member,
            processor,
            longest_put: 64,
            operations: Operations::ALL,
            is_virtual: false,
            data_bytes: mapping.data_bytes(),
        };
        let with = [memory.as_fd(), self.event.as_fd(), event.as_fd()];
        answer(welcome, &with);
        socket.set_nonblocking(true).expect("it can be");
        self.programs.push(Program {
            processor,
            member,
            job: hello.job,
            end: NicEnd::new(Arc::new(mapping)),
            socket,
            event,
            receives: VecDeque::new(),
            sending: 0,
            is_gone: false,
        });
    }

    /// Takes a command if there is room for its completion besides those that are due.
    fn next_command(&mut self, at: usize, entry: &mut [u8; COMMAND_BYTES]) -> bool {
        let program = &mut self.programs[at];
        let reserved = program.receives.len() as u64 + program.sending;
        if program.is_gone || program.end.room().expect("the client is right") <= reserved {
            return false;
        }
        let is_there = program.end.command(entry).expect("the client is right");
        if is_there {
            program.end.taken();
        }
        is_there
    }

    fn carry_out(&mut self, at: usize, entry: &[u8; COMMAND_BYTES]) {
        let Ok(command) = Command::parse(entry) else {
            let name = u64::from_le_bytes(entry[8..16].try_into().expect("eight bytes"));
            return self.end(at, name, Err(Status::Malformed), 0);
        };
        let name = command.name;
        if self.is_lost(at, &command.request) {
            return self.unanswered.push((at, name));
        }
        let ended = match command.request {
            Request::Receive { into } => {
                let target = self.copy(at, into).and_then(|_| self.may_receive(at));
                if let Err(status) = target {
                    return self.end(at, name, Err(status), 0);
                }
                return self.programs[at].receives.push_back((name, into));
            }
            Request::Send {
                processor,
                member,
                from,
            } => match self.find(at, processor, member) {
                Ok(to) => {
                    self.programs[at].sending += 1;
                    let program = at;
                    return self.sends.push(Send {
                        program,
                        name,
                        to,
                        from,
                    });
                }
                Err(status) => Err(status),
            },
            Request::CancelReceive => {
                let receives = &mut self.programs[at].receives;
                let found = receives.iter().position(|receive| receive.0 == name);
                Ok(u64::from(found.and_then(|n| receives.remove(n)).is_some()))
            }
            Request::Register { part, access } => self.copy(at, part).map(|_| {
                let program = at;
                self.domains.push(Some(Domain {
                    program,
                    part,
                    access,
                }));
                self.domains.len() as u64 - 1
            }),
            Request::Deregister { handle } => {
                let domain = self.domains.get_mut(usize::from(handle));
                let domain = domain.and_then(|domain| domain.take_if(|d| d.program == at));
                domain.map(|_| 0).ok_or(Status::NotYours)
            }
            Request::Collective(_) => Err(Status::Unsupported),
            request => self.access(at, &request),
        };
        let bytes = match command.request {
            Request::BlockPut { from: local, .. } | Request::BlockGet { into: local, .. } => {
                local.bytes
            }
            _ => 0,
        };
        self.end(at, name, ended, bytes);
    }

    /// Whether the program's request goes to or from a silent NIC.
    fn is_lost(&self, at: usize, request: &Request<'_>) -> bool {
        let to = match *request {
            Request::Put { to, .. } | Request::BlockPut { to, .. } => to.processor,
            Request::Get { from, .. } | Request::BlockGet { from, .. } => from.processor,
            Request::Atomic { at, .. } => at.processor,
            Request::Send { processor, .. } => processor,
            _ => return false,
        };
        let silent = self.silent.load(Acquire);
        [to, self.programs[at].processor]
            .iter()
            .any(|n| silent >> n & 1 != 0)
    }

    fn end(&mut self, at: usize, name: u64, ended: Ended, bytes: u64) {
        let (status, word, bytes) = match ended {
            Ok(word) => (Status::Done, word, bytes),
            Err(status) => (status, 0, 0),
        };
        self.programs[at].end.complete(&Completion::End {
            name,
            status,
            word,
            bytes,
        });
    }

    fn find(&self, at: usize, processor: u16, member: u8) -> Ended<usize> {
        let job = self.programs[at].job;
        let wanted = (processor, member, job, false);
        let mut programs = self.programs.iter();
        let found = programs.position(|p| (p.processor, p.member, p.job, p.is_gone) == wanted);
        found.ok_or(Status::NoProcessor)
    }

    /// Whether the program's NIC has a slot for one more receive.
    fn may_receive(&self, at: usize) -> Ended<()> {
        let here = self.programs[at].processor;
        let programs = self.programs.iter().filter(|p| p.processor == here);
        let posted: usize = programs.map(|p| p.receives.len()).sum();
        match posted < MOST_RECEIVES {
            true => Ok(()),
            false => Err(Status::TooMany),
        }
    }

    fn memory(&self, at: usize) -> &Mapping {
        self.programs[at].end.mapping()
    }

    /// Copies a part of the program's data.
    fn copy(&self, at: usize, part: Local) -> Ended<Vec<u8>> {
        let end = part.offset.checked_add(part.bytes);
        let size = self.memory(at).data_bytes();
        end.filter(|&end| end <= size).ok_or(Status::NotInSegment)?;
        let mut bytes = vec![0; part.bytes as usize];
        let copied = self.memory(at).read_data(part.offset, &mut bytes);
        copied.map(|()| bytes).map_err(|_| Status::NotInSegment)
    }

    /// The target program, and the offset in its data.
    fn there(
        &self,
        at: usize,
        remote: Remote,
        bytes: u64,
        may: fn(Access) -> bool,
    ) -> Ended<(usize, u64)> {
        let domain = self.domains.get(usize::from(remote.handle));
        let domain = domain.and_then(Option::as_ref).ok_or(Status::NoHandle)?;
        let owner = &self.programs[domain.program];
        if owner.processor != remote.processor {
            return Err(Status::NoHandle);
        }
        if owner.job != self.programs[at].job {
            return Err(Status::WrongKey);
        }
        if !may(domain.access) {
            return Err(Status::Forbidden);
        }
        let end = remote.offset.checked_add(bytes);
        end.filter(|&end| end <= domain.part.bytes)
            .ok_or(Status::OutOfBounds)?;
        Ok((domain.program, domain.part.offset + remote.offset))
    }

    fn push_completion(&mut self, at: usize, completion: &Completion) {
        let program = &mut self.programs[at];
        let reserved = program.receives.len() as u64 + program.sending + 1;
        let room = program.end.room().expect("the client is right");
        assert!(room > reserved, "these tests ask for few events");
        program.end.complete(completion);
    }

    fn store(&self, (to, offset): (usize, u64), bytes: &[u8]) -> Ended<()> {
        let mut bytes = bytes.to_vec();
        if let (false, Some(last)) = (self.is_right, bytes.last_mut()) {
            *last ^= 0x10;
        }
        let written = self.memory(to).write_data(offset, &bytes);
        written.map_err(|_| Status::NotInSegment)
    }

    /// Executes an access to the memory of another program.
    fn access(&mut self, at: usize, request: &Request<'_>) -> Ended {
        let processor = self.programs[at].processor;
        match *request {
            Request::Put {
                to, data, event, ..
            } => {
                let target = self.there(at, to, data.len() as u64, |access| access.put)?;
                self.store(target, data)?;
                let landed = Completion::PutEvent {
                    processor,
                    handle: to.handle,
                    offset: to.offset,
                    bytes: data.len() as u64,
                };
                if event {
                    self.push_completion(target.0, &landed);
                }
            }
            Request::BlockPut {
                to, from, event, ..
            } => {
                let target = self.there(at, to, from.bytes, |access| access.put)?;
                self.store(target, &self.copy(at, from)?)?;
                let block_event = |word| Completion::BlockEvent {
                    processor,
                    handle: to.handle,
                    word,
                };
                if let Some(word) = event {
                    self.push_completion(target.0, &block_event(word));
                }
            }
            Request::Get { from, into, .. } | Request::BlockGet { from, into, .. } => {
                let (owner, offset) = self.there(at, from, into.bytes, |access| access.get)?;
                let bytes = into.bytes;
                let data = self.copy(owner, Local { offset, bytes })?;
                self.store((at, into.offset), &data)?;
            }
            Request::Atomic {
                at: remote,
                op,
                operands: [a, b],
                ..
            } => {
                let (owner, offset) = self.there(at, remote, 8, |access| access.atomic)?;
                let word = self.memory(owner).data_word(offset);
                let word = word.ok_or(Status::Misaligned)?;
                return Ok(match op {
                    AtomicOp::Add => word.fetch_add(a + u64::from(!self.is_right), AcqRel),
                    AtomicOp::Swap => word.swap(a, AcqRel),
                    AtomicOp::CompareSwap => word
                        .compare_exchange(a, b, AcqRel, Acquire)
                        .unwrap_or_else(|was| was),
                    _ => return Err(Status::Unsupported),
                });
            }
            _ => unreachable!("it is no access to another's memory"),
        }
        // A program that sees the completion must see the stores.
        std::sync::atomic::fence(Release);
        Ok(0)
    }

    /// Delivers messages whose receives are posted.
    fn deliver(&mut self) {
        for send in std::mem::take(&mut self.sends) {
            let processor = self.programs[send.program].processor;
            let Some((name, into)) = self.programs[send.to].receives.pop_front() else {
                self.sends.push(send);
                continue;
            };
            let data = self.copy(send.program, send.from).unwrap_or_default();
            let bytes = into.bytes.min(data.len() as u64);
            let stored = self.store((send.to, into.offset), &data[..bytes as usize]);
            stored.expect("the receive is in the data");
            self.programs[send.to].end.complete(&Completion::Received {
                name,
                status: Status::Done,
                processor,
                bytes,
            });
            self.programs[send.program].sending -= 1;
            self.end(send.program, send.name, Ok(0), bytes);
        }
    }
}
